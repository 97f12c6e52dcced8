"""A command line as an engine's own parser reads it, as far as the catalogue of its releases tells.

    --tp 2 --enable-lora --max-model-len 8k
      -> Use(--tp-size, ("2",), abbreviated), Use(--enable-lora), Use(--max-model-len, ("8k",))
    --tpp 2 -> Fault(UNKNOWN, "--tpp")

The rules are those of argparse (Python 3.11, `ArgumentParser._parse_optional` and
`_get_option_tuples`); what an engine's parser does beyond them is data of its manifest.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from servec.catalog.released import ReleasedAt
from servec.ir.facts import Flag
from servec.ir.words import NEGATIVE_NUMBER

HOLE = "\0"
"""Stands in a word for a part that is not known, as a variable of a shell."""


_HELP = Flag(
    name="--help",
    spellings=("--help", "-h"),
    negatives=(),
    kind="switch",
    type="",
    nargs=None,
    choices=(),
    default=None,
    deprecated="",
    removed="",
    variable="",
)
HELP = dict.fromkeys(_HELP.spellings, _HELP)
"""What every parser has beside the flags of a release."""


class Syntax(NamedTuple):
    """What a parser takes beside exact names: unique beginnings, `_` for `-`, and keys of a JSON
    value behind a dot; `positionals` is how many bare words it takes. `levels` are short words with
    a number, as `-O3`, each with the flag that it becomes and the key of its JSON value, or ""."""

    abbreviations: bool = False
    underscores: bool = False
    dotted: bool = False
    positionals: int = 0
    levels: tuple[tuple[str, str, str], ...] = ()
    pairs: bool = False
    """Whether `a=1,b=2` is taken for JSON."""
    topics: bool = False
    """Whether `--help=topic` is taken."""
    items: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType({})
    """Flags of which each word is `a=b`, or a JSON object: the keys that it has, and may have."""
    suffixes: bool = False
    """Whether `8k` is taken for a number in JSON."""


class Use(NamedTuple):
    """A flag as it is used. `place` is the word's place; `key` is what stood behind a dot."""

    place: int
    word: str
    flag: Flag
    spelling: str
    values: tuple[str, ...]
    key: str = ""
    abbreviated: bool = False

    @property
    def negated(self) -> bool:
        return self.spelling in self.flag.negatives


class Kind(enum.Enum):
    """What is wrong with a word."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    STRAY = "stray"
    COUNT = "count"


class Fault(NamedTuple):
    """A word that the parser refuses; `others` are the flags that it could have meant."""

    kind: Kind
    place: int
    word: str
    others: tuple[str, ...] = ()
    wanted: str = ""


class Reading(NamedTuple):
    uses: tuple[Use, ...]
    faults: tuple[Fault, ...]


def read_words(words: Sequence[str], here: ReleasedAt, syntax: Syntax) -> Reading:
    """Read the words behind the program."""
    return _Reader(words, here, syntax).read()


class _Found(NamedTuple):
    """What an option's word means: the flag, its full spelling, a value tied to it, a key."""

    flag: Flag
    spelling: str
    tied: str | None
    key: str
    abbreviated: bool = False


