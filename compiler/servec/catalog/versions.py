"""Versions and ranges of PEP 440, parsed once."""

from __future__ import annotations

from functools import cache
from typing import Protocol, TypeVar

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import Version

from servec.source.located import At

NEWEST = Version("999999")
"""Stands for an unknown version, which takes the newest rules: newer than any release."""


@cache
def parse_version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:  # no version, or a number of more digits than Python reads
        return None


def release_order(text: str) -> tuple[int, Version, str]:
    """Releases in their order; names that are no versions come last, by name."""
    version = parse_version(text)
    return (0, version, "") if version else (1, NEWEST, text)


@cache
def parse_range(text: str) -> SpecifierSet | None:
    try:
        bounds = SpecifierSet(text)
    except InvalidSpecifier:
        return None
    known = all(parse_version(bound.version.removesuffix(".*")) for bound in bounds)
    return bounds if known else None


@cache
def in_range(version: Version, text: str) -> bool:
    """Whether a version is in a range; a release candidate comes before its release."""
    bounds = parse_range(text)
    return bounds is not None and all(_holds(bound, version) for bound in bounds)


def _holds(bound: Specifier, version: Version) -> bool:
    # PEP 440 leaves candidates of a release out of `<` that release; here they come before it.
    if bound.operator == "<" and version.is_prerelease:
        return version < Version(bound.version)
    return bound.contains(version, prereleases=True)


class Ranged(Protocol):
    """A rule that holds for some versions."""

    @property
    def versions(self) -> At[str] | None: ...


RuleT = TypeVar("RuleT", bound=Ranged)


def holds(rule: Ranged, version: Version | None) -> bool:
    """Whether a rule is true of a version."""
    return rule.versions is None or in_range(version or NEWEST, rule.versions.value)


def first_that_holds(rules: tuple[RuleT, ...], version: Version | None) -> RuleT | None:
    """Rules stand newest first, so an unknown version takes the newest."""
    return next((rule for rule in rules if holds(rule, version)), None)
