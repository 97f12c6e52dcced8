"""What an engine can do at a version, from its manifest's contract.

vllm 0.8.0: supported_algorithms less what a later version added; an unknown version has all
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version

from servec.ir.facts import EngineVersion
from servec.ir.manifest import CapabilityKey, Feature, Manifest
from servec.source.located import Plain

WHOLE = re.compile(r"-?[0-9]+\Z")
SET = frozenset(("true", "1", "yes"))
UNSET = frozenset(("false", "0", "no", ""))
INFERENCE_COMPONENT = ("realtime-inference", "IC_ENV_")
"""A deployment target whose variables carry a prefix of its own before the engine's."""


@dataclass(frozen=True, slots=True)
class Variables:
    """Variables of the environment in order, and what was left out with the reason."""

    set: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]


def gate_of(manifest: Manifest, algorithm: str) -> str | None:
    """The version that added an algorithm, or None where the manifest's lowest has it."""
    for feature in manifest.version_features:
        if any(item.value == algorithm for item in feature.adds.supported_algorithms):
            return feature.since.value
    return None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """An engine at a version. `supported_algorithms` are those that the version has, in the
    manifest's order; all of them where the version is unknown."""

    manifest: Manifest
    version: EngineVersion

    @property
    def engine(self) -> str:
        return self.manifest.engine.value

    @property
    def min_version(self) -> str | None:
        return self.manifest.min_version.value if self.manifest.min_version else None

    @property
    def meets_min_version(self) -> bool:
        """Whether the version is at least the engine's lowest; an unknown one is taken to be."""
        version = self.version.version
        return self.min_version is None or version is None or version >= Version(self.min_version)

    @property
    def supported_algorithms(self) -> tuple[str, ...]:
        return tuple(
            item.value
            for item in self.manifest.supported_algorithms
            if self.since(item.value) is None
        )

    def since(self, algorithm: str) -> str | None:
        """The version that added an algorithm, where this one is older; else None."""
        version, since = self.version.version, gate_of(self.manifest, algorithm)
        is_older = version is not None and since is not None and version < Version(since)
        return since if is_older else None

    def engine_name(self, algorithm: str) -> str | None:
        """The engine's own name of an algorithm, or None where it has none."""
        for item in self.manifest.algorithm_map:
            if item.key.value == algorithm:
                return item.value.value
        return None

    def why_not(self, algorithm: str) -> str:
        """Why an algorithm is not available; empty where it is."""
        if all(item.value != algorithm for item in self.manifest.supported_algorithms):
            known = ", ".join(item.value for item in self.manifest.supported_algorithms) or "none"
            return f"servec knows no algorithm `{algorithm}` of {self.engine}; it knows {known}"
        since = self.since(algorithm)
        if since is None:
            return ""
        return f"`{algorithm}` is there since {self.engine} {since}, this is {self.version}"

    def dimension_variable(self, dimension: str, target: str = "") -> str | None:
        """The variable of a benchmark dimension, or None where the engine has none."""
        for item in self.manifest.dimension_map:
            if item.key.value == dimension:
                before = INFERENCE_COMPONENT[1] if target == INFERENCE_COMPONENT[0] else ""
                return f"{before}{self.manifest.env_var_prefix.value}{item.value.value}"
        return None

    def variables(self, values: Mapping[str, Plain]) -> Variables:
        """Values that the tool computes -> the engine's variables. One whose companions are not
        there is left out; the reason names the smallest set that is missing."""
        found, skipped = [], []
        keys = {item.key.value: item.value for item in self.manifest.capability_map}
        present = {name for name, key in keys.items() if _word(key, values.get(name)) is not None}
        for name, key in keys.items():
            word = _word(key, values.get(name))
            if word is None:
                continue
            missing = _missing(key, present)
            if missing:
                skipped.append((name, f"it needs {', '.join(missing)}"))
            else:
                found.append((f"{self.manifest.env_var_prefix.value}{key.suffix.value}", word))
        return Variables(tuple(found), tuple(skipped))

    def features(self, request: Mapping[str, Plain]) -> tuple[Variables, tuple[str, ...]]:
        """Toggles of this engine -> variables, and what is wrong with the request. A request with
        anything wrong sets nothing."""
        keys = {item.key.value: item.value for item in self.manifest.engine_features}
        problems, found = [], []
        for name, value in request.items():
            if name not in keys:
                problems.append(f"{self.engine} has no feature `{name}`")
                continue
            word, problem = feature_word(keys[name], value)
            if problem:
                problems.append(f"`{name}` {problem}")
            else:
                found.append((keys[name].env_var.value, word))
        return Variables(() if problems else tuple(found), ()), tuple(problems)


def _word(key: CapabilityKey, value: Plain) -> str | None:
    """A capability's value as the engine reads it; None where it counts as absent."""
    text = "" if value is None else str(value)
    if key.type.value == "boolean":
        return "true" if text.lower() in SET else None
    return text or None


def _missing(key: CapabilityKey, present: set[str]) -> list[str]:
    """The smallest set of companions that is lacking; empty where one group is there in full."""
    groups = [
        [name.value for name in group if name.value not in present] for group in key.requires_any_of
    ]
    return min(groups, key=len, default=[])


def feature_word(feature: Feature, value: Plain) -> tuple[str, str]:
    """A feature's value as text, and what is wrong with it."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    match feature.type.value:
        case "boolean":
            if text.lower() not in SET | (UNSET - {""}):
                return "", f"is true or false, not `{text}`"
            return ("true" if text.lower() in SET else "false"), ""
        case "enum":
            values = [item.value for item in feature.values]
            return (text, "") if text in values else ("", f"is one of {', '.join(values)}")
        case "int":
            whole = WHOLE.match(text) is not None
            return (text, "") if whole else ("", f"is a whole number, not `{text}`")
        case _:
            return text, ""
