"""Public reports: what servec says of the configuration, or what its artifacts never have.

A row with flags or variables gets its finding at a release that the row speaks of; a row about
files is a property of what the row's configuration compiles to. Every verdict reads its row: where
the configuration is another one, so is the verdict.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import servec
import yaml
from servec.api import shipped_catalog
from servec.catalog.versions import release_order

from tests.field.rows import Row

EXEMPT = {
    "bug-06": "flags of a front end; servec has no catalogue of front ends",
    "bug-08": "flags of a router; servec has no catalogue of routers",
    "bug-09": "what an image's entry point does with arguments is not in the image catalogue",
    "bug-19": "needs the list of files in the model's repository, which servec does not read",
    "bug-34": "cache blocks of hybrid models belong to the estimate of memory",
    "bug-38": "backends by feature of the model and accelerator are not in the catalogue",
}
NUMBER = re.compile(r"\d+(?:\.\w+)+")
CODES = {
    "flag-version": {"SV0615", "SV0619"},
    "value-version": {"SV0614", "SV0618", "SV0621"},
    "contradiction": {"SV0614"},
    "quant-dtype": {"SV0614"},
    "quoting": {"SV0618"},
    "parallelism": {"SV0614"},
}
"""What a command line of each kind gets."""


def check(row: Row) -> list[str]:
    if "argv" in row["config"] and "env" in row["config"]:
        return _with_variables(row)
    judge = PROPERTIES.get(row["kind"], _flags)
    if row["kind"] == "parallelism" and "model" not in row["config"]:
        judge = _flags
    if row["kind"] == "contradiction" and "file" in row["config"]:
        judge = _flag_and_file
    return judge(row)


def releases(row: Row) -> list[str]:
    """The releases that a row speaks of: `0.13.0` that one, `0.7-0.8 V1` all of 0.7 and 0.8,
    `>=0.5.3` those from there on, and where it names none of the engine's, the newest."""
    released = shipped_catalog().released(row["engine"])
    if released is None:
        return []
    known, said = list(released.releases), str(row["version"])
    named = NUMBER.findall(said)
    if said.startswith(">=") and named:
        return [item for item in known if release_order(item) >= release_order(named[0])]
    found = [item for item in known if any(f"{item}.".startswith(f"{each}.") for each in named)]
    return found or known if said.startswith("any") else found or [known[-1]]


def _flags(row: Row) -> list[str]:
    """The finding of the row's kind, at one of its releases."""
    wanted = CODES[row["kind"]]
    argv = _argv(row["config"])
    found: set[str] = set()
    for version in releases(row):
        told = servec.check_argv(row["engine"], argv, version=version)
        found |= {item.code.number for item in told if item.severity.word != "note"}
    return [] if wanted & found else [f"expected {sorted(wanted)}, found {sorted(found)}"]


def _argv(config: dict[str, Any]) -> list[str]:
    """The row's words; a command in one text as a shell would split it."""
    words = list(config.get("argv") or shlex.split(config.get("command", "")))
    if "max_model_len" in config:
        words += ["--max-model-len", str(config["max_model_len"])]
    return words


def _project(model: dict[str, Any], files: dict[str, str] | None = None) -> servec.Result:
    spec = {
        "checkpoint": "org/model",
        "engine": "vllm",
        "hardware": "H100-80G",
        "recipe": "none",
        "topology": {"tp": 1},
    } | model
    site = "" if "image" in spec else "targets: [bash]\n"
    tree = {"servec.yaml": site, "specs/m.json": json.dumps({"models": {"m": spec}})}
    return servec.compile(tree=tree | (files or {}))


def _artifacts(model: dict[str, Any], files: dict[str, str] | None = None) -> dict[str, bytes]:
    result = _project({"image": "vllm/vllm-openai:v0.22.0"} | model, files)
    assert result.ok, [item.message for item in result.findings]
    return dict(result.artifacts)


def _pod(model: dict[str, Any]) -> dict[str, Any]:
    for path, content in _artifacts(model).items():
        if path.endswith("kubernetes/deployment.yaml"):
            pod: dict[str, Any] = yaml.safe_load(content)["spec"]["template"]["spec"]
            return pod
    raise AssertionError("no Deployment")


