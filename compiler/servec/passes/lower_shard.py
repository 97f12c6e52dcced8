"""lower, one shard: a request -> the processes of a node, their environment and files.

{profile: {engine: vllm, model_path: /m, tp: 8, nodes: 2, …}, shard: {rank: 1, …}}
  -> vllm serve /m … --tensor-parallel-size 8 --nnodes 2 --node-rank 1 … --headless

Pure: no file, no process, no clock. The order of the words is the one of a plan's command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from servec.catalog.engines import EngineAt
from servec.diag.findings import Finding
from servec.ir.serve_start import ApiKey
from servec.ir.shard import Command, File, ShardLaunch
from servec.ir.topology import ONE
from servec.passes.shard_asked import Asked, number, text
from servec.source.located import Plain, plain
from servec.strategy import nodes
from servec.strategy.words import is_missing, topology_words, valued, word_of

RUN = "/run/servec"
"""Where the files of a shard stand while it runs."""
SERVER = "server"
NVLINK = "nvl:"
CARRIED = ("replica_id", "shard_id", "pool", "fabric", "profile_fingerprint")


def lower_shard(asked: Asked, program: str | None, findings: tuple[Finding, ...]) -> ShardLaunch:
    """The launch of a request that nothing refuses. `program` is the site's own, if it has one."""
    engine, shard = asked.engine, asked.shard
    assert engine is not None
    assert engine.call is not None
    known, way, leads = _known(asked), asked.way, asked.rank == 0
    name, *rest = [word.value for word in engine.call.program]
    server = [program or name, *rest]
    files = tuple(_files(asked, engine)) if leads else ()
    env = _environment(asked)
    own = _key(asked) if leads else {}
    waits = ""
    if way is not None:
        env = {**env, **_kept(nodes.variables(way.env, known), asked)}
        own |= nodes.variables(way.leader_env, known) if leads else {}
        server = [*(word.value for word in way.before), *server]
    commands = []
    if way is not None and way.beside is not None and leads:
        path, *args = nodes.words(way.beside, known)
        commands.append(Command(way.beside.name.value, path, tuple(args), "sidecar"))
        waits = known["leader"] or ""
    if way is not None and way.worker is not None and not leads:
        path, *args = nodes.words(way.worker, known)
        after = (known["leader"] or "") if way.beside is not None else ""
        commands.append(Command(way.worker.name.value, path, tuple(args), "main", after))
    else:
        path, *args = [*server, *server_words(asked, engine)]
        commands.append(Command(SERVER, path, tuple(args), "main", waits, own))
    metrics = engine.manifest.metrics_endpoint
    devices, start = engine.serve.devices, [program or name, *rest]
    falls_back = devices is not None and devices.falls_back is not None and devices.falls_back.value
    lists = [word.value for word in devices.list] if devices else []
    return ShardLaunch(
        commands=tuple(commands),
        env=dict(sorted(env.items())),
        files=files,
        serves_http=leads,
        on_mig=asked.on_mig,
        health_path=engine.serve.health.path.value if leads else "",
        metrics_path=metrics.path.value if metrics and leads else "",
        falls_back_to_cpu=(*start, *lists) if falls_back else None,
        help_command=(*start, *(word.value for word in engine.serve.help)),
        carried={key: text(getattr(shard, key)) for key in CARRIED} if shard else {},
        findings=findings,
    )


def _known(asked: Asked) -> nodes.Known:
    """What each slot of the node's words stands for."""
    address, port = asked.leader_address, asked.leader_port
    bare = address.strip("[]")
    own = address if asked.rank == 0 else asked.bind_address
    return {
        "rank": str(asked.rank),
        "nodes": str(asked.nodes),
        "leader": f"[{bare}]:{port}" if ":" in bare else f"{address}:{port}",
        "leader_address": address,
        "leader_port": str(port),
        "node_address": own if nodes.reaches_others(own) else None,
        "gpus_per_node": str(asked.gpus_per_node),
    }


def server_words(asked: Asked, engine: EngineAt) -> Iterator[str]:
    """The words after the program, in the order of a plan's command; those of the profile last."""
    known = _known(asked)
    call, own, serve = engine.call, engine.serve.flags, engine.serve
    assert call is not None
    assert own is not None
    given = {argument.flag for argument in asked.arguments}
    if call.model is not None:
        yield call.model.value
    yield text(asked.profile.model_path)
    yield from valued(own.host.value, asked.bind_address)
    yield from valued(own.port.value, str(asked.http_port))
    served = text(asked.profile.served_model_name) or text(asked.profile.name)
    named = own.served_model_name
    if named is not None and served and not is_missing(named, engine):
        yield from valued(named.value, served)
    for knob, entry in serve.always.entries.items() if serve.always else ():
        flag, value = engine.flag(knob), plain(entry.value)
        if flag not in given:
            yield from (flag,) if value is True else valued(flag, word_of(value))
    topology = ONE._replace(tp=asked.tp, pp=asked.pp)
    for rule, count in engine.topology_values(topology):
        yield from topology_words(rule, count)
    if asked.way is not None:
        for _, words in nodes.flags(asked.way, known, leads=asked.rank == 0):
            yield from words
    if own.threads is not None and asked.shard and number(asked.shard.threads):
        yield from (own.threads.value, str(number(asked.shard.threads)))
    yield from _adapters(asked, engine, given)
    yield from _events(asked, engine)
    for file in _files(asked, engine) if asked.rank == 0 else ():
        yield from (_key_flag(asked), file.path)
    yield from (word.value for word in asked.profile.args)


