"""Plain Python values -> located values: a mapping that never was a file has the places of the JSON
text that `json.dumps(value, indent=2)` would write.

{"profile": {"tp": 0}} -> Map(profile: Map(tp: At(0, <input>:3:11)))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servec.source.located import At, Entry, List, Map, Node, Span

INPUT = "<input>"


def located(value: Mapping[str, Any]) -> Map:
    """A mapping as located values. What JSON does not have is taken as its text."""
    node, _ = _node(value, 1, 1, 0)
    assert isinstance(node, Map)
    return node


def _node(value: Any, line: int, column: int, depth: int) -> tuple[Node, int]:
    """A value that begins at a place, and the line on which it ends."""
    span = Span(INPUT, line, column)
    inner = 2 * (depth + 1) + 1
    if isinstance(value, Mapping):
        entries, end = dict[str, Entry](), line
        for name, item in value.items():
            key = str(name)
            place = Span(INPUT, end + 1, inner, len(key) + 2)
            node, end = _node(item, end + 1, inner + len(key) + 4, depth + 1)
            entries[key] = Entry(At(key, place), node)
        return Map(entries, span), end + bool(entries)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items, end = list[Node](), line
        for item in value:
            node, end = _node(item, end + 1, inner, depth + 1)
            items.append(node)
        return List(tuple(items), span), end + bool(items)
    if value is None or isinstance(value, bool | int | float | str):
        return At(value, span._replace(length=_length(value))), line
    return At(str(value), span), line


def _length(value: str | float | None) -> int:
    """How long JSON writes a scalar, near enough to point at it."""
    return len(value) + 2 if isinstance(value, str) else len(str(value))
