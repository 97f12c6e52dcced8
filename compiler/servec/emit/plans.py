"""infer_plans.yaml: all plans in the form that eval runners resume from.

Readers compare the body's bytes, which are those of PyYAML's
`safe_dump(sort_keys=False, allow_unicode=True, default_flow_style=False)`. Simple scalars are
printed here; anything that PyYAML would fold, quote or escape is given to PyYAML itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from servec.emit.header import GENERATED
from servec.ir.artifact import Artifact, Trace
from servec.ir.launch import Launch
from servec.ir.plan import REQUIREMENTS, Plan
from servec.ir.setting import Group, Rank, Setting
from servec.source.located import Plain
from servec.source.scalars import canonical_float

PATH = "infer_plans.yaml"
HEADER = f"# {GENERATED}\n# all plans, in the form that eval runners resume from\n"
# Text that PyYAML writes plain and on one line under every key, whatever it stands for.
SIMPLE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]{0,40}\Z")
SIMPLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,60}\Z")
NOT_TEXT = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def infer_plans(launches: Iterable[Launch]) -> Artifact:
    lines = HEADER.splitlines()
    traces: dict[int, Trace] = {}
    plans = [launch.plan for launch in launches]
    lines.append("models:" if plans else "models: {}")
    for plan in plans:
        _model(plan, lines, traces)
    return Artifact(PATH, "\n".join(lines) + "\n", traces=traces)


def engine_params(plan: Plan) -> list[Setting]:
    """The settings that are engine parameters: what the layers and the spec say, in their order."""
    return [setting for setting in plan.settings if _is_parameter(setting)]


def _is_parameter(setting: Setting) -> bool:
    winner = setting.winner
    if winner.knob.startswith("topology.") or winner.rank is Rank.REQUIREMENT:
        return False
    if winner.value is None or setting.group is Group.DETERMINISTIC:
        return False
    return winner.rank > Rank.DERIVED or setting.group is Group.ENGINE


def _model(plan: Plan, lines: list[str], traces: dict[int, Trace]) -> None:
    subject, topology = plan.subject, plan.topology
    assert subject.model.checkpoint is not None
    deterministic = subject.model.deterministic
    lines += [
        f"  {_key(plan.name)}:",
        *_entry("checkpoint", subject.model.checkpoint.value, 2),
        *_entry("backend", subject.engine.name, 2),
        "    assignments:",
        "    - role: full",
        "      devices:",
        f"        count: {topology.gpus}",
        "        gpu_model: null",
        "        host: localhost",
        "      topology:",
        *_traced_topology(plan, len(lines) + 10, traces),
        f"      replicas: {topology.replicas}",
    ]
    parameters = engine_params(plan)
    lines.append("      engine_params:" if parameters else "      engine_params: {}")
    for setting in parameters:
        winner = setting.winner
        traces[len(lines) + 1] = Trace(setting, setting.winner.origin)
        lines += _entry(winner.name, winner.written, 4)
    lines += [
        "      scaling: null",
        "    attachments: []",
        f"    deterministic: {_word(bool(deterministic and deterministic.value))}",
        "    seed: 0",
    ]
    values = {need.requirement: need.value for need in plan.needs}
    if values:
        lines.append("    serving_requirements:")
        lines += [f"      {name}: {_word(values[name])}" for name in REQUIREMENTS if name in values]


def _traced_topology(plan: Plan, first: int, traces: dict[int, Trace]) -> list[str]:
    topology = plan.topology
    values: list[tuple[str, Plain]] = [
        ("tp", topology.tp),
        ("dp", topology.dp),
        ("pp", topology.pp),
        ("ep", topology.ep),
        ("enable_dp_attention", topology.enable_dp_attention),
        ("cp", topology.cp),
    ]
    for index, (key, _) in enumerate(values):
        setting = plan.setting(f"topology.{key}")
        if setting is not None:
            traces[first + index] = Trace(setting, setting.winner.origin)
    return [f"        {key}: {_word(value)}" for key, value in values]


def _entry(key: str, value: Plain, depth: int) -> list[str]:
    """`key: value` at a depth of mappings, as PyYAML writes it there."""
    if SIMPLE_NAME.match(key) and key not in NOT_TEXT:
        word = _simple(value)
        if word is not None:
            return [f"{'  ' * depth}{key}: {word}"]
    return _by_pyyaml({key: value}, depth)


def _simple(value: Plain) -> str | None:
    if isinstance(value, str):
        return value if SIMPLE.match(value) and value.lower() not in NOT_TEXT else None
    if value is None or isinstance(value, bool | int):
        return _word(value)
    return canonical_float(value) if isinstance(value, float) else None


def _word(value: Plain) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(name: str) -> str:
    if SIMPLE.match(name) and name.lower() not in NOT_TEXT:
        return name
    return _by_pyyaml({name: None}, 1)[0].strip().removesuffix(": null")


def _by_pyyaml(value: Plain, depth: int) -> list[str]:
    """Lines of a mapping that stands `depth` mappings deep; folding depends on the depth."""
    import yaml

    nested: Plain = value
    for _ in range(depth):
        nested = {"k": nested}
    text = yaml.safe_dump(nested, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text.split("\n")[depth:-1]
