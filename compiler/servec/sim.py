"""A server that answers as an inference engine does, without a model: `python3 -m servec.sim`.

It opens its port after a start delay, as engines do after the load, and answers /health,
/v1/models, /v1/completions and /metrics. For tests and for rehearsing a rollout without GPUs.
Of several nodes rank 0 serves once all have met it, the others wait for its port; each ends when
another has gone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "SIM_API_KEY"


def main(arguments: Sequence[str] | None = None) -> None:
    """Meet the other nodes, wait for the start delay, then serve until SIGTERM or SIGINT."""
    options = _options().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if options.nnodes > 1:
        if options.node_rank > 0:
            _join(options)
            return
        _meet(options)
    time.sleep(options.start_delay)
    server = _Server((options.host, options.port), _Answers)
    server.model = options.served_model_name or options.model
    server.key = os.environ.get(KEY, "")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"sim: serving {server.model} on {options.host}:{server.server_port}", flush=True)
    server.serve_forever()


def _meet(options: argparse.Namespace) -> None:
    """Wait until every other rank has come; when one goes, this process ends."""
    at = (options.master_addr, options.master_port)
    meeting = socket.create_server(at, family=_family(options.master_addr))
    ranks: dict[int, socket.socket] = {}
    while len(ranks) < options.nnodes - 1:
        guest, _ = meeting.accept()
        rank = int.from_bytes(guest.recv(2), "big")
        if 0 < rank < options.nnodes and rank not in ranks:
            ranks[rank] = guest
        else:
            guest.close()  # a probe of the port, or a rank that is here already
    print(f"sim: all {options.nnodes} nodes have met", flush=True)
    for rank, guest in ranks.items():
        threading.Thread(target=_watch, args=(guest, f"rank {rank}"), daemon=True).start()


def _join(options: argparse.Namespace) -> None:
    """Wait for rank 0's port, and stay until it goes."""
    at = (options.master_addr, options.master_port)
    print(f"sim: rank {options.node_rank} waits for {at[0]}:{at[1]}", flush=True)
    while True:
        try:
            leader = socket.create_connection(at)
            break
        except OSError:
            time.sleep(0.1)
    leader.sendall(options.node_rank.to_bytes(2, "big"))
    print(f"sim: rank {options.node_rank} has met the leader", flush=True)
    _watch(leader, "the leader")


def _watch(other: socket.socket, who: str) -> None:
    with contextlib.suppress(OSError):
        other.recv(1)
    print(f"sim: {who} has gone", flush=True)
    os._exit(1)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servec.sim", allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", default="")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--pipeline-parallel-size", type=int, default=1)
    parser.add_argument("--nnodes", type=int, default=1, help="nodes of the replica")
    parser.add_argument("--node-rank", type=int, default=0, help="which of them this is")
    parser.add_argument("--master-addr", default="127.0.0.1", help="where rank 0 meets the others")
    parser.add_argument("--master-port", type=int, default=29500)
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--start-delay", type=float, default=0.0, help="seconds before it serves")
    return parser


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model = ""
    key = ""
    requests = 0


class _Answers(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            self._say(HTTPStatus.OK, "text/plain", "")
        elif self.path == "/metrics":
            count = f"sim_requests_total {self.server.requests}\n"
            self._say(HTTPStatus.OK, "text/plain; version=0.0.4", count)
        elif self.path != "/v1/models":
            self._say(HTTPStatus.NOT_FOUND, "text/plain", "not found\n")
        elif self._may():
            self._json({"object": "list", "data": [{"id": self.server.model, "object": "model"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._may():
            return
        if self.path != "/v1/completions":
            self._say(HTTPStatus.NOT_FOUND, "text/plain", "not found\n")
            return
        try:
            request = json.loads(body)
            prompt = str(request["prompt"])
        except (ValueError, KeyError, TypeError):
            self._say(HTTPStatus.BAD_REQUEST, "text/plain", "a JSON object with a prompt\n")
            return
        self.server.requests += 1
        choice = {"index": 0, "text": prompt[::-1], "finish_reason": "stop"}
        self._json({"object": "text_completion", "model": self.server.model, "choices": [choice]})

    def _may(self) -> bool:
        """Whether the caller has the key, where there is one."""
        if not self.server.key or self.headers.get("Authorization") == f"Bearer {self.server.key}":
            return True
        self._say(HTTPStatus.UNAUTHORIZED, "text/plain", "a key is needed\n")
        return False

    def _json(self, tree: dict[str, Any]) -> None:
        self._say(HTTPStatus.OK, "application/json", json.dumps(tree))

    def _say(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing a request."""


if __name__ == "__main__":
    main()
