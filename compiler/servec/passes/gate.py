"""gate: what the pinned version, the site and safety allow -> findings; plans pass unchanged.

    recipe tested with vllm >=0.17.0, plan pins 0.11.0 -> SV0601 (warning)
    overrides: {api_key: …}                            -> SV0604 (error), the key is not printed

gate_engine, gate_flags and gate_settings are its parts.
"""

from __future__ import annotations

import re

from servec.catalog.catalog import Catalog
from servec.catalog.versions import first_that_holds, in_range, parse_range
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.ir import decl, knowledge
from servec.ir.plan import Plan
from servec.ir.setting import Rank, same
from servec.ir.site import gpu_resource, targets_of
from servec.ir.words import NAME_CHARACTERS
from servec.passes.carried import (
    BASH_OWN,
    ENV_NAME,
    IN_THE_IMAGE,
    WRAPPER_OWN,
    not_carried,
    refused,
    secret_advice,
    unexpanded,
)
from servec.passes.gate_engine import abilities
from servec.passes.gate_flags import flags
from servec.passes.gate_settings import is_credential, settings
from servec.passes.gate_shape import shape
from servec.source.located import At, Span, plain

SECRET_ENV = re.compile(
    r"(?i).*(?:PASSWORD|PASSWD|SECRET|(?:^|_)(?:TOKEN|PAT|PASS|CREDENTIALS?)|"
    r"(?:^|_)(?:API|SECRET|ACCESS|PRIVATE|SSH)_?KEYS?)\Z"
)
"""Names that hold a credential whatever reads them."""


def run(
    plans: tuple[Plan, ...], project: decl.Project, catalog: Catalog, findings: Findings
) -> tuple[Plan, ...]:
    for plan in plans:
        abilities(plan, catalog, findings)
        _call(plan, findings)
        _tested_versions(plan, findings)
        _known_issues(plan, findings)
        settings(plan, findings)
        _environment(plan, findings)
        _checkpoint(plan, findings)
        _precision(plan, findings)
        _parallelism(plan, findings)
        shape(plan, findings)
        _hosts(plan, project, findings)
        _kubernetes(plan, project, findings)
        _api_key(plan, project, findings)
        flags(plan, catalog, findings)
    return plans


def _call(plan: Plan, findings: Findings) -> None:
    """A manifest whose ranges leave this version out says no way to call it."""
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    if subject.told is None and engine.call is None:
        findings.add(
            codes.BROKEN_ENGINE,
            subject.engine.serve.span,
            engine=subject.engine.name,
            problem=f"no rule of `calls` is for {subject.version.version or 'an unknown version'}",
            advice="add a rule without `versions` at the end",
        )


def _tested_versions(plan: Plan, findings: Findings) -> None:
    recipe, version = plan.subject.recipe, plan.subject.version.version
    if recipe is None:
        return
    for item in recipe.tested_versions:
        ranges = [text for text in item.value if parse_range(text.value) is not None]
        if item.key.value != plan.subject.engine.name or version is None or not ranges:
            continue
        if not any(in_range(version, text.value) for text in ranges):
            findings.add(
                codes.UNTESTED_VERSION,
                _version_place(plan).span,
                recipe=recipe.name.value,
                engine=item.key.value,
                tested=" or ".join(text.value for text in ranges),
                version=version,
                also=(ranges[0].span, "tested versions"),
            )


def _version_place(plan: Plan) -> At[str]:
    """Where the version that counts is said."""
    model = plan.subject.model
    said = model.engine_version if plan.subject.version.source == "spec" else model.image
    return said or model.name


def _known_issues(plan: Plan, findings: Findings) -> None:
    subject = plan.subject
    for known in subject.recipe.known_issues if subject.recipe else ():
        issue = known.issue if isinstance(known, knowledge.KnownIssue) else known
        if isinstance(known, knowledge.KnownIssue) and not _concerns(known, plan):
            continue
        findings.add(
            codes.KNOWN_ISSUE,
            subject.model.name.span,
            recipe=subject.recipe.name.value if subject.recipe else "",
            issue=" ".join(issue.value.split()),
            also=(issue.span, "known issue"),
        )


