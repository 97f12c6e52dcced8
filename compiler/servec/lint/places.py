"""Where each character of a text stands in the file that it was taken from.

    args: >-              the folded text       offset 0 -> 2:5
        vllm serve m      "vllm serve m         offset 13 -> 3:7
          --port 1           --port 1"

A text is in pieces, each of which stands in the file on one line, character for character.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import yaml

YAML_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # as libyaml counts lines
BLANKS = re.compile("[ \t\r\n\x85\u2028\u2029]*")  # no other blank is folded
ESCAPES = {
    "'": re.compile("''"),
    '"': re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)"),
}


class Place(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class Places:
    """The pieces of a text: at which of its characters each begins, and where that stands."""

    def __init__(self, pieces: Iterable[tuple[int, Place]]) -> None:
        found = list(pieces)
        self.offsets = [offset for offset, _ in found]
        self.places = [place for _, place in found]

    def at(self, offset: int) -> Place:
        """Where the character at an offset stands; the end of the text is the last piece's."""
        piece = max(bisect_right(self.offsets, offset) - 1, 0)
        line, column = self.places[piece]
        return Place(line, column + offset - self.offsets[piece])

    def part(self, pieces: Iterable[tuple[int, str, int]]) -> Places:
        """The places of a text that was put together from pieces of this one, each given as where
        it begins in the new text, its own text, and where it begins in this one."""
        return Places(
            (begin + at - offset, self.at(at))
            for begin, text, offset in pieces
            for at in (offset, *self._begins(offset + 1, offset + len(text)))
        )

    def _begins(self, start: int, end: int) -> list[int]:
        return self.offsets[bisect_left(self.offsets, start) : bisect_left(self.offsets, end)]


def places_of_text(text: str, line: int = 1, column: int = 1) -> Places:
    """The places of a text that stands in the file as it is, from a place on."""
    below = (found.end() for found in re.finditer("\n", text))
    pieces = ((offset, Place(number, 1)) for number, offset in enumerate(below, line + 1))
    return Places(((0, Place(line, column)), *pieces))


def places_of_scalar(node: yaml.ScalarNode, lines: list[str], first: int) -> Places:
    """The places of a scalar's value. `lines` are those of its document, whose first one has the
    number `first`; they hold the value with its indentation, folds and escapes."""
    begin, end, style = node.start_mark, node.end_mark, node.style
    first_row = begin.line + (style in ("|", ">"))
    pieces: list[tuple[int, Place]] = []
    offset = 0
    for row in range(first_row, min(end.line + 1, len(lines))):
        if row == begin.line:
            inside = begin.column + (style in ESCAPES)
        else:
            inside = _blanks(lines[row], 0)
            is_joined = style == '"' and row > first_row and _goes_on(lines[row - 1])
            offset = offset if is_joined else _blanks(node.value, offset)
        if offset >= len(node.value):
            break
        for length, column in _runs(lines[row], inside, style):
            pieces.append((offset, Place(first + row, column + 1)))
            offset += length
    return Places(pieces or [(0, Place(first + begin.line, begin.column + 1))])


def _blanks(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return found.end() if found else at


def _goes_on(line: str) -> bool:
    """Whether the end of a line in double quotes is escaped, so that nothing stands for it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _runs(line: str, start: int, style: str | None) -> Iterator[tuple[int, int]]:
    """The runs of a line that stand for themselves, and its escapes: how many characters of the
    value each is, and the column from 0 that it begins at."""
    escape = ESCAPES.get(style or "")
    for found in escape.finditer(line, start) if escape else ():
        if found.start() > start:
            yield found.start() - start, start
        yield 1, found.start()
        start = found.end()
    rest = line[start:]
    rest = rest[:-1] if style == '"' and rest.endswith("\\") else rest.rstrip(" \t")
    if rest:
        yield len(rest), start
