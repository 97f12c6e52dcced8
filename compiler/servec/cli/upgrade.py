"""servec upgrade: what another version of an engine changes, plan by plan."""

from __future__ import annotations

from pathlib import Path

import click
from packaging.version import Version

from servec.api import catalog_of
from servec.catalog.versions import parse_version
from servec.diag.findings import Findings
from servec.diag.render import render_text
from servec.source.files import Files, Folder, find_project
from servec.upgrade import Upgrade, upgrades


@click.command("upgrade")
@click.option("--engine", required=True, help="The engine's name, or an alias.")
@click.option("--to", "version", help="The version to look at.")
@click.option("--image", help="Or the image, which tells the version.")
def command(engine: str, version: str | None, image: str | None) -> int:
    """Show what breaks, what is deprecated, which defaults move and which flags are written
    otherwise, for every plan on an engine. Nothing is written; exit 1 where something breaks."""
    project = find_project(Path())
    if project is None:
        click.echo("servec: there is no servec.yaml here or above: run this in a project", err=True)
        return 1
    catalog = catalog_of(".")
    name = catalog.aliases.get(engine, engine)
    if name not in catalog.engine_names:
        raise click.BadParameter(f"unknown engine `{engine}`; {catalog.known_engines}")
    other = catalog.images.engine_of(image) if image else None
    if other is not None and other != name:
        raise click.BadParameter(f"{image} is an image of {other}, not of {name}")
    target = _version(version, image, name)
    findings = Findings()
    files = Files(Folder(project), findings)
    found, errors = upgrades(files, name, target, image or "")
    if errors:
        click.echo(render_text(errors, files.line))
        click.echo("servec: mend the project as it is first", err=True)
        return 1
    for item in found:
        click.echo(_text(item))
    broken = sum(bool(item.breaks) for item in found)
    plans = "1 plan" if len(found) == 1 else f"{len(found)} plans"
    click.echo(f"servec: {plans} on {name}, {broken or 'none'} would break", err=True)
    return 1 if broken else 0


def _version(version: str | None, image: str | None, engine: str) -> Version:
    if (version is None) is (image is None):
        raise click.UsageError("give `--to VERSION` or `--image IMAGE`")
    parsed = parse_version(version) if version else None
    if image is not None:
        parsed = catalog_of(".").version_in(engine, image).version
    if parsed is None:
        raise click.BadParameter(f"`{str(version or image)[:60]}` tells no version")
    return parsed


def _text(item: Upgrade) -> str:
    lines = [f"{item.plan}  {item.old.version or 'unknown'} -> {item.new.version}"]
    for word, findings in (("breaks", item.breaks), ("warns", item.warnings)):
        lines += [
            f"  {word:<9} {finding.code.number} {finding.span}: {finding.message}"
            for finding in findings
        ]
    lines += [f"  {'was':<9} {words}" for words in item.gone]
    lines += [f"  {'becomes':<9} {words}" for words in item.come]
    lines += [f"  {'default':<9} {flag}: {old} -> {new}" for flag, old, new in item.defaults]
    lines += [f"  {'opens':<9} speculative decoding with {name}" for name in item.opens]
    return "\n".join(lines)
