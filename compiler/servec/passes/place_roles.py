"""place, the roles: a prefill server works with a decode server, and hands over by one connector.

chat-prefill (role: prefill), and no server of `role: decode` for its checkpoint -> SV1028
"""

from __future__ import annotations

from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir.plan import Plan
from servec.ir.setting import Setting
from servec.source.located import Plain, Span

OTHER = {"prefill": "decode", "decode": "prefill"}


def roles(plans: tuple[Plan, ...], findings: Findings) -> None:
    """Findings about servers that do one part of a request."""
    for plan in plans:
        subject, role = plan.subject, plan.subject.role
        rules = subject.engine.serve.roles
        if role == "full":
            continue
        assert subject.model.role is not None
        span = subject.model.role.span
        if rules is None:
            problem = f"{subject.engine.name} has no servers of `role: {role}`"
            findings.add(codes.HALF_A_PAIR, span, problem=problem, advice="leave `role` out")
            continue
        others = [other for other in plans if other.subject.role == OTHER[role]]
        beside = [other for other in others if _pair(plan, other)]
        if not beside:
            problem = f"`{plan.name}` does {role} alone: nothing does {OTHER[role]} for its model"
            advice = f"add a model with the same checkpoint and engine and `role: {OTHER[role]}`"
            findings.add(codes.HALF_A_PAIR, span, problem=problem, advice=advice)
        mine = _connector(plan)
        for other in beside if role == "prefill" else ():
            theirs = _connector(other)
            if mine is None or theirs is None or mine != theirs:
                setting = plan.setting(rules.connector.value)
                problem = _unequal(plan, mine, other, theirs, rules.connector.value)
                findings.add(
                    codes.CONNECTORS_DIFFER, _place(setting) or span, problem=problem,
                    advice=f"give both the same `{rules.connector.value}`",
                )  # fmt: skip
                break


def _pair(plan: Plan, other: Plan) -> bool:
    one, two = plan.subject, other.subject
    same_model = (one.model.checkpoint and one.model.checkpoint.value) == (
        two.model.checkpoint and two.model.checkpoint.value
    )
    return same_model and one.engine.name == two.engine.name


def _connector(plan: Plan) -> Plain:
    """What hands over the KV cache; None where nothing is said."""
    rules = plan.subject.engine.serve.roles
    assert rules is not None
    setting = plan.setting(rules.connector.value)
    value = setting.value if setting is not None else None
    if rules.inside is not None and isinstance(value, dict):
        return value.get(rules.inside.value)
    if value is None and rules.default is not None:
        return rules.default.value
    return value


def _unequal(plan: Plan, mine: Plain, other: Plan, theirs: Plain, knob: str) -> str:
    if mine is None and theirs is None:
        return (
            f"neither `{plan.name}` nor `{other.name}` has `{knob}`: nothing hands over the cache"
        )
    if mine is None or theirs is None:
        one, two = (plan, other) if theirs is None else (other, plan)
        return f"`{one.name}` has `{knob}`, and `{two.name}` has none"
    return f"`{plan.name}` hands over by {mine}, and `{other.name}` by {theirs}"


def _place(setting: Setting | None) -> Span | None:
    return setting.winner.origin.span if setting else None
