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

import pytest
import servec

from tests.conftest import ROOT

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
    "tensorrt-llm": ["--tp_size 2", "--max_model_len 4096", "--served_model_name m"],
    "vllm-omni": ["--omni", "--tensor-parallel-size 2"],
    "llama-cpp": ["llama-server", "--model org/model", "--alias m", "--metrics"],
    "sim": ["python3 -m servec.sim", "--max-model-len 4096"],
}
MADE_UP = """
engine: acme
env_var_prefix: ACME_
speculative_decoding: false
supported_algorithms: []
algorithm_map: {}
hot_reload: false
serve:
  calls: [{program: [acme, up]}]
  port: 9000
  flags: {host: --host, port: --port, served_model_name: --name}
  topology:
    spellings: {tp: [gpus]}
    flags: [{of: tp, flag: --gpus}]
  health: {path: /live}
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
    result = compiled("acme", "bash, systemd, kubernetes", **files)
    assert result.ok, result.findings
    wrapper = one_line(result.artifacts["m/bash/serve.sh"].decode())
    assert "acme up org/model" in wrapper
    assert "--port 9000 --name m --gpus 2 --max-model-len 4096" in wrapper
    kubernetes = [path for path in result.artifacts if path.startswith("m/kubernetes/")]
    assert any("path: /live" in result.artifacts[path].decode() for path in kubernetes)


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
