"""Plans: first drafts that hold definitions, then plans that hold settings.

A draft has what was said, of whatever strength; a plan has what holds, and keeps what was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servec.ir.manifest import RequirementRule
from servec.ir.program import Demand, Subject
from servec.ir.setting import Definition, Setting
from servec.source.located import Span

REQUIREMENTS = ("needs_input_logprobs", "min_top_logprobs")
"""What a task may require, in the order of infer_plans.yaml."""


@dataclass(frozen=True, slots=True)
class Need:
    """A requirement joined over all tasks that reach a server: its value, who asked for it, the
    engine's rule for it (None where it has none), and the definitions that the rule makes."""

    requirement: str
    value: bool | int
    tasks: tuple[str, ...]
    rule: RequirementRule | None
    definitions: tuple[Definition, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan before anything is decided."""

    subject: Subject
    demands: tuple[Demand, ...]
    formula_tp: int | None
    formula: str
    needs: tuple[Need, ...] = ()


class Topology(NamedTuple):
    """How one replica is spread; tp·pp·dp GPUs. None is said for what is not used."""

    tp: int
    pp: int
    dp: int
    ep: int | None
    cp: int | None
    dcp: int | None
    enable_dp_attention: bool
    replicas: int

    @property
    def gpus(self) -> int:
        return self.tp * self.pp * self.dp


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
