"""servec verify: Kubernetes objects in files, held against what the API server refuses."""

from __future__ import annotations

import sys

import click

from servec.cli.inputs import content_of, expanded
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.diag.render import render_json, render_text
from servec.source.files import Files, Memory
from servec.source.located import Map, Span
from servec.verify.documents import objects_in
from servec.verify.kubernetes import check_objects

SUFFIXES = (".yaml", ".yml", ".json")


@click.command("verify")
@click.argument("paths", nargs=-1, required=True)
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text")
def command(paths: tuple[str, ...], style: str) -> int:
    """Check Kubernetes objects as the API server would, without one.

    PATHS are files, folders, or `-` for standard input; the objects of all of them go together, as
    those of one kustomization do.
    """
    findings = Findings()
    files = Files(Memory({}), findings)
    objects: list[Map] = []
    for name, _ in expanded(paths, lambda path: path.suffix.lower() in SUFFIXES):
        text = _text(name, findings)
        if text is not None:
            files.add(name, text)
            objects += objects_in(name, text, findings)
    check_objects(objects, findings)
    shown = findings.show()
    sys.stdout.write(render_json(shown) if style == "json" else render_text(shown, files.line))
    counted = "1 object" if len(objects) == 1 else f"{len(objects)} objects"
    click.echo(f"servec: {counted} held against the rules of the API server", err=True)
    return int(any(finding.severity is Severity.ERROR for finding in shown))


def _text(name: str, findings: Findings) -> str | None:
    """A file's text; None with a finding where it cannot be had."""
    content = content_of(name, findings)
    try:
        return content.decode("utf-8") if content is not None else None
    except UnicodeDecodeError as error:
        span, byte = Span(name, 1, 1), error.object[error.start]
        findings.add(codes.NOT_UTF8, span, offset=error.start, byte=byte)
        return None
