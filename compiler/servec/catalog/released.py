"""What released packages of an engine accept: a catalogue of intervals -> one release.

--max-model-len: {type: [{is: int, in: ..0.8.5}, {is: human_readable_int, in: 0.9.2..}]}
  at 0.10.1 -> Flag("--max-model-len", type="human_readable_int")

A version between two releases that were read is taken as the older one, one before the first as
the first; an unknown version as the newest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

from packaging.version import Version

from servec.catalog.versions import NEWEST, parse_version, release_order
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir.facts import FieldForm, Flag
from servec.ir.releases import EngineCatalogue, FlagFacts
from servec.ir.shape import Text
from servec.ir.words import FLAG
from servec.source.located import At, List, Map, Node, Plain, Span, plain

INTERVAL = re.compile(r"(?P<first>[^\s,]*?)\.\.(?P<last>[^\s,]*)\Z")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
CLASS = re.compile(r"<\w+>\Z")
KINDS = ("value", "switch", "pair", "append")
Interval = tuple[tuple[int, int], ...]
"""Ranges of places among the releases, ends included."""


class Released:
    """One engine's catalogue."""

    def __init__(self, record: EngineCatalogue, findings: Findings) -> None:
        self.record = record
        self.findings = findings
        self.releases = tuple(
            sorted((item.key.value for item in record.releases), key=release_order)
        )
        self.abbreviations = record.abbreviations is not None and record.abbreviations.value
        self._places = {release: place for place, release in enumerate(self.releases)}
        self._intervals: dict[str, Interval] = {}
        self._at: dict[int, ReleasedAt] = {}
        self._at_versions: dict[Version | None, int] = {}

    def at(self, version: Version | None) -> ReleasedAt:
        """What is accepted at a version."""
        return self._of(self._place(version))

    def of(self, release: str) -> ReleasedAt:
        """One of the releases that were read."""
        return self._of(self._places[release])

    def _of(self, place: int) -> ReleasedAt:
        if place not in self._at:
            self._at[place] = ReleasedAt(self, place)
        return self._at[place]

    def _place(self, version: Version | None) -> int:
        if version not in self._at_versions:
            known = [(parse_version(release), place) for release, place in self._places.items()]
            older = [place for at, place in known if at is not None and at <= (version or NEWEST)]
            is_known = version is not None and self.has_versions
            self._at_versions[version] = max(older, default=0) if is_known else len(known) - 1
        return self._at_versions[version]

    def check(self) -> None:
        """Read all of it, so that every mistake is found; for a project's own catalogue."""
        for place in range(len(self.releases)):
            here = self.at(parse_version(self.releases[place]))
            _ = here.flags, here.variables, here.methods, here.configs, here.fields, here.closed

    def around(self, version: Version | None) -> tuple[ReleasedAt, ...]:
        """The release of a version; or the two that it lies between, of which either may be
        right; the newest for an unknown or a newer one."""
        here = self._place(version)
        text = self.releases[here]
        known = parse_version(text)
        if version is None or known == version or here + 1 >= len(self.releases):
            return (self.at(version),)
        return (self.at(version), self._of(here + 1))

    def covers(self, version: Version | None) -> bool:
        """Whether a version is neither newer nor older than what was read."""
        if version is None or not self.has_versions:
            return not self.has_versions
        first, last = self._ends
        return first <= version <= last

    @cached_property
    def has_versions(self) -> bool:
        """Whether its releases are versions that can be compared."""
        return any(parse_version(release) for release in self.releases)

    @cached_property
    def _ends(self) -> tuple[Version, Version]:
        """The first and the last version."""
        known = [at for at in map(parse_version, self.releases) if at is not None]
        return known[0], known[-1]

    @cached_property
    def _reads(self) -> dict[str, str]:
        """How each release was read."""
        return {item.key.value: item.value.read.value for item in self.record.releases}

    def tell_end(
        self, engine: str, version: Version, span: Span | None, findings: Findings
    ) -> None:
        """A finding about a version that is newer or older than what was read."""
        here = self.at(version)
        findings.add(
            codes.CATALOGUE_ENDS,
            span,
            engine=engine,
            version=version,
            release=here.release,
            end=self.end_of(here),
        )

    def end_of(self, here: ReleasedAt) -> str:
        """Which end of what was read a release is, for a version that lies beyond it."""
        return "oldest" if here.release == self.releases[0] else "newest"

    def was_run(self, version: Version | None) -> bool:
        """Whether the release was read by its own parser."""
        return all(self._reads[here.release] == "parser" for here in self.around(version))

    def spans_of(self, has: Callable[[ReleasedAt], bool]) -> list[tuple[str, str]]:
        """The first and the last release of each run of which something is true; empty where that
        is the first or the last that was read."""
        places = [place for place in range(len(self.releases)) if has(self._of(place))]
        begins = [place for place in places if place - 1 not in places]
        ends = [place for place in places if place + 1 not in places]
        newest = len(self.releases) - 1
        return [
            (
                self.releases[first] if first else "",
                self.releases[last] if last < newest else "",
            )
            for first, last in zip(begins, ends, strict=True)
        ]

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
            first = self._places.get(found["first"], -1) if found and found["first"] else 0
            newest = len(self.releases) - 1
            last = self._places.get(found["last"], -1) if found and found["last"] else newest
            if found is None or first < 0 or last < first:
                self._bad(node)
                return
            yield first, last

    def _bad(self, node: Node) -> None:
        self.bad(node, "an interval of the releases above, as `0.9.0..0.11.2`", plain(node))

    def bad(self, node: Node | None, wanted: str, value: Plain) -> None:
        """A value of the catalogue that cannot be used."""
        self.findings.add(
            codes.BAD_VALUE,
            node.span if node else self.record.span,
            where=f"a fact of {self.record.engine.value}",
            wanted=wanted,
            value=f"`{value}`",
            suggestion=None,
        )


