"""servec catalog: what released packages of an engine accept: read, shown, compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servec.api import catalog_of
from servec.catalog.history import instead
from servec.catalog.versions import parse_version
from servec.cli.release_text import changes, form
from servec.cli.session import Session
from servec.diag import codes
from servec.diag.suggest import nearest
from servec.source.files import Files, Folder

if TYPE_CHECKING:
    from servec.catalog.released import Released, ReleasedAt


@click.group("catalog")
def command() -> None:
    """What released packages of an engine accept."""


@command.command("extract")
@click.argument("engine")
@click.argument("versions", nargs=-1, required=True)
@click.option("--wheel", type=click.Path(path_type=Path), help="A wheel in hand, of one version.")
@click.option("--again", is_flag=True, help="Read releases anew that were read before.")
def extract(engine: str, versions: tuple[str, ...], wheel: Path | None, again: bool) -> int:
    """Read releases into the project's catalogs/engines/ENGINE.yaml.

    The package is fetched as `pip` is set up to, its own parser is run in an environment of its
    own, and both are kept in a cache folder ($SERVEC_CACHE, else ~/.cache/servec).
    """
    if wheel is not None and len(versions) > 1:
        raise click.BadParameter("a wheel is of one version; give that alone", param_hint="--wheel")
    session = Session(".", (), False, "text")
    if session.root is not None and session.files is not None:
        observed = _observed(engine, versions, wheel, again, session)
        if observed:
            _join(engine, observed, session.root, session)
    return session.close()


def _observed(
    engine: str, versions: tuple[str, ...], wheel: Path | None, again: bool, session: Session
) -> list[dict[str, Any]]:
    """What releases accept, as `merge` takes it; none, with a finding, where one is not read."""
    from servec.extract.errors import ExtractionError
    from servec.extract.observation import to_plain
    from servec.extract.observe import observe
    from servec.extract.recipe import recipe_of

    observed = []
    for version in versions:
        try:
            recipe = recipe_of(engine, session.files)
            session.say(f"reading {engine} {version}")
            found = observe(engine, version, recipe=recipe, wheel=wheel, again=again)
        except ExtractionError as error:
            _unread(f"{engine} {version}", error, session)
            return []
        if found.reason:
            session.say(f"its parser gave no answer, so its sources were read: {found.reason}")
        observed.append(to_plain(found))
    return observed


def _join(engine: str, observed: list[dict[str, Any]], project: Path, session: Session) -> None:
    """Merge releases into the project's catalogue as it is now: others may have written it while
    these were read. One that has mistakes is left as it is."""
    from servec.catalog.catalog import Catalog
    from servec.extract.apart import observations
    from servec.extract.errors import ExtractionError
    from servec.extract.folders import write_whole
    from servec.extract.merge import merge

    target = project / "catalogs" / "engines" / f"{engine}.yaml"
    items = list(observed)

    def merged() -> str:
        session.files = Files(Folder(project), session.findings)
        known = Catalog(session.files, session.findings).released(engine)
        if known is not None:
            known.check()
            items[:0] = observations(known)
        if session.findings.errors:
            raise ExtractionError("it has mistakes")
        return merge(items)

    try:
        write_whole(target, merged)
    except ExtractionError as error:
        _unread(engine, error, session)
    else:
        releases = {item["version"] for item in items}
        session.say(f"{target.relative_to(project)} has {len(releases)} releases")


def _unread(what: str, error: Exception, session: Session) -> None:
    """Tell why a release did not get into the catalogue, if a mistake in a file does not."""
    if not session.findings.errors:
        session.findings.add(codes.UNREAD_RELEASE, None, what=what, problem=str(error))


@command.command("show", context_settings={"ignore_unknown_options": True})
@click.argument("engine")
@click.argument("names", nargs=-1)
def show(engine: str, names: tuple[str, ...]) -> int:
    """Show the releases that were read, or the history of flags and variables.

    NAMES are flags, as --max-model-len or max_model_len, keys of their JSON values, as
    --kv-transfer-config.kv_role, or names of variables. A release is read by its own parser, or
    where that cannot be run, from its sources alone (`static`).
    """
    released = _released(engine)
    if released is None:
        return 1
    if not names:
        _show_releases(released)
    code = 0
    for word in names:
        name = _meant(word, released)
        lines = list(_history(released, name))
        if not lines:
            near = nearest(name, _all_names(released))
            advice = f"; did you mean `{near}`?" if near else ""
            click.echo(f"servec: no release of {engine} has `{word}`{advice}", err=True)
            code = 1
        else:
            click.echo("\n".join([name, *lines, *_since(engine, name, released)]))
    return code


def _show_releases(released: Released) -> None:
    click.echo(f"{'release':<16} {'read by':<8} {'on':<10} sha256 of the package")
    for item in released.record.releases:
        one = item.value
        digest = one.sha256.value if one.sha256 else "-"
        click.echo(f"{item.key.value:<16} {one.read.value:<8} {one.date.value:<10} {digest}")


def _meant(word: str, released: Released) -> str:
    """A name as the releases write it: a parameter's own, with `_`, is that of a flag."""
    if word.startswith("-") or any(word in released.of(it).variables for it in released.releases):
        return word
    head, dot, path = word.partition(".")
    return f"--{head.replace('_', '-')}{dot}{path}"


