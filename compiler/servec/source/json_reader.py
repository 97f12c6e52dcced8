"""JSON text -> a located tree.

Strict JSON (RFC 8259), plus the names Infinity and NaN that Python's own writer leaves in model
configurations. A duplicate key is a finding, as in YAML; a syntax error ends the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from servec.diag import codes
from servec.diag.findings import Findings
from servec.source import limits
from servec.source.located import At, Entry, List, Map, Node, Span, Value

SPACE = re.compile(r"[ \t\r\n]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
WORD = re.compile(r"true|false|null|NaN|-?Infinity")
SURROGATE = re.compile("[\ud800-\udfff]")
WORDS: dict[str, Value] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
DIGITS = 400  # a number longer than this is refused: Python itself stops at 4,300


def read_json(file: str, text: str, findings: Findings) -> Node | None:
    """The document's value, or None where there is none that could be read."""
    reader = _Reader(file, text, findings)
    try:
        return reader.document()
    except _Stop as stop:
        findings.add(codes.SYNTAX, reader.span(stop.position), problem=stop.problem)
    except JSONDecodeError as error:
        problem = error.msg.lower().removesuffix(" at").replace("escape: ", "escape ")
        findings.add(codes.SYNTAX, reader.span(error.pos), problem=problem)
    except _TooDeep:
        pass
    return None


class _TooDeep(Exception):
    """A bound of `limits` was passed; the finding is already made."""


class _Stop(Exception):
    def __init__(self, position: int, problem: str) -> None:
        self.position = position
        self.problem = problem


class _Reader:
    def __init__(self, file: str, text: str, findings: Findings) -> None:
        self.file = file
        self.text = text
        self.findings = findings
        self.lines = [0] + [found.end() for found in re.finditer("\n", text)]
        self.at = 0

    def document(self) -> Node | None:
        self.skip()
        if self.at == len(self.text):
            self.findings.add(codes.EMPTY_FILE, Span(self.file, 1, 1))
            return None
        node = self.value(0)
        self.skip()
        if self.at < len(self.text):
            self.fail("more text after the value")
        return node

    def value(self, depth: int) -> Node:
        if depth > limits.DEPTH:
            problem, advice = f"more than {limits.DEPTH} levels", "write it flatter"
            span = self.span(self.at)
            self.findings.add(codes.TOO_LARGE, span, problem=problem, advice=advice)
            raise _TooDeep
        start = self.at
        first = self.text[start : start + 1]
        if first == "{":
            return self.mapping(depth)
        if first == "[":
            return self.sequence(depth)
        value: Value
        if first == '"':
            value = self.string()
        elif found := WORD.match(self.text, start):
            value, self.at = WORDS[found.group()], found.end()
        elif found := NUMBER.match(self.text, start):
            if found.end() - start > DIGITS:
                self.fail("a number of more digits than any reader takes")
            real = found.group(1) or found.group(2)
            value = float(found.group()) if real else int(found.group())
            self.at = found.end()
        else:
            self.fail("a value is expected here")
        return At(value, self.span(start, self.at - start))

    def string(self) -> str:
        start = self.at
        value, end = scanstring(self.text, start + 1, True)
        if SURROGATE.search(value):
            self.fail("half a surrogate pair is no character")
        self.at = end
        return str(value)

    def mapping(self, depth: int) -> Map:
        span = self.span(self.at)
        entries: dict[str, Entry] = {}
        self.at += 1
        self.skip()
        while not self.take("}"):
            if entries:
                self.expect(",")
            if self.text[self.at : self.at + 1] != '"':
                self.fail("a key in double quotes is expected here")
            start = self.at
            name = self.string()
            key = At(name, self.span(start, self.at - start))
            self.skip()
            self.expect(":")
            value = self.value(depth + 1)
            self.skip()
            if known := entries.get(name):
                also = (known.key.span, "first here")
                self.findings.add(codes.DUPLICATE_KEY, key.span, key=name, also=also)
                continue
            entries[name] = Entry(key, value)
        return Map(entries, span)

    def sequence(self, depth: int) -> List:
        span = self.span(self.at)
        items: list[Node] = []
        self.at += 1
        self.skip()
        while not self.take("]"):
            if items:
                self.expect(",")
            items.append(self.value(depth + 1))
            self.skip()
        return List(tuple(items), span)

    def skip(self) -> None:
        self.at = SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def take(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False

    def expect(self, character: str) -> None:
        if not self.take(character):
            self.fail(f"`{character}` is expected here")
        self.skip()

    def fail(self, problem: str) -> NoReturn:
        raise _Stop(self.at, problem)

    def span(self, position: int, length: int = 1) -> Span:
        line = bisect_right(self.lines, position)
        return Span(self.file, line, position - self.lines[line - 1] + 1, length)
