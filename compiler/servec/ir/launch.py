"""What is started: argv and environment, each word with what it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servec.ir.plan import Plan
from servec.ir.setting import Setting


class Words(NamedTuple):
    """A flag and its values, or a bare word; `setting` or `rule` says why it is there."""

    words: tuple[str, ...]
    setting: Setting | None
    rule: str = ""


class Variable(NamedTuple):
    """A variable of the environment; `where` is the source that it comes from."""

    name: str
    value: str
    where: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One process of a plan's only shard. Ports and paths are what every artifact speaks of."""

    plan: Plan
    command: tuple[Words, ...]
    env: tuple[Variable, ...]
    port: int
    served_name: str
    health_path: str
    health_timeout_seconds: int

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word for group in self.command for word in group.words)
