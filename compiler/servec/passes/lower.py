"""lower: a plan -> what is started: argv and environment, each word with what it came from.

    Plan(qwen3-8b, tp 2, max_model_len=16384)
      -> vllm serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8000 --served-model-name qwen3-8b
           --tensor-parallel-size 2 --max-model-len 16384

Order: program, model, host, port, served name, topology, determinism's flags, engine parameters in
their order, flags of requirements last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from servec.catalog.capabilities import Capabilities
from servec.catalog.catalog import Catalog
from servec.catalog.engines import OWN_KNOBS, EngineAt
from servec.ir import decl
from servec.ir.launch import FILES, Launch, Metrics, OptionsFile, Variable, Words
from servec.ir.manifest import TopologyFlag
from servec.ir.plan import Plan
from servec.ir.setting import DETERMINISTIC, PARAMETER_GROUPS, Group, Origin, Setting
from servec.passes.lower_start import start_of
from servec.source.located import At, Plain, plain

NEGATIVE_NUMBER = re.compile(r"-\d+\Z|-\d*\.\d+\Z")  # as argparse has it


def run(plans: tuple[Plan, ...], project: decl.Project, catalog: Catalog) -> tuple[Launch, ...]:
    programs = {
        item.key.value: item.value.program
        for item in project.engines
        if item.value.program is not None
    }
    return tuple(_launch(plan, programs, project, catalog) for plan in plans)


def _launch(
    plan: Plan, programs: dict[str, At[str]], project: decl.Project, catalog: Catalog
) -> Launch:
    subject = plan.subject
    engine = subject.engine.at(subject.version.version)
    health = subject.health
    port, name = plan.setting("port"), plan.setting("served_model_name")
    assert port is not None
    assert isinstance(port.value, int)
    assert name is not None
    assert isinstance(name.value, str)
    command = tuple(_command(plan, engine))
    return Launch(
        plan=plan,
        command=command,
        host_program=_host_program(engine, programs.get(subject.engine.name)),
        files=tuple(_files(plan, engine)),
        env=tuple(_environment(plan)),
        port=port.value,
        served_name=name.value,
        health_path=health.path.value,
        health_timeout_seconds=health.timeout_seconds.value if health.timeout_seconds else 1,
        metrics=_metrics(plan, port.value),
        start=start_of(plan, command, project, catalog),
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


def _command(plan: Plan, engine: EngineAt) -> Iterator[Words]:
    checkpoint = plan.subject.model.checkpoint
    call, manifest = engine.call, engine.manifest
    if plan.subject.told is not None:
        return
    assert call is not None
    assert checkpoint is not None
    called = Origin(call.program[0].span, "", f"how {manifest.engine.value} is called")
    yield Words(tuple(word.value for word in call.program), None, called)
    flag = (call.model.value,) if call.model else ()
    path = f"{plan.subject.file} models.{plan.subject.model.name.value}.checkpoint"
    yield Words((*flag, checkpoint.value), None, Origin(checkpoint.span, path))
    yield from _own(plan, engine)
    yield from _topology(plan, engine)
    named: set[str] = set()
    for group in PARAMETER_GROUPS:
        for setting in plan.settings:
            option = engine.option(setting.knob)
            if setting.group is not group:
                continue
            if option is None:
                yield from _parameter(setting, engine)
            elif option[0] not in named and setting.value is not None:
                named.add(option[0])
                yield _file_flag(option[0], setting, engine)


def _file_flag(parameter: str, first: Setting, engine: EngineAt) -> Words:
    name = engine.files[parameter]
    return Words((engine.flag(parameter), f"{FILES}/{name}"), first, file=name)


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


def _host_program(engine: EngineAt, program: At[str] | None) -> Words | None:
    """The site's program in the place of the engine's own, with the words that follow it."""
    if program is None or engine.call is None:
        return None
    rest = (word.value for word in engine.call.program[1:])
    return Words((program.value, *rest), None, Origin(program.span, "", "the site's own program"))


def _own(plan: Plan, engine: EngineAt) -> Iterator[Words]:
    flags = engine.serve.flags
    assert flags is not None
    for knob, flag in (
        ("host", flags.host),
        ("port", flags.port),
        ("served_model_name", flags.served_model_name),
    ):
        setting = plan.setting(knob)
        if flag is not None and setting is not None:
            yield Words(_valued(flag.value, word_of(setting.value)), setting)
    for setting in plan.settings:
        if setting.group is Group.OWN and setting.knob not in OWN_KNOBS:
            yield from _parameter(setting, engine)


def _topology(plan: Plan, engine: EngineAt) -> Iterator[Words]:
    for flag, value in engine.topology_values(plan.topology):
        setting = plan.setting(f"topology.{setting_of(flag, plan)}")
        assert setting is not None, flag
        bare = flag.bare is not None and flag.bare.value
        yield Words((flag.flag.value,) if bare else (flag.flag.value, str(value)), setting)


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
        case list() if knob in engine.repeated:
            for item in value:
                yield Words(_valued(flag, word_of(item)), setting)
        case list() if knob not in engine.json_lists:
            yield Words((flag, *map(word_of, value)), setting)
        case _:
            yield Words(_valued(flag, word_of(value)), setting)


def _valued(flag: str, word: str) -> tuple[str, ...]:
    """A flag and its value; a value that looks like a flag is tied to it with `=`."""
    return (f"{flag}={word}",) if looks_like_flag(word) else (flag, word)


def looks_like_flag(word: str) -> bool:
    """Whether an argument parser would take a word for a flag; a negative number it would not."""
    return word.startswith("-") and not NEGATIVE_NUMBER.match(word)


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
        yield Variable(subject.variable(flag.flag.value), str(value), setting.winner.origin)
    for setting in plan.settings:
        if setting.value is not None and setting.group in PARAMETER_GROUPS:
            name = subject.variable(setting.knob)
            yield Variable(name, word_of(setting.value), setting.winner.origin)


def word_of(value: Plain) -> str:
    """A value as one word of a command line: text as it is, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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