def _expect(wanted: set[str], result: servec.Result) -> list[str]:
    found = {item.code.number for item in result.findings}
    return [] if wanted <= found else [f"expected {sorted(wanted)}, found {sorted(found)}"]


def _unread_variable(row: Row) -> list[str]:
    version, env = releases(row)[0], row["config"]["env"]
    model = {"engine": row["engine"], "engine_version": version, "env": env}
    return _expect({"SV0620"}, _project(model))


def _with_variables(row: Row) -> list[str]:
    """`--port $NAME`, with the variable's value in the place of the name."""
    env, argv = row["config"]["env"], row["config"]["argv"]
    words = [env.get(word.lstrip("$"), word) if word.startswith("$") else word for word in argv]
    pairs = zip(words[::2], words[1::2], strict=True)
    overrides = {flag.lstrip("-").replace("-", "_"): json.loads(value) for flag, value in pairs}
    model = {"engine": row["engine"], "engine_version": releases(row)[0], "env": env}
    return _expect({"SV0614"}, _project(model | {"overrides": overrides}))


def _flag_and_file(row: Row) -> list[str]:
    """A share that a flag has one of, and a key of a file of options another."""
    flag, share = row["config"]["flag"].split()
    path, inside = row["config"]["file"].split(": ")
    group, key = path.split(".")
    overrides = {
        flag.lstrip("-").replace("-", "_"): float(share),
        "extra_llm_api_options": {group: {key: float(inside)}},
    }
    model = {"engine": row["engine"], "engine_version": "1.2.0", "overrides": overrides}
    return _expect({"SV0614"}, _project(model))


def _does_not_divide(row: Row) -> list[str]:
    """The row's model, cut as its flags say: heads and experts, or blocks of its quantization."""
    config = row["config"]
    argv = config["argv"]
    model = {
        "checkpoint": config.get("model") or config["recipe"],
        "engine": row["engine"],
        "engine_version": releases(row)[-1],
        "topology": {"tp": int(argv[argv.index("--tensor-parallel-size") + 1])},
        "overrides": {"enable_expert_parallel": "--enable-expert-parallel" in argv},
    }
    wanted = {"SV1010", "SV1012"} if row["kind"] == "parallelism" else {"SV1011"}
    return _expect(wanted, _project(model))


def _service_links(row: Row) -> list[str]:
    """No pod gets the variables that are made of a Service's name."""
    prefix = re.findall(r"([A-Z]+)_\*", row["config"]["env"])[0]
    result = {"env": {f"{prefix}_LOGGING_LEVEL": "INFO"}}
    found = _pod(result)
    names = [item["name"] for item in found["containers"][0]["env"]]
    is_read = f"{prefix}_LOGGING_LEVEL" in names
    return [] if found.get("enableServiceLinks") is False and is_read else [str(found)]


def _one_port(row: Row) -> list[str]:
    """The port that the server is told is the container's and that of every probe."""
    (port,) = map(int, re.findall(r"\((\d+)\)", row["config"]["decode"]))
    container = _pod({"overrides": {"port": port}})["containers"][0]
    ports = {item["name"]: item["containerPort"] for item in container["ports"]}
    probed = [container[key]["httpGet"]["port"] for key in container if key.endswith("Probe")]
    numbers = {ports.get(name, name) for name in probed} | set(ports.values())
    told = container["args"][container["args"].index("--port") + 1]
    other = row["config"]["probe"]
    return [] if numbers == {port} and told == str(port) != str(other) else [f"{numbers}, {told}"]


def _startup_probe(row: Row) -> list[str]:
    """The row's guess of a delay is not there, and a start may take longer than it."""
    ((probe, guess),) = row["config"].items()
    ((key, seconds),) = guess.items()
    container = _pod({})["containers"][0]
    start = container["startupProbe"]
    budget = start["periodSeconds"] * start["failureThreshold"]
    good = key not in container[probe] and budget > seconds
    return [] if good else [f"{probe} {container[probe]}, {budget} s to start"]


