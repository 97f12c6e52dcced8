"""Findings: an error, a warning or a note, with a code and a place in the source.

A pass never raises for a user's mistake. It adds a finding to the run's one collector, leaves a
hole and goes on, so that one run shows every mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from servec.source.located import Span

Places: TypeAlias = tuple[tuple[Span, str], ...]


class Severity(IntEnum):
    """The order is the order of gravity. Only an error stops the output."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding. `message` and `help` are formats over the finding's arguments; a source
    line with a finding that conceals is never shown."""

    number: str
    severity: Severity
    title: str
    message: str
    help: str = ""
    conceal: bool = False

    def __str__(self) -> str:
        return self.number


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its code, where, and the arguments its message is made of.

    `span` is None only where no source is to blame (a file of the output folder, a word on the
    command line); `also` are further places, each with its own few words.
    """

    code: Code
    severity: Severity
    span: Span | None
    arguments: tuple[tuple[str, object], ...]
    also: Places = ()
    suggestion: str | None = None

    @property
    def message(self) -> str:
        return self.code.message.format(**dict(self.arguments))

    @property
    def help(self) -> str:
        """What to do: the nearest name first where a name is wrong, then the code's own advice."""
        parts = []
        if self.suggestion:
            parts.append(f"did you mean `{self.suggestion}`?")
        if self.code.help:
            parts.append(self.code.help.format(**dict(self.arguments)))
        return " ".join(part for part in parts if part)

    def sort_key(self) -> tuple[object, ...]:
        span = self.span or Span("", 0, 0)
        return (span.file, span.line, span.column, self.code.number, self.message)


class Findings:
    """The collector of a run. `show` gives each finding once, in the order of the source."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._found: dict[Finding, None] = {}

    def add(
        self,
        code: Code,
        span: Span | None,
        *,
        also: tuple[Span, str] | Places = (),
        suggestion: str | None = None,
        severity: Severity | None = None,
        **arguments: object,
    ) -> None:
        """Add a finding. `severity` overrides the code's own where a project's policy says so."""
        places = (also,) if also and isinstance(also[0], Span) else also
        finding = Finding(
            code,
            severity or code.severity,
            span,
            tuple(arguments.items()),
            places,
            suggestion,
        )
        self.put(finding)

    def put(self, finding: Finding) -> None:
        """Add a finding that was made elsewhere."""
        self._found[finding] = None

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self._found)

    def told(self) -> tuple[Finding, ...]:
        """Each finding once, in the order in which it was made."""
        return tuple(self._found)

    def show(self) -> tuple[Finding, ...]:
        return tuple(sorted(self._found, key=Finding.sort_key))

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.show())

    def __len__(self) -> int:
        return len(self._found)
