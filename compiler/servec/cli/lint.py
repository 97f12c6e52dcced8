"""servec lint: engine command lines in any files, held against what the engine accepts."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

import click
from packaging.version import Version

from servec.api import catalog_of
from servec.catalog.catalog import Catalog
from servec.catalog.versions import parse_version
from servec.cli.inputs import content_of, expanded
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.diag.render import render_json, render_text
from servec.lint.check import Linter
from servec.lint.find_docker import is_dockerfile
from servec.source.files import Files, Memory
from servec.source.located import Span

SUFFIXES = frozenset((".yaml", ".yml", ".json", ".sh", ".bash", ".service", ".container"))


@click.command("lint")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--version",
    "given",
    multiple=True,
    metavar="[ENGINE=]VERSION",
    help="The engine's version, where no image tells it.",
)
@click.option("--strict", is_flag=True, help="A warning ends with 1 too.")
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text")
def command(paths: tuple[str, ...], given: tuple[str, ...], strict: bool, style: str) -> int:
    """Check command lines in scripts, units, Dockerfiles, compose files and Kubernetes manifests.

    PATHS are files, folders, or `-` for standard input. Nothing that is read is executed.
    """
    findings = Findings()
    files = Files(Memory({}), findings)
    linter = _linter(catalog_of("."), given, findings)
    lines = 0
    for name, is_named in expanded(paths, _is_known):
        text = _text(name, findings)
        if text is None:
            continue
        before = len(findings)
        own = linter.lint(name, text, findings)
        lines += own
        if len(findings) > before:
            files.add(name, text)
        elif is_named and not own:
            click.echo(f"servec: {name} has no command line of an engine", err=True)
    shown = findings.show()
    sys.stdout.write(render_json(shown) if style == "json" else render_text(shown, files.line))
    counted = "1 command line" if lines == 1 else f"{lines} command lines"
    click.echo(f"servec: {counted} held against the catalogue", err=True)
    fails = Severity.WARNING if strict else Severity.ERROR
    return int(any(finding.severity >= fails for finding in shown))


def _linter(catalog: Catalog, given: tuple[str, ...], findings: Findings) -> Linter:
    """A linter for the versions that were given: of single engines, or one for those that have
    releases around it. A version that no release that was read is near is told."""
    version: Version | None = None
    versions: dict[str, Version] = {}
    for text in given:
        engine, _, number = text.rpartition("=")
        name = catalog.aliases.get(engine, engine)
        parsed = parse_version(number)
        if parsed is None:
            raise click.BadParameter(f"`{number[:60]}` is not a version")
        if engine and name not in catalog.engine_names:
            raise click.BadParameter(f"unknown engine `{engine}`; {catalog.known_engines}")
        if not engine and version is not None:
            raise click.BadParameter("give a second version as ENGINE=VERSION")
        if engine:
            versions[name] = parsed
        else:
            version = parsed
    linter = Linter(catalog, version, versions)
    for name, released in linter.catalogued.items():
        asked = versions.get(name, None if linter.is_covered else version)
        if asked is not None and not released.covers(asked) and released.has_versions:
            released.tell_end(name, asked, None, findings)
    return linter


def _is_known(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES or is_dockerfile(path.name)


def _text(name: str, findings: Findings) -> str | None:
    """The text of a file, whatever its bytes are; None with a finding where it cannot be read."""
    content = content_of(name, findings)
    if content is None:
        return None
    if b"\0" in content and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problem = "it has NUL bytes, as no text has that is read here"
        findings.add(codes.UNREADABLE, Span(name, 1, 1), problem=problem)
        return None
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_wide else "utf-8", "replace")
    return text.removeprefix("\ufeff").replace("\0", "\ufffd")
