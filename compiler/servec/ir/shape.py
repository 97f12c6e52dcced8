"""Shapes: what a declared value may look like.

A field of a declaration (`ir/decl.py`) names its shape once. The declare pass reads values by it,
`schema.py` makes the JSON Schema from it, and the reference pages their tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar, dataclass_transform


class Text(NamedTuple):
    """Text, of a certain form where `pattern` is given; `what` names that form."""

    pattern: str = ""
    what: str = "text"

    def takes(self, text: str) -> bool:
        """Whether a text has the form. Most forms are never asked in one run, so that a pattern is
        compiled when it is: `re` keeps it."""
        return not self.pattern or re.match(self.pattern, text) is not None


class Bool(NamedTuple):
    """`true` or `false`."""


class Int(NamedTuple):
    """A whole number of at least `minimum` and at most `maximum`. Where it is `judged`, a rule of
    its own tells of one that is too small."""

    minimum: int = 0
    maximum: int | None = None
    judged: bool = False


class Number(NamedTuple):
    """A number, whole or not, of at least `minimum`."""

    minimum: float = 0.0


class Choice(NamedTuple):
    """One of a few words. `theirs` maps words of another vocabulary to the right ones here, and
    `aliases` what people write to what is meant."""

    words: tuple[str, ...]
    theirs: Mapping[str, str] = MappingProxyType({})
    vocabulary: tuple[str, str] = ("", "")  # whose words they are, whose these are
    aliases: Mapping[str, str] = MappingProxyType({})


class Anything(NamedTuple):
    """Any value but nothing: a parameter of an engine, judged later."""


class ListOf(NamedTuple):
    """A list of one shape, of at least `minimum` items and at most `maximum`."""

    item: Shape
    minimum: int = 0
    maximum: int | None = None


class MapOf(NamedTuple):
    """A mapping whose keys are data; `key` restricts them."""

    value: Shape
    key: Text | Choice = Text()


class Parameters(NamedTuple):
    """A mapping of an engine's parameters, kept as it was written."""


class Record(NamedTuple):
    """A mapping with known keys: the fields of a dataclass of `ir/decl.py`."""

    of: type[Any]


class Later(NamedTuple):
    """A mapping that is kept as it was written and read by a record when something needs it."""

    module: str
    name: str

    def record(self) -> Record:
        from importlib import import_module

        return Record(getattr(import_module(self.module), self.name))


class Either(NamedTuple):
    """A scalar or a mapping, told apart by what stands there."""

    scalar: Shape
    mapping: Record


class OrNull(NamedTuple):
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


class Key(NamedTuple):
    """One key of a record: its shape, whether it must be there, and a sentence about it."""

    name: str
    field: str
    shape: Shape
    required: bool
    doc: str
    rest: bool


class Declared(NamedTuple):
    """What a class says of one of its keys; `default` is absent where the key must be there."""

    shape: Shape
    doc: str
    name: str
    default: Any
    rest: bool


def key(
    shape: Shape, doc: str, *, required: bool = False, name: str = "", absent: bool = False
) -> Any:
    """Declare a record's field as a key of the file; `name` is the key if it is no identifier.
    A list that is not there is empty, or None where that is something else (`absent`)."""
    empty: Any = () if isinstance(shape, ListOf | MapOf) and not absent else None
    return Declared(shape, doc, name, MISSING if required else empty, False)


def rest(shape: Shape, doc: str) -> Any:
    """Declare the field that takes every key that no other field names."""
    return Declared(shape, doc, "", (), True)


R = TypeVar("R")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def declaration(cls: type[R]) -> type[R]:
    """A record of declarations: frozen, with slots, made by the names of its fields; equal to
    itself alone. It is what a frozen dataclass is, less what takes dataclasses long to make."""
    space = dict(vars(cls))
    own = {name: space.pop(name, None) for name in space.get("__annotations__", {})}
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    defaults = {
        name: item.default if isinstance(item, Declared) else MISSING for name, item in own.items()
    }
    space |= {
        "__slots__": tuple(own),
        "__declared__": own,
        "__init__": _initializer(cls.__name__, defaults),
        "__setattr__": _frozen,
        "__delattr__": _frozen,
        "__repr__": _shown,
    }
    made: Any = type(cls)
    found: type[R] = made(cls.__name__, cls.__bases__, space)
    return found


def _initializer(name: str, defaults: dict[str, Any]) -> Any:
    lacking = {own for own, default in defaults.items() if default is MISSING}

    def init(self: Any, **values: Any) -> None:
        if not lacking <= values.keys() <= defaults.keys():
            odd = lacking - values.keys() or values.keys() - defaults.keys()
            raise TypeError(f"{name}: {', '.join(sorted(odd))}")
        for own, value in (defaults | values).items():
            _set(self, own, value)

    return init


_set = object.__setattr__


def _frozen(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name}")


def _shown(self: Any) -> str:
    pairs = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields_of(type(self)))
    return f"{type(self).__name__}({pairs})"


def fields_of(record: type[Any]) -> tuple[str, ...]:
    """The names of a declaration's fields, in the order of the class; none of another class."""
    return tuple(getattr(record, "__declared__", ()))


def changed(record: R, **values: Any) -> R:
    """A declaration with other values in some of its fields."""
    own = {name: getattr(record, name) for name in fields_of(type(record))}
    return type(record)(**(own | values))


_KEYS: dict[type[Any], dict[str, Key]] = {}


def keys_of(record: type[Any]) -> dict[str, Key]:
    """The keys of a record by their name in the file, in the order of the class."""
    if record not in _KEYS:
        _KEYS[record] = _read_keys(record)
    return _KEYS[record]


def _read_keys(record: type[Any]) -> dict[str, Key]:
    found = {}
    for name, item in record.__declared__.items():
        if isinstance(item, Declared):
            own = item.name or name
            required = item.default is MISSING
            found[own] = Key(own, name, item.shape, required, item.doc, item.rest)
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


def homes_of(name: str, root: type[Any]) -> list[str]:
    """The records of a file, from its root, that have a key of this name: `the file itself`,
    "`shard`"; what is below a mapping of free keys as "`models.NAME`"."""
    found, waiting, seen = [], [(root, "")], set[type[Any]]()
    while waiting:
        record, path = waiting.pop(0)
        if record in seen:
            continue
        seen.add(record)
        keys = keys_of(record)
        if name in keys and not keys[name].rest:
            found.append(f"`{path}`" if path else "the file itself")
        for item in keys.values():
            inner = f"{path}.{item.name}" if path else item.name
            waiting += [(one, inner + step) for one, step in _records(item.shape)]
    return found


def _records(shape: Shape, step: str = "") -> Iterator[tuple[type[Any], str]]:
    match shape:
        case Record(of):
            yield of, step
        case ListOf(item):
            yield from _records(item, step)
        case MapOf(value):
            yield from _records(value, f"{step}.NAME")
        case Either(_, inner) | OrNull(inner):
            yield from _records(inner, step)