def _since(engine: str, name: str, released: Released) -> Iterator[str]:
    """What took the place of a name that the newest release does not have."""
    found = catalog_of(".").engine(engine)
    if found is not None and not form(released.at(None), name):
        advice = instead(name, found.serve, released, None)
        yield from (f"  {'since then':<28} {advice}",) if advice else ()


def _all_names(released: Released) -> list[str]:
    """The flags and variables of any release, the newest release's first."""
    names: dict[str, None] = {}
    for release in reversed(released.releases):
        here = released.of(release)
        names |= dict.fromkeys([*here.flags, *here.negatives, *sorted(here.variables)])
    return list(names)


def _history(released: Released, name: str) -> Iterator[str]:
    """A line for each run of releases in which a flag or variable is the same."""
    runs: list[tuple[str, str, str]] = []
    for release in released.releases:
        said = form(released.of(release), name)
        if runs and runs[-1][2] == said:
            runs[-1] = (runs[-1][0], release, said)
        else:
            runs.append((release, release, said))
    for first, last, said in runs:
        if said:
            span = first if first == last else f"{first} to {last}"
            yield f"  {span:<28} {said}"


@command.command("diff")
@click.argument("engine")
@click.argument("old")
@click.argument("new")
def diff(engine: str, old: str, new: str) -> int:
    """Show what changed from one version to another."""
    released = _released(engine)
    if released is None:
        return 1
    one, other = (_release(engine, released, text) for text in (old, new))
    click.echo(f"{engine} {one.release} -> {other.release}")
    for line in changes(one, other):
        click.echo(line)
    return 0


def _release(engine: str, released: Released, text: str) -> ReleasedAt:
    """The release that tells what a version accepts; where it is another, that is said."""
    version = parse_version(text)
    if version is None:
        raise click.BadParameter(f"`{text[:60]}` is not a version")
    here = released.at(version)
    if parse_version(here.release) != version:
        why = (
            ""
            if released.covers(version)
            else f", the {released.end_of(here)} release that was read"
        )
        click.echo(f"servec: {engine} {text} is taken as {here.release}{why}", err=True)
    return here


def _released(engine: str) -> Released | None:
    catalog = catalog_of(".")
    found = catalog.released(engine)
    if found is None:
        known = [name for name in catalog.engine_names if catalog.released(name) is not None]
        click.echo(
            f"servec: no releases of `{engine}` were read; there are: {', '.join(known)}", err=True
        )
    return found
