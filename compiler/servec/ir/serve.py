"""How servec calls an engine: `serve:` of its manifest, what a compiler needs beyond the contract.

Lists of rules that carry `versions` are ordered, the newest first: the first whose range has the
engine's version holds, and an unknown version takes the first.
"""

from __future__ import annotations

from servec.ir.manifest import KNOB, PREFIX, VARIABLE
from servec.ir.serve_start import FILE, ApiKey, Devices, KvEvents, Roles, Way
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
    declaration,
    key,
)
from servec.ir.words import FLAG, RULE_RANGE, TEXT, VERSION, Item
from servec.source.located import At, Map, Node, Span

VARIABLE_OR_PREFIX = Text(r"[A-Z][A-Z0-9_]*\Z", "a variable's name, or its beginning")
OPTION = Text(r"[a-z0-9][a-z0-9_]*(\.[a-z0-9_]+)?\Z", "a parameter, or a key of one")
REGISTRIES = ("methods", "tool_call_parsers", "reasoning_parsers", "quantization")
SPECULATIVE_WORDS = (
    "algorithm", "model", "num_tokens", "num_steps", "topk", "draft_sample_method",
    "rejection_sample_method", "draft_tp",
)  # fmt: skip
TOPOLOGY_KEYS = ("tp", "pp", "dp", "ep", "cp", "dcp", "enable_dp_attention")


@declaration
class Call:
    """How the program of some versions is called."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that are called this way")
    program: tuple[At[str], ...] = key(ListOf(TEXT, 1), "program and first words", required=True)
    model: At[str] | None = key(FLAG, "flag of the model; it is a bare word unless said")
    refused: tuple[Item[At[str]], ...] = key(
        MapOf(RULE_RANGE, TEXT),
        "flags that it refuses though its parser has them, and the versions that do; `--flag=` is "
        "one with its value tied to it",
    )
    other: tuple[At[str], ...] = key(
        ListOf(TEXT), "words behind the program that make it another command"
    )


@declaration
class EntryPoint:
    """The program of the engine's own images, which a container's words follow."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions whose images start it")
    program: tuple[At[str], ...] = key(ListOf(TEXT, 1), "program and first words", required=True)


@declaration
class OwnFlags:
    """The flags that servec gives a value itself."""

    span: Span
    host: At[str] = key(FLAG, "bind address", required=True)
    port: At[str] = key(FLAG, "port", required=True)
    served_model_name: At[str] | None = key(FLAG, "name that clients ask for")
    served_name_is_new: At[bool] | None = key(
        Bool(), "an unknown version is taken not to have the flag of the name"
    )
    threads: At[str] | None = key(FLAG, "CPU threads; the engine's own number unless said")


@declaration
class Health:
    """How to ask whether the server is ready."""

    span: Span
    path: At[str] = key(TEXT, "path", required=True)
    timeout_seconds: At[int] | None = key(Int(1), "what an answer may take; 1 unless said")


@declaration
class Environment:
    """A container that is told everything by variables: prefix and parameter in capitals."""

    span: Span
    tag_has: At[str] | None = key(
        TEXT, "what the tag of such an image has; all images of the engine unless said"
    )
    prefix: At[str] | None = key(PREFIX, "its prefix; the engine's unless said")
    model: At[str] = key(VARIABLE, "the variable of the model", required=True)
    health: Health | None = key(Record(Health), "readiness; the engine's unless said")


@declaration
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
    value: At[str] | None = key(TEXT, "the flag's value, whatever the number is")
    versions: At[str] | None = key(RULE_RANGE, "versions that have it")


@declaration
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
    dp_over_nodes: At[str] | None = key(
        Choice(("all", "attention")), "which data parallelism may span nodes; `all` unless said"
    )
    cut_by: tuple[Item[tuple[At[str], ...]], ...] = key(
        MapOf(ListOf(KNOB), Choice(("dense", "experts"))),
        "parameters that say otherwise over how many GPUs the dense layers, or the experts, go",
    )


@declaration
class Negatives:
    """Which switches have a negative form."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that this is true of")
    prefix: At[str] = key(TEXT, "what stands before the name, as `no-`", required=True)
    only: tuple[At[str], ...] = key(ListOf(KNOB), "the switches that have one")
    all_but: tuple[At[str], ...] = key(ListOf(KNOB), "or the few that have none")


@declaration
class Level:
    """A short word with a number, `-O3`, that the parser takes for a flag, or for a key of one."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that take it so")
    word: At[str] = key(FLAG, "the short word", required=True)
    flag: At[str] = key(FLAG, "the flag that it becomes", required=True)
    key: At[str] | None = key(KNOB, "the key of the flag's JSON value that it becomes")


