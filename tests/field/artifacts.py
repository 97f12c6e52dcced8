"""Rows of artifacts and of quoting: a profile as a small project, compiled and read back.

{"target": "systemd", "profile": {"engine": "vllm", "tp": 2}, ...}, {"unit": {"KillMode": "mixed"}}
  -> what `p/systemd/p.service` has otherwise

Words that must arrive unharmed are parameters of a model: the wrapper is run by bash with a program
that tells what it got, and the pod's words are expanded as Kubernetes does.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import servec
import yaml
from servec.diag.findings import Finding

from tests.field.published import chunks
from tests.field.rows import Row
from tests.kubernetes_reader import expand_as_kubernetes
from tests.systemd_reader import read_command
from tests.wrapper import start, write_wrapper

Tree = dict[str, Any]
IMAGES = {"vllm": "vllm/vllm-openai:v0.33.0", "sglang": "lmsysorg/sglang:v0.5.23"}
UNKNOWN = "registry.example/vllm:nightly"
"""An image whose version is not known, which may have any flag."""
SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")


def check(row: Row, kind_of: Callable[[Finding], str | None]) -> list[str]:
    """What differs from each allowed outcome: of the one that is nearest. `kind_of` gives the rows'
    word for an error."""
    result = _compiled(row["input"])
    expect = row["expect"]
    tried = [
        _differences(choice, row, result, kind_of) for choice in expect.get("any_of", [expect])
    ]
    return min(tried, key=len)


def _differences(
    expect: Row, row: Row, result: servec.Result, kind_of: Callable[[Finding], str | None]
) -> list[str]:
    wrong = [item for item in result.findings if item.severity.word == "error"]
    if "error" in expect:
        kind = expect["error"]["kind"]
        kinds = [kind_of(item) for item in wrong]
        return [] if kind in kinds else [f"{kind} is wanted, found {kinds}"]
    if wrong:
        return [f"refused: {item.code.number} {item.message}" for item in wrong]
    found = []
    for key, wanted in expect.items():
        read = READERS.get(key)
        found += read(wanted, row, result) if read else [f"the runner does not read `{key}`"]
    return found


def _compiled(given: Row, **more: Any) -> servec.Result:
    profile = given.get("profile") or _profile_of(given["argv"], given["env"])
    shard, site = given.get("shard") or {}, given.get("k8s") or {}
    overrides = {_knob(name): value for name, value in _flags(profile["args"])}
    nodes = profile["nodes"]
    model = {
        "checkpoint": profile["model_path"],
        "engine": profile["engine"],
        "image": profile.get("image") or IMAGES[profile["engine"]],
        "hardware": "H100-80G",
        "recipe": "none",
        "nodes": nodes,
        "gpus": profile["tp"] * profile["pp"] // nodes,
        "topology": {"tp": profile["tp"], "pp": profile["pp"]},
        "overrides": {**overrides, **more},
        "env": profile["env"],
    }
    kubernetes: Tree = {}
    if site.get("rdma_resource"):
        kubernetes["rdma"] = {"resource": site["rdma_resource"]}
    if shard.get("api_key"):
        kubernetes["api_key"] = {"secret": "inference", "key": "token"}
    project = {
        "targets": given.get("targets") or ["bash", "systemd", "kubernetes"],
        "systemd": {"api_key": "/etc/servec/api-key"} if shard.get("api_key") else {},
        "kubernetes": kubernetes,
    }
    name = site.get("service_name", "p")
    tree = {
        "servec.yaml": json.dumps(project),
        "specs/case.json": json.dumps({"models": {name: model}}),
    }
    return servec.compile(tree=tree)


def _profile_of(argv: list[str], env: dict[str, str]) -> Row:
    one = {"engine": "vllm", "model_path": "/models/m", "tp": 1, "pp": 1, "nodes": 1}
    return {**one, "image": UNKNOWN, "args": argv[1:], "env": env}


def _flags(words: list[str]) -> list[tuple[str, str]]:
    found = []
    for chunk in chunks(words):
        name, equals, tied = chunk[0].partition("=")
        found.append((name, tied if equals else " ".join(chunk[1:])))
    return found


def _knob(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


# --- Kubernetes ----------------------------------------------------------------------------------


def _objects(result: servec.Result) -> list[Tree]:
    files = result.artifacts.items()
    return [yaml.safe_load(text) for path, text in files if "/kubernetes/" in path]


def _spec(row: Row, result: servec.Result) -> Tree:
    """The pod of the row's rank."""
    rank = (row["input"].get("shard") or {}).get("rank", 0)
    for tree in _objects(result):
        if tree["kind"] == "Deployment":
            return dict(tree["spec"]["template"]["spec"])
        if tree["kind"] == "LeaderWorkerSet":
            pods = tree["spec"]["leaderWorkerTemplate"]
            return dict(pods["workerTemplate" if rank else "leaderTemplate"]["spec"])
    raise AssertionError("no pods")


