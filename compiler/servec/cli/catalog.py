"""servec catalog: what released packages of an engine accept: read, shown, compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servec.api import catalog_of
from servec.catalog.versions import parse_version
from servec.cli.session import Session
from servec.diag import codes
from servec.diag.suggest import nearest
from servec.source.files import Files, Folder

if TYPE_CHECKING:
    from servec.catalog.released import Released, ReleasedAt
    from servec.ir.facts import Flag


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

    NAMES are flags, as --max-model-len, or names of variables.
    """
    released = _released(engine)
    if released is None:
        return 1
    if not names:
        for item in released.record.releases:
            click.echo(f"{item.key.value:<16} {item.value.read.value:<8} {item.value.date.value}")
    code = 0
    for name in names:
        lines = list(_history(released, name))
        if not lines:
            near = nearest(name, _all_names(released))
            advice = f"; did you mean `{near}`?" if near else ""
            click.echo(f"servec: no release of {engine} has `{name}`{advice}", err=True)
            code = 1
        else:
            click.echo("\n".join([name, *lines]))
    return code


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
        form = _form(released.of(release), name)
        if runs and runs[-1][2] == form:
            runs[-1] = (runs[-1][0], release, form)
        else:
            runs.append((release, release, form))
    for first, last, form in runs:
        if form:
            span = first if first == last else f"{first} to {last}"
            yield f"  {span:<28} {form}"


def _form(here: ReleasedAt, name: str) -> str:
    """What a release knows of a name; empty where it has none of it."""
    flag = here.flags.get(name)
    if flag is not None:
        return _described(flag)
    if name in here.negatives:
        return f"says the opposite of {here.negatives[name].name}"
    return "read in the environment" if name in here.variables else ""


def _described(flag: Flag) -> str:
    parts = ["switch" if flag.kind == "switch" else flag.type or flag.kind]
    if flag.negatives:
        parts = [f"switch, or {flag.negatives[0]}"]
    if flag.nargs is not None:
        parts.append(f"values: {flag.nargs}")
    if flag.choices:
        parts.append(f"one of {', '.join(map(str, flag.choices))}")
    if flag.default not in (None, False):
        parts.append(f"default {flag.default}")
    if flag.deprecated or flag.removed:
        parts.append("removed" if flag.removed else "deprecated")
    return "; ".join(parts)


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
    for line in _changes(one, other):
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


def _changes(one: ReleasedAt, other: ReleasedAt) -> Iterator[str]:
    for name in sorted({*one.flags, *other.flags}):
        before, after = _form(one, name), _form(other, name)
        if before != after:
            yield from (f"- {name}  {before}",) if before else ()
            yield from (f"+ {name}  {after}",) if after else ()
    yield from _named("variable", one.variables, other.variables)
    for what in ("tool_call_parsers", "reasoning_parsers", "methods", "quantization"):
        yield from _named(
            what.removesuffix("s").replace("_", " "), one.names(what), other.names(what)
        )


def _named(what: str, old: frozenset[str], new: frozenset[str]) -> Iterator[str]:
    yield from (f"- {what} {name}" for name in sorted(old - new))
    yield from (f"+ {what} {name}" for name in sorted(new - old))


def _released(engine: str) -> Released | None:
    catalog = catalog_of(".")
    found = catalog.released(engine)
    if found is None:
        known = [name for name in catalog.engine_names if catalog.released(name) is not None]
        click.echo(
            f"servec: no releases of `{engine}` were read; there are: {', '.join(known)}", err=True
        )
    return found
