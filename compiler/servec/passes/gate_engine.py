"""gate, the engine's own abilities: speculative decoding, adapters, features, drivers."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from servec.catalog.capabilities import Capabilities
from servec.catalog.catalog import Catalog
from servec.catalog.engines import OWN_KNOBS
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.diag.suggest import nearest
from servec.ir import knowledge
from servec.ir.plan import Plan
from servec.ir.serve import SPECULATIVE_WORDS, SpeculativeRules
from servec.ir.setting import PARAMETER_GROUPS, Rank
from servec.source.located import Span, plain


def abilities(plan: Plan, catalog: Catalog, findings: Findings) -> None:
    """Findings about what the spec asks of the engine and the engine's version does not have."""
    _speculative(plan, catalog, findings)
    _adapters(plan, findings)
    _features(plan, findings)
    _variables(plan, findings)
    _driver(plan, catalog, findings)


def _speculative(plan: Plan, catalog: Catalog, findings: Findings) -> None:
    subject = plan.subject
    said = subject.model.speculative
    if said is None:
        return
    found = Capabilities(subject.engine.manifest, subject.version)
    algorithm = said.algorithm.value
    reason = found.why_not(algorithm)
    if reason:
        since = found.since(algorithm)
        advice = catalog.images.upgrade(subject.engine.name, since) or "take another one, or none"
        names = [item.value for item in subject.engine.manifest.supported_algorithms]
        near = None if since else nearest(algorithm, names)
        findings.add(
            codes.NO_ALGORITHM,
            said.algorithm.span,
            problem=reason,
            advice="" if near else advice,
            suggestion=near,
        )
    elif said.model is not None and said.model.value.strip().lower().startswith("s3://"):
        problem = "a draft model cannot be read from s3://"
        advice = "give a hub id, or a path that the server sees"
        findings.add(codes.NO_ALGORITHM, said.model.span, problem=problem, advice=advice)
    elif subject.engine.serve.speculative is None:
        problem = f"servec knows no way to tell {subject.engine.name} of speculative decoding"
        advice = "add `serve: {speculative: …}` to its manifest"
        findings.add(codes.NO_ALGORITHM, said.algorithm.span, problem=problem, advice=advice)
    else:
        _unnamed_words(plan, subject.engine.serve.speculative, findings)


def _unnamed_words(plan: Plan, rules: SpeculativeRules, findings: Findings) -> None:
    """Words of the spec that the engine has no parameter for: they would be lost."""
    said, engine = plan.subject.model.speculative, plan.subject.engine.name
    assert said is not None
    algorithm = said.algorithm.value
    needed = {item.key.value: item.value for item in rules.needs}.get(algorithm, ())
    lacking = [word.value for word in needed if getattr(said, word.value) is None]
    if lacking:
        findings.add(
            codes.NO_ALGORITHM,
            said.algorithm.span,
            problem=f"{algorithm} of {engine} needs `{'` and `'.join(lacking)}`",
            advice="say it under `speculative:`",
            severity=Severity.WARNING,
        )
    named = [item.key.value for item in rules.names]
    for word in SPECULATIVE_WORDS[1:]:
        value = getattr(said, word)
        if value is not None and word not in named:
            problem = f"{engine} has no parameter for `{word}` of `speculative:`"
            advice = f"take it out; {engine} has: {', '.join(named)}"
            findings.add(codes.NO_ALGORITHM, value.span, problem=problem, advice=advice)


def _adapters(plan: Plan, findings: Findings) -> None:
    subject = plan.subject
    rules, taken = subject.engine.serve.adapters, {subject.model.name.value}
    for adapter in subject.model.adapters:
        name, path = adapter.name.value, adapter.path.value
        if rules is None:
            span = adapter.span
            problem = f"servec knows no way to give {subject.engine.name} adapters"
            advice = "add `serve: {adapters: …}` to its manifest, or take them out"
        elif "=" in name or name.startswith("-"):
            span, problem = adapter.name.span, f"`{name}` is no name for an adapter"
            advice = "use letters, digits and `-`, a letter first"
        elif name in taken:
            span, problem = adapter.name.span, f"`{name}` is served already"
            advice = "give each adapter a name of its own, and none the model's"
        elif path.startswith("s3://"):
            span, problem = adapter.path.span, "an adapter cannot be read from s3://"
            advice = "give a hub id, or a path that the server sees"
        elif adapter.rank and rules.ranks and adapter.rank.value > rules.ranks[-1].value:
            most = rules.ranks[-1].value
            span, problem = adapter.rank.span, f"{subject.engine.name} takes ranks up to {most}"
            advice = "take an adapter of a lower rank"
        else:
            taken.add(name)
            continue
        findings.add(codes.ADAPTERS, span, problem=problem, advice=advice)


