"""Simple commands in a shell script, each word with its place.

    export VLLM_USE_V1=1
    exec vllm serve "$MODEL" --port 8000 \\
      --max-model-len 8k
      -> Command(words=(exec, vllm, serve, UNKNOWN, --port, 8000, --max-model-len, 8k), …)

What a variable or a substitution would give is not known: such a word is `UNKNOWN`, and a part of a
word that is not known is the character `HOLE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from servec.catalog.command_line import HOLE

UNKNOWN = HOLE
ENDS = frozenset(";&|()\n")
EXPANSION = re.compile(
    r"\$(?:\{[^}\n]{0,200}\}|\([^)\n]{0,200}\)|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])"
    r"|`[^`\n]{0,200}`"
)
REDIRECTION = re.compile(
    r"(?:[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}|&)?(?:<<-|<<<|<<|<>|<&|>&|>>|>\||<|>)"
)
TEMPLATE = re.compile(r"\{\{[^\n]*?\}\}")
PLAIN = re.compile(r"[^\s\"'\\$`;&|()<>]+")
QUOTED = re.compile(r"[^\"\\$`{]+")
SKIP = re.compile(r"[ \t\r]+|\\\r?\n")


class Word(NamedTuple):
    """A word without its quotes, and where it begins: line and column from 1."""

    text: str
    line: int
    column: int
    length: int


class Command(NamedTuple):
    """A simple command: its words in order, assignments and redirections left out of them."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...]


def commands(text: str, line: int = 1, column: int = 1, margin: int = 0) -> Iterator[Command]:
    """The simple commands of a script whose first character is at a place; `margin` is how far its
    further lines are indented there."""
    words: list[Word] = []
    assigned: list[Word] = []
    for word in _Lexer(text, line, column, margin).words():
        if word is None:
            if words or assigned:
                yield Command(tuple(words), tuple(assigned))
            words, assigned = [], []
        elif ASSIGNMENT.match(word.text) and (not words or words[0].text in EXPORTS):
            assigned.append(word)
        else:
            words.append(word)
    if words or assigned:
        yield Command(tuple(words), tuple(assigned))


ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
EXPORTS = ("export", "declare")


class _Lexer:
    def __init__(self, text: str, line: int, column: int, margin: int) -> None:
        self.margin = margin
        self.text = text
        self.at = 0
        self.line = line
        self.start = 1 - column  # where the line's first column is, in the text

    def words(self) -> Iterator[Word | None]:
        """Words, and None at each end of a command."""
        while self.at < len(self.text):
            skipped = SKIP.match(self.text, self.at)
            if skipped:
                self._advance(skipped.end())
                continue
            character = self.text[self.at]
            if redirection := REDIRECTION.match(self.text, self.at):
                self._redirection(redirection)
            elif character in ENDS:
                self._advance(self.at + 1)
                yield None
            elif character == "#":
                end = self.text.find("\n", self.at)
                self._advance(len(self.text) if end < 0 else end)
            else:
                yield self._word()

    def _advance(self, to: int) -> None:
        newlines = self.text.count("\n", self.at, to)
        if newlines:
            self.line += newlines
            self.start = self.text.rfind("\n", self.at, to) + 1 - self.margin
        self.at = to

    def _redirection(self, operator: re.Match[str]) -> None:
        """`2>&1`, `> file` and `<<EOF` with its text are no words of the command."""
        is_here = operator.group().lstrip("0123456789").rstrip("-") == "<<"
        self._advance(operator.end())
        while skipped := SKIP.match(self.text, self.at):
            self._advance(skipped.end())
        if self.at < len(self.text) and self.text[self.at] not in ENDS:
            mark = self._word().text
            if is_here:
                self._here(mark)

    def _here(self, mark: str) -> None:
        """Leaves out the text of a here-document; what else stands on its first line stays."""
        end = self.text.find("\n", self.at)
        found = re.compile(rf"^\t*{re.escape(mark)}\r?$", re.M).search(self.text, max(end, self.at))
        if found and end >= 0 and mark:
            text = self.text[end + 1 : found.end()]
            blank = "\n" * text.count("\n")
            self.text = self.text[: end + 1] + blank + self.text[found.end() :]

    def _word(self) -> Word:
        line, column, first = self.line, self.at - self.start + 1, self.at
        parts: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\r" or character in ENDS or character in "<>":
                break
            parts.append(self._part(character))
        raw = self.text[first : self.at]
        length = len(raw.partition("\n")[0]) or 1
        return Word("".join(parts), line, column, length)

    def _part(self, character: str) -> str:
        if character == "'":
            return self._quoted("'")
        if character == '"':
            return self._double()
        if character == "\\":
            taken = self.text[self.at + 1 : self.at + 2]
            self._advance(min(self.at + 2, len(self.text)))
            return "" if taken == "\n" else taken
        if found := EXPANSION.match(self.text, self.at) or TEMPLATE.match(self.text, self.at):
            self._advance(found.end())
            return HOLE
        plain = PLAIN.match(self.text, self.at)
        end = plain.end() if plain else self.at + 1
        part = self.text[self.at : end]
        self._advance(end)
        return part

    def _quoted(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        end = len(self.text) if end < 0 else end
        part = self.text[self.at + 1 : end]
        self._advance(min(end + 1, len(self.text)))
        return part

    def _double(self) -> str:
        parts = []
        self._advance(self.at + 1)
        while self.at < len(self.text) and self.text[self.at] != '"':
            if found := EXPANSION.match(self.text, self.at):
                self._advance(found.end())
                parts.append(HOLE)
            elif self.text[self.at] == "\\" and self.text[self.at + 1 : self.at + 2] in '"\\$`\n':
                taken = self.text[self.at + 1 : self.at + 2]
                parts.append("" if taken == "\n" else taken)
                self._advance(min(self.at + 2, len(self.text)))
            elif found := TEMPLATE.match(self.text, self.at):
                self._advance(found.end())
                parts.append(HOLE)
            else:
                plain = QUOTED.match(self.text, self.at)
                end = plain.end() if plain else self.at + 1
                parts.append(self.text[self.at : end])
                self._advance(end)
        self._advance(min(self.at + 1, len(self.text)))
        return "".join(parts)
