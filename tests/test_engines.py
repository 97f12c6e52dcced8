"""Every engine folder, the shipped and a made-up one, to every target; the simulated server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import servec
import yaml

from tests.conftest import ROOT
from tests.wrapper import start, write_wrapper

SPEC = """
models:
  m:
    checkpoint: org/model
    engine: %s
    engine_version: "1.2.0"
    hardware: H100-80G
    recipe: none
    topology: {tp: 2}
    image: registry.example/engine:v1.2.0
    overrides: {max_model_len: 4096}
"""
ENGINES = {
    "vllm": ["--tensor-parallel-size 2", "--max-model-len 4096"],
    "sglang": ["--tp-size 2", "--max-model-len 4096"],
    "tensorrt-llm": ["--tp_size 2", "--max_model_len 4096"],
    "vllm-omni": ["--omni", "--tensor-parallel-size 2"],
    "llama-cpp": ["llama-server", "--model org/model", "--alias m", "--metrics"],
    "sim": ["python3 -m servec.sim", "--max-model-len 4096"],
}
MADE_UP = """
engine: acme
env_var_prefix: ACME_
speculative_decoding: true
supported_algorithms: [sketch]
algorithm_map: {sketch: SKETCH}
hot_reload: true
metrics_endpoint: {path: /m, port: 9100, format: prometheus, switch: count}
version_features:
  - {since: "1.1.0", adds: {supported_algorithms: [sketch]}}
engine_features:
  turbo: {env_var: ACME_TURBO, type: boolean}
serve:
  calls: [{program: [acme, up]}]
  port: 9000
  flags: {host: --host, port: --port, served_model_name: --name}
  always: {count: true}
  topology:
    spellings: {tp: [gpus]}
    flags: [{of: tp, flag: --gpus}]
  negatives: [{prefix: not-, only: [cache]}]
  speculative:
    strategy: discrete_flags
    names: {model: sketcher, algorithm: sketch_kind, num_tokens: sketch_len}
  health: {path: /live, timeout_seconds: 7}
"""
MADE_UP_SPEC = """
models:
  m:
    checkpoint: org/model
    engine: acme
    engine_version: "1.2.0"
    image: registry.example/acme:v1.2.0
    hardware: H100-80G
    recipe: none
    topology: {tp: 2}
    features: {turbo: true}
    speculative: {algorithm: sketch, model: org/draft, num_tokens: 3}
    overrides: {layers: [1, 2, 3], cache: false}
