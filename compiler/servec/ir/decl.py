"""What the source files declare, typed and checked, nothing decided yet.

Each class is one mapping of a file; each field a key, declared once with its shape and a sentence.
Every value keeps its place (`At`), so that all later findings can point at it.
"""

from __future__ import annotations

from servec.ir.network import ADDRESS, HCA, INTERFACE
from servec.ir.shape import (
    Bool,
    Choice,
    Int,
    ListOf,
    MapOf,
    OrNull,
    Parameters,
    Record,
    Text,
    declaration,
    key,
)
from servec.ir.words import NAME, PRECISION, TEXT, VERSION, Item
from servec.source.located import At, Map, Node, Span

CHECKPOINT = Text(r"[^-\x00][^\x00]*\Z", "a hub id or path")
GPUS = Int(1, 65536)
TARGETS = Choice(("bash", "systemd", "kubernetes"))
SPEC_TYPE = Choice(("chat", "gen"), {"instruct": "chat", "base": "gen"}, ("recipes", "a spec"))
IMAGE = Text(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*\Z", "an image reference")
USER = Text(r"[a-z_][a-z0-9_-]{0,31}\Z", "a user's name")
RESOURCE = Text(r"[a-z0-9.-]+/[A-Za-z0-9._-]+\Z", "a resource name, as nvidia.com/gpu")
PROGRAM = Text(r"[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*\Z", "a program's name or path")
ABSOLUTE = Text(r"/[^\x00-\x20\x7f]*\Z", "an absolute path without spaces")
SECRET_KEY = Text(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,253}\Z", "a key of a Secret")
FILE = Text(r"/[^\x00-\x20\x7f]*[^\x00-\x20\x7f/]\Z", "the absolute path of a file, without spaces")
HOST = Text(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z", "a host's name")
INSIDE = Text(r"(?!/)(?!(.*/)?\.\.(/|\Z))[^\x00-\x1f\x7f]+\Z", "a path inside the project")


# --- specs ---------------------------------------------------------------------------------------


@declaration
class Topology:
    """How one replica is spread over GPUs, in servec's own words."""

    span: Span
    tp: At[int] | None = key(GPUS, "GPUs that share each layer (tensor parallel)")
    pp: At[int] | None = key(GPUS, "stages that the layers are cut into (pipeline parallel)")
    dp: At[int] | None = key(GPUS, "copies of the model behind one endpoint (data parallel)")
    ep: At[int | None] | None = key(OrNull(GPUS), "GPUs that share the experts")
    cp: At[int | None] | None = key(OrNull(GPUS), "GPUs that share one long context")
    dcp: At[int | None] | None = key(OrNull(GPUS), "GPUs that share a context while decoding")
    enable_dp_attention: At[bool] | None = key(Bool(), "data parallel in the attention alone")
    replicas: At[int] | None = key(GPUS, "equal servers, each with GPUs of its own")


@declaration
class Workload:
    """What the server is expected to carry; recorded in the plan."""

    span: Span
    input_tokens: At[int] | None = key(Int(1), "tokens of a typical prompt")
    output_tokens: At[int] | None = key(Int(1), "tokens of a typical answer")
    concurrency: At[int] | None = key(Int(1), "requests at one time")


@declaration
class Speculative:
    """Speculative decoding: a cheap draft that the model checks."""

    span: Span
    algorithm: At[str] = key(TEXT, "the manifest's name of the method", required=True)
    model: At[str] | None = key(TEXT, "the draft model")
    num_tokens: At[int] | None = key(Int(1), "tokens drafted at a time")
    num_steps: At[int] | None = key(Int(1), "draft steps")
    topk: At[int] | None = key(Int(1), "branches of a step")
    draft_sample_method: At[str] | None = key(TEXT, "how the draft samples")
    rejection_sample_method: At[str] | None = key(TEXT, "how a draft is rejected")
    draft_tp: At[int] | None = key(Int(1), "GPUs of the draft")


@declaration
class Adapter:
    """A LoRA adapter that is served beside the model."""

    span: Span
    name: At[str] = key(TEXT, "the name that clients ask for", required=True)
    path: At[str] = key(TEXT, "hub id or path", required=True)
    rank: At[int] | None = key(Int(1), "the adapter's rank")


@declaration
class Model:
    """One entry of `models:`. `said` has the place of each key that stands there; `holes` are the
    keys that were given and could not be used, of which findings have told: None is all of them."""

    name: At[str]
    span: Span
    said: dict[str, Span]
    holes: frozenset[str] | None
    checkpoint: At[str] | None = key(CHECKPOINT, "hub id or path, passed on as written")
    config: At[str] | None = key(INSIDE, "the model's own config.json, from the project's root")
    type: At[str] | None = key(SPEC_TYPE, "what the model was trained for; `chat` unless said")
    engine: At[str] | None = key(TEXT, "the engine that serves it")
    image: At[str] | None = key(IMAGE, "container image; the engine's version is read from it")
    engine_version: At[str] | None = key(VERSION, "the engine's version, where no image says it")
    hardware: At[str] | None = key(TEXT, "accelerator key, product string or instance type")
    machine_image: At[str] | None = key(TEXT, "what the machine starts from; it has the driver")
    gpus: At[int] | None = key(GPUS, "GPUs of one node and one replica")
    nodes: At[int] | None = key(GPUS, "nodes of one replica; 1 unless said")
    hosts: tuple[At[str], ...] = key(
        ListOf(HOST, 1), "the nodes by their names in servec.yaml, replica after replica"
    )
    launch_mode: At[str] | None = key(TEXT, "the way over several nodes; by the version")
    precision: At[str] | None = key(PRECISION, "of the weights; read from the model's facts")
    recipe: At[str] | None = key(TEXT, "a recipe's name, or `none`; family and size decide")
    topology: Topology | None = key(Record(Topology), "how a replica is spread over GPUs")
    role: At[str] | None = key(
        Choice(("full", "prefill", "decode")), "which part of a request it does; `full`"
    )
    workload: Workload | None = key(Record(Workload), "what it is expected to carry")
    deterministic: At[bool] | None = key(Bool(), "equal answers to equal requests")
    overrides: Map | None = key(Parameters(), "engine parameters that beat the recipe's")
    env: tuple[Item[At[str]], ...] = key(MapOf(Text()), "environment of the server")
    env_overrides: At[bool] | None = key(
        Bool(), "whether variables may change flags at start; the project's unless said"
    )
    speculative: Speculative | None = key(Record(Speculative), "speculative decoding")
    adapters: tuple[Adapter, ...] = key(ListOf(Record(Adapter)), "LoRA adapters")
    features: Map | None = key(Parameters(), "the engine's own toggles, of its manifest")
    targets: tuple[At[str], ...] = key(
        ListOf(TARGETS, 1), "what to write; the project's unless said"
    )
    base: At[str] | None = key(TEXT, "another model whose server this one shares")
    endpoint: At[str] | None = key(TEXT, "somebody else's server: no plan")

    def is_hole(self, key: str) -> bool:
        """Whether a key was given and could not be used."""
        return self.holes is None or key in self.holes


@declaration
class Requires:
    """What a task needs from the server, in no engine's words."""

    span: Span
    needs_input_logprobs: At[bool] | None = key(Bool(), "log-probabilities of the prompt's tokens")
    min_top_logprobs: At[int] | None = key(Int(1), "alternatives with a log-probability a token")


@declaration
class Task:
    """One entry of `tasks:`: an eval that will be run against a model."""

    name: At[str]
    span: Span
    model: At[str] = key(TEXT, "the model that it is run against", required=True)
    requires: Requires | None = key(Record(Requires), "what it needs from the server")


@declaration
class Matrix:
    """One entry of `matrix:`: one plan for each combination."""

    name: At[str]
    span: Span
    hardware: tuple[At[str], ...] = key(ListOf(TEXT, 1), "accelerators")
    engine: tuple[At[str], ...] = key(ListOf(TEXT, 1), "engines")
    image: tuple[At[str], ...] = key(ListOf(IMAGE, 1), "images")
    engine_version: tuple[At[str], ...] = key(ListOf(VERSION, 1), "versions of the engine")
    precision: tuple[At[str], ...] = key(ListOf(PRECISION, 1), "precisions")
    type: tuple[At[str], ...] = key(ListOf(SPEC_TYPE, 1), "model types")


@declaration
class Spec:
    """A file of `specs/`."""

    span: Span
    models: tuple[Item[Model], ...] = key(MapOf(Record(Model), NAME), "models to serve, by name")
    tasks: tuple[Item[Task], ...] = key(MapOf(Record(Task)), "what will be run against them")
    matrix: tuple[Item[Matrix], ...] = key(MapOf(Record(Matrix)), "models in several variants")


OUT = "golden"
"""The output folder unless a project names another."""
DATA_FOLDERS = ("recipes", "serve.d", "catalogs", "templates")

# --- the project ---------------------------------------------------------------------------------


@declaration
class EngineSite:
    """What this site says about one engine."""

    span: Span
    program: At[str] | None = key(PROGRAM, "the program to start in the place of the engine's own")
    disabled: At[bool] | None = key(Bool(), "nothing may be planned with it")


@declaration
class SystemdSite:
    """Where systemd units find what they start."""

    span: Span
    folder: At[str] | None = key(ABSOLUTE, "where the output folder is put; /opt/servec")
    environment: At[str] | None = key(ABSOLUTE, "folder of <model>.env files; /etc/servec")
    user: At[str] | None = key(USER, "the user that runs the server; servec")
    api_key: At[str] | None = key(FILE, "file of the API key, given as a credential")


@declaration
class NodeSite:
    """A host that serves: how other nodes reach it, and what it has."""

    span: Span
    address: At[str] = key(ADDRESS, "where other nodes reach it", required=True)
    interface: At[str] | None = key(INTERFACE, "the interface of that address")
    accelerator: At[str] | None = key(TEXT, "its accelerators, by their key")
    gpus: At[int] | None = key(GPUS, "how many it has")
    hcas: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT, HCA), "its RDMA adapters, each with its fabric's name"
    )
    gid_index: At[int] | None = key(Int(0, 255), "its RoCE GID index")
    mig: At[bool] | None = key(Bool(), "its GPUs are cut into MIG instances, which `gpus` counts")
    nvlink_domain: At[str] | None = key(TEXT, "the NVLink domain that it shares with other nodes")


