"""What released packages of an engine accept: a catalogue of intervals -> one release.

--max-model-len: {type: [{is: int, in: ..0.8.5}, {is: human_readable_int, in: 0.9.2..}]}
  at 0.10.1 -> Flag("--max-model-len", type="human_readable_int")

A version between two releases that were read is taken as the older one, one before the first as
the first; an unknown version as the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from packaging.version import Version

from servec.catalog.versions import NEWEST, parse_version
from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir.facts import Flag
from servec.ir.releases import EngineCatalogue, FlagFacts
from servec.source.located import At, List, Map, Node, Plain, plain

INTERVAL = re.compile(r"(?P<first>[^\s,]*?)\.\.(?P<last>[^\s,]*)\Z")
Interval = tuple[tuple[int, int], ...]
"""Ranges of places among the releases, ends included."""


class Released:
    """One engine's catalogue."""

    def __init__(self, record: EngineCatalogue, findings: Findings) -> None:
        self.record = record
        self.findings = findings
        self.releases = tuple(item.key.value for item in record.releases)
        self.abbreviations = record.abbreviations is not None and record.abbreviations.value
        self._places = {release: place for place, release in enumerate(self.releases)}
        self._intervals: dict[str, Interval] = {}
        self._at: dict[int, ReleasedAt] = {}

    def at(self, version: Version | None) -> ReleasedAt:
        """What is accepted at a version."""
        place = self._place(version)
        if place not in self._at:
            self._at[place] = ReleasedAt(self, place)
        return self._at[place]

    def _place(self, version: Version | None) -> int:
        known = [(parse_version(release), place) for release, place in self._places.items()]
        older = [place for at, place in known if at is not None and at <= (version or NEWEST)]
        if version is None or not any(at for at, _ in known):
            return len(known) - 1
        return max(older, default=0)

    def check(self) -> None:
        """Read all of it, so that every mistake is found; for a project's own catalogue."""
        for place in range(len(self.releases)):
            here = self.at(parse_version(self.releases[place]))
            _ = here.flags, here.variables, here.methods

    def holds(self, interval: Node | None, place: int) -> bool:
        """Whether an interval has a place; None has all."""
        if interval is None:
            return True
        text = interval.value if isinstance(interval, At) else None
        if not isinstance(text, str):
            self._bad(interval)
            return False
        if text not in self._intervals:
            self._intervals[text] = tuple(self._ranges(text, interval))
        return any(first <= place <= last for first, last in self._intervals[text])

    def _ranges(self, text: str, node: Node) -> Iterator[tuple[int, int]]:
        for part in text.split(","):
            found = INTERVAL.match(part.strip())
            first = found["first"] if found else "?"
            last = found["last"] if found else "?"
            if (first and first not in self._places) or (last and last not in self._places):
                self._bad(node)
                return
            yield (
                self._places[first] if first else 0,
                self._places[last] if last else len(self.releases) - 1,
            )

    def _bad(self, node: Node) -> None:
        self.findings.add(
            codes.BAD_VALUE,
            node.span,
            where="`in`",
            wanted="an interval of the releases above, as `0.9.0..0.11.2`",
            value=f"`{plain(node)}`",
            suggestion=None,
        )


class ReleasedAt:
    """One release."""

    def __init__(self, released: Released, place: int) -> None:
        self._released = released
        self._place = place

    @property
    def release(self) -> str:
        return self._released.releases[self._place]

    @cached_property
    def flags(self) -> dict[str, Flag]:
        """Every flag by each of its spellings; negative forms are in `negatives`."""
        found: dict[str, Flag] = {}
        for item in self._released.record.flags:
            if self._released.holds(item.value.within, self._place):
                flag = self._flag(item.value)
                for spelling in flag.spellings:
                    found.setdefault(spelling, flag)
        return found

    @cached_property
    def negatives(self) -> dict[str, Flag]:
        """Flags by the spellings that say the opposite."""
        flags = self.flags.values()
        return {word: flag for flag in flags for word in flag.negatives if word not in self.flags}

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that it reads in the environment."""
        twins = {flag.variable for flag in self.flags.values() if flag.variable}
        return frozenset(map(str, self._members(self._released.record.variables))) | twins

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Its methods of speculative decoding; none where they were not read."""
        return tuple(map(str, self._members(self._released.record.methods)))

    def _flag(self, facts: FlagFacts) -> Flag:
        nargs = self._value(facts.nargs)
        return Flag(
            name=facts.name.value,
            spellings=(facts.name.value, *map(str, self._members(facts.also))),
            negatives=tuple(map(str, self._members(facts.negative))),
            kind=str(self._value(facts.kind) or "value"),
            type=str(self._value(facts.type) or ""),
            nargs=nargs if isinstance(nargs, str | int) else None,
            choices=tuple(self._members(facts.choices)),
            default=self._value(facts.default),
            deprecated=_reason(self._value(facts.deprecated), "deprecated"),
            removed=_reason(self._value(facts.removed), "removed"),
            variable=str(self._value(facts.variable) or ""),
        )

    def _value(self, node: Node | None) -> Plain:
        """The value that holds here, or None."""
        if not isinstance(node, List) or not _are_parts(node):
            return plain(node) if node is not None else None
        return next(iter(self._members(node)), None)

    def _members(self, node: Node | None) -> Iterator[Plain]:
        """The members of a list that are there here."""
        for item in node.items if isinstance(node, List) else ():
            part = _part(item)
            if part is None:
                yield plain(item)
            elif self._released.holds(part[1], self._place):
                yield plain(part[0])


def _are_parts(node: List) -> bool:
    return bool(node.items) and all(_part(item) is not None for item in node.items)


def _part(node: Node) -> tuple[Node, Node] | None:
    """The value and the interval of `{is: …, in: …}`, or None where it is something else."""
    if not isinstance(node, Map) or set(node.entries) != {"is", "in"}:
        return None
    return node.entries["is"].value, node.entries["in"].value


def _reason(value: Plain, word: str) -> str:
    return value if isinstance(value, str) else (word if value else "")
