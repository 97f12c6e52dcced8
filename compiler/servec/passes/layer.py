"""layer: definitions of every strength -> settings with their history.

    hardware layer   max_model_len: 32768      recipes/qwen3.yaml:31:72
    spec override    max_model_len: 16384      specs/qwen3.yaml:9:22
      -> max_model_len = 16384, won by the override; the 32768 is kept as overruled

Precedence is the order of `Rank` and is applied in `_settle`, nowhere else. Order is part of the
output: derived parameters first, then each knob at the place of its first definition in the layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from servec.catalog.engines import OWN_KNOBS
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.ir import decl
from servec.ir.plan import Draft, Need, Plan, Unmet
from servec.ir.program import Subject
from servec.ir.setting import DETERMINISTIC, Definition, Group, Judged, Outcome, Rank, Setting, same
from servec.ir.topology import ONE
from servec.passes.layer_sources import TOPOLOGY, definitions_of
from servec.passes.layer_topology import in_own_words, settle_topology
from servec.passes.require import is_met
from servec.source.located import Plain


def run(drafts: tuple[Draft, ...], sources: decl.Sources, findings: Findings) -> tuple[Plan, ...]:
    policy = sources.project.requirement_conflicts
    conflict = Severity.ERROR if policy and policy.value == "error" else Severity.WARNING
    layer = _Layer(sources, findings, conflict)
    return tuple(layer.plan(draft) for draft in drafts)


class _Layer:
    def __init__(self, sources: decl.Sources, findings: Findings, conflict: Severity) -> None:
        self.sources = sources
        self.findings = findings
        self.conflict = conflict

    def plan(self, draft: Draft) -> Plan:
        definitions = definitions_of(draft.subject, draft.turn, self.sources, self.findings)
        topology = settle_topology(draft, self.topology(draft, definitions), self.findings)
        settings, unmet = [], []
        for knob, found in _by_knob(definitions, draft.needs).items():
            setting = self.settle(draft, knob, found)
            if setting is None:
                continue
            need = _need_of(knob, draft.needs)
            if need is not None and setting.winner.rank > Rank.REQUIREMENT:
                setting, met = self.weigh(setting, need)
                if not met:
                    unmet.append(Unmet(need.requirement, knob))
            settings.append(setting)
        shape, shaping = topology if topology is not None else (ONE, ())
        return Plan(draft.subject, shape, (*shaping, *settings), draft.needs, tuple(unmet))

    def topology(self, draft: Draft, definitions: Iterable[Definition]) -> dict[str, Setting]:
        """The settings of the topology's keys that something says, by key; tp in servec's own
        meaning, which takes the settings of attention data parallelism and dp."""
        found = _by_knob((item for item in definitions if _is_topology(item)), (), topology=True)
        settled: dict[str, Setting] = {}
        for knob in sorted(found, key=lambda knob: knob == f"{TOPOLOGY}tp"):
            items = found[knob]
            if knob == f"{TOPOLOGY}tp":
                items = in_own_words(draft, items, settled, self.findings)
            setting = self.settle(draft, knob, items) if items else None
            if setting is not None:
                settled[knob.removeprefix(TOPOLOGY)] = setting
        return settled

    def settle(self, draft: Draft, knob: str, definitions: Sequence[Definition]) -> Setting | None:
        """The strongest definition wins; two unequal ones of one rank are an error."""
        ranked = sorted(definitions, key=lambda item: -item.rank)  # stable: the first said stands
        winner = ranked[0]
        if winner.rank is Rank.ENGINE_DEFAULT:
            return None
        subject = draft.subject
        if knob not in subject.engine.at(subject.version.version).secret_flags:
            self.compare(knob, ranked)
        judged = [Judged(winner, Outcome.WON)]
        for item in ranked[1:]:
            agrees = same(item.value, winner.value)
            judged.append(Judged(item, Outcome.AGREES if agrees else Outcome.OVERRULED))
        return Setting(_group(winner, subject), tuple(judged))

    def compare(self, knob: str, ranked: Sequence[Definition]) -> None:
        for one, other in pairwise(ranked):
            if one.rank is other.rank and not same(one.value, other.value):
                self.findings.add(
                    codes.TWO_VALUES,
                    other.origin.span,
                    knob=knob.removeprefix(TOPOLOGY),
                    one=_written(one),
                    other=_written(other),
                    rank=one.rank.words,
                    also=(one.origin.span, "the other") if one.origin.span else (),
                )

    def weigh(self, setting: Setting, need: Need) -> tuple[Setting, bool]:
        """Mark a requirement that something stronger suppressed; unmet, it is a finding."""
        assert need.rule is not None
        winner = setting.winner
        met = is_met(need.rule, need.value, winner.value) or isinstance(winner.value, str)
        outcome = Outcome.SUPPRESSED if met else Outcome.UNMET
        history = tuple(
            Judged(item, outcome) if item.rank is Rank.REQUIREMENT else Judged(item, judged)
            for item, judged in setting.history
        )
        if not met:
            rule = need.rule
            tasks = [task for task, wanted in need.asked if not is_met(rule, wanted, winner.value)]
            named = ", ".join(f"`{task}`" for task in tasks)
            self.findings.add(
                codes.UNMET,
                winner.origin.span,
                requirement=_demand(need),
                tasks=f"task {named}" if len(tasks) == 1 else f"tasks {named}",
                knob=setting.knob,
                value=shown(winner.value),
                rank=winner.rank.words,
                severity=self.conflict,
                also=(need.span, "required here") if need.span else (),
            )
        return Setting(setting.group, history), met


def _is_topology(item: Definition) -> bool:
    return item.knob.startswith(TOPOLOGY)


def _by_knob(
    definitions: Iterable[Definition], needs: tuple[Need, ...], *, topology: bool = False
) -> dict[str, list[Definition]]:
    """Definitions by knob, in the order of the first one in the layers; a derived value has no
    place of its own once something stronger is there."""
    found: dict[str, list[Definition]] = {}
    derived: dict[str, list[Definition]] = {}
    for item in definitions:
        if _is_topology(item) is topology:
            (derived if item.rank is Rank.DERIVED else found).setdefault(item.knob, []).append(item)
    first = {knob: items for knob, items in derived.items() if knob not in found}
    for knob, items in derived.items():
        if knob in found:
            found[knob] += items
    found = {**first, **found}
    for need in needs:
        for item in need.definitions:
            found.setdefault(item.knob, []).append(item)
    return found


def _need_of(knob: str, needs: tuple[Need, ...]) -> Need | None:
    return next(
        (need for need in needs if need.rule and need.rule.knob and need.rule.knob.value == knob),
        None,
    )


def _demand(need: Need) -> str:
    return f"{need.requirement}: {shown(need.value)}"


def _group(winner: Definition, subject: Subject) -> Group:
    if _is_topology(winner):
        return Group.TOPOLOGY
    always = subject.engine.serve.always
    is_default = always is not None and winner.knob in always.entries
    if winner.knob in OWN_KNOBS or (winner.rank is Rank.DERIVED and is_default):
        return Group.OWN
    if winner.rank is Rank.REQUIREMENT:
        return Group.REQUIREMENT
    return Group.DETERMINISTIC if winner.origin.rule == DETERMINISTIC else Group.ENGINE


def _written(item: Definition) -> str:
    if item.rank is Rank.OVERRIDE and item.origin.rule:
        return item.origin.rule  # said in other words, as `deterministic: true`
    return f"`{item.name.removeprefix(TOPOLOGY)}: {shown(item.written)}`"


def shown(value: Plain) -> str:
    """A value as a source would write it, for messages."""
    import json

    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
