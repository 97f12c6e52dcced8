"""gate: what the pinned version, the site and safety allow -> findings; plans pass unchanged.

    recipe tested with vllm >=0.17.0, plan pins 0.11.0 -> SV0601 (warning)
    overrides: {api_key: …}                            -> SV0604 (error), the key is not printed

The gates that need an engine's own catalogue of flags are here too, once there is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from servec.catalog.versions import in_range, parse_range
from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir import knowledge
from servec.ir.plan import Plan
from servec.ir.setting import Group, Setting
from servec.source.located import At, Plain, Span

PARAMETER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*\Z")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
SECRET_ENV = re.compile(r"(?i)(?:^|_)(?:TOKEN|SECRET|PASSWORD|API_KEY|SECRET_KEY|ACCESS_KEY)\Z")
"""Names that hold a credential whatever reads them."""


def run(plans: tuple[Plan, ...], findings: Findings) -> tuple[Plan, ...]:
    for plan in plans:
        _tested_versions(plan, findings)
        _known_issues(plan, findings)
        _settings(plan, findings)
        _environment(plan, findings)
        _attention(plan, findings)
    return plans


def _tested_versions(plan: Plan, findings: Findings) -> None:
    recipe, version = plan.subject.recipe, plan.subject.version.version
    if recipe is None:
        return
    for item in recipe.tested_versions:
        ranges = [text for text in item.value if _is_range(text, findings)]
        if item.key.value != plan.subject.engine.name or version is None or not ranges:
            continue
        if not any(in_range(version, text.value) for text in ranges):
            findings.add(
                codes.UNTESTED_VERSION,
                (plan.subject.model.image or plan.subject.model.engine_version or item.key).span,
                recipe=recipe.name.value,
                engine=item.key.value,
                tested=" or ".join(text.value for text in ranges),
                version=version,
                also=(ranges[0].span, "tested versions"),
            )


def _is_range(text: At[str], findings: Findings) -> bool:
    if parse_range(text.value) is not None:
        return True
    advice = 'write it as ">=0.9,<0.12"'
    findings.add(
        codes.BAD_VERSION, text.span, text=text.value, what="a range of versions", advice=advice
    )
    return False


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
            issue=issue.value.strip(),
            also=(issue.span, "known issue"),
        )


def _concerns(known: knowledge.KnownIssue, plan: Plan) -> bool:
    subject = plan.subject
    if known.engine is not None and known.engine.value != subject.engine.name:
        return False
    if known.deterministic and known.deterministic.value and not _is_deterministic(plan):
        return False
    version = subject.version.version
    return known.versions is None or version is None or in_range(version, known.versions.value)


def _is_deterministic(plan: Plan) -> bool:
    said = plan.subject.model.deterministic
    return said is not None and said.value


def _settings(plan: Plan, findings: Findings) -> None:
    engine = plan.subject.engine.at(plan.subject.version.version)
    for setting in plan.settings:
        winner = setting.winner
        span = winner.origin.span
        if setting.knob in engine.secret_flags:
            findings.add(codes.SECRET, span, name=winner.name)
        elif setting.knob in engine.owned:
            advice = f"use `{engine.owned[setting.knob]}` of the spec"
            findings.add(codes.OWNED, span, knob=winner.name, advice=advice)
        elif not PARAMETER.match(winner.name.removeprefix("topology.")):
            problem = "this cannot be a flag's name"
            advice = "write the engine's own name with `_`, without dashes before it"
            name = winner.name
            findings.add(codes.UNREPRESENTABLE, span, knob=name, problem=problem, advice=advice)
        elif setting.group is not Group.TOPOLOGY:
            for problem, advice in _unrepresentable(setting):
                findings.add(
                    codes.UNREPRESENTABLE, span, knob=winner.name, problem=problem, advice=advice
                )


def _unrepresentable(setting: Setting) -> Iterator[tuple[str, str]]:
    value = setting.value
    if value is None:
        yield "it has no value", "give one, or leave the parameter out"
    if isinstance(value, list) and not value:
        yield "the list is empty", "leave the parameter out"
    if isinstance(value, list) and any(isinstance(v, str) and v.startswith("-") for v in value):
        yield "an item that begins with `-` would be read as a flag", "write it in another way"
    if setting.knob == "port" and not _is_port(value):
        yield "a port is a whole number from 1 to 65535", "give the port that is served"
    if setting.knob in ("host", "served_model_name") and not (isinstance(value, str) and value):
        yield "it must be text", "put it in quotes"
    if any("\x00" in text for text in _texts(value)):
        yield "an argument cannot hold the character NUL", "take it out"
    if any(not math.isfinite(number) for number in _numbers(value)):
        yield "it is not a finite number", "give a finite one"


def _is_port(value: Plain) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535


def _texts(value: Plain) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from _texts(item)


def _numbers(value: Plain) -> Iterator[float]:
    match value:
        case float():
            yield value
        case list():
            for item in value:
                yield from _numbers(item)
        case dict():
            for item in value.values():
                yield from _numbers(item)


def _environment(plan: Plan, findings: Findings) -> None:
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    locked = subject.engine.manifest.deterministic if _is_deterministic(plan) else None
    required = {item.key.value: item.value.value for item in locked.env} if locked else {}
    for item in subject.model.env:
        name, value = item.key.value, item.value.value
        if not ENV_NAME.match(name):
            findings.add(codes.BAD_ENV_NAME, item.key.span, name=name)
        elif name in engine.secret_env or SECRET_ENV.search(name):
            findings.add(codes.SECRET, item.key.span, name=name)
        elif name in required and required[name] != value:
            findings.add(codes.LOCKED_ENV, item.value.span, name=name, value=required[name])
        elif "\x00" in value:
            problem, advice = "a variable cannot hold the character NUL", "take it out"
            span = item.value.span
            findings.add(codes.UNREPRESENTABLE, span, knob=name, problem=problem, advice=advice)


def _attention(plan: Plan, findings: Findings) -> None:
    """What the engine has no flag for is left out, and said."""
    topology = plan.subject.engine.manifest.topology
    flagged = {flag.of.value for flag in topology.flags}
    if plan.topology.enable_dp_attention and topology.tp_counts is None:
        _no_flag(plan, "attention data parallelism", "topology.enable_dp_attention", findings)
    for key in ("ep", "cp", "dcp"):
        if (getattr(plan.topology, key) or 1) > 1 and key not in flagged:
            _no_flag(plan, f"`{key}`", f"topology.{key}", findings)


def _no_flag(plan: Plan, what: str, knob: str, findings: Findings) -> None:
    setting = plan.setting(knob)
    span: Span | None = setting.winner.origin.span if setting else None
    findings.add(codes.NO_FLAG, span, engine=plan.subject.engine.name, what=what)
