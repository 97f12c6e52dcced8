"""The field's cases that this checkout is given beside it; each kind's runner, every row."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.field.rows import KINDS, judge, read

CASES = Path(__file__).parents[2] / "shared" / "cases"


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_holds(kind: str) -> None:
    file = next(CASES.glob(f"{kind}.json*"), None)
    if file is None:
        pytest.skip(f"no cases of {kind} are here")
    result = judge(importlib.import_module(f"tests.field.{kind}"), read(file))
    assert result.failed == {}
    assert result.passed


def test_a_wrong_row_fails() -> None:
    """The runner can fail: a row with another value than servec's is reported."""
    from tests.field import recipe_layers

    row = {
        "id": "wrong",
        "kind": "match",
        "inputs": {"family": "qwen3", "param_billions": 8},
        "expect": {"recipe": "qwen3-4b"},
    }
    assert judge(recipe_layers, [row]).failed == {
        "wrong": ['recipe: expected "qwen3-4b", found "qwen3-8b"']
    }
