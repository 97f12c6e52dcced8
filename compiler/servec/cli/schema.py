"""servec schema: the JSON Schema of a kind of source file."""

from __future__ import annotations

import json

import click

from servec.schema import KINDS


@click.command("schema")
@click.argument("kind", type=click.Choice(tuple(KINDS)))
def command(kind: str) -> int:
    """Print the JSON Schema (draft 2020-12) of a kind of source file, for editors."""
    from servec.schema import schema_of

    click.echo(json.dumps(schema_of(kind), indent=2, ensure_ascii=False))
    return 0