@declaration
class ItemKeys:
    """A flag of which each word is `a=b`, or a JSON object with these keys."""

    span: Span
    required: tuple[At[str], ...] = key(ListOf(TEXT, 1), "keys that it has", required=True)
    optional: tuple[At[str], ...] = key(ListOf(TEXT), "keys that it may have")


@declaration
class SyntaxRules:
    """What the engine's parser takes beside exact flags."""

    span: Span
    underscores: At[bool] | None = key(Bool(), "`_` for `-` in a flag's name")
    dotted: At[bool] | None = key(Bool(), "`--flag.key value` for one key of a JSON value")
    dotted_since: At[str] | None = key(VERSION, "the first version that takes that")
    pairs: At[str] | None = key(RULE_RANGE, "versions that take `a=1,b=2` for JSON")
    topics: At[str] | None = key(RULE_RANGE, "versions that take `--help=topic`")
    suffixes: At[str] | None = key(RULE_RANGE, "versions that take `8k` for a number in JSON")
    items: tuple[Item[ItemKeys], ...] = key(
        MapOf(Record(ItemKeys), FLAG), "flags of which each word is `a=b`, or a JSON object"
    )
    levels: tuple[Level, ...] = key(ListOf(Record(Level)), "short words with a number")


@declaration
class Registry:
    """A parameter whose values are names that the release registers."""

    span: Span
    of: At[str] = key(Choice(REGISTRIES), "the catalogue's list of them", required=True)
    unless: At[str] | None = key(KNOB, "a parameter that adds names of one's own")
    open: At[bool] | None = key(Bool(), "plugins register more: another name is a warning")


@declaration
class Contradiction:
    """Parameters that exclude one another. In `when`, `"*"` is any value, `">1"` and `"<1"` are
    numbers above and below, null is none, and a list is any of its values; with `less`, the first
    parameter is smaller than the second too. `env.NAME` is a variable of the spec,
    `parameter.key.key` a key of a file of options."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that this is true of")
    when: Map = key(Parameters(), "the parameters, with their values", required=True)
    less: tuple[At[str], ...] = key(ListOf(KNOB, 2, 2), "two numbers of which one is too small")
    equal: tuple[At[str], ...] = key(ListOf(TEXT, 2, 2), "two that may not be the same")
    unequal: tuple[At[str], ...] = key(ListOf(TEXT, 2, 2), "two that have to be the same")
    parser: At[bool] | None = key(Bool(), "the parser refuses it; else the server, at its start")
    says: At[str] = key(TEXT, "what is wrong", required=True)
    advice: At[str] = key(TEXT, "what to do", required=True)


@declaration
class Rename:
    """A parameter that some versions know under other names, with the same meaning."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that want the new form")
    knob: At[str] = key(KNOB, "the parameter as it is written", required=True)
    value: Node | None = key(Anything(), "only with this value")
    become: Map = key(Parameters(), "what it becomes; null takes the value as it is", required=True)


@declaration
class Lists:
    """How a list is written where it is not one flag and several words."""

    span: Span
    repeated: tuple[At[str], ...] = key(ListOf(KNOB), "the flag again for each item")
    json: tuple[At[str], ...] = key(ListOf(KNOB), "one word of JSON")


@declaration
class RequirementRule:
    """What a requirement turns in some versions; a rule without `knob` needs nothing turned."""

    span: Span
    versions: At[str] | None = key(RULE_RANGE, "versions that this is true of")
    knob: At[str] | None = key(KNOB, "the parameter")
    value: Node | None = key(Anything(), "the value that meets it")
    floor: At[bool] | None = key(Bool(), "the requirement's own number is the least value")
    default: At[int] | None = key(Int(), "the engine's default, never lowered")
    unlimited: At[int] | None = key(Int(-1), "the value that stands for no limit")


@declaration
class DeterministicSetting:
    """One parameter of `deterministic: true`."""

    span: Span
    knob: At[str] = key(KNOB, "the parameter", required=True)
    value: Node = key(Anything(), "its value", required=True)
    unless_set: At[bool] | None = key(Bool(), "only where nothing else sets it")


@declaration
class Deterministic:
    """What `deterministic: true` is for this engine."""

    span: Span
    settings: tuple[DeterministicSetting, ...] = key(
        ListOf(Record(DeterministicSetting)), "parameters"
    )
    env: tuple[Item[At[str]], ...] = key(MapOf(TEXT), "environment that nothing may undo")


