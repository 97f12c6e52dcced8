"""The runners can fail: false rows of each kind are reported, true ones hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import servec
from servec.api import read_manifest, shipped_catalog

from tests.field import argv_verdicts, bug_reports, engine_capabilities, real_configs, shard_launch
from tests.field.engine_capabilities import CHECKS, _compiled, _places
from tests.field.manifest_changes import CONTRACT, changed
from tests.field.published import Reader
from tests.field.rows import judge

DRAFT = [
    "--speculative-config",
    '{"method":"eagle3","num_speculative_tokens":5,"model":"acme/draft"}',
]
EAGLE = {"engine": "vllm", "algorithm": "eagle3", "model": "acme/draft", "tokens": "5"}
OPTIONS = {
    "engine": "tensorrt-llm",
    "algorithm": "Eagle",
    "model": "a/d",
    "tokens": "4",
    "arg": "--extra_llm_api_options",
}
EAGLE_OPTIONS = {"decoding_type": "Eagle", "max_draft_len": 4, "speculative_model": "a/d"}
ACME = {
    "engine": "acme",
    "prefix": "ACME_",
    "values": {"lora": "true"},
    "capability_map": {
        "lora": ["LORA", "boolean", [["rank"]]],
        "rank": ["RANK", "valued"],
        "paths": ["PATHS", "valued"],
    },
    "resolved": [],
}
LORA = {"lora_max_rank": "32", "lora_target_modules": "q_proj"}
LINE = "vllm/vllm-openai:v0.29.0"
AMI = {
    "engine": "vllm",
    "image": LINE,
    "ami": "al2-ami-sagemaker-inference-gpu-3-1",
    "image_min_driver": "580.0",
}
FALSE: list[tuple[str, dict[str, Any]]] = [
    ("engine_version", {"engine": "vllm", "base_image": LINE, "version": "0.28.0"}),
    ("effective_algorithms", {
        "engine": "vllm", "version": None, "algorithms": ["eagle3"], "at_or_above_min": True,
    }),
    ("algorithm_engine_name", {"engine": "vllm", "algorithm": "ngram", "engine_name": None}),
    ("resolve_capabilities", ACME | {"skipped": []}),
    ("resolve_capabilities", ACME | {"skipped": [["lora", "it needs paths"]]}),
    ("resolve_capabilities", ACME | {"skipped": [["lora", ["rank", "paths"]]]}),
    ("lora_companion_defaults", {"engine": "sglang", "user": {}, "filled": {
        "lora_max_rank": "64",
    }}),
    ("lora_companion_defaults", {"engine": "sglang", "user": LORA, "filled": LORA | {
        "lora_max_rank": "64",
    }}),
    ("dimension_key", {
        "engine": "vllm", "target": "hyperpod-eks", "dimension": "quantization", "key": "QUANT",
    }),
    ("engine_features", {
        "engine": "llama-cpp", "request": {"threads": "32"}, "env": {}, "errors": 0,
    }),
    ("gpu_count", {"instance": "ml.g5.12xlarge", "gpus": 1}),
    ("env_to_flag", {
        "engine": "vllm", "env": {"VLLM_ENABLE_LORA": "true"}, "args": ["--enable-lora", "true"],
    }),
    ("env_to_flag", {
        "engine": "vllm", "env": {"VLLM_ENABLE_LORA": "true"}, "args": ["--enable-lora"],
        "exit": 1,
    }),
    ("env_to_flag", {"engine": "vllm", "env": {"VLLM_ENABLE_LORA": "true"}, "args": []}),
    ("speculative", EAGLE | {"args": []}),
    ("speculative", EAGLE | {"args": DRAFT[:1]}),
    ("speculative", EAGLE | {"args": [*DRAFT, "--more"]}),
    ("speculative", EAGLE | {"exit": 1}),
    ("speculative", OPTIONS | {"yaml": {}}),
    ("speculative", OPTIONS | {"yaml": {"speculative_config": EAGLE_OPTIONS}}),
    ("speculative", OPTIONS | {"arg": "--other", "yaml": {
        "disable_overlap_scheduler": True, "speculative_config": EAGLE_OPTIONS,
    }}),
    ("dspark_defaults", {
        "algorithm": "eagle3", "given": {}, "draft_sample_method": "greedy",
        "rejection_sample_method": "",
    }),
    ("schema_reject", {"change": "unknown top-level key", "valid": True}),
    ("schema_reject", {"change": "a manifest that is painted", "valid": False}),
    ("driver_at_least", {"have": "535.54", "need": "535.183", "ok": True}),
    ("driver_at_least", {"have": "535.183", "need": "535.54", "ok": False}),
    ("image_default_ami_driver", AMI | {"ami_driver": "550.163", "ok": True}),
    ("image_default_ami_driver", AMI | {"ami_driver": "535.183", "ok": False}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "row"), FALSE)
def test_a_false_row_fails(table: str, row: dict[str, Any], tmp_path: Path) -> None:
    problems = _judged(table, row, tmp_path)
    assert problems
    assert not any("Error: " in problem for problem in problems), problems


def test_each_table_has_a_false_row() -> None:
    assert {table for table, _ in FALSE} == set(CHECKS)


def test_true_rows_hold(tmp_path: Path) -> None:
    both = {"disable_overlap_scheduler": True, "speculative_config": EAGLE_OPTIONS}
    assert _judged("speculative", EAGLE | {"args": DRAFT}, tmp_path) == []
    assert _judged("speculative", OPTIONS | {"yaml": both}, tmp_path) == []
    assert _judged("speculative", {"engine": "vllm", "algorithm": "", "args": []}, tmp_path) == []
    skipped = [["lora", ["rank"]]]
    assert _judged("resolve_capabilities", ACME | {"skipped": skipped}, tmp_path) == []


def test_a_flag_is_replaced_where_it_stands_or_at_the_end() -> None:
    words = ["serve", "--port", "1", "--host", "a"]
    assert _places(words, ["--port", "2"]) == [
        ["serve", "--port", "2", "--host", "a"],
        ["serve", "--host", "a", "--port", "2"],
    ]
    assert _places(words, ["--new"]) == [[*words, "--new"]]


@pytest.mark.parametrize("engine", shipped_catalog().engine_names)
def test_a_small_model_compiles_for_every_engine(engine: str) -> None:
    result = _compiled(engine)
    assert result.ok, result.findings
    assert result.artifacts


SENTENCES = [
    *(f"drop {field}" for field in CONTRACT),
    *(f"{field} of the wrong type" for field in CONTRACT),
    "env_var_prefix without a trailing underscore",
    "env_var_prefix in lower case",
    "unknown key inside metrics_endpoint",
    "unknown key inside a capability_map entry",
    "unknown key in version_features",
    "unknown key inside engine_features",
    "metrics_endpoint format that is no known word",
    "metrics_endpoint port out of range",
    "enum feature without values",
    "enum default outside its values",
    "version_features gate an algorithm outside supported_algorithms",
    "an algorithm gated twice",
    "min_version above a since",
    "requires_any_of names a companion that is no capability",
    "feature env_var without the engine's prefix",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_is_understood_and_its_manifests_are_refused(sentence: str) -> None:
    manifests = changed(sentence)
    assert manifests
    for manifest in manifests:
        with pytest.raises(servec.InvalidManifest):
            read_manifest(manifest)


def _judged(table: str, row: dict[str, Any], folder: Path) -> list[str]:
    """What the runner says of a row, beside manifests of the shipped engines' contracts."""
    (folder / "facts").mkdir(exist_ok=True)
    facts = {"engines": {name: _fact(name) for name in ("vllm", "sglang", "llama-cpp")}}
    (folder / "facts" / "engine_manifests.json").write_text(json.dumps(facts))
    row = row | {"id": table, "table": table, "folder": str(folder / "cases")}
    return judge(engine_capabilities, [row]).failed.get(table, [])


