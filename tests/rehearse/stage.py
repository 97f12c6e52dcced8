"""What a rehearsal starts, asks and sees, told as it happens. A difference fails it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import servec
import yaml

KEY = "rehearsal-key"


class Skip(Exception):
    """Why a rehearsal cannot be held here."""


class Failure(Exception):
    """What was not as it has to be."""


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: str

    @property
    def tree(self) -> Any:
        return json.loads(self.body)


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def see(what: str, found: object, wanted: object = True) -> None:
    """Tell what was seen; fail where it is not what is wanted."""
    say(f"saw      {what}: {found}")
    if found != wanted:
        raise Failure(f"{what}: {found}, and not {wanted}")


def ask(port: int, path: str, *, key: str = "", body: Mapping[str, Any] | None = None,
        host: str = "127.0.0.1", quiet: bool = False) -> Answer:  # fmt: skip
    """One request; status 0 where nobody answers."""
    request = urllib.request.Request(f"http://{host}:{port}{path}")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=120) as got:
            answer = Answer(got.status, got.read().decode())
    except urllib.error.HTTPError as error:
        answer = Answer(error.code, error.read().decode())
    except (OSError, urllib.error.URLError):
        answer = Answer(0, "")
    if not quiet:
        with_key = " with the key" if key else ""
        say(f"asked    {'POST' if body else 'GET'} {path}{with_key}: {answer.status}")
    return answer


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        number: int = probe.getsockname()[1]
        return number


def project(
    folder: Path,
    models: Mapping[str, Any],
    tasks: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
) -> servec.Result:
    """A project with these models and tasks, and further files, compiled into a folder."""
    spec = yaml.safe_dump({"models": dict(models), "tasks": dict(tasks or {})})
    tree = {"servec.yaml": "targets: [bash]\n", "specs/rehearsal.yaml": spec, **(files or {})}
    for path, text in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    result = servec.compile(folder)
    for finding in result.findings:
        say(f"finding  {finding.code.number}: {finding.message}")
    if not result.ok:
        raise Failure("the spec does not compile")
    for path, content in result.artifacts.items():
        (folder / "golden" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "golden" / path).write_bytes(content)
    return result


class Server:
    """A wrapper that runs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def wait_until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        started = time.monotonic()
        while not ready():
            if self.process.poll() is not None:
                raise Failure(f"it ended with {self.process.returncode} before {what}: {self.tail}")
            if time.monotonic() - started > seconds:
                raise Failure(f"not {what} after {seconds:.0f} s: {self.tail}")
            time.sleep(0.1)
        say(f"saw      {what} after {time.monotonic() - started:.1f} s")

    @property
    def tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def stop(self, seconds: float) -> int:
        """SIGTERM, as systemd and Kubernetes send it; its exit."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"it runs {seconds:.0f} s after SIGTERM") from error
        say(f"stopped  by SIGTERM in {time.monotonic() - started:.1f} s, exit {code}")
        return code

    @property
    def command_line(self) -> str:
        words = Path(f"/proc/{self.process.pid}/cmdline").read_bytes().split(b"\0")
        return shlex.join(word.decode() for word in words if word)


@contextmanager
def started(
    wrapper: Path, *words: str, variables: Mapping[str, str], path: Path | None = None
) -> Iterator[Server]:
    """A wrapper with nothing but these variables, and `path` before everything on PATH."""
    own = [str(path)] if path else []
    environment = {
        "PATH": os.pathsep.join([*own, str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(wrapper.parents[3]),
        **variables,
    }
    names = " ".join(sorted(variables))
    say(f"started  {wrapper.name} {' '.join(words)}".rstrip() + (f" ({names})" if names else ""))
    log = wrapper.parents[3] / f"{wrapper.parts[-3]}{''.join(words)}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["bash", str(wrapper), *words], env=environment, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
    server = Server(process, log)
    try:
        yield server
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wrapper_of(folder: Path, model: str) -> Path:
    return folder / "golden" / model / "bash" / "serve.sh"


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether nothing is left of a process group."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