def _pod(wanted: Row, row: Row, result: servec.Result) -> list[str]:
    spec = _spec(row, result)
    (server,) = spec["containers"]
    limits = server["resources"]["limits"]
    probes = {name: server[name] for name in server if name.endswith("Probe")}
    startup = probes.get("startupProbe", {})
    seconds = startup.get("periodSeconds", 0) * startup.get("failureThreshold", 0)
    resource = (row["input"].get("k8s") or {}).get("rdma_resource")
    found = []
    for key, value in wanted.items():
        match key:
            case "capabilities_add":
                holds = set(value) <= set(server["securityContext"]["capabilities"].get("add", ()))
            case "rdma":
                holds = "resource_limit" in value["any_of"] and resource in limits
            case "gpu_limit":
                holds = limits.get("nvidia.com/gpu") == str(value)
            case "startup_probe":
                path = startup.get("httpGet", {}).get("path")
                holds = path == value["path"] and seconds >= value["min_total_seconds"]
            case "liveness_initial_delay_is_not_the_only_guard":
                holds = bool(startup) is value
            case "http_probes":
                holds = any("httpGet" in probe for probe in probes.values()) is value
            case "probe_timeout_seconds_min":
                timeouts = [probe.get("timeoutSeconds", 1) for probe in probes.values()]
                holds = bool(timeouts) and min(timeouts) >= value
            case "enableServiceLinks" | "hostNetwork":
                holds = spec.get(key) is value
            case _:
                holds = False
        found += [] if holds else [f"pod: {key} is not {json.dumps(value)}"]
    return found


def _env_from_secret(name: str, row: Row, result: servec.Result) -> list[str]:
    (server,) = _spec(row, result)["containers"]
    names = [
        item["name"]
        for item in server.get("env", ())
        if "secretKeyRef" in item.get("valueFrom", {})
    ]
    return [] if name in names else [f"{name} is of no Secret, {names} are"]


def _pid1(wanted: bool, row: Row, result: servec.Result) -> list[str]:
    (server,) = _spec(row, result)["containers"]
    program = server["command"][0]
    return [] if (program not in SHELLS) is wanted else [f"the pod runs {program}"]


def _argv_text(wanted: list[str], row: Row, result: servec.Result) -> list[str]:
    (server,) = _spec(row, result)["containers"]
    return [f"no word is {word}" for word in wanted if word not in server["args"]]


def _other_service(name: str, row: Row, result: servec.Result) -> list[str]:
    names = [tree["metadata"]["name"] for tree in _objects(result) if tree["kind"] == "Service"]
    return [f"a Service is called {name}"] if name in names else []


# --- systemd -------------------------------------------------------------------------------------


def _unit(wanted: Row, row: Row, result: servec.Result) -> list[str]:
    """What each unit of the model has otherwise."""
    found = []
    for path, text in result.artifacts.items():
        if not path.endswith(".service"):
            continue
        lines = [line.partition("=") for line in text.decode().splitlines()]
        unit = {name: value for name, equals, value in lines if equals}
        for key, value in wanted.items():
            found += [] if _has(unit, key, value) else [f"{path}: {key} is not {value}"]
    return found


def _has(unit: dict[str, str], key: str, wanted: Any) -> bool:
    match key, wanted:
        case "any_of", [*names]:
            return any(name in unit for name in names)
        case "ExecStart_absolute", _:
            return read_command(unit["ExecStart"])[0].startswith("/") is wanted
        case "TimeoutStartSec", {"any_of": [*choices]} if key not in unit:
            is_not_needed = unit.get("Type") in ("exec", "simple") and "ExecStartPost" not in unit
            return is_not_needed and any(word.startswith("<not needed") for word in choices)
        case _, {"any_of": [*choices]}:
            return unit.get(key, "<unset>") in choices
        case _, [*refused] if key.endswith("_not"):
            return unit.get(key.removesuffix("_not")) not in refused
    return unit.get(key) == wanted


# --- every target --------------------------------------------------------------------------------


def _no_secret(secret: str, row: Row, result: servec.Result) -> list[str]:
    """The key is in no file, and as a parameter it is refused."""
    found = [path for path, text in result.artifacts.items() if secret.encode() in text]
    given = _compiled(row["input"], api_key=secret)
    return [f"the key is in {path}" for path in found] + ["the key is taken"] * given.ok


def _diagnostic(word: str, row: Row, result: servec.Result) -> list[str]:
    return [] if any(word in item.message for item in result.findings) else [f"none names {word}"]


def _argv_received(wanted: list[str], row: Row, result: servec.Result) -> list[str]:
    return [
        f"{target}: {name} is not {value!r} of {words}"
        for target, (words, _) in _received(row, result).items()
        for name, value in _flags(wanted[1:])
        if not _follows(words, name, value)
    ]


def _follows(words: list[str], name: str, value: str) -> bool:
    return f"{name}={value}" in words or (name, value) in pairwise(words)


def _env_received(wanted: dict[str, str], row: Row, result: servec.Result) -> list[str]:
    return [
        f"{target}: {name} is {env.get(name)!r}"
        for target, (_, env) in _received(row, result).items()
        for name, value in wanted.items()
        if env.get(name) != value
    ]


def _received(row: Row, result: servec.Result) -> dict[str, tuple[list[str], dict[str, str]]]:
    """The words and variables that the program gets; a unit runs the wrapper."""
    (server,) = _spec(row, result)["containers"]
    words = [expand_as_kubernetes(word, {}) for word in server["args"]]
    pairs = {item["name"]: item.get("value", "") for item in server.get("env", ())}
    env = {name: expand_as_kubernetes(value, {}) for name, value in pairs.items()}
    with tempfile.TemporaryDirectory() as folder:
        started = start(write_wrapper(result, Path(folder), "p"))
    return {"kubernetes": (words, env), "bash": (started.argv, started.env)}


READERS: dict[str, Callable[[Any, Row, servec.Result], list[str]]] = {
    "pod": _pod,
    "env_from_secret": _env_from_secret,
    "pid1_is_server": _pid1,
    "argv_text_contains": _argv_text,
    "service_name_not": _other_service,
    "unit": _unit,
    "secret_not_in_text": _no_secret,
    "diagnostic": _diagnostic,
    "argv_received": _argv_received,
    "env_received": _env_received,
}
