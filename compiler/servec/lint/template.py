"""A template of YAML -> YAML of the same length, in which every action is a text that is not known.

    {{- if .Values.fast }}
    - --port={{ .Values.port }}
    {{- end }}
      -> an empty line, `- --port=`, and as many `FILL` as the action is long

So a chart is read without its values: places hold, and what a value would give is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FILL = "\ue000"
# Up to the next that begins, so that many that do not end are read once.
ONE = r"\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}"
ACTION = re.compile(ONE, re.S)
LONE = re.compile(rf"^[ \t]*(?:(?:{ONE})[ \t]*)+(?=\n|\Z)", re.S | re.M)
WORD = re.compile(r"\{[{%][-+]?\s*([a-z]+)")
NOT_BREAK = re.compile(r"[^\n]")


def is_template(text: str) -> bool:
    """Whether a text has actions of a template."""
    return ACTION.search(text) is not None


def filled(text: str) -> str:
    """The text without its actions: lines of nothing else are blank, others are not known. Of the
    branches of a condition the first is kept."""
    text = LONE.sub(_blank, _first_branches(text))
    return ACTION.sub(lambda action: NOT_BREAK.sub(FILL, action[0]).replace("\n", FILL), text)


def _first_branches(text: str) -> str:
    at, kept = 0, []
    for begin, end in sorted(_other_branches(text)):
        if begin >= at:
            branch = text[begin:end]
            kept += [text[at:begin], NOT_BREAK.sub(" " if "\n" in branch else FILL, branch)]
            at = end
    return "".join((*kept, text[at:]))


def _other_branches(text: str) -> Iterator[tuple[int, int]]:
    """From each `else` to the `end` of its block."""
    blocks: list[int | None] = []  # where `else` stands in each open block
    for action in ACTION.finditer(text):
        word = WORD.match(action[0])
        match word[1] if word else "":
            case "if" | "range" | "with" | "define" | "block" | "for":
                blocks.append(None)
            case "else" | "elif" if blocks and blocks[-1] is None:
                blocks[-1] = action.start()
            case "end" | "endif" | "endfor" if blocks:
                begin = blocks.pop()
                if begin is not None:
                    yield begin, action.start()


def _blank(lines: re.Match[str]) -> str:
    """An empty line; where the line above goes on, as in a script, a word that is not known."""
    above = lines.string[: lines.start()].rsplit("\n", 2)[-2:-1] if lines.start() else []
    goes_on = bool(above) and above[0].rstrip().endswith("\\")
    blank = NOT_BREAK.sub(" ", lines[0])
    action = lines[0].strip(" \t")
    if not goes_on or "\n" in action:
        return blank
    return lines[0].replace(action, FILL * len(action))
