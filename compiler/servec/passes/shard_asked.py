"""A request of the shard interface with what follows from it: counts, addresses, the way over
several nodes, the flags among the words that are passed through.

{tp: 8, nodes: 2, launch_mode: ray, args: [-q, fp8]} -> way ray, --quantization fp8
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from servec.catalog.engines import EngineAt
from servec.catalog.versions import first_that_holds
from servec.ir.serve_start import ApiKey, Way
from servec.ir.shard import Request
from servec.source.located import At, Span
from servec.strategy import nodes
from servec.strategy.words import looks_like_flag

MIG = "MIG-"


@dataclass(frozen=True, slots=True)
class Argument:
    """A flag of the pass-through words: as it stands, its parameter, its value if it has one."""

    word: At[str]
    flag: str
    knob: str
    value: At[str] | None


class Asked:
    """A request with what follows from it. `engine` is None where the name is not known."""

    def __init__(self, request: Request, engine: EngineAt | None) -> None:
        self.request = request
        self.profile = request.profile
        self.shard = request.shard
        self.engine = engine

    @property
    def tp(self) -> int:
        return self.profile.tp.value

    @property
    def pp(self) -> int:
        return number(self.profile.pp) or 1

    @cached_property
    def nodes(self) -> int:
        mine = number(self.shard.nnodes) if self.shard else 0
        return number(self.profile.nodes) or mine or 1

    @property
    def rank(self) -> int:
        return number(self.shard.rank) if self.shard else 0

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node; 0 where nothing says it."""
        return number(self.profile.gpus_per_node) or (self.tp if self.nodes == 1 else 0)

    @property
    def leader_address(self) -> str:
        return text(self.shard.leader_addr) if self.shard else ""

    @property
    def leader_port(self) -> int:
        return number(self.shard.leader_port) if self.shard else 0

    @property
    def bind_address(self) -> str:
        return (text(self.shard.bind_addr) if self.shard else "") or "0.0.0.0"

    @property
    def http_port(self) -> int:
        said = number(self.shard.http_port) if self.shard else 0
        return said or (self.engine.serve.port.value if self.engine else 0)

    @cached_property
    def way(self) -> Way | None:
        """How a replica of several nodes is served; None on one node, or where there is none."""
        if self.engine is None or self.nodes == 1:
            return None
        return nodes.chosen(self.engine, text(self.profile.launch_mode))

    @cached_property
    def api_key(self) -> ApiKey | None:
        """How the engine is handed its key at this version."""
        engine = self.engine
        return first_that_holds(engine.serve.api_key, engine.version) if engine else None

    @property
    def uuids(self) -> list[str]:
        said = self.shard.gpu_uuids if self.shard else None
        return [item.value for item in said or () if item.value]

    @property
    def indices(self) -> tuple[At[int], ...]:
        return (self.shard.gpu_indices if self.shard else None) or ()

    @property
    def on_mig(self) -> bool:
        return any(uuid.startswith(MIG) for uuid in self.uuids)

    @cached_property
    def arguments(self) -> list[Argument]:
        """The flags among the pass-through words."""
        found, words = [], self.profile.args
        for place, word in enumerate(words):
            if not looks_like_flag(word.value) or word.value in ("-", "--"):
                continue
            flag, equals, rest = word.value.partition("=")
            following = words[place + 1] if place + 1 < len(words) else None
            value = At(rest, word.span) if equals else following
            if value is not None and not equals and looks_like_flag(value.value):
                value = None
            flag = self._whole(flag)
            found.append(Argument(word, flag, knob_of(flag), value))
        return found

    def _whole(self, flag: str) -> str:
        """A short word written out, where the engine's releases are known to have it."""
        if self.engine is None or flag.startswith("--") or self.engine.here is None:
            return flag
        known = self.engine.here.flags.get(flag)
        return known.name if known else flag

    def values(self, knob: str) -> Iterator[At[str]]:
        """Every value that the pass-through words give a parameter."""
        for argument in self.arguments:
            if argument.knob == knob and argument.value is not None:
                yield argument.value


def knob_of(flag: str) -> str:
    """The parameter of a flag."""
    return flag.lstrip("-").replace("-", "_")


def number(value: At[int] | None) -> int:
    """A number, 0 where it is not given."""
    return value.value or 0 if value is not None else 0


def text(value: At[str] | None) -> str:
    """A text, empty where it is not given."""
    return value.value or "" if value is not None else ""


def place(value: At[str] | At[int] | None, otherwise: Span) -> Span:
    return value.span if value is not None else otherwise


def fabric_of(asked: Asked) -> dict[str, str]:
    node = asked.request.node
    return {item.key.value: item.value.value for item in node.hca_fabric} if node else {}
