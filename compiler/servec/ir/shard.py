"""The shard interface: what a node agent asks about one shard, and what it is answered.

`Request` is the input, typed and checked; `ShardLaunch` is the output: processes in start order.
An input's empty text and 0 stand for what is not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from servec.diag.findings import Finding
from servec.ir import network
from servec.ir.shape import (
    Bool,
    Int,
    ListOf,
    MapOf,
    Number,
    OrNull,
    Parameters,
    Record,
    Text,
    declaration,
    key,
)
from servec.ir.words import Item
from servec.source.located import At, Map, Span

ANY = Text()
NOWHERE = r"|\Z|\$\([A-Z_][A-Z0-9_]*\)\Z"
"""Not given, or told by a variable of the pod."""
ADDRESS = Text(network.ADDRESS.pattern + NOWHERE, network.ADDRESS.what)
INTERFACE = Text(network.INTERFACE.pattern + NOWHERE, network.INTERFACE.what)
PORT = Int(0, 65535)


@declaration
class ShardAdapter:
    """A LoRA adapter that is served beside the model."""

    span: Span
    name: At[str] = key(ANY, "the name that clients ask for", required=True)
    path: At[str] = key(ANY, "where it is", required=True)
    rank: At[int] | None = key(OrNull(Int(1)), "its rank, where that is known")


@declaration
class Profile:
    """How a model is served, whatever the nodes."""

    span: Span
    name: At[str] | None = key(ANY, "the profile's name")
    engine: At[str] = key(ANY, "the engine's name, or an alias", required=True)
    gpu_class: At[str] | None = key(ANY, "the kind of GPU that it is for")
    tp: At[int] = key(
        Int(1, judged=True), "tensor parallelism: the GPUs of one copy of the model", required=True
    )
    pp: At[int] | None = key(OrNull(Int()), "pipeline parallelism; 1 unless said")
    gpus_per_node: At[int] | None = key(
        OrNull(Int()), "GPUs of each node; on one node tp unless said"
    )
    nodes: At[int] | None = key(OrNull(Int()), "nodes of a replica; 1 unless said")
    args: tuple[At[str], ...] = key(ListOf(ANY), "further words for the engine, passed through")
    env: tuple[Item[At[str]], ...] = key(MapOf(ANY), "variables, which win over servec's")
    model_path: At[str] | None = key(ANY, "the model, as the server finds it")
    served_model_name: At[str] | None = key(ANY, "the name that clients ask for")
    adapters: tuple[ShardAdapter, ...] = key(ListOf(Record(ShardAdapter)), "LoRA adapters")
    kv_events: At[bool] | None = key(Bool(), "publish what the KV cache holds")
    launch_mode: At[str] | None = key(
        OrNull(ANY), "the way over several nodes; unless said the engine's own"
    )


@declaration
class ShardFacts:
    """One shard: its rank, its GPUs, its network."""

    span: Span
    replica_id: At[str] | None = key(OrNull(ANY), "carried into the answer, not read")
    shard_id: At[str] | None = key(OrNull(ANY), "carried into the answer, not read")
    rank: At[int] | None = key(
        OrNull(Int(judged=True)), "its place among the nodes, from 0; 0 unless said"
    )
    nnodes: At[int] | None = key(OrNull(Int()), "nodes of the replica; as the profile says")
    leader_addr: At[str] | None = key(OrNull(ADDRESS), "address of rank 0")
    leader_port: At[int] | None = key(OrNull(PORT), "port that rank 0 meets the others on")
    gpu_indices: tuple[At[int], ...] | None = key(
        ListOf(Int()), "GPUs by index, in this order; all unless said", absent=True
    )
    gpu_uuids: tuple[At[str], ...] | None = key(
        ListOf(ANY), "or by UUID, as MIG instances have to be", absent=True
    )
    hcas: tuple[At[str], ...] = key(ListOf(network.HCA), "RDMA adapters of the chosen fabric")
    mgmt_interface: At[str] | None = key(OrNull(INTERFACE), "interface for the nodes' bootstrap")
    gid_index: At[int] | None = key(OrNull(Int(0, 255)), "RoCE GID index of this node")
    http_port: At[int] | None = key(OrNull(PORT), "port that is served on; the engine's own")
    bind_addr: At[str] | None = key(OrNull(ADDRESS), "address that is served on; 0.0.0.0")
    api_key: At[str] | None = key(OrNull(ANY), "the key that clients must have")
    kv_events_port: At[int] | None = key(OrNull(PORT), "loopback port of who hears of the cache")
    threads: At[int] | None = key(OrNull(Int()), "CPU threads; the engine's own number")
    pool: At[str] | None = key(OrNull(ANY), "carried into the answer, not read")
    fabric: At[str] | None = key(
        OrNull(ANY), "carried into the answer; `nvl:` is NVLink over several nodes"
    )
    profile_fingerprint: At[str] | None = key(OrNull(ANY), "carried into the answer, not read")


@declaration
class Gpu:
    """A GPU of the node, as its agent reads it."""

    span: Span
    index: At[int] | None = key(OrNull(Int()), "its index")
    name: At[str] | None = key(OrNull(ANY), "the driver's name of it")
    compute_capability: At[str] | None = key(OrNull(ANY), "CUDA compute capability, as 9.0")
    memory_total_mb: At[float] | None = key(OrNull(Number()), "its memory, MB")
    uuid: At[str] | None = key(OrNull(ANY), "its UUID")


@declaration
class NodeFacts:
    """What is known of the node."""

    span: Span
    hca_fabric: tuple[Item[At[str]], ...] = key(MapOf(ANY), "the fabric of each RDMA adapter")


@declaration
class Constraints:
    """What holds instead of the catalogue."""

    span: Span
    min_compute_capability: tuple[Item[At[float]], ...] = key(
        MapOf(Number()), "lowest compute capability of each quantization"
    )


@declaration
class Request:
    """The input of `servec launch`."""

    span: Span
    profile: Profile = key(Record(Profile), "how the model is served", required=True)
    shard: ShardFacts | None = key(Record(ShardFacts), "the shard")
    gpus: tuple[Gpu, ...] = key(ListOf(Record(Gpu)), "the node's GPUs; unknown unless given")
    node: NodeFacts | None = key(Record(NodeFacts), "the node")
    constraints: Constraints | None = key(Record(Constraints), "what holds instead")
    model: Map | None = key(Parameters(), "facts of the model, by the keys of its config.json")


class File(NamedTuple):
    """A file that has to be there before the start; `mode` as chmod has it."""

    path: str
    mode: int
    content: str


@dataclass(frozen=True, slots=True)
class Command:
    """One process. `env` is what it has beside the shard's; `wait_for_leader_port` is `host:port`
    that has to answer before it starts, or empty. A `sidecar` is kept alive for the shard, and the
    exit of `main` is the shard's."""

    name: str
    path: str
    args: tuple[str, ...]
    lifetime: str = "main"
    wait_for_leader_port: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.path, *self.args)


