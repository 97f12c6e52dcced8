"""The plugin contract under random manifests: what an engine can do grows with its version."""

from __future__ import annotations

from typing import Any

import pytest
import servec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version
from servec.api import read_manifest

from tests.conftest import ROOT

NAMES = ["eagle", "eagle2", "eagle3", "ngram", "mtp", "dspark", "draft-model"]
RELEASES = st.tuples(*[st.integers(0, 3)] * 3).map(lambda parts: ".".join(map(str, parts)))
VERSIONS = st.builds(
    lambda release, end: release + end, RELEASES, st.sampled_from(["", "rc1", ".post1", ".dev3"])
)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """Manifests that keep the contract: any gates over any algorithms."""
    algorithms = draw(st.lists(st.sampled_from(NAMES), unique=True))
    gated = draw(st.lists(st.sampled_from(algorithms), unique=True)) if algorithms else []
    return {
        "engine": "acme",
        "env_var_prefix": "ACME_",
        "speculative_decoding": bool(algorithms),
        "supported_algorithms": algorithms,
        "algorithm_map": {name: name.upper() for name in algorithms},
        "hot_reload": draw(st.booleans()),
        "version_features": [
            {"since": draw(RELEASES), "adds": {"supported_algorithms": [name]}} for name in gated
        ],
    }


@given(manifest=manifests(), one=VERSIONS, other=VERSIONS)
def test_capabilities_grow_keep_their_order_and_are_of_the_list(
    manifest: dict[str, Any], one: str, other: str
) -> None:
    low, high = sorted((one, other), key=Version)
    whole = manifest["supported_algorithms"]
    older, newer = (
        list(servec.capabilities("acme", version=version, manifest=manifest).supported_algorithms)
        for version in (low, high)
    )
    assert set(older) <= set(newer) <= set(whole)
    assert older == [name for name in whole if name in older]
    assert newer == [name for name in whole if name in newer]
    unknown = servec.capabilities("acme", manifest=manifest)
    assert list(unknown.supported_algorithms) == whole
    if not manifest["version_features"]:
        assert older == whole


SHIPPED = sorted((ROOT / "serve.d").glob("*/manifest.yaml"))


@settings(max_examples=300)
@given(data=st.data())
def test_random_bytes_in_a_manifest_are_a_finding_or_no_matter(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(SHIPPED))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    name = path.parent.name
    result = servec.compile(
        tree={
            "servec.yaml": "targets: [bash]\n",
            f"serve.d/{name}/manifest.yaml": bytes(content),
            f"serve.d/{name}/wrapper.sh.j2": '{% extends "serve.sh.j2" %}\n',
        }
    )
    assert all(finding.message for finding in result.findings)


@given(manifest=manifests(), junk=st.recursive(st.none() | st.booleans() | st.text(), st.lists))
def test_a_broken_key_is_told(manifest: dict[str, Any], junk: object) -> None:
    for key in list(manifest):
        wrong = {**manifest, key: {"": junk}}
        with pytest.raises(servec.InvalidManifest) as raised:
            read_manifest(wrong)
        assert raised.value.findings
        assert all(found.span and found.span.line >= 1 for found in raised.value.findings)


def test_shipped_manifests_are_what_this_file_changes() -> None:
    assert len(SHIPPED) == 7
    assert all(yaml.safe_load(path.read_text())["engine"] == path.parent.name for path in SHIPPED)
