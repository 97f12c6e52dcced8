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

    NAMES are models, and limit what is written to theirs; infer_plans.yaml stays whole.
    """
    from servec.output import build, limit_to, out_folder, plans_of

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
        plans, files = _counted(len(done.plans), "plan"), _counted(len(written.written), "file")
        if names:
            plans = f"{len(plans_of(chosen))} of {plans}"
        session.say(
            f"{plans} into {folder.name}/: {files} written, {written.unchanged} unchanged, "
            f"{len(written.removed)} removed"
        )
    return session.close()


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
