"""Engines, catalogues and specs that are wrong on purpose: a finding, nothing reaches a shell."""

from __future__ import annotations

from pathlib import Path

import pytest
import servec
import yaml

from tests.conftest import ROOT
from tests.wrapper import start, write_wrapper

MANIFEST = """
engine: toy
env_var_prefix: TOY_
speculative_decoding: false
supported_algorithms: []
algorithm_map: {}
hot_reload: false
serve:
  calls: [{program: [toy]}]
  port: 9000
  flags: {host: --host, port: --port}
  topology: {flags: []}
  health: {path: /live}
"""
CATALOGUE = """
engine: toy
releases: {"1.0.0": {read: parser, date: "2026-11-30"}}
flags: {--host: {}, --port: {type: int}, --size: {type: int}}
"""
SPEC = """
models:
  m:
    checkpoint: org/model
    engine: toy
    engine_version: "1.0.0"
    hardware: H100-80G
    recipe: none
    topology: {tp: 1}
"""


def compiled(
    manifest: str = MANIFEST, catalogue: str = CATALOGUE, spec: str = SPEC, **more: str
) -> servec.Result:
    return servec.compile(
        tree={
            "servec.yaml": "targets: [bash]\n",
            "serve.d/toy/manifest.yaml": manifest,
            "serve.d/toy/wrapper.sh.j2": (ROOT / "serve.d/sim/wrapper.sh.j2").read_text(),
            "catalogs/engines/toy.yaml": catalogue,
            "specs/a.yaml": spec,
            **more,
        }
    )


def codes(result: servec.Result) -> list[str]:
    return [finding.code.number for finding in result.findings]


def test_the_toy_is_sound(tmp_path: Path) -> None:
    result = compiled()
    assert codes(result) == []
    found = start(write_wrapper(result, tmp_path), TOY_SIZE="3")
    assert found.argv[-2:] == ["--size", "3"]


@pytest.mark.parametrize(
    "change",
    [
        "--size: {kind: switch, negative: [\"--x'; touch PWN; '\"]}",
        "--size: {also: [\"--x'; touch PWN; '\"]}",
        '--size: {also: ["--a b"]}',
        "--size: {variable: \"TOY_X'; touch PWN; '\"}",
        '"--s\'; touch PWN #": {}',
        "--size: {kind: banana}",
        "--size: {in: 2.0.0..1.0.0}",
        "--size: {in: 7}",
    ],
)
def test_words_of_a_catalogue_are_words_or_findings(change: str, tmp_path: Path) -> None:
    result = compiled(catalogue=CATALOGUE.replace("--size: {type: int}", change))
    assert any(number.startswith("SV02") for number in codes(result))
    assert not result.artifacts


@pytest.mark.parametrize("release", ['"1.0.0\\ntouch PWN"', '"main #"', '"a`touch PWN`"', '"$(x)"'])
def test_releases_have_plain_names(release: str) -> None:
    result = compiled(catalogue=CATALOGUE.replace('"1.0.0"', release))
    assert any(number.startswith("SV02") for number in codes(result))


def test_engine_of_another_name_and_order_of_releases() -> None:
    assert "SV0212" in codes(compiled(catalogue=CATALOGUE.replace("engine: toy", "engine: other")))
    two = 'releases: {"2.0.0": {read: parser, date: "d"}, "1.0.0": {read: parser, date: "d"}}'
    catalogue = CATALOGUE.replace('releases: {"1.0.0": {read: parser, date: "2026-11-30"}}', two)
    newer = catalogue.replace("--size: {type: int}", "--size: {in: 2.0.0..}")
    spec = SPEC + "    overrides: {size: 3}\n"
    assert "SV0615" in codes(compiled(catalogue=newer, spec=spec))
    assert compiled(catalogue=newer, spec=spec.replace('"1.0.0"', '"2.0.0"')).ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{program: [toy]}", '{program: [toy], versions: "<1.0.0"}'),
        ("{program: [toy]}", '{program: [toy], versions: "~=3.0.0"}'),
        ("{program: [toy]}", '{program: [toy], versions: "foo"}'),
        ("{program: [toy]}", '{program: [toy], versions: "1.5.0"}'),
        ("engine: toy", "engine: a$(touch PWN)"),
        ("  port: 9000", "  port: 9000\n  speculative: {strategy: json_flag, names: {model: m}}"),
        ("  port: 9000", "  port: 9000\n  speculative: {strategy: options_file, knob: x}"),
        ("  port: 9000", "  port: 9000\n  negatives: [{prefix: no-, versions: '>=1,'}]"),
    ],
)
def test_a_manifest_that_says_no_way_is_told(old: str, new: str) -> None:
    found = compiled(manifest=MANIFEST.replace(old, new))
    assert not found.ok
    assert set(codes(found)) & {"SV0205", "SV0212", "SV0214"}