"""


def compiled(engine: str, targets: str, **files: str) -> servec.Result:
    tree = {"servec.yaml": f"targets: [{targets}]\n", "specs/a.yaml": SPEC % engine, **files}
    return servec.compile(tree=tree)


def one_line(wrapper: str) -> str:
    return " ".join(wrapper.replace("\\\n", " ").split())


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_reaches_every_target(engine: str) -> None:
    result = compiled(engine, "bash, systemd, kubernetes")
    assert result.ok, result.findings
    assert {path.split("/")[1] for path in result.artifacts if "/" in path} >= {
        "bash",
        "systemd",
        "kubernetes",
    }
    wrapper = one_line(result.artifacts["m/bash/serve.sh"].decode())
    for words in ENGINES[engine]:
        assert words in wrapper


def test_every_shipped_engine_is_tried() -> None:
    from servec.api import shipped_catalog

    assert set(shipped_catalog().engine_names) == {*ENGINES, "lmi"}


def test_container_that_owns_its_entry_point_is_told_by_variables() -> None:
    result = compiled("lmi", "kubernetes")
    assert result.ok, result.findings
    manifest = "".join(
        file.decode() for path, file in result.artifacts.items() if path.startswith("m/kubernetes/")
    )
    assert "command:" not in manifest
    assert "args:" not in manifest
    for name, value in (
        ("OPTION_MODEL_ID", "org/model"),
        ("OPTION_TENSOR_PARALLEL_DEGREE", '"2"'),
        ("OPTION_MAX_MODEL_LEN", '"4096"'),
    ):
        assert f"name: {name}\n" in manifest
        assert f"value: {value}\n" in manifest


def test_folder_alone_makes_an_engine() -> None:
    files = {
        "serve.d/acme/manifest.yaml": MADE_UP,
        "serve.d/acme/wrapper.sh.j2": (ROOT / "serve.d/sim/wrapper.sh.j2").read_text(),
    }
    files["servec.yaml"] = "targets: [bash, systemd, kubernetes]\n"
    result = servec.compile(tree={**files, "specs/a.yaml": MADE_UP_SPEC})
    assert result.ok, result.findings
    assert result.launches[0].argv == (
        "acme", "up", "org/model", "--host", "0.0.0.0", "--port", "9000", "--name", "m",
        "--count", "--gpus", "2", "--layers", "1", "2", "3", "--not-cache",
        "--sketcher", "org/draft", "--sketch-kind", "SKETCH", "--sketch-len", "3",
    )  # fmt: skip
    wrapper = one_line(result.artifacts["m/bash/serve.sh"].decode())
    for words in ("--layers 1 2 3", "export ACME_TURBO=true", '"${!ACME_@}"', "need 1.1.0"):
        assert words in wrapper
    pod = yaml.safe_load(result.artifacts["m/kubernetes/deployment.yaml"])["spec"]["template"]
    assert pod["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9100",
        "prometheus.io/path": "/m",
    }
    container = pod["spec"]["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == "/live"
    assert container["readinessProbe"]["timeoutSeconds"] == 7
    assert [*container["command"], *container["args"]] == list(result.launches[0].argv)
    assert "acme loads other weights and adapters at run time" in one_line(
        result.artifacts["m/systemd/m.service"].decode()
    )
    assert "backend: acme" in result.artifacts["infer_plans.yaml"].decode()


def test_metrics_that_are_switched_off_are_not_scraped() -> None:
    spec = SPEC % "sglang" + "    env_overrides: false\n"
    tree = {"servec.yaml": "targets: [kubernetes]\n"}
    for switch, scraped in (("true", True), ("false", False)):
        text = spec.replace("max_model_len: 4096", f"enable_metrics: {switch}")
        result = servec.compile(tree={**tree, "specs/a.yaml": text})
        manifest = result.artifacts["m/kubernetes/deployment.yaml"].decode()
        assert ("prometheus.io/path: /metrics" in manifest) is scraped


def test_image_that_owns_its_entry_point_is_told_by_variables() -> None:
    """The same engine by its own command, and in a container that starts it."""
    image = "registry.example/llama-cpp:server-sagemaker-cuda-v1"
    spec = SPEC.replace("registry.example/engine:v1.2.0", image) % "llama-cpp"
    spec += "    features: {threads: 4}\n"
    result = servec.compile(tree={"servec.yaml": "targets: [kubernetes]\n", "specs/a.yaml": spec})
    assert result.ok, result.findings
    deployment = yaml.safe_load(result.artifacts["m/kubernetes/deployment.yaml"])
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert "command" not in container
    assert "args" not in container
    assert {item["name"]: item["value"] for item in container["env"]} == {
        "SM_LLAMA_CPP_MODEL": "org/model",
        "SM_LLAMA_CPP_MAX_MODEL_LEN": "4096",
        "SM_LLAMA_CPP_THREADS": "4",
        "SM_LLAMA_CPP_SPLIT_MODE": "layer",
    }
    assert container["startupProbe"]["httpGet"]["path"] == "/ping"
    on_a_host = servec.compile(tree={"servec.yaml": "targets: [bash]\n", "specs/a.yaml": spec})
    assert "SV0702" in [item.code.number for item in on_a_host.findings]


def test_options_are_a_file_beside_the_wrapper_and_a_config_map() -> None:
    spec = SPEC % "tensorrt-llm" + "    speculative: {algorithm: ngram, num_tokens: 4}\n"
    spec = spec.replace(
        "max_model_len: 4096", "extra_llm_api_options: {kv_cache_config: {dtype: fp8}}"
    )
    names = "targets: [bash, systemd, kubernetes]\n"
    result = servec.compile(tree={"servec.yaml": names, "specs/a.yaml": spec})
    assert result.ok, result.findings
    wanted = {
        "kv_cache_config": {"dtype": "fp8"},
        "disable_overlap_scheduler": True,
        "speculative_config": {"decoding_type": "NGram", "max_draft_len": 4},
    }
    assert yaml.safe_load(result.artifacts["m/bash/options.yaml"]) == wanted
    files = yaml.safe_load(result.artifacts["m/kubernetes/files.yaml"])
    assert yaml.safe_load(files["data"]["options.yaml"]) == wanted
    pod = yaml.safe_load(result.artifacts["m/kubernetes/deployment.yaml"])
    pod = pod["spec"]["template"]["spec"]
    assert {"name": "files", "configMap": {"name": files["metadata"]["name"]}} in pod["volumes"]
    mount = next(item for item in pod["containers"][0]["volumeMounts"] if item["name"] == "files")
    args = pod["containers"][0]["args"]
    assert args[args.index("--extra_llm_api_options") + 1] == f"{mount['mountPath']}/options.yaml"
    changed = spec.replace("num_tokens: 4", "num_tokens: 5")
    again = servec.compile(tree={"servec.yaml": names, "specs/a.yaml": changed})
    other = yaml.safe_load(again.artifacts["m/kubernetes/files.yaml"])
    assert other["metadata"]["name"] != files["metadata"]["name"]


def test_wrapper_names_the_options_from_any_folder(tmp_path: Path) -> None:
    spec = SPEC % "tensorrt-llm" + "    speculative: {algorithm: ngram, num_tokens: 4}\n"
    result = servec.compile(tree={"servec.yaml": "targets: [bash]\n", "specs/a.yaml": spec})
    wrapper = write_wrapper(result, tmp_path)
    argv = start(wrapper).argv
    path = argv[argv.index("--extra_llm_api_options") + 1]
    assert Path(path).read_bytes() == result.artifacts["m/bash/options.yaml"]


def test_manifest_in_json_is_an_engine_with_places() -> None:
    manifest = yaml.safe_load(MADE_UP) | {"hot_reload": "yes"}
    tree = {
        "servec.yaml": "targets: [bash]\n",
        "specs/a.yaml": MADE_UP_SPEC,
        "serve.d/acme/manifest.json": json.dumps(manifest, indent=2),
        "serve.d/acme/wrapper.sh.j2": (ROOT / "serve.d/sim/wrapper.sh.j2").read_text(),
    }
    found = servec.compile(tree=tree).findings[0]
    line = tree["serve.d/acme/manifest.json"].splitlines()[found.span.line - 1]  # type: ignore[union-attr]
    assert line == '  "hot_reload": "yes",'
    right = json.dumps(manifest | {"hot_reload": True})
    assert servec.compile(tree={**tree, "serve.d/acme/manifest.json": right}).ok


@contextmanager
def simulated(key: str = "") -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["servec.sim", "org/model", "--port", str(port), "--served-model-name", "m"]
    server = subprocess.Popen(
        [sys.executable, "-m", *words],
        env={**os.environ, "SIM_API_KEY": key},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("sim: serving m on")
        yield f"http://127.0.0.1:{port}"
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=20) == 0
    finally:
        server.kill()
        server.wait()


def ask(url: str, body: object = None, key: str = "") -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data, headers), timeout=20
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_simulated_server_answers_as_an_engine_does() -> None:
    with simulated() as url:
        assert ask(f"{url}/health") == (200, "")
        assert json.loads(ask(f"{url}/v1/models")[1])["data"][0]["id"] == "m"
        code, text = ask(f"{url}/v1/completions", {"model": "m", "prompt": "abc"})
        assert (code, json.loads(text)["choices"][0]["text"]) == (200, "cba")
        assert ask(f"{url}/v1/completions", ["no object"])[0] == 400
        assert ask(f"{url}/metrics") == (200, "sim_requests_total 1\n")
        assert ask(f"{url}/v1/nothing")[0] == 404


def test_simulated_server_wants_its_key() -> None:
    with simulated(key="k") as url:
        assert ask(f"{url}/health")[0] == 200
        assert ask(f"{url}/v1/models")[0] == 401
        assert ask(f"{url}/v1/models", key="k")[0] == 200


def test_simulated_server_is_closed_until_the_start_delay_is_over() -> None:
    words = [sys.executable, "-m", "servec.sim", "m", "--port", "0", "--start-delay", "1.5"]
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("sim: serving m on")
        server.terminate()
    assert time.monotonic() - began >= 1.5
