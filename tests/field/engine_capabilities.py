"""Tables of what engines can do: versions from images, capabilities, dimensions, manifests.

Rows about an engine's contract are computed from the manifests that stand beside the cases, in
`../facts/engine_manifests.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import servec
import yaml
from packaging.version import Version
from servec.api import read_manifest, shipped_catalog

from tests.field.project import compile_models, differ, errors
from tests.field.rows import Row
from tests.wrapper import start, write_wrapper

EXEMPT: dict[str, str] = {}
CONTRACT = {
    "engine": "acme",
    "env_var_prefix": "ACME_",
    "speculative_decoding": True,
    "supported_algorithms": ["ngram"],
    "algorithm_map": {"ngram": "NGRAM"},
    "hot_reload": False,
}


def check(row: Row) -> list[str]:
    if row["table"] not in CHECKS:
        return [f"the runner knows no such table: {row['table']}"]
    return list(CHECKS[row["table"]](row))


def _engine_version(row: Row) -> Iterator[str]:
    found = servec.engine_version(row["engine"], row["base_image"]).version
    wanted = row["version"]
    if found != (Version(wanted) if wanted else None):
        yield f"version: expected {wanted}, found {found}"


def _effective_algorithms(row: Row) -> Iterator[str]:
    found = servec.capabilities(
        row["engine"], version=row["version"], manifest=_manifest(row, row["engine"])
    )
    yield from differ("algorithms", row["algorithms"], list(found.supported_algorithms))
    yield from differ("at or above the lowest", row["at_or_above_min"], found.meets_min_version)


def _algorithm_engine_name(row: Row) -> Iterator[str]:
    found = servec.capabilities(row["engine"], manifest=_manifest(row, row["engine"]))
    yield from differ("name", row["engine_name"], found.engine_name(row["algorithm"]))


def _resolve_capabilities(row: Row) -> Iterator[str]:
    if "capability_map" in row:
        manifest = CONTRACT | {
            "engine": row["engine"],
            "env_var_prefix": row["prefix"],
            "capability_map": _capability_map(row["capability_map"]),
        }
    else:
        manifest = _manifest(row, row["engine"])
    found = servec.capabilities(row["engine"], manifest=manifest).variables(row["values"])
    yield from differ("resolved", row["resolved"], [list(pair) for pair in found.set])
    yield from differ("skipped", _names(row["skipped"]), [name for name, _ in found.skipped])


def _names(skipped: list[Any]) -> list[str]:
    return [item if isinstance(item, str) else item[0] for item in skipped]


def _lora_companion_defaults(row: Row) -> Iterator[str]:
    suffixes = {
        name: entry[0].lower()
        for name, entry in _manifests(_facts(row))[row["engine"]]["capability_map"].items()
    }
    user = {suffixes[name]: _number(value) for name, value in row["user"].items()}
    adapters = [{"name": "a", "path": "org/a"}]
    result = _compiled(row["engine"], adapters=adapters, overrides=user)
    yield from errors(result)
    for name, value in row["filled"].items():
        found = result.plans[0].setting(suffixes[name])
        text = ",".join(map(str, found.value if isinstance(found.value, list) else [found.value]))
        yield from differ(name, value, text)


def _dimension_key(row: Row) -> Iterator[str]:
    found = servec.capabilities(row["engine"], manifest=_manifest(row, row["engine"]))
    yield from differ("key", row["key"], found.dimension_variable(row["dimension"], row["target"]))


def _engine_features(row: Row) -> Iterator[str]:
    found = servec.capabilities(row["engine"], manifest=_manifest(row, row["engine"]))
    variables, problems = found.features(row["request"])
    yield from differ("environment", row["env"], dict(variables.set))
    yield from differ("errors", row["errors"], len(problems))


def _gpu_count(row: Row) -> Iterator[str]:
    found = shipped_catalog().instances.get(row["instance"])
    yield from differ("GPUs", row["gpus"], found.gpus.value if found else None)


def _speculative(row: Row) -> Iterator[str]:
    words = {"model": "model", "tokens": "num_tokens", "steps": "num_steps", "topk": "topk"}
    said = {word: _number(row[key]) for key, word in words.items() if row.get(key)}
    algorithm = row["algorithm"]
    contract = shipped_catalog().contract(row["engine"])
    if algorithm not in {item.value for item in contract.supported_algorithms}:
        own = {item.value.value: item.key.value for item in reversed(contract.algorithm_map)}
        algorithm = own.get(algorithm, algorithm)
    asked = {"speculative": {"algorithm": algorithm, **said}} if algorithm else {}
    result = _compiled(row["engine"], **asked)
    if row.get("exit"):
        if not errors(result):
            yield "no error, and the row has one"
    elif errors(result):
        yield from errors(result)
    elif "yaml" in row:
        yield from _options(row, result)
    else:
        words = [word for item in result.launches[0].command for word in item.words]
        own = [word for word in words if "speculative" in word]
        start = words.index(own[0]) if own else len(words)
        yield from differ("arguments", row["args"], words[start : start + len(row["args"]) or None])


def _options(row: Row, result: servec.Result) -> Iterator[str]:
    """The file of options, as the artifact has it, and the flag that names it."""
    launch = result.launches[0]
    flag = next(item.words for item in launch.command if item.file)
    yield from differ("flag", row["arg"], flag[0])
    found = yaml.safe_load(result.artifacts[f"m/bash/{launch.files[0].name}"])
    yield from differ("options", row["yaml"], found)


def _env_to_flag(row: Row) -> Iterator[str]:
    """The wrapper of a small model, run in bash."""
    result = _compiled(row["engine"])
    yield from errors(result)
    with TemporaryDirectory() as folder:
        wrapper = write_wrapper(result, Path(folder))
        without, found = start(wrapper), start(wrapper, **row["env"])
    yield from differ("arguments", [*without.argv, *row["args"]], found.argv)
    for value in row["env"].values() if not row["args"] else ():
        if value in found.stderr:
            yield f"the value of a variable that is no flag is told: {found.stderr}"


def _dspark_defaults(row: Row) -> Iterator[str]:
    keys = {"draft": "draft_sample_method", "rejection": "rejection_sample_method"}
    said = {keys[key]: value for key, value in row["given"].items()}
    speculative = {"algorithm": row["algorithm"], "model": "org/draft", **said}
    result = _compiled("vllm", speculative=speculative)
    yield from errors(result)
    setting = result.plans[0].setting("speculative_config") if result.ok else None
    found = setting.value if setting else {}
    for key in keys.values():
        yield from differ(key, row[key], found.get(key, ""))


def _driver_at_least(row: Row) -> Iterator[str]:
    image = f'{{engine: vllm, version: "0.29.0", driver: "{row["need"]}"}}'
    files = {"catalogs/images.yaml": f"registry.example/vllm:v0.29.0: {image}\n"}
    yield from _starts(row["ok"], "vllm", "registry.example/vllm:v0.29.0", row["have"], files)


def _image_default_ami_driver(row: Row) -> Iterator[str]:
    found = shipped_catalog().images.find(row["engine"], row["image"])
    floor = found[0].driver.value if found and found[0].driver else None
    yield from differ("floor", row["image_min_driver"], floor)
    yield from _starts(row["ok"], row["engine"], row["image"], row["ami_driver"], {})


def _starts(
    wanted: bool, engine: str, image: str, driver: str, files: dict[str, str]
) -> Iterator[str]:
    """Whether the image is said to start on a machine with a driver."""
    machine = f'{{accelerator: H100-80G, gpus: 1, driver: "{driver}"}}'
    model = {
        "checkpoint": "org/model",
        "engine": engine,
        "image": image,
        "hardware": "test.machine",
        "recipe": "none",
        "topology": {"tp": 1},
    }
    result = compile_models(
        {"m": model}, files={"catalogs/instances.yaml": f"test.machine: {machine}\n", **files}
    )
    yield from errors(result)
    found = all(finding.code.number != "SV0613" for finding in result.findings)
    yield from differ("starts", wanted, found)


def _schema_reject(row: Row) -> Iterator[str]:
    for form, changed in CHANGES.items():
        if row["change"].startswith(form):
            for manifest in changed():
                try:
                    read_manifest(manifest)
                    valid = True
                except servec.InvalidManifest:
                    valid = False
                yield from differ(f"validity of {manifest}", row["valid"], valid)
            return
    yield f"the runner knows no such change: {row['change']}"


def _with(**keys: Any) -> dict[str, Any]:
    return {**CONTRACT, **keys}


CHANGES = {
    "drop any one of": lambda: [
        {key: value for key, value in CONTRACT.items() if key != dropped} for dropped in CONTRACT
    ],
    "speculative_decoding or hot_reload as": lambda: [
        _with(**{key: value})
        for key in ("speculative_decoding", "hot_reload")
        for value in ("true", 1, "yes", {})
    ],
    "unknown top-level key": lambda: [_with(colour="red")],
    "supported_algorithms [] with speculative_decoding false": lambda: [
        _with(speculative_decoding=False, supported_algorithms=[], algorithm_map={})
    ],
    "duplicate algorithm": lambda: [_with(supported_algorithms=["ngram", "ngram"])],
    "since 'v0.8.0'": lambda: [
        _with(version_features=[{"since": since, "adds": {"supported_algorithms": ["ngram"]}}])
        for since in ("v0.8.0", "0.8.0rc1")
    ],
    "algorithm_map key outside": lambda: [
        _with(algorithm_map={"ngram": "NGRAM", "mtp": "MTP"}),
        _with(algorithm_map={}),
    ],
}
CHECKS = {
    "engine_version": _engine_version,
    "effective_algorithms": _effective_algorithms,
    "algorithm_engine_name": _algorithm_engine_name,
    "resolve_capabilities": _resolve_capabilities,
    "lora_companion_defaults": _lora_companion_defaults,
    "dimension_key": _dimension_key,
    "engine_features": _engine_features,
    "gpu_count": _gpu_count,
    "env_to_flag": _env_to_flag,
    "speculative": _speculative,
    "dspark_defaults": _dspark_defaults,
    "schema_reject": _schema_reject,
    "driver_at_least": _driver_at_least,
    "image_default_ami_driver": _image_default_ami_driver,
}


def _compiled(engine: str, **keys: Any) -> servec.Result:
    versions = {"vllm": "0.29.0", "sglang": "0.5.15", "tensorrt-llm": "1.2.0"}
    model: dict[str, Any] = {
        "checkpoint": "org/model",
        "engine": engine,
        "engine_version": versions[engine],
        "hardware": "H100-80G",
        "recipe": "none",
        "topology": {"tp": 1},
    }
    return compile_models({"m": model | keys})


def _number(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _manifest(row: Row, engine: str) -> dict[str, Any]:
    """The contract that stands beside the cases, in the form that manifests have."""
    found = _manifests(_facts(row))[engine]
    manifest = {key: value for key, value in found.items() if value is not None}
    return manifest | {
        "engine": engine,
        "capability_map": _capability_map(found["capability_map"]),
        "version_features": [
            {"since": since, "adds": {"supported_algorithms": added}}
            for since, added in found["version_features"]
        ],
    }


def _facts(row: Row) -> Path:
    return Path(row["folder"]).parent / "facts" / "engine_manifests.json"


@cache
def _manifests(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))["engines"]


def _capability_map(table: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    keys = ("suffix", "type", "requires_any_of")
    return {name: dict(zip(keys, entry, strict=False)) for name, entry in table.items()}
