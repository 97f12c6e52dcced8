"""Located values -> typed records, by the shapes that the records declare.

What does not fit is a finding and leaves a hole: an optional key falls to its default, a record
without a required key is left out. Unknown keys are findings with the nearest known one.
"""

from __future__ import annotations

import math
import re
from typing import Any, TypeVar

from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest, same_ending
from servec.ir.shape import (
    Anything,
    Bool,
    Choice,
    Either,
    Int,
    Later,
    ListOf,
    MapOf,
    Number,
    OrNull,
    Parameters,
    Record,
    Shape,
    Text,
    homes_of,
    keys_of,
    wanted,
)
from servec.source.located import At, Broken, List, Map, Node, Span, kind_of

R = TypeVar("R")
Path = tuple[str, ...]


class _Hole:
    """No value: a finding has been made."""


HOLE = _Hole()
API_KEY = "the key is a secret: `systemd` and `kubernetes` of servec.yaml have `api_key` for it"


def read_record(of: type[R], node: Node, findings: Findings, path: Path = ()) -> R | None:
    """The record that a mapping declares, or None where it cannot be had."""
    value = _Reader(findings, of).record(of, node, path, None)
    return None if isinstance(value, _Hole) else value


class _Reader:
    def __init__(self, findings: Findings, root: type[Any]) -> None:
        self.findings = findings
        self.root = root

    def value(self, shape: Shape, node: Node, path: Path, key: At[str] | None) -> Any:
        if isinstance(node, At) and isinstance(node.value, Broken):
            return HOLE
        match shape:
            case Text(_, what):
                if not isinstance(node, At) or not isinstance(node.value, str):
                    return self.wrong(shape, node, path)
                if not shape.takes(node.value):
                    return self.bad(node, path, what)
                return node
            case Bool():
                fits = isinstance(node, At) and isinstance(node.value, bool)
                return node if fits else self.wrong(shape, node, path)
            case Int():
                return self.whole(shape, node, path)
            case Number(minimum):
                return self.number(shape, node, path, minimum)
            case Choice():
                return self.choice(shape, node, path)
            case Anything():
                fits = not (isinstance(node, At) and node.value is None)
                return node if fits else self.wrong(shape, node, path)
            case Parameters() | Later():
                return node if isinstance(node, Map) else self.wrong(shape, node, path)
            case ListOf(item, minimum, maximum):
                return self.sequence(shape, item, node, path, minimum, maximum)
            case MapOf(value, key_shape):
                return self.mapping(shape, value, key_shape, node, path)
            case Record(of):
                return self.record(of, node, path, key)
            case Either(scalar, record):
                chosen = record if isinstance(node, Map) else scalar
                return self.value(chosen, node, path, key)
            case OrNull(inner):
                null = isinstance(node, At) and node.value is None
                return node if null else self.value(inner, node, path, key)

    def whole(self, shape: Int, node: Node, path: Path) -> Any:
        if not isinstance(node, At) or type(node.value) is not int:
            return self.wrong(shape, node, path)
        minimum, maximum, judged = shape
        too_small = node.value < minimum and not judged
        if too_small or (maximum is not None and node.value > maximum):
            return self.bad(node, path, wanted(shape))
        return node

    def number(self, shape: Shape, node: Node, path: Path, minimum: float) -> Any:
        if not isinstance(node, At) or type(node.value) not in (int, float):
            return self.wrong(shape, node, path)
        if not node.value >= minimum or math.isinf(node.value):
            return self.bad(node, path, wanted(shape))
        return node

    def choice(self, shape: Choice, node: Node, path: Path) -> Any:
        if not isinstance(node, At) or not isinstance(node.value, str):
            return self.wrong(shape, node, path)
        word = node.value
        if word in shape.words:
            return node
        if word in shape.theirs:
            theirs, ours = shape.vocabulary
            self.findings.add(
                codes.WRONG_VOCABULARY,
                node.span,
                word=word,
                theirs=theirs,
                ours=ours,
                right=shape.theirs[word],
            )
            return HOLE
        near = shape.aliases.get(word) or nearest(word, shape.words)
        return self.bad(node, path, wanted(shape), near)

    def sequence(
        self, shape: Shape, item: Shape, node: Node, path: Path, minimum: int, maximum: int | None
    ) -> Any:
        if not isinstance(node, List):
            return self.wrong(shape, node, path)
        count = len(node.items)
        if count < minimum or (maximum is not None and count > maximum):
            size = f"{minimum}" if minimum == maximum else f"at least {minimum}"
            found = f"a list of {count}"
            self.add_wrong(node.span, path, f"a list of {size}", found)
            return HOLE
        values = (
            self.value(item, child, (*path, str(index)), None)
            for index, child in enumerate(node.items)
        )
        kept = tuple(value for value in values if value is not HOLE)
        return HOLE if len(kept) < minimum else kept

    def mapping(
        self, shape: Shape, value: Shape, key_shape: Text | Choice, node: Node, path: Path
    ) -> Any:
        from servec.ir.words import Item

        if not isinstance(node, Map):
            return self.wrong(shape, node, path)
        items = []
        for entry in node.entries.values():
            if not self.key_fits(key_shape, entry.key, path):
                continue
            child = self.value(value, entry.value, (*path, entry.key.value), entry.key)
            if child is not HOLE:
                items.append(Item(entry.key, child))
        return tuple(items)

    def key_fits(self, shape: Text | Choice, key: At[str], path: Path) -> bool:
        if isinstance(shape, Choice):
            node: Node = At(key.value, key.span)
            return self.choice(shape, node, (*path, key.value)) is not HOLE
        if shape.takes(key.value):
            return True
        from servec.ir.words import NAME, NAME_CHARACTERS

        if shape is NAME:
            fitting = re.sub(r"[^a-z0-9]+", "-", key.value.lower()).strip("-")[:NAME_CHARACTERS]
            self.findings.add(
                codes.BAD_NAME,
                key.span,
                name=key.value,
                what="a model",
                limit=NAME_CHARACTERS,
                suggestion=fitting or None,
            )
            return True  # what refers to the model finds it
        self.bad(key, (*path, key.value), shape.what)
        return False

    def record(self, of: type[Any], node: Node, path: Path, key: At[str] | None) -> Any:
        fields: dict[str, Any] = {"span": node.span}
        if "name" in of.__slots__ and "name" not in keys_of(of) and key is not None:
            fields["name"] = key
        if not isinstance(node, Map):
            hole = self.wrong(Record(of), node, path)
            return of(**fields, said={}, holes=None) if "holes" in of.__slots__ else hole
        keys = keys_of(of)
        rest = next((item for item in keys.values() if item.rest), None)
        said = {name: entry.key.span for name, entry in node.entries.items()}
        others, holes = [], set()
        for name, entry in node.entries.items():
            known = keys.get(name)
            if known is not None and not known.rest:
                child = self.value(known.shape, entry.value, (*path, name), entry.key)
                if child is HOLE:
                    holes.add(name)
                else:
                    fields[known.field] = child
            elif rest is not None and not name.startswith("_"):
                others.append(entry)
            else:
                meant = self.unknown_key(of, entry.key, path)
                said.setdefault(meant or name, entry.key.span)
                holes |= {meant} if meant and meant not in node.entries else set()
        if "holes" in of.__slots__:
            fields |= {"said": said, "holes": None if node.broken else frozenset(holes)}
        if rest is not None:
            one = Map({entry.key.value: entry for entry in others}, node.span)
            fields[rest.field] = self.mapping(rest.shape, rest.shape, Text(), one, path)
        return self.complete(of, node, fields, said, path, key)

    def complete(
        self,
        of: type[Any],
        node: Map,
        fields: dict[str, Any],
        said: dict[str, Span],
        path: Path,
        key: At[str] | None,
    ) -> Any:
        whole = True
        for item in keys_of(of).values():
            if item.required and item.field not in fields:
                whole = False
                if item.name not in said and not node.broken:
                    self.findings.add(
                        codes.MISSING_KEY,
                        key.span if key else node.span,
                        where=_where(path),
                        key=item.name,
                        advice=f"add `{item.name}:` ({item.doc})",
                    )
        return of(**fields) if whole else HOLE

    def unknown_key(self, of: type[Any], key: At[str], path: Path) -> str | None:
        """Tell of an unknown key, and give the one that was meant, if any is near."""
        if key.value == "profiles" and "size_range" in keys_of(of):
            self.findings.add(codes.PROFILES, key.span)
            return None
        known = [name for name, item in keys_of(of).items() if not item.rest]
        # Where a parameter of the engine may be meant, the end of its name says nothing.
        ending = None if "overrides" in known else same_ending(key.value, known)
        near = ending or nearest(key.value, known)
        listed = "known keys: " + ", ".join(known)
        homes = homes_of(key.value, self.root)
        if key.value.replace("-", "_") == "api_key" and "overrides" in known:
            near, listed = None, API_KEY
        elif homes:
            near, listed = None, f"`{key.value}` is a key of {' and of '.join(homes)}"
        elif near is None and "overrides" in known:
            listed = f"a parameter of the engine goes under `overrides:`; {listed}"
        self.findings.add(
            codes.UNKNOWN_KEY,
            key.span,
            key=key.value,
            where=_where(path),
            known="" if near else listed,
            suggestion=near,
        )
        return near

    def wrong(self, shape: Shape, node: Node, path: Path) -> _Hole:
        if isinstance(node, Map) and node.broken:
            return HOLE
        advice = ""
        text_is_wanted = isinstance(shape, Text | Choice)
        if text_is_wanted and isinstance(node, At) and node.value is not None:
            value = str(node.value).lower() if isinstance(node.value, bool) else node.value
            advice = f'put it in quotes: "{value}"'
        elif isinstance(node, At) and _is_quoted(shape, node.value):
            advice = f"write {node.value} without quotes"
        self.add_wrong(node.span, path, wanted(shape), kind_of(node), advice)
        return HOLE

    def add_wrong(
        self, span: Span, path: Path, expected: str, found: str, advice: str = ""
    ) -> None:
        where = _where(path)
        self.findings.add(
            codes.WRONG_TYPE, span, where=where, wanted=expected, found=found, advice=advice
        )

    def bad(self, node: At[Any], path: Path, expected: str, suggestion: str | None = None) -> _Hole:
        self.findings.add(
            codes.BAD_VALUE,
            node.span,
            where=_where(path),
            wanted=expected,
            value=_short(node.value),
            suggestion=suggestion,
        )
        return HOLE


def _is_quoted(shape: Shape, value: object) -> bool:
    """Whether a text would be what is wanted without its quotes."""
    if not isinstance(value, str):
        return False
    form = {Int: r"-?[0-9]{1,18}\Z", Bool: r"(true|false)\Z"}.get(type(shape))
    return form is not None and re.match(form, value) is not None


def _where(path: Path) -> str:
    return f"`{'.'.join(path)}`" if path else "this file"


def _short(value: object) -> str:
    text = str(value)
    if not text:
        return "empty"
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"
