"""serve.d/<engine>/extract.yaml -> how a release of the engine is read, as typed records.

    parsers:                                              ->  recipe.ways(Version("0.33.0"))
      - versions: ">=0.31"                                    (Way(parser=..., builder=...),)
        parser: package.parsing:Parser
        builder: package.arguments:make_parser

Rules carry ranges of versions. Of `parsers` those that hold are tried in their order; of
`requirements` and `stand_ins` all that hold count together; a reading that holds is tried after
those before it found nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from servec.catalog.versions import holds, parse_range
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.render import render_text
from servec.diag.suggest import nearest
from servec.extract.errors import ExtractionError
from servec.ir.shape import Choice, ListOf, MapOf, Record, Text, declaration, fields_of, key
from servec.ir.typed import read_record
from servec.ir.words import FLAG, RANGE, TEXT, Item
from servec.source.files import Files
from servec.source.located import At, Span
from servec.source.shipped import MARK, shipped_root
from servec.source.tree import Folder

FILE = "extract.yaml"
LISTS = (
    "variables", "methods", "tool_call_parsers", "reasoning_parsers", "quantization_deprecated",
    "attention_backends", "deprecation_notes",
)  # fmt: skip
MODULE = Text(r"[A-Za-z_]\w*(\.\w+)*\Z", "a module's name, as `package.module`")
OBJECT = Text(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*\Z", "`package.module:Class.function`")
PLACE = Text(r"(?!/)(?!.*\.\.)[^\x00]+\Z", "a path in the package; `**` and `*` match")
WORD = Text(r"[A-Za-z_]\w*\Z", "a name of Python")
REQUIREMENT = Text(r"[A-Za-z0-9][^\s;@]*\Z", 'a requirement, as "numpy==2.4.6"')
VARIABLE = Text(r"[A-Za-z_]\w*\Z", "a variable's name")


@declaration
class Requirements:
    """Packages of the environment that the parser runs in."""

    span: Span
    versions: At[str] | None = key(RANGE, "releases that need them")
    packages: tuple[At[str], ...] = key(ListOf(REQUIREMENT, 1), "requirements", required=True)


@declaration
class StandIns:
    """Modules that need not be installed: they are only imported, or only matter on a GPU."""

    span: Span
    versions: At[str] | None = key(RANGE, "releases that import them")
    modules: tuple[At[str], ...] = key(ListOf(MODULE, 1), "modules", required=True)
    absent: tuple[At[str], ...] = key(
        ListOf(MODULE), "attributes that a stand-in does not have, as `module.part.attribute`"
    )


@declaration
class Addition:
    """Arguments that the command adds to what the builder makes, read from a source file."""

    span: Span
    file: At[str] = key(PLACE, "the file", required=True)
    receiver: At[str] = key(WORD, "the variable whose `add_argument` is called", required=True)


@declaration
class Way:
    """One way to the release's own parser."""

    span: Span
    versions: At[str] | None = key(RANGE, "releases that have it")
    parser: At[str] = key(OBJECT, "the parser's class", required=True)
    builder: At[str] = key(OBJECT, "the function that adds the options", required=True)
    additions: tuple[Addition, ...] = key(ListOf(Record(Addition)), "what the command adds")


@declaration
class FlagFields:
    """Classes whose fields are flags: `max_len` is `--max-len`, unless its annotation says more."""

    span: Span
    files: tuple[At[str], ...] = key(ListOf(PLACE, 1), "files", required=True)
    classes: tuple[At[str], ...] = key(ListOf(WORD), "the classes; all unless said")
    annotation: At[str] | None = key(WORD, "only fields that are annotated with this, `A[...]`")
    name: At[str] | None = key(WORD, "the argument in an annotation that is the flag itself")
    aliases: At[str] | None = key(WORD, "the argument that lists further flags")
    hidden: At[str] | None = key(WORD, "the argument that says that the field is no flag")


@declaration
class TypeName:
    """The name of a type whose function is made by another: what it holds is part of the name."""

    span: Span
    function: At[str] = key(WORD, "the inner function's name", required=True)
    holds: At[str] = key(WORD, "its variable or parameter that holds the type", required=True)
    name: At[str] = key(Text(r"[^{}]*\{\}[^{}]*\Z", "text with `{}`"), "name", required=True)


@declaration
class Reading:
    """Where words of a list stand in the sources; all that is named here is joined."""

    span: Span
    versions: At[str] | None = key(RANGE, "releases that this is true of")
    files: tuple[At[str], ...] = key(ListOf(PLACE), "files to read")
    literal: At[str] | None = key(WORD, "the values of a `Literal` of this name")
    keys: tuple[At[str], ...] = key(ListOf(WORD), "keys of mappings, items of lists, by name")
    members: At[str] | None = key(WORD, "the constants of a class")
    calls: At[str] | None = key(WORD, "the names that calls of this function give")
    strings: At[str] | None = key(TEXT, "the strings that match a regular expression in full")
    notes: At[str] | None = key(TEXT, "the texts that a regular expression is found in")
    flag: At[str] | None = key(FLAG, "the choices of a flag")
    but: tuple[At[str], ...] = key(ListOf(TEXT), "words that are none")


@declaration
class FlagChoices:
    """The choices of a flag, where the parser does not say the same at every start."""

    span: Span
    versions: At[str] | None = key(RANGE, "releases that this is true of")
    flag: At[str] = key(FLAG, "the flag", required=True)
    words: tuple[Reading, ...] = key(ListOf(Record(Reading), 1), "its choices", required=True)


