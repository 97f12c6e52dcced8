"""Options of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("servec", deadline=None)  # machines that run tests are busy
settings.load_profile("servec")
ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="Rewrite expected output of cases.")


@pytest.fixture
def blessing(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--bless"))
