"""What is refused of a shard before anything starts, in the order in which it is told.

{profile: {tp: 0, …}, …}       -> SV1002: tp is 0
{profile: {nodes: 2, tp: 16}}  -> SV1005: nothing says how many GPUs of each

Everything wrong is told at once; the first finding is the kind of the refusal.
"""

from __future__ import annotations

from servec.catalog import sharding
from servec.catalog.engines import EngineAt
from servec.catalog.versions import holds
from servec.diag import codes
from servec.diag.findings import Finding, Findings, Severity
from servec.diag.suggest import nearest
from servec.ir.serve_start import Way
from servec.passes.shard_asked import (
    MIG,
    Argument,
    Asked,
    fabric_of,
    knob_of,
    number,
    place,
    text,
)
from servec.passes.shard_words import judge_words
from servec.source.located import Span, plain
from servec.strategy import nodes

MIG_INDEX = 1000
"""From here on an index stands for an instance of MIG, which CUDA does not count."""


def refusals(asked: Asked, catalog_names: list[str], findings: Findings) -> None:
    """Everything that is refused or warned of, in order."""
    profile = asked.profile
    if not text(profile.model_path).strip():
        findings.add(codes.NO_MODEL_PATH, place(profile.model_path, profile.span))
    elif text(profile.model_path).startswith("-"):
        findings.add(
            codes.BAD_VALUE,
            place(profile.model_path, profile.span),
            where="`profile.model_path`",
            wanted="a hub id or path, which does not begin with `-`",
            value=f"`{text(profile.model_path)}`",
        )
    if asked.tp <= 0:
        findings.add(codes.TP_NOT_POSITIVE, profile.tp.span, tp=asked.tp)
    _rank(asked, findings)
    _fabrics(asked, findings)
    if asked.tp > 0:
        _counts(asked, findings)
    _kinds(asked, findings)
    _capability(asked, findings)
    if asked.tp > 0:
        _shape(asked, findings)
    _leader(asked, findings)
    if asked.engine is None:
        known = ", ".join(catalog_names)
        name = profile.engine.value
        near = nearest(name, catalog_names)
        span = profile.engine.span
        findings.add(codes.UNKNOWN_ENGINE, span, name=name, known=known, suggestion=near)
    else:
        _way(asked, asked.engine, findings)
        _events(asked, asked.engine, findings)
        _mig(asked, findings)
    judge_words(asked, findings)
    _network(asked, findings)


def _rank(asked: Asked, findings: Findings) -> None:
    shard, profile = asked.shard, asked.profile
    if shard is None:
        return
    if not 0 <= asked.rank < asked.nodes:
        findings.add(
            codes.RANK_OUT_OF_RANGE,
            place(shard.rank, shard.span),
            rank=asked.rank,
            nodes=asked.nodes,
            s="s" * (asked.nodes > 1),
            last=asked.nodes - 1,
        )
    mine, theirs = number(shard.nnodes), number(profile.nodes)
    if mine and theirs and mine != theirs:
        findings.add(
            codes.GPUS_DO_NOT_ADD_UP,
            place(shard.nnodes, shard.span),
            has=f"the shard is of {mine} nodes",
            needs=f"the profile has {theirs}",
            advice="give both the same number",
        )


def _fabrics(asked: Asked, findings: Findings) -> None:
    known = fabric_of(asked)
    hcas = asked.shard.hcas if asked.shard else ()
    fabrics = sorted({known[item.value] for item in hcas if item.value in known})
    if len(fabrics) > 1:
        other = next(item for item in hcas if known.get(item.value) == fabrics[1])
        findings.add(codes.MIXED_FABRIC, other.span, fabrics=" and ".join(fabrics))