class ReleasedAt:
    """One release."""

    def __init__(self, released: Released, place: int) -> None:
        self._released = released
        self._place = place
        self._registries: dict[str, frozenset[str]] = {}
        self._nearest: dict[str, str | None] = {}

    @property
    def release(self) -> str:
        return self._released.releases[self._place]

    @property
    def abbreviations(self) -> bool:
        """Whether a flag may be cut short while it is unique."""
        return self._released.abbreviations

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

    def nearest_flag(self, word: str) -> str | None:
        """The flag, or negative form, that is nearest to a word that is none."""
        if word not in self._nearest:
            self._nearest[word] = nearest(word, (*self.flags, *self.negatives))
        return self._nearest[word]

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that it reads in the environment."""
        twins = {flag.variable for flag in self.flags.values() if flag.variable}
        return frozenset(map(str, self._each(self._released.record.variables))) | twins

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Its methods of speculative decoding; none where they were not read."""
        return tuple(map(str, self._each(self._released.record.methods)))

    @cached_property
    def configs(self) -> dict[str, frozenset[str]]:
        """The keys of the mappings that flags take, by the name in the flag's type."""
        found = {
            item.key.value: frozenset(map(str, self._each(item.value)))
            for item in self._released.record.configs
        }
        return {name: keys for name, keys in found.items() if keys}

    @cached_property
    def fields(self) -> dict[str, FieldForm]:
        """What the keys of those mappings take, by `Class.key`; any value where it is not told."""
        return {
            item.key.value: FieldForm(
                str(self.value(item.value.type) or "any"), tuple(self._each(item.value.choices))
            )
            for item in self._released.record.fields
            if self.has(item.value.within)
        }

    @cached_property
    def closed(self) -> frozenset[str]:
        """The classes of those mappings that refuse other keys."""
        return frozenset(map(str, self._each(self._released.record.closed)))

    @cached_property
    def read_classes(self) -> frozenset[str]:
        """The classes that the release's parser itself reads mappings into."""
        return frozenset(name.partition(".")[0] for name in self.fields)

    def names(self, registry: str) -> frozenset[str]:
        """The names in a registry: methods, tool_call_parsers, reasoning_parsers, quantization;
        none where it was not read."""
        if registry not in self._registries:
            self._registries[registry] = self._names(registry)
        return self._registries[registry]

    def _names(self, registry: str) -> frozenset[str]:
        record = self._released.record
        if registry == "quantization":
            known = {item.key.value: self.value(item.value) for item in record.quantization}
            return frozenset(name for name, least in known.items() if least is not None)
        return frozenset(map(str, self._each(getattr(record, registry))))

    def least_capability(self, quantization: str) -> int | None:
        """The lowest compute capability that a quantization runs on, times ten; None where it is
        not known, or it asks for none."""
        for item in self._released.record.quantization:
            if item.key.value == quantization:
                least = self.value(item.value)
                return least if isinstance(least, int) and least > 0 else None
        return None

    def _flag(self, facts: FlagFacts) -> Flag:
        nargs = self.value(facts.nargs)
        return Flag(
            name=facts.name.value,
            spellings=(facts.name.value, *self._words(facts.also, FLAG)),
            negatives=tuple(self._words(facts.negative, FLAG)),
            kind=self._kind(facts),
            type=str(self.value(facts.type) or ""),
            nargs=nargs if isinstance(nargs, str | int) else None,
            choices=tuple(self._each(facts.choices)),
            default=_default(self.value(facts.default)),
            deprecated=_reason(self.value(facts.deprecated), "deprecated"),
            removed=_reason(self.value(facts.removed), "removed"),
            variable=self._variable(facts),
            suggested=tuple(self._each(facts.suggested)),
        )

    def _words(self, node: Node | None, shape: Text) -> Iterator[str]:
        """Members that have a shape; another one is a finding."""
        for member in self._each(node):
            if isinstance(member, str) and shape.takes(member):
                yield member
            elif node is not None:
                self._released.bad(node, shape.what, member)

    def _kind(self, facts: FlagFacts) -> str:
        kind = self.value(facts.kind)
        if kind is not None and kind not in KINDS:
            self._released.bad(facts.kind, f"one of {', '.join(KINDS)}", kind)
        return str(kind) if kind in KINDS else "value"

    def _variable(self, facts: FlagFacts) -> str:
        name = self.value(facts.variable)
        if isinstance(name, str) and VARIABLE.match(name):
            return name
        if name is not None:
            self._released.bad(facts.variable, "a variable's name", name)
        return ""

    def has(self, interval: Node | None) -> bool:
        """Whether an interval has this release."""
        return self._released.holds(interval, self._place)

    def members(self, node: Node | None) -> list[Plain]:
        """The members of a list that are there here."""
        return list(self._each(node))

    def value(self, node: Node | None) -> Plain:
        """The value that holds here, or None."""
        if not isinstance(node, List) or not _are_parts(node):
            return plain(node) if node is not None else None
        return next(iter(self._each(node)), None)

    def _each(self, node: Node | None) -> Iterator[Plain]:
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


def _default(value: Plain) -> Plain:
    """A default; None for one that no word can say, which stands as the name of its class."""
    return None if isinstance(value, str) and CLASS.match(value) else value


def _reason(value: Plain, word: str) -> str:
    return value if isinstance(value, str) else (word if value else "")
