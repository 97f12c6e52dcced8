"""What a manifest declares: all that is known of an engine (serve.d/<engine>/manifest.yaml).

Lists of rules that carry `versions` are ordered, the newest first: the first whose range has the
engine's version holds, and an unknown version takes the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from servec.ir.shape import (
    Anything,
    Bool,
    Choice,
    Int,
    ListOf,
    MapOf,
    Parameters,
    Record,
    Text,
    key,
)
from servec.ir.words import FLAG, RANGE, TEXT, VERSION, Item
from servec.source.located import At, Map, Node, Span

KNOB = Text(re.compile(r"[a-z0-9][a-z0-9_]*\Z"), "a parameter's name with underscores")
RELEASE = Text(re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\Z"), 'a release in quotes, as "0.29.0"')
SUFFIX = Text(re.compile(r"[A-Z][A-Z0-9_]*\Z"), "capitals, digits and `_`")
VARIABLE = Text(re.compile(r"[A-Z][A-Z0-9_]*\Z"), "a variable's name in capitals")
PREFIX = Text(re.compile(r"[A-Z][A-Z0-9_]*_\Z"), "a prefix in capitals that ends with `_`")
FILE = Text(re.compile(r"[a-z0-9][a-z0-9._-]*\Z"), "a file's name")
SPECULATIVE_WORDS = (
    "algorithm", "model", "num_tokens", "num_steps", "topk", "draft_sample_method",
    "rejection_sample_method", "draft_tp",
)  # fmt: skip
TOPOLOGY_KEYS = ("tp", "pp", "dp", "ep", "cp", "dcp", "enable_dp_attention")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adds:
    """What a version added."""

    span: Span
    supported_algorithms: tuple[At[str], ...] = key(ListOf(TEXT), "methods it added")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFeature:
    """A gate: what is there from a version on."""

    span: Span
    since: At[str] = key(RELEASE, "the first version", required=True)
    adds: Adds = key(Record(Adds), "what it added", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityKey:
    """How a value that the tool computes reaches the engine's environment."""

    span: Span
    suffix: At[str] = key(SUFFIX, "what follows the prefix in the variable's name", required=True)
    type: At[str] = key(Choice(("valued", "boolean")), "a value, or set or not", required=True)
    requires_any_of: tuple[tuple[At[str], ...], ...] = key(
        ListOf(ListOf(TEXT)), "groups of companions, of which one must be there in full"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A toggle of one engine alone."""

    span: Span
    env_var: At[str] = key(VARIABLE, "its variable, the prefix included", required=True)
    type: At[str] = key(Choice(("boolean", "enum", "int", "string")), "its kind", required=True)
    values: tuple[At[str], ...] = key(ListOf(TEXT), "what an enum may be")
    default: At[str] | None = key(TEXT, "what holds where nothing is said")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsEndpoint:
    """Where metrics are read."""

    span: Span
    path: At[str] = key(TEXT, "path", required=True)
    port: At[int] | None = key(Int(1, 65535), "port; the served port unless said")
    format: At[str] = key(Choice(("prometheus", "json", "text")), "form", required=True)
    switch: At[str] | None = key(KNOB, "the parameter that has to be on for it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How the program of some versions is called."""

    span: Span
    versions: At[str] | None = key(RANGE, "versions that are called this way")
    program: tuple[At[str], ...] = key(ListOf(TEXT, 1), "program and first words", required=True)
    model: At[str] | None = key(FLAG, "flag of the model; it is a bare word unless said")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFlags:
    """The flags that servec gives a value itself."""

    span: Span
    host: At[str] = key(FLAG, "bind address", required=True)
    port: At[str] = key(FLAG, "port", required=True)
    served_model_name: At[str] | None = key(FLAG, "name that clients ask for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How to ask whether the server is ready."""

    span: Span
    path: At[str] = key(TEXT, "path", required=True)
    timeout_seconds: At[int] | None = key(Int(1), "what an answer may take; 1 unless said")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A container that is told everything by variables: prefix and parameter in capitals."""

    span: Span
    tag_has: At[str] | None = key(
        TEXT, "what the tag of such an image has; all images of the engine unless said"
    )
    prefix: At[str] | None = key(PREFIX, "its prefix; the engine's unless said")
    model: At[str] = key(VARIABLE, "the variable of the model", required=True)
    health: Health | None = key(Record(Health), "readiness; the engine's unless said")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFlag:
    """One flag of the topology; it appears where the value is above 1."""

    span: Span
    of: At[str] = key(
        Choice((*TOPOLOGY_KEYS, "attention_dp", "plain_dp")),
        "whose value; `attention_dp` and `plain_dp` are dp with and without attention alone",
        required=True,
    )
    flag: At[str] = key(FLAG, "the flag", required=True)
    bare: At[bool] | None = key(Bool(), "the flag takes no value")
    versions: At[str] | None = key(RANGE, "versions that have it")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRules:
    """How the engine spells and counts the topology."""

    span: Span
    spellings: tuple[Item[tuple[At[str], ...]], ...] = key(
        MapOf(ListOf(KNOB), Choice((*TOPOLOGY_KEYS, "attention_dp"))),
        "parameters that are the topology, beside servec's own words; `attention_dp` is dp in the "
        "attention alone",
    )
    tp_counts: At[str] | None = key(
        Choice(("replica", "all")),
        "with attention data parallelism tp's flag counts one copy, or all GPUs; no such mode "
        "unless said",
    )
    ep_divides_tp: At[bool] | None = key(
        Bool(), "the engine wants tp's flag to be a multiple of ep"
    )
    unknown_as: At[str] | None = key(VERSION, "the version whose flags all versions understand")
    dcp_follows_cp: At[bool] | None = key(Bool(), "cp is for decoding too, unless dcp is given")
    flags: tuple[TopologyFlag, ...] = key(ListOf(Record(TopologyFlag)), "in order", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Negatives:
    """Which switches have a negative form."""

    span: Span
    versions: At[str] | None = key(RANGE, "versions that this is true of")
    prefix: At[str] = key(TEXT, "what stands before the name, as `no-`", required=True)
    only: tuple[At[str], ...] = key(ListOf(KNOB), "the switches that have one")
    all_but: tuple[At[str], ...] = key(ListOf(KNOB), "or the few that have none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """How a list is written where it is not one flag and several words."""

    span: Span
    repeated: tuple[At[str], ...] = key(ListOf(KNOB), "the flag again for each item")
    json: tuple[At[str], ...] = key(ListOf(KNOB), "one word of JSON")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementRule:
    """What a requirement turns in some versions; a rule without `knob` needs nothing turned."""

    span: Span
    versions: At[str] | None = key(RANGE, "versions that this is true of")
    knob: At[str] | None = key(KNOB, "the parameter")
    value: Node | None = key(Anything(), "the value that meets it")
    floor: At[bool] | None = key(Bool(), "the requirement's own number is the least value")
    default: At[int] | None = key(Int(), "the engine's default, never lowered")
    unlimited: At[int] | None = key(Int(-1), "the value that stands for no limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterministicSetting:
    """One parameter of `deterministic: true`."""

    span: Span
    knob: At[str] = key(KNOB, "the parameter", required=True)
    value: Node = key(Anything(), "its value", required=True)
    unless_set: At[bool] | None = key(Bool(), "only where nothing else sets it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deterministic:
    """What `deterministic: true` is for this engine."""

    span: Span
    settings: tuple[DeterministicSetting, ...] = key(
        ListOf(Record(DeterministicSetting)), "parameters"
    )
    env: tuple[Item[At[str]], ...] = key(MapOf(TEXT), "environment that nothing may undo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What must never stand in a source or an artifact."""

    span: Span
    flags: tuple[At[str], ...] = key(ListOf(KNOB), "parameters")
    env: tuple[At[str], ...] = key(ListOf(TEXT), "environment names")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculativeRules:
    """How speculative decoding is said to the engine (`strategy/speculative.py`)."""

    span: Span
    strategy: At[str] = key(
        Choice(("json_flag", "discrete_flags", "options_file")),
        "the way that it is said in",
        required=True,
    )
    knob: At[str] | None = key(
        KNOB, "the parameter that holds it all, for json_flag and options_file"
    )
    inside: At[str] | None = key(KNOB, "the key of the file that holds it, for options_file")
    beside: Map | None = key(Parameters(), "what stands in the file beside it")
    names: tuple[Item[At[str]], ...] = key(
        MapOf(KNOB, Choice(SPECULATIVE_WORDS)), "the engine's name of each word, in order"
    )
    defaults: tuple[Item[Map], ...] = key(
        MapOf(Parameters()), "words that an algorithm has where the spec has none"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRules:
    """How LoRA adapters are said to the engine."""

    span: Span
    list: At[str] = key(KNOB, "the parameter that lists them as name=path", required=True)
    enable: At[str] | None = key(KNOB, "the switch that is needed beside it")
    max_rank: At[str] | None = key(KNOB, "the parameter of the largest rank")
    ranks: tuple[At[int], ...] = key(ListOf(Int(1)), "the ranks that it may be, ascending")
    demands: Map | None = key(Parameters(), "what the engine wants said beside them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """How servec calls the engine: what a compiler needs beyond the plugin contract."""

    span: Span
    calls: tuple[Call, ...] = key(ListOf(Record(Call), 1), "how it is called")
    flags: OwnFlags | None = key(Record(OwnFlags), "flags that servec gives itself")
    environment_only: Environment | None = key(
        Record(Environment), "its container owns the entry point and is told by variables"
    )
    flag_words: At[str] | None = key(Choice(("-", "_")), "what joins the words of a flag; `-`")
    port: At[int] = key(Int(1, 65535), "the port it serves on", required=True)
    always: Map | None = key(Parameters(), "parameters of every server, unless told otherwise")
    topology: TopologyRules = key(Record(TopologyRules), "parallelism", required=True)
    negatives: tuple[Negatives, ...] = key(ListOf(Record(Negatives)), "how `false` is written")
    dtype: At[str] | None = key(KNOB, "the parameter of the weights' number format")
    lists: Lists | None = key(Record(Lists), "how lists are written")
    files: tuple[Item[At[str]], ...] = key(
        MapOf(FILE, KNOB), "parameters that name a file of options, and what servec calls the file"
    )
    requirements: tuple[Item[tuple[RequirementRule, ...]], ...] = key(
        MapOf(ListOf(Record(RequirementRule), 1)), "what each requirement turns"
    )
    deterministic: Deterministic | None = key(Record(Deterministic), "equal answers")
    speculative: SpeculativeRules | None = key(Record(SpeculativeRules), "speculative decoding")
    adapters: AdapterRules | None = key(Record(AdapterRules), "LoRA adapters")
    health: Health = key(Record(Health), "readiness", required=True)
    secrets: Secrets | None = key(Record(Secrets), "what is never written")
    owned: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT, KNOB), "parameters that a key of the spec stands for"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """serve.d/<engine>/manifest.yaml: the plugin contract, and under `serve:` how to call it."""

    span: Span
    engine: At[str] = key(TEXT, "the folder's name", required=True)
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
    serve: Serve | None = key(Record(Serve), "how servec calls it")