def _counts(asked: Asked, findings: Findings) -> None:
    profile = asked.profile
    span = place(profile.gpus_per_node, profile.tp.span)
    if not asked.gpus_per_node:
        findings.add(codes.NO_GPUS_PER_NODE, place(profile.nodes, profile.span), nodes=asked.nodes)
        return
    has, needs = asked.nodes * asked.gpus_per_node, asked.tp * asked.pp
    if has != needs:
        each = f" of {asked.gpus_per_node} GPU{'s' * (asked.gpus_per_node > 1)}"
        advice = f"set `gpus_per_node: {needs // asked.nodes}`" if needs % asked.nodes == 0 else ""
        findings.add(
            codes.GPUS_DO_NOT_ADD_UP,
            span,
            has=f"{asked.nodes} node{'s' * (asked.nodes > 1)}{each} make {has}",
            needs=f"tp {asked.tp} · pp {asked.pp} is {needs}",
            advice=advice or "take a tp and pp that make the GPUs of all nodes",
        )
    gpus = asked.request.gpus
    if gpus and len(gpus) < asked.gpus_per_node:
        findings.add(codes.NODE_TOO_SMALL, span, needs=asked.gpus_per_node, has=len(gpus))
    _chosen(asked, findings)


def _chosen(asked: Asked, findings: Findings) -> None:
    """The GPUs that the shard names: as many as each node gives, each once. An empty list is a
    shard that sees none."""
    uuids = (asked.shard.gpu_uuids if asked.shard else None) or ()
    named: dict[str, list[tuple[int | str, Span]]] = {
        "gpu_indices": [(item.value, item.span) for item in asked.indices],
        "gpu_uuids": [(item.value, item.span) for item in uuids],
    }
    for name, said in named.items():
        values = [value for value, _ in said]
        for at, (value, span) in enumerate(said):
            if value in values[:at]:
                wanted = "a list with each GPU once"
                findings.add(
                    codes.BAD_VALUE,
                    span,
                    where=f"`shard.{name}`",
                    wanted=wanted,
                    value=f"`{value}`",
                )
        if said and len(said) != asked.gpus_per_node:
            findings.add(
                codes.GPUS_DO_NOT_ADD_UP,
                said[0][1],
                has=f"`{name}` has {len(said)} GPU{'s' * (len(said) > 1)}",
                needs=f"the shard is of {asked.gpus_per_node}",
                advice="name each GPU of the shard, and no others",
            )


def _kinds(asked: Asked, findings: Findings) -> None:
    """The GPUs of the group: those that the shard names, else all of the node."""
    chosen = {item.value for item in asked.indices}
    gpus = [gpu for gpu in asked.request.gpus if not chosen or number(gpu.index) in chosen]
    names = sorted({text(gpu.name) for gpu in gpus if text(gpu.name)})
    if len(names) > 1:
        other = next(gpu for gpu in gpus if text(gpu.name) != text(gpus[0].name))
        span = place(other.name, other.span)
        findings.add(codes.MIXED_GPUS, span, kinds=" and ".join(names))


def _capability(asked: Asked, findings: Findings) -> None:
    """The lowest compute capability of the quantization that is asked for."""
    found = quantization(asked)
    if found is None or not asked.request.gpus:
        return
    name, span = found
    needs = _least(asked, name)
    if needs is None:
        return
    for gpu in asked.request.gpus:
        has = sharding.capability(text(gpu.compute_capability))
        if has is not None and has < needs:
            findings.add(
                codes.LOW_CAPABILITY,
                span,
                quantization=name,
                needs=f"{needs[0]}.{needs[1]}",
                gpu=text(gpu.name) or "the GPU",
                has=f"{has[0]}.{has[1]}",
            )
            return


def quantization(asked: Asked) -> tuple[str, Span] | None:
    """The quantization of the pass-through words, of which the first counts, else the model's."""
    knobs = asked.engine.quantization_knobs if asked.engine else []
    for knob in knobs:
        for value in asked.values(knob):
            return value.value, value.span
    config = asked.request.model.get("quantization_config") if asked.request.model else None
    facts = plain(config) if config is not None else None
    method = facts.get("quant_method") if isinstance(facts, dict) else None
    if isinstance(method, str) and config is not None and knobs:
        return method, config.span
    return None