class _Reader:
    def __init__(self, words: Sequence[str], here: ReleasedAt, syntax: Syntax) -> None:
        self.words = words
        self.options = HELP | here.flags | here.negatives
        self.syntax = syntax
        self.uses: list[Use] = []
        self.faults: list[Fault] = []

    def read(self) -> Reading:
        place, bare = 0, 0
        while place < len(self.words):
            word = self.words[place]
            if word == "--":
                place += 1
                continue
            if not self._is_option(word):
                bare += HOLE not in word
                if bare > self.syntax.positionals and HOLE not in word:
                    self.faults.append(Fault(Kind.STRAY, place, word))
                place += 1
                continue
            found = self._find(word, place)
            place += 1
            if isinstance(found, _Found):
                place = self._take(found, place)
            elif found is None:
                # An unknown option's values are stray words of no interest.
                while place < len(self.words) and not self._is_option(self.words[place]):
                    place += 1
        return Reading(tuple(self.uses), tuple(self.faults))

    def _is_option(self, word: str) -> bool:
        if not word.startswith("-") or word in ("-", "--"):
            return False
        if word in self.options:
            return True
        if NEGATIVE_NUMBER.match(word):
            return False
        return " " not in word or "=" in word

    def _find(self, word: str, place: int) -> _Found | None:
        head, equals, value = word.partition("=")
        if HOLE in head:
            return None
        tied = value if equals else None
        name, key = self._name(head)
        level = self._level(word, place)
        if level is not None:
            return level
        if word in self.options:
            return _Found(self.options[word], word, None, "")
        if name == _HELP.name and self.syntax.topics:
            tied = None
        if name in self.options:
            return _Found(self.options[name], name, tied, key)
        matches = self._beginnings(name) if self.syntax.abbreviations else []
        if len(matches) == 1:
            return _Found(self.options[matches[0]], matches[0], tied, key, abbreviated=True)
        short = self.options.get(word[:2])
        if short is not None and not word.startswith("--"):
            return _Found(short, word[:2], word[2:], "")
        if matches:
            self.faults.append(Fault(Kind.AMBIGUOUS, place, word, tuple(matches)))
        else:
            self.faults.append(Fault(Kind.UNKNOWN, place, name))
        return None

    def _level(self, word: str, place: int) -> _Found | None:
        """A short word with a number tied to it or behind it."""
        for short, name, key in self.syntax.levels:
            if not word.startswith(short) or name not in self.options:
                continue
            tied = word[len(short) :].removeprefix("=")
            if tied and not (key and tied.startswith(".")):
                return _Found(self.options[name], name, tied, key)
            following = self.words[place + 1] if place + 1 < len(self.words) else ""
            if not tied and following in LEVELS:
                return _Found(self.options[name], name, None, key)
        return None

    def _name(self, head: str) -> tuple[str, str]:
        """The option's name as the parser compares it, and the key behind the first dot."""
        name, dot, key = head.partition(".") if self.syntax.dotted else (head, "", "")
        if self.syntax.underscores and name.startswith("--"):
            name = "--" + name[2:].replace("_", "-")
        return name, key if dot else ""

    def _beginnings(self, name: str) -> list[str]:
        """Options that begin with a word; spellings of one flag are as many as they are."""
        if not name.startswith("--"):
            return []
        return sorted(option for option in self.options if option.startswith(name))

    def _take(self, found: _Found, place: int) -> int:
        """The values that follow a flag; the place behind them."""
        first = place - 1
        flag = found.flag
        values: list[str] = [] if found.tied is None else [found.tied]
        least, most = _counts(flag) if flag.takes_value or found.key else (0, 0)
        if found.key and flag.takes_value:
            least, most = 1, 1
        if found.tied is None:
            while (
                place < len(self.words)
                and len(values) < most
                and not self._is_option(self.words[place])
            ):
                values.append(self.words[place])
                place += 1
        if not least <= len(values) <= most:
            wanted = "no value" if most == 0 else ("a value" if most == 1 else f"{least} values")
            self.faults.append(Fault(Kind.COUNT, first, self.words[first], (flag.name,), wanted))
        else:
            word = self.words[first]
            use = Use(
                first, word, flag, found.spelling, tuple(values), found.key, found.abbreviated
            )
            self.uses.append(use)
        return place


MANY = 1 << 20
LEVELS = ("0", "1", "2", "3")
"""What may follow a short word as its number."""


def _counts(flag: Flag) -> tuple[int, int]:
    """How many values a flag takes: at least and at most."""
    match flag.nargs:
        case None:
            return 1, 1
        case "?":
            return 0, 1
        case "*":
            return 0, MANY
        case "+":
            return 1, MANY
        case int(count):
            return count, count
        case _:
            return 0, MANY


