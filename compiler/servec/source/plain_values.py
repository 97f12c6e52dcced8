"""Plain Python values -> located values: a mapping that never was a file has the places of the JSON
text that `json.dumps(value, indent=2)` would write.

{"profile": {"tp": 0}} -> Map(profile: Map(tp: At(0, <input>:3:11)))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from servec.diag import codes
from servec.diag.findings import Findings
from servec.source import limits
from servec.source.json_reader import DIGITS, SURROGATE
from servec.source.located import At, Broken, Entry, List, Map, Node, Span

INPUT = "<input>"


def located(value: Any, findings: Findings) -> Node:
    """A value as located values. A path is its text; what no JSON text could say is a finding, as
    it would be in a file."""
    node, _ = _node(value, 1, 1, 0, findings)
    return node


def _node(value: Any, line: int, column: int, depth: int, findings: Findings) -> tuple[Node, int]:
    """A value that begins at a place, and the line on which it ends."""
    span = Span(INPUT, line, column)
    if depth > limits.DEPTH:
        problem, advice = f"more than {limits.DEPTH} levels", "write it flatter"
        findings.add(codes.TOO_LARGE, span, problem=problem, advice=advice)
        return At(Broken(), span), line
    inner = 2 * (depth + 1) + 1
    if isinstance(value, Mapping):
        entries, end = dict[str, Entry](), line
        for name, item in value.items():
            key = _text(str(name), Span(INPUT, end + 1, inner), findings)
            place = Span(INPUT, end + 1, inner, len(key) + 2)
            node, end = _node(item, end + 1, inner + len(key) + 4, depth + 1, findings)
            entries[key] = Entry(At(key, place), node)
        return Map(entries, span), end + bool(entries)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items, end = list[Node](), line
        for item in value:
            node, end = _node(item, end + 1, inner, depth + 1, findings)
            items.append(node)
        return List(tuple(items), span), end + bool(items)
    if isinstance(value, int) and abs(value) >= 10**DIGITS:
        problem = "a number of more digits than any reader takes"
        findings.add(codes.SYNTAX, span, problem=problem)
        return At(Broken(), span), line
    if isinstance(value, os.PathLike):
        value = str(value)
    if isinstance(value, str):
        value = _text(value, span, findings)
    elif not (value is None or isinstance(value, bool | int | float)):
        problem = f"a Python {type(value).__name__} is no value of JSON"
        findings.add(codes.SYNTAX, span, problem=problem)
        return At(Broken(), span), line
    return At(value, span._replace(length=_length(value))), line


def _text(value: str, span: Span, findings: Findings) -> str:
    """Text of whole characters."""
    if SURROGATE.search(value):
        findings.add(codes.SYNTAX, span, problem="half a surrogate pair is no character")
        return SURROGATE.sub("\ufffd", value)
    return value


def _length(value: str | float | None) -> int:
    """How long JSON writes a scalar, near enough to point at it."""
    return len(value) + 2 if isinstance(value, str) else len(str(value))
