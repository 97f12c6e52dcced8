"""Public reports: what servec says of the configuration, or what its artifacts never have.

A row with flags or variables is judged at its version; a row about files is a property of what a
small project compiles to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import servec
import yaml

from tests.field.rows import Row

EXEMPT = {
    "bug-06": "flags of a front end; servec has no catalogue of front ends",
    "bug-08": "flags of a router; servec has no catalogue of routers",
    "bug-09": "what an image's entry point does with arguments is not in the image catalogue",
    "bug-19": "needs the list of files in the model's repository, which servec does not read",
    "bug-34": "cache blocks of hybrid models belong to the estimate of memory",
    "bug-38": "backends by feature of the model and accelerator are not in the catalogue",
}
FLAGS = {
    "bug-02": "SV0615",
    "bug-04": "SV0619",
    "bug-18": "SV0614",
    "bug-32": "SV0614",
    "bug-35": "SV0614",
    "bug-39": "SV0614",
    "bug-46": "SV0618",
    "bug-52": "SV0618",
}
"""What `servec.check_argv` says of the row's command line."""
ASSUMED = {"bug-32": "0.8.0", "bug-39": "0.10.0", "bug-46": "0.22.0", "bug-52": "0.33.0"}
"""A version where the row gives an era."""


def check(row: Row) -> list[str]:
    if row["id"] in FLAGS:
        return _flags(row)
    judge = PROPERTIES.get(row["id"]) or PROPERTIES.get(row["kind"])
    if judge is None:
        return _flags(row)
    return judge(row)


def _flags(row: Row) -> list[str]:
    argv = _argv(row["config"])
    number = re.search(r"\d+(\.\w+)+", str(row["version"]))
    version = ASSUMED.get(row["id"]) or (number[0] if number else None)
    found = servec.check_argv(row["engine"], argv, version=version)
    codes = {item.code.number for item in found if item.severity.word != "note"}
    wanted = FLAGS.get(row["id"])
    if wanted in codes or (wanted is None and codes):
        return []
    return [f"expected {wanted or 'a finding'}, found {sorted(codes)}"]


def _argv(config: dict[str, Any]) -> list[str]:
    """The row's words; a command in one text as a shell would split it."""
    import shlex

    words = list(config.get("argv") or shlex.split(config.get("command", "")))
    if "max_model_len" in config:
        words += ["--max-model-len", str(config["max_model_len"])]
    return words


def _compile(model: dict[str, Any], files: dict[str, str] | None = None) -> servec.Result:
    spec = {
        "checkpoint": "org/model",
        "engine": "vllm",
        "image": "vllm/vllm-openai:v0.22.0",
        "hardware": "H100-80G",
        "recipe": "none",
        "topology": {"tp": 2},
        "gpus": 2,
    } | model
    tree = {"servec.yaml": "", "specs/m.json": json.dumps({"models": {"m": spec}})} | (files or {})
    result = servec.compile(tree=tree)
    assert result.ok, [item.message for item in result.findings]
    return result


def _pod(result: servec.Result) -> dict[str, Any]:
    for path, content in result.artifacts.items():
        if "/kubernetes/" in path and path.endswith(".yaml"):
            for item in yaml.safe_load_all(content):
                if item and item.get("kind") == "Deployment":
                    pod: dict[str, Any] = item["spec"]["template"]["spec"]
                    return pod
    raise AssertionError("no Deployment")


def _unread_variable(row: Row) -> list[str]:
    number = re.match(r"[\d.]+", row["version"])
    assert number is not None
    result = _compile({"image": f"vllm/vllm-openai:v{number[0]}", "env": row["config"]["env"]})
    codes = [item.code.number for item in result.findings]
    return [] if "SV0620" in codes else [f"expected SV0620, found {codes}"]


def _contradicts(model: dict[str, Any]) -> list[str]:
    spec = {"checkpoint": "org/model", "hardware": "H100-80G", "recipe": "none", "gpus": 1}
    one = {**spec, "topology": {"tp": 1}, **model}
    tree = {"servec.yaml": "targets: [bash]\n", "specs/m.json": json.dumps({"models": {"m": one}})}
    codes = [item.code.number for item in servec.compile(tree=tree).findings]
    return [] if "SV0614" in codes else [f"expected SV0614, found {codes}"]


def _port_of_the_processes(row: Row) -> list[str]:
    """The row's `--port $NAME`, with the variable's value in the place of the name."""
    env, argv = row["config"]["env"], row["config"]["argv"]
    port = env[argv[argv.index("--port") + 1].lstrip("$")]
    model = {"engine": "vllm", "engine_version": "0.29.0", "env": env}
    return _contradicts(model | {"overrides": {"port": int(port)}})


def _one_share_in_two_places(row: Row) -> list[str]:
    flag, share = row["config"]["flag"].split()
    path, inside = row["config"]["file"].split(": ")
    group, key = path.split(".")
    overrides = {
        flag.lstrip("-").replace("-", "_"): float(share),
        "extra_llm_api_options": {group: {key: float(inside)}},
    }
    model = {"engine": "tensorrt-llm", "engine_version": "1.2.0", "overrides": overrides}
    return _contradicts(model)


