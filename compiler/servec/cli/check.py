"""servec check: compile and hold the output folder against it."""

from __future__ import annotations

import click

from servec.cli.session import Session, project_options
from servec.diag.findings import Severity


@click.command("check")
@click.argument("names", nargs=-1)
@project_options
def command(
    names: tuple[str, ...], project: str, sets: tuple[str, ...], strict: bool, style: str
) -> int:
    """Fail where a file of the output folder is changed, missing or left over; write nothing.

    Says nothing and exits 0 where all is as the sources say. Warnings and notes are `build`'s.
    """
    from servec.output import check, limit_to, out_folder

    session = Session(project, sets, strict, style)
    done = session.compile()
    if done is not None and session.root is not None:
        chosen = limit_to(done, names, session.findings)
        folder = out_folder(session.root, done.project, session.findings)
        if folder is not None and not session.findings.errors:
            check(folder, chosen, session.findings, partial=bool(names))
    return session.close(Severity.ERROR)
