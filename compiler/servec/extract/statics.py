"""A release's sources -> the lists that its parser does not tell, read without running anything.

ALGORITHMS = Literal["ngram", "eagle", *MORE]   literal: ALGORITHMS   ->  ngram, eagle, ...
TABLE = {"awq": AWQConfig}                      keys: [TABLE]         ->  awq
@Manager.register(["hermes", "pro"])            calls: register       ->  hermes, pro
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from packaging.version import Version

from servec.catalog.versions import first_that_holds, holds
from servec.extract.observation import Flag
from servec.extract.recipe import Quantization, Reading, Recipe
from servec.extract.syntax import Module, constant, name_of, texts

CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*\Z")
NOTE_CHARACTERS = 400


class Sources:
    """The files of a release, each parsed at most once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[Path, Module] = {}

    def paths(self, places: Iterable[str]) -> list[Path]:
        """The files that some places match, in the order of their names."""
        return sorted({path for place in places for path in self.root.glob(place)})

    def modules(self, places: Iterable[str], words: Iterable[str] = ()) -> list[Module]:
        """The syntax of the files that some places match; with `words`, of those that have one."""
        wanted = [word.encode() for word in words]
        return [
            self._module(path)
            for path in self.paths(places)
            if not wanted or any(word in path.read_bytes() for word in wanted)
        ]

    def _module(self, path: Path) -> Module:
        if path not in self._modules:
            self._modules[path] = Module.parse(path)
        return self._modules[path]


class Statics:
    """What the recipe's readings give for one release, and the flags with what they correct."""

    def __init__(
        self, recipe: Recipe, version: Version, root: Path, flags: tuple[Flag, ...]
    ) -> None:
        self.recipe = recipe
        self.version = version
        self.sources = Sources(root)
        self.flags = self._chosen(flags)

    @cached_property
    def lists(self) -> dict[str, tuple[str, ...]]:
        return {item.key.value: self._words(item.value) for item in self.recipe.lists}

    @cached_property
    def quantization(self) -> dict[str, int | None]:
        rule = first_that_holds(self.recipe.quantization, self.version)
        if rule is None:
            return {}
        minima = self._minima(rule)
        return {name: minima.get(name) for name in self._words(rule.names)}

    @cached_property
    def config_keys(self) -> dict[str, tuple[str, ...]]:
        rule = self.recipe.config_keys
        if rule is None:
            return {}
        wanted = {item.value for item in rule.classes}
        found: dict[str, tuple[str, ...]] = {}
        for module in self.sources.modules(_values(rule.files)):
            for name, node in module.classes.items():
                if name in wanted:
                    found.setdefault(name, tuple(_fields(node)))
        return found

    def _chosen(self, flags: tuple[Flag, ...]) -> tuple[Flag, ...]:
        """The flags, with the choices that the recipe has read from the sources."""
        rules = [rule for rule in self.recipe.flag_choices if holds(rule, self.version)]
        words = {rule.flag.value: self._words(rule.words) for rule in rules}
        found = (next((words[s] for s in flag.flags if words.get(s)), None) for flag in flags)
        return tuple(
            replace(flag, choices=own) if own else flag
            for flag, own in zip(flags, found, strict=True)
        )

    def _words(self, readings: tuple[Reading, ...]) -> tuple[str, ...]:
        """The words of the first reading that finds any, sorted."""
        for reading in readings:
            if holds(reading, self.version):
                words = set(self._read(reading)) - {item.value for item in reading.but}
                if words:
                    return tuple(sorted(words))
        return ()

    def _read(self, reading: Reading) -> Iterator[str]:
        if reading.flag is not None:
            yield from _choices(self.flags, reading.flag.value)
        if reading.strings is not None:
            yield from self._strings(reading)
        words = _values(
            part
            for part in (reading.literal, reading.members, reading.calls, *reading.keys)
            if part is not None
        )
        if words or reading.notes is not None:
            named = words if reading.notes is None else ()
            for module in self.sources.modules(_values(reading.files), named):
                yield from _of_module(module, reading)

    def _strings(self, reading: Reading) -> Iterator[str]:
        """Quoted words of the text itself: much faster than parsing a whole package."""
        assert reading.strings is not None
        quoted = re.compile(rf"""(["'])({reading.strings.value})\1""")
        for path in self.sources.paths(_values(reading.files)):
            text = path.read_text(encoding="utf-8", errors="replace")
            yield from (match[2] for match in quoted.finditer(text))

    def _minima(self, rule: Quantization) -> dict[str, int | None]:
        classes: dict[str, ast.ClassDef] = {}
        for module in self.sources.modules(_values(rule.classes)):
            for name, node in module.classes.items():
                classes.setdefault(name, node)
        minima: dict[str, int | None] = {}
        for module in self.sources.modules(_values(rule.files)):
            for table in rule.tables:
                for word, value in module.items(table.value):
                    owner = module.imported.get(name_of(value) or "", name_of(value) or "")
                    minima.setdefault(word, _minimum(classes, owner, rule.method.value))
        return minima


