"""Tables of what engines can do: versions from images, capabilities, dimensions, manifests.

Rows about an engine's contract are computed from the manifests that stand beside the cases, in
`../facts/engine_manifests.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import servec
import yaml
from packaging.version import Version
from servec.api import read_manifest, shipped_catalog
from servec.ir.launch import Launch

from tests.field.manifest_changes import CONTRACT, changed
from tests.field.project import compile_models, differ, errors, same_mapping
from tests.field.rows import Row
from tests.wrapper import start, write_wrapper

EXEMPT: dict[str, str] = {}


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
    known, reasons = list(manifest["capability_map"]), dict(found.skipped)
    for item in row["skipped"]:
        if not isinstance(item, str):
            wanted, told = (_companions(text, known) for text in (item[1], reasons.get(item[0])))
            yield from differ(f"what {item[0]} lacks", wanted, told)


def _names(skipped: list[Any]) -> list[str]:
    return [item if isinstance(item, str) else item[0] for item in skipped]


def _companions(reason: Any, known: list[str]) -> list[str]:
    """The capabilities that a reason names, whatever its wording."""
    words = re.findall(r"\w+", json.dumps(reason))
    return [name for name in known if name in words]


def _lora_companion_defaults(row: Row) -> Iterator[str]:
    suffixes = {
        name: entry[0].lower()
        for name, entry in _manifests(_facts(row))[row["engine"]]["capability_map"].items()
    }
    user: dict[str, Any] = {suffixes[key]: _number(value) for key, value in row["user"].items()}
    for key, value in user.items():  # a list, as a variable of the environment has it
        user[key] = value.split(",") if isinstance(value, str) and "," in value else value
    adapters = [{"name": "a", "path": "org/a"}]
    result = _compiled(row["engine"], adapters=adapters, overrides=user)
    yield from errors(result)
    for name, value in row["filled"].items():
        found = next(
            (item.value for item in result.plans[0].settings if item.knob == suffixes[name]), ""
        )
        text = ",".join(map(str, found if isinstance(found, list) else [found]))
        yield from differ(name, value, text)
    names = {suffix: name for name, suffix in suffixes.items()}
    for setting in result.plans[0].settings:
        name = names.get(setting.knob, "")
        is_said = name in {**row["filled"], **row["user"], "lora_enable": ""}
        if setting.winner.origin.rule == "`adapters:`" and name and not is_said:
            yield f"{name} is filled in with {json.dumps(setting.value)}, and the row has none"


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
        yield from differ("arguments", row["args"], _said_of_drafts(result.launches[0]))


def _said_of_drafts(launch: Launch) -> list[str]:
    """Every word and variable of a launch that comes from `speculative:`."""
    rule = "`speculative:`"
    groups = [
        item.words for item in launch.command if item.setting and item.origin.rule.startswith(rule)
    ]
    told = [f"{item.name}={item.value}" for item in launch.env if item.origin.rule == rule]
    return [word for words in groups for word in words] + told


OPTIONS_FLAGS = ("--config", "--extra_llm_api_options", "--extra_options")
"""Names of one option."""


def _options(row: Row, result: servec.Result) -> Iterator[str]:
    """The file of options, as the artifact has it, and the flag that names it."""
    launch = result.launches[0]
    flags = [item for item in launch.command if item.file]
    if len(flags) != 1 or len(launch.files) != 1:
        yield f"{len(flags)} options name files, of {len(launch.files)}"
        return
    flag, name = flags[0].words[0], launch.files[0].name
    if row["arg"] not in OPTIONS_FLAGS or flag not in OPTIONS_FLAGS:
        yield from differ("flag", row["arg"], flag)
    yield from differ("file", name, flags[0].words[-1].rpartition("/")[2])
    yield from differ("arguments", list(flags[0].words), _said_of_drafts(launch))
    found = yaml.safe_load(result.artifacts[f"m/bash/{name}"])
    yield from same_mapping("options", row["yaml"], found)


def _env_to_flag(row: Row) -> Iterator[str]:
    """The wrapper of a small model, run in bash."""
    result = _compiled(row["engine"])
    yield from errors(result)
    with TemporaryDirectory() as folder:
        wrapper = write_wrapper(result, Path(folder))
        without, found = start(wrapper), start(wrapper, **row["env"])
    yield from differ("exit code", row.get("exit", 0), found.code)
    if "args" in row and not row.get("exit"):
        wanted = _places(without.argv, row["args"])
        if found.argv not in wanted:
            yield from differ("arguments", wanted[0], found.argv)
    for value in row["env"].values() if not row.get("args") else ():
        if value in found.stderr:
            yield f"the value of a variable that is no flag is told: {found.stderr}"


def _places(words: list[str], own: list[str]) -> list[list[str]]:
    """The command with these words at its end, or in the place of the same flag. Where the flag
    stands already, it must not stand twice."""
    if not own or own[0] not in words:
        return [[*words, *own]]
    first = words.index(own[0])
    rest = words[first + 1 :]
    until = next((n for n, word in enumerate(rest) if word.startswith("--")), len(rest))
    before, after = words[:first], rest[until:]
    return [[*before, *own, *after], [*before, *after, *own]]


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
    named = shipped_catalog().machine_images.get(row["ami"])
    if named is not None:
        yield from differ("driver", row["ami_driver"], named.driver.value)
        extra = {"machine_image": row["ami"]}
        yield from _starts(row["ok"], row["engine"], row["image"], "1.0", {}, extra)
    yield from _starts(row["ok"], row["engine"], row["image"], row["ami_driver"], {})


def _starts(
    wanted: bool,
    engine: str,
    image: str,
    driver: str,
    files: dict[str, str],
    extra: dict[str, str] | None = None,
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
        {"m": model | (extra or {})},
        files={"catalogs/instances.yaml": f"test.machine: {machine}\n", **files},
    )
    yield from errors(result)
    found = all(finding.code.number != "SV0613" for finding in result.findings)
    yield from differ("starts", wanted, found)


def _schema_reject(row: Row) -> Iterator[str]:
    manifests = changed(row["change"])
    if not manifests:
        yield f"the runner knows no such change: {row['change']}"
    for manifest in manifests or ():
        try:
            read_manifest(manifest)
            valid = True
        except servec.InvalidManifest:
            valid = False
        yield from differ(f"validity of {manifest}", row["valid"], valid)


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
    model: dict[str, Any] = {
        "checkpoint": "org/model",
        "engine": engine,
        "hardware": "H100-80G",
        "recipe": "none",
        "topology": {"tp": 1},
    }
    name = shipped_catalog().aliases.get(engine, engine)
    if name in VERSIONS:
        model["engine_version"] = VERSIONS[name]
    else:
        images = shipped_catalog().images.by_reference.items()
        found = [key for key, image in images if image.engine.value == name]
        model |= {"image": found[0]} if found else {}
    found_engine = shipped_catalog().engine(engine)
    if found_engine and found_engine.serve.environment_only and not found_engine.serve.calls:
        model["targets"] = ["kubernetes"]
    return compile_models({"m": model | keys})


VERSIONS = {"vllm": "0.29.0", "sglang": "0.5.15", "tensorrt-llm": "1.2.0"}
"""The newest that the catalogues of released packages have; of others an image is taken."""


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
