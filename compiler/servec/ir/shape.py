"""Shapes: what a declared value may look like.

A field of a declaration (`ir/decl.py`) names its shape once. The declare pass reads values by it,
`schema.py` makes the JSON Schema from it, and the reference pages their tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Text, of a certain form where `pattern` is given; `what` names that form."""

    pattern: re.Pattern[str] | None = None
    what: str = "text"


@dataclass(frozen=True, slots=True)
class Bool:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number of at least `minimum` and at most `maximum`."""

    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number, whole or not, of at least `minimum`."""

    minimum: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words. `theirs` maps words of another vocabulary to the right ones here, and
    `aliases` what people write to what is meant."""

    words: tuple[str, ...]
    theirs: Mapping[str, str] = field(default_factory=dict)
    vocabulary: tuple[str, str] = ("", "")  # whose words they are, whose these are
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value but nothing: a parameter of an engine, judged later."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape, of at least `minimum` items and at most `maximum`."""

    item: Shape
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose keys are data; `key` restricts them."""

    value: Shape
    key: Text | Choice = Text()


@dataclass(frozen=True, slots=True)
class Parameters:
    """A mapping of an engine's parameters, kept as it was written."""


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with known keys: the fields of a dataclass of `ir/decl.py`."""

    of: type[Any]


@dataclass(frozen=True, slots=True)
class Later:
    """A mapping that is kept as it was written and read by a record when something needs it."""

    module: str
    name: str

    def record(self) -> Record:
        from importlib import import_module

        return Record(getattr(import_module(self.module), self.name))


@dataclass(frozen=True, slots=True)
class Either:
    """A scalar or a mapping, told apart by what stands there."""

    scalar: Shape
    mapping: Record


@dataclass(frozen=True, slots=True)
class OrNull:
    """The shape, or `null` where a key is said to have no value."""

    shape: Shape


Shape: TypeAlias = (
    Text
    | Bool
    | Int
    | Number
    | Choice
    | Anything
    | ListOf
    | MapOf
    | Parameters
    | Later
    | Record
    | Either
    | OrNull
)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a record: its shape, whether it must be there, and a sentence about it."""

    name: str
    field: str
    shape: Shape
    required: bool
    doc: str
    rest: bool


def key(shape: Shape, doc: str, *, required: bool = False, name: str = "") -> Any:
    """Declare a record's field as a key of the file; `name` is the key if it is no identifier."""
    metadata = {"shape": shape, "doc": doc, "name": name, "rest": False}
    empty: Any = () if isinstance(shape, ListOf | MapOf) else None
    default: Any = MISSING if required else empty
    return field(default=default, metadata=metadata)


def rest(shape: Shape, doc: str) -> Any:
    """Declare the field that takes every key that no other field names."""
    return field(default=(), metadata={"shape": shape, "doc": doc, "name": "", "rest": True})


_KEYS: dict[type[Any], dict[str, Key]] = {}


def keys_of(record: type[Any]) -> dict[str, Key]:
    """The keys of a record by their name in the file, in the order of the class."""
    if record not in _KEYS:
        _KEYS[record] = _read_keys(record)
    return _KEYS[record]


def _read_keys(record: type[Any]) -> dict[str, Key]:
    found = {}
    for item in fields(record):
        if "shape" in item.metadata:
            name = item.metadata["name"] or item.name
            found[name] = Key(
                name,
                item.name,
                item.metadata["shape"],
                item.default is MISSING,
                item.metadata["doc"],
                item.metadata["rest"],
            )
    return found


def wanted(shape: Shape) -> str:
    """What a shape asks for, in the words of a message."""
    match shape:
        case Text(_, what):
            return what
        case Bool():
            return "true or false"
        case Int(minimum, None):
            return f"a whole number of at least {minimum}"
        case Int(minimum, maximum):
            return f"a whole number from {minimum} to {maximum}"
        case Number(minimum):
            return f"a number of at least {minimum:g}"
        case Choice(words):
            return "one of " + ", ".join(f"`{word}`" for word in words)
        case Anything():
            return "a value"
        case ListOf():
            return "a list"
        case MapOf() | Parameters() | Record() | Later():
            return "a mapping"
        case Either(scalar):
            return f"{wanted(scalar)} or a mapping"
        case OrNull(inner):
            return f"{wanted(inner)} or null"
