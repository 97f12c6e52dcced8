"""What released packages of an engine accept, as catalogs/engines/<engine>.yaml declares it."""

from __future__ import annotations

from servec.ir.shape import Anything, Bool, Choice, MapOf, OrNull, Record, declaration, key
from servec.ir.words import ENGINE, FLAG, TEXT, Item
from servec.source.located import At, Node, Span

VARYING = Anything()
"""One value, or a list of `{is: value, in: releases}`; the members of a list, each plain or so."""


@declaration
class Release:
    """A released package and how it was read."""

    span: Span
    read: At[str] = key(
        Choice(("parser", "static")), "by its own parser, or from its text", required=True
    )
    date: At[str] = key(TEXT, "when", required=True)
    sha256: At[str] | None = key(TEXT, "digest of the package")
    source: At[str] | None = key(TEXT, "what was read, where it is no package")


@declaration
class FlagFacts:
    """A flag over all releases."""

    name: At[str]
    span: Span
    within: Node | None = key(VARYING, "the releases that have it", name="in")
    kind: Node | None = key(VARYING, "value, switch, pair or append; value unless said")
    type: Node | None = key(VARYING, "the parser's type of the value")
    nargs: Node | None = key(VARYING, "how many values; one unless said")
    default: Node | None = key(VARYING, "the parser's default")
    required: Node | None = key(VARYING, "whether it must be given")
    deprecated: Node | None = key(VARYING, "that it is, or what to use")
    removed: Node | None = key(VARYING, "that it is only there to be refused, and why")
    variable: Node | None = key(VARYING, "the environment's name for it")
    also: Node | None = key(VARYING, "its other spellings")
    negative: Node | None = key(VARYING, "flags that say the opposite")
    choices: Node | None = key(VARYING, "the values that the parser enforces")
    suggested: Node | None = key(VARYING, "values that its help names")


@declaration
class FieldFacts:
    """A key of a mapping that a flag takes, over all releases whose parser checks its value."""

    span: Span
    within: Node | None = key(VARYING, "the releases that check it", name="in")
    type: Node | None = key(
        VARYING, "int, float, bool, str, null, list[…], dict[…], json:Class, word; `|` between them"
    )
    choices: Node | None = key(VARYING, "what `word` may be; of `word/i` in any case")


@declaration
class EngineCatalogue:
    """catalogs/engines/<engine>.yaml: what released packages accept."""

    span: Span
    engine: At[str] = key(ENGINE, "the engine", required=True)
    abbreviations: At[bool] | None = key(Bool(), "a flag may be cut short while it is unique")
    releases: tuple[Item[Release], ...] = key(
        MapOf(Record(Release), ENGINE), "the releases that were read, oldest first", required=True
    )
    flags: tuple[Item[FlagFacts], ...] = key(MapOf(Record(FlagFacts), FLAG), "flags, by name")
    variables: Node | None = key(VARYING, "names that it reads in the environment")
    methods: Node | None = key(VARYING, "methods of speculative decoding")
    tool_call_parsers: Node | None = key(VARYING, "parsers of tool calls")
    reasoning_parsers: Node | None = key(VARYING, "parsers of reasoning")
    configs: tuple[Item[Node], ...] = key(
        MapOf(VARYING), "the keys of each mapping that a flag's type names as `json:…`"
    )
    fields: tuple[Item[FieldFacts], ...] = key(
        MapOf(Record(FieldFacts)), "what such a key takes, as `Class.key`"
    )
    closed: Node | None = key(VARYING, "the classes that refuse other keys")
    quantization: tuple[Item[Node], ...] = key(
        MapOf(OrNull(VARYING)), "least compute capability of each quantization, times ten"
    )