@dataclass(frozen=True, slots=True)
class ShardLaunch:
    """The processes of a shard. `env` is of all of them, sorted by name; `files` are written by
    whoever starts it; `findings` are warnings and notes. `falls_back_to_cpu` is the command that
    lists devices, where the engine would compute on the CPU without a word; else None."""

    commands: tuple[Command, ...]
    env: Mapping[str, str]
    files: tuple[File, ...]
    serves_http: bool
    on_mig: bool
    health_path: str
    metrics_path: str
    falls_back_to_cpu: tuple[str, ...] | None
    help_command: tuple[str, ...]
    carried: Mapping[str, str]
    findings: tuple[Finding, ...]

    def environment(self, inherited: Iterable[str], command: Command | None = None) -> list[str]:
        """The complete environment as sorted `NAME=value`: what is generated wins over `inherited`,
        whose entries without `=` are dropped. With a `command`, its own variables too."""
        return merged(inherited, {**self.env, **(command.env if command else {})})


def merged(inherited: Iterable[str], generated: Mapping[str, str]) -> list[str]:
    """Two environments as one sorted list; of a name the generated value holds, else the last."""
    pairs = (entry.partition("=") for entry in inherited)
    found = {name: value for name, equals, value in pairs if equals and name}
    return sorted(f"{name}={value}" for name, value in {**found, **generated}.items())
