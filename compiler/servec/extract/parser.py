"""A way to a release's parser -> its options, asked of `walk.py` in a process of its own; or what
it says of command lines, asked of `say.py`.

The process has bounds of memory and time, an environment without the user's own settings, and a
home folder that is thrown away. A module that is missing there is stood in for, and the parser is
asked again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from packaging.version import Version

from servec.extract.errors import ExtractionError
from servec.extract.observation import Classes, Flag, classes_of, flags_of
from servec.extract.recipe import Recipe, Way

WALK = Path(__file__).resolve().with_name("walk.py")
SAY = WALK.with_name("say.py")
INHERITED = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
ATTEMPTS = 40
"""How many missing modules are stood in for before a release is given up."""
ANSWER_BYTES = 64 << 20
FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""Ends of a process that say nothing of the release."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of a release's parser may take."""

    memory_bytes: int = 16 << 30
    seconds: int = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """The options of a parser, or what it `said` of command lines: None, or why it refuses one; in
    `problem` why there is no answer."""

    problem: str = ""
    flags: tuple[Flag, ...] = ()
    said: tuple[str | None, ...] = ()
    allow_abbrev: bool = True
    classes: Classes = Classes()
    stand_ins: tuple[str, ...] = ()
    missing: str | None = None
    log: str = field(default="", compare=False)


def ask(
    recipe: Recipe,
    way: Way,
    version: Version,
    root: Path,
    python: Path,
    limits: Limits,
    argvs: Sequence[Sequence[str]] | None = None,
) -> Answer:
    """Build a release's parser in that interpreter and read its options, or where there are
    `argvs`, words behind the program, what it says of each."""
    modules, absent = recipe.stood_in(version)
    stand_ins = list(modules)
    answer = Answer("too many modules are missing")
    for _ in range(ATTEMPTS):
        request = _request(recipe, way, version, root, limits)
        request |= {"stand_ins": stand_ins, "absent": list(absent)}
        request |= {"argvs": [list(argv) for argv in argvs or ()]}
        program = WALK if argvs is None else SAY
        try:
            answer = _run(program, request, python, _variables(recipe), limits)
        except OSError as error:
            raise ExtractionError(f"the parser could not be run: {error}") from error
        if answer.missing is None or answer.missing in stand_ins:
            return answer
        stand_ins.append(answer.missing)
    return answer


def _request(
    recipe: Recipe, way: Way, version: Version, root: Path, limits: Limits
) -> dict[str, Any]:
    claimed = recipe.claimed.value if recipe.claimed else "{version}"
    told = claimed.format(version=version)
    return {
        "root": str(root),
        "distribution": {"name": recipe.package.value, "version": told},
        "parser": way.parser.value,
        "builder": way.builder.value,
        "additions": [
            {"file": item.file.value, "receiver": item.receiver.value} for item in way.additions
        ],
        "type_names": [
            {"function": item.function.value, "holds": item.holds.value, "name": item.name.value}
            for item in recipe.type_names
        ],
        "limits": {"memory_bytes": limits.memory_bytes, "seconds": limits.seconds},
    }


def _variables(recipe: Recipe) -> dict[str, str]:
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    fixed = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    own = {item.key.value: item.value.value for item in recipe.environment}
    return kept | fixed | own


def _run(
    program: Path,
    request: dict[str, Any],
    python: Path,
    variables: dict[str, str],
    limits: Limits,
) -> Answer:
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as out:
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                [str(python), "-B", "-s", "-P", str(program)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=log,
                env={**variables, "HOME": home},
                cwd=home,
                start_new_session=True,
            )
            late = _feed(process, json.dumps(request).encode(), limits.seconds)
            told = _tail(log)
        if late:
            return Answer(f"the parser took more than {limits.seconds} seconds", log=told)
        if process.returncode in FROM_OUTSIDE:
            ended = signal.Signals(-process.returncode).name
            raise ExtractionError(f"the parser's process was ended by {ended}; is memory short?")
        return _answer(out, process.returncode, told)


def _feed(process: subprocess.Popen[bytes], request: bytes, seconds: int) -> bool:
    """Give the request and wait; whether the process, or what it started, had to be killed."""
    try:
        process.communicate(request, timeout=seconds)
        late = False
    except subprocess.TimeoutExpired:
        late = True
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return late


def _answer(out: IO[bytes], code: int, log: str) -> Answer:
    out.seek(0)
    said = out.read(ANSWER_BYTES + 1)
    try:
        reply = json.loads(said)
    except ValueError:
        return Answer(f"the parser's process ended with {code} and no answer", log=log)
    if "error" in reply:
        return Answer(reply["error"], missing=reply["missing"], log=log)
    return Answer(
        flags=flags_of(reply.get("flags", [])),
        said=tuple(reply.get("said", [])),
        allow_abbrev=reply.get("allow_abbrev", True),
        classes=classes_of(reply),
        stand_ins=tuple(reply["stood_in"]),
        log=log,
    )


def _tail(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4000))
    return log.read().decode("utf-8", "replace")
