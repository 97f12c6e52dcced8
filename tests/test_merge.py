"""Releases to one catalogue and back: intervals that say what each release said."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from servec.api import shipped_catalog
from servec.catalog.released import Released
from servec.diag.findings import Findings
from servec.extract.apart import observations
from servec.extract.merge import merge
from servec.ir.releases import EngineCatalogue
from servec.ir.typed import read_record
from servec.source.files import Files, Memory

from tests.conftest import ROOT

RELEASES = ["0.9.0", "0.10.0rc1", "0.10.0", "0.10.0.post1", "1.0.0"]


def observed(version: str, *flags: dict[str, Any], **lists: Any) -> dict[str, Any]:
    named = {"engine": "acme", "version": version, "read": "parser", "date": "2026-11-30"}
    return {**named, "flags": list(flags), **lists}


def read(text: str) -> Released:
    findings = Findings()
    node = Files(Memory({"a.yaml": text}), findings).node("a.yaml")
    assert node is not None
    record = read_record(EngineCatalogue, node, findings)
    assert record is not None
    released = Released(record, findings)
    released.check()
    assert [item.message for item in findings] == []
    return released


def test_each_fact_is_an_interval() -> None:
    text = merge(
        [
            observed("0.9.0", {"flags": ["--a"], "kind": "store_true"}, variables=["A", "B"]),
            observed("1.0.0", {"flags": ["--b", "-b"], "kind": "value", "type": "int"}),
            observed(
                "0.10.0",
                {"flags": ["--a"], "kind": "bool_optional", "negative": ["--no-a"]},
                {"flags": ["--b"], "kind": "value", "type": "str", "choices": ["x"]},
                variables=["B"],
            ),
        ]
    )
    found = yaml.safe_load(text)
    assert list(found["releases"]) == ["0.9.0", "0.10.0", "1.0.0"]
    assert found["flags"] == {
        "--a": {
            "in": "..0.10.0",
            "kind": [{"is": "switch", "in": "..0.9.0"}, {"is": "pair", "in": "0.10.0..0.10.0"}],
            "negative": [{"is": "--no-a", "in": "0.10.0..0.10.0"}],
        },
        "--b": {
            "in": "0.10.0..",
            "type": [{"is": "str", "in": "0.10.0..0.10.0"}, {"is": "int", "in": "1.0.0.."}],
            "also": [{"is": "-b", "in": "1.0.0.."}],
            "choices": [{"is": "x", "in": "0.10.0..0.10.0"}],
        },
    }
    assert found["variables"] == [{"is": "A", "in": "..0.9.0"}, {"is": "B", "in": "..0.10.0"}]


FLAGS = st.lists(
    st.fixed_dictionaries(
        {
            "flags": st.sampled_from([["--a"], ["--a", "-a"], ["--b"], ["--c-d"]]),
            "kind": st.sampled_from(["value", "switch", "append"]),
        },
        optional={
            "type": st.sampled_from(["int", "str?", "json:Acme"]),
            "nargs": st.sampled_from(["+", "?", 2]),
            "default": st.sampled_from([0, False, "no", 0.5, [], {"a": 1}, "0.10", "on"]),
            "choices": st.lists(st.sampled_from(["no", "1", "x y", "é"]), min_size=1, unique=True),
            "deprecated": st.just(True),
        },
    ),
    unique_by=lambda flag: flag["flags"][0],
)


@given(
    flags=st.lists(FLAGS, min_size=1, max_size=5),
    names=st.lists(st.sets(st.sampled_from(["A", "B_C", "ON"])), min_size=5, max_size=5),
)
def test_a_catalogue_says_what_the_releases_said(
    flags: list[list[dict[str, Any]]], names: list[set[str]]
) -> None:
    """Merged in any order; taken apart it merges to itself; each release reads as it was."""
    given_ = [
        observed(version, *one, variables=sorted(two))
        for version, one, two in zip(RELEASES, flags, names, strict=False)
    ]
    text = merge(given_)
    assert merge(reversed(given_)) == text
    released = read(text)
    assert merge(observations(released)) == text
    for item in given_:
        here = released.of(item["version"])
        assert here.variables == set(item["variables"])
        assert {flag.name for flag in here.flags.values()} == {f["flags"][0] for f in item["flags"]}
        for flag in item["flags"]:
            found = here.flags[flag["flags"][0]]
            assert found.spellings == tuple(flag["flags"])
            assert found.kind == flag["kind"]
            assert found.type == flag.get("type", "")
            assert found.nargs == flag.get("nargs")
            assert sorted(found.choices) == sorted(flag.get("choices", ()))
            assert found.default == flag.get("default")
            assert bool(found.deprecated) is flag.get("deprecated", False)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "catalogs/engines").glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_catalogue_is_what_merge_writes(path: Any) -> None:
    """So that the next release changes the lines that it changes and no others."""
    released = shipped_catalog().released(path.stem)
    assert released is not None
    assert merge(observations(released)) == path.read_text(encoding="utf-8")


def test_engines_have_the_releases_that_are_promised() -> None:
    counts = {}
    for name in ("vllm", "sglang"):
        released = shipped_catalog().released(name)
        assert released is not None
        heads = [item.value for item in released.record.releases]
        assert all(head.read.value == "parser" and head.sha256 for head in heads)
        counts[name] = len(heads)
    assert counts["vllm"] >= 30
    assert counts["sglang"] >= 20


def test_a_flag_that_was_renamed_has_its_new_name_only_where_it_is_taken() -> None:
    old = observed("0.9.0", {"flags": ["--old"], "kind": "store_true"})
    new = observed("1.0.0", {"flags": ["--new", "--old"], "kind": "store_true"})
    released = read(merge([old, new]))
    assert sorted(released.of("0.9.0").flags) == ["--old"]
    assert sorted(released.of("1.0.0").flags) == ["--new", "--old"]
