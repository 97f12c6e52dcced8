"""The differences between servec and released parsers that are meant, each with its reason."""

from __future__ import annotations

from typing import NamedTuple

TAKES, REFUSES = "takes", "refuses"


class Named(NamedTuple):
    """Differences of one reason: what servec says of these flags, used in these ways."""

    engine: str
    servec: str
    flags: tuple[str, ...]
    reason: str
    ways: tuple[str, ...] = ()


NAMED: tuple[Named, ...] = ()


def reason_of(engine: str, servec: str, flag: str, what: str) -> str:
    """The reason of a difference; empty for one that is not meant."""
    for named in NAMED:
        same = (engine, servec) == (named.engine, named.servec)
        if same and flag in named.flags and (not named.ways or what in named.ways):
            return named.reason
    return ""