@declaration
class Quantization:
    """Names of quantization methods, and the class that tells the minimum of each."""

    span: Span
    versions: At[str] | None = key(RANGE, "releases that this is true of")
    names: tuple[Reading, ...] = key(ListOf(Record(Reading), 1), "names", required=True)
    files: tuple[At[str], ...] = key(ListOf(PLACE, 1), "where the table stands", required=True)
    tables: tuple[At[str], ...] = key(ListOf(WORD, 1), "mappings to classes", required=True)
    classes: tuple[At[str], ...] = key(ListOf(PLACE, 1), "the classes' files", required=True)
    method: At[str] = key(WORD, "the classes' method that gives the minimum", required=True)


@declaration
class Keys:
    """Classes whose fields are the keys of a JSON argument."""

    span: Span
    files: tuple[At[str], ...] = key(ListOf(PLACE, 1), "files", required=True)
    classes: tuple[At[str], ...] = key(ListOf(WORD, 1), "classes", required=True)


@declaration
class Recipe:
    """serve.d/<engine>/extract.yaml: how the engine's packages are read."""

    span: Span
    package: At[str] = key(
        Text(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?\Z", "a package's name"),
        "the distribution",
        required=True,
    )
    claimed: At[str] | None = key(
        Text(r"\{version\}[a-z0-9.+]*\Z", "`{version}` and a suffix"),
        "the version that the package is told it is; its own unless said",
    )
    environment: tuple[Item[At[str]], ...] = key(
        MapOf(TEXT, VARIABLE), "variables that the parser runs with"
    )
    requirements: tuple[Requirements, ...] = key(
        ListOf(Record(Requirements)), "what is installed beside the package"
    )
    stand_ins: tuple[StandIns, ...] = key(ListOf(Record(StandIns)), "what is not")
    parsers: tuple[Way, ...] = key(ListOf(Record(Way), 1), "ways to the parser", required=True)
    type_names: tuple[TypeName, ...] = key(ListOf(Record(TypeName)), "names of made types")
    static_flags: tuple[At[str], ...] = key(
        ListOf(PLACE), "files whose `add_argument` calls are read if no parser can be run"
    )
    static_fields: tuple[FlagFields, ...] = key(
        ListOf(Record(FlagFields)), "fields that are read as flags beside them"
    )
    flag_choices: tuple[FlagChoices, ...] = key(
        ListOf(Record(FlagChoices)), "choices that are read from the sources"
    )
    lists: tuple[Item[tuple[Reading, ...]], ...] = key(
        MapOf(ListOf(Record(Reading), 1), Choice(LISTS)), "what is read beside the parser"
    )
    quantization: tuple[Quantization, ...] = key(ListOf(Record(Quantization)), "quantization")
    config_keys: Keys | None = key(Record(Keys), "keys of JSON arguments")

    def ways(self, version: Version) -> tuple[Way, ...]:
        return tuple(way for way in self.parsers if holds(way, version))

    def installed(self, version: Version) -> tuple[str, ...]:
        rules = (rule for rule in self.requirements if holds(rule, version))
        return tuple(sorted({item.value for rule in rules for item in rule.packages}))

    def stood_in(self, version: Version) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The modules that are stood in for, and what their stand-ins do not have."""
        rules = [rule for rule in self.stand_ins if holds(rule, version)]
        modules = {item.value for rule in rules for item in rule.modules}
        absent = {item.value for rule in rules for item in rule.absent}
        return tuple(sorted(modules)), tuple(sorted(absent))


def recipe_of(engine: str, files: Files | None = None) -> Recipe:
    """The extraction recipe of an engine: the project's own before the shipped one."""
    if files is None:
        files = Files(Folder(shipped_root()), Findings())
    for mark in ("", MARK):
        path = f"{mark}serve.d/{engine}/{FILE}"
        if files.exists(path):
            return _read(path, files)
    own, shipped = files.listing("serve.d")
    paths = (path.removeprefix(MARK).split("/") for path in (*own, *shipped))
    known = sorted({path[1] for path in paths if path[2:] == [FILE]})
    near = nearest(engine, known)
    meant = f"did you mean `{near}`?" if near else f"there are: {', '.join(known)}"
    raise ExtractionError(
        f"there is no extraction recipe for engine `{engine}`: serve.d/{engine}/{FILE} is missing; "
        + meant
    )


def _read(path: str, files: Files) -> Recipe:
    findings = files.findings
    node = files.node(path)
    recipe = read_record(Recipe, node, findings) if node is not None else None
    for item in _records(recipe):
        _check_range(getattr(item, "versions", None), findings)
        _check_patterns(item, findings)
    wrong = [item for item in findings if item.span is not None and item.span.file == path]
    if recipe is None or wrong:
        raise ExtractionError(render_text(wrong, files.line).rstrip())
    return recipe


def _records(value: Any) -> Iterator[Any]:
    """A record and all records in it."""
    if isinstance(value, Item):
        yield from _records(value.value)
    elif names := fields_of(type(value)):
        yield value
        for name in names:
            if name != "span":
                yield from _records(getattr(value, name))
    elif isinstance(value, tuple) and not isinstance(value, At | Span):
        for item in value:
            yield from _records(item)


def _check_range(versions: At[str] | None, findings: Findings) -> None:
    if versions is not None and parse_range(versions.value) is None:
        _bad(versions, "a range of versions, as `>=0.9,<0.12`", findings)


def _check_patterns(record: Any, findings: Findings) -> None:
    if isinstance(record, Reading):
        for pattern in (record.strings, record.notes):
            if pattern is not None and not _compiles(pattern.value):
                _bad(pattern, "a regular expression", findings)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _bad(at: At[str], wanted: str, findings: Findings) -> None:
    findings.add(codes.BAD_VALUE, at.span, where="this file", wanted=wanted, value=f"`{at.value}`")