def _adapters(asked: Asked, engine: EngineAt, given: set[str]) -> Iterator[str]:
    rules, adapters = engine.serve.adapters, asked.profile.adapters
    if rules is None or not adapters:
        return
    if rules.enable is not None and (enable := engine.flag(rules.enable.value)) not in given:
        yield enable
    flag = engine.flag(rules.list.value)
    if rules.paths is not None and rules.paths.value:
        yield from valued(flag, ",".join(item.path.value for item in adapters))
    else:
        yield from (flag, *(f"{item.name.value}={item.path.value}" for item in adapters))
    values: dict[str, Plain] = {}
    ranks = [number(item.rank) for item in adapters if number(item.rank)]
    if ranks and rules.max_rank is not None:
        allowed = [item.value for item in rules.ranks if item.value >= max(ranks)]
        values[rules.max_rank.value] = allowed[0] if allowed else max(ranks)
    for knob, value in values.items():
        if (flag := engine.flag(knob)) not in given:
            listed = value if isinstance(value, list) else [value]
            yield from (flag, *map(word_of, listed))


def _events(asked: Asked, engine: EngineAt) -> Iterator[str]:
    rules, shard = engine.serve.kv_events, asked.shard
    wanted = asked.profile.kv_events is not None and asked.profile.kv_events.value
    if rules is None or shard is None or not wanted:
        return
    port = str(number(shard.kv_events_port))
    value = {}
    for key, entry in rules.value.entries.items():
        item = plain(entry.value)
        value[key] = item.replace("{port}", port) if isinstance(item, str) else item
    yield from (rules.flag.value, word_of(value))


def _key(asked: Asked) -> dict[str, str]:
    """The variable of the API key, where the engine reads it from one."""
    channel: ApiKey | None = asked.api_key
    secret = text(asked.shard.api_key) if asked.shard else ""
    if not secret or channel is None or channel.variable is None:
        return {}
    return {channel.variable.value: secret}


def _key_flag(asked: Asked) -> str:
    assert asked.api_key is not None
    assert asked.api_key.file is not None
    return asked.api_key.file.flag.value


def _files(asked: Asked, engine: EngineAt) -> Iterator[File]:
    """The file of the API key, where the engine reads it from one: nobody else may."""
    secret = text(asked.shard.api_key) if asked.shard else ""
    if not secret or asked.api_key is None or asked.api_key.file is None:
        return
    file = asked.api_key.file
    said = text(asked.shard.shard_id) or text(asked.profile.name) if asked.shard else ""
    folder = re.sub(r"[^A-Za-z0-9._-]", "-", said).strip(".") or engine.manifest.engine.value
    content = f"{file.key.value}: {json.dumps(secret, ensure_ascii=False)}\n"
    yield File(f"{RUN}/{folder}/{file.name.value}", 0o600, content)


def _environment(asked: Asked) -> dict[str, str]:
    """What every process of the shard has: devices, then the network, then the profile's own."""
    shard, found = asked.shard, dict[str, str]()
    if shard is not None:
        if shard.gpu_indices is not None or shard.gpu_uuids is not None:  # nothing said: all
            indices = [str(item.value) for item in shard.gpu_indices or ()]
            found["CUDA_VISIBLE_DEVICES"] = ",".join(asked.uuids or indices)
        found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        is_nvlink = asked.nodes > 1 and text(shard.fabric).startswith(NVLINK)
        gid_index = shard.gid_index.value if shard.gid_index and shard.hcas else None
        found |= nodes.network({
            "hcas": ",".join(item.value for item in shard.hcas) or None,
            "gid_index": None if gid_index is None else str(gid_index),
            "interface": text(shard.mgmt_interface) or None,
            "nvlink": "1" if is_nvlink else None,
        })  # fmt: skip
    return _kept(found, asked) | _own(asked)


def _own(asked: Asked) -> dict[str, str]:
    return {item.key.value: item.value.value for item in asked.profile.env}


def _kept(found: dict[str, str], asked: Asked) -> dict[str, str]:
    """Variables that the profile does not say itself."""
    own = _own(asked)
    return {name: value for name, value in found.items() if name not in own}
