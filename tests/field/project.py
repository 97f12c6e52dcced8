"""Rows -> sources: small projects in memory, compiled through the public function."""

from __future__ import annotations

import json
from typing import Any

import servec

Model = dict[str, Any]


def compile_models(
    models: dict[str, Model],
    *,
    tasks: dict[str, Any] | None = None,
    configs: dict[str, Any] | None = None,
    files: dict[str, str] | None = None,
) -> servec.Result:
    """Compile a spec. `configs` are model configurations by checkpoint."""
    tree = {"servec.yaml": "targets: [bash]\n", **(files or {})}
    for number, (checkpoint, config) in enumerate((configs or {}).items()):
        path = f"configs/{number}.json"
        tree[path] = json.dumps(config)
        for model in models.values():
            if model.get("checkpoint") == checkpoint:
                model["config"] = path
    spec = {"models": models} | ({"tasks": tasks} if tasks else {})
    tree["specs/case.json"] = json.dumps(spec)
    return servec.compile(tree=tree)


def parameters(plan: Any) -> list[list[Any]]:
    """The ordered engine parameters of a plan, as infer_plans.yaml has them."""
    from servec.emit.plans import engine_params

    return [[item.winner.name, item.winner.written] for item in engine_params(plan)]


def errors(result: servec.Result) -> list[str]:
    return [
        f"{finding.code.number} {finding.span}: {finding.message}"
        for finding in result.findings
        if finding.severity.word == "error"
    ]


def same_mapping(what: str, expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Like `differ`, where order means nothing."""
    return differ(what, dict(sorted(expected.items())), dict(sorted(found.items())))


def differ(what: str, expected: object, found: object) -> list[str]:
    if expected == found and json.dumps(expected) == json.dumps(found):
        return []
    return [f"{what}: expected {json.dumps(expected)}, found {json.dumps(found)}"]
