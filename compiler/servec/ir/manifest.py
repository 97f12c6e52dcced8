"""What a manifest declares of an engine (serve.d/<engine>/manifest.yaml): the plugin contract.

How servec calls the engine stands under `serve:` and is read by the records of `ir/serve.py`, where
something is compiled; what answers from the contract alone pays for no more.
"""

from __future__ import annotations

from servec.ir.shape import (
    Bool,
    Choice,
    Int,
    Later,
    ListOf,
    MapOf,
    Record,
    Text,
    declaration,
    key,
    rest,
)
from servec.ir.words import ENGINE, TEXT, Item
from servec.source.located import At, Map, Span

KNOB = Text(r"[a-z0-9][a-z0-9_]*\Z", "a parameter's name with underscores")
RELEASE = Text(r"[0-9]+\.[0-9]+\.[0-9]+\Z", 'a release in quotes, as "0.29.0"')
SUFFIX = Text(r"[A-Z][A-Z0-9_]*\Z", "capitals, digits and `_`")
VARIABLE = Text(r"[A-Z][A-Z0-9_]*\Z", "a variable's name in capitals")
PREFIX = Text(r"[A-Z][A-Z0-9_]*_\Z", "a prefix in capitals that ends with `_`")


@declaration
class Adds:
    """What a version added."""

    span: Span
    supported_algorithms: tuple[At[str], ...] = key(ListOf(TEXT), "methods it added")


@declaration
class VersionFeature:
    """A gate: what is there from a version on."""

    span: Span
    since: At[str] = key(RELEASE, "the first version", required=True)
    adds: Adds = key(Record(Adds), "what it added", required=True)


@declaration
class CapabilityKey:
    """How a value that the tool computes reaches the engine's environment."""

    span: Span
    suffix: At[str] = key(SUFFIX, "what follows the prefix in the variable's name", required=True)
    type: At[str] = key(Choice(("valued", "boolean")), "a value, or set or not", required=True)
    requires_any_of: tuple[tuple[At[str], ...], ...] = key(
        ListOf(ListOf(TEXT)), "groups of companions, of which one must be there in full"
    )


@declaration
class Feature:
    """A toggle of one engine alone."""

    span: Span
    env_var: At[str] = key(VARIABLE, "its variable, the prefix included", required=True)
    type: At[str] = key(Choice(("boolean", "enum", "int", "string")), "its kind", required=True)
    values: tuple[At[str], ...] = key(ListOf(TEXT), "what an enum may be")
    default: At[str] | None = key(TEXT, "what holds where nothing is said")


@declaration
class MetricsEndpoint:
    """Where metrics are read."""

    span: Span
    path: At[str] = key(TEXT, "path", required=True)
    port: At[int] | None = key(Int(1, 65535), "port; the served port unless said")
    format: At[str] = key(Choice(("prometheus", "json", "text")), "form", required=True)
    switch: At[str] | None = key(KNOB, "the parameter that has to be on for it")


@declaration
class Manifest:
    """serve.d/<engine>/manifest.yaml: the plugin contract, and under `serve:` how to call it."""

    span: Span
    engine: At[str] = key(ENGINE, "the folder's name", required=True)
    env_var_prefix: At[str] = key(PREFIX, "prefix of the engine's variables", required=True)
    speculative_decoding: At[bool] = key(Bool(), "whether it has any", required=True)
    supported_algorithms: tuple[At[str], ...] = key(
        ListOf(TEXT), "speculative methods of its newest version", required=True
    )
    algorithm_map: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT), "the engine's own name of each", required=True
    )
    hot_reload: At[bool] = key(
        Bool(), "whether a model can be changed while it runs", required=True
    )
    metrics_endpoint: MetricsEndpoint | None = key(Record(MetricsEndpoint), "where metrics are")
    dimension_map: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT), "benchmark dimension to the suffix of a variable"
    )
    capability_map: tuple[Item[CapabilityKey], ...] = key(
        MapOf(Record(CapabilityKey)), "capability to the suffix of a variable"
    )
    engine_features: tuple[Item[Feature], ...] = key(
        MapOf(Record(Feature)), "toggles of this engine alone"
    )
    min_version: At[str] | None = key(RELEASE, "lowest version, for messages")
    tag_marker: At[str] | None = key(
        TEXT, "what stands before the version in an image's tag, where no tag begins with it"
    )
    version_features: tuple[VersionFeature, ...] = key(
        ListOf(Record(VersionFeature)), "what is there from which version on"
    )
    serve: Map | None = key(Later("servec.ir.serve", "Serve"), "how servec calls it")


@declaration
class Aliases:
    """serve.d/aliases.yaml: other names of engines."""

    span: Span
    names: tuple[Item[At[str]], ...] = rest(TEXT, "the folder that a name means")