@declaration
class Secrets:
    """What must never stand in a source or an artifact."""

    span: Span
    flags: tuple[At[str], ...] = key(ListOf(KNOB), "parameters")
    env: tuple[At[str], ...] = key(ListOf(TEXT), "environment names")


@declaration
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
    otherwise: tuple[Item[tuple[Item[At[str]], ...]], ...] = key(
        MapOf(MapOf(KNOB, Choice(SPECULATIVE_WORDS))), "names that an algorithm has otherwise"
    )
    needs: tuple[Item[tuple[At[str], ...]], ...] = key(
        MapOf(ListOf(Choice(SPECULATIVE_WORDS))), "words that an algorithm does not go without"
    )
    defaults: tuple[Item[Map], ...] = key(
        MapOf(Parameters()), "words that an algorithm has where the spec has none"
    )


@declaration
class AdapterRules:
    """How LoRA adapters are said to the engine."""

    span: Span
    list: At[str] = key(KNOB, "the parameter that lists them", required=True)
    paths: At[bool] | None = key(
        Bool(), "they are listed as paths with commas; as name=path unless said"
    )
    enable: At[str] | None = key(KNOB, "the switch that is needed beside it")
    max_rank: At[str] | None = key(KNOB, "the parameter of the largest rank")
    ranks: tuple[At[int], ...] = key(ListOf(Int(1)), "the ranks that it may be, ascending")
    demands: Map | None = key(Parameters(), "what it wants where they are on and none is listed")


@declaration
class Serve:
    """How servec calls the engine: what a compiler needs beyond the plugin contract."""

    span: Span
    calls: tuple[Call, ...] = key(ListOf(Record(Call), 1), "how it is called")
    known_calls: tuple[Call, ...] = key(
        ListOf(Record(Call)), "other ways that people call it, of command lines to be checked"
    )
    entry_points: tuple[EntryPoint, ...] = key(
        ListOf(Record(EntryPoint)), "what its own images start, as far as it is known"
    )
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
    syntax: SyntaxRules | None = key(Record(SyntaxRules), "what its parser takes")
    registries: tuple[Item[Registry], ...] = key(
        MapOf(Record(Registry), OPTION), "parameters whose values the release registers"
    )
    configs: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT, KNOB), "the keys of a JSON parameter, where its type does not tell them"
    )
    strict_configs: tuple[Item[At[str]], ...] = key(
        MapOf(RULE_RANGE), 'versions that refuse unknown keys of a mapping; `"*"` is any other'
    )
    contradictions: tuple[Contradiction, ...] = key(
        ListOf(Record(Contradiction)), "parameters that exclude one another"
    )
    renamed: tuple[Rename, ...] = key(
        ListOf(Record(Rename)), "parameters that some versions know under other names"
    )
    successors: tuple[Item[At[str]], ...] = key(
        MapOf(FLAG, TEXT), "variables and flags of older versions -> the flag to use"
    )
    files: tuple[Item[At[str]], ...] = key(
        MapOf(FILE, KNOB), "parameters that name a file of options, and what servec calls the file"
    )
    nodes: tuple[Way, ...] = key(
        ListOf(Record(Way)), "ways of serving over several nodes, the preferred one first"
    )
    roles: Roles | None = key(Record(Roles), "servers that do one part of a request")
    api_key: tuple[ApiKey, ...] = key(ListOf(Record(ApiKey)), "how it is given its API key")
    kv_events: KvEvents | None = key(Record(KvEvents), "events of the KV cache")
    devices: Devices | None = key(Record(Devices), "its devices")
    help: tuple[At[str], ...] = key(ListOf(TEXT), "words after the program that show its help")
    requirements: tuple[Item[tuple[RequirementRule, ...]], ...] = key(
        MapOf(ListOf(Record(RequirementRule), 1)), "what each requirement turns"
    )
    deterministic: Deterministic | None = key(Record(Deterministic), "equal answers")
    speculative: SpeculativeRules | None = key(Record(SpeculativeRules), "speculative decoding")
    adapters: AdapterRules | None = key(Record(AdapterRules), "LoRA adapters")
    health: Health = key(Record(Health), "readiness", required=True)
    secrets: Secrets | None = key(Record(Secrets), "what is never written")
    reads: tuple[At[str], ...] = key(ListOf(PREFIX), "prefixes of further variables that it reads")
    refused_env: tuple[At[str], ...] = key(
        ListOf(VARIABLE_OR_PREFIX),
        "variables that open the server or that servec decides; one "
        "that ends with `_` stands for all that begin so",
    )
    owned: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT, KNOB), "parameters that a key of the spec stands for"
    )