def _shared_memory(row: Row) -> list[str]:
    """The row's GPUs share memory that is larger than a container's own."""
    config = row["config"]
    words = dict(zip(config["extraArgs"][::2], config["extraArgs"][1::2], strict=True))
    knobs = {flag.lstrip("-").replace("-", "_"): int(value) for flag, value in words.items()}
    pod = _pod({"topology": {}, "gpus": config["requestGPU"], "overrides": knobs})
    mounts = {item["mountPath"]: item["name"] for item in pod["containers"][0]["volumeMounts"]}
    volumes = {item["name"]: item.get("emptyDir", {}) for item in pod["volumes"]}
    volume = volumes.get(mounts.get("/dev/shm", ""), {})
    gpus = pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    good = volume.get("medium") == "Memory" and gpus == str(config["requestGPU"])
    return [] if good else [f"/dev/shm is {volume}, {gpus} GPUs"]


def _unit_type(row: Row) -> list[str]:
    """The unit waits for no message that the engine never sends."""
    key, _, wrong = row["config"]["unit"].partition("=")
    units = [text for path, text in _artifacts({}).items() if path.endswith(".service")]
    found = [line for unit in units for line in unit.decode().splitlines() if line.startswith(key)]
    return [] if found and f"{key}={wrong}" not in found else [str(found)]


def _merged(row: Row) -> list[str]:
    """What a spec says of one parameter leaves the others of the base that it refers to."""
    base, own = row["config"]["baseRefs"], row["config"]["spec"]
    recipe = (
        "_family: own\nown:\n  size_range: [1, 9]\n  hardware:\n    H100-80G:\n      bf16:\n"
        f"        vllm: {{max_num_seqs: 8, generation_config: {json.dumps(base)}}}\n"
    )
    model = {
        "recipe": "own",
        "precision": "bf16",
        "overrides": {"max_num_seqs": 64, "served_model_name": own},
        "engine_version": "0.22.0",
    }
    result = _project(model, {"recipes/own.yaml": recipe})
    words = [word for launch in result.launches for word in launch.argv]
    missing = [word for word in ("64", base, own) if word not in words]
    return [f"{missing}: {[item.message for item in result.findings]}"] if missing else []


def _logprobs(row: Row) -> list[str]:
    """Twice as many alternatives as the row's client asks for are allowed, and no flag where the
    server's own limit has room."""
    wanted = int(re.findall(r"logprobs=(\d+)", row["config"]["client"])[0])
    limits = [_limit(count) for count in (wanted, 2 * wanted + 1)]
    return [] if limits == [None, str(2 * wanted + 1)] else [f"--max-logprobs {limits}"]


def _limit(alternatives: int) -> str | None:
    spec = {
        "models": {
            "m": {
                "checkpoint": "org/model",
                "engine": "vllm",
                "engine_version": "0.22.0",
                "hardware": "H100-80G",
                "recipe": "none",
                "topology": {"tp": 1},
            }
        },
        "tasks": {"piqa": {"model": "m", "requires": {"min_top_logprobs": alternatives}}},
    }
    tree = {"servec.yaml": "targets: [bash]\n", "specs/m.json": json.dumps(spec)}
    (launch,) = servec.compile(tree=tree).launches
    words = list(launch.argv)
    return words[words.index("--max-logprobs") + 1] if "--max-logprobs" in words else None


def _no_guess(row: Row) -> list[str]:
    """What the row says was guessed is not there by a name alone, and is where it is said."""
    what = re.findall(r"guess the (\w+)", row["config"]["method"])[0]
    said = {f"tool_call_{what}": "hermes", "enable_auto_tool_choice": True}
    words = []
    for overrides in ({}, said):
        model = {"checkpoint": "Qwen/Qwen3-8B", "engine_version": "0.22.0", "overrides": overrides}
        (launch,) = _project(model).launches
        words.append([word for word in launch.argv if what in word])
    return [] if words == [[], [f"--tool-call-{what}"]] else [f"guessed: {words}"]


PROPERTIES: dict[str, Callable[[Row], list[str]]] = {
    "parallelism": _does_not_divide,
    "quant-shard": _does_not_divide,
    "env-removed": _unread_variable,
    "k8s-env": _service_links,
    "probe-port": _one_port,
    "probe-timeout": _startup_probe,
    "shm": _shared_memory,
    "systemd": _unit_type,
    "merge": _merged,
    "eval": _logprobs,
    "parser": _no_guess,
}
