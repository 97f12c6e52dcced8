"""A knob's definitions, their strength, and the setting that they come to.

History, not the winner: a setting keeps every definition of its knob and what became of it, so that
`explain` is a view and not a second opinion.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from servec.source.located import Node, Plain, Span


class Rank(IntEnum):
    """How strong a definition is. Precedence is decided by this order and nowhere else:

    engine default < derived and site default < eval requirement < hardware layer
    < capability layer < spec override < command line
    """

    ENGINE_DEFAULT = 0
    DERIVED = 1
    REQUIREMENT = 2
    HARDWARE = 3
    CAPABILITY = 4
    OVERRIDE = 5
    COMMAND_LINE = 6

    @property
    def words(self) -> str:
        return RANK_WORDS[self]


RANK_WORDS = {
    Rank.ENGINE_DEFAULT: "engine default",
    Rank.DERIVED: "derived",
    Rank.REQUIREMENT: "eval requirement",
    Rank.HARDWARE: "hardware layer",
    Rank.CAPABILITY: "capability layer",
    Rank.OVERRIDE: "spec override",
    Rank.COMMAND_LINE: "command line",
}


DETERMINISTIC = "`deterministic: true`"
"""The rule of what `deterministic: true` sets."""


class Origin(NamedTuple):
    """Where a definition stands: its place, its path of keys (a name that no added line moves),
    and the rule that made it where servec did."""

    span: Span | None
    path: str
    rule: str = ""

    @property
    def where(self) -> str:
        if self.span is None:
            return self.rule
        return f"{self.span} ({self.rule})" if self.rule else str(self.span)


class Definition(NamedTuple):
    """A value given to a knob somewhere. `value` is what it means, `name: written` what stands
    there: `no_x: true` means that x is false."""

    knob: str
    name: str
    written: Plain
    value: Plain
    rank: Rank
    origin: Origin
    renamed: str = ""
    """How it was written, where this version knows it under another name."""
    node: Node | None = None
    """The value in its source, where it is what stands there."""

    @property
    def place(self) -> Span | None:
        """The value's own place, or else its name's."""
        return self.node.span if self.node is not None else self.origin.span


class Outcome(Enum):
    """What became of a definition."""

    WON = "won"
    AGREES = "says the same"
    OVERRULED = "overruled"
    SUPPRESSED = "suppressed, and met"
    UNMET = "suppressed, unmet"


class Judged(NamedTuple):
    """A definition and what became of it."""

    definition: Definition
    outcome: Outcome


class Group(Enum):
    """Which part of the command line a setting is."""

    OWN = "own"
    TOPOLOGY = "topology"
    DETERMINISTIC = "deterministic"
    ENGINE = "engine"
    REQUIREMENT = "requirement"


PARAMETER_GROUPS = (Group.DETERMINISTIC, Group.ENGINE, Group.REQUIREMENT)
"""The engine's own parameters, in the order of the command line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A knob's final value, with the whole history of its definitions, strongest first."""

    group: Group
    history: tuple[Judged, ...]

    @property
    def winner(self) -> Definition:
        return self.history[0].definition

    @property
    def knob(self) -> str:
        return self.winner.knob

    @property
    def value(self) -> Plain:
        return self.winner.value


def same(one: Plain, other: Plain) -> bool:
    """Whether two values mean the same; `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other
