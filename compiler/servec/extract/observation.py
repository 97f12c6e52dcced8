"""What one release accepts, as it was read: records, and the JSON that they are kept in.

An absent key means "not so": no default, no choices, not deprecated. Everything is sorted, so that
two observations of one release differ in nothing but their date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from servec.extract.errors import ExtractionError
from servec.source.located import Plain

POSITIONAL = "<positional>"
"""Stands among the flags of an argument that has none."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of a release.

    `kind` is `value`, `store_true`, `bool_optional` (an on/off pair, `negative` has the strings
    that turn it off), `append` and the like; `value:Class` or `flag:Class` for an action of the
    release's own; `unknown` where only the source was read and does not say. `choices` are
    enforced by the parser, `suggested` are only shown. A default that JSON cannot say is its
    class in angle brackets.
    """

    dest: str
    flags: tuple[str, ...]
    kind: str
    negative: tuple[str, ...] = ()
    nargs: int | str | None = None
    type: str | None = None
    choices: tuple[Plain, ...] = ()
    suggested: tuple[Plain, ...] = ()
    default: Plain = None
    required: bool = False
    deprecated: bool = False
    removed: bool = False


FIELDS = frozenset(item.name for item in fields(Flag))
LISTS = ("flags", "negative", "choices", "suggested")


@dataclass(frozen=True, slots=True)
class Field:
    """What a field of a class takes, as `json_fields.py` says it: `int>=0|null`, `list[str]`,
    `json:Class`, `word` and `word/i` (in any case) for one of its choices."""

    type: str
    choices: tuple[Plain, ...] = ()


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes that JSON arguments are read into: the keys of each, its fields as
    `Class.field`, and those that refuse other keys."""

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """All that was read of one release. `read` is `parser` where the release's own parser was
    run, and `static` where only its sources were read, for the reason in `reason`; `stand_ins`
    are the modules that were stood in for."""

    engine: str
    version: str
    read: str
    file: str
    sha256: str
    date: str
    allow_abbrev: bool
    flags: tuple[Flag, ...]
    reason: str = ""
    stand_ins: tuple[str, ...] = ()
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quantization: Mapping[str, int | None] = field(default_factory=dict)
    classes: Classes = field(default_factory=Classes)


def to_json(observation: Observation) -> str:
    """The observation as a JSON file, the same for the same observation."""
    return json.dumps(to_plain(observation), indent=1, ensure_ascii=False) + "\n"


def to_plain(observation: Observation) -> dict[str, Any]:
    """The observation as plain values, as `merge` takes them."""
    one = observation
    said: dict[str, Any] = {"engine": one.engine, "version": one.version, "read": one.read}
    said |= {"reason": one.reason} if one.reason else {}
    said |= {"package": {"file": one.file, "sha256": one.sha256}, "date": one.date}
    said |= {"allow_abbrev": one.allow_abbrev}
    said |= {"stand_ins": list(one.stand_ins)} if one.stand_ins else {}
    said |= {"flags": [_flag_to_json(flag) for flag in one.flags]}
    said |= {name: list(words) for name, words in sorted(one.lists.items())}
    said |= {"quantization": dict(sorted(one.quantization.items()))}
    keys = {name: list(words) for name, words in sorted(one.classes.keys.items())}
    said |= {"config_keys": keys} if keys else {}
    fields = {name: _field_to_json(what) for name, what in sorted(one.classes.fields.items())}
    said |= {"fields": fields} if fields else {}
    return said | ({"closed": list(one.classes.closed)} if one.classes.closed else {})


def _field_to_json(what: Field) -> dict[str, Any]:
    return {"type": what.type} | ({"choices": list(what.choices)} if what.choices else {})


def from_json(text: str, lists: tuple[str, ...]) -> Observation:
    """The observation that a file holds; `lists` are the names of lists that it may have."""
    try:
        said = json.loads(text)
        return Observation(
            engine=said["engine"],
            version=said["version"],
            read=said["read"],
            file=said["package"]["file"],
            sha256=said["package"]["sha256"],
            date=said["date"],
            allow_abbrev=said["allow_abbrev"],
            flags=flags_of(said["flags"]),
            reason=said.get("reason", ""),
            stand_ins=tuple(said.get("stand_ins", ())),
            lists={name: tuple(said[name]) for name in lists if name in said},
            quantization=said["quantization"],
            classes=classes_of(said),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExtractionError(f"this is no observation: {error!r}") from error


def classes_of(said: Mapping[str, Any]) -> Classes:
    """The classes among what was read, or was told by a release's process."""
    try:
        fields = said.get("fields", {}).items()
        return Classes(
            keys={name: tuple(keys) for name, keys in said.get("config_keys", {}).items()},
            fields={k: Field(one["type"], tuple(one.get("choices", ()))) for k, one in fields},
            closed=tuple(said.get("closed", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ExtractionError(f"these are no classes: {error!r}") from error


def flags_of(said: Any) -> tuple[Flag, ...]:
    """Flags from their JSON; what does not look like one is an error."""
    if not isinstance(said, list):
        raise ExtractionError("the flags are no list")
    return tuple(_flag_of(one) for one in said)


def _flag_of(said: Any) -> Flag:
    if not (isinstance(said, dict) and said.keys() <= FIELDS and _is_flag(said)):
        raise ExtractionError(f"this is no flag: {said!r}")
    own: dict[str, Any] = {k: tuple(v) if k in LISTS else v for k, v in said.items()}
    return Flag(**own)


def _is_flag(said: dict[str, Any]) -> bool:
    if not all(isinstance(said.get(name, []), list) for name in LISTS):
        return False
    texts = [said.get("dest"), said.get("kind"), said.get("type", ""), *said.get("negative", [])]
    strings = said.get("flags") or [None]
    return all(isinstance(text, str) for text in (*texts, *strings))


def _flag_to_json(flag: Flag) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for item in fields(Flag):
        value = getattr(flag, item.name)
        if isinstance(value, tuple):
            value = list(value) or None
        if value is not None and not (value is False and item.name != "default"):
            said[item.name] = value
    return said
