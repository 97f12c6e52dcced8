"""lower: a plan -> what is started: argv and environment, each word with what it came from.

    Plan(qwen3-8b, tp 2, max_model_len=16384)
      -> vllm serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8000 --served-model-name qwen3-8b
           --tensor-parallel-size 2 --max-model-len 16384

Order: program, model, host, port, served name, topology, determinism's flags, engine parameters in
their order, flags of requirements last.
"""

from __future__ import annotations

from collections.abc import Iterator

from servec.catalog.capabilities import Capabilities
from servec.catalog.catalog import Catalog
from servec.catalog.engines import EngineAt
from servec.catalog.versions import first_that_holds
from servec.ir import decl, serve_start
from servec.ir.launch import (
    Launch,
    Metrics,
    NodeProcess,
    NodeVariable,
    OptionsFile,
    Variable,
    Words,
)
from servec.ir.placement import Placed, Placement
from servec.ir.plan import Plan
from servec.ir.setting import DETERMINISTIC, PARAMETER_GROUPS, Origin
from servec.ir.slots import Filled
from servec.passes.lower_start import start_of
from servec.source.located import At, plain
from servec.strategy import nodes
from servec.strategy.command import command, serves_as, setting_of
from servec.strategy.words import topology_words, word_of


def run(placed: tuple[Placed, ...], project: decl.Project, catalog: Catalog) -> tuple[Launch, ...]:
    programs = {
        item.key.value: item.value.program
        for item in project.engines
        if item.value.program is not None
    }
    return tuple(_launch(item, programs, project, catalog) for item in placed)


def _launch(
    placed: Placed, programs: dict[str, At[str]], project: decl.Project, catalog: Catalog
) -> Launch:
    plan, placement = placed.plan, placed.placement
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    health = subject.health
    port = plan.setting("port")
    assert port is not None
    assert isinstance(port.value, int)
    words = tuple(command(plan, engine, placement))
    way = placement.way
    program = _host_program(engine, placement, programs.get(subject.engine.name))
    return Launch(
        plan=plan,
        placement=placement,
        command=words,
        host_program=program,
        files=tuple(_files(plan, engine)),
        env=tuple(_environment(plan)),
        node_env=tuple(_node_environment(plan, placement)),
        beside=_process(way.beside, placement) if way and way.beside else None,
        worker=_process(way.worker, placement) if way and way.worker else None,
        api_key=first_that_holds(engine.serve.api_key, engine.version),
        devices=_devices(engine, program or (words[0] if words else None)),
        port=port.value,
        served_name=serves_as(plan, engine),
        health_path=health.path.value,
        health_timeout_seconds=health.timeout_seconds.value if health.timeout_seconds else 1,
        metrics=_metrics(plan, port.value),
        start=start_of(plan, words, project, catalog),
    )


def _metrics(plan: Plan, port: int) -> Metrics | None:
    """Where Prometheus reads, unless the server speaks another form or has it switched off."""
    found = plan.subject.engine.manifest.metrics_endpoint
    if found is None or found.format.value != "prometheus" or plan.subject.told is not None:
        return None
    switch = plan.setting(found.switch.value) if found.switch else None
    if found.switch is not None and (switch is None or switch.value is not True):
        return None
    return Metrics(found.path.value, found.port.value if found.port else port)


def _files(plan: Plan, engine: EngineAt) -> Iterator[OptionsFile]:
    for parameter, name in engine.files.items():
        options = tuple(
            (option[1], setting)
            for setting in plan.settings
            if (option := engine.option(setting.knob)) and option[0] == parameter
            if setting.value is not None
        )
        if options:
            yield OptionsFile(name, options)


def _host_program(engine: EngineAt, placement: Placement, program: At[str] | None) -> Words | None:
    """The site's program in the place of the engine's own, with the words that follow it."""
    if program is None or engine.call is None:
        return None
    before = (word.value for word in (placement.way.before if placement.way else ()))
    rest = (word.value for word in engine.call.program[1:])
    origin = Origin(program.span, "", "the site's own program")
    return Words((*before, program.value, *rest), None, origin)


