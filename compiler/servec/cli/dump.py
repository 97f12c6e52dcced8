"""servec dump: the compiler's state after a pass."""

from __future__ import annotations

import click

from servec.cli.session import Session, project_options
from servec.pipeline import PASSES


@click.command("dump")
@click.option("--after", "last", type=click.Choice(PASSES), default="layer", help="The pass.")
@project_options
def command(last: str, project: str, sets: tuple[str, ...], strict: bool, style: str) -> int:
    """Print the compiler's state after a pass, as the passes see it.

    The state is text; --format is of the findings that come with it.
    """
    from servec.ir.text import print_ir
    from servec.ir.verify import verify

    seen: dict[str, object] = {}

    def observe(name: str, ir: object) -> None:
        verify(ir)
        seen[name] = ir

    session = Session(project, sets, strict, style)
    session.compile_anyway(observe)
    if any(item.code.conceal for item in session.findings):
        session.say("the sources hold a secret: nothing of them is printed")
    elif last in seen:
        click.echo(print_ir(seen[last]), nl=False)
    elif seen:
        session.say(f"the errors below stop the compiler before `{last}`")
    return session.close()