def _fact(engine: str) -> dict[str, Any]:
    features = {"threads": {"env_var": "ACME_THREADS", "type": "int"}}
    return CONTRACT | {
        "capability_map": {
            "lora_max_rank": ["MAX_LORA_RANK", "valued"],
            "lora_target_modules": ["LORA_TARGET_MODULES", "valued"],
        },
        "dimension_map": {"quantization": "QUANTIZATION"},
        "engine_features": features,
        "version_features": [],
    }


ONE_NODE: dict[str, Any] = {
    "id": "one",
    "engine": "vllm",
    "engine_version": "0.29.0",
    "model": "org/model",
    "hw": "h200",
    "n_gpus": 8,
    "argv": ["vllm", "serve", "org/model", "-tp", "8", "--max-model-len=8192", "--dtype", "half"],
    "env": {"NCCL_DEBUG": "INFO"},
}
HEAD = [
    *("vllm", "serve", "org/model", "--tensor-parallel-size", "16"),
    *("--nnodes", "2", "--node-rank", "0", "--master-addr", "$HEAD_IP"),
]
WORKER = [*(word if word != "0" else "1" for word in HEAD), "--headless"]
LEADER = {"role": "head", "argv": HEAD}
TWO_NODES = {key: item for key, item in ONE_NODE.items() if key != "argv"} | {
    "n_gpus": 16,
    "roles": [LEADER, {"role": "worker", "argv": WORKER}],
}
OLD = ONE_NODE | {"engine_version": "0.12.0"}
BEYOND = ONE_NODE | {"engine_version": "99.0.0"}
NEW_PARSER = ["--reasoning-parser", "muse_glimmer"]


