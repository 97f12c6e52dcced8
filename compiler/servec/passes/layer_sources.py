"""layer, part one: every place that can define a knob -> definitions, in their order."""

from __future__ import annotations

from collections.abc import Iterator

from servec.catalog.capabilities import Capabilities
from servec.catalog.engines import EngineAt, negated
from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir import decl
from servec.ir.program import Subject
from servec.ir.serve import SPECULATIVE_WORDS, AdapterRules
from servec.ir.setting import DETERMINISTIC, Definition, Origin, Rank
from servec.source.located import At, Map, Node, Plain, Span, plain
from servec.strategy.speculative import Draft, parameters
from servec.strategy.words import word_of

BIND_ADDRESS = "0.0.0.0"
TOPOLOGY = "topology."
"""What stands before a topology key's name among the knobs."""
ADAPTERS_ON = "adapters are on, and none is listed"


def definitions_of(
    subject: Subject, turn: int, sources: decl.Sources, findings: Findings
) -> list[Definition]:
    """All definitions of one subject but those of requirements and of the topology's formula."""
    engine = subject.engine.at(subject.version.version)
    layers = list(_recipe(subject, engine, findings))
    found = [
        *_dtype_fallback(subject, layers),
        *_own(subject, turn),
        *_role(subject),
        *layers,
        *_overrides(subject, engine),
        *_topology(subject),
        *_speculative(subject),
        *_adapters(subject),
        *_deterministic(subject),
        *_sets(subject, engine, sources),
    ]
    return [*found, *_replaced_options(found, engine)]


def _replaced_options(found: list[Definition], engine: EngineAt) -> Iterator[Definition]:
    """A parameter that names a file, or unsets it, leaves nothing of what weaker layers would
    write into one."""
    for whole in found:
        if whole.knob not in engine.files:
            continue
        options = dict.fromkeys(item.knob for item in found if _is_option(item, whole, engine))
        for knob in options:
            yield whole._replace(knob=knob, written=None, value=None, node=None)


def _is_option(item: Definition, whole: Definition, engine: EngineAt) -> bool:
    option = engine.option(item.knob)
    is_weaker = Rank.DERIVED < item.rank < whole.rank
    return option is not None and option[0] == whole.knob and is_weaker


def _dtype_fallback(subject: Subject, layers: list[Definition]) -> Iterator[Definition]:
    """Without a hardware layer the model's own dtype holds, where the model's facts give one."""
    knob, dtype = subject.engine.serve.dtype, subject.facts.dtype
    has_leaf = any(definition.rank is Rank.HARDWARE for definition in layers)
    if knob is None or dtype is None or subject.recipe is None or has_leaf:
        return
    place = subject.model.config or subject.model.checkpoint
    rule = "the model's own dtype, since the recipe has no hardware layer here"
    origin = Origin(place.span if place else None, "", rule)
    yield Definition(knob.value, knob.value, dtype, dtype, Rank.DERIVED, origin)


def _own(subject: Subject, turn: int) -> Iterator[Definition]:
    """Bind address, port and served name, of which every artifact speaks, and what the engine's
    manifest gives to every server. Of several servers on a host each has the next port."""
    port, name = subject.engine.serve.port, subject.model.name
    origin = Origin(None, "", "all addresses, unless told otherwise")
    yield Definition("host", "host", BIND_ADDRESS, BIND_ADDRESS, Rank.DERIVED, origin)
    origin = Origin(port.span, "", f"the port of {subject.engine.name}")
    number = port.value + turn
    if turn:
        rule = f"the port of {subject.engine.name}, {turn} up on a host with servers above"
        origin = Origin(subject.model.hosts[0].span, "", rule)
    yield Definition("port", "port", number, number, Rank.DERIVED, origin)
    origin, knob = Origin(name.span, "", "the model's name"), "served_model_name"
    yield Definition(knob, knob, name.value, name.value, Rank.DERIVED, origin)
    always = subject.engine.serve.always
    for entry in always.entries.values() if always else ():
        rule = f"every {subject.engine.name} server, unless told otherwise"
        knob, value = entry.key.value, plain(entry.value)
        yield Definition(knob, knob, value, value, Rank.DERIVED, Origin(entry.key.span, "", rule))


