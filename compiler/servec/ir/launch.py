"""What is started: argv and environment, each word with what it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servec.ir.placement import Placement
from servec.ir.plan import Plan
from servec.ir.serve_start import ApiKey
from servec.ir.setting import Origin, Setting
from servec.ir.slots import Word


class Words(NamedTuple):
    """A flag and its values, or a bare word: of a setting, or else of the origin that it has. Where
    there is a `file`, the last word is its path in a container. `who` is `leader` or `workers`
    where not every node of a replica has it."""

    words: tuple[Word, ...]
    setting: Setting | None
    own_origin: Origin | None = None
    file: str = ""
    who: str = ""

    @property
    def origin(self) -> Origin:
        if self.setting is not None:
            return self.setting.winner.origin
        assert self.own_origin is not None
        return self.own_origin


class Variable(NamedTuple):
    """A variable of the environment."""

    name: str
    value: str
    origin: Origin


class NodeVariable(NamedTuple):
    """A variable of a node: set where the fact `given` is known, or `lacking` is not; the leader's
    alone where `leads`."""

    name: str
    value: Word
    given: str
    lacking: str
    leads: bool
    origin: Origin


class NodeProcess(NamedTuple):
    """A process of a node beside the server, or in its place: its command, in groups that are left
    out where a fact in them is not known. Where it `computes` the GPUs are its own; `shares` is a
    folder that the server writes to as well, or empty."""

    name: str
    groups: tuple[tuple[Word, ...], ...]
    origin: Origin
    computes: bool
    shares: str


class OptionsFile(NamedTuple):
    """A file of options that goes with the command: its name, and for each key its setting."""

    name: str
    options: tuple[tuple[str, Setting], ...]


class Metrics(NamedTuple):
    """Where Prometheus reads a server's metrics."""

    path: str
    port: int


class Gate(NamedTuple):
    """A choice that versions have from `since` on and before `before`; empty is no bound. `advice`
    is for a version that is too old."""

    what: str
    since: str
    before: str
    advice: str


class Settable(NamedTuple):
    """A flag that an operator may set at start: `name` is what follows the engine's prefix, in
    small letters. A switch takes no value; `negative` is the form that says the opposite."""

    name: str
    flag: str
    negative: str
    is_switch: bool


@dataclass(frozen=True, slots=True)
class Start:
    """What a wrapper looks at before it starts: flags that may be set, and choices that depend on
    the version. `images` are references and tags that tell another version than they seem to;
    `others` are repositories that hold another engine, with its name."""

    overrides: bool
    settable: tuple[Settable, ...]
    release: str
    gates: tuple[Gate, ...]
    images: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...]


FILES = "/etc/servec"
"""Where a container finds the files of its launch."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The processes of a plan's replica. Ports and paths are what every artifact speaks of.

    `command` is the engine's own, as its image has it; on a host the site may name another program.
    Of several nodes each runs it, with its own facts in the slots; unless `worker` says what ranks
    above 0 run, and `beside` what the leader runs too. `devices` is the command that lists what a
    server sees that would else compute on the CPU without a word, and the form of a line of its.
    `api_key` is how the server is handed its key, None where it has no way but its command line.
    """

    plan: Plan
    placement: Placement
    command: tuple[Words, ...]
    host_program: Words | None
    files: tuple[OptionsFile, ...]
    env: tuple[Variable, ...]
    node_env: tuple[NodeVariable, ...]
    beside: NodeProcess | None
    worker: NodeProcess | None
    devices: tuple[tuple[str, ...], str] | None
    api_key: ApiKey | None
    port: int
    served_name: str
    health_path: str
    health_timeout_seconds: int
    metrics: Metrics | None
    start: Start

    @property
    def host_command(self) -> tuple[Words, ...]:
        """The command of a host."""
        if self.host_program is None:
            return self.command
        return (self.host_program, *self.command[1:])

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the server that answers, as a container runs them."""
        return self._argv("leader")

    @property
    def worker_argv(self) -> tuple[str, ...]:
        """The words of the other nodes; none on one node."""
        if self.placement.way is None:
            return ()
        if self.worker is not None:
            return tuple(str(word) for group in self.worker.groups for word in group)
        return self._argv("workers")

    def _argv(self, who: str) -> tuple[str, ...]:
        groups = (group for group in self.command if group.who in ("", who))
        return tuple(str(word) for group in groups for word in group.words)
