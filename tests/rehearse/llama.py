"""llama.cpp's own server, where one is on the PATH, with a generated model."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from servec.extract.environment import environment_of
from servec.extract.errors import ExtractionError
from servec.extract.folders import cache_folder

from tests.rehearse.stage import (
    KEY,
    Failure,
    Skip,
    ask,
    free_port,
    project,
    say,
    see,
    started,
    wrapper_of,
)

REQUIREMENTS = ["gguf==0.19.0", "numpy==2.4.6"]
GRACE_SECONDS = 60


def server(folder: Path) -> None:
    """llama-server on the CPU: refused without a GPU, then readiness, the key, an answer."""
    program = shutil.which("llama-server")
    if program is None:
        raise Skip("there is no llama-server on the PATH")
    model, port = folder / "tiny.gguf", free_port()
    _write_model(model)
    spec: dict[str, Any] = {
        "checkpoint": str(model),
        "engine": "llama-cpp",
        "hardware": "H100-80G",
        "recipe": "none",
        "precision": "fp16",
        "topology": {"tp": 1},
        "targets": ["bash"],
        "overrides": {"host": "127.0.0.1", "port": port, "ctx_size": 256, "metrics": True},
    }
    project(folder, {"m": spec})
    wrapper, programs = wrapper_of(folder, "m"), Path(program).parent
    devices = subprocess.run(
        [program, "--list-devices"], capture_output=True, text=True, check=False
    )
    if "(none)" in devices.stdout:
        with started(wrapper, variables={}, path=programs) as refused:
            see("exit without a GPU", refused.process.wait(60), 1)
            see("the reason is told", "sees no GPU" in refused.tail)
    variables = {"SERVEC_API_KEY": KEY, "SERVEC_ALLOW_CPU": "1"}
    with started(wrapper, variables=variables, path=programs) as server:
        server.wait_until(lambda: ask(port, "/health", quiet=True).status == 200, 60, "ready")
        see("the key in the command", KEY in server.command_line, False)
        body = {"model": "m", "prompt": "hello", "max_tokens": 4}
        see("an answer without the key", ask(port, "/v1/completions", body=body).status, 401)
        answer = ask(port, "/v1/completions", key=KEY, body=body)
        see("a completion", answer.status, 200)
        see("tokens", answer.tree["usage"]["completion_tokens"], 4)
        listed = ask(port, "/v1/models", key=KEY).tree["data"][0]["id"]
        see("the model", listed, "m")
        metrics = ask(port, "/metrics", key=KEY)
        see("metrics", "llamacpp:" in metrics.body)
        see("exit", server.stop(GRACE_SECONDS), 0)


def _write_model(path: Path) -> None:
    say(f"makes    {path.name} with {REQUIREMENTS[0]}")
    try:
        python = environment_of(REQUIREMENTS, cache_folder())
    except ExtractionError as problem:
        raise Skip(str(problem)) from problem
    script = Path(__file__).with_name("tiny_gguf.py")
    done = subprocess.run([python, script, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr[-500:])
