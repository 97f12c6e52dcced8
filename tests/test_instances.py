"""The catalogue of instances against the facts that this checkout is given beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from servec.api import shipped_catalog

FACTS = Path(__file__).parents[2] / "shared" / "facts"
NO_ACCELERATOR = {
    "qualcomm-ai100", "radeon-pro-v520", "t4g", "inferentia", "inferentia2", "trainium",
    "trainium2",
}  # fmt: skip
"""Chips of instance types that the catalogue of accelerators does not have."""


def _told() -> Iterator[tuple[str, str | None, int]]:
    """Each instance type that has a whole GPU: its name, its GPU and how many."""
    for file in sorted(FACTS.glob("instances*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(told, list):
            rows = [(row["type"], row["gpu"], row["gpu_count"]) for row in told]
        else:
            rows = [(name, row["gpu"], row["gpus"]) for name, row in told["instances"].items()]
        yield from (row for row in rows if row[2])


def test_gpu_counts_are_those_of_the_facts() -> None:
    told = list(_told())
    if not told:
        pytest.skip("no facts of instances are here")
    known = shipped_catalog().instances
    found = {name: known[name].gpus.value for name, _, _ in told if name in known}
    assert found == {name: count for name, _, count in told if name in known}
    lacking = [name for name, gpu, _ in told if name not in known and gpu not in NO_ACCELERATOR]
    # Their GPUs are not told.
    assert lacking == ["a3-ultragpu-8g", "a4-highgpu-8g"]


def test_every_instance_has_a_known_accelerator() -> None:
    catalog = shipped_catalog()
    unknown = [
        name
        for name, item in catalog.instances.items()
        if item.accelerator.value not in catalog.accelerators.by_key
    ]
    assert unknown == []


def test_hosted_names_have_as_many_gpus_as_the_machines_they_are_named_after() -> None:
    known = shipped_catalog().instances
    pairs = [(name, name.removeprefix("ml.")) for name in known if name.startswith("ml.")]
    differ = [
        (hosted, known[hosted].gpus.value, known[plain].gpus.value)
        for hosted, plain in pairs
        if plain in known and known[hosted].gpus.value != known[plain].gpus.value
    ]
    assert pairs
    assert differ == []
