"""What is known of an engine's version and of a model before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from servec.source.located import Map, Plain

BYTES_OF_PRECISION = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "mxfp4": 0.5,
}
CONFIG = "`config:` with the model's config.json, a file of the project"
"""What tells the facts of a model that no catalogue has."""


@dataclass(frozen=True, slots=True)
class EngineVersion:
    """An engine's version and where it is known from, or None and why it is not known. `inner` are
    the versions of the engines inside, where a container has a line of its own."""

    version: Version | None
    source: str
    inner: tuple[tuple[str, str], ...] = ()

    @property
    def known(self) -> bool:
        return self.version is not None

    def __str__(self) -> str:
        return str(self.version) if self.version else "of unknown version"


@dataclass(frozen=True, slots=True)
class FieldForm:
    """What one release takes for a key of a JSON value, as the catalogue says it: a type as
    `int>=0|null`, `list[str]`, `json:Class`, `word`, and what `word` may be."""

    type: str
    choices: tuple[Plain, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as one release has it. `kind`: `switch` takes no value, `pair` has negative forms,
    `value` and `append` take one. `choices` are enforced where there are any, `suggested` only
    named by its help; `variable` is the name in the environment that says the same."""

    name: str
    spellings: tuple[str, ...]
    negatives: tuple[str, ...]
    kind: str
    type: str
    nargs: str | int | None
    choices: tuple[Plain, ...]
    default: Plain
    deprecated: str
    removed: str
    variable: str
    suggested: tuple[Plain, ...] = ()

    @property
    def takes_value(self) -> bool:
        return self.kind not in ("switch", "pair")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model before it is planned. `billions` is the size in 10⁹ parameters;
    None is not known."""

    architecture: str | None
    billions: float | None
    size_source: str
    dtype: str | None
    precision: str | None
    config: Map | None

    @property
    def bytes_per_parameter(self) -> float | None:
        return BYTES_OF_PRECISION.get(self.precision or "")