def _of_module(module: Module, reading: Reading) -> Iterator[str]:
    if reading.literal is not None:
        yield from module.literal(reading.literal.value)
    for table in reading.keys:
        yield from (word for word, _ in module.items(table.value))
    if reading.members is not None and (owner := module.classes.get(reading.members.value)):
        yield from (name for name in _assigned(owner) if CAPITALS.match(name))
    if reading.calls is not None:
        yield from module.named_by(reading.calls.value)
    if reading.notes is not None:
        pattern = re.compile(reading.notes.value, re.IGNORECASE)
        yield from (_short(text) for text in texts(module.tree) if pattern.search(text))


def _values(items: Iterable[object]) -> list[str]:
    return [str(getattr(item, "value", item)) for item in items]


def _choices(flags: tuple[Flag, ...], wanted: str) -> Iterator[str]:
    for flag in flags:
        if wanted in flag.flags:
            yield from (str(word) for word in flag.choices if word != "None")


def _assigned(owner: ast.ClassDef) -> Iterator[str]:
    for node in owner.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                yield name


def _fields(owner: ast.ClassDef) -> Iterator[str]:
    """The fields of a dataclass; class variables and private names are none."""
    for node in owner.body:
        match node:
            case ast.AnnAssign(target=ast.Name(name), annotation=kind) if name[0] != "_":
                if "ClassVar" not in ast.unparse(kind):
                    yield name


def _minimum(
    classes: dict[str, ast.ClassDef], name: str, method: str, depth: int = 0
) -> int | None:
    """The number that a class's own or inherited method comes to in the end, the least where that
    depends; returns before its last statement are of other platforms."""
    owner = classes.get(name)
    if owner is None or depth > 20:
        return None
    for node in owner.body:
        if isinstance(node, ast.FunctionDef) and node.name == method:
            numbers = [_number(value, classes, method, depth) for value in _final(node.body)]
            return min((number for number in numbers if number is not None), default=None)
    found = (
        _minimum(classes, name_of(base) or "", method, depth + 1)
        for base in owner.bases
        if name_of(base) != name
    )
    return next((number for number in found if number is not None), None)


def _final(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """What the last statement returns, in each of its branches."""
    match body[-1:]:
        case [ast.Return(ast.IfExp(_, one, other))]:
            yield from (one, other)
        case [ast.Return(ast.expr() as value)]:
            yield value
        case [ast.If(_, one, other)]:
            yield from _final(one)
            yield from _final(other)


def _number(
    value: ast.expr, classes: dict[str, ast.ClassDef], method: str, depth: int
) -> int | None:
    match value:
        case ast.Call(ast.Attribute(ast.Name(other), called)) if called == method:
            return _minimum(classes, other, method, depth + 1)
        case _:
            number = constant(value)
            return number if type(number) is int else None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= NOTE_CHARACTERS else text[: NOTE_CHARACTERS - 1] + "…"
