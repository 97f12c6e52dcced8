"""Values that know where they were written.

    max_model_len: 16384        ->  At(value=16384, span=Span("specs/qwen3.yaml", 9, 22, 5))

A source file becomes a tree of `At` (a scalar), `List` and `Map`. Everything later in the compiler
points back into this tree, so the spans here are the only ones there are.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Value: TypeAlias = str | int | float | bool | None


class Span(NamedTuple):
    """A place in a source: file as a path from the project's root, line and column from 1,
    length in characters (1 where a value runs over several lines)."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class At(NamedTuple, Generic[T]):
    """A scalar and its place."""

    value: T
    span: Span


class Broken(str):
    """Text that could not be read as the value it was meant to be; a finding has been made, and
    nothing that follows from it is told."""

    __slots__ = ()


class List(NamedTuple):
    """A sequence; its place is its first character."""

    items: tuple[Node, ...]
    span: Span


class Entry(NamedTuple):
    """One `key: value` of a mapping."""

    key: At[str]
    value: Node


class Map(NamedTuple):
    """A mapping in the order of the file; keys are text and occur once. `broken` says that some
    of it could not be read, which a finding has told."""

    entries: dict[str, Entry]
    span: Span
    broken: bool = False

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return entry.value if entry else None


Scalar: TypeAlias = At[Value]
Node: TypeAlias = "Scalar | List | Map"
Plain: TypeAlias = "Value | list[Plain] | dict[str, Plain]"


def plain(node: Node) -> Plain:
    """The value without its places, as `json.loads` would give it."""
    match node:
        case Map(entries):
            return {key: plain(entry.value) for key, entry in entries.items()}
        case List(items):
            return [plain(item) for item in items]
        case At():
            value: Value = node.value
            return value


def place_inside(node: Node, path: str, *, of_key: bool = False) -> Span:
    """Where `a.b[0]` stands inside a value, or its key; the last of it that is there, where not all
    of it is."""
    if not path:
        return node.span
    if isinstance(node, Map):
        for key, entry in node.entries.items():
            if path == key and of_key:
                return entry.key.span
            if path.startswith(key) and (rest := path[len(key) :])[:1] in ("", ".", "["):
                return place_inside(entry.value, rest.removeprefix("."), of_key=of_key)
    if isinstance(node, List):
        number, _, rest = path.removeprefix("[").partition("]")
        if number.isdigit() and int(number) < len(node.items):
            item = node.items[int(number)]
            return place_inside(item, rest.removeprefix("."), of_key=of_key)
    return node.span


def kind_of(node: Node) -> str:
    """What a reader of YAML would call this value, for messages."""
    match node:
        case Map():
            return "a mapping"
        case List():
            return "a list"
        case At(None):
            return "nothing"
        case At(bool()):
            return "true or false"
        case At(int() | float()):
            return f"the number {node.value}"
        case _:
            return "text"
