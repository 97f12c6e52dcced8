"""servec blame: a model's whole configuration, with the source of each line."""

from __future__ import annotations

from collections.abc import Iterator

import click

from servec.cli.session import Session, project_options
from servec.diag.findings import Severity
from servec.ir.launch import Launch


@click.command("blame")
@click.argument("model")
@project_options
def command(model: str, project: str, sets: tuple[str, ...], strict: bool, style: str) -> int:
    """Show what MODEL is started with: file and line, the layer, and the flag or variable."""
    from servec.cli.named import launches_of

    session = Session(project, sets, strict, style)
    done = session.compile()
    if done is not None:
        for launch in launches_of(model, done, session):
            click.echo("\n".join(_lines(launch)))
    return session.close(Severity.ERROR)  # warnings are told by `build`


def _lines(launch: Launch) -> Iterator[str]:
    from servec.emit.shell import expanded, quote
    from servec.ir.text import subject_line
    from servec.passes.layer import shown

    yield subject_line(launch.plan.subject)
    rows = [
        (
            group.origin,
            group.setting.winner.rank.words if group.setting else "",
            " ".join(map(expanded, group.words)),
        )
        for group in launch.command
    ]
    rows += [(item.origin, "", f"{item.name}={quote(item.value)}") for item in launch.env]
    flagged = {group.setting.knob for group in launch.command if group.setting is not None}
    rows += [
        (
            setting.winner.origin,
            setting.winner.rank.words,
            f"({setting.knob.removeprefix('topology.')} = {shown(setting.value)}, no flag)",
        )
        for setting in launch.plan.settings
        if setting.knob not in flagged
    ]
    places = [str(origin.span) if origin.span else "-" for origin, _, _ in rows]
    wide = max(map(len, places))
    for place, (origin, rank, text) in zip(places, rows, strict=True):
        why = f"  # {origin.rule}" if origin.rule else ""
        yield f"{place:<{wide}}  {rank:<16}  {text}{why}"
