"""Which engine a command line starts, and where its own words begin.

["python3.11", "-m", "sglang.launch_server", "--tp", "2"] -> Called("sglang", 3, positionals 0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from servec.ir.serve import Call, Serve

PYTHON = re.compile(r"python[0-9.]*\Z")


class Called(NamedTuple):
    """How many words the program has, how many bare words may follow, and the flags that it refuses
    though its parser has them, each with the versions that do."""

    words: int
    positionals: int
    refused: Mapping[str, str] = MappingProxyType({})


def called(argv: Sequence[str], serve: Serve) -> Called | None:
    """How an engine is called by a command line, or None where it is not. One that begins with a
    flag is taken for the program's own words."""
    if argv and argv[0].startswith("-"):
        return Called(0, 1)
    found = [call for call in _calls(serve) if _begins(argv, [word.value for word in call.program])]
    if not found:
        return None
    words = max(len(call.program) for call in found)
    calls = [call for call in found if len(call.program) == words]
    bare = any(call.model is None for call in calls)
    if bare and len(calls) > 1:  # the model as a word is one of two ways, and comes first
        bare = len(argv) > words and not argv[words].startswith("-")
    refused = {item.key.value: item.value.value for call in calls for item in call.refused}
    return Called(words, 1 if bare else 0, refused)


def _calls(serve: Serve) -> Iterator[Call]:
    yield from serve.calls
    yield from serve.known_calls


def _begins(argv: Sequence[str], program: list[str]) -> bool:
    if len(argv) < len(program):
        return False
    first = argv[0].rpartition("/")[2]
    is_python = PYTHON.match(first) and PYTHON.match(program[0])
    return bool(first == program[0] or is_python) and list(argv[1 : len(program)]) == program[1:]