def _role(subject: Subject) -> Iterator[Definition]:
    """What tells a server which part of a request it does."""
    rules, role = subject.engine.serve.roles, subject.model.role
    if rules is None or role is None or role.value == "full":
        return
    told = rules.prefill if role.value == "prefill" else rules.decode
    for knob, entry in told.entries.items() if told else ():
        value = plain(entry.value)
        origin = Origin(role.span, f"{_path(subject)}.role")
        yield Definition(knob, knob, value, value, Rank.OVERRIDE, origin)


def _recipe(subject: Subject, engine: EngineAt, findings: Findings) -> Iterator[Definition]:
    """The recipe's hardware layer, then its capability layer. No leaf is a warning."""
    recipe = subject.recipe
    if recipe is None:
        return
    name, precision = subject.engine.name, subject.precision or ""
    accelerator = subject.accelerator.name.value
    leaf = _find(_find(_find(recipe.hardware, accelerator), precision), name)
    head = f"{recipe.span.file} {recipe.name.value}"
    if isinstance(leaf, Map):
        path = f"{head}.hardware.{accelerator}.{precision}.{name}"
        yield from _parameters(leaf, engine, Rank.HARDWARE, path)
    else:
        findings.add(
            codes.NO_LEAF,
            subject.model.name.span,
            recipe=recipe.name.value,
            accelerator=accelerator,
            precision=precision,
            engine=name,
            also=(recipe.name.span, "the recipe"),
        )
    behaviour = _find(_find(recipe.capabilities, subject.model_type), name)
    if isinstance(behaviour, Map):
        path = f"{head}.capabilities.{subject.model_type}.{name}"
        yield from _parameters(behaviour, engine, Rank.CAPABILITY, path)


def _leaf_place(subject: Subject, has_accelerator: bool) -> Span:
    """What of the spec has no leaf: the accelerator, or the precision on it."""
    model = subject.model
    place = model.precision if has_accelerator and model.precision else model.hardware
    return (place or model.name).span


def _find(items: object, key: str) -> object:
    if isinstance(items, tuple):
        return next((item.value for item in items if item.key.value == key), None)
    return None


def _overrides(subject: Subject, engine: EngineAt) -> Iterator[Definition]:
    if subject.model.overrides is not None:
        path = f"{_path(subject)}.overrides"
        yield from _parameters(subject.model.overrides, engine, Rank.OVERRIDE, path)


def _parameters(layer: Map, engine: EngineAt, rank: Rank, path: str) -> Iterator[Definition]:
    for entry in layer.entries.values():
        key = entry.key.value
        origin = Origin(entry.key.span, f"{path}.{key}")
        name = key.replace("-", "_")
        parameter = engine.file_parameter(name)
        if parameter is not None and isinstance(entry.value, Map):
            for inner in entry.value.entries.values():
                whole = f"{parameter}.{inner.key.value}"
                place = Origin(inner.key.span, f"{path}.{key}.{inner.key.value}")
                yield from _parameter(whole, inner.value, engine, rank, place)
        else:
            yield from _parameter(parameter or name, entry.value, engine, rank, origin)


def _parameter(
    name: str, node: Node, engine: EngineAt, rank: Rank, origin: Origin
) -> Iterator[Definition]:
    written = plain(node)
    topology_key = engine.topology_spellings.get(name)
    if topology_key == "attention_dp":
        yield Definition(TOPOLOGY + "dp", name, written, written, rank, origin)
        if written != 1:
            knob = TOPOLOGY + "enable_dp_attention"
            yield Definition(knob, name, written, True, rank, origin)
    elif topology_key is not None:
        yield Definition(TOPOLOGY + topology_key, name, written, written, rank, origin)
    else:
        knob, opposite = engine.knob(name)
        value = negated(written) if opposite else written
        become = engine.renamed(knob, value)
        for new, meant in become:
            said = f"`{name}: {word_of(written)}`"
            yield Definition(new, new, meant, meant, rank, origin, said)
        if not become:
            yield Definition(knob, name, written, value, rank, origin, node=node)


def _topology(subject: Subject) -> Iterator[Definition]:
    """`topology:`, in servec's own words, of the rank of the overrides."""
    topology = subject.model.topology
    if topology is None:
        return
    for key in ("tp", "pp", "dp", "ep", "cp", "dcp", "enable_dp_attention", "replicas"):
        value = getattr(topology, key)
        if value is not None:
            origin = Origin(value.span, f"{_path(subject)}.topology.{key}")
            knob = TOPOLOGY + key
            yield Definition(knob, knob, value.value, value.value, Rank.OVERRIDE, origin)


