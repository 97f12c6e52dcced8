"""gate, the flags: every word of a plan's command against what the engine's version accepts.

overrides: {nnodes: 2} with vllm 0.10.0 -> SV0615 at `nnodes`: there is since 0.11.1
env: {VLLM_USE_V2: "1"}                 -> SV0620 at the name
"""

from __future__ import annotations

from collections.abc import Iterator

from servec.catalog.calls import Called
from servec.catalog.catalog import Catalog
from servec.catalog.engines import EngineAt
from servec.catalog.released import Released
from servec.catalog.verdicts import Verdict, judge, unknown_variable
from servec.diag import codes
from servec.diag.findings import Finding, Findings, Severity
from servec.ir.launch import Words
from servec.ir.plan import Plan
from servec.ir.setting import PARAMETER_GROUPS, Setting
from servec.source.located import Plain, Span, place_inside
from servec.strategy.command import command
from servec.strategy.words import word_of

RULES = {codes.ADAPTERS: "`adapters:`", codes.NO_ALGORITHM: "`speculative:`"}
"""Whose flags need no verdict where a finding has told of what they come from."""


def flags(plan: Plan, catalog: Catalog, findings: Findings) -> None:
    """Findings about what the version does not accept, each at the value that says it."""
    subject = plan.subject
    released = catalog.released(subject.engine.name)
    if released is None or subject.model.checkpoint is None:
        return
    _age(plan, released, findings)
    _variables(plan, released, findings)
    if subject.told is not None:
        return
    engine = subject.engine.at(subject.version.version)
    if engine.call is None:
        return
    groups = list(command(plan, engine))
    told = {finding.span for finding in findings if finding.severity is Severity.ERROR}
    spoken = {RULES[finding.code] for finding in findings if finding.code in RULES}
    unreadable = {
        (finding.span.file, finding.span.line)
        for finding in findings
        if finding.span and finding.code.number.startswith("SV01")
    }
    words: list[str] = []
    owners: list[Words] = []
    for group in groups[1:]:  # the program's own words come first
        words += map(str, group.words)
        owners += [group] * len(group.words)
    for verdict in judge(
        words,
        engine.serve,
        engine.manifest.engine.value,
        released,
        subject.version.version,
        Called(0, 0 if engine.call and engine.call.model else 1),
        at_start=Severity.ERROR,
        beside=dict(_beside(plan, engine)),
    ):
        owner = owners[verdict.place] if owners else None
        name = _place(owner, plan)
        found = verdict.at(_inside(owner, verdict) or name)
        rule = owner.origin.rule if owner else ""
        if (name.file, name.line) in unreadable:
            continue
        if verdict.code is codes.STRAY_WORD and owner is not None and owner.setting is not None:
            found = _no_value(owner, owner.setting, found)
        value = owner.setting.winner.place if owner and owner.setting else name
        if not {name, value, found.span} & told and rule not in spoken:  # said once is enough
            findings.put(found)
    _renamed(plan, findings)


def _no_value(owner: Words, setting: Setting, stray: Finding) -> Finding:
    """A word behind a flag that takes none, or not so many, told in the words of a source."""
    if len(owner.words) == 2:
        problem, advice = "it is a switch", "write `true` or `false`"
    else:
        problem, advice = "it takes one value", "write one"
    arguments = {"knob": setting.winner.name, "problem": problem, "advice": advice}
    return Finding(
        codes.UNREPRESENTABLE, stray.severity, setting.winner.place, tuple(arguments.items())
    )


def _beside(plan: Plan, engine: EngineAt) -> Iterator[tuple[str, Plain]]:
    """Variables of the spec, and the keys of files of options, down to their leaves."""
    for item in plan.subject.model.env:
        yield f"env.{item.key.value}", item.value.value
    for setting in plan.settings:
        if engine.option(setting.knob):
            yield from _leaves(setting.knob, setting.value)


def _leaves(name: str, value: Plain) -> Iterator[tuple[str, Plain]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name, value


def _place(owner: Words | None, plan: Plan) -> Span:
    span = owner.origin.span if owner else None
    return span or plan.subject.model.name.span


def _inside(owner: Words | None, verdict: Verdict) -> Span | None:
    """The place of a value, or of what is wrong inside it, where a source has it."""
    node = owner.setting.winner.node if owner and owner.setting else None
    if node is None or verdict.inside is None:
        return None
    return place_inside(node, verdict.inside, of_key=verdict.of_key)


def _age(plan: Plan, released: Released, findings: Findings) -> None:
    """A version newer or older than all that was read: what it accepts is a guess."""
    version, model = plan.subject.version.version, plan.subject.model
    if version is not None and not released.covers(version):
        place = model.engine_version or model.image or model.name
        released.tell_end(plan.subject.engine.name, version, place.span, findings)


def _renamed(plan: Plan, findings: Findings) -> None:
    """Parameters that were written under a name of another version."""
    written: dict[tuple[Span | None, str], list[str]] = {}
    for setting in plan.settings:
        winner = setting.winner
        if winner.renamed:
            text = f"`{setting.knob}: {word_of(setting.value)}`"
            written.setdefault((winner.origin.span, winner.renamed), []).append(text)
    for (span, text), become in written.items():
        findings.add(
            codes.RENAMED,
            span,
            written=text,
            become=" and ".join(become),
            engine=plan.subject.engine.name,
            version=plan.subject.version.version or "of unknown version",
        )


def _variables(plan: Plan, released: Released, findings: Findings) -> None:
    """Variables that begin as the engine's do and that the version does not read: those of `env:`,
    and for a container that is told everything so, those of its settings."""
    subject = plan.subject
    if subject.prefix != subject.engine.manifest.env_var_prefix.value:
        return  # a container with names of its own, which are not catalogued
    told: list[tuple[str, Span | None]] = [
        (item.key.value, item.key.span) for item in subject.model.env
    ]
    if subject.told is not None:
        told += [
            (subject.variable(setting.knob), setting.winner.origin.span)
            for setting in plan.settings
            if setting.group in PARAMETER_GROUPS and setting.value is not None
        ]
    for name, span in told:
        verdict = unknown_variable(
            name,
            subject.prefix,
            subject.engine.name,
            subject.engine.at(subject.version.version).serve,
            released,
            subject.version.version,
        )
        if verdict is not None:
            findings.put(verdict.at(span or subject.model.name.span))
