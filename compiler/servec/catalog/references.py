"""Container image references and the engine versions that they tell.

    vllm/vllm-openai:v0.29.0 -> 0.29.0 (tag)      registry:5000/x@sha256:… -> unknown

A reference is read as a reference first (registry with port, repository, tag, digest), so that no
digit of a host, an account or a digest is ever taken for a version.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.version import Version

from servec.catalog.versions import parse_version

# Three numbers, or two after a `v`; then what PEP 440 knows of pre- and post-releases.
TAG_VERSION = re.compile(
    r"(?:v(?P<two>[0-9]+\.[0-9]+)|v?(?P<three>[0-9]+\.[0-9]+\.[0-9]+))"
    r"(?P<rest>(?:\.?[ab][0-9]+|[.-]?(?:rc|alpha|beta)[0-9]+)?"
    r"(?:[.-]?post[0-9]+)?(?:[.-]?dev[0-9]+)?)"
    r"(?![0-9A-Za-z.])"
)

YEAR = re.compile(r"(?:19|20)[0-9][0-9]\.")


class Reference(NamedTuple):
    """The parts of an image reference; absent ones are empty."""

    registry: str
    repository: str
    tag: str
    digest: str

    @property
    def name(self) -> str:
        """The reference without its digest."""
        path = f"{self.registry}/{self.repository}" if self.registry else self.repository
        return f"{path}:{self.tag}" if self.tag else path


def parse_reference(text: str) -> Reference:
    """Split a reference as container engines do: the first part is a registry where it has a dot,
    a port, or is `localhost`."""
    name, _, digest = text.partition("@")
    first, slash, remainder = name.partition("/")
    registry = ""
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, name = first, remainder
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return Reference(registry, f"{folder}{slash}{last}", tag, digest)


def version_told(text: str, marker: str = "") -> Version | None:
    """The version that the tag of a reference, or a tag alone, begins with, or has after a marker;
    None where it tells none."""
    tag = parse_reference(text).tag or ("" if "/" in text else text)
    _, marked, rest = tag.partition(marker) if marker else ("", "", tag)
    found = TAG_VERSION.match(rest if marked or not marker else "")
    if not found or YEAR.match(found["two"] or found["three"]):
        return None
    return parse_version((found["two"] or found["three"]) + found["rest"])
