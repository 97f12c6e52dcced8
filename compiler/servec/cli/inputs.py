"""Files and folders that a command is given by name, outside of any project."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from servec.diag import codes
from servec.diag.findings import Findings
from servec.source import limits
from servec.source.located import Span


def expanded(
    paths: tuple[str, ...], is_known: Callable[[Path], bool]
) -> Iterator[tuple[str, bool]]:
    """Files, and whether they were named; of folders, those of a known kind, in the order of their
    paths."""
    for name in paths:
        if name == "-" or not Path(name).is_dir():
            yield name, True
            continue
        inside = (path for path in Path(name).rglob("*") if is_known(path) and path.is_file())
        yield from ((str(path), False) for path in sorted(inside))


def content_of(name: str, findings: Findings) -> bytes | None:
    """The bytes of a file, or of standard input for `-`; None with a finding where they cannot be
    read or are too many."""
    span = Span(name, 1, 1)
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            content = file.read(limits.FILE_BYTES + 1)
    except OSError as error:
        findings.add(codes.UNREADABLE, span, problem=error.strerror or str(error))
        return None
    if len(content) > limits.FILE_BYTES:
        problem = f"more than {limits.FILE_BYTES // 1024 // 1024} MiB"
        findings.add(codes.TOO_LARGE, span, problem=problem, advice="split the file")
        return None
    return content
