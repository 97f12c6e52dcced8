"""What the start of a server needs beside its flags: other nodes, a key, devices, listeners.

Parts of `serve:` of a manifest, as `ir/serve.py` has the whole.
"""

from __future__ import annotations

from servec.ir.manifest import KNOB, VARIABLE
from servec.ir.shape import Bool, Choice, ListOf, MapOf, Parameters, Record, Text, declaration, key
from servec.ir.words import FLAG, NAME, RULE_RANGE, TEXT, Item
from servec.source.located import At, Map, Span

FILE = Text(r"[a-z0-9][a-z0-9._-]*\Z", "a file's name")


@declaration
class KeyFile:
    """A file of the server's options that holds its API key, so that no command line does."""

    span: Span
    name: At[str] = key(FILE, "the file's name", required=True)
    flag: At[str] = key(FLAG, "the flag that takes the file", required=True)
    key: At[str] = key(TEXT, "the key's name in the file", required=True)


@declaration
class ApiKey:
    """How the server is given its API key: by a variable, or in a file."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that take it so")
    variable: At[str] | None = key(VARIABLE, "the variable")
    file: KeyFile | None = key(Record(KeyFile), "or the file")


@declaration
class KvEvents:
    """How the server is told to publish what its KV cache holds; `{port}` is the listener's."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that have it")
    flag: At[str] = key(FLAG, "the flag", required=True)
    value: Map = key(Parameters(), "its JSON value", required=True)


@declaration
class NodeFlag:
    """A flag of a replica over several nodes. Its value may hold `{rank}`, `{nodes}`, `{leader}`
    (address and port), `{leader_address}`, `{leader_port}`, `{node_address}`, `{gpus_per_node}`."""

    span: Span
    flag: At[str] = key(FLAG, "the flag", required=True)
    value: At[str] | None = key(TEXT, "its value; none is a bare flag")
    who: At[str] | None = key(Choice(("leader", "workers")), "who has it; every node unless said")


@declaration
class NodeProcess:
    """A process of a node beside the server, or in its place. Of `words`, a group whose value is
    not known is left out whole."""

    span: Span
    name: At[str] = key(TEXT, "its name", required=True)
    words: tuple[tuple[At[str], ...], ...] = key(
        ListOf(ListOf(TEXT, 1), 1), "its command, in groups that stand or fall together"
    )
    computes: At[bool] | None = key(Bool(), "the model is computed in it, so it has the GPUs")
    shares: At[str] | None = key(TEXT, "a folder that it and the server both write to")


@declaration
class Way:
    """A way of serving one replica over several nodes (`strategy/nodes.py`)."""

    span: Span
    name: At[str] = key(NAME, "its name, for `launch_mode`", required=True)
    versions: At[str] | None = key(RULE_RANGE, "versions that have it")
    asked: At[bool] | None = key(Bool(), "only where it is asked for")
    before: tuple[At[str], ...] = key(ListOf(TEXT), "what stands before the program")
    flags: tuple[NodeFlag, ...] = key(ListOf(Record(NodeFlag)), "flags of the server, in order")
    needs: At[str] | None = key(FLAG, "a flag that the leader has to be given")
    beside: NodeProcess | None = key(Record(NodeProcess), "what the leader runs beside the server")
    worker: NodeProcess | None = key(Record(NodeProcess), "what a worker runs instead of it")
    env: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT, VARIABLE), "variables of every node, where their value is known"
    )
    leader_env: tuple[Item[At[str]], ...] = key(MapOf(TEXT, VARIABLE), "and of the leader alone")


@declaration
class Devices:
    """What is to know of the devices that a server computes on."""

    span: Span
    falls_back: At[bool] | None = key(Bool(), "it computes on the CPU where it sees no GPU")
    list: tuple[At[str], ...] = key(ListOf(TEXT), "words after the program that list what it sees")
    shows: At[str] | None = key(TEXT, "an extended regular expression of a line that is a device")


@declaration
class Roles:
    """How the server is told which part of a request it does, and hands over its KV cache."""

    span: Span
    connector: At[str] = key(KNOB, "the parameter that names how both hand over", required=True)
    inside: At[str] | None = key(TEXT, "the key of its value that has to be equal; the whole")
    default: At[str] | None = key(TEXT, "the connector unless said")
    prefill: Map | None = key(Parameters(), "parameters of a server that reads prompts")
    decode: Map | None = key(Parameters(), "parameters of a server that writes answers")
