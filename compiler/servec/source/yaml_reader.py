"""YAML text -> a located tree, on libyaml's events.

YAML 1.2 core, and less than that on purpose: one document, text keys, no duplicate keys, no tags,
no merge keys, no scalar that readers disagree on. Anchors are allowed within `limits`. A mistake is
a finding at its place; what can still be read is read, so that one run shows all of them.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml._yaml import CParser

from servec.diag import codes
from servec.diag.findings import Findings
from servec.source import limits
from servec.source.located import At, Broken, Entry, List, Map, Node, Span
from servec.source.scalars import Ambiguous, resolve

CONFLICT = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)


def read_yaml(file: str, text: str, findings: Findings) -> Node | None:
    """The document's value, or None where there is none that could be read."""
    try:
        return _Reader(file, text, findings).document()
    except yaml.YAMLError as error:
        span, problem = problem_of(file, text, error)
        findings.add(codes.SYNTAX, span, problem=problem)
    except _TooMuch:
        pass
    return None


def problem_of(file: str, text: str, error: Exception) -> tuple[Span, str]:
    """Where and why a text is no YAML."""
    if isinstance(error, yaml.MarkedYAMLError):
        return _conflict(file, text) or _mark(file, error)
    if isinstance(error, yaml.reader.ReaderError):
        problem = f"the character U+{_character(error):04X} is not allowed in YAML"
        return _place(file, text, error.position), problem
    return Span(file, 1, 1), "it is too deep"


class _TooMuch(Exception):
    """A bound of `limits` was passed; the finding is already made."""


class _Reader:
    def __init__(self, file: str, text: str, findings: Findings) -> None:
        self.file = file
        self.findings = findings
        self.parser = CParser(text)
        self.next = self.parser.get_event
        self.anchors: dict[str, tuple[Node, int] | None] = {}
        self.nodes = 0

    def document(self) -> Node | None:
        self.next()  # the stream's start
        event = self.next()
        if isinstance(event, yaml.StreamEndEvent):
            self.findings.add(codes.EMPTY_FILE, Span(self.file, 1, 1))
            return None
        node = self.node(self.next(), 0)
        self.next()  # the document's end
        event = self.next()
        if not isinstance(event, yaml.StreamEndEvent):
            self.findings.add(codes.SECOND_DOCUMENT, self.span(event))
            return None
        if isinstance(node, At) and node.value is None:
            self.findings.add(codes.EMPTY_FILE, Span(self.file, 1, 1))
            return None
        return node

    def node(self, event: Any, depth: int) -> Node:
        self.nodes += 1
        if self.nodes > limits.NODES:
            self.stop(event, f"more than {limits.NODES:,} values, aliases counted in full")
        kind = type(event)
        if kind is yaml.ScalarEvent:
            scalar = self.scalar(event)
            return self.anchored(event, scalar, self.nodes - 1) if event.anchor else scalar
        if kind is yaml.AliasEvent:
            return self.alias(event)
        if depth >= limits.DEPTH:
            self.stop(event, f"more than {limits.DEPTH} levels")
        before = self.nodes - 1
        if event.anchor:
            self.anchors[event.anchor] = None  # open: an alias inside would hold itself
        self.refuse_tag(event)
        node = self.mapping(event, depth) if kind is yaml.MappingStartEvent else None
        return self.anchored(event, node or self.sequence(event, depth), before)

    def anchored(self, event: Any, node: Node, before: int) -> Node:
        if event.anchor:
            self.anchors[event.anchor] = (node, self.nodes - before)
        return node

    def scalar(self, event: Any) -> Node:
        span = self.span(event)
        if event.tag is not None:
            self.refuse_tag(event)
            return At(Broken(event.value), span)
        if event.style:
            return At(event.value, span)
        value = resolve(event.value)
        if isinstance(value, Ambiguous):
            text, instead = event.value, value.instead
            self.findings.add(codes.AMBIGUOUS_SCALAR, span, text=text, instead=instead)
            return At(Broken(text), span)
        return At(value, span)

    def mapping(self, event: Any, depth: int) -> Map:
        span = self.span(event)
        entries: dict[str, Entry] = {}
        broken = event.tag is not None
        while True:
            key_event = self.next()
            if type(key_event) is yaml.MappingEndEvent:
                return Map(entries, span, broken)
            key = self.key(key_event, depth)
            value = self.node(self.next(), depth + 1)
            if key is None:
                broken = True
                continue
            known = entries.get(key.value)
            if known is None:
                entries[key.value] = Entry(key, value)
                continue
            self.findings.add(
                codes.DUPLICATE_KEY, key.span, key=key.value, also=(known.key.span, "first here")
            )

    def key(self, event: Any, depth: int) -> At[str] | None:
        if type(event) is yaml.ScalarEvent and event.value == "<<" and not event.style:
            self.findings.add(codes.MERGE_KEY, self.span(event))
            return None
        node = self.node(event, depth + 1)
        if isinstance(node, At) and isinstance(node.value, Broken):
            return None
        if isinstance(node, At) and isinstance(node.value, str):
            # An alias is a key where it stands, not where its anchor is.
            at_alias = type(event) is yaml.AliasEvent
            return At(node.value, self.span(event) if at_alias else node.span)
        self.findings.add(codes.KEY_NOT_TEXT, self.span(event))
        return None

    def sequence(self, event: Any, depth: int) -> List:
        span = self.span(event)
        items: list[Node] = []
        while True:
            item = self.next()
            if type(item) is yaml.SequenceEndEvent:
                return List(tuple(items), span)
            items.append(self.node(item, depth + 1))

    def alias(self, event: Any) -> Node:
        known = self.anchors.get(event.anchor)
        if known is None:
            open_anchor = event.anchor in self.anchors
            problem = "stands inside its own anchor" if open_anchor else "has no anchor before it"
            self.findings.add(codes.BAD_ALIAS, self.span(event), name=event.anchor, problem=problem)
            return At(Broken(), self.span(event))
        node, size = known
        self.nodes += size
        if self.nodes > limits.NODES:
            self.stop(event, f"more than {limits.NODES:,} values, aliases counted in full")
        return node

    def refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
            span = self.span(event)._replace(length=len(tag))
            self.findings.add(codes.TAG, span, tag=tag)

    def stop(self, event: Any, problem: str) -> None:
        advice = "write it flatter" if "levels" in problem else "write less into it"
        self.findings.add(codes.TOO_LARGE, self.span(event), problem=problem, advice=advice)
        raise _TooMuch

    def span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        line, column = start.line, start.column
        length = end.column - column if end.line == line else 1
        return Span(self.file, line + 1, column + 1, length or 1)


def _conflict(file: str, text: str) -> tuple[Span, str] | None:
    """Where a merge left its markers, which is why the rest is no YAML."""
    found = CONFLICT.search(text)
    if found is None:
        return None
    return _place(file, text, found.start()), "a marker of an unresolved merge conflict"


def _mark(file: str, error: yaml.MarkedYAMLError) -> tuple[Span, str]:
    """The place of an error: where something was left open, where that is what is wrong."""
    problem = str(error.problem or error.context or "not YAML")
    left_open = error.context_mark is not None and (
        "end of stream" in problem or "flow" in str(error.context)
    )
    mark: Any = error.context_mark if left_open else error.problem_mark or error.context_mark
    span = Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1, 1)
    return span, f"{problem} ({error.context})" if error.context and error.problem else problem


def _character(error: Any) -> int:
    return ord(error.character) if isinstance(error.character, str) else int(error.character)


def _place(file: str, text: str, position: int) -> Span:
    before = text[:position]
    return Span(file, before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