@declaration
class RdmaSite:
    """What gives a pod RDMA."""

    span: Span
    resource: At[str] = key(RESOURCE, "the resource's name, as rdma/ib", required=True)
    hcas: tuple[At[str], ...] = key(ListOf(HCA), "adapters of the fabric; all unless said")
    gid_index: At[int] | None = key(Int(0, 255), "RoCE GID index of every node")


@declaration
class ApiKeySite:
    """The Secret that has the API key."""

    span: Span
    secret: At[str] = key(NAME, "the Secret's name", required=True)
    key: At[str] = key(SECRET_KEY, "the key in it", required=True)


@declaration
class KubernetesSite:
    """What the cluster gives."""

    span: Span
    namespace: At[str] | None = key(NAME, "namespace of all objects; none is written unless said")
    gpu_resource: At[str] | None = key(
        RESOURCE, "the GPUs' resource name; by the vendor unless said"
    )
    interface: At[str] | None = key(INTERFACE, "the pods' network interface; eth0")
    api_key: ApiKeySite | None = key(Record(ApiKeySite), "the API key that clients must have")
    rdma: RdmaSite | None = key(Record(RdmaSite), "RDMA for replicas over several nodes")


@declaration
class Project:
    """servec.yaml."""

    span: Span
    specs: tuple[At[str], ...] = key(ListOf(INSIDE, 1), "folders of specs; [specs]")
    out: At[str] | None = key(INSIDE, "the output folder; golden")
    targets: tuple[At[str], ...] = key(ListOf(TARGETS, 1), "what to write; all unless said")
    strict: At[bool] | None = key(Bool(), "an unknown engine version is an error")
    requirement_conflicts: At[str] | None = key(
        Choice(("warning", "error")), "what an unmet requirement is; warning"
    )
    env_overrides: At[bool] | None = key(
        Bool(), "whether variables may change flags when a wrapper starts; true"
    )
    engines: tuple[Item[EngineSite], ...] = key(MapOf(Record(EngineSite)), "engines of this site")
    systemd: SystemdSite | None = key(Record(SystemdSite), "hosts that run systemd")
    kubernetes: KubernetesSite | None = key(Record(KubernetesSite), "clusters")
    nodes: tuple[Item[NodeSite], ...] = key(MapOf(Record(NodeSite), HOST), "hosts, by name")
    fabric: At[str] | None = key(TEXT, "the fabric that replicas over several nodes use")


@declaration
class Set:
    """One `--set MODEL.KNOB=VALUE` of the command line."""

    model: At[str]
    knob: At[str]
    value: Node


@declaration
class Sources:
    """All that a project declares, files in the order of their paths. `configs` are the model
    configurations that specs name, by path. Engines and facts are asked of the catalogue."""

    project: Project
    specs: tuple[Item[Spec], ...]
    configs: dict[str, Map]
    sets: tuple[Set, ...]
