"""A server that answers as an inference engine does, without a model: `python3 -m servec.sim`.

It opens its port after a start delay, as engines do after the load, and answers /health,
/v1/models, /v1/completions and /metrics. For tests and for rehearsing a rollout without GPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "SIM_API_KEY"


def main(arguments: Sequence[str] | None = None) -> None:
    """Wait for the start delay, then serve until SIGTERM or SIGINT."""
    options = _options().parse_args(arguments)
    time.sleep(options.start_delay)
    server = _Server((options.host, options.port), _Answers)
    server.model = options.served_model_name or options.model
    server.key = os.environ.get(KEY, "")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"sim: serving {server.model} on {options.host}:{server.server_port}", flush=True)
    server.serve_forever()


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servec.sim", allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", default="")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
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
