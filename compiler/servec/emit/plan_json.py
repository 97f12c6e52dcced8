"""plan.json: the plan for programs and reviewers: core, engine section, settings with history.

History is by file and path of keys, without line numbers: a comment added to a source moves no
byte. One definition a line.
"""

from __future__ import annotations

import json
from typing import Any

from servec.emit.header import GENERATED
from servec.ir.artifact import Artifact
from servec.ir.launch import Launch
from servec.ir.plan import Need, Plan
from servec.ir.setting import Judged, Setting

SCHEMA = 1


def plan_json(launch: Launch) -> Artifact:
    plan = launch.plan
    tree = {
        "generated": GENERATED,
        "schema": SCHEMA,
        "model": plan.name,
        "core": _core(plan),
        "engine": _engine(launch),
        "requirements": [_need(plan, need) for need in plan.needs],
        "settings": {setting.knob: _setting(setting) for setting in plan.settings},
    }
    return Artifact(f"{plan.name}/plan.json", _print(tree, 3) + "\n")


def _core(plan: Plan) -> dict[str, Any]:
    subject, facts = plan.subject, plan.subject.facts
    workload = subject.model.workload
    core: dict[str, Any] = {
        "checkpoint": subject.model.checkpoint.value if subject.model.checkpoint else None,
        "type": subject.model.type.value if subject.model.type else "chat",
        "architecture": facts.architecture,
        "size_billions": facts.billions,
        "precision": subject.precision,
        "recipe": {
            "name": subject.recipe.name.value if subject.recipe else None,
            "choice": subject.recipe_choice,
        },
        "hardware": {
            "accelerator": subject.accelerator.name.value,
            "gpus_per_replica": plan.topology.gpus,
            "nodes": subject.nodes,
        },
        "topology": plan.topology._asdict(),
        "deterministic": bool(subject.model.deterministic and subject.model.deterministic.value),
        "source": subject.file,
    }
    if workload is not None:
        named = ("input_tokens", "output_tokens", "concurrency")
        values = {name: getattr(workload, name) for name in named}
        core["workload"] = {name: item.value for name, item in values.items() if item is not None}
    return core


def _engine(launch: Launch) -> dict[str, Any]:
    subject = launch.plan.subject
    version = subject.version
    return {
        "name": subject.engine.name,
        "version": str(version.version) if version.version else "unknown",
        "version_source": version.source,
        "image": subject.image.value if subject.image else None,
        "served_model_name": launch.served_name,
        "port": launch.port,
        "health": launch.health_path,
        "metrics": launch.metrics.path if launch.metrics else None,
        "argv": launch.argv,
        **_nodes(launch),
        **_files(launch),
        "env": {variable.name: variable.value for variable in launch.env},
    }


def _nodes(launch: Launch) -> dict[str, Any]:
    """What several nodes add; a fact of a node is shown as its name in braces."""
    placement = launch.placement
    if placement.way is None:
        return {}
    found: dict[str, Any] = {
        "worker_argv": launch.worker_argv,
        "launch_mode": placement.way.name.value,
        "leader_port": placement.leader_port,
    }
    if launch.beside is not None:
        found["beside"] = [str(word) for group in launch.beside.groups for word in group]
    if placement.groups:
        found["hosts"] = [[host.name for host in group] for group in placement.groups]
    return found


def _files(launch: Launch) -> dict[str, Any]:
    if not launch.files:
        return {}
    return {
        "files": {
            file.name: {key: setting.value for key, setting in file.options}
            for file in launch.files
        }
    }


def _need(plan: Plan, need: Need) -> dict[str, Any]:
    unmet = any(item.requirement == need.requirement for item in plan.unmet)
    return {
        "requirement": need.requirement,
        "value": need.value,
        "tasks": dict(need.asked),
        "met": not unmet,
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {"value": setting.value, "history": [_judged(item) for item in setting.history]}


def _judged(judged: Judged) -> dict[str, Any]:
    item = judged.definition
    found: dict[str, Any] = {"rank": item.rank.words, "outcome": judged.outcome.value}
    found["value"] = item.value
    if item.name != item.knob:
        found["written"] = f"{item.name}: {json.dumps(item.written, ensure_ascii=False)}"
    found["from"] = item.origin.path or item.origin.rule
    return found


def _print(value: object, depth: int, indent: str = "") -> str:
    """JSON, broken into lines down to a depth and wherever a list holds mappings."""
    deeper = indent + "  "
    if isinstance(value, dict) and value and depth > 0:
        parts = [
            f"{deeper}{_leaf(key)}: {_print(item, depth - 1, deeper)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        parts = [deeper + _leaf(item) for item in value]
        return "[\n" + ",\n".join(parts) + f"\n{indent}]"
    return _leaf(value)


_leaf = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
