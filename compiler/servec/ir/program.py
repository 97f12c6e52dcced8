"""Names resolved: every declaration knows the engine, accelerator, recipe and facts it speaks of.

spec `qwen3-8b: {engine: vllm, image: …:v0.29.0, hardware: H100-80G}`
  -> Server(variants=(Subject(engine=Engine vllm, version=0.29.0, accelerator=H100-80G, …),))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from servec.ir import decl, knowledge
from servec.ir.facts import EngineVersion, Facts
from servec.source.located import At

if TYPE_CHECKING:
    from servec.catalog.engines import Engine
    from servec.ir.serve import Environment, Health


@dataclass(frozen=True, slots=True)
class Subject:
    """What one plan is about. `instance` is the machine and `machine_image` what it starts from,
    where the spec names them; `gpus` is of one node and one replica, None where the topology
    decides; `nodes` is of one replica; `precision` and `recipe` are None where the user said
    `recipe: none`."""

    name: str
    model: decl.Model
    file: str
    engine: Engine
    version: EngineVersion
    image: At[str] | None
    accelerator: knowledge.Accelerator
    instance: knowledge.Instance | None
    machine_image: knowledge.MachineImage | None
    gpus: int | None
    nodes: int
    facts: Facts
    model_type: str
    precision: str | None
    recipe: knowledge.Recipe | None
    recipe_choice: str

    @property
    def all_gpus(self) -> int | None:
        """GPUs of one replica, None where the topology decides."""
        return None if self.gpus is None else self.gpus * self.nodes

    @property
    def role(self) -> str:
        """Which part of a request the server does: `full`, `prefill` or `decode`."""
        return self.model.role.value if self.model.role else "full"

    @property
    def told(self) -> Environment | None:
        """How a container that owns its entry point is told, where the image is such a one."""
        told = self.engine.serve.environment_only
        if told is None or told.tag_has is None:
            return told
        name = self.image.value.partition("@")[0] if self.image else ""
        return told if told.tag_has.value in name.rpartition("/")[2].partition(":")[2] else None

    @property
    def prefix(self) -> str:
        """What the variables of the server begin with."""
        own = self.engine.manifest.env_var_prefix
        return (self.told.prefix or own).value if self.told else own.value

    def variable(self, flag: str) -> str:
        """The variable of a flag or parameter, for a server that is told by its environment."""
        return self.prefix + flag.lstrip("-").replace("-", "_").upper()

    @property
    def health(self) -> Health:
        """How to ask whether the server is ready."""
        return (self.told.health if self.told else None) or self.engine.serve.health


@dataclass(frozen=True, slots=True)
class Demand:
    """One task's needs from one server."""

    task: str
    file: str
    requires: decl.Requires


@dataclass(frozen=True, slots=True)
class Server:
    """One model that is served, in each of its variants, and what its tasks demand."""

    model: decl.Model
    variants: tuple[Subject, ...]
    demands: tuple[Demand, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """All servers in the order of the files' paths, and in a file as they stand. `others` are the
    models without a server of their own: whose they share, or None where it is somebody else's."""

    servers: tuple[Server, ...]
    others: tuple[tuple[str, str | None], ...]
