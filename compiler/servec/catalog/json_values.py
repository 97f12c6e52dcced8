"""The mapping that a JSON flag is given -> what the release's own reading of it refuses.

    {"kv_role": "kv_bth", "kv_rank": "x"} for KVTransferConfig
      -> kv_role is one of kv_both, kv_consumer, kv_producer, not kv_bth; kv_rank is a whole number

What a key takes is told by the catalogue's `fields`; a key that is not there takes anything. Values
are read as pydantic reads JSON where it is not strict: "1" and 1.0 are whole numbers, "yes" is a
truth, and no number is a text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from servec.catalog.released import ReleasedAt
from servec.ir.facts import FieldForm
from servec.source.located import Plain


class Refused(NamedTuple):
    """A key or a value that is refused: where, behind dots; what is wanted there, or nothing where
    the key itself is unknown; and what could have been meant. `owner` is the class."""

    path: str
    owner: str
    wanted: str
    value: Plain
    known: tuple[str, ...] = ()


def refused(value: Mapping[str, Plain], owner: str, here: ReleasedAt) -> Iterator[Refused]:
    """All that a release refuses in the mapping of a class, in its order."""
    return _Reading(here).mapping(value, owner, "")


INT = re.compile(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*\Z")
BOOLS = frozenset(("0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"))
BOUND = re.compile(r"([<>]=?)(-?[\d.]+)")
SIGNS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
SAID = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}
KINDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "text",
    "null": "null", "list": "a list", "dict": "a JSON object", "json": "a JSON object",
}  # fmt: skip


class _Reading:
    def __init__(self, here: ReleasedAt) -> None:
        self.here = here

    def mapping(self, value: Mapping[str, Plain], owner: str, path: str) -> Iterator[Refused]:
        known = self.here.configs.get(owner, frozenset())
        for key, inside in value.items():
            place = f"{path}.{key}" if path else key
            if known and key not in known:
                yield Refused(place, owner, "", key, tuple(sorted(known)))
            elif (form := self.here.fields.get(f"{owner}.{key}")) is not None:
                yield from self.value(inside, form.type, form, owner, place)

    def value(
        self, value: Plain, kind: str, form: FieldForm, owner: str, path: str
    ) -> Iterator[Refused]:
        """What is refused of a value: nothing where one member of the union takes it; inside it
        where it is a list or a mapping as it should be; else all of it."""
        members = _members(kind)
        inside = [self._inside(value, member, form, owner, path) for member in members]
        if any(found == [] for found in inside):
            return
        deeper = next((found for found in inside if found), None)
        if deeper is not None:
            yield from deeper
            return
        words = tuple(map(str, form.choices)) if any(_is_word(item) for item in members) else ()
        wanted = " or ".join(dict.fromkeys(_wanted(member, form) for member in members))
        yield Refused(path, owner, f"is {wanted}", value, words)

    def _inside(
        self, value: Plain, member: str, form: FieldForm, owner: str, path: str
    ) -> list[Refused] | None:
        """What a member of a union refuses inside a value; None where it takes no such value."""
        head, _, rest = member.partition("[")
        if head.startswith("json:"):
            return list(self.mapping(value, head[5:], path)) if isinstance(value, dict) else None
        if head == "list" and isinstance(value, list):
            parts: Iterator[tuple[object, Plain]] = enumerate(value)
        elif head == "dict" and isinstance(value, dict):
            parts = iter(value.items())
        else:
            return [] if _takes(member, value, form.choices) else None
        return [
            found
            for at, item in parts
            for found in self.value(item, rest[:-1] or "any", form, owner, f"{path}[{at}]")
        ]


def _members(kind: str) -> list[str]:
    """The members of a union; `|` inside brackets is none of it."""
    found, depth = [""], 0
    for sign in kind:
        depth += (sign == "[") - (sign == "]")
        if sign == "|" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


def _is_word(member: str) -> bool:
    return member in ("word", "word/i")


def _takes(member: str, value: Plain, choices: Sequence[Plain]) -> bool:
    """Whether a member that holds nothing takes a value."""
    if member == "any":
        return True
    if _is_word(member):
        return _is_choice(value, choices, folds=member == "word/i")
    if member.startswith(("int", "float")):
        return _is_number(member, value)
    match member:
        case "bool":
            return _is_bool(value)
        case "str":
            return isinstance(value, str)
        case "null":
            return value is None
        case _:
            return False


def _is_choice(value: Plain, choices: Sequence[Plain], *, folds: bool) -> bool:
    if isinstance(value, bool | float) and value in choices:
        return True  # what pydantic makes of 2.0 and of true differs; it is not told here
    if isinstance(value, str) and INT.match(value):
        numbers = [float(word) for word in choices if isinstance(word, str) and INT.match(word)]
        return float(value) in numbers
    if folds and isinstance(value, str):
        return value.lower() in [word.lower() for word in choices if isinstance(word, str)]
    return any(type(value) is type(word) and value == word for word in choices)


def _is_number(member: str, value: Plain) -> bool:
    number = _int(value) if member.startswith("int") else _float(value)
    bounds = BOUND.findall(member)
    return number is not None and all(SIGNS[sign](number, float(end)) for sign, end in bounds)


def _int(value: Plain) -> float | None:
    if isinstance(value, str):
        return float(value) if INT.match(value) else None
    return (
        value if isinstance(value, int) or (isinstance(value, float) and value % 1 == 0) else None
    )


def _float(value: Plain) -> float | None:
    try:
        return float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None


def _is_bool(value: Plain) -> bool:
    return value in (0, 1) if isinstance(value, int | float) else str(value).lower() in BOOLS


def _wanted(member: str, form: FieldForm) -> str:
    if _is_word(member):
        return f"one of {', '.join(map(str, form.choices))}"
    kind = re.split(r"[\[<>:]", member)[0]
    bounds = (f"{SAID[sign]} {end}" for sign, end in BOUND.findall(member))
    return " ".join((KINDS.get(kind, kind), *bounds))