def _features(plan: Plan, findings: Findings) -> None:
    subject = plan.subject
    found = Capabilities(subject.engine.manifest, subject.version)
    for entry in subject.model.features.entries.values() if subject.model.features else ():
        _, problems = found.features({entry.key.value: plain(entry.value)})
        names = [item.key.value for item in subject.engine.manifest.engine_features]
        for problem in problems:
            known = f"its features: {', '.join(names)}" if names else ""
            near = None if entry.key.value in names else nearest(entry.key.value, names)
            findings.add(
                codes.BAD_FEATURE, entry.key.span, problem=problem, advice=known, suggestion=near
            )


def _variables(plan: Plan, findings: Findings) -> None:
    """One variable that two things would set: one of the two would be lost."""
    seen: dict[str, str] = {}
    for name, what, span in _told(plan):
        if name in seen:
            findings.add(codes.VARIABLE_TWICE, span, name=name, one=what, other=seen[name])
        seen.setdefault(name, what)
    if plan.subject.told is not None:
        for knob in OWN_KNOBS:
            setting = plan.setting(knob)
            if setting is not None and setting.winner.rank > Rank.DERIVED:
                problem = "the container owns its entry point and is not told of it"
                advice = "take it out"
                span = setting.winner.origin.span
                findings.add(codes.UNREPRESENTABLE, span, knob=knob, problem=problem, advice=advice)


def _told(plan: Plan) -> Iterator[tuple[str, str, Span | None]]:
    """Every variable that something sets, what sets it, and where that is said."""
    subject = plan.subject
    engine, model = subject.engine.at(subject.version.version), subject.model
    told = subject.told
    if told is not None:
        yield told.model.value, "`checkpoint:`", model.name.span
        for flag, _ in engine.topology_values(plan.topology):
            yield subject.variable(flag.flag.value), f"`{flag.of.value}` of the topology", None
    for setting in plan.settings:
        if setting.value is None or setting.group not in PARAMETER_GROUPS:
            continue
        known = engine.known(setting.knob)
        name = subject.variable(setting.knob) if told else (known.variable if known else "")
        if name:
            yield name, f"the setting `{setting.knob}`", setting.winner.origin.span
    own = subject.engine.manifest.env_var_prefix.value
    for item in subject.engine.manifest.engine_features:
        entry = model.features.entries.get(item.key.value) if model.features else None
        if entry is not None:
            name = subject.prefix + item.value.env_var.value.removeprefix(own)
            yield name, f"the feature `{item.key.value}`", entry.key.span
    for variable in model.env:
        yield variable.key.value, "`env:`", variable.key.span


def _driver(plan: Plan, catalog: Catalog, findings: Findings) -> None:
    """The lowest driver of the image against the one that the machine starts with."""
    subject, machine = plan.subject, _machine(plan)
    image = subject.image
    found = catalog.images.find(subject.engine.name, image.value) if image else None
    if not (image and found and found[0].driver and machine and machine.driver):
        return
    need, have = found[0].driver, machine.driver
    if Version(have.value) < Version(need.value):
        other = catalog.images.newest_on(found[0].engine.value, have.value)
        alone = "take an instance" if machine is subject.instance else "take a machine image"
        advice = f"take {other}, or a machine image" if other else alone
        findings.add(
            codes.OLD_DRIVER,
            image.span,
            need=need.value,
            machine=machine.name.value,
            have=have.value,
            advice=f"{advice} with a newer driver",
            also=(have.span, "its driver"),
        )


def _machine(plan: Plan) -> knowledge.Instance | knowledge.MachineImage | None:
    """What brings the driver: the machine image that is named, else the instance."""
    model = plan.subject.model
    said = model.machine_image is not None or model.is_hole("machine_image")
    return plan.subject.machine_image if said else plan.subject.instance