def _speculative(subject: Subject) -> Iterator[Definition]:
    """`speculative:`, in the parameters of the engine, of the rank of the overrides."""
    said, rules = subject.model.speculative, subject.engine.serve.speculative
    if said is None or rules is None:
        return
    words: dict[str, Plain] = {}
    for item in rules.defaults:
        if item.key.value == said.algorithm.value:
            words |= {key: plain(entry.value) for key, entry in item.value.entries.items()}
    for word in SPECULATIVE_WORDS[1:]:
        value = getattr(said, word)
        if value is not None:
            words[word] = value.value
    capabilities = Capabilities(subject.engine.manifest, subject.version)
    method = capabilities.engine_name(said.algorithm.value) or said.algorithm.value
    origin = Origin(said.algorithm.span, f"{_path(subject)}.speculative", "`speculative:`")
    for entry in rules.beside.entries.values() if rules.beside and rules.knob else ():
        assert rules.knob is not None
        knob, value = f"{rules.knob.value}.{entry.key.value}", plain(entry.value)
        rule = f"`speculative:` on {subject.engine.name}"
        beside = Origin(said.algorithm.span, f"{_path(subject)}.speculative", rule)
        yield Definition(knob, knob, value, value, Rank.DERIVED, beside)
    for knob, value in parameters(rules, Draft(said.algorithm.value, method, words)):
        yield Definition(knob, knob, value, value, Rank.OVERRIDE, origin)


def _adapters(subject: Subject) -> Iterator[Definition]:
    """`adapters:`, in the parameters of the engine, of the rank of the overrides. Where adapters
    are switched on and none is listed, what the engine then demands is derived."""
    said, rules = subject.model.adapters, subject.engine.serve.adapters
    if rules is None:
        return
    if not said:
        yield from _demands(subject, rules)
        return
    values: dict[str, Plain] = {}
    if rules.enable is not None:
        values[rules.enable.value] = True
    values[rules.list.value] = [f"{item.name.value}={item.path.value}" for item in said]
    ranks = [item.rank.value for item in said if item.rank is not None]
    if ranks and rules.max_rank is not None:
        allowed = [item.value for item in rules.ranks if item.value >= max(ranks)]
        values[rules.max_rank.value] = allowed[0] if allowed else max(ranks)
    origin = Origin(said[0].span, f"{_path(subject)}.adapters", "`adapters:`")
    for knob, value in values.items():
        yield Definition(knob, knob, value, value, Rank.OVERRIDE, origin)


def _demands(subject: Subject, rules: AdapterRules) -> Iterator[Definition]:
    overrides, demands = subject.model.overrides, rules.demands
    if overrides is None or demands is None or rules.enable is None:
        return
    switch = overrides.get(rules.enable.value)
    if isinstance(switch, At) and switch.value is True and overrides.get(rules.list.value) is None:
        origin = Origin(switch.span, f"{_path(subject)}.overrides", ADAPTERS_ON)
        for knob, entry in demands.entries.items():
            value = plain(entry.value)
            yield Definition(knob, knob, value, value, Rank.DERIVED, origin)


def _deterministic(subject: Subject) -> Iterator[Definition]:
    """What `deterministic: true` means for this engine."""
    said, rules = subject.model.deterministic, subject.engine.serve.deterministic
    if said is None or not said.value or rules is None:
        return
    for setting in rules.settings:
        knob, value = setting.knob.value, plain(setting.value)
        if setting.unless_set and setting.unless_set.value:
            rank, origin = Rank.DERIVED, Origin(said.span, "", DETERMINISTIC)
        else:
            path = f"{_path(subject)}.deterministic"
            rank, origin = Rank.OVERRIDE, Origin(said.span, path, DETERMINISTIC)
        yield Definition(knob, knob, value, value, rank, origin)


def _sets(subject: Subject, engine: EngineAt, sources: decl.Sources) -> Iterator[Definition]:
    for item in sources.sets:
        if item.model.value == subject.model.name.value:
            name = item.knob.value.replace("-", "_")
            origin = Origin(item.knob.span, f"--set {item.model.value}.{item.knob.value}")
            yield from _parameter(name, item.value, engine, Rank.COMMAND_LINE, origin)


def _path(subject: Subject) -> str:
    return f"{subject.file} models.{subject.model.name.value}"
