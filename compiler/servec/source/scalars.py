"""Plain YAML scalars: what YAML 1.2 core reads, and what other readers would read instead.

    16384 -> 16384      true -> True      ~ -> None      qwen3 -> "qwen3"
    yes, 010, 1_000, 1:30, 2026-11-30, 1e3 -> Ambiguous: YAML 1.1, 1.2, Go differ

Sources: yaml.org/spec/1.2.2 section 10.3.2 (core schema), yaml.org/type (1.1), go-yaml resolve.go.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from servec.source.located import Value


class Ambiguous(NamedTuple):
    """A plain scalar that readers disagree on; `instead` says how to write it."""

    instead: str


NULLS = frozenset(("", "~", "null", "Null", "NULL"))
BOOLEANS = {
    word: value
    for value, lower in ((True, "true"), (False, "false"))
    for word in (lower, lower.title(), lower.upper())
}
# Words that YAML 1.1 takes for booleans; `=` and `<<` are types of their own there.
OLD_WORDS = frozenset(
    word
    for lower in ("y", "n", "yes", "no", "on", "off")
    for word in (lower, lower.title(), lower.upper())
) | {"=", "<<"}
# Every scalar that is not plain text under all readers starts with one of these characters.
SPECIAL_FIRST = frozenset("0123456789+-.~nNtTfFyYoO=<")

NUMBER_CHARACTERS = 40
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?)\Z")
# What some reader takes for a number or a date, though not all do, or not for the same one.
CONTESTED_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
CONTESTED_TEXT = re.compile(
    r"[-+]?0[xob][0-9a-fA-F_]+\Z"  # other bases: 0o17, 0b11, 0x1_f, -0x1f
    r"|[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?\Z|[-+]?[0-9_]*\.[0-9]*_[0-9_]*\Z"  # 1_000, 1.0_1
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"  # 1:30, base sixty
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?\Z"  # a date, with or without a time
    r"|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)


@lru_cache(4096)
def resolve(text: str) -> Value | Ambiguous:
    """The value of a plain scalar, or `Ambiguous` where readers disagree."""
    if text and text[0] not in SPECIAL_FIRST:
        return text
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    if text in OLD_WORDS:
        return Ambiguous(_switch(text))
    if len(text) <= NUMBER_CHARACTERS:
        if INTEGER.match(text):
            return int(text)
        if HEX.match(text):
            return int(text, 16)
        if FLOAT.match(text) and (text[0] not in "+-" or text[1] != "."):
            return _finite(text)
    if CONTESTED_NUMBER.match(text):
        return Ambiguous(_one_way(text))
    if len(text) <= 2 * NUMBER_CHARACTERS and CONTESTED_TEXT.match(text):
        return Ambiguous(_in_bare_digits(text))
    return text


def _switch(text: str) -> str:
    lower = text.lower()
    if lower[0] not in "yno":
        return f'"{text}"'
    meant = "true" if lower[0] == "y" or lower == "on" else "false"
    return f'`{meant}` for the switch, `"{text}"` for the text'


def _in_bare_digits(text: str) -> str:
    """`32_768` is meant as a number: how to write it so, and how to write the text."""
    bare = text.replace("_", "")
    if "_" not in text or not CONTESTED_NUMBER.match(bare):
        return f'"{text}"'
    return f'{_one_way(bare).partition(",")[0]}, `"{text}"` for the text'


def _finite(text: str) -> float | Ambiguous:
    number = float(text)
    return number if math.isfinite(number) else Ambiguous(f'"{text}"')


def _one_way(text: str) -> str:
    """A number as every reader reads it, beside the quoted text."""
    number = float(text) if len(text) <= NUMBER_CHARACTERS else math.inf
    if not math.isfinite(number):
        return f'"{text}"'
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return f'`{int(text)}` for the number, `"{text}"` for the text'
    return f'`{canonical_float(number)}` for the number, `"{text}"` for the text'


def canonical_float(number: float) -> str:
    """A finite float in the form that YAML 1.1, 1.2 and Go read alike: `1.0e-05`, `0.9`, `3.0`."""
    text = repr(number)
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e", 1)
    return text
