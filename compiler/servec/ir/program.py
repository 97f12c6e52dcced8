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


@dataclass(frozen=True, slots=True)
class Subject:
    """What one plan is about. `instance` is the machine, where the spec names one; `gpus` is of one
    node and one replica, None where the topology decides; `precision` and `recipe` are None where
    the user said `recipe: none`."""

    name: str
    model: decl.Model
    file: str
    engine: Engine
    version: EngineVersion
    image: At[str] | None
    accelerator: knowledge.Accelerator
    instance: knowledge.Instance | None
    gpus: int | None
    facts: Facts
    model_type: str
    precision: str | None
    recipe: knowledge.Recipe | None
    recipe_choice: str


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
