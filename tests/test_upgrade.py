"""servec upgrade: what another version of an engine changes for a project."""

from __future__ import annotations

from packaging.version import Version
from servec.diag.findings import Findings
from servec.source.files import Files, Memory
from servec.upgrade import Upgrade, upgrades

SPEC = """
models:
  old:
    checkpoint: org/a
    engine: vllm
    image: vllm/vllm-openai:v0.12.0
    hardware: H100-80G
    recipe: none
    topology: {tp: 1}
    targets: [bash]
    env: {VLLM_ATTENTION_BACKEND: FLASHINFER}
    overrides: {swap_space: 4, max_model_len: 8192}
  embedding:
    checkpoint: org/b
    engine: vllm
    engine_version: "0.10.0"
    hardware: H100-80G
    recipe: none
    topology: {tp: 1}
    targets: [bash]
    overrides: {task: embed, gpu_memory_utilization: 0.8}
  other:
    checkpoint: org/c
    engine: sglang
    engine_version: "0.5.15"
    hardware: H100-80G
    recipe: none
    topology: {tp: 1}
    targets: [bash]
"""


def upgraded(version: str) -> dict[str, Upgrade]:
    files = Files(Memory({"servec.yaml": "", "specs/a.yaml": SPEC}), Findings())
    found, errors = upgrades(files, "vllm", Version(version))
    assert not errors
    return {item.plan: item for item in found}


def test_what_breaks_warns_moves_and_opens() -> None:
    found = upgraded("0.33.0")
    assert set(found) == {"old", "embedding"}
    old = found["old"]
    assert [item.message for item in old.breaks] == [
        "vllm 0.33.0 has no flag `--swap-space`; it was there until 0.17.1"
    ]
    assert [item.code.number for item in old.warnings] == ["SV0620"]
    assert ("--gpu-memory-utilization", "0.9", "0.92") in old.defaults
    assert old.opens == ("dspark",)


def test_what_is_written_otherwise_is_shown_and_breaks_nothing() -> None:
    embedding = upgraded("0.33.0")["embedding"]
    assert embedding.breaks == ()
    assert embedding.gone == ("--task embed",)
    assert embedding.come == ("--runner pooling", "--convert embed")
    assert "--gpu-memory-utilization" not in [flag for flag, _, _ in embedding.defaults]
    assert embedding.opens == ("mtp", "dspark")


def test_the_same_version_changes_nothing() -> None:
    old = upgraded("0.12.0")["old"]
    assert (old.breaks, old.warnings, old.gone, old.come, old.defaults, old.opens) == ((),) * 6


def test_a_default_that_no_word_can_say_is_not_set() -> None:
    from servec.api import shipped_catalog

    released = shipped_catalog().released("vllm")
    assert released is not None
    defaults = {
        str(flag.default)
        for release in released.releases
        for flag in released.of(release).flags.values()
    }
    assert not [text for text in defaults if text.startswith("<")]
