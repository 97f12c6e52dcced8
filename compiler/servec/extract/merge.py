"""Observations of single releases -> a catalogue in which each fact is an interval of releases.

    0.8.5  --max-model-len  value, int
    0.9.2  --max-model-len  value, human_readable_int
      -> --max-model-len: {type: [{is: int, in: ..0.8.5}, {is: human_readable_int, in: 0.9.2..}]}

The output depends on the observations alone, not on their order, and `observations` takes a
catalogue apart again, so that a release more is merged into what is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from servec.catalog.versions import release_order

Observation = Mapping[str, Any]
"""One release: engine, version, read, date, flags and lists of names, as `extract` observes it."""

WORDS = ("kind", "type", "nargs", "default", "required", "deprecated", "removed", "variable")
"""What a flag has one of."""
LISTS = ("also", "negative", "choices", "suggested")
"""What a flag has several of."""
NAMES = ("variables", "methods", "tool_call_parsers", "reasoning_parsers")
"""Lists of names that a release knows, beside its flags."""
KINDS = {"store_true": "switch", "flag": "switch", "void": "switch", "bool_optional": "pair"} | {
    "bool": "pair", "string": "value", "int": "value", "string2": "value", "append": "append"
}  # fmt: skip
HEAD = """\
# What released packages of {engine} accept, told by the packages themselves. A flag's kind is
# `value` unless said: `switch` takes no value, `pair` has a negative form. A fact holds in the
# releases that `in` tells (`0.9.0..0.11.2`, `..0.8.5`, `0.9.0..`); without it, where the flag is.
"""


def merge(observed: Iterable[Observation]) -> str:
    """The text of catalogs/engines/<engine>.yaml. The last of two observations of one release
    counts."""
    by_release = {item["version"]: item for item in observed}
    releases = sorted(by_release, key=release_order)
    items = [_without_positionals(by_release[release]) for release in releases]
    tree: dict[str, Any] = {"engine": items[-1]["engine"]}
    if any(item.get("allow_abbrev") for item in items):
        tree["abbreviations"] = True
    tree["releases"] = {release: _head(by_release[release]) for release in releases}
    keys = _keys(items)
    flags = [dict(_named(flag, keys[flag["flags"][0]]) for flag in item["flags"]) for item in items]
    names = sorted({name for found in flags for name in found})
    tree["flags"] = {
        name: _merged([found.get(name) for found in flags], releases) for name in names
    }
    everywhere = [True] * len(items)
    for section in NAMES:
        if any(item.get(section) for item in items):
            tree[section] = _members([item.get(section) for item in items], everywhere, releases)
    if any(item.get("config_keys") for item in items):
        tables = [item.get("config_keys") or {} for item in items]
        tree["configs"] = {
            name: _members([table.get(name) for table in tables], everywhere, releases)
            for name in sorted({name for table in tables for name in table})
        }
    if any(item.get("fields") for item in items):
        tree["fields"] = _fields([item.get("fields") or {} for item in items], releases)
        tree["closed"] = _members([item.get("closed") for item in items], everywhere, releases)
    if any(item.get("quantization") for item in items):
        tables = [item.get("quantization") or {} for item in items]
        tree["quantization"] = {
            name: _varying([_least(name, table) for table in tables], everywhere, releases)
            for name in sorted({name for table in tables for name in table})
        }
    return HEAD.format(engine=tree["engine"]) + _print(tree)


def _without_positionals(item: Observation) -> Observation:
    flags = [flag for flag in item["flags"] if flag["flags"][0].startswith("-")]
    return {**item, "flags": flags}


def _least(name: str, table: Mapping[str, Any]) -> int | None:
    """The least capability; 0 where the release has the name and no minimum of its own."""
    return (table[name] or 0) if name in table else None


def _head(item: Observation) -> dict[str, str]:
    found = {"read": item["read"], "date": item["date"]}
    if item.get("package"):
        found["sha256"] = item["package"]["sha256"]
    if item.get("source"):
        found["source"] = item["source"]
    return found


def _keys(items: Sequence[Observation]) -> dict[str, str]:
    """The first spelling that each flag has in each release -> the name that it has in the
    catalogue: the first long one in the newest release that has the flag by this name."""
    meant: dict[str, str] = {}
    keys: dict[str, str] = {}
    for item in reversed(items):
        taken: set[str] = set()
        for flag in item["flags"]:
            spellings = flag["flags"]
            own = next((word for word in spellings if word.startswith("--")), spellings[0])
            known = [meant[word] for word in spellings if meant.get(word) in spellings]
            name = next((word for word in known if word not in taken), own)
            taken.add(name)
            keys.setdefault(spellings[0], name)
            for word in spellings:
                meant.setdefault(word, name)
    return keys


def _named(flag: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """A flag of one release in the catalogue's words, under the catalogue's name of it."""
    kind, _, action = flag["kind"].partition(":")
    found: dict[str, Any] = {"kind": KINDS.get(kind, kind)}
    found["also"] = [word for word in flag["flags"] if word != name]
    if kind == "int":
        found["type"] = "int"
    if kind == "string2":
        found["nargs"] = 2
    for word in ("type", "nargs", "required", "removed"):
        if flag.get(word) is not None:
            found[word] = flag[word]
    if flag.get("deprecated") or action.startswith("Deprecated"):
        found["deprecated"] = flag.get("deprecated") or True
    if flag.get("default") not in (None, "==SUPPRESS=="):
        found["default"] = flag["default"]
    if flag.get("env"):
        found["variable"] = flag["env"]
    for word in ("negative", "choices", "suggested"):
        if flag.get(word):
            found[word] = ["None" if item is None else item for item in flag[word]]
    if flag.get("choices_seen"):
        found["suggested"] = flag["choices_seen"]
    return name, found


def _merged(found: Sequence[dict[str, Any] | None], releases: Sequence[str]) -> dict[str, Any]:
    """A flag over all releases; None where a release has none."""
    there = [item is not None for item in found]
    entry: dict[str, Any] = {}
    span = _interval(there, [True] * len(there), releases)
    if span:
        entry["in"] = span
    flags = [item or {} for item in found]
    for word in WORDS:
        value = _varying([item.get(word) for item in flags], there, releases)
        if value not in (None, "value" if word == "kind" else None):
            entry[word] = value
    for word in LISTS:
        members = _members([item.get(word) for item in flags], there, releases)
        if members:
            entry[word] = members
    return entry


def _fields(tables: Sequence[Mapping[str, Any]], releases: Sequence[str]) -> dict[str, Any]:
    """Fields of JSON arguments over all releases, by class and name."""
    names = sorted({name for table in tables for name in table})
    return {name: _merged([table.get(name) for table in tables], releases) for name in names}


def _varying(values: Sequence[Any], there: Sequence[bool], releases: Sequence[str]) -> Any:
    """One value where it is the same wherever the flag is, else each with its interval."""
    distinct: dict[str, list[bool]] = {}
    for index, value in enumerate(values):
        if value is not None:
            key = json.dumps(value, sort_keys=True)
            distinct.setdefault(key, [False] * len(values))[index] = True
    parts = []
    for key, holds in distinct.items():
        span = _interval(holds, there, releases)
        if not span:
            return json.loads(key)
        parts.append({"is": json.loads(key), "in": span})
    return parts or None


def _members(
    lists: Sequence[Sequence[Any] | None], there: Sequence[bool], releases: Sequence[str]
) -> list[Any]:
    """All members that a list ever had; those that it had not always with their interval."""
    holds: dict[Any, list[bool]] = {}
    for index, members in enumerate(lists):
        for member in members or ():
            holds.setdefault(member, [False] * len(lists))[index] = True
    found = []
    for member in sorted(holds, key=lambda item: (isinstance(item, str), item)):
        span = _interval(holds[member], there, releases)
        found.append({"is": member, "in": span} if span else member)
    return found


def _interval(holds: Sequence[bool], there: Sequence[bool], releases: Sequence[str]) -> str:
    """The releases in which something holds; empty where that is wherever `there` is."""
    if list(holds) == list(there):
        return ""
    parts, last, index = [], len(releases) - 1, 0
    while index <= last:
        if not holds[index]:
            index += 1
            continue
        end = index
        while end < last and (holds[end + 1] or not there[end + 1]) and any(holds[end + 1 :]):
            end += 1
        first = releases[index] if index else ""
        parts.append(f"{first}..{releases[end] if end < last else ''}")
        index = end + 1
    return ", ".join(parts)


# --- printing ------------------------------------------------------------------------------------

BARE = re.compile(r"-?-?[A-Za-z_/][A-Za-z0-9_./-]*\Z|[A-Za-z0-9.]*\.\.[A-Za-z0-9.]*\Z")
"""Text that no reader of YAML takes for anything else; everything else is quoted."""
NOT_TEXT = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"))
WIDTH = 120


def _print(tree: Mapping[str, Any]) -> str:
    """Two levels of block style, one line an entry; long entries are broken at their parts."""
    lines = []
    for section, value in tree.items():
        if not isinstance(value, dict) or not value:
            lines += _entry("", section, value)
            continue
        lines.append(f"\n{section}:")
        for name, entry in value.items():
            lines += _entry("  ", name, entry)
    return "\n".join(lines) + "\n"


def _entry(indent: str, name: str, value: Any) -> list[str]:
    line = f"{indent}{_scalar(name)}: {_flow(value)}"
    if len(line) <= WIDTH or not isinstance(value, dict | list):
        return [line]
    if isinstance(value, dict):
        lines = [f"{indent}{_scalar(name)}:"]
        for key, part in value.items():
            lines += _entry(f"{indent}  ", key, part)
        return lines
    return [f"{indent}{_scalar(name)}: [", *_filled([_flow(part) for part in value], indent + "  "),
            f"{indent}]"]  # fmt: skip


def _filled(parts: Sequence[str], indent: str) -> list[str]:
    """Parts in as few lines as they need."""
    lines, line = [], indent
    for index, part in enumerate(parts):
        word = part + ("," if index < len(parts) - 1 else "")
        if line.strip() and len(line) + len(word) > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += word + " "
    return [*lines, line.rstrip()]


def _flow(value: Any) -> str:
    match value:
        case dict():
            return (
                "{"
                + ", ".join(f"{_scalar(key)}: {_flow(part)}" for key, part in value.items())
                + "}"
            )
        case list():
            return "[" + ", ".join(_flow(part) for part in value) + "]"
        case _:
            return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and BARE.match(value) and value.lower() not in NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)
