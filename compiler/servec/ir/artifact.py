"""Files that come out: a path, the bytes, and for each line what it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from servec.ir.setting import Origin, Setting


@dataclass(frozen=True, slots=True)
class Trace:
    """What a line of an artifact came from: a setting with its history, or an origin alone."""

    setting: Setting | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of the output folder. `path` is from that folder; `traces` are by line, from 1."""

    path: str
    text: str
    executable: bool = False
    traces: Mapping[int, Trace] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.text.encode()