def _concerns(known: knowledge.KnownIssue, plan: Plan) -> bool:
    subject = plan.subject
    if known.engine is not None and known.engine.value != subject.engine.name:
        return False
    if known.deterministic and known.deterministic.value and not _is_deterministic(plan):
        return False
    for entry in known.parameters.entries.values() if known.parameters else ():
        setting = plan.setting(entry.key.value)
        if setting is None or not same(setting.value, plain(entry.value)):
            return False
    version = subject.version.version
    return known.versions is None or version is None or in_range(version, known.versions.value)


def _is_deterministic(plan: Plan) -> bool:
    said = plan.subject.model.deterministic
    return said is not None and said.value


def _environment(plan: Plan, findings: Findings) -> None:
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    locked = subject.engine.serve.deterministic if _is_deterministic(plan) else None
    required = {item.key.value: item.value.value for item in locked.env} if locked else {}
    for item in subject.model.env:
        name, value = item.key.value, item.value.value
        if not ENV_NAME.match(name) or name in BASH_OWN | WRAPPER_OWN:
            findings.add(codes.BAD_ENV_NAME, item.key.span, name=name)
        elif name in engine.secret_env or SECRET_ENV.match(name) or is_credential(value):
            advice = secret_advice(name, engine)
            findings.add(codes.SECRET, item.key.span, name=name, advice=advice)
        elif reason := refused(name, engine):
            findings.add(
                codes.REFUSED_VARIABLE, item.key.span, name=name, reason=reason, advice=IN_THE_IMAGE
            )
        elif name in required and required[name] != value:
            said = subject.model.deterministic
            also = (said.span, "locked by this") if said else ()
            findings.add(
                codes.LOCKED_ENV, item.value.span, name=name, value=required[name], also=also
            )
        elif problem := not_carried(value):
            span, advice = item.value.span, "take it out"
            findings.add(codes.UNREPRESENTABLE, span, knob=name, problem=problem, advice=advice)
        elif text := unexpanded(value):
            findings.add(codes.NOT_EXPANDED, item.value.span, text=text)


def _checkpoint(plan: Plan, findings: Findings) -> None:
    checkpoint = plan.subject.model.checkpoint
    problem = not_carried(checkpoint.value) if checkpoint else ""
    if checkpoint and problem:
        knob, advice = "checkpoint", "take it out"
        findings.add(
            codes.UNREPRESENTABLE, checkpoint.span, knob=knob, problem=problem, advice=advice
        )


def _precision(plan: Plan, findings: Findings) -> None:
    """The weights' own precision, and what the accelerator computes in."""
    subject = plan.subject
    said, facts = subject.model.precision, subject.facts.precision
    if said and facts and said.value != facts and plan.setting("quantization") is None:
        checkpoint = subject.model.checkpoint.value if subject.model.checkpoint else ""
        span, said_value = said.span, said.value
        findings.add(
            codes.OTHER_PRECISION, span, said=said_value, checkpoint=checkpoint, facts=facts
        )
    formats = [item.value for item in subject.accelerator.formats]
    dtype = subject.engine.serve.dtype
    overridden = (
        dtype and (setting := plan.setting(dtype.value)) and (setting.winner.rank >= Rank.OVERRIDE)
    )
    if subject.precision == "bf16" and formats and "bf16" not in formats and not overridden:
        findings.add(
            codes.NO_FORMAT,
            (subject.model.hardware or subject.model.name).span,
            accelerator=subject.accelerator.name.value,
            precision=subject.precision,
            formats=", ".join(formats),
        )


def _parallelism(plan: Plan, findings: Findings) -> None:
    """What the engine has no flag for is left out, and said. An engine that has none for tp takes
    every GPU that it sees."""
    engine = plan.subject.engine.at(plan.subject.version.version)
    flagged = {flag.of.value for flag in engine.topology_flags}
    if flagged & {"plain_dp", "attention_dp"}:
        flagged.add("dp")
    if plan.topology.enable_dp_attention and engine.serve.topology.tp_counts is None:
        _no_flag(plan, "attention data parallelism", "topology.enable_dp_attention", findings)
    for key in ("pp", "dp", "ep", "cp", "dcp"):
        if (getattr(plan.topology, key) or 1) > 1 and key not in flagged:
            _no_flag(plan, f"`{key}`", f"topology.{key}", findings)


