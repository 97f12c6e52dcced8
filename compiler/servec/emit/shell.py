"""Bash: words and lines of words, quoted so that bash reads back exactly what was meant.

The output depends on no locale, gives shellcheck nothing to say and is as shfmt would write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from servec.ir.slots import Filled, Slot, Word

# Without quotes only what bash, shellcheck and a reader's eye all take for plain words. `=` and `,`
# are left out: inside an array shellcheck suspects a lost index or separator.
BARE = re.compile(r"[A-Za-z0-9_@%+:./-]+\Z")
RESERVED = frozenset((
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
))  # fmt: skip
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# In single quotes shellcheck takes these for a mistake about expansion or escaping.
QUOTED_TWICE = re.compile(r"['$`\\]")
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "'": "\\'", "\\": "\\\\"}


def quote(word: str) -> str:
    """One word of bash. NUL cannot be in one and is refused earlier."""
    if BARE.match(word) and word not in RESERVED:
        return word
    if CONTROL.search(word):
        return "$'" + "".join(_escaped(character) for character in word) + "'"
    if word.startswith("~"):
        return "\\~" + (quote(word[1:]) if word[1:] else "")
    if not QUOTED_TWICE.search(word):
        return f"'{word}'"
    return '"' + re.sub(r'(["$`\\])', r"\\\1", word) + '"'


def _escaped(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if CONTROL.match(character):
        return "".join(f"\\{byte:03o}" for byte in character.encode())
    return character


def quoted(words: Iterable[str]) -> str:
    return " ".join(map(quote, words))


def expanded(word: Word) -> str:
    """One word whose slots are variables of the script."""
    if not isinstance(word, Filled):
        return quote(word)
    if len(word.parts) == 1:
        return f'"${word.slots[0]}"'
    pieces = (
        f"${{{part.name}}}" if isinstance(part, Slot) else re.sub(r'(["$`\\])', r"\\\1", part)
        for part in word.parts
    )
    return f'"{"".join(pieces)}"'


def where(variable: str, words: Iterable[Word]) -> str:
    """Words that are there where a variable of the script is not empty."""
    return " ".join(f"${{{variable}:+{expanded(word)}}}" for word in words)
