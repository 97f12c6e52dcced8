"""The record of what released parsers said is as old as the catalogues; no parser is asked here."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from servec.api import shipped_catalog

from tests.conformance.cases import cases
from tests.conformance.differences import NAMED
from tests.conformance.record import RECORD, digest_of
from tests.conformance.releases import LEAST, RELEASES, goldens
from tests.facts_differences import FACTS, differences, reason_of

ENGINES = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}

PAGE = Path(__file__).parent.parent / "docs" / "conformance.md"
HEAD = "| engine | release | command lines | differences that are meant |\n"


def _meant(found: dict[str, Any]) -> int:
    return sum(found["named_differences"].values())


def test_the_page_has_the_record_in_words(blessing: bool) -> None:
    rows = [
        f"| {engine} | {version} | {found['argvs']:,} | {_meant(found)} |"
        for engine, record in ENGINES.items()
        for version, found in record["releases"].items()
    ]
    table = f"{HEAD}| --- | --- | ---: | ---: |\n" + "".join(f"{row}\n" for row in rows)
    text = PAGE.read_text(encoding="utf-8")
    fresh = re.sub(re.escape(HEAD) + r"(\|.*\n)*", lambda _: table, text)
    if blessing:
        PAGE.write_text(fresh, encoding="utf-8")
    assert fresh == text or blessing
    assert table in fresh


@pytest.mark.parametrize("engine", RELEASES)
def test_the_record_is_of_this_catalogue(engine: str) -> None:
    advice = "the catalogue changed: run `make conformance`"
    assert ENGINES[engine]["catalogue_sha256"] == digest_of(engine), advice
    released = shipped_catalog().released(engine)
    assert released is not None
    heads = {item.key.value: item.value.sha256 for item in released.record.releases}
    for version, found in ENGINES[engine]["releases"].items():
        head = heads[version]
        assert head is not None, version
        assert head.value == found["sha256"], version


@pytest.mark.parametrize("engine", RELEASES)
def test_the_record_has_enough_releases_and_all_agree(engine: str) -> None:
    releases = ENGINES[engine]["releases"]
    assert tuple(releases) == RELEASES[engine]
    assert len(releases) >= LEAST[engine]
    reasons = {named.reason for named in NAMED if named.engine == engine}
    for version, found in releases.items():
        named = found["named_differences"]
        assert set(named) <= reasons, version
        assert found["argvs"] == found["agreements"] + sum(named.values()), version


def test_the_record_has_every_case_of_a_release() -> None:
    for engine, record in ENGINES.items():
        released = shipped_catalog().released(engine)
        assert released is not None
        for version in record["releases"]:
            ways = dict(record["releases"][version]["ways"])
            assert ways.pop("golden") == sum(golden.engine == engine for golden in goldens())
            assert ways == Counter(case.what for case in cases(engine, released.of(version)))


def test_every_golden_is_pinned_to_a_release_that_is_asked() -> None:
    for golden in goldens():
        assert golden.version in RELEASES.get(golden.engine, ()), golden.name


def test_the_catalogues_agree_with_other_readings() -> None:
    if not FACTS.is_dir():
        pytest.skip("there are no other readings here")
    assert [found for found in differences(FACTS) if not reason_of(found)] == []
