"""Words whose text a node knows only when it starts.

What stands for such a fact is a `Slot`, never text: no value of a user can be taken for one. Each
target fills slots its own way: a variable of bash, an expansion of Kubernetes.
"""

from __future__ import annotations

from typing import NamedTuple


class Slot(NamedTuple):
    """What stands for a fact of a node: `rank`, `leader_address`, `node_address`, …"""

    name: str

    def __str__(self) -> str:
        return f"{{{self.name}}}"


class Filled(NamedTuple):
    """A word with slots in it, in pieces."""

    parts: tuple[str | Slot, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if isinstance(part, Slot))


Word = str | Filled
