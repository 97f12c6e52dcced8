"""Where the replicas of a plan run: their nodes, and what the site knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from servec.ir.plan import Plan
from servec.ir.serve_start import Way
from servec.source.located import Span


class Host(NamedTuple):
    """A node of a replica, as the site knows it: `hcas` are those of the chosen fabric. `places`
    has where each is said, by its key."""

    name: str
    address: str
    interface: str
    hcas: tuple[str, ...]
    gid_index: int | None
    nvlink_domain: str
    places: Mapping[str, Span]


Group = tuple[Host, ...]
"""The nodes of one replica, by rank."""


@dataclass(frozen=True, slots=True)
class Placement:
    """`way` is None on one node. `leader_port` is where rank 0 meets the others. `groups` are the
    hosts of each replica, none where the site leaves them open."""

    nodes: int
    gpus_per_node: int
    way: Way | None
    leader_port: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """A plan with its place."""

    plan: Plan
    placement: Placement
