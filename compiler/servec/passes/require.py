"""require: what tasks demand -> what the server's knobs should be.

    tasks of a model: {needs_input_logprobs: true}, {min_top_logprobs: 50}, {min_top_logprobs: 100}
      -> Need(needs_input_logprobs, true): enable_prefix_caching = false   (eval requirement)
         Need(min_top_logprobs, 100): max_logprobs = 100                   (eval requirement)

Booleans are joined by OR, minimums by max. Which knob a requirement turns depends on the engine's
version and is in its manifest. A floor never lowers the engine's default.
"""

from __future__ import annotations

from dataclasses import replace

from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir.plan import REQUIREMENTS, Draft, Need
from servec.ir.program import Demand
from servec.ir.serve import RequirementRule
from servec.ir.setting import Definition, Origin, Rank, same
from servec.source.located import At, Plain, plain


def run(drafts: tuple[Draft, ...], findings: Findings) -> tuple[Draft, ...]:
    return tuple(
        replace(draft, needs=_needs(draft, findings)) if draft.demands else draft
        for draft in drafts
    )


def _needs(draft: Draft, findings: Findings) -> tuple[Need, ...]:
    needs = []
    for requirement in REQUIREMENTS:
        asked = [
            (demand, value)
            for demand in draft.demands
            if (value := getattr(demand.requires, requirement)) is not None
            and value.value is not False
        ]
        if asked:
            needs.append(_need(draft, requirement, asked, findings))
    return tuple(needs)


def _need(
    draft: Draft,
    requirement: str,
    asked: list[tuple[Demand, At[bool | int]]],
    findings: Findings,
) -> Need:
    """One requirement of all tasks; the first task that asks for the most is its place."""
    demand, most = max(asked, key=lambda pair: pair[1].value)
    tasks = tuple((demand.task, value.value) for demand, value in asked)
    subject = draft.subject
    rule = subject.engine.at(subject.version.version).requirement(requirement)
    if rule is None:
        findings.add(
            codes.NO_RULE,
            most.span,
            engine=subject.engine.name,
            version=subject.version,
            requirement=requirement,
            also=(subject.model.name.span, f"`{subject.name}` is served here"),
        )
        return Need(requirement, most.value, tasks, None, (), most.span)
    path = f"{demand.file} tasks.{demand.task}.requires.{requirement}"
    origin = Origin(most.span, path)
    definitions = _definitions(rule, most.value, origin)
    return Need(requirement, most.value, tasks, rule, definitions, most.span)


def _definitions(
    rule: RequirementRule, wanted: bool | int, origin: Origin
) -> tuple[Definition, ...]:
    if rule.knob is None:
        return ()
    knob = rule.knob.value
    found = []
    value: Plain
    if rule.floor and rule.floor.value:
        value = int(wanted)
        if rule.default is not None:
            place = Origin(None, "", "the engine's own default")
            default = rule.default.value
            found.append(Definition(knob, knob, default, default, Rank.ENGINE_DEFAULT, place))
            if value <= default:
                return tuple(found)
    else:
        value = plain(rule.value) if rule.value is not None else True
    found.insert(0, Definition(knob, knob, value, value, Rank.REQUIREMENT, origin))
    return tuple(found)


def is_met(rule: RequirementRule, wanted: bool | int, value: Plain) -> bool:
    """Whether a knob's value meets a requirement."""
    if rule.floor and rule.floor.value:
        if rule.unlimited is not None and value == rule.unlimited.value:
            return True
        return isinstance(value, int) and not isinstance(value, bool) and value >= wanted
    return same(value, plain(rule.value) if rule.value is not None else True)
