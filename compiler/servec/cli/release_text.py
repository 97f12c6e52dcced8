"""What a release knows of a name -> a line; what two releases know -> the lines that differ.

--max-model-len of vllm 0.20.0         -> whole number, as 8k too, or auto
--kv-transfer-config.kv_role of it     -> one of kv_both, kv_consumer, kv_producer; or null
0.28.0 -> 0.29.0                       -> ~ --moe-backend  takes b12x too
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from servec.catalog.released import ReleasedAt
from servec.ir.facts import FieldForm, Flag

TYPES = {
    "int": "whole number", "float": "number", "str": "text", "json": "JSON", "loads": "JSON",
    "human_readable_int": "whole number, as 8k too",
    "human_readable_int_or_auto": "whole number, as 8k too, or auto",
    "union_dict_and_str": "JSON or text", "nullable_str": "text", "nullable_kvs": "names=numbers",
    "json_list_type": "JSON list", "from_cli": "JSON object", "from_json": "JSON object",
    "<lambda>": "value", "": "value", "value": "value",
}  # fmt: skip
"""The parsers' own types, in words; one that is not here stands as it is."""
LISTS = ("tool_call_parsers", "reasoning_parsers", "methods", "quantization")


def form(here: ReleasedAt, name: str) -> str:
    """What a release knows of a flag, of a key of one behind a dot, or of a variable; empty where
    it has none of it."""
    if name in here.flags:
        return _flag(here.flags[name])
    if name in here.negatives:
        return f"says the opposite of {here.negatives[name].name}"
    head, _, path = name.partition(".")
    if path and head in here.flags:
        return _key(here, here.flags[head].type.rstrip("?").partition(":")[2], path)
    return "read in the environment" if name in here.variables else ""


def _flag(flag: Flag) -> str:
    parts = [_taken(flag)]
    if flag.nargs is not None:
        parts.append(f"values: {flag.nargs}")
    if words := _choices(flag):
        parts.append(f"one of {', '.join(words)}")
    if flag.suggested:
        parts.append(f"as {', '.join(map(str, flag.suggested))}")
    if said := _default(flag):
        parts.append(f"default {said}")
    if flag.deprecated or flag.removed:
        parts.append("removed" if flag.removed else "deprecated")
    return "; ".join(parts)


def _taken(flag: Flag) -> str:
    if flag.negatives:
        return f"switch, or {', '.join(sorted(flag.negatives))}"
    if flag.kind == "switch":
        return "switch"
    kind = flag.type.rstrip("?")
    head, _, owner = kind.partition(":")
    said = f"JSON object, {owner}" if head == "json" and owner else TYPES.get(kind, kind)
    return said + (", or None" if flag.type.endswith("?") else "")


def _choices(flag: Flag) -> list[str]:
    """The words that are enforced; that none may be said stands beside the type."""
    return [str(word) for word in flag.choices if word != "None" or not flag.type.endswith("?")]


def _default(flag: Flag) -> str:
    return "" if flag.default in (None, False, "", [], {}) else str(flag.default)


def _key(here: ReleasedAt, owner: str, path: str) -> str:
    """What a key inside a JSON value takes."""
    key, _, inside = path.partition(".")
    if key not in here.configs.get(owner, ()):
        return ""
    field = here.fields.get(f"{owner}.{key}", FieldForm("any", ()))
    if not inside:
        return key_form(field)
    classes = re.findall(r"json:(\w+)", field.type)
    return _key(here, classes[0], inside) if classes else ""


def key_form(field: FieldForm) -> str:
    """What a key takes, in words."""
    said = field.type.replace("|", " or ").replace("json:", "JSON object, ")
    for word, more in (("word/i", ", in any case"), ("word", "")):
        said = re.sub(
            rf"\b{word}(?!\w)", f"one of {', '.join(map(str, field.choices))}{more}", said
        )
        if word in field.type:
            break
    return said.replace("any", "any value")


def changes(one: ReleasedAt, other: ReleasedAt) -> Iterator[str]:
    """A line for each flag, key, variable and name that two releases do not have alike."""
    for name in sorted({*one.flags, *other.flags}):
        before, after = one.flags.get(name), other.flags.get(name)
        if before and after:
            parts = "; ".join(_changed(before, after))
            yield from (f"~ {name}  {parts}",) if parts else ()
        elif before:
            yield f"- {name}  {_flag(before)}"
        elif after:
            yield f"+ {name}  {_flag(after)}"
    yield from _keys(one, other)
    yield from _named("variable", one.variables, other.variables)
    for what in LISTS:
        word = what.removesuffix("s").replace("_", " ")
        yield from _named(word, one.names(what), other.names(what))


def _changed(before: Flag, after: Flag) -> Iterator[str]:
    """What is not the same of a flag; that another word turns a switch off too is no change."""
    still_negated = {*before.negatives} & {*after.negatives}
    was, now = _taken(before), _taken(after)
    if was != now and not still_negated:
        yield f"{was} -> {now}"
    if before.nargs != after.nargs:
        yield f"values: {before.nargs or 1} -> {after.nargs or 1}"
    yield from _words(_choices(before), _choices(after))
    if _default(before) != _default(after):
        yield f"default {_default(before) or 'none'} -> {_default(after) or 'none'}"
    for word in ("deprecated", "removed"):
        old, new = bool(getattr(before, word)), bool(getattr(after, word))
        if old is not new:
            yield f"{word}" if new else f"no longer {word}"


def _words(old: Iterable[object], new: Iterable[object]) -> Iterator[str]:
    was, now = list(map(str, old)), list(map(str, new))
    if not was or not now:
        yield from (f"any value, no longer one of {', '.join(was)}",) if was else ()
        yield from (f"only one of {', '.join(now)}",) if now else ()
        return
    added, gone = (
        [word for word in two if word not in one] for one, two in ((was, now), (now, was))
    )
    yield from (f"takes {', '.join(added)} too",) if added else ()
    yield from (f"no longer takes {', '.join(gone)}",) if gone else ()


def _keys(one: ReleasedAt, other: ReleasedAt) -> Iterator[str]:
    """Keys of JSON values, of the classes that both know."""
    for owner in sorted({*one.configs} & {*other.configs}):
        for key in sorted(one.configs[owner] | other.configs[owner]):
            name = f"{owner}.{key}"
            before, after = one.fields.get(name), other.fields.get(name)
            if key not in other.configs[owner]:
                yield f"- key {name}"
            elif key not in one.configs[owner]:
                yield f"+ key {name}" + (f"  {key_form(after)}" if after else "")
            elif before and after and before != after:
                yield f"~ key {name}  {'; '.join(_key_changed(before, after))}"


def _key_changed(before: FieldForm, after: FieldForm) -> Iterator[str]:
    if before.type != after.type:
        yield f"{key_form(before)} -> {key_form(after)}"
    else:
        yield from _words(before.choices, after.choices)


def _named(what: str, old: frozenset[str], new: frozenset[str]) -> Iterator[str]:
    yield from (f"- {what} {name}" for name in sorted(old - new))
    yield from (f"+ {what} {name}" for name in sorted(new - old))
