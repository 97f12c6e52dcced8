"""gate, the engine's own abilities: speculative decoding, adapters, features, drivers."""

from __future__ import annotations

from packaging.version import Version

from servec.catalog.capabilities import Capabilities
from servec.catalog.catalog import Catalog
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir import knowledge
from servec.ir.manifest import SPECULATIVE_WORDS, SpeculativeRules
from servec.ir.plan import Plan
from servec.ir.setting import PARAMETER_GROUPS
from servec.source.located import plain


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
    elif said.model is not None and said.model.value.startswith("s3://"):
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
    """Names in `env:` that a feature or a setting is told by: one of the two would be lost."""
    subject = plan.subject
    engine, features = subject.engine.at(subject.version.version), subject.model.features
    others = {
        subject.prefix
        + item.value.env_var.value.removeprefix(
            subject.engine.manifest.env_var_prefix.value
        ): f"the feature `{item.key.value}`"
        for item in subject.engine.manifest.engine_features
        if features is not None and item.key.value in features.entries
    }
    told = subject.told
    if told is not None:
        others[told.model.value] = "`checkpoint:`"
        for setting in plan.settings:
            if setting.value is not None and setting.group in PARAMETER_GROUPS:
                others[subject.variable(setting.knob)] = f"the setting `{setting.knob}`"
        for flag, _ in engine.topology_values(plan.topology):
            others[subject.variable(flag.flag.value)] = f"`{flag.of.value}` of the topology"
    for item in subject.model.env:
        if other := others.get(item.key.value):
            findings.add(codes.VARIABLE_TWICE, item.key.span, name=item.key.value, other=other)


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
