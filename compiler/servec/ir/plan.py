"""Plans: first drafts that hold definitions, then plans that hold settings.

A draft has what was said, of whatever strength; a plan has what holds, and keeps what was said.
"""

from __future__ import annotations

from dataclasses import dataclass

from servec.ir.program import Demand, Subject
from servec.ir.serve import RequirementRule
from servec.ir.setting import Definition, Setting
from servec.ir.topology import Topology
from servec.source.located import Span

REQUIREMENTS = ("needs_input_logprobs", "min_top_logprobs")
"""What a task may require, in the order of infer_plans.yaml."""


@dataclass(frozen=True, slots=True)
class Need:
    """A requirement joined over all tasks that reach a server: its value, what each task asked
    for, the engine's rule for it (None where it has none), and the definitions it makes."""

    requirement: str
    value: bool | int
    asked: tuple[tuple[str, bool | int], ...]
    rule: RequirementRule | None
    definitions: tuple[Definition, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan before anything is decided. `turn` counts the plans before it on the same hosts."""

    subject: Subject
    demands: tuple[Demand, ...]
    formula_tp: int | None
    formula: str
    turn: int = 0
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that a stronger value keeps from being met."""

    requirement: str
    knob: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided about one served model. `settings`: the topology's, then derived ones,
    then each knob in the order of its first definition in the layers."""

    subject: Subject
    topology: Topology
    settings: tuple[Setting, ...]
    needs: tuple[Need, ...]
    unmet: tuple[Unmet, ...]

    @property
    def name(self) -> str:
        return self.subject.name

    def setting(self, knob: str) -> Setting | None:
        return next((item for item in self.settings if item.knob == knob), None)
