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
from servec.ir.setting import Group, Origin, Rank, Setting
from servec.source.located import Plain
from servec.source.scalars import canonical_float

PATH = "infer_plans.yaml"
HEADER = f"# {GENERATED}\n# all plans, in the form that eval runners resume from\n"
# Text that PyYAML writes plain and on one line under every key, whatever it stands for.
SIMPLE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]{0,40}\Z")
SIMPLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,60}\Z")
NOT_TEXT = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def infer_plans(launches: Iterable[Launch]) -> Artifact:
    plans = [launch.plan for launch in launches]
    out = _Lines([*HEADER.splitlines(), "models:" if plans else "models: {}"])
    for plan in plans:
        _model(plan, out)
    return Artifact(PATH, "\n".join(out.lines) + "\n", traces=out.traces)


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


def _model(plan: Plan, out: _Lines) -> None:
    subject, topology = plan.subject, plan.topology
    model = subject.model
    assert model.checkpoint is not None
    deterministic = bool(model.deterministic and model.deterministic.value)
    out.add([f"  {_key(plan.name)}:"], Origin(model.name.span, ""))
    out.add(_entry("checkpoint", model.checkpoint.value, 2), Origin(model.checkpoint.span, ""))
    engine = Origin(model.engine.span if model.engine else None, "", "the model's engine")
    out.add(_entry("backend", subject.engine.name, 2), engine)
    part = Origin(model.role.span if model.role else None, "", "`full` unless told otherwise")
    out.add(["    assignments:"])
    out.add([f"    - role: {subject.role}"], part)
    out.add(["      devices:"])
    out.add([f"        count: {topology.gpus}"], _devices(plan))
    out.add(["        gpu_model: null", "        host: localhost", "      topology:"])
    for key in ("tp", "dp", "pp", "ep", "enable_dp_attention", "cp"):
        setting = plan.setting(f"topology.{key}")
        line = f"        {key}: {_word(getattr(topology, key))}"
        out.add([line], setting, rule="not used unless told otherwise")
    replicas = plan.setting("topology.replicas")
    out.add([f"      replicas: {topology.replicas}"], replicas, rule="one unless told otherwise")
    parameters = engine_params(plan)
    out.add(["      engine_params:" if parameters else "      engine_params: {}"])
    for setting in parameters:
        out.add(_entry(setting.winner.name, setting.winner.written, 4), setting)
    out.add(["      scaling: null", "    attachments: []"])
    said = Origin(model.deterministic.span if model.deterministic else None, "", "`deterministic:`")
    out.add([f"    deterministic: {_word(deterministic)}"], said)
    out.add(["    seed: 0"], rule="the plan's own seed, whatever a parameter says")
    if plan.needs:
        out.add(["    serving_requirements:"])
    for need in sorted(plan.needs, key=lambda need: REQUIREMENTS.index(need.requirement)):
        out.add([f"      {need.requirement}: {_word(need.value)}"], Origin(need.span, ""))


def _devices(plan: Plan) -> Origin:
    """Where the number of GPUs comes from: what the spec gives, as far as the topology uses it."""
    topology, gpus = plan.topology, plan.subject.model.gpus
    rule = f"tp {topology.tp} · pp {topology.pp} · dp {topology.dp} GPUs"
    return Origin(gpus.span if gpus else None, "", rule)


class _Lines:
    """The lines of the file, and what each came from."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.traces: dict[int, Trace] = {}

    def add(self, lines: list[str], of: Setting | Origin | None = None, *, rule: str = "") -> None:
        """Add lines that came from a setting or an origin, or else from a rule, if any."""
        origin = of.winner.origin if isinstance(of, Setting) else of
        setting = of if isinstance(of, Setting) else None
        if origin is None and rule:
            origin = Origin(None, "", rule)
        for line in lines:
            self.lines.append(line)
            if origin is not None:
                self.traces[len(self.lines)] = Trace(setting, origin)


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
