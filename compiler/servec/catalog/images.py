"""Engine versions from image references.

1. an exact entry of the image catalogue (the whole reference, or its tag, for that engine);
2. the tag, where it begins with a version, or has one after the manifest's `tag_marker`;
3. unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import Version

from servec.catalog.references import parse_reference, version_told
from servec.catalog.versions import parse_version
from servec.ir.facts import EngineVersion

if TYPE_CHECKING:
    from servec.ir import knowledge


class ImageTable:
    """The image catalogue."""

    def __init__(self, images: dict[str, knowledge.Image]) -> None:
        self.by_reference = images
        self._by_tag: dict[tuple[str, str], knowledge.Image] = {}
        self._by_place: dict[tuple[str, str], knowledge.Image] = {}
        self._engines: dict[str, set[str]] = {}
        for name, image in images.items():
            reference = parse_reference(name)
            self._by_tag.setdefault((image.engine.value, reference.tag), image)
            place = _place(reference.repository)
            self._by_place.setdefault((place, reference.tag), image)
            self._engines.setdefault(place, set()).add(image.engine.value)

    def find(self, engine: str, text: str) -> tuple[knowledge.Image, str] | None:
        """The catalogue's entry of an image, and how it was found."""
        reference = parse_reference(text)
        exact = self.by_reference.get(reference.name) or self.by_reference.get(text)
        if exact is not None:
            return exact, "image catalogue"
        if reference.tag:
            mirror = self._by_place.get((_place(reference.repository), reference.tag))
            if mirror is not None:
                return mirror, "image catalogue (mirror)"
            tagged = self._by_tag.get((engine, reference.tag))
            if tagged is not None:
                return tagged, "image catalogue (tag)"
        bare = self._by_tag.get((engine, text))
        return (bare, "image catalogue (tag)") if bare else None

    def engine_of(self, text: str) -> str | None:
        """The one engine that images of this repository hold, as far as is known."""
        engines = self._engines.get(_place(parse_reference(text).repository), set())
        return next(iter(engines)) if len(engines) == 1 else None

    def held_by(self, text: str) -> str | None:
        """The engine of an image: of its repository, or of a mirror that kept its name alone,
        where the name has the engine in it."""
        repository = parse_reference(text).repository
        name = repository.rpartition("/")[2]
        named = {
            engine
            for place, engines in self._engines.items()
            for engine in engines
            if place.rpartition("/")[2] == name and mentions(name, engine)
        }
        return self.engine_of(text) or (next(iter(named)) if len(named) == 1 else None)

    def version(self, engine: str, text: str, marker: str = "") -> EngineVersion:
        """The version of an engine in an image, or unknown with the reason."""
        found = self.find(engine, text)
        if found is not None and found[0].engine.value == engine:
            inner = tuple((item.key.value, item.value.value) for item in found[0].inner)
            return EngineVersion(parse_version(found[0].version.value), found[1], inner)
        version = version_told(text, marker)
        if version is not None:
            return EngineVersion(version, "tag")
        reference = parse_reference(text)
        if not reference.tag:
            what = "a digest alone" if reference.digest else "no tag"
            return EngineVersion(None, f"the image has {what}")
        return EngineVersion(None, f"the tag `{reference.tag}` tells no version")

    def irregular(self, engine: str, marker: str) -> list[tuple[str, str]]:
        """References and tags of an engine's images that tell another version than theirs."""
        found = []
        for name, image in self.by_reference.items():
            if image.engine.value == engine:
                for text in (name, parse_reference(name).tag):
                    told = version_told(text, marker)
                    version = self.version(engine, text, marker).version
                    if text and version is not None and told != version:
                        found.append((text, str(version)))
        return sorted(set(found))

    def others(self, engine: str) -> list[tuple[str, str]]:
        """Repositories whose images hold other engines only, by their last two parts."""
        return sorted(
            (place, " or ".join(sorted(engines)))
            for place, engines in self._engines.items()
            if engine not in engines
        )

    def newest_on(self, engine: str, driver: str) -> str | None:
        """The catalogued image of an engine with the highest version that runs with a driver."""
        have = Version(driver)
        return max(
            (
                (version, name)
                for version, name, image in self._versions(engine)
                if image.driver is not None and Version(image.driver.value) <= have
            ),
            default=(None, None),
        )[1]

    def upgrade(self, engine: str, since: str | None) -> str:
        """What to do about a version older than `since`: the catalogued image with the lowest
        version that is not; empty where none is known."""
        floor = Version(since) if since else None
        found = min(
            (
                (version, name)
                for version, name, _ in self._versions(engine)
                if floor is not None and version >= floor
            ),
            default=None,
        )
        return f"upgrade the base image to {found[1]}" if found else ""

    def _versions(self, engine: str) -> Iterator[tuple[Version, str, knowledge.Image]]:
        for name, image in self.by_reference.items():
            version = parse_version(image.version.value)
            if image.engine.value == engine and version is not None:
                yield version, name, image


def mentions(image: str, engine: str) -> bool:
    """Whether the name of an image has the engine's in it, however its parts are joined."""
    joints = str.maketrans("", "", "-_.")
    repository = parse_reference(image).repository.lower().translate(joints)
    return engine.translate(joints) in repository


def _place(repository: str) -> str:
    """The last two parts of a repository, which its mirrors share."""
    return "/".join(repository.split("/")[-2:])
