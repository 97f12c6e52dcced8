"""gate, the engine's own abilities: speculative decoding, adapters, features, drivers."""

from __future__ import annotations

from servec.catalog.capabilities import Capabilities
from servec.catalog.catalog import Catalog
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir.plan import Plan
from servec.source.located import plain


def abilities(plan: Plan, catalog: Catalog, findings: Findings) -> None:
    """Findings about what the spec asks of the engine and the engine's version does not have."""
    _speculative(plan, catalog, findings)
    _adapters(plan, findings)
    _features(plan, findings)


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
        image = catalog.images.lowest_since(subject.engine.name, since) if since else None
        names = [item.value for item in subject.engine.manifest.supported_algorithms]
        advice = f"upgrade the base image to {image}" if image else "take another one, or none"
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
        problem = f"servec knows no way to tell {subject.engine.name} of it"
        advice = "add `serve: {speculative: …}` to its manifest"
        findings.add(codes.NO_ALGORITHM, said.algorithm.span, problem=problem, advice=advice)


def _adapters(plan: Plan, findings: Findings) -> None:
    subject = plan.subject
    rules = subject.engine.serve.adapters
    for adapter in subject.model.adapters:
        problem, span = "", adapter.span
        if rules is None:
            problem = f"servec knows no way to give {subject.engine.name} adapters"
        elif "=" in adapter.name.value or adapter.name.value.startswith("-"):
            problem, span = f"`{adapter.name.value}` is no name for an adapter", adapter.name.span
        elif adapter.rank and rules.ranks and adapter.rank.value > rules.ranks[-1].value:
            most = rules.ranks[-1].value
            problem, span = f"{subject.engine.name} takes ranks up to {most}", adapter.rank.span
        if problem:
            findings.add(codes.ADAPTERS, span, problem=problem, advice="")


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
