"""Source files -> the flags that they name, where no parser can be run.

    parser.add_argument("--port", type=int)     ->  --port, a value of type int
    max_len: A[int, Arg(aliases=["--len"])]     ->  --max-len, --len

What a call computes (`**options["port"]`, a default from elsewhere) is not there to be read, nor
what is made of a field: such a flag has the kind `unknown`, and only its option strings are sure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from servec.extract.observation import POSITIONAL, Flag
from servec.extract.recipe import FlagFields, Recipe
from servec.extract.statics import Sources
from servec.extract.syntax import constant, name_of
from servec.source.located import Plain

KINDS = {
    "store": "value", "store_true": "store_true", "store_false": "store_false",
    "append": "append", "extend": "extend", "count": "count", "store_const": "store_const",
    "BooleanOptionalAction": "bool_optional",
}  # fmt: skip


def flags_in(recipe: Recipe, sources: Sources) -> tuple[Flag, ...]:
    """The flags that the files named in the recipe add, sorted by their strings."""
    found: dict[tuple[str, ...], Flag] = {}
    for module in sources.modules(place.value for place in recipe.static_flags):
        for call in module.calls("add_argument"):
            flag = _flag(call)
            if flag is not None:
                found.setdefault(flag.flags, flag)
    known = {option for strings in found for option in strings}
    for place in recipe.static_fields:
        for flag in _of_fields(place, sources):
            if known.isdisjoint(flag.flags):
                found.setdefault(flag.flags, flag)
    return tuple(found[strings] for strings in sorted(found))


def _of_fields(place: FlagFields, sources: Sources) -> Iterator[Flag]:
    wanted = {item.value for item in place.classes}
    for module in sources.modules(item.value for item in place.files):
        for name, owner in module.classes.items():
            if not wanted or name in wanted:
                for node in owner.body:
                    match node:
                        case ast.AnnAssign(target=ast.Name(field), annotation=said):
                            yield from _of_field(place, field, said)


def _of_field(place: FlagFields, field: str, annotation: ast.expr) -> Iterator[Flag]:
    inside = annotation.value if isinstance(annotation, ast.Subscript) else None
    if place.annotation and (inside is None or name_of(inside) != place.annotation.value):
        return
    if field.startswith("_") or (inside is not None and name_of(inside) == "ClassVar"):
        return
    calls = [node for node in ast.walk(annotation) if isinstance(node, ast.Call)]
    said = {item.arg: constant(item.value) for call in calls for item in call.keywords}
    if place.hidden and said.get(place.hidden.value) is True:
        return
    name = said.get(place.name.value) if place.name else None
    others = said.get(place.aliases.value) if place.aliases else None
    first = name if isinstance(name, str) else "--" + field.replace("_", "-")
    also = [text for text in _list(others) if isinstance(text, str)]
    yield Flag(dest=field, flags=(first, *also), kind="unknown")


def _flag(call: ast.Call) -> Flag | None:
    strings = tuple(text for text in map(constant, call.args) if isinstance(text, str))
    if not strings or strings[0] in ("-h", "--help"):
        return None
    said = {item.arg: item.value for item in call.keywords if item.arg is not None}
    computed = any(item.arg is None for item in call.keywords)
    options = tuple(text for text in strings if text.startswith("-"))
    kind = _kind(said.get("action"), computed)
    negative = tuple("--no-" + text[2:] for text in options if text.startswith("--"))
    return Flag(
        dest=str(_said(said, "dest") or _dest(strings)),
        flags=options or (POSITIONAL,),
        kind=kind,
        negative=negative if kind == "bool_optional" else (),
        nargs=_nargs(_said(said, "nargs")),
        type=name_of(said["type"]) if "type" in said else None,
        choices=tuple(_list(_said(said, "choices"))),
        default=_default(said, kind),
        required=_said(said, "required") is True,
        deprecated=_said(said, "deprecated") is True,
    )


def _said(said: dict[str, ast.expr], name: str) -> Plain:
    return constant(said[name]) if name in said else None


def _kind(action: ast.expr | None, computed: bool) -> str:
    if action is None:
        return "unknown" if computed else "value"
    word = constant(action)
    name = word if isinstance(word, str) else name_of(action) or "unknown"
    return KINDS.get(name, f"value:{name}")


def _dest(strings: tuple[str, ...]) -> str:
    long = next((text for text in strings if text.startswith("--")), strings[0])
    return long.lstrip("-").replace("-", "_")


def _default(said: dict[str, ast.expr], kind: str) -> Plain:
    if "default" not in said and kind == "store_true":
        return False
    return _said(said, "default")


def _nargs(value: Plain) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _list(value: Plain) -> list[Any]:
    return value if isinstance(value, list) else []
