"""The sources of a run as located values."""

from __future__ import annotations

from dataclasses import dataclass

from servec.source.located import Map, Node


@dataclass(frozen=True, slots=True)
class Parsed:
    """Located values by path; None where a file has no readable value."""

    project: Node | None
    specs: dict[str, Node]
    configs: dict[str, Map]
