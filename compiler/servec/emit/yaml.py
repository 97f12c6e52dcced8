"""YAML that every reader reads alike: YAML 1.1, YAML 1.2 and Go's.

Block style, the order of the tree, two spaces. A string is plain only where all three read a
string; else it is in double quotes with escapes that all three know (no JSON surrogate pairs).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from servec.ir.artifact import Trace
from servec.source.scalars import canonical_float


@dataclass(frozen=True, slots=True)
class Traced:
    """A leaf that knows what it came from."""

    value: str | int
    trace: Trace


Tree: TypeAlias = "str | int | float | bool | Traced | list[Tree] | dict[str, Tree] | None"

PLAIN = re.compile(r"(?:[A-Za-z/][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*|--[a-z][a-z0-9-]*)\Z")
NOT_TEXT = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity")
)
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\x00": "\\0"}
ESCAPED = re.compile(
    '["\\\\\x00-\x1f\x7f-\xa0\xad\u0600-\u0605\u200b-\u200f\u2028-\u202e\u2060-\u206f'
    "\ufeff\ufff0-\uffff\ud800-\udfff\U000e0000-\U0010ffff]"
)


def print_yaml(comments: Sequence[str], tree: dict[str, Tree]) -> tuple[str, dict[int, Trace]]:
    """The text of one document, and what its lines came from."""
    lines = [f"# {comment}" for comment in comments]
    traces: dict[int, Trace] = {}
    _mapping(tree, "", lines, traces)
    return "\n".join(lines) + "\n", traces


def _mapping(
    tree: dict[str, Tree], indent: str, lines: list[str], traces: dict[int, Trace]
) -> None:
    for key, value in tree.items():
        _entry(f"{indent}{scalar(key)}:", value, indent, lines, traces)


def _entry(head: str, value: Tree, indent: str, lines: list[str], traces: dict[int, Trace]) -> None:
    if isinstance(value, Traced):
        lines.append(f"{head} {scalar(value.value)}")
        traces[len(lines)] = value.trace
    elif isinstance(value, dict):
        if not value:
            lines.append(f"{head} {{}}")
            return
        lines.append(head)
        _mapping(value, indent + "  ", lines, traces)
    elif isinstance(value, list):
        if not value:
            lines.append(f"{head} []")
            return
        lines.append(head)
        _sequence(value, indent, lines, traces)
    else:
        lines.append(f"{head} {scalar(value)}")


def _sequence(items: list[Tree], indent: str, lines: list[str], traces: dict[int, Trace]) -> None:
    for item in items:
        if isinstance(item, dict) and item:
            first = len(lines)
            _mapping(item, indent + "  ", lines, traces)
            lines[first] = f"{indent}- {lines[first][len(indent) + 2 :]}"
        elif isinstance(item, list) and item:
            first = len(lines)
            _sequence(item, indent + "  ", lines, traces)
            lines[first] = f"{indent}- {lines[first][len(indent) + 2 :]}"
        else:
            _entry(f"{indent}-", item, indent, lines, traces)


def scalar(value: str | int | float | bool | None) -> str:
    match value:
        case str():
            return string(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return canonical_float(value)
        case _:
            return str(value)


def string(text: str) -> str:
    if PLAIN.match(text) and text.lower() not in NOT_TEXT:
        return text
    return '"' + ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    number = ord(character)
    if character in ESCAPES:
        return ESCAPES[character]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