def _published(row: dict[str, Any]) -> list[str]:
    return judge(real_configs, [row]).failed.get("one", [])


def _more(row: dict[str, Any], *words: str) -> dict[str, Any]:
    return row | {"argv": [*row["argv"], *words]}


@pytest.mark.parametrize("row", [
    ONE_NODE,
    TWO_NODES,
    BEYOND,
    # Mistakes of what was published, each of which a finding names.
    _more(OLD, *NEW_PARSER),
    TWO_NODES | {"engine_version": "0.11.0"},
    ONE_NODE | {"env": {"VLLM_SERVER_DEV_MODE": "1"}},
])  # fmt: skip
def test_a_published_row_holds(row: dict[str, Any]) -> None:
    assert _published(row) == []


@pytest.mark.parametrize("row", [
    _more(ONE_NODE, "--zzz-not-a-flag", "1"),
    _more(ONE_NODE, "--dtype", "nonsense"),
    _more(ONE_NODE, "--nnodes", "8", "--node-rank", "7"),
    _more(ONE_NODE | {"engine_version": "nightly"}, "--zzz-not-a-flag", "1"),
    _more(BEYOND, "--zzz-not-a-flag", "1"),
    _more(OLD, *NEW_PARSER, "--zzz-not-a-flag", "1"),
    _more(OLD, "--reasoning-parser", "nonsense"),
    ONE_NODE | {"env": {"VLLM_HOST_IP": "10.0.0.1"}},
    TWO_NODES | {"roles": [LEADER, {"role": "worker", "argv": WORKER[:-1]}]},
    TWO_NODES | {"roles": [{"role": "head", "argv": [*HEAD, "--headless"]}]},
])  # fmt: skip
def test_a_changed_published_row_fails(row: dict[str, Any]) -> None:
    problems = _published(row)
    assert problems
    assert not any("Error: " in problem for problem in problems), problems


def test_a_command_line_that_servec_changes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the row are not read by what writes servec's."""
    monkeypatch.setattr(Reader, "_put", lambda *_: None)
    assert 'server: rank 0: argv lacks ["--max-model-len", "8192"]' in _published(ONE_NODE)


SHORT: dict[str, Any] = {
    "id": "one",
    "engine": "sglang",
    "version": "0.5.23",
    "argv": ["python3", "-m", "sglang.launch_server", "--model-path", "org/model", "--tp", "2"],
    "accepted": True,
    "message": "",
    "abbreviated": ["--tp"],
    "deprecated": [],
}
UNKNOWN = SHORT | {
    "argv": [*SHORT["argv"], "--mamba-scheduler-strategy", "no_buffer"],
    "accepted": False,
    "message": "unrecognized arguments: --mamba-scheduler-strategy no_buffer",
}
CHOICE = SHORT | {
    "argv": [*SHORT["argv"], "--reasoning-parser", "nano_v3"],
    "accepted": False,
    "message": "argument --reasoning-parser: invalid choice: 'nano_v3' (choose from 'qwen3')",
}
OUTDATED = SHORT | {
    "argv": [*SHORT["argv"], "--enable-dp-attention"],
    "deprecated": ["--enable-dp-attention"],
}


def _verdict(row: dict[str, Any]) -> list[str]:
    return judge(argv_verdicts, [row]).failed.get("one", [])


@pytest.mark.parametrize("row", [SHORT, UNKNOWN, CHOICE, OUTDATED])
def test_a_verdict_of_a_parser_holds(row: dict[str, Any]) -> None:
    assert _verdict(row) == []


