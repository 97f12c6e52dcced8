"""One Python file as its syntax: what it assigns, defines, imports and calls, by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from servec.source.located import Plain

DEPTH = 20
"""How far a list may be made of other lists."""


class Module:
    """The syntax of a file. One that this Python cannot parse is empty."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree

    @classmethod
    def parse(cls, path: Path) -> Module:
        try:
            return cls(ast.parse(path.read_bytes()))
        except (SyntaxError, ValueError, RecursionError, OSError):
            return cls(ast.Module([], []))

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))
        return {node.name: node for node in nodes}

    @cached_property
    def imported(self) -> dict[str, str]:
        """The name that each imported name has in its own module."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                found |= {item.asname or item.name: item.name for item in node.names}
        return found

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What is assigned to each name, wherever in the file, and what it is updated with."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    found.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                    found.setdefault(name, []).append(value)
                case ast.Call(ast.Attribute(ast.Name(name), "update"), [value]):
                    found.setdefault(name, []).append(value)
        return found

    def literal(self, name: str, depth: int = 0) -> Iterator[str]:
        """The words of a `Literal`, and of those that it is made of."""
        for value in self.assigned.get(name, ()) if depth < DEPTH else ():
            yield from self._literal(value, depth)

    def _literal(self, value: ast.expr, depth: int) -> Iterator[str]:
        match value:
            case ast.Constant(str(word)):
                yield word
            case ast.Name(name):
                yield from self.literal(name, depth + 1)
            case ast.Tuple(parts):
                for part in parts:
                    yield from self._literal(part, depth)
            case ast.Subscript(slice=part):
                yield from self._literal(part, depth)
            case ast.BinOp(left, ast.BitOr(), right):
                yield from self._literal(left, depth)
                yield from self._literal(right, depth)

    def items(self, name: str, depth: int = 0) -> Iterator[tuple[str, ast.expr]]:
        """The words of a mapping and what they stand for, or the words of a list."""
        for value in self.assigned.get(name, ()) if depth < DEPTH else ():
            yield from self._items(value, depth)

    def _items(self, value: ast.expr, depth: int) -> Iterator[tuple[str, ast.expr]]:
        match value:
            case ast.Dict(keys, values):
                for word, said in zip(keys, values, strict=True):
                    if word is None:
                        yield from self._items(said, depth)
                    elif isinstance(word, ast.Constant) and isinstance(word.value, str):
                        yield word.value, said
            case ast.List(parts) | ast.Tuple(parts) | ast.Set(parts):
                for part in parts:
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value, part
                    elif isinstance(part, ast.Starred):
                        yield from self._items(part.value, depth)
            case ast.Name(name):
                yield from self.items(name, depth + 1)
            case ast.Call(args=[part]):
                yield from self._items(part, depth)

    def calls(self, function: str) -> Iterator[ast.Call]:
        """The calls of a function or method of this name, in the order of the file."""
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        wanted = [node for node in calls if name_of(node.func) == function]
        return iter(sorted(wanted, key=lambda node: (node.lineno, node.col_offset)))

    def named_by(self, function: str) -> Iterator[str]:
        """The names that calls of a function give: its first argument, or `name`."""
        for call in self.calls(function):
            said = [*call.args[:1], *(item.value for item in call.keywords if item.arg == "name")]
            for value in said:
                words = constant(value)
                for word in words if isinstance(words, list) else [words]:
                    if isinstance(word, str):
                        yield word


def name_of(node: ast.expr) -> str | None:
    """The last part of a dotted name."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def constant(node: ast.expr) -> Plain:
    """The value of a literal, tuples and sets as lists; None for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return value if isinstance(value, str | int | float | dict) else None


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a file but for the docstrings of functions; what a formatted text inserts is
    an ellipsis."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(body=[ast.Expr(value=ast.Constant() as said), *_]):
                skipped.add(id(said))
            case ast.JoinedStr():
                skipped |= {id(part) for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str(text)) if id(node) not in skipped:
                yield text
            case ast.JoinedStr(parts) if id(node) not in skipped:
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts
                )