def _item_fault(value: str, required: tuple[str, ...], optional: tuple[str, ...]) -> str:
    if _is_none(value) or ("=" in value and "," not in value):
        return ""
    try:
        keys = json.loads(value).keys()
    except (ValueError, AttributeError, RecursionError):
        keys = set()
    if set(required) <= keys <= {*required, *optional}:
        return ""
    return f"is `{'='.join(required)}`, or a JSON object with {' and '.join(required)}"


PAIR = r"\s*[^\s=,]+\s*=\s*[+-]?\d+\s*"
PAIRS = re.compile(rf"{PAIR}(?:,{PAIR})*\Z")
"""Names with whole numbers."""


def value_fault(flag: Flag, value: str, syntax: Syntax) -> str:
    """What is wrong with a value; empty where nothing is, or nothing is known."""
    if HOLE in value:
        return ""
    if flag.choices:
        allowed = [str(choice) for choice in flag.choices]
        if value not in allowed and not (_is_none(value) and "None" in allowed):
            return f"is one of {', '.join(allowed)}"
    if flag.type.endswith("?") and _is_none(value):
        return ""
    if flag.name in syntax.items:
        return _item_fault(value, *syntax.items[flag.name])
    kind = flag.type.rstrip("?")
    if syntax.pairs and kind == "json" and PAIRS.match(value):
        return ""
    if syntax.suffixes and kind.startswith("json:"):
        value = expanded(value)
    return next(_type_faults(kind, value), "")


def _is_none(value: str) -> bool:
    return value in ("None", "")


def _type_faults(kind: str, value: str) -> Iterator[str]:
    """By the parser's type of a value; types that say nothing about it are left alone."""
    if kind == "int" and not _reads(int, value):
        yield "is a whole number"
    elif kind == "float" and not _reads(float, value):
        yield "is a number"
    elif kind == "human_readable_int" and not HUMAN.match(value):
        yield "is a whole number, or one with k, m, g, t or K, M, G, T"
    elif kind == "human_readable_int_or_auto" and not (HUMAN.match(value) or value == "auto"):
        yield "is a whole number, one with k or K and the like, or auto"
    elif kind == "nullable_kvs" and value and not PAIRS.match(value):
        yield "is names with whole numbers, as `image=4,audio=2`"
    elif kind in ("from_cli", "from_json") and not (value in LEVELS or value.lstrip()[:1] == "{"):
        yield "is a JSON object"
    elif kind in ("json", "json_list_type") and not _is_json(value):
        yield "is JSON"
    elif kind.startswith("json:") and not _is_json(value, dict):
        yield "is a JSON object"


def expanded(value: str) -> str:
    """A JSON text with its bare numbers as `80m` written out, for one that takes such."""
    parts = TEXT_OF_JSON.split(value)
    parts[::2] = [SUFFIXED.sub(lambda found: str(_human(found[0])), part) for part in parts[::2]]
    return "".join(parts)


def _human(number: str) -> int:
    suffix, digits = number[-1], number[:-1]
    base = 1000 if suffix.islower() else 1024
    return int(float(digits) * base ** (1 + "kmgt".index(suffix.lower())))


TEXT_OF_JSON = re.compile(r'("(?:[^"\\]|\\.)*")')
SUFFIXED = re.compile(r"\b(?:\d+(?:\.\d+)?[kmgt]|\d+[KMGT])\b")
HUMAN = re.compile(r"-?\d+\Z|\d+(\.\d+)?[kmgt]\Z|\d+[KMGT]\Z")


def _reads(as_type: type[int] | type[float], value: str) -> bool:
    try:
        as_type(value)
    except ValueError:
        return False
    return True


def _is_json(value: str, of: type = object) -> bool:
    try:
        return isinstance(json.loads(value), of)
    except (ValueError, RecursionError):
        return False
