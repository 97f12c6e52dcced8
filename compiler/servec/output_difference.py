"""Where a file begins to differ from what it should be, in a few words."""

from __future__ import annotations

WIDTH, BEFORE = 60, 20


def first_difference(found: bytes, wanted: bytes) -> str:
    """What a reader would look for first."""
    if found.replace(b"\r\n", b"\n") == wanted:
        return "its lines end with CR LF"
    if found + b"\n" == wanted:
        return "its last line does not end"
    old, new = found.split(b"\n"), wanted.split(b"\n")
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            here, there = _parts(one, other)
            return f"line {number} should be `{there}`, it is `{here}`"
    return f"it has {len(old) - 1} lines and should have {len(new) - 1}"


def _parts(one: bytes, other: bytes) -> tuple[str, str]:
    """Two lines cut down to where they begin to differ."""
    left, right = (line.decode("utf-8", "replace").strip() for line in (one, other))
    pairs = zip(left, right, strict=False)
    same = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
    start = max(0, same - BEFORE) if max(len(left), len(right)) > WIDTH else 0
    return _cut(left, start), _cut(right, start)


def _cut(text: str, start: int) -> str:
    end = start + WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")
