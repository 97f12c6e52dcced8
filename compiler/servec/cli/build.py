"""servec build: compile and write what differs."""

from __future__ import annotations

import click

from servec.cli.session import Session, project_options


@click.command("build")
@click.argument("names", nargs=-1)
@project_options
def command(
    names: tuple[str, ...], project: str, sets: tuple[str, ...], strict: bool, style: str
) -> int:
    """Compile the project and write what differs into its output folder.

    NAMES limits what is written to those models; infer_plans.yaml stays whole.
    """
    from servec.output import build, limit_to, out_folder

    session = Session(project, sets, strict, style)
    done = session.compile()
    if done is None or session.root is None:
        return session.close()
    chosen = limit_to(done, names, session.findings)
    folder = out_folder(session.root, done.project, session.findings)
    if folder is None or session.findings.errors:
        return session.close()
    written = build(folder, chosen, session.findings, partial=bool(names))
    if written is not None:
        count = len(done.plans)
        session.say(
            f"{count} plan{'s' if count != 1 else ''} into {folder.name}/: {len(written.written)} "
            f"files written, {written.unchanged} unchanged, {len(written.removed)} removed"
        )
    return session.close()