@pytest.mark.parametrize("row", [
    SHORT | {"accepted": False, "message": UNKNOWN["message"]},
    SHORT | {"abbreviated": []},
    SHORT | {"abbreviated": ["--dp"]},
    SHORT | {"abbreviated": ["--tp", "--dp"]},
    SHORT | {"deprecated": ["--model-path"]},
    OUTDATED | {"deprecated": ["--enable-dp-attention", "--tp"]},
    UNKNOWN | {"accepted": True, "message": ""},
    UNKNOWN | {"message": "unrecognized arguments: --other-strategy"},
    CHOICE | {"message": CHOICE["message"].replace("nano_v3", "nano_v4")},
    CHOICE | {"message": "argument --other: is wrong (choose from --reasoning-parser)"},
])  # fmt: skip
def test_a_changed_verdict_of_a_parser_fails(row: dict[str, Any]) -> None:
    problems = _verdict(row)
    assert problems
    assert not any("Error: " in problem for problem in problems), problems


PROFILE: dict[str, Any] = {
    "name": "p", "engine": "vllm", "model_path": "/models/m", "tp": 2, "pp": 1, "nodes": 1,
    "args": [], "env": {},
}  # fmt: skip
HEAD_OF_FILE = {"aliases": {}, "defaults": {}}


def _shard(group: str, given: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    row = {"id": "one", "group": group, "head": HEAD_OF_FILE, "input": given, "expect": expect}
    return judge(shard_launch, [row]).failed.get("one", [])


ONE_HOST: dict[str, Any] = {"target": "all", "profile": PROFILE}
WITH_KEY = ONE_HOST | {"shard": {"api_key": "sk-test"}}
WORKER_POD = {
    "profile": PROFILE | {"tp": 8, "nodes": 2, "pp": 2},
    "shard": {"rank": 1},
    "k8s": {"rdma_resource": "rdma/ib"},
}
WORDS = {"argv": ["/bin/x", "--tokenizer-revision", ""], "env": {"X": "$(Y) %i"}}
SHARDS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("validation", {"profile": PROFILE | {"engine": "tgi"}},
     {"error": {"kind": "unknown_engine", "contains": ["tgi", "trtllm"]}},
     {"error": {"kind": "unknown_engine", "contains": ["did you mean"]}}),
    ("artifact", ONE_HOST, {"pod": {"gpu_limit": 2}}, {"pod": {"gpu_limit": 4}}),
    ("artifact", ONE_HOST, {"pod": {"startup_probe": {"path": "/health", "min_total_seconds": 9}}},
     {"pod": {"startup_probe": {"path": "/health", "min_total_seconds": 99999}}}),
    ("artifact", ONE_HOST, {"pod": {"probe_timeout_seconds_min": 5}},
     {"pod": {"probe_timeout_seconds_min": 60}}),
    ("artifact", ONE_HOST, {"pod": {"enableServiceLinks": False}}, {"pod": {"hostNetwork": True}}),
    ("artifact", WORKER_POD, {"pod": {"http_probes": False}}, {"pod": {"http_probes": True}}),
    ("artifact", WORKER_POD, {"pod": {"capabilities_add": ["IPC_LOCK"]}},
     {"pod": {"capabilities_add": ["SYS_ADMIN"]}}),
    ("artifact", ONE_HOST, {"service_name_not": "vllm"}, {"service_name_not": "p"}),
    ("artifact", ONE_HOST, {"pid1_is_server": True}, {"pid1_is_server": False}),
    ("artifact", WITH_KEY, {"env_from_secret": "VLLM_API_KEY"}, {"env_from_secret": "OTHER_KEY"}),
    ("artifact", WITH_KEY, {"secret_not_in_text": "sk-test"}, {"secret_not_in_text": "/models/m"}),
    ("artifact", ONE_HOST, {"unit": {"KillMode": {"any_of": ["mixed", "<unset>"]}}},
     {"unit": {"KillMode_not": ["mixed"]}}),
    ("artifact", ONE_HOST, {"unit": {"ExecStart_absolute": True}},
     {"unit": {"LimitMEMLOCK": "infinity"}}),
    ("artifact", ONE_HOST, {"unit": {"any_of": ["EnvironmentFile"]}},
     {"unit": {"any_of": ["SetCredential"]}}),
    ("artifact", ONE_HOST, {"unit": {"TimeoutStartSec": {"any_of": ["<not needed: Type=exec>"]}}},
     {"unit": {"TimeoutStartSec": {"any_of": ["infinity"]}}}),
    ("artifact", ONE_HOST, {"argv_text_contains": ["/models/m"]}, {"argv_text_contains": ["/m"]}),
    ("artifact", {"profile": PROFILE | {"env": {"VLLM_NONE": "1"}}}, {"diagnostic": "VLLM_NONE"},
     {"diagnostic": "VLLM_OTHER"}),
    ("quoting", WORDS, {"argv_received": WORDS["argv"]},
     {"argv_received": ["/bin/x", "--tokenizer-revision", "main"]}),
    ("quoting", WORDS, {"env_received": WORDS["env"]}, {"env_received": {"X": "$(Y) i"}}),
    ("quoting", WORDS | {"env": {"A B": "1"}}, {"error": {"kind": "invalid_env_name"}},
     {"error": {"kind": "unrepresentable"}}),
    ("quoting", WORDS, {"argv_received": WORDS["argv"]}, {"argv_arrives": WORDS["argv"]}),
]  # fmt: skip


