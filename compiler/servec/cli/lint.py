"""servec lint: engine command lines in any files, held against what the engine accepts."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from servec.api import catalog_of
from servec.catalog.versions import parse_version
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.render import render_text
from servec.lint.check import Linter
from servec.source import limits
from servec.source.files import Files, Memory
from servec.source.located import Span


@click.command("lint")
@click.argument("paths", nargs=-1, required=True)
@click.option("--version", "version", help="The engine's version, where no image tells it.")
def command(paths: tuple[str, ...], version: str | None) -> int:
    """Check command lines in scripts, units, compose files and Kubernetes manifests.

    PATHS are files, folders, or `-` for standard input. Nothing that is read is executed.
    """
    parsed = parse_version(version) if version is not None else None
    if version is not None and parsed is None:
        raise click.BadParameter(f"`{version}` is not a version")
    findings = Findings()
    files = Files(Memory({}), findings)
    linter = Linter(catalog_of("."), parsed)
    lines = 0
    for name in _expanded(paths):
        text = _text(name, findings)
        if text is None:
            continue
        before = len(findings)
        lines += linter.lint(name, text, findings)
        if len(findings) > before:
            files.add(name, text)
    sys.stdout.write(render_text(findings.show(), files.line))
    counted = "1 command line" if lines == 1 else f"{lines} command lines"
    click.echo(f"servec: {counted} held against the catalogue", err=True)
    return 1 if findings.errors else 0


def _expanded(paths: tuple[str, ...]) -> Iterator[str]:
    """Files as they were named; of folders, those of a known kind, in the order of their paths."""
    for name in paths:
        if name != "-" and Path(name).is_dir():
            inside = (path for path in Path(name).rglob("*") if path.suffix.lower() in SUFFIXES)
            yield from sorted(str(path) for path in inside if path.is_file())
        else:
            yield name


def _text(name: str, findings: Findings) -> str | None:
    """The text of a file, whatever its bytes are; None with a finding where it cannot be read."""
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
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_wide else "utf-8", "replace")
    return text.removeprefix("\ufeff").replace("\0", "\ufffd")


SUFFIXES = frozenset((".yaml", ".yml", ".json", ".sh", ".bash", ".service", ".container"))
