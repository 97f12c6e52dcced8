"""A release's sources and command lines -> what its own argument parser says of each, as JSON.

Run as `walk.py` beside it is, which builds the parser. The request has the words behind the
program; the answer None for those that the parser takes, else its message.

    {"root": ".../sources", "argvs": [["--port", "8000"], ["--port", "many"]], ...}
    {"said": [null, "argument --port: invalid int value: 'many'"], ...}
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
from pathlib import Path
from types import ModuleType
from typing import Any

MESSAGE_CHARACTERS = 500


def said(parser: argparse.ArgumentParser, request: dict[str, Any]) -> dict[str, Any]:
    """What a parser says of each command line."""
    return {"said": [message(parser, argv) for argv in request["argvs"]]}


def message(parser: argparse.ArgumentParser, argv: list[str]) -> str | None:
    """Why the parser refuses these words; None where it takes them, or helps and ends."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
            parser.parse_args(argv)
    except SystemExit as end:
        return _last(told.getvalue()) if end.code else None
    except Exception as error:  # a check of the release's own, behind those of argparse
        return f"{type(error).__name__}: {error}"[:MESSAGE_CHARACTERS]
    return None


def _last(text: str) -> str:
    """What stands behind the last `error:`."""
    return text.rpartition("error: ")[2].strip()[:MESSAGE_CHARACTERS] or "refused"


def _walk() -> ModuleType:
    """The module beside this one, which is in no package here."""
    spec = importlib.util.spec_from_file_location("walk", Path(__file__).with_name("walk.py"))
    if spec is None or spec.loader is None:
        raise ImportError("walk.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    _walk().main(said)
