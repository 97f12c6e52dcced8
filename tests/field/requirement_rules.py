"""Rows of the requirement rule: parameters and a requirement in, flags added and suppressed out."""

from __future__ import annotations

from typing import Any

import servec
import yaml
from servec.ir.setting import Outcome

from tests.field.argv import flags
from tests.field.project import compile_models, differ, errors
from tests.field.rows import Row

EXEMPT: dict[str, str] = {}
TOPOLOGY = {"tp", "tp_size", "tensor_parallel_size"}
KNOBS = {
    "prefix_cache": ("enable_prefix_caching", "disable_radix_cache"),
    "top_logprobs": ("max_logprobs",),
}


def check(row: Row) -> list[str]:
    inputs, expect = row["inputs"], row["expect"]
    needs = {key: inputs[key] for key in ("needs_input_logprobs", "min_top_logprobs")}
    needs = {key: value for key, value in needs.items() if value}
    without, result = _compile(inputs, {}), _compile(inputs, needs)
    if errors(result) or errors(without):
        return errors(result) or errors(without)
    engine = inputs["framework"]
    before = flags(engine, list(without.launches[0].argv))[1]
    after = flags(engine, list(result.launches[0].argv))[1]
    added = sorted(list(flag) for flag in after if flag not in before)
    lost = [list(flag) for flag in before if flag not in after]
    plan = result.plans[0]
    suppressed = [
        name
        for name, knobs in KNOBS.items()
        if any(_is_suppressed(plan.setting(knob)) for knob in knobs)
    ]
    written = result.artifacts["infer_plans.yaml"].decode()
    problems = [
        *differ("added", sorted(expect["added_flags"]), added),
        *differ("lost", [], lost),
        *differ("suppressed", sorted(expect["suppressed_knobs"]), sorted(suppressed)),
        *differ("requirements", needs, {need.requirement: need.value for need in plan.needs}),
    ]
    unmet = [finding for finding in result.findings if finding.code.number == "SV0501"]
    problems += differ("unmet", len(expect["under_47_policy_errors"]), len(unmet))
    plan_row = yaml.safe_load(written)["models"]["m"].get("serving_requirements")
    wanted = expect["serving_requirements_in_plan"] or {}
    wanted = {key: value for key, value in wanted.items() if value}
    return problems + differ("serving_requirements", wanted or None, plan_row)


def _compile(inputs: dict[str, Any], needs: dict[str, Any]) -> servec.Result:
    model = {
        "checkpoint": "/models/x",
        "engine": inputs["framework"],
        "hardware": "H100-80G",
        "precision": "bf16",
        "recipe": "none",
        "overrides": dict(inputs["engine_params"]),
    }
    if not TOPOLOGY.intersection(model["overrides"]):
        model["topology"] = {"tp": 1}
    tasks = {"task": {"model": "m", "requires": needs}} if needs else None
    return compile_models({"m": model}, tasks=tasks)


def _is_suppressed(setting: Any) -> bool:
    return setting is not None and any(
        judged.outcome in (Outcome.SUPPRESSED, Outcome.UNMET) for judged in setting.history
    )
