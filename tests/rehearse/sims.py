"""servec's own server: alone, on two nodes, and with a process beside it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from tests.rehearse.stage import (
    KEY,
    Server,
    ask,
    free_port,
    gone,
    project,
    see,
    started,
    wrapper_of,
)

GRACE_SECONDS = 10
LEADER, WORKER = "127.0.0.1", "127.0.0.2"


def _model(port: int, **more: Any) -> dict[str, Any]:
    return {
        "checkpoint": "org/model",
        "engine": "sim",
        "hardware": "H100-80G",
        "recipe": "none",
        "precision": "bf16",
        "topology": {"tp": 1},
        "targets": ["bash"],
        "overrides": {"host": LEADER, "port": port, "start_delay": 0.5},
        **more,
    }


def alone(folder: Path) -> None:
    """One server: readiness, the key, answers, metrics, and its end."""
    port = free_port()
    project(folder, {"m": _model(port)})
    with started(wrapper_of(folder, "m"), variables={"SERVEC_API_KEY": KEY}) as server:
        server.wait_until(lambda: ask(port, "/health", quiet=True).status == 200, 20, "ready")
        see("the key in the command", KEY in server.command_line, False)
        see("an answer without the key", ask(port, "/v1/models").status, 401)
        models = ask(port, "/v1/models", key=KEY)
        see("the model", models.tree["data"][0]["id"], "m")
        body = {"model": "m", "prompt": "abc"}
        see("a completion", ask(port, "/v1/completions", key=KEY, body=body).status, 200)
        see("metrics", "sim_requests_total 1" in ask(port, "/metrics").body)
        see("exit", server.stop(GRACE_SECONDS), 0)


def two_nodes(folder: Path) -> None:
    """A worker that waits, a leader that serves once both have met, and the end of each."""
    port = free_port()
    site = (
        "nodes:\n  one: {address: leader.test, interface: lo}\n"
        "  two: {address: worker.test, interface: lo}\n"
    )
    model = _model(port, nodes=2, hosts=["one", "two"], topology={"tp": 2})
    project(folder, {"m": model}, files={"servec.yaml": site})
    wrapper = wrapper_of(folder, "m")
    facts = {"SERVEC_LEADER_ADDRESS": LEADER, "SERVEC_NODE_ADDRESS": WORKER}
    with started(wrapper, "--rank", "1", variables=facts) as worker:
        worker.wait_until(lambda: "waits for" in worker.tail, 10, "a worker that waits")
        with started(wrapper, "--rank", "0", variables=facts) as leader:
            _ready(leader, port)
            see("the worker has met the leader", "has met the leader" in worker.tail)
            see("the worker serves", ask(port, "/health", host=WORKER).status, 0)
            os.kill(leader.process.pid, signal.SIGKILL)
            see("the worker ends with the leader", worker.process.wait(10), 1)
    with started(wrapper, "--rank", "0", variables=facts) as leader:
        see("ready without the worker", ask(port, "/health").status, 0)
        with started(wrapper, "--rank", "1", variables=facts) as worker:
            _ready(leader, port)
            os.kill(worker.process.pid, signal.SIGKILL)
            see("the leader ends with the worker", leader.process.wait(10), 1)


PAIR = """\
engine: pair
env_var_prefix: PAIR_
speculative_decoding: false
supported_algorithms: []
algorithm_map: {}
hot_reload: false
serve:
  calls: [{program: [python3, -m, servec.sim]}]
  port: 8000
  flags: {host: --host, port: --port, served_model_name: --served-model-name}
  topology: {flags: [{of: tp, flag: --tensor-parallel-size}]}
  nodes:
    - name: pair
      beside:
        name: meeting
        words: [[python3, -m, http.server], ["{leader_port}"], [--bind, "{leader_address}"]]
      worker:
        name: joins
        words: [[sleep, "600"]]
  health: {path: /health}
"""


def pair(folder: Path) -> None:
    """Two processes on the leader: the wrapper keeps both, and ends with the server."""
    port = free_port()
    model = _model(port, engine="pair", nodes=2, topology={"tp": 2})
    frame = '{% extends "serve.sh.j2" %}\n'
    files = {"serve.d/pair/manifest.yaml": PAIR, "serve.d/pair/wrapper.sh.j2": frame}
    project(folder, {"m": model}, files=files)
    wrapper, facts = wrapper_of(folder, "m"), {"SERVEC_LEADER_ADDRESS": "127.0.0.3"}
    with started(wrapper, "--rank", "0", variables=facts) as leader:
        _ready(leader, port)
        see("the process beside it answers", ask(29500, "/", host="127.0.0.3").status, 200)
        see("exit", leader.stop(GRACE_SECONDS), 0)
        see("nothing is left", gone(leader.process.pid))
    with started(wrapper, "--rank", "0", variables=facts) as leader:
        _ready(leader, port)
        for child in _children(leader):
            if "http.server" in child.read_text().replace("\0", " "):
                os.kill(int(child.parent.name), signal.SIGKILL)
        see("the server ends with it", leader.process.wait(30), 1)
        see("nothing is left", gone(leader.process.pid))


def _children(server: Server) -> list[Path]:
    pid = server.process.pid
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/cmdline") for child in listed]


def _ready(server: Server, port: int) -> None:
    server.wait_until(lambda: ask(port, "/health", quiet=True).status == 200, 30, "ready")
