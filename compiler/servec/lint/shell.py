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
from servec.lint.places import Places

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
SIMPLE = re.compile(r"([^\s\"'\\$`;&|()<>#{0-9][^\s\"'\\$`;&|()<>{]*)(?=[ \t\n;|)]|\Z)")
# A line that ends what it begins: no open quote, escape, block or here-document, no assignment.
WHOLE_LINE = re.compile(r"(?:[^\n\"'\\`<#={}()]++|\"[^\"\n\\`]*+\"|'[^'\n]*+')*+\n")
SKIP = re.compile(r"[ \t\r]+|\\\r?\n")


class Script(NamedTuple):
    """A text that a shell may be given to run, and where it stands."""

    text: str
    places: Places


class Word(NamedTuple):
    """A word without its quotes, and where it begins: line and column from 1."""

    text: str
    line: int
    column: int
    length: int
    script: Script | None = None
    """The word as a script, where it stands in quotes and has blanks."""


class Command(NamedTuple):
    """A simple command: its words in order, assignments and redirections left out of them."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...]


def commands(script: Script, marks: re.Pattern[str] | None = None) -> Iterator[Command]:
    """The simple commands of a script. With `marks`, a line that is commands of its own, has none
    of the marks and sets no variable may be left out, which is much faster."""
    words: list[Word] = []
    assigned: list[Word] = []
    for word in _Lexer(script, marks).words():
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
    def __init__(self, script: Script, marks: re.Pattern[str] | None) -> None:
        self.text, self.places = script
        self.marks = marks
        self.at = 0
        self.heres: list[str] = []

    def words(self) -> Iterator[Word | None]:
        """Words, and None at each end of a command."""
        text, length = self.text, len(self.text)
        self._leave_lines()
        while self.at < length:
            if skipped := SKIP.match(text, self.at):
                self.at = skipped.end()
                continue
            if simple := SIMPLE.match(text, self.at):
                self.at = simple.end()
                yield Word(simple[1], *self.places.at(simple.start()), len(simple[1]))
                continue
            character = text[self.at]
            if redirection := REDIRECTION.match(text, self.at):
                self._redirection(redirection)
            elif character in ENDS:
                self.at += 1
                if character == "\n":
                    self._leave_heres()
                    self._leave_lines()
                yield None
            elif character == "#":
                end = text.find("\n", self.at)
                self.at = length if end < 0 else end
            else:
                yield self._word()

    def _leave_lines(self) -> None:
        """Leaves out the whole lines that follow and have no mark."""
        while self.marks and (line := WHOLE_LINE.match(self.text, self.at)):
            if self.marks.search(line[0]):
                return
            self.at = line.end()

    def _redirection(self, operator: re.Match[str]) -> None:
        """`2>&1`, `> file` and `<<EOF` with its text are no words of the command."""
        is_here = operator.group().lstrip("0123456789").rstrip("-") == "<<"
        self.at = operator.end()
        while skipped := SKIP.match(self.text, self.at):
            self.at = skipped.end()
        if self.at < len(self.text) and self.text[self.at] not in ENDS:
            mark = self._word().text
            if is_here and mark:
                self.heres.append(mark)

    def _leave_heres(self) -> None:
        """Leaves out the texts of the here-documents that the line before has named."""
        for mark in self.heres:
            end = re.compile(rf"^\t*{re.escape(mark)}\r?$", re.M)
            if found := end.search(self.text, self.at):
                self.at = found.end()
        self.heres = []

    def _word(self) -> Word:
        first = self.at
        pieces: list[tuple[int, str, int]] = []
        length = 0
        for part, begin in self._parts():
            pieces.append((length, part, begin))
            length += len(part)
        value = "".join(part for _, part, _ in pieces)
        raw = self.text[first : self.at].partition("\n")[0]
        script = None
        if " " in value or "\n" in value:
            script = Script(value, self.places.part(pieces))
        return Word(value, *self.places.at(first), len(raw) or 1, script)

    def _parts(self) -> Iterator[tuple[str, int]]:
        """What a word is put together from, and where each part begins."""
        while self.at < len(self.text):
            begin = self.at
            character = self.text[begin]
            if character in " \t\r<>" or character in ENDS:
                return
            if character == "'":
                end = self.text.find("'", begin + 1)
                end = len(self.text) if end < 0 else end
                self.at = min(end + 1, len(self.text))
                yield self.text[begin + 1 : end], begin + 1
            elif character == '"':
                self.at += 1
                yield from self._double()
            elif character == "\\":
                taken = self.text[begin + 1 : begin + 2]
                self.at = min(begin + 2, len(self.text))
                yield "" if taken == "\n" else taken, begin + 1
            else:
                yield self._known_or_not(PLAIN), begin

    def _double(self) -> Iterator[tuple[str, int]]:
        while self.at < len(self.text) and self.text[self.at] != '"':
            begin = self.at
            escaped = self.text[begin + 1 : begin + 2]
            if self.text[begin] == "\\" and escaped and escaped in '"\\$`\n':
                self.at = begin + 2
                yield "" if escaped == "\n" else escaped, begin + 1
            else:
                yield self._known_or_not(QUOTED), begin
        self.at = min(self.at + 1, len(self.text))

    def _known_or_not(self, known: re.Pattern[str]) -> str:
        """The run of text that follows, or `HOLE` for an expansion."""
        begin = self.at
        if found := EXPANSION.match(self.text, begin) or TEMPLATE.match(self.text, begin):
            self.at = found.end()
            return HOLE
        run = known.match(self.text, begin)
        self.at = run.end() if run else begin + 1
        return self.text[begin : self.at]
