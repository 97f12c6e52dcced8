"""Files -> engine command lines: in scripts, systemd units, and YAML of Kubernetes or compose.

containers: [{image: "vllm/vllm-openai:v0.10.0", args: [--model, m, --nnodes, "2"]}]
  -> Found(image, words with their places)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from servec.catalog.command_line import HOLE
from servec.lint.shell import EXPORTS, Command, Word, commands

SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh"))
UNIT = re.compile(r"^\s*\[(Service|Container)\]", re.M)
EXEC = re.compile(r"^[ \t]*(?:ExecStart[ \t]*=[ \t]*[-@:+!]*|(?P<own>Exec)[ \t]*=[ \t]*)", re.M)
IMAGE = re.compile(r"^[ \t]*Image[ \t]*=[ \t]*(\S+)", re.M)
SPECIFIER = re.compile(r"%[A-Za-z]")
KINDS = re.compile(r"^(apiVersion|kind|services|containers|spec|image)\s*:", re.M)
SUFFIXES = (".yaml", ".yml", ".json", ".sh", ".bash", ".service", ".container")


class Found(NamedTuple):
    """Words that may be an engine's command line, the image that they run in where one is named
    beside them, and the names of variables that are set for them."""

    words: tuple[Word, ...]
    image: str
    variables: tuple[Word, ...]
    is_container: bool = False
    """Whether the words are a container's own, so that they may leave the program out."""


class Unread(NamedTuple):
    """Why the rest of a file is not read, and where that begins."""

    problem: str
    line: int
    column: int


def find(path: str, text: str) -> Iterator[Found | Unread]:
    """Every command line of a file, and where it cannot be read further."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if path.endswith((".yaml", ".yml", ".json")) or (path == "-" and KINDS.search(text)):
        yield from _in_yaml(text)
    elif UNIT.search(text):
        yield from _in_unit(text)
    else:
        yield from _in_script(text, 1, 1)


def _in_script(
    text: str, line: int, column: int, margin: int = 0, image: str = ""
) -> Iterator[Found]:
    exported: dict[str, Word] = {}
    known: tuple[Word, ...] = ()
    for command in commands(text, line, column, margin):
        own = [_name(word) for word in command.assignments]
        if not command.words or _exports(command):
            exported |= {word.text: word for word in own}
            known = tuple(exported.values())
        else:
            yield from _called(command.words, image, (*known, *own), is_container=False)


def _called(
    words: tuple[Word, ...], image: str, variables: tuple[Word, ...], *, is_container: bool
) -> Iterator[Found]:
    """The words, or the commands of the script that a shell among them is given with `-c`."""
    texts = [word.text.rpartition("/")[2] for word in words]
    for place, text in enumerate(texts):
        flags = [
            at
            for at in range(place + 1, len(words))
            if text in SHELLS and re.match(r"-[a-z]*c\Z", words[at].text)
        ]
        if flags and flags[0] + 1 < len(words):
            script = words[flags[0] + 1]
            # A script in quotes begins one column behind its quote.
            yield from _in_script(script.text, script.line, script.column + 1, image=image)
            return
    yield Found(words, image, variables, is_container)


def _exports(command: Command) -> bool:
    return bool(command.words) and command.words[0].text in EXPORTS


def _name(word: Word) -> Word:
    name = word.text.partition("=")[0]
    return word._replace(text=name, length=len(name))


def _in_unit(text: str) -> Iterator[Found]:
    image = next(iter(IMAGE.findall(text)), "")
    names = [
        Word(found[1], *_place(text, found.start(1)), len(found[1]))
        for found in re.finditer(r"^Environment=[\"']?([A-Za-z_][A-Za-z0-9_]*)=", text, re.M)
    ]
    for found in EXEC.finditer(text):
        end = found.end()
        while (end := text.find("\n", end)) >= 0 and text[end - 1] == "\\":
            end += 1
        script = text[found.end() : end if end >= 0 else len(text)]
        script = SPECIFIER.sub(HOLE * 2, script)  # as long as it was, so that places hold
        own = image if found["own"] else ""
        for command in commands(script, *_place(text, found.end())):
            yield from _called(command.words, own, tuple(names), is_container=bool(own))


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


# --- YAML ----------------------------------------------------------------------------------------

UNKNOWN_PART = re.compile(
    r"\$\([A-Za-z_][A-Za-z0-9_]*\)|\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{(?:(?!\{\{).)*?\}\}|\ue000+",
    re.S,
)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


ACTION = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}", re.S)
ACTION_LINE = re.compile(r"^[ \t]*(?:\{\{(?:(?!\{\{|\}\}).)*\}\}[ \t]*)+$", re.M | re.S)
SLOT = "\ue000"
"""Stands for a character of an action of a template, which YAML takes for text."""


def _in_yaml(text: str) -> Iterator[Found | Unread]:
    try:
        yield from _in_documents(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        at = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = getattr(error, "problem", None) or getattr(error, "reason", "")
        yield Unread(str(problem) or "it is nested too deeply", *at)


def _in_documents(text: str) -> Iterator[Found]:
    """The documents of a stream, up to one that is broken; where a template is no YAML, without its
    actions."""
    documents, error = _composed(text)
    if error is not None and "{{" in text:
        text = ACTION.sub(lambda found: _filled(found[0]), ACTION_LINE.sub(_blank, text))
        documents, error = _composed(text)
    lines = text.splitlines()
    for document in documents:
        yield from _in_node(document, lines, set())
    if error is not None:
        raise error


def _composed(text: str) -> tuple[list[yaml.Node], yaml.YAMLError | None]:
    documents: list[yaml.Node] = []
    try:
        for document in yaml.compose_all(text, Loader=LOADER):
            if document is not None:
                documents.append(document)
    except yaml.YAMLError as error:
        return documents, error
    return documents, None


def _blank(found: re.Match[str]) -> str:
    """The lines of an action, empty."""
    return "\n" * found[0].count("\n")


def _filled(action: str) -> str:
    """As many characters and lines as an action has, none of which means anything."""
    return re.sub(r"[^\n]", SLOT, action)


def _in_node(node: yaml.Node, lines: list[str], seen: set[int]) -> Iterator[Found]:
    if id(node) in seen:  # an alias of what has been read
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        yield from _container(keys, lines)
        for key, value in keys.items():
            if key not in ("command", "args", "entrypoint"):
                yield from _in_node(value, lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _in_node(item, lines, seen)
    elif isinstance(node, yaml.ScalarNode) and ("\n" in node.value or " " in node.value):
        yield from _in_scalar(node, lines, "")


def _container(keys: dict[str, yaml.Node], lines: list[str]) -> Iterator[Found]:
    """A container's words: `entrypoint`, `command` and `args`, in that order."""
    image = keys["image"].value if isinstance(keys.get("image"), yaml.ScalarNode) else ""
    parts = [keys[key] for key in ("entrypoint", "command", "args") if key in keys]
    if not parts:
        return
    words: list[Word] = []
    for part in parts:
        if isinstance(part, yaml.SequenceNode):
            words += [_word(item) for item in part.value if isinstance(item, yaml.ScalarNode)]
        elif isinstance(part, yaml.ScalarNode):
            for command in commands(*_script_of(part, lines)):
                words += command.words
    variables = tuple(_variables(keys.get("env") or keys.get("environment")))
    script = _script(words, parts)
    if script is None:
        alone = "entrypoint" not in keys
        yield from _called(tuple(words), image, variables, is_container=alone)
        return
    for found in _in_scalar(script, lines, image):
        yield found._replace(variables=(*variables, *found.variables))


