"""servec capabilities: what an engine can do at a version."""

from __future__ import annotations

import json

import click

from servec.api import UnknownEngine, capabilities, catalog_of
from servec.catalog.capabilities import Capabilities


@click.command("capabilities")
@click.option("--engine", required=True, help="The engine's name, or an alias.")
@click.option("--version", "version", help="The engine's version.")
@click.option("--image", help="A container image, which tells the version.")
@click.option("--algorithm", help="Ask for one algorithm: exit 1 where it is not available.")
@click.option("--dimensions", is_flag=True, help="The variable of each benchmark dimension.")
@click.option("--target", default="", help="Deployment target, for --dimensions.")
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text")
def command(
    engine: str,
    version: str | None,
    image: str | None,
    algorithm: str | None,
    dimensions: bool,
    target: str,
    style: str,
) -> int:
    """Show what an engine can do, at a version or in an image."""
    try:
        found = capabilities(engine, version=version, image=image, root=".")
    except UnknownEngine as error:
        click.echo(f"servec: {error}", err=True)
        return 1
    if style == "json":
        tree = _tree(found, target)
        if algorithm is not None:
            tree["asked"] = {"algorithm": algorithm, "why_not": found.why_not(algorithm) or None}
        click.echo(json.dumps(tree, indent=2, ensure_ascii=False))
    elif dimensions:
        for item in found.manifest.dimension_map:
            click.echo(f"{item.key.value}={found.dimension_variable(item.key.value, target)}")
    elif algorithm is None:
        for name in found.supported_algorithms:
            click.echo(name)
    catalog = catalog_of(".")
    other = catalog.images.engine_of(image) if image else None
    if other is not None and other != found.engine:
        click.echo(f"servec: {image} is an image of {other}, not of {found.engine}", err=True)
        return 1
    if found.version.version is None:
        taken = "all is shown" if algorithm is None else f"{algorithm} is taken to be there"
        click.echo(f"servec: the version is unknown ({found.version.source}): {taken}", err=True)
    if algorithm is not None and (reason := found.why_not(algorithm)):
        advice = catalog.images.upgrade(found.engine, found.since(algorithm))
        click.echo(f"servec: {reason}{advice and '; ' + advice}", err=True)
        return 1
    return 0


def _tree(found: Capabilities, target: str) -> dict[str, object]:
    version = found.version.version
    return {
        "engine": found.engine,
        "version": str(version) if version else None,
        "version_source": found.version.source,
        "inner": dict(found.version.inner),
        "min_version": found.min_version,
        "meets_min_version": found.meets_min_version,
        "supported_algorithms": list(found.supported_algorithms),
        "engine_names": {name: found.engine_name(name) for name in found.supported_algorithms},
        "dimensions": {
            item.key.value: found.dimension_variable(item.key.value, target)
            for item in found.manifest.dimension_map
        },
        "hot_reload": found.manifest.hot_reload.value,
    }