def _least(asked: Asked, name: str) -> tuple[int, int] | None:
    """What a quantization needs: of the request's own table, else of the engine's release."""
    constraints = asked.request.constraints
    if constraints is not None and constraints.min_compute_capability:
        table = {item.key.value: item.value.value for item in constraints.min_compute_capability}
        least = table.get(name)
        return None if least is None else (int(least), round(least * 10) % 10)
    here = asked.engine.here if asked.engine else None
    known = here.least_capability(name) if here else None
    return None if known is None else (known // 10, known % 10)


def _shape(asked: Asked, findings: Findings) -> None:
    """Heads, experts and blocks against the GPUs that they are cut over."""
    engine, model = asked.engine, asked.request.model
    if model is None or engine is None or not engine.cuts_layers:
        return
    experts = _expert_parallel(asked, engine)
    expert = asked.tp // experts if experts and asked.tp % experts == 0 else None
    knobs = {argument.knob for argument in asked.arguments}
    split = sharding.Split(
        attention=asked.tp,
        dense=None if knobs.intersection(engine.cut_by("dense")) else asked.tp,
        expert=expert if experts else asked.tp,
        experts=None if knobs.intersection(engine.cut_by("experts")) else experts,
    )
    for code, arguments in sharding.problems(model, split):
        findings.put(Finding(code, code.severity, asked.profile.tp.span, arguments))


def _expert_parallel(asked: Asked, engine: EngineAt) -> int | None:
    """Over how many GPUs the set of experts is spread; None where each expert is cut."""
    for flag in engine.topology_flags:
        if flag.of.value != "ep":
            continue
        for argument in asked.arguments:
            if engine.topology_spellings.get(argument.knob) == "ep" or argument.flag == (
                flag.flag.value
            ):
                bare = flag.bare is not None and flag.bare.value
                digits = argument.value.value if argument.value else ""
                return asked.tp if bare else int(digits) if digits.isdigit() else None
    return None


def _leader(asked: Asked, findings: Findings) -> None:
    shard = asked.shard
    if shard is None or asked.nodes == 1:
        return
    address, port = asked.leader_address, asked.leader_port
    lacks = [word for word, said in (("address", address), ("port", port)) if not said]
    if lacks:
        problem = f"no {' and no '.join(lacks)} of the leader"
        span = place(shard.leader_port if address else shard.leader_addr, shard.span)
        findings.add(codes.NO_LEADER, span, nodes=asked.nodes, problem=problem)
    if address and not nodes.reaches_others(address):
        span = place(shard.leader_addr, shard.span)
        findings.add(codes.LOOPBACK_LEADER, span, address=address)


def _way(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    profile, name = asked.profile, engine.manifest.engine.value
    asked_for, known = text(profile.launch_mode), [way.name.value for way in engine.serve.nodes]
    span = place(profile.launch_mode or profile.nodes, profile.span)
    if asked_for and asked_for not in known:
        lists = f"{name} has {', '.join(known)}" if known else f"{name} has none"
        findings.add(
            codes.BAD_VALUE,
            span,
            where="`profile.launch_mode`",
            wanted=f"a way over several nodes; {lists}",
            value=f"`{asked_for}`",
            suggestion=nearest(asked_for, known),
        )
    elif asked.nodes > 1 and asked.way is None:
        problem, advice = nodes.why_none(engine, asked.nodes, asked_for)
        findings.add(codes.NO_NODES, span, problem=problem, advice=advice)
    way = asked.way
    if way is not None and way.needs is not None and asked.rank == 0 and asked.shard is not None:
        needed = way.needs.value
        if all(argument.flag != needed for argument in asked.arguments):
            problem = f"`launch_mode: {way.name.value}` needs {needed} among `args` of the leader"
            findings.add(codes.NO_NODES, span, problem=problem, advice=f"add {needed}")
    _modes(asked, engine, findings)


def _modes(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    """Words that ask for another way than the one that is taken, or for two."""
    signs = [_sign(way, argument) for argument in asked.arguments for way in nodes.ways(engine)]
    found = {way: argument for pair in signs if pair for way, argument in [pair]}
    taken = asked.way.name.value if asked.way else ""
    for name, argument in found.items():
        others = (set(found) | ({taken} if taken else set())) - {name}
        if others and name != taken:
            way = f"`{min(others)}`"
            advice = f"say `launch_mode: {name}` and leave the flags out, or take them out"
            span = argument.word.span
            findings.add(
                codes.LAUNCH_MODES, span, flag=argument.flag, other=name, way=way, advice=advice
            )


def _sign(way: Way, argument: Argument) -> tuple[str, Argument] | None:
    """Whether a flag is one that only this way sets: with the same value where that is fixed."""
    for flag in way.flags:
        if knob_of(flag.flag.value) == argument.knob:
            fixed = flag.value is None or not nodes.SLOT.search(flag.value.value)
            given = argument.value.value if argument.value else ""
            if fixed and flag.value is not None and given != flag.value.value:
                return None
            return way.name.value, argument
    return None


def _events(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    said, rules = asked.profile.kv_events, engine.serve.kv_events
    if said is None or not said.value:
        return
    if rules is None or not holds(rules, engine.version):
        name, version = engine.manifest.engine.value, engine.version or ""
        findings.add(codes.NO_KV_EVENTS, said.span, engine=name, version=version)
    elif asked.shard is not None and not number(asked.shard.kv_events_port):
        shard = asked.shard
        findings.add(
            codes.BAD_VALUE,
            place(shard.kv_events_port, shard.span),
            where="`shard.kv_events_port`",
            wanted="the port of who hears of the cache",
            value="`0`",
        )


def _mig(asked: Asked, findings: Findings) -> None:
    facts = [text(gpu.name) + " " + text(gpu.uuid) for gpu in asked.request.gpus]
    is_fact = any(" MIG " in f" {fact} " or MIG in fact for fact in facts)
    if asked.tp * asked.pp > 1 and (is_fact or asked.on_mig):
        severity = Severity.ERROR if is_fact else Severity.WARNING
        span = asked.profile.tp.span
        findings.add(codes.MIG_PARALLEL, span, tp=asked.tp, pp=asked.pp, severity=severity)
    for item in asked.indices if not asked.uuids else ():
        if item.value >= MIG_INDEX:
            findings.add(codes.MIG_BY_INDEX, item.span, index=item.value)


def _network(asked: Asked, findings: Findings) -> None:
    """What goes wrong at the start of several nodes, or on one with several networks."""
    shard = asked.shard
    if shard is None:
        return
    if asked.nodes > 1 and not text(shard.mgmt_interface):
        span = place(shard.mgmt_interface, shard.span)
        findings.add(codes.NO_INTERFACE, span, nodes=asked.nodes, key="mgmt_interface")
    ports = {"`http_port`": asked.http_port, "`kv_events_port`": number(shard.kv_events_port)}
    if asked.nodes > 1 and asked.rank == 0:
        ports["`leader_port`"] = asked.leader_port
    for one, other in (("`leader_port`", "`http_port`"), ("`kv_events_port`", "`http_port`")):
        if ports.get(one) and ports[one] == ports[other]:
            said = shard.leader_port if "leader" in one else shard.kv_events_port
            span = place(said, shard.span)
            findings.add(codes.PORT_TWICE, span, one=one, other=other, port=ports[one])
    names = {item.key.value for item in asked.profile.env}
    for hca in shard.hcas if "NCCL_IB_HCA" not in names else ():
        known = [name for name in fabric_of(asked) if name.startswith(hca.value)]
        others = sorted(set(known) - {item.value for item in shard.hcas})
        if others:
            findings.add(codes.HCA_PREFIX, hca.span, name=hca.value, others=", ".join(others))
    if shard.gid_index is not None and shard.gid_index.value is not None and not shard.hcas:
        span = shard.gid_index.span
        findings.add(codes.GID_UNUSED, span, index=shard.gid_index.value)
