"""An engine and a version -> an observation of that release, kept in the cache folder.

    observe("engine", "1.2.0")  ->  <cache>/observations/engine-1.2.0.json

The wheel is fetched, its sources are unpacked, an environment is made, the release's own parser is
built in a process of its own, and what the parser does not tell is read from the sources. A release
whose parser cannot be run is read from its sources alone, and the observation says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from packaging.version import Version

from servec.extract.environment import environment_of
from servec.extract.errors import ExtractionError
from servec.extract.folders import cache_folder, write_whole
from servec.extract.observation import Observation, from_json, to_json
from servec.extract.package import Package, package_of
from servec.extract.parser import Answer, Limits, ask
from servec.extract.recipe import LISTS, Recipe, recipe_of
from servec.extract.static_flags import flags_in
from servec.extract.statics import Sources, Statics

PARSER, STATIC = "parser", "static"


def observe(
    engine: str,
    version: str,
    *,
    recipe: Recipe | None = None,
    wheel: Path | None = None,
    cache: Path | None = None,
    again: bool = False,
    today: date | None = None,
    limits: Limits | None = None,
) -> Observation:
    """What a release accepts. One whose parser was asked before is read from the cache folder,
    unless `again`, or `wheel` is another file than then. Raises ExtractionError."""
    release = _release(version)
    recipe = recipe or recipe_of(engine)
    cache = (cache or cache_folder()).absolute()
    kept = cache / "observations" / f"{engine}-{release}.json"
    known = None if again else _known(kept)
    if known is not None and wheel is None:
        return known
    package = package_of(recipe.package.value, release, cache, wheel)
    if known is not None and known.sha256 == package.sha256:
        return known
    answer = _ask(recipe, release, package, cache, limits or Limits())
    day = (today or date.today()).isoformat()
    made = _observation(engine, release, recipe, package, answer, day)
    write_whole(kept, lambda: to_json(made))
    return made


def _known(kept: Path) -> Observation | None:
    """The observation in the cache; a file that is none is as good as absent, and so is what was
    read without the parser: what stood in its way may be gone."""
    try:
        found = from_json(kept.read_text(encoding="utf-8"), LISTS)
    except (OSError, UnicodeDecodeError, ExtractionError):
        return None
    return found if found.read == PARSER else None


def fetch(engine: str, version: str) -> None:
    """Put into the cache folder what the parser of a release needs. Raises ExtractionError."""
    recipe, release, cache = recipe_of(engine), _release(version), cache_folder().absolute()
    package_of(recipe.package.value, release, cache)
    environment_of(recipe.installed(release), cache)


def parser_says(
    engine: str,
    version: str,
    argvs: Sequence[Sequence[str]],
    *,
    recipe: Recipe | None = None,
    wheel: Path | None = None,
    cache: Path | None = None,
    limits: Limits | None = None,
) -> tuple[str, tuple[str | None, ...]]:
    """The sha256 of a release's wheel, and what the release's own parser says of each list of words
    behind the program: None where it takes them, else its message. Raises ExtractionError."""
    recipe = recipe or recipe_of(engine)
    cache = (cache or cache_folder()).absolute()
    release = _release(version)
    package = package_of(recipe.package.value, release, cache, wheel)
    answer = _ask(recipe, release, package, cache, limits or Limits(), argvs)
    if answer.problem:
        raise ExtractionError(f"the parser of {engine} {version} cannot be asked: {answer.problem}")
    return package.sha256, answer.said


def _release(version: str) -> Version:
    try:
        return Version(version)
    except ValueError as error:
        raise ExtractionError(f"`{version}` is not a version") from error


def _ask(
    recipe: Recipe,
    version: Version,
    package: Package,
    cache: Path,
    limits: Limits,
    argvs: Sequence[Sequence[str]] | None = None,
) -> Answer:
    """The answer of the first way to the parser that leads anywhere, else of the last."""
    ways = recipe.ways(version)
    if not ways:
        return Answer("the extraction recipe has no way to the parser of this version")
    python = environment_of(recipe.installed(version), cache)
    answers = []
    for way in ways:
        answers.append(ask(recipe, way, version, package.root, python, limits, argvs))
        if not answers[-1].problem:
            break
    return answers[-1]


def _observation(
    engine: str, version: Version, recipe: Recipe, package: Package, answer: Answer, day: str
) -> Observation:
    if answer.problem:
        answer = replace(answer, flags=flags_in(recipe, Sources(package.root)))
    statics = Statics(recipe, version, package.root, answer.flags)
    return Observation(
        engine=engine,
        version=str(version),
        read=STATIC if answer.problem else PARSER,
        file=package.file,
        sha256=package.sha256,
        date=day,
        allow_abbrev=answer.allow_abbrev,
        flags=statics.flags,
        reason=answer.problem,
        stand_ins=answer.stand_ins,
        lists=statics.lists,
        quantization=statics.quantization,
        classes=replace(answer.classes, keys={**statics.config_keys, **answer.classes.keys}),
    )
