"""YAML of Kubernetes, compose and others -> engine command lines.

containers: [{image: "vllm/vllm-openai:v0.10.0", args: [--model, m, --nnodes, "2"]}]
  -> Found(words with their places, image, variables)

Documents are read one by one; one that cannot be read is `Unread`, and the others still count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import yaml

from servec.catalog.command_line import HOLE
from servec.lint.find import Found, called, in_script
from servec.lint.places import YAML_BREAKS, places_of_scalar
from servec.lint.shell import Script, Word, commands
from servec.lint.template import FILL, filled, is_template
from servec.source.yaml_reader import problem_of

KINDS = re.compile(
    r"\A(?!#!)(?:\s*\{\s*\"|(?:.*\n)*?(?:apiVersion|kind|services|containers|spec|image)\s*:)"
)
FILES = re.compile(r"\.(?:ya?ml|json)(?:\.[a-z0-9]+)?\Z", re.I)
NEXT = re.compile(r"^---(?=\s)", re.M)
SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
UNKNOWN_PART = re.compile(
    rf"\$\([A-Za-z_][A-Za-z0-9_]*\)|\$\{{[^}}]*\}}|\$[A-Za-z_][A-Za-z0-9_]*|\$?{FILL}+"
)
PROSE = frozenset(
    ("name", "title", "description", "summary", "message", "comment", "notes", "help")
)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unread(NamedTuple):
    """A document that cannot be read, where and why, and whether a template was to give it."""

    line: int
    column: int
    problem: str
    is_template: bool


def is_yaml(path: str, text: str) -> bool:
    """Whether a file is YAML or JSON: by its name, or for standard input by what it holds."""
    return bool(KINDS.match(text) if path == "-" else FILES.search(path))


def in_yaml(text: str, marks: re.Pattern[str]) -> Iterator[Found | Unread]:
    """The command lines of every document that has a mark of an engine."""
    breaks = [0, *(found.start() for found in NEXT.finditer(text) if found.start()), len(text)]
    first = 1
    for begin, end in pairwise(breaks):
        document = text[begin:end]
        if marks.search(document):
            yield from _in_document(document, first)
        first += len(YAML_BREAKS.findall(document))


def _in_document(text: str, first: int) -> Iterator[Found | Unread]:
    has_actions = is_template(text)
    # A half of a pair, as JSON writes a character, is no character to YAML.
    text = SURROGATE.sub(r"\\ufffd", filled(text) if has_actions else text)
    reader = _Reader(text, first)
    try:
        for node in yaml.compose_all(text, Loader=LOADER):
            for found in reader.inside(node):
                yield found._replace(may_vary=found.may_vary or has_actions)
    except (yaml.YAMLError, RecursionError) as error:
        span, problem = problem_of("", text, error)
        yield Unread(first + span.line - 1, span.column, problem, has_actions)


class _Reader:
    """Reads one document. An alias of what was read is not read again."""

    def __init__(self, text: str, first: int) -> None:
        self.lines = YAML_BREAKS.split(text)
        self.first = first
        self.seen: set[int] = set()

    def inside(self, root: yaml.Node | None) -> Iterator[Found]:
        """The command lines of a node and of all in it, in the order of the file."""
        waiting = [(root, False)] if root is not None else []
        while waiting:
            node, is_service = waiting.pop()
            if id(node) in self.seen:
                continue
            self.seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                keys = _keys(node)
                yield from self._container(keys, is_service=is_service)
                inner = [
                    (value, False)
                    for key, value in keys.items()
                    if key not in ("command", "args", "entrypoint", "services")
                    and not (key in PROSE and isinstance(value, yaml.ScalarNode))
                ]
                services = keys.get("services")
                if isinstance(services, yaml.MappingNode):
                    inner += [(value, True) for value in _keys(services).values()]
                waiting += reversed(inner)
            elif isinstance(node, yaml.SequenceNode):
                waiting += ((item, False) for item in reversed(node.value))
            elif isinstance(node, yaml.ScalarNode) and re.search(r"[ \n]", node.value):
                yield from in_script(self._script(node))

    def _container(self, keys: dict[str, yaml.Node], *, is_service: bool) -> Iterator[Found]:
        """A container's words: `entrypoint`, `command` and `args`, in that order. Of a service of
        compose `command` follows the image's own program; in a pod it takes its place."""
        named = keys.get("image")
        image = _known(named.value) if isinstance(named, yaml.ScalarNode) else ""
        parts = [keys[key] for key in ("entrypoint", "command", "args") if key in keys]
        words: list[Word] = []
        for part in parts:
            if isinstance(part, yaml.SequenceNode):
                words += [self._word(item) for item in part.value]
            elif isinstance(part, yaml.ScalarNode):
                for command in commands(self._script(part)):
                    words += command.words
        if parts:
            variables = tuple(self._variables(keys.get("env") or keys.get("environment")))
            alone = "entrypoint" not in keys and (is_service or "command" not in keys)
            yield from called(tuple(words), image, variables, is_container=alone)

    def _script(self, node: yaml.ScalarNode) -> Script:
        places = places_of_scalar(node, self.lines, self.first)
        return Script(node.value.replace(FILL, HOLE), places)

    def _word(self, node: yaml.Node) -> Word:
        mark, end = node.start_mark, node.end_mark
        length = end.column - mark.column if end.line == mark.line else 1
        place = (self.first + mark.line, mark.column + 1, max(length, 1))
        if not isinstance(node, yaml.ScalarNode):
            return Word(HOLE, *place)
        script = self._script(node) if re.search(r"[ \n]", node.value) else None
        return Word(_known(node.value), *place, script)

    def _variables(self, node: yaml.Node | None) -> Iterator[Word]:
        if isinstance(node, yaml.MappingNode):
            yield from (self._word(key) for key, _ in node.value)
        for item in node.value if isinstance(node, yaml.SequenceNode) else ():
            name = _keys(item).get("name") if isinstance(item, yaml.MappingNode) else item
            if isinstance(name, yaml.ScalarNode):
                word = self._word(name)
                yield word._replace(text=word.text.partition("=")[0])


def _keys(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    """A mapping's values by their keys; its own come before those that it merges with `<<`."""
    own = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    merged = own.pop("<<", None)
    sources = merged.value if isinstance(merged, yaml.SequenceNode) else [merged]
    for source in sources:
        if isinstance(source, yaml.MappingNode) and source is not node:
            given = {key.value: v for key, v in source.value if isinstance(key, yaml.ScalarNode)}
            own = {**given, **own}
    return own


def _known(text: str) -> str:
    return UNKNOWN_PART.sub(HOLE, text)
