"""Values as words of a command line, whoever asks: a plan or a shard.

{"a": 1} -> {"a":1}      --host, -x -> --host=-x
"""

from __future__ import annotations

import json

from servec.catalog.engines import EngineAt
from servec.ir.serve import TopologyFlag
from servec.ir.words import NEGATIVE_NUMBER
from servec.source.located import At, Plain


def word_of(value: Plain) -> str:
    """A value as one word of a command line: text as it is, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def valued(flag: str, word: str) -> tuple[str, ...]:
    """A flag and its value; a value that looks like a flag is tied to it with `=`."""
    return (f"{flag}={word}",) if looks_like_flag(word) else (flag, word)


def looks_like_flag(word: str) -> bool:
    """Whether an argument parser would take a word for a flag; a negative number it would not."""
    return word.startswith("-") and not NEGATIVE_NUMBER.match(word)


def topology_words(flag: TopologyFlag, value: int) -> tuple[str, ...]:
    """A flag of the topology, with its number unless it takes none or a fixed value."""
    if flag.bare is not None and flag.bare.value:
        return (flag.flag.value,)
    return (flag.flag.value, flag.value.value if flag.value else str(value))


def is_missing(flag: At[str], engine: EngineAt) -> bool:
    """Whether the release has no such flag of servec's own. An unknown version is taken to have
    all, but a flag for the name that the manifest calls new."""
    if engine.version is not None:
        return engine.lacks(flag.value)
    flags = engine.serve.flags
    is_new = flags and flags.served_name_is_new and flags.served_name_is_new.value
    return bool(is_new and flags and flag is flags.served_model_name)
