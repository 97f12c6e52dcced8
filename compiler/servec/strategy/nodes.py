"""Ways of serving one replica over several nodes: data of a manifest -> words and variables.

{flag: --master-addr, value: "{leader_address}"}, leader 10.0.0.1 -> --master-addr 10.0.0.1

A value that is not known leaves out the group of words that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from servec.catalog.engines import EngineAt
from servec.catalog.versions import holds
from servec.ir.serve_start import NodeFlag, NodeProcess, Way
from servec.ir.words import Item
from servec.source.located import At

SLOT = re.compile(r"\{([a-z_]+)\}")
SLOTS = ("rank", "nodes", "leader", "leader_address", "leader_port", "node_address",
         "gpus_per_node")  # fmt: skip
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
