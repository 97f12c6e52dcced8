"""A release -> command lines of which its own parser and servec do not say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import servec
from servec.api import shipped_catalog
from servec.catalog.calls import called
from servec.extract.observe import parser_says

from tests.conformance.cases import cases
from tests.conformance.differences import REFUSES, TAKES, reason_of
from tests.conformance.releases import PROGRAMS, goldens

CUT_SHORT = "SV0616"
WARNED = {"cut short": True, "a legal value": False, "switch": False, "underscores": False}
"""Whether a name that is cut short is warned of."""


class Line(NamedTuple):
    """A whole command line; `what` and `flag` are as a case's, or `golden` and its name. One that
    is `pinned` to the release must be taken."""

    what: str
    flag: str
    argv: tuple[str, ...]
    pinned: bool = False


class Difference(NamedTuple):
    """A command line on which they do not agree; `reason` is empty where that is not meant."""

    line: Line
    servec: str
    message: str
    reason: str


class Compared(NamedTuple):
    """What came out for a release."""

    sha256: str
    argvs: int
    ways: dict[str, int]
    differences: tuple[Difference, ...]

    @property
    def wrong(self) -> tuple[Difference, ...]:
        return tuple(item for item in self.differences if not item.reason)


def compare(engine: str, version: str) -> Compared:
    """Ask the release's parser and servec. Raises ExtractionError where it cannot be asked."""
    lines = list(_lines(engine, version))
    behind = [_behind(engine, line.argv) for line in lines]
    sha256, said = parser_says(engine, version, behind)
    differences: list[Difference] = []
    for line, message in zip(lines, said, strict=True):
        differences += _differences(engine, version, line, message)
    ways = dict(sorted(Counter(line.what for line in lines).items()))
    return Compared(sha256, len(lines), ways, tuple(differences))


def _lines(engine: str, version: str) -> Iterator[Line]:
    for golden in goldens():
        if golden.engine == engine:
            pinned = golden.version == version
            yield Line("golden", golden.name, golden.argv, pinned)
    released = shipped_catalog().released(engine)
    assert released is not None
    for case in cases(engine, released.of(version)):
        yield Line(case.what, case.flag, (*PROGRAMS[engine], *case.words))


def _behind(engine: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The words behind the program."""
    found = shipped_catalog().engine(engine)
    call = called(argv, found.serve) if found is not None else None
    assert call is not None, argv
    return argv[call.words :]


def _differences(
    engine: str, version: str, line: Line, message: str | None
) -> Iterator[Difference]:
    found = servec.check_argv(engine, line.argv, version=version)
    errors = [item.message for item in found if item.severity.word == "error"]
    warned = {item.code.number for item in found if item.severity.word == "warning"}
    if bool(errors) is not bool(message) or (line.pinned and message):
        verdict = REFUSES if errors else TAKES
        said = message or "; ".join(errors)
        yield Difference(
            line, verdict, said, reason_of(engine, version, verdict, line.flag, line.what)
        )
    elif not message and line.what in WARNED and WARNED[line.what] is not (CUT_SHORT in warned):
        yield Difference(line, "warns wrongly", ", ".join(sorted(warned)) or "no warning", "")
