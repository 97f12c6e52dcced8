"""A reader of systemd's quoting, written from systemd.syntax(7) and systemd.service(5)."""

from __future__ import annotations

ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
    '"': '"', "'": "'", "s": " ",
}  # fmt: skip


def read_command(line: str) -> list[str]:
    """The words that systemd would run: specifiers, quotes and escapes, then variables."""
    return [_variables(word) if index else word for index, word in enumerate(_split(line))]


def read_assignment(line: str) -> str:
    """The one assignment of an `Environment=` value; `$` has no meaning there."""
    (word,) = _split(line)
    return word


def _split(line: str) -> list[str]:
    line = _specifiers(line)
    words: list[str] = []
    current: str | None = None
    quote = ""
    index = 0
    while index < len(line):
        character = line[index]
        if character == "\\":
            text, index = _escape(line, index + 1)
            current = (current or "") + text
            continue
        if quote:
            if character == quote:
                quote = ""
            else:
                current = (current or "") + character
        elif character in "\"'" and current is None:
            quote, current = character, ""
        elif character in " \t":
            if current is not None:
                words.append(current)
            current = None
        else:
            current = (current or "") + character
        index += 1
    assert not quote, line
    return words if current is None else [*words, current]


def _escape(line: str, index: int) -> tuple[str, int]:
    kind = line[index]
    if kind == "x":
        return chr(int(line[index + 1 : index + 3], 16)), index + 3
    return ESCAPES[kind], index + 1


def _specifiers(line: str) -> str:
    out, index = "", 0
    while index < len(line):
        if line[index] == "%":
            assert line[index + 1] == "%", f"a specifier in {line!r}"
            index += 1
        out, index = out + line[index], index + 1
    return out


def _variables(word: str) -> str:
    out, index = "", 0
    while index < len(word):
        if word[index] == "$":
            assert word[index + 1] == "$", f"a variable in {word!r}"
            index += 1
        out, index = out + word[index], index + 1
    return out
