"""Models by the name that a user gives on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir.launch import Launch


def launches_of(name: str, launches: Iterable[Launch], findings: Findings) -> list[Launch]:
    """The launches of a plan, or of each variant of a model; none is a finding."""
    known: dict[str, None] = {}
    found = []
    for launch in launches:
        names = (launch.plan.name, launch.plan.subject.model.name.value)
        known |= dict.fromkeys(names)
        if name in names:
            found.append(launch)
    if not found:
        listed = "known models: " + ", ".join(known)
        near = nearest(name, known)
        findings.add(
            codes.NO_SUCH_NAME, None, what="model", name=name, known=listed, suggestion=near
        )
    return found