def _script(words: list[Word], parts: list[yaml.Node]) -> yaml.ScalarNode | None:
    """The script of `bash -c SCRIPT`, or None where no shell is called."""
    if not words or words[0].text.rpartition("/")[2] not in SHELLS:
        return None
    nodes = [
        item
        for part in parts
        if isinstance(part, yaml.SequenceNode)
        for item in part.value
        if isinstance(item, yaml.ScalarNode)
    ]
    flags = [place for place, item in enumerate(nodes) if re.match(r"-[a-z]*c\Z", item.value)]
    return nodes[flags[0] + 1] if flags and flags[0] + 1 < len(nodes) else None


def _in_scalar(node: yaml.ScalarNode, lines: list[str], image: str) -> Iterator[Found]:
    yield from _in_script(*_script_of(node, lines), image)


def _script_of(node: yaml.ScalarNode, lines: list[str]) -> tuple[str, int, int, int]:
    """A scalar as a script, and where that begins. Folded lines are continued, which means the
    same to a shell, so that each word keeps its place."""
    line, column, margin = _begin(node, lines)
    if node.style != ">":
        return node.value.replace(SLOT, HOLE), line, column, margin
    own = [item[margin:] for item in lines[line - 1 : node.end_mark.line]]
    while own and not own[-1].strip():
        own.pop()
    text = ""
    for this, following in zip(own, [*own[1:], ""], strict=True):
        folds = this.strip() and following.strip() and this[0] != " " and following[0] != " "
        text += this + (" \\\n" if folds else "\n")
    return text.replace(SLOT, HOLE), line, column, margin


def _begin(node: yaml.ScalarNode, lines: list[str]) -> tuple[int, int, int]:
    """Where a scalar's own first character is: behind a quote, or on the line below `|`; and how
    far its further lines are indented."""
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if node.style in ("|", ">"):
        below = next((item for item in lines[line : line + 50] if item.strip()), "")
        margin = len(below) - len(below.lstrip())
        return line + 1, margin + 1, margin
    return line, column + (1 if node.style in ("'", '"') else 0), 0


def _word(node: yaml.ScalarNode) -> Word:
    mark, end = node.start_mark, node.end_mark
    length = end.column - mark.column if end.line == mark.line else 1
    value = UNKNOWN_PART.sub(HOLE, node.value)
    return Word(value, mark.line + 1, mark.column + 1, max(length, 1))


def _variables(node: yaml.Node | None) -> Iterator[Word]:
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield _word(key)
    for item in node.value if isinstance(node, yaml.SequenceNode) else ():
        if isinstance(item, yaml.ScalarNode):
            word = _word(item)
            yield word._replace(text=word.text.partition("=")[0])
        elif isinstance(item, yaml.MappingNode):
            for key, value in item.value:
                is_name = isinstance(key, yaml.ScalarNode) and key.value == "name"
                if is_name and isinstance(value, yaml.ScalarNode):
                    yield _word(value)
