"""What is started: argv and environment, each word with what it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servec.ir.plan import Plan
from servec.ir.setting import Origin, Setting


class Words(NamedTuple):
    """A flag and its values, or a bare word: of a setting, or else of the origin that it has."""

    words: tuple[str, ...]
    setting: Setting | None
    own_origin: Origin | None = None

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
