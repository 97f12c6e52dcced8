"""gate, the model against its GPUs: what cannot be cut over them, and what they are too old for.

tp 16, moe_intermediate_size 3072, blocks of 128 -> SV1011: 3072 ÷ 16 = 192
quantization: fp8 on a T4                        -> SV1009: needs 7.5 …
"""

from __future__ import annotations

from servec.catalog import sharding
from servec.catalog.engines import EngineAt
from servec.diag import codes
from servec.diag.findings import Finding, Findings
from servec.ir.plan import Plan
from servec.ir.setting import Setting
from servec.source.located import Map, Span, plain


def shape(plan: Plan, findings: Findings) -> None:
    """Findings about the plan's model on the plan's GPUs; what is not known refuses nothing."""
    engine = plan.subject.engine.at(plan.subject.version.version)
    _splits(plan, engine, findings)
    _capability(plan, engine, findings)


def _splits(plan: Plan, engine: EngineAt, findings: Findings) -> None:
    config, topology = plan.subject.facts.config, plan.topology
    if config is None or not engine.cuts_layers:
        return
    shared = topology.tp * (topology.dp if topology.enable_dp_attention else 1)
    setting = _experts_setting(plan, engine)
    experts = shared_over = None
    if setting is not None:
        spans_all = engine.experts_span_all
        experts = topology.tp * topology.dp if spans_all else topology.ep
        shared_over = shared // experts if experts and shared % experts == 0 else 1
    split = sharding.Split(
        attention=topology.tp,
        dense=None if _said(plan, engine.cut_by("dense")) else shared,
        expert=shared_over if experts else shared,
        experts=None if _said(plan, engine.cut_by("experts")) else experts,
    )
    for code, arguments in sharding.problems(config, split):
        place = setting if code is codes.EXPERTS_NOT_DIVISIBLE else plan.setting("topology.tp")
        findings.put(Finding(code, code.severity, _place(place, plan), arguments))


def _said(plan: Plan, knobs: list[str]) -> bool:
    return any(plan.setting(knob) is not None for knob in knobs)


def _experts_setting(plan: Plan, engine: EngineAt) -> Setting | None:
    """What says that whole experts are spread over the GPUs; None where each expert is cut."""
    said = plan.setting("topology.ep")
    if said is not None and (plan.topology.ep or 1) > 1:
        return said
    for flag in engine.topology_flags:
        if flag.of.value == "ep" and flag.bare is not None and flag.bare.value:
            found = plan.setting(flag.flag.value.lstrip("-").replace("-", "_"))
            return found if found is not None and found.value is True else None
    return None


def _place(setting: Setting | None, plan: Plan) -> Span:
    """Where it is said, or what it is derived from."""
    span = setting.winner.origin.span if setting else None
    return span or (plan.subject.model.hardware or plan.subject.model.name).span


def _capability(plan: Plan, engine: EngineAt, findings: Findings) -> None:
    accelerator = plan.subject.accelerator
    found = _quantization(plan, engine)
    if found is None or accelerator.compute_capability is None:
        return
    name, span = found
    has = sharding.capability(accelerator.compute_capability.value)
    needs = engine.here.least_capability(name) if engine.here else None
    if has is None or needs is None or has >= divmod(needs, 10):
        return
    findings.add(
        codes.LOW_CAPABILITY,
        span,
        quantization=name,
        needs=f"{needs // 10}.{needs % 10}",
        gpu=accelerator.name.value,
        has=accelerator.compute_capability.value,
    )


def _quantization(plan: Plan, engine: EngineAt) -> tuple[str, Span] | None:
    """The quantization that is asked for, else the model's own; the place is what decides."""
    knobs = engine.quantization_knobs
    for knob in knobs:
        setting = plan.setting(knob)
        if setting is not None and isinstance(setting.value, str):
            return setting.value, _place(setting, plan)
    config = plan.subject.facts.config
    facts = config.get("quantization_config") if config is not None else None
    method = facts.get("quant_method") if isinstance(facts, Map) else None
    name = plain(method) if method is not None else None
    if not isinstance(name, str) or not knobs:
        return None
    model = plan.subject.model
    return name, (model.hardware or model.name).span
