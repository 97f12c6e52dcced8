"""Dockerfiles -> engine command lines: what the last stage's container starts.

FROM vllm/vllm-openai:v0.29.0
ENV VLLM_USE_V1=1
CMD ["--model", "org/m"]
  -> Found((--model, org/m), image, variables, is_container)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from servec.lint.find import Found, called, in_script
from servec.lint.places import places_of_text
from servec.lint.shell import Script, Word, commands

NAME = re.compile(r"(?:.*[/.])?(?:dockerfile|containerfile)(?:\.[^/]*)?\Z", re.I)
INSTRUCTION = re.compile(r"^[ \t]*([A-Za-z]+)[ \t]+(?=\S)", re.M)
MEMBER = re.compile(r'"(?:[^"\\\n]|\\.)*"')
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:=|[ \t])")


def is_dockerfile(path: str) -> bool:
    """Whether a file is one, by its name."""
    return NAME.match(path) is not None


def in_dockerfile(text: str) -> Iterator[Found]:
    """The command lines of the stages: each one's entry point with its words, and what RUN runs."""
    whole = Script(text, places_of_text(text))
    stage = _Stage("")
    for name, script in _instructions(whole):
        if name == "FROM":
            yield from stage.started()
            words = [word for word in script.text.split() if not word.startswith("--")]
            stage = _Stage(words[0] if words else "")
        elif name in ("ENTRYPOINT", "CMD"):
            stage.parts[name] = script
        elif name == "ENV":
            stage.variables += _variables(script)
        elif name == "RUN" and not script.text.startswith("["):
            yield from in_script(script)
    yield from stage.started()


class _Stage:
    """What one stage has told up to now."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.parts: dict[str, Script] = {}
        self.variables: list[Word] = []

    def started(self) -> Iterator[Found]:
        """What its container starts: ENTRYPOINT with the words of CMD behind it. One that is
        written without brackets is a script of its own, and takes no words."""
        entry, words = self.parts.get("ENTRYPOINT"), self.parts.get("CMD")
        listed = [_members(part) for part in (entry, words) if part]
        if entry and not entry.text.startswith("["):
            listed = listed[:1]
        if not listed:
            return
        if len(listed) == 1 and listed[0] is None:
            script = entry or words
            for found in in_script(script, self.image) if script else ():
                yield found._replace(variables=(*self.variables, *found.variables))
            return
        members = [member for part in listed for member in part or ()]
        yield from called(
            tuple(members), self.image, tuple(self.variables), is_container=entry is None
        )


def _instructions(whole: Script) -> Iterator[tuple[str, Script]]:
    """Each instruction and what follows it, over the lines that it goes on."""
    at = 0
    while found := INSTRUCTION.search(whole.text, at):
        end = found.end()
        while True:
            end = whole.text.find("\n", end)
            if end < 0:
                end = len(whole.text)
                break
            line = whole.text[whole.text.rfind("\n", 0, end) + 1 : end].strip()
            if not (line.endswith("\\") or (line.startswith("#") and end > found.end())):
                break
            end += 1
        yield found[1].upper(), whole.part(found.end(), end)
        at = end


def _members(script: Script) -> list[Word] | None:
    """The words of `["a", "b"]`; None where it is a line of a shell."""
    if not script.text.startswith("["):
        return None
    found = []
    for member in MEMBER.finditer(script.text):
        try:
            text = json.loads(member[0])
        except ValueError:
            text = member[0][1:-1]
        inner = script.part(member.start() + 1, member.end() - 1) if " " in text else None
        place = script.places.at(member.start())
        found.append(Word(text, *place, len(member[0]), inner))
    return found


def _variables(script: Script) -> list[Word]:
    """The names that ENV sets: `A=1 B=2`, or `A 1`."""
    first = next(commands(script), None)
    if first is None:
        return []
    words = (*first.assignments, *first.words[:1])
    return [
        word._replace(text=found[1], length=len(found[1]))
        for word in words
        if (found := VARIABLE.match(word.text + " "))
    ]
