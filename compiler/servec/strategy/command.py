"""The command of a plan: settings -> words of a command line.

Setting(max_model_len, 16384) -> --max-model-len 16384
Setting(enable_prefix_caching, False) -> --no-enable-prefix-caching
"""

from __future__ import annotations

from collections.abc import Iterator

from servec.catalog.engines import OWN_KNOBS, EngineAt
from servec.ir.launch import FILES, Words
from servec.ir.placement import Placement
from servec.ir.plan import Plan
from servec.ir.serve import TopologyFlag
from servec.ir.serve_start import Way
from servec.ir.setting import PARAMETER_GROUPS, Group, Origin, Rank, Setting
from servec.source.located import At
from servec.strategy import nodes
from servec.strategy.words import is_missing, topology_words, valued, word_of


def command(plan: Plan, engine: EngineAt, placement: Placement | None = None) -> Iterator[Words]:
    """Every word of the command, each with what it came from; nothing where a container starts
    itself. Order: program, model, host, port, served name, topology, determinism's flags, engine
    parameters in their order, flags of requirements."""
    checkpoint = plan.subject.model.checkpoint
    call, manifest = engine.call, engine.manifest
    if plan.subject.told is not None:
        return
    assert call is not None
    assert checkpoint is not None
    called = Origin(call.program[0].span, "", f"how {manifest.engine.value} is called")
    way = placement.way if placement else None
    program = [*(way.before if way else ()), *call.program]
    yield Words(tuple(word.value for word in program), None, called)
    flag = (call.model.value,) if call.model else ()
    path = f"{plan.subject.file} models.{plan.subject.model.name.value}.checkpoint"
    yield Words((*flag, checkpoint.value), None, Origin(checkpoint.span, path))
    yield from _own(plan, engine)
    yield from _topology(plan, engine)
    if placement is not None and placement.way is not None:
        yield from _nodes(placement, placement.way)
    named: set[str] = set()
    for group in PARAMETER_GROUPS:
        for setting in plan.settings:
            option = engine.option(setting.knob)
            if setting.group is not group:
                continue
            if option is None:
                yield from _parameter(setting, engine)
            elif (
                option[0] not in named
                and setting.value is not None
                and plan.setting(option[0]) is None
            ):
                named.add(option[0])
                yield _file_flag(option[0], setting, engine)


def _own(plan: Plan, engine: EngineAt) -> Iterator[Words]:
    flags = engine.serve.flags
    assert flags is not None
    for knob, flag in (
        ("host", flags.host),
        ("port", flags.port),
        ("served_model_name", flags.served_model_name),
    ):
        setting = plan.setting(knob)
        if flag is not None and setting is not None and not _goes_without(setting, flag, engine):
            yield Words(valued(flag.value, word_of(setting.value)), setting)
    for setting in plan.settings:
        if setting.group is Group.OWN and setting.knob not in OWN_KNOBS:
            yield from _parameter(setting, engine)


def _goes_without(setting: Setting, flag: At[str], engine: EngineAt) -> bool:
    """Whether servec's own value has no flag in this release; what a user says is passed on."""
    return setting.winner.rank is Rank.DERIVED and is_missing(flag, engine)


def serves_as(plan: Plan, engine: EngineAt) -> str:
    """The name that clients ask for: the checkpoint's, where the release has no flag for one."""
    name, flags = plan.setting("served_model_name"), engine.serve.flags
    assert name is not None
    assert plan.subject.model.checkpoint is not None
    flag = flags.served_model_name if flags else None
    if plan.subject.told or flag is None or _goes_without(name, flag, engine):
        return plan.subject.model.checkpoint.value
    return str(name.value)


def _topology(plan: Plan, engine: EngineAt) -> Iterator[Words]:
    for flag, value in engine.topology_values(plan.topology):
        setting = plan.setting(f"topology.{setting_of(flag, plan)}")
        assert setting is not None, flag
        yield Words(topology_words(flag, value), setting)


def _nodes(placement: Placement, way: Way) -> Iterator[Words]:
    """The flags by which the nodes of a replica find one another."""
    constants = nodes.constants(placement)
    for flag in way.flags:
        origin = Origin(flag.span, "", f"replicas over several nodes, `{way.name.value}`")
        value = (nodes.template(flag.value.value, constants),) if flag.value else ()
        yield Words((flag.flag.value, *value), None, origin, who=flag.who.value if flag.who else "")


def setting_of(flag: TopologyFlag, plan: Plan) -> str:
    """The key of the topology whose setting a flag comes from."""
    match flag.of.value:
        case "attention_dp":
            return "enable_dp_attention"
        case "plain_dp":
            return "dp"
        case "dcp" if plan.topology.dcp is None:
            return "cp"
        case key:
            return key


def _parameter(setting: Setting, engine: EngineAt) -> Iterator[Words]:
    knob, value = setting.knob, setting.value
    flag = engine.flag(knob)
    match value:
        case None:
            return
        case True:
            yield Words((flag,), setting)
        case False:
            negative = engine.negative(knob)
            if negative is not None:
                yield Words((negative,), setting)
        case list() if engine.repeats(knob):
            for item in value:
                yield Words(valued(flag, word_of(item)), setting)
        case list() if not engine.takes_json(knob):
            yield Words((flag, *map(word_of, value)), setting)
        case _:
            yield Words(valued(flag, word_of(value)), setting)


def _file_flag(parameter: str, first: Setting, engine: EngineAt) -> Words:
    name = engine.files[parameter]
    return Words((engine.flag(parameter), f"{FILES}/{name}"), first, file=name)
