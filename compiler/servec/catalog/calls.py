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
    found = [(words, call) for call in _calls(serve) if (words := _words(argv, call))]
    if not found:
        return None
    words = max(words for words, _ in found)
    calls = [call for here, call in found if here == words]
    bare = any(call.model is None for call in calls)
    if bare and len(calls) > 1:  # the model as a word is one of two ways, and comes first
        bare = len(argv) > words and not argv[words].startswith("-")
    refused = {item.key.value: item.value.value for call in calls for item in call.refused}
    return Called(words, 1 if bare else 0, refused)


def _calls(serve: Serve) -> Iterator[Call]:
    yield from serve.calls
    yield from serve.known_calls


def _words(argv: Sequence[str], call: Call) -> int:
    """How many words of a command line are a call's program; 0 where it is another one."""
    program = [word.value for word in call.program]
    first = argv[0].rpartition("/")[2] if argv else ""
    options = 0
    if PYTHON.match(first) and PYTHON.match(program[0]):
        options = _python_options(argv)
    elif first != program[0]:
        return 0
    begin, end = 1 + options, options + len(program)
    is_other = len(argv) > end and argv[end] in [word.value for word in call.other]
    return 0 if is_other or list(argv[begin:end]) != program[1:] else end


def _python_options(argv: Sequence[str]) -> int:
    """How many words before `-m` are Python's own options: `python3 -u -X dev -m …`."""
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-m", "-c", "-"):
        at += 2 if argv[at] in ("-X", "-W") else 1
    return at - 1
