"""Files -> engine command lines: in scripts and systemd units; YAML is read by `find_yaml`.

ExecStart=/usr/bin/vllm serve m --port 8000
  -> Found(words with their places, image, variables)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from servec.catalog.command_line import HOLE
from servec.lint.places import places_of_text
from servec.lint.shell import EXPORTS, Command, Script, Word, commands

SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh"))
UNIT = re.compile(r"^\s*\[(Service|Container)\]", re.M)
EXEC = re.compile(r"^[ \t]*(?:ExecStart[ \t]*=[ \t]*[-@:+!]*|(?P<own>Exec)[ \t]*=[ \t]*)", re.M)
IMAGE = re.compile(r"^[ \t]*Image[ \t]*=[ \t]*(\S+)", re.M)
COMMAND_FLAG = re.compile(r"-[a-z]*c\Z")
SPECIFIER = re.compile(r"%[A-Za-z]")


class Found(NamedTuple):
    """Words that may be an engine's command line, the image that they run in where one is named
    beside them, and the names of variables that are set for them."""

    words: tuple[Word, ...]
    image: str
    variables: tuple[Word, ...]
    is_container: bool = False
    """Whether the words are a container's own, so that they may leave the program out."""
    is_template: bool = False
    """Whether they are a template's, so that some may stand under a condition."""


def in_text(text: str, marks: re.Pattern[str]) -> Iterator[Found]:
    """The command lines of a systemd unit or a script."""
    script = Script(text, places_of_text(text))
    yield from in_unit(script) if UNIT.search(text) else in_script(script, marks=marks)


def in_script(
    script: Script, image: str = "", marks: re.Pattern[str] | None = None
) -> Iterator[Found]:
    """The command lines of a script, with the variables that are exported before them."""
    exported: list[Word] = []
    for command in commands(script, marks):
        own = [_name(word) for word in command.assignments]
        if not command.words or _exports(command):
            exported += own
        else:
            yield from called(command.words, image, (*exported, *own), is_container=False)


def called(
    words: tuple[Word, ...], image: str, variables: tuple[Word, ...], *, is_container: bool
) -> Iterator[Found]:
    """The words, or the commands of the script that a shell among them is given with `-c`."""
    script = _script(words)
    if script is None:
        yield Found(words, image, variables, is_container)
        return
    for found in in_script(script, image):
        yield found._replace(variables=(*variables, *found.variables))


def _script(words: tuple[Word, ...]) -> Script | None:
    """The script of `bash -c SCRIPT`, or None where no shell is called."""
    shell = (at for at, word in enumerate(words) if word.text.rpartition("/")[2] in SHELLS)
    first = next(shell, len(words))
    for flag, word in zip(words[first + 1 :], words[first + 2 :], strict=False):
        if COMMAND_FLAG.match(flag.text):
            return word.script or Script(word.text, places_of_text("", word.line, word.column))
    return None


def _exports(command: Command) -> bool:
    return bool(command.words) and command.words[0].text in EXPORTS


def _name(word: Word) -> Word:
    name = word.text.partition("=")[0]
    return word._replace(text=name, length=len(name))


def in_unit(unit: Script) -> Iterator[Found]:
    """The command lines of a unit of systemd, or of a container of podman."""
    text, places = unit
    image = next(iter(IMAGE.findall(text)), "")
    names = [
        Word(found[1], *places.at(found.start(1)), len(found[1]))
        for found in re.finditer(r"^Environment=[\"']?([A-Za-z_][A-Za-z0-9_]*)=", text, re.M)
    ]
    for found in EXEC.finditer(text):
        end = found.end()
        while (end := text.find("\n", end)) >= 0 and text[end - 1] == "\\":
            end += 1
        line = text[found.end() : end if end >= 0 else len(text)]
        line = SPECIFIER.sub(HOLE * 2, line)  # as long as it was, so that places hold
        script = Script(line, places.part([(0, line, found.end())]))
        own = image if found["own"] else ""
        for command in commands(script):
            yield from called(command.words, own, tuple(names), is_container=bool(own))
