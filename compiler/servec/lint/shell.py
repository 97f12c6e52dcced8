"""Simple commands in a shell script, each word with its place.

    args=(--port 8000)
    export VLLM_USE_V1=1
    exec vllm serve "$MODEL" "${args[@]}" \\
      --max-model-len 8k
      -> Command(words=(exec, vllm, serve, UNKNOWN, --port, 8000, --max-model-len, 8k), …)

What a variable or a substitution would give is not known: such a word is `UNKNOWN`, and a part of a
word that is not known is the character `HOLE`. A list of words, or flags in a variable, is known
where the script sets it before. A command inside a substitution is a command too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from servec.catalog.command_line import HOLE
from servec.lint.places import Places

UNKNOWN = HOLE
DEPTH = 4
"""How deep substitutions in substitutions are read."""
ENDS = frozenset(";&|()\n")
NAME = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
TEMPLATE = re.compile(r"\{\{(?:(?!\{\{|\}\})[^\n])*\}\}")
LIST = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\(")
WORDS_OF = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*)(?:\[[@*]\])?\}|(?P<bare>[A-Za-z_]\w*))\Z"
    r"|\"\$\{(?P<quoted>[A-Za-z_]\w*)\[@\]\}\"\Z"
)
REDIRECTION = re.compile(
    r"(?:[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}|&)?(?:<<-|<<<|<<|<>|<&|>&|>>|>\||[<>](?!\())"
)
PLAIN = re.compile(r"[^\s\"'\\$`;&|()<>]+")
QUOTED = re.compile(r"[^\"\\$`{]+")
SIMPLE = re.compile(r"([^\s\"'\\$`;&|()<>#{0-9][^\s\"'\\$`;&|()<>{]*)(?=[ \t\n;|)]|\Z)")
# A line that ends what it begins: no open quote, escape, block or here-document, no assignment.
WHOLE_LINE = re.compile(r"(?:[^\n\"'\\`<#={}()]++|\"[^\"\n\\`]*+\"|'[^'\n]*+')*+\n")
SKIP = re.compile(r"[ \t\r]+|\\\r?\n")
INSIDE = re.compile(r"\\.|'[^']*+'|[\"(){}`]", re.S)
CLOSES = {"(": ")", "{": "}", "`": "`"}
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
EXPORTS = ("export", "declare")


class Script(NamedTuple):
    """A text that a shell may be given to run, and where it stands."""

    text: str
    places: Places

    def part(self, begin: int, end: int) -> Script:
        """A part of it."""
        text = self.text[begin:end]
        return Script(text, self.places.part([(0, text, begin)]))


class Word(NamedTuple):
    """A word without its quotes, and where it begins: line and column from 1."""

    text: str
    line: int
    column: int
    length: int
    script: Script | None = None
    """The word as a script, where it stands in quotes and has blanks."""
    of: str = ""
    """The variable that the word is, where its value is words of their own: `"${args[@]}"`."""


class Command(NamedTuple):
    """A simple command: its words in order, assignments and redirections left out of them."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...]
    here: Script | None = None
    """The here-document that it is given."""
    is_put_together: bool = False
    """Whether words of it were set before, so that some may stand under a condition."""


class _List(NamedTuple):
    """`name=(…)`, or `name+=(…)`."""

    name: str
    words: tuple[Word, ...]
    is_added: bool


def commands(
    script: Script, marks: re.Pattern[str] | None = None, depth: int = DEPTH
) -> Iterator[Command]:
    """The simple commands of a script, those inside of substitutions last. With `marks`, a line
    that is commands of its own, has none of the marks and sets no variable may be left out, which
    is much faster."""
    words: list[Word] = []
    assigned: list[Word] = []
    lists: dict[str, list[Word]] = {}
    lexer = _Lexer(script, marks)
    for word in lexer.words():
        if isinstance(word, _List):
            if not word.is_added:
                lists[word.name] = []
            lists.setdefault(word.name, []).extend(word.words)
        elif word is None:
            if words or assigned:
                yield _command(words, assigned, lists, lexer.here)
            words, assigned = [], []
        elif ASSIGNMENT.match(word.text) and (not words or words[0].text in EXPORTS):
            assigned.append(word)
            if flags := _flags(word):
                lists[flags.name] = list(flags.words)
        else:
            words.append(word)
    if words or assigned:
        yield _command(words, assigned, lists, lexer.here)
    for inner in lexer.inner if depth else ():
        yield from commands(inner, marks, depth - 1)


