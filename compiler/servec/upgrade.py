"""What another version of an engine changes: the project compiled as it is, and as it would be.

qwen3-8b  vllm 0.12.0 -> 0.33.0
  breaks      SV0615 specs/qwen3.yaml:9:17  vllm 0.33.0 has no flag `--swap-space`; …
  default     --gpu-memory-utilization  0.9 -> 0.92
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from packaging.version import Version

from servec.catalog.capabilities import Capabilities
from servec.catalog.released import Released
from servec.diag.findings import Finding, Findings, Severity
from servec.ir.facts import EngineVersion
from servec.ir.plan import Plan
from servec.ir.program import Program, Server, Subject
from servec.pipeline import Compiled, run
from servec.source.files import Files
from servec.source.located import At
from servec.strategy.command import command

_Change = Callable[[Subject], Subject]


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What changes for one plan. `breaks` and `warnings` are findings that it has only then; `gone`
    and `come` groups of words of the command; `defaults` are flags that it leaves to the engine,
    with what they are before and after; `opens` are algorithms that it could not have had."""

    plan: str
    old: EngineVersion
    new: EngineVersion
    breaks: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    gone: tuple[str, ...]
    come: tuple[str, ...]
    defaults: tuple[tuple[str, str, str], ...]
    opens: tuple[str, ...]


def upgrades(
    files: Files, engine: str, version: Version, image: str = ""
) -> tuple[tuple[Upgrade, ...], tuple[Finding, ...]]:
    """The changes of every plan on an engine, and the errors that the project has as it is."""
    now, findings = _compiled(files, files.findings, lambda subject: subject)
    if findings.errors:
        return (), findings.show()
    new = EngineVersion(version, "the version that is asked about")

    def changed(subject: Subject) -> Subject:
        if subject.engine.name != engine:
            return subject
        place = subject.image.span if subject.image else subject.model.name.span
        other = At(image, place) if image else subject.image
        return replace(subject, version=new, image=other)

    then, after = _compiled(files, Findings(), changed)
    fresh = [finding for finding in after if _key(finding) not in set(map(_key, findings))]
    after_plans = {plan.name: plan for plan in then.plans}
    plans = [plan for plan in now.plans if plan.subject.engine.name == engine]
    return tuple(_upgrade(plan, after_plans.get(plan.name), new, fresh) for plan in plans), ()


def _key(finding: Finding) -> tuple[object, ...]:
    """What makes two findings the same, whatever version their messages speak of."""
    return finding.code.number, finding.span, finding.severity


def _compiled(files: Files, findings: Findings, change: _Change) -> tuple[Compiled, Findings]:
    def program(found: Program) -> Program:
        servers = tuple(
            Server(item.model, tuple(map(change, item.variants)), item.demands)
            for item in found.servers
        )
        return replace(found, servers=servers)

    return run(files, findings, change=program), findings


def _upgrade(plan: Plan, after: Plan | None, new: EngineVersion, fresh: list[Finding]) -> Upgrade:
    spans = {judged.definition.origin.span for item in plan.settings for judged in item.history}
    spans |= set(plan.subject.model.said.values())
    spans |= {item.key.span for item in plan.subject.model.env}
    own = [finding for finding in fresh if finding.span in spans or _is_of(finding, plan)]
    old_words = _words(plan)
    new_words = _words(after) if after else old_words
    released = plan.subject.engine.released
    old = plan.subject.version
    return Upgrade(
        plan=plan.name,
        old=old,
        new=new,
        breaks=tuple(item for item in own if item.severity is Severity.ERROR),
        warnings=tuple(item for item in own if item.severity is Severity.WARNING),
        gone=tuple(words for words in old_words if words not in new_words),
        come=tuple(words for words in new_words if words not in old_words),
        defaults=tuple(_defaults(released, old_words, old, new)) if released else (),
        opens=tuple(_opens(plan, new)),
    )


def _words(plan: Plan) -> list[str]:
    """The groups of words of a plan's command."""
    engine = plan.subject.engine.at(plan.subject.version.version)
    return [" ".join(map(str, group.words)) for group in command(plan, engine)]


def _is_of(finding: Finding, plan: Plan) -> bool:
    """Whether a finding stands in the lines of a plan's model."""
    place, model = finding.span, plan.subject.model
    lines = [span.line for span in model.said.values()]
    return (
        place is not None
        and place.file == model.span.file
        and bool(lines)
        and min(lines) <= place.line <= max(lines)
    )


def _defaults(
    released: Released, words: list[str], old: EngineVersion, new: EngineVersion
) -> Iterator[tuple[str, str, str]]:
    """Flags that both versions have, that the plan does not give, and whose default moves."""
    if old.version is None or new.version is None:
        return
    given = {word.partition("=")[0] for group in words for word in group.split(" ")}
    one, other = released.at(old.version), released.at(new.version)
    for name in sorted(set(one.flags) & set(other.flags)):
        first, second = one.flags[name], other.flags[name]
        is_given = given & {*first.spellings, *first.negatives}
        if name == first.name and first.default != second.default and not is_given:
            yield name, _shown(first.default), _shown(second.default)


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _opens(plan: Plan, new: EngineVersion) -> Iterator[str]:
    """Algorithms that the new version has and the old one has not."""
    manifest = plan.subject.engine.manifest
    had = set(Capabilities(manifest, plan.subject.version).supported_algorithms)
    for name in Capabilities(manifest, new).supported_algorithms:
        if name not in had:
            yield name
