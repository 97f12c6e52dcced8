"""Source files -> the flags that their `add_argument` calls name, where no parser can be run.

What a call computes (`**options["port"]`, a default from elsewhere) is not there to be read: such a
flag has the kind `unknown`, and only its option strings are sure.
"""

from __future__ import annotations

import ast
from typing import Any

from servec.extract.observation import POSITIONAL, Flag
from servec.extract.recipe import Recipe
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
    return tuple(found[strings] for strings in sorted(found))


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