def _command(
    words: list[Word],
    assigned: list[Word],
    lists: dict[str, list[Word]],
    here: Script | None,
) -> Command:
    """With the words of each list at its place; a list that is not known stays one word."""
    known = any(word.of in lists for word in words)
    if known:
        words = [part for word in words for part in lists.get(word.of, [word])]
    return Command(tuple(words), tuple(assigned), here, known)


def _flags(word: Word) -> _List | None:
    """`ARGS="--port 8000 …"`: a variable whose value is flags, so that it is written without
    quotes where it is used."""
    name, _, value = word.text.partition("=")
    if not value.startswith("-") or not name.isidentifier():
        return None
    begin = len(name) + 1
    if word.script is None:
        alone = word._replace(text=value, column=word.column + begin)
        return _List(name, (alone,), is_added=False)
    inner = commands(word.script.part(begin, len(word.text)), depth=0)
    first = next(inner, None)
    return _List(name, first.words, is_added=False) if first else None


class _Lexer:
    def __init__(self, script: Script, marks: re.Pattern[str] | None) -> None:
        self.script = script
        self.text, self.places = script
        self.marks = marks
        self.at = 0
        self.heres: list[str] = []
        self.here: Script | None = None
        self.inner: list[Script] = []
        self.open: set[str] = set()

    def words(self) -> Iterator[Word | _List | None]:
        """Words, lists, and None at each end of a command."""
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
                self.here = None
            elif character == "#":
                end = text.find("\n", self.at)
                self.at = length if end < 0 else end
            elif found := LIST.match(text, self.at):
                self.at = found.end()
                name = found[0].rstrip("(=+")
                yield _List(name, tuple(self._listed()), is_added="+" in found[0])
            else:
                yield self._word()

    def _listed(self) -> Iterator[Word]:
        """The words of a list, up to its end."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if skipped := SKIP.match(self.text, self.at):
                self.at = skipped.end()
            elif character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character == ")":
                self.at += 1
                return
            elif character in ENDS or character in "<>":
                self.at += 1
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
            if mark not in self.open and (found := end.search(self.text, self.at)):
                self.here = self.script.part(self.at, found.start())
                self.at = found.end()
            else:
                self.open.add(mark)  # none closes it further down either
        self.heres = []

    def _word(self) -> Word:
        first = self.at
        pieces: list[tuple[int, str, int]] = []
        length = 0
        for part, begin in self._parts():
            pieces.append((length, part, begin))
            length += len(part)
        value = "".join(part for _, part, _ in pieces)
        written = self.text[first : self.at]
        raw = written.partition("\n")[0]
        script = None
        if " " in value or "\n" in value:
            script = Script(value, self.places.part(pieces))
        found = WORDS_OF.match(written) if written[:1] in '$"' else None
        name = (found["braced"] or found["bare"] or found["quoted"]) if found else ""
        return Word(value, *self.places.at(first), len(raw) or 1, script, name)

    def _parts(self) -> Iterator[tuple[str, int]]:
        """What a word is put together from, and where each part begins."""
        while self.at < len(self.text):
            begin = self.at
            character = self.text[begin]
            if self.text.startswith(("<(", ">("), begin):
                self.at = begin + 1
                yield self._substituted("("), begin
            elif character in " \t\r<>" or character in ENDS:
                return
            elif character == "'":
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
        if found := NAME.match(self.text, begin) or TEMPLATE.match(self.text, begin):
            self.at = found.end()
            return HOLE
        if self.text.startswith(("$(", "${"), begin):
            self.at = begin + 1
            return self._substituted(self.text[begin + 1])
        if self.text[begin] == "`":
            return self._substituted("`")
        run = known.match(self.text, begin)
        self.at = run.end() if run else begin + 1
        return self.text[begin : self.at]

    def _substituted(self, opening: str) -> str:
        """`HOLE` for what stands between a bracket and its end; a command in it is kept."""
        begin = self.at + 1
        end = self._closing(begin, opening)
        if end < 0:
            self.open.add(opening)
            self.at = begin
        else:
            self.at = end + 1
            if opening != "{":
                self.inner.append(self.script.part(begin, end))
        return HOLE

    def _closing(self, begin: int, opening: str) -> int:
        """Where the bracket that is open at `begin` ends, or -1. One that does not end is looked
        for once, so that a text of many is not read as often."""
        if opening in self.open:
            return -1
        depth, closing = 1, CLOSES[opening]
        is_quoted = False
        for found in INSIDE.finditer(self.text, begin):
            mark = found[0]
            if mark == '"':
                is_quoted = not is_quoted
            elif is_quoted and opening != "`":
                continue
            elif mark == closing:
                depth -= 1
                if not depth:
                    return found.start()
            elif mark == opening:
                depth += 1
        return -1