@pytest.mark.parametrize(("group", "given", "true", "false"), SHARDS)
def test_a_shard_row_holds_and_a_changed_one_fails(
    group: str, given: dict[str, Any], true: dict[str, Any], false: dict[str, Any]
) -> None:
    assert _shard(group, given, true) == []
    problems = _shard(group, given, false)
    assert problems
    assert not any("Error: " in problem for problem in problems), problems


REPORTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {
            "kind": "flag-version",
            "version": "0.13.0",
            "config": {"argv": ["vllm", "serve", "m", "--task=embed"]},
        },
        {"argv": ["vllm", "serve", "m", "--runner=pooling"]},
    ),
    (
        {
            "kind": "quant-dtype",
            "version": "any with AWQ kernels fp16-only",
            "config": {"argv": ["--quantization", "awq", "--dtype", "bfloat16"]},
        },
        {"argv": ["--quantization", "awq", "--dtype", "half"]},
    ),
    (
        {"kind": "env-removed", "version": "0.26.0", "config": {"env": {"VLLM_USE_V1": "1"}}},
        {"env": {"VLLM_LOGGING_LEVEL": "INFO"}},
    ),
    (
        {"kind": "k8s-env", "version": "0.22.1", "config": {"env": "VLLM_*_SERVICE_HOST"}},
        {"env": "none"},
    ),
    (
        {
            "kind": "probe-port",
            "version": "0.6.7",
            "config": {"decode": "--port $PORT (8200)", "probe": 8000},
        },
        {"decode": "--port $PORT (8200)", "probe": 8200},
    ),
    (
        {
            "kind": "probe-timeout",
            "version": "any",
            "config": {"livenessProbe": {"initialDelaySeconds": 120}},
        },
        {"livenessProbe": {"periodSeconds": 30}},
    ),
    (
        {
            "kind": "shm",
            "version": "any",
            "config": {"requestGPU": 2, "extraArgs": ["--tensor-parallel-size", "2"]},
        },
        {"requestGPU": 1, "extraArgs": ["--tensor-parallel-size", "1"]},
    ),
    (
        {"kind": "systemd", "version": "<= 0.33.0", "config": {"unit": "Type=notify"}},
        {"unit": "Type=exec"},
    ),
    (
        {"kind": "merge", "version": "any", "config": {"baseRefs": "vllm", "spec": "own"}},
        {"spec": "own"},
    ),
    (
        {"kind": "eval", "version": "0.4.x", "config": {"client": "logprobs=10"}},
        {"client": "logprobs=30"},
    ),
    (
        {"kind": "parser", "version": "any", "config": {"method": "guess the parser"}},
        {"method": "guess the choice"},
    ),
]


@pytest.mark.parametrize(("row", "harmless"), REPORTS, ids=lambda each: each.get("kind", ""))
def test_a_report_with_another_configuration_fails(
    row: dict[str, Any], harmless: dict[str, Any]
) -> None:
    whole = {"id": "one", "engine": "vllm", **row}
    assert judge(bug_reports, [whole]).failed == {}
    assert judge(bug_reports, [whole | {"config": harmless}]).failed
    assert judge(bug_reports, [whole | {"config": {}}]).failed
