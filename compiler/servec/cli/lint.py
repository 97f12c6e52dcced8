"""servec lint: engine command lines in any files, held against what the engine accepts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from servec.api import catalog_of
from servec.catalog.versions import parse_version
from servec.diag.findings import Findings
from servec.diag.render import render_json, render_text
from servec.lint.check import Linter
from servec.lint.find import SUFFIXES
from servec.source import limits
from servec.source.files import Files, Memory


@click.command("lint")
@click.argument("paths", nargs=-1, required=True)
@click.option("--version", "version", help="The engine's version, where no image tells it.")
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text")
def command(paths: tuple[str, ...], version: str | None, style: str) -> int:
    """Check command lines in scripts, units, compose files and Kubernetes manifests.

    PATHS are files, folders, or `-` for standard input. Nothing that is read is executed.
    """
    parsed = parse_version(version) if version is not None else None
    if version is not None and parsed is None:
        raise click.BadParameter(f"`{version[:60]}` is not a version")
    findings = Findings()
    files = Files(Memory({}), findings)
    linter = Linter(catalog_of("."), parsed)
    lines = 0
    for name in _expanded(paths):
        text = _text(name)
        if text is None:
            click.echo(f"servec: cannot read {name}", err=True)
            return 1
        files.add(name, text)
        lines += linter.lint(name, text, findings)
    shown = findings.show()
    text = render_json(shown) if style == "json" else render_text(shown, files.line)
    sys.stdout.write(text)
    counted = "1 command line" if lines == 1 else f"{lines} command lines"
    click.echo(f"servec: {counted} held against the catalogue", err=True)
    return 1 if findings.errors else 0


def _expanded(paths: tuple[str, ...]) -> list[str]:
    """Files as they were named; of folders, those of a known kind, in the order of their paths."""
    found: list[str] = []
    for name in paths:
        if name != "-" and Path(name).is_dir():
            inside = Path(name).rglob("*")
            found += sorted(
                str(path) for path in inside if path.suffix in SUFFIXES and path.is_file()
            )
        else:
            found.append(name)
    return found


def _text(name: str) -> str | None:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError:
        return None
    return content[: limits.FILE_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
