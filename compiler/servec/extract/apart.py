"""A catalogue -> the observations that it was merged from, so that a release more can join them.

--max-model-len: {type: [{is: int, in: ..0.8.5}, …]}
  -> 0.8.5: {flags: [--max-model-len], kind: value, type: int}, …
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from servec.catalog.released import Released, ReleasedAt
from servec.ir.releases import FlagFacts

NAMES = ("variables", "methods", "tool_call_parsers", "reasoning_parsers")
ONE = ("kind", "type", "nargs", "default", "required", "deprecated", "removed")
SEVERAL = ("negative", "choices", "suggested")


def observations(released: Released) -> list[dict[str, Any]]:
    """One observation a release, as `merge` takes them."""
    return [_observation(released, item.key.value) for item in released.record.releases]


def _observation(released: Released, release: str) -> dict[str, Any]:
    here = released.of(release)
    head = next(item.value for item in released.record.releases if item.key.value == release)
    found: dict[str, Any] = {
        "engine": released.record.engine.value,
        "version": release,
        "read": head.read.value,
        "date": head.date.value,
        "allow_abbrev": released.abbreviations,
        "flags": list(_flags(released, here)),
    }
    if head.sha256 is not None:
        found["package"] = {"sha256": head.sha256.value}
    if head.source is not None:
        found["source"] = head.source.value
    for name in NAMES:
        members = here.members(getattr(released.record, name))
        if members:
            found[name] = members
    configs = {item.key.value: here.members(item.value) for item in released.record.configs}
    quantization = {item.key.value: here.value(item.value) for item in released.record.quantization}
    found["config_keys"] = {name: keys for name, keys in configs.items() if keys}
    found["fields"] = dict(_fields(released, here))
    found["closed"] = here.members(released.record.closed)
    found["quantization"] = {
        name: least for name, least in quantization.items() if least is not None
    }
    return found


def _fields(released: Released, here: ReleasedAt) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in released.record.fields:
        if here.has(item.value.within):
            choices = here.members(item.value.choices)
            found = {"type": here.value(item.value.type)}
            yield item.key.value, found | ({"choices": choices} if choices else {})


def _flags(released: Released, here: ReleasedAt) -> Iterator[dict[str, Any]]:
    for item in released.record.flags:
        facts: FlagFacts = item.value
        if not here.has(facts.within):
            continue
        flag: dict[str, Any] = {"flags": [item.key.value, *here.members(facts.also)]}
        for name in ONE:
            node = getattr(facts, name)
            value = here.value(node)
            if value is not None:
                flag[name] = value
        flag.setdefault("kind", "value")
        for name in SEVERAL:
            members = here.members(getattr(facts, name))
            if members:
                flag[name] = members
        variable = here.value(facts.variable)
        if variable is not None:
            flag["env"] = variable
        yield flag
