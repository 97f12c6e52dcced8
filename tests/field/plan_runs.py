"""Rows of whole runs: models, GPUs and checkpoints in; parameters, topology, argv, file out."""

from __future__ import annotations

import re
from typing import Any

import servec
import yaml
from servec.ir.setting import Group

from tests.field.argv import compare, flags
from tests.field.project import compile_models, differ, errors, parameters, same_mapping
from tests.field.rows import Row

EXEMPT: dict[str, str] = {}


def check(row: Row) -> list[str]:
    expect = row["expect"]
    needs = _required(row)
    result = compile_row(row, needs)
    if not expect["ok"]:
        return [] if errors(result) else ["no error, and the row has one"]
    if errors(result):
        return errors(result)
    launches = {launch.plan.name: launch for launch in result.launches}
    problems = differ("plans", sorted(expect["models"]), sorted(launches))
    for name, model in expect["models"].items():
        if name in launches:
            problems += _model(name, model, launches[name])
            found = {need.requirement: need.value for need in launches[name].plan.needs}
            problems += same_mapping(f"{name} requirements", needs.get(name, {}), found)
    body = _body(result.artifacts["infer_plans.yaml"].decode())
    problems += differ("infer_plans.yaml", expect["infer_plans_yaml"], _without_needs(body))
    written = {
        name: plan["serving_requirements"]
        for name, plan in (yaml.safe_load(body)["models"] or {}).items()
        if "serving_requirements" in plan
    }
    required = {name: required for name, required in needs.items() if required}
    return problems + differ("serving_requirements", required, written)


def compile_row(row: Row, needs: dict[str, dict[str, Any]]) -> servec.Result:
    """The row's models and tasks as a spec; what its tasks require as tasks of their own."""
    inputs, types = row["inputs"], row["expect"].get("models", {})
    deterministic = inputs["config"].get("deterministic") or inputs.get("deterministic_flag")
    models: dict[str, dict[str, Any]] = {}
    for name, config in inputs["config"]["models"].items():
        if "base" in config:
            models[name] = {key: config[key] for key in ("base", "type") if key in config}
            continue
        if "api_base" in config:
            models[name] = {"endpoint": config["api_base"]}
            continue
        infer = config.get("infer", {})
        model: dict[str, Any] = {"checkpoint": infer.get("checkpoint") or config.get("path")}
        kind = types[name]["model_type"] if name in types else config.get("type")
        model |= {"type": kind} if kind else {}
        model |= {"engine": infer["backend"]} if "backend" in infer else {}
        model |= {key: infer[key] for key in ("recipe", "overrides", "env") if infer.get(key)}
        model |= {"deterministic": True} if deterministic else {}
        if inputs["gpu"]:
            model |= {"hardware": inputs["gpu"]["model"], "gpus": inputs["gpu"]["count"]}
        models[name] = model
    tasks: dict[str, dict[str, Any]] = {
        name: {"model": task["model"]} for name, task in inputs["config"].get("tasks", {}).items()
    }
    for name, required in needs.items():
        tasks |= {f"needs-of-{name}": {"model": name, "requires": required}} if required else {}
    return compile_models(models, tasks=tasks, configs=inputs.get("checkpoints"))


def _required(row: Row) -> dict[str, dict[str, Any]]:
    """What the row's tasks require of each model; `false` and null are nothing."""
    found = row["expect"].get("requirements") or {}
    return {
        name: {key: value for key, value in required.items() if value}
        for name, required in found.items()
    }


def _model(name: str, expect: dict[str, Any], launch: Any) -> list[str]:
    """One plan against the row; the flags that its requirements became are not the row's."""
    plan = launch.plan
    topology = plan.topology._asdict()
    engine = plan.subject.engine.name
    argv = [
        word
        for group in launch.command
        if group.setting is None or group.setting.group is not Group.REQUIREMENT
        for word in group.words
    ]
    return [
        *differ(f"{name} parameters", expect["engine_params"], parameters(plan)),
        *same_mapping(
            f"{name} topology",
            expect["topology"],
            {key: topology[key] for key in expect["topology"]},
        ),
        *differ(f"{name} devices", expect["device_count"], plan.topology.gpus),
        *differ(f"{name} replicas", expect["replicas"], plan.topology.replicas),
        *same_mapping(
            f"{name} environment", expect["env"], {item.name: item.value for item in launch.env}
        ),
        *compare(engine, expect["argv"], argv),
        *_order(engine, expect, argv),
    ]


def _order(engine: str, expect: dict[str, Any], argv: list[str]) -> list[str]:
    """Flags of engine parameters stand in the same order on both command lines."""
    names = {"--" + name.replace("_", "-") for name, _ in expect["engine_params"]}
    names -= {"--host", "--port", "--served-model-name"}
    orders = [
        [flag[0] for flag in flags(engine, line)[1] if flag[0] in names]
        for line in (expect["argv"], argv)
    ]
    return differ("order of flags", orders[0], orders[1])


def _body(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def _without_needs(body: str) -> str:
    """The body without `serving_requirements`, which rows with requirements lack."""
    return re.sub(r"    serving_requirements:\n(?:      .*\n)+", "", body)
