"""Ways of serving one replica over several nodes: data of a manifest -> words and variables.

{flag: --master-addr, value: "{leader_address}"}, leader 10.0.0.1 -> --master-addr 10.0.0.1

A value that is not known leaves out the group of words that it stands in. A shard knows every value
or knows that there is none; a plan keeps what a node finds out at its start as a slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from servec.catalog.engines import EngineAt
from servec.catalog.versions import holds
from servec.ir.serve_start import NodeFlag, NodeProcess, Way
from servec.ir.slots import Filled, Slot, Word
from servec.ir.words import Item
from servec.source.located import At

if TYPE_CHECKING:
    from servec.ir.placement import Placement

SLOT = re.compile(r"\{([a-z_]+)\}")
SLOTS = ("rank", "nodes", "leader", "leader_address", "leader_port", "node_address",
         "gpus_per_node")  # fmt: skip
NO_ADDRESS = frozenset(("", "0.0.0.0", "::", "[::]"))
Known = Mapping[str, str | None]
"""What each slot stands for on one node; None is not known."""


def fill(text: str, known: Known) -> str | None:
    """A template with its slots filled, or None where one is not known."""
    values = [known[slot] for slot in SLOT.findall(text)]
    if any(value is None for value in values):
        return None
    return SLOT.sub(lambda found: known[found[1]] or "", text)


def ways(engine: EngineAt) -> tuple[Way, ...]:
    """The ways that an engine has at its version, the preferred one first."""
    return tuple(way for way in engine.serve.nodes if holds(way, engine.version))


def chosen(engine: EngineAt, asked: str) -> Way | None:
    """The way that is asked for by name, else the version's own; None where there is none."""
    known = ways(engine)
    if asked:
        return next((way for way in known if way.name.value == asked), None)
    return next((way for way in known if not (way.asked and way.asked.value)), None)


def why_none(engine: EngineAt, count: int, asked: str) -> tuple[str, str]:
    """Why no way is there, and what to do."""
    name = engine.manifest.engine.value
    if asked:
        problem = f"{name} {engine.version} does not know `launch_mode: {asked}`"
        return problem, "take another version, or another way"
    wants = [way for way in ways(engine) if way.asked and way.asked.value]
    also = f", or ask for `launch_mode: {wants[0].name.value}`" if wants else ""
    problem = f"{name} serves a model on one node, and {count} are asked for"
    return problem, f"take one node{also}"


def constants(placement: Placement) -> dict[str, str]:
    """What is the same on every node of a replica."""
    return {
        "nodes": str(placement.nodes),
        "gpus_per_node": str(placement.gpus_per_node),
        "leader_port": str(placement.leader_port),
    }


def template(text: str, constants: Mapping[str, str]) -> Word:
    """A template with the slots filled that are the same on every node."""
    parts: list[str | Slot] = []
    for index, piece in enumerate(SLOT.split(text)):
        part = Slot(piece) if index % 2 and piece not in constants else constants.get(piece, piece)
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part:
            parts.append(part)
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts))
    return Filled(tuple(parts))


class Network(NamedTuple):
    """A variable of NCCL or Gloo: set where the slot `given` is known, or `lacking` is not."""

    name: str
    value: str
    given: str = ""
    lacking: str = ""


# NCCL's documentation, docs/userguide/source/env.rst at github NVIDIA/nccl 5067397c, read
# 2026-11-30. Gloo takes one plain interface.
NETWORK = (
    Network("NCCL_IB_DISABLE", "0", given="hcas"),
    Network("NCCL_IB_HCA", "{hcas}", given="hcas"),
    Network("NCCL_IB_GID_INDEX", "{gid_index}", given="gid_index"),
    Network("NCCL_IB_DISABLE", "1", lacking="hcas"),
    Network("NCCL_SOCKET_IFNAME", "{interface}", given="interface"),
    Network("GLOO_SOCKET_IFNAME", "{interface}", given="interface"),
    Network("NCCL_MNNVL_ENABLE", "1", given="nvlink"),
    Network("NCCL_CUMEM_ENABLE", "1", given="nvlink"),
)
"""The network of a node. A GID index is given only where there are HCAs."""


def network(known: Known) -> dict[str, str]:
    """The network's variables of one node."""
    found = {}
    for item in NETWORK:
        value = fill(item.value, known)
        is_there = known.get(item.given) if item.given else not known.get(item.lacking)
        if is_there and value is not None:
            found[item.name] = value
    return found


def flags(way: Way, known: Known, *, leads: bool) -> Iterator[tuple[NodeFlag, tuple[str, ...]]]:
    """The flags of a node's server, each with its words."""
    for flag in way.flags:
        if flag.who is not None and (flag.who.value == "leader") is not leads:
            continue
        value = fill(flag.value.value, known) if flag.value else None
        if flag.value is None:
            yield flag, (flag.flag.value,)
        elif value is not None:
            yield flag, (flag.flag.value, value)


def words(process: NodeProcess, known: Known) -> list[str]:
    """The command of a process beside the server."""
    found = []
    for group in process.words:
        filled = [fill(word.value, known) for word in group]
        found += [word for word in filled if word is not None] if None not in filled else []
    return found


def variables(items: tuple[Item[At[str]], ...], known: Known) -> dict[str, str]:
    """Variables whose value is known."""
    filled = ((item.key.value, fill(item.value.value, known)) for item in items)
    return {name: value for name, value in filled if value is not None}


def reaches_others(address: str) -> bool:
    """Whether an address may be one that other nodes reach: none, every one and loopback are not.
    A name is taken to be."""
    if address in NO_ADDRESS or address.lower().rstrip(".") in ("localhost", "ip6-localhost"):
        return False
    import ipaddress  # only where nodes have to meet

    try:
        found = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return True
    return not (found.is_loopback or found.is_unspecified)