def test_candidates_are_before_their_release() -> None:
    """No rule is lost between `<1.2.0` and `>=1.2.0`."""
    rules = """
  requirements: {}
  calls:
    - {versions: ">=1.2.0", program: [toy, new]}
    - {versions: "<1.2.0", program: [toy, old]}
"""
    manifest = MANIFEST.replace("  calls: [{program: [toy]}]\n", rules)
    for version, word in (("1.2.0rc1", "old"), ("1.2.0", "new"), ("1.2.0.post1", "new")):
        result = compiled(manifest=manifest, spec=SPEC.replace("1.0.0", version))
        assert result.launches[0].argv[1] == word, version


LMI = """
models:
  m:
    checkpoint: org/model
    engine: lmi
    image: deepjavalibrary/djl-serving:0.34.0-lmi16.0.0-cu128
    hardware: H100-80G
    recipe: none
    topology: {tp: 2}
    targets: [kubernetes]
"""


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("overrides: {port: 9000}", "SV0606"),
        ("overrides: {served_model_name: x}", "SV0606"),
        ("overrides: {model_id: evil}", "SV0607"),
        ("overrides: {hf_token: foo123}", "SV0604"),
        ("overrides: {rolling_batch: auto}\n    features: {rolling_batch_backend: vllm}", "SV0612"),
        ("env: {OPTION_TENSOR_PARALLEL_DEGREE: '4'}", "SV0612"),
    ],
)
def test_container_is_told_each_thing_once(more: str, code: str) -> None:
    spec = LMI + f"    {more}\n"
    result = servec.compile(tree={"servec.yaml": "targets: [kubernetes]\n", "specs/a.yaml": spec})
    assert code in codes(result)
    assert not result.artifacts


OPTIONS = """
models:
  m:
    checkpoint: org/model-8B
    config: configs/m.json
    engine: tensorrt-llm
    engine_version: "1.2.0"
    hardware: H100-80G
    targets: [bash]
"""
RECIPE = """
_family: acme
_architectures: [AcmeForCausalLM]
acme-8b:
  size_range: [5, 12]
  hardware:
    H100-80G: {bf16: {tensorrt-llm: {extra_llm_api_options: {a: 1, b: 2}, max_batch_size: 8}}}
"""


def options(more: str) -> object:
    result = servec.compile(
        tree={
            "servec.yaml": "targets: [bash]\n",
            "recipes/acme.yaml": RECIPE,
            "configs/m.json": '{"architectures": ["AcmeForCausalLM"], "torch_dtype": "bfloat16"}',
            "specs/a.yaml": OPTIONS + more,
        }
    )
    assert result.ok, result.findings
    text = result.artifacts.get("m/bash/options.yaml")
    flags = [word for word in result.launches[0].argv if word.startswith("--e")]
    return yaml.safe_load(text) if text else flags


def test_options_are_layered_key_by_key() -> None:
    assert options("") == {"a": 1, "b": 2}
    assert options("    overrides: {extra_llm_api_options: {b: 3, c: 4}}\n") == {
        "a": 1,
        "b": 3,
        "c": 4,
    }
    assert options("    overrides: {extra_llm_api_options: null}\n") == []
    own = options("    overrides: {extra_llm_api_options: /x.yaml}\n")
    assert own == ["--extra_llm_api_options"]
    assert options("    overrides: {config: {b: 3}}\n") == {"a": 1, "b": 3}