def _devices(engine: EngineAt, program: Words | None) -> tuple[tuple[str, ...], str] | None:
    """How a server is asked for its devices that would compute on the CPU without a word."""
    rules = engine.serve.devices
    if rules is None or rules.shows is None or program is None:
        return None
    if rules.falls_back is None or not rules.falls_back.value:
        return None
    words = (*map(str, program.words), *(word.value for word in rules.list))
    return words, rules.shows.value


def _process(process: serve_start.NodeProcess, placement: Placement) -> NodeProcess:
    constants = nodes.constants(placement)
    groups = tuple(
        tuple(nodes.template(word.value, constants) for word in group) for group in process.words
    )
    origin = Origin(process.span, "", "replicas over several nodes")
    computes = process.computes is not None and process.computes.value
    shares = process.shares.value if process.shares else ""
    return NodeProcess(process.name.value, groups, origin, computes, shares)


def _node_environment(plan: Plan, placement: Placement) -> Iterator[NodeVariable]:
    """What each node of a replica has in its environment; the spec's own variables stand."""
    way, own = placement.way, {item.key.value for item in plan.subject.model.env}
    if way is None:
        return
    constants = nodes.constants(placement)
    for item in nodes.NETWORK:
        if item.name not in own:
            origin = Origin(None, "", "the network of a node")
            value = nodes.template(item.value, constants)
            yield NodeVariable(item.name, value, item.given, item.lacking, False, origin)
    for items, leads in ((way.env, False), (way.leader_env, True)):
        for said in items:
            word = nodes.template(said.value.value, constants)
            given = word.slots[0] if isinstance(word, Filled) else ""
            origin = Origin(said.value.span, "", "replicas over several nodes")
            if said.key.value not in own:
                yield NodeVariable(said.key.value, word, given, "", leads, origin)


def _told_by_variables(plan: Plan) -> Iterator[Variable]:
    """All parameters as variables, for a container that owns its entry point."""
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    told, checkpoint = subject.told, subject.model.checkpoint
    if told is None or checkpoint is None:
        return
    path = f"{subject.file} models.{subject.model.name.value}.checkpoint"
    yield Variable(told.model.value, checkpoint.value, Origin(checkpoint.span, path))
    for flag, value in engine.topology_values(plan.topology):
        setting = plan.setting(f"topology.{setting_of(flag, plan)}")
        assert setting is not None, flag
        word = topology_words(flag, value)[1:] or ("true",)
        yield Variable(subject.variable(flag.flag.value), word[0], setting.winner.origin)
    for setting in plan.settings:
        if setting.value is not None and setting.group in PARAMETER_GROUPS:
            name = subject.variable(setting.knob)
            yield Variable(name, word_of(setting.value), setting.winner.origin)


def _environment(plan: Plan) -> Iterator[Variable]:
    """The spec's variables and those of determinism, sorted by name."""
    subject = plan.subject
    found = {item.name: item for item in _told_by_variables(plan)}
    rules = subject.engine.serve.deterministic
    if rules is not None and subject.model.deterministic and subject.model.deterministic.value:
        said = subject.model.deterministic
        for item in rules.env:
            origin = Origin(said.span, "", DETERMINISTIC)
            found[item.key.value] = Variable(item.key.value, item.value.value, origin)
    capabilities = Capabilities(subject.engine.manifest, subject.version)
    for entry in subject.model.features.entries.values() if subject.model.features else ():
        path = f"{subject.file} models.{subject.model.name.value}.features.{entry.key.value}"
        variables, _ = capabilities.features({entry.key.value: plain(entry.value)})
        for known, value in variables.set:
            name = subject.prefix + known.removeprefix(subject.engine.manifest.env_var_prefix.value)
            found[name] = Variable(name, value, Origin(entry.key.span, path))
    for item in subject.model.env:
        path = f"{subject.file} models.{subject.model.name.value}.env.{item.key.value}"
        origin = Origin(item.key.span, path)
        found[item.key.value] = Variable(item.key.value, item.value.value, origin)
    return (found[name] for name in sorted(found))
