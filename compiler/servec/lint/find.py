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
EXEC = re.compile(r"^[ \t]*(?:ExecStart[ \t]*=[ \t]*[-@:+!|]*|Exec[ \t]*=[ \t]*)", re.M)
OWN = re.compile(r"[ \t]*Exec[ \t]*=")
IMAGE = re.compile(r"^[ \t]*Image[ \t]*=[ \t]*(\S+)", re.M)
COMMAND_FLAG = re.compile(r"-[a-z]*c\Z")
SPECIFIER = re.compile(r"%[A-Za-z]")
ENVIRONMENT = re.compile(r"^[ \t]*Environment[ \t]*=", re.M)
VARIABLE = re.compile(r"(?<![^\s\"'])([A-Za-z_][A-Za-z0-9_]*)=")


class Found(NamedTuple):
    """Words that may be an engine's command line, the image that they run in where one is named
    beside them, and the names of variables that are set for them."""

    words: tuple[Word, ...]
    image: str
    variables: tuple[Word, ...]
    is_container: bool = False
    """Whether the words are a container's own, so that they may leave the program out."""
    may_vary: bool = False
    """Whether some of them may stand under a condition, as in a template."""


def in_text(text: str, marks: re.Pattern[str]) -> Iterator[Found]:
    """The command lines of a systemd unit or a script."""
    script = Script(text, places_of_text(text))
    yield from in_unit(script) if UNIT.search(text) else in_script(script, marks=marks)


def in_script(
    script: Script, image: str = "", marks: re.Pattern[str] | None = None
) -> Iterator[Found]:
    """The command lines of a script, with the variables that are exported before them."""
    exported: dict[str, Word] = {}
    known: tuple[Word, ...] = ()
    for command in commands(script, marks):
        own = [_name(word) for word in command.assignments]
        if not command.words or _exports(command):
            exported |= {word.text: word for word in own}
            known = tuple(exported.values())
            continue
        for found in called(command.words, image, (*known, *own), here=command.here):
            yield found._replace(may_vary=found.may_vary or command.is_put_together)


def called(
    words: tuple[Word, ...],
    image: str,
    variables: tuple[Word, ...],
    *,
    is_container: bool = False,
    here: Script | None = None,
) -> Iterator[Found]:
    """The words, or the commands of the script that a shell among them is given with `-c` or as a
    here-document."""
    script = _script(words, here)
    if script is None:
        yield Found(words, image, variables, is_container)
        return
    for found in in_script(script, image):
        yield found._replace(variables=(*variables, *found.variables))


def _script(words: tuple[Word, ...], here: Script | None) -> Script | None:
    """The script of `bash -c SCRIPT`, or None where no shell is called."""
    shell = (at for at, word in enumerate(words) if word.text.rpartition("/")[2] in SHELLS)
    first = next(shell, len(words))
    if first == len(words):
        return None
    for flag, word in zip(words[first + 1 :], words[first + 2 :], strict=False):
        if COMMAND_FLAG.match(flag.text):
            return word.script or Script(word.text, places_of_text("", word.line, word.column))
    return here


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
        Word(found[1], *places.at(begin + found.start(1)), len(found[1]))
        for begin, end in _settings(ENVIRONMENT, text)
        for found in VARIABLE.finditer(text[begin:end])
    ]
    for begin, end in _settings(EXEC, text):
        line = SPECIFIER.sub(HOLE * 2, text[begin:end])  # as long as it was, so that places hold
        script = Script(line, places.part([(0, line, begin)]))
        own = image if OWN.search(text, text.rfind("\n", 0, begin) + 1, begin) else ""
        for command in commands(script):
            yield from called(command.words, own, tuple(names), is_container=bool(own))


def _settings(key: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where the values of a unit's key begin and end; each goes on below a `\\`."""
    end = 0
    for found in key.finditer(text):
        if found.start() < end:
            continue  # inside of the one before
        end = found.end()
        while (end := text.find("\n", end)) >= 0 and text[end - 1] == "\\":
            end += 1
        end = end if end >= 0 else len(text)
        yield found.end(), end