def _no_flag(plan: Plan, what: str, knob: str, findings: Findings) -> None:
    setting = plan.setting(knob)
    span: Span | None = setting.winner.origin.span if setting else None
    topology = plan.topology
    used = topology.tp * topology.pp
    idle = (
        f"; {topology.gpus - used} of {topology.gpus} GPUs do nothing"
        if knob.endswith(".dp")
        else ""
    )
    findings.add(codes.NO_FLAG, span, engine=plan.subject.engine.name, what=what, idle=idle)


def _hosts(plan: Plan, project: decl.Project, findings: Findings) -> None:
    """A container that starts itself has no command for a host to run."""
    subject = plan.subject
    if subject.told is None or subject.model.is_hole("targets"):
        return
    named = subject.model.targets or project.targets
    hosts = [item for item in named if item.value != "kubernetes"]
    if hosts or not named:
        words = " or ".join(item.value for item in hosts) or "bash or systemd"
        span = (hosts[0] if hosts else subject.model.name).span
        findings.add(codes.NO_COMMAND, span, engine=subject.engine.name, targets=words)


def _api_key(plan: Plan, project: decl.Project, findings: Findings) -> None:
    """A site that has an API key, and a server that has no channel for one."""
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    targets = targets_of(subject.model, project)
    sites = {"systemd": project.systemd, "kubernetes": project.kubernetes}
    has_key = any(
        site is not None and site.api_key is not None and target in targets
        for target, site in sites.items()
    )
    channel = first_that_holds(engine.serve.api_key, engine.version)
    if has_key and channel is not None and channel.file is not None:
        flag = channel.file.flag.value
        setting = plan.setting(flag.removeprefix("--").replace("-", "_"))
        span = setting.winner.origin.span if setting is not None else None
        if span is not None:
            problem = f"the key goes into a file of {flag}, of which there is one already"
            advice = f"give the options of that file under `overrides:`, and leave {flag} out"
            findings.add(codes.NO_KEY_CHANNEL, span, problem=problem, advice=advice)
    if has_key and channel is None:
        place = subject.model.engine or subject.model.name
        version = engine.version or "of unknown version"
        findings.add(
            codes.NO_KEY_CHANNEL,
            place.span,
            problem=f"{subject.engine.name} {version} takes no API key but on its command line, "
            f"so `{plan.name}` is open to whoever reaches it",
            advice="keep its port behind a proxy or a network policy, or take another version",
            severity=Severity.WARNING,
        )


def _kubernetes(plan: Plan, project: decl.Project, findings: Findings) -> None:
    """What a pod needs and a host does not: an image, a resource name, a Service's name."""
    subject = plan.subject
    named = subject.model.targets or project.targets
    target = next((item for item in named if item.value == "kubernetes"), None)
    if (named and target is None) or subject.model.is_hole("targets"):
        return
    span = (target or subject.model.name).span
    if subject.image is None:
        advice = "give `image:`, or leave the target out with `targets: [bash, systemd]`"
        findings.add(codes.NO_IMAGE, span, target="kubernetes", advice=advice)
    site = project.kubernetes
    resource = gpu_resource(subject.accelerator, site)
    if resource is None:
        advice = "name it in servec.yaml as `kubernetes: {gpu_resource: …}`"
        where = f"accelerator `{subject.accelerator.name.value}`"
        findings.add(codes.MISSING_KEY, span, where=where, key="gpu_resource", advice=advice)
    if site and site.rdma and site.rdma.resource.value == resource:
        findings.add(
            codes.BAD_VALUE,
            site.rdma.resource.span,
            where="`kubernetes.rdma.resource`",
            wanted="the resource of RDMA, another than the GPUs'",
            value=f"`{resource}`",
        )
    # A Service's name is a DNS-1035 label: it begins with a letter.
    if re.match(r"[0-9]", plan.name):
        what, limit, place = "a Kubernetes Service", NAME_CHARACTERS, subject.model.name
        findings.add(codes.BAD_NAME, place.span, name=plan.name, what=what, limit=limit)