def _service_links(row: Row) -> list[str]:
    found = _pod(_compile({})).get("enableServiceLinks")
    return [] if found is False else [f"enableServiceLinks is {found}"]


def _one_port(row: Row) -> list[str]:
    result = _compile({"overrides": {"port": 8200}})
    container = _pod(result)["containers"][0]
    ports = {str(item["containerPort"]) for item in container["ports"]}
    names = {str(item.get("name")) for item in container["ports"]}
    probed = {str(container[key]["httpGet"]["port"]) for key in container if key.endswith("Probe")}
    wrong = probed - {"8200"} - names
    return [] if ports == {"8200"} and probed and not wrong else [f"{ports}, probes {probed}"]


def _startup_probe(row: Row) -> list[str]:
    container = _pod(_compile({}))["containers"][0]
    delays = container.get("livenessProbe", {}).get("initialDelaySeconds")
    return [] if "startupProbe" in container and not delays else ["no startupProbe, or a delay"]


def _shared_memory(row: Row) -> list[str]:
    pod = _pod(_compile({}))
    mounts = {item["mountPath"]: item["name"] for item in pod["containers"][0]["volumeMounts"]}
    volumes = {item["name"]: item.get("emptyDir", {}) for item in pod["volumes"]}
    medium = volumes.get(mounts.get("/dev/shm", ""), {}).get("medium")
    return [] if medium == "Memory" else [f"/dev/shm has medium {medium}"]


def _unit_type(row: Row) -> list[str]:
    units = [text for path, text in _compile({}).artifacts.items() if path.endswith(".service")]
    good = units and all(b"\nType=exec\n" in text for text in units)
    return [] if good else ["no unit with Type=exec"]


def _merged(row: Row) -> list[str]:
    """An override of one parameter leaves the others of the recipe."""
    result = _compile(
        {"recipe": "own", "precision": "bf16", "overrides": {"max_num_seqs": 64}},
        {
            "recipes/own.yaml": "_family: own\nown:\n  size_range: [1, 9]\n  hardware:\n"
            "    H100-80G: {bf16: {vllm: {max_num_seqs: 8, block_size: 32}}}\n"
        },
    )
    words = [word for launch in result.launches for word in launch.argv]
    missing = [word for word in ("--max-num-seqs", "64", "--block-size") if word not in words]
    return [f"{missing}: {[item.message for item in result.findings]}"] if missing else []


def _logprobs(row: Row) -> list[str]:
    spec = {
        "models": {
            "m": {
                "checkpoint": "org/model",
                "engine": "vllm",
                "hardware": "H100-80G",
                "recipe": "none",
                "topology": {"tp": 1},
            }
        },
        "tasks": {"piqa": {"model": "m", "requires": {"min_top_logprobs": 30}}},
    }
    tree = {"servec.yaml": "targets: [bash]\n", "specs/m.json": json.dumps(spec)}
    words = [word for item in servec.compile(tree=tree).launches for word in item.argv]
    return [] if "--max-logprobs" in words else [f"no --max-logprobs in {words}"]


def _no_guess(row: Row) -> list[str]:
    """A name alone brings no parser."""
    launches = _compile({"checkpoint": "Qwen/Qwen3-8B"}).launches
    words = [word for launch in launches for word in launch.argv]
    return [f"guessed: {word}" for word in words if "parser" in word] or (
        [] if words else ["nothing was compiled"]
    )


def _does_not_divide(row: Row) -> list[str]:
    """The row's model and flags; of facts that the catalogue lacks, those of the row."""
    config = row["config"]
    checkpoint = config.get("model") or config["recipe"]
    argv = config["argv"]
    tp = int(argv[argv.index("--tensor-parallel-size") + 1])
    model: dict[str, Any] = {
        "checkpoint": checkpoint,
        "engine": row["engine"],
        "engine_version": "0.26.0",
        "hardware": "H100-80G",
        "recipe": "none",
        "topology": {"tp": tp},
        "overrides": {"enable_expert_parallel": "--enable-expert-parallel" in argv},
    }
    files: dict[str, str] = {}
    if "shared_expert_intermediate_size" in row["facts_needed"]:
        width = re.search(r"shared expert width (\d+)", row["failure"])
        block = re.search(r"block_k = (\d+)", row["failure"])
        assert width is not None
        assert block is not None
        files["config.json"] = json.dumps({
            "architectures": ["Model"], "torch_dtype": "bfloat16", "num_experts": 256,
            "shared_expert_intermediate_size": int(width[1]),
            "quantization_config": {
                "quant_method": "fp8", "weight_block_size": [int(block[1])] * 2,
            },
        })  # fmt: skip
        model["config"] = "config.json"
    tree = {
        "servec.yaml": "targets: [bash]\n",
        "specs/m.json": json.dumps({"models": {"m": model}}),
    }
    found = {item.code.number for item in servec.compile(tree=tree | files).findings}
    wanted = {"SV1010", "SV1012"} if row["kind"] == "parallelism" else {"SV1011"}
    return [] if wanted <= found else [f"expected {sorted(wanted)}, found {sorted(found)}"]


PROPERTIES: dict[str, Callable[[Row], list[str]]] = {
    "bug-24": _port_of_the_processes,
    "bug-49": _one_share_in_two_places,
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
