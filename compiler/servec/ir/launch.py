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
    """One process of a plan's only shard. Ports and paths are what every artifact speaks of.

    `command` is the engine's own, as its image has it; on a host the site may name another program.
    """

    plan: Plan
    command: tuple[Words, ...]
    host_program: Words | None
    env: tuple[Variable, ...]
    port: int
    served_name: str
    health_path: str
    health_timeout_seconds: int

    @property
    def host_command(self) -> tuple[Words, ...]:
        """The command of a host."""
        if self.host_program is None:
            return self.command
        return (self.host_program, *self.command[1:])

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the command, as a container runs them."""
        return tuple(word for group in self.command for word in group.words)
