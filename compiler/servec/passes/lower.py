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
from servec.ir import decl
from servec.ir.launch import Launch, Metrics, OptionsFile, Variable, Words
from servec.ir.plan import Plan
from servec.ir.setting import DETERMINISTIC, PARAMETER_GROUPS, Origin
from servec.passes.lower_start import start_of
from servec.source.located import At, plain
from servec.strategy.command import command, serves_as, setting_of
from servec.strategy.words import topology_words, word_of


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
    port = plan.setting("port")
    assert port is not None
    assert isinstance(port.value, int)
    words = tuple(command(plan, engine))
    return Launch(
        plan=plan,
        command=words,
        host_program=_host_program(engine, programs.get(subject.engine.name)),
        files=tuple(_files(plan, engine)),
        env=tuple(_environment(plan)),
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


def _host_program(engine: EngineAt, program: At[str] | None) -> Words | None:
    """The site's program in the place of the engine's own, with the words that follow it."""
    if program is None or engine.call is None:
        return None
    rest = (word.value for word in engine.call.program[1:])
    return Words((program.value, *rest), None, Origin(program.span, "", "the site's own program"))


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
