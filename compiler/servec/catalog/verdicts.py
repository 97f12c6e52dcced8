"""What an engine's version says of a command line -> verdicts, each at a word.

    vllm 0.10.0, --nnodes 2 --tool-call-parser openai
      -> SV0615 at 0: vllm 0.10.0 has no flag `--nnodes`; it is there since 0.11.1
         SV0621 at 3: vllm 0.10.0 knows no parser of tool calls `openai`

Between two releases that were read, a verdict holds where both say so. An unknown version makes
notes of all; one beyond the catalogue, or read without its parser, warnings of errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from servec.catalog.calls import Called
from servec.catalog.command_line import (
    HOLE,
    Fault,
    Kind,
    Reading,
    Syntax,
    Use,
    read_words,
    value_fault,
)
from servec.catalog.given import given, keyed, knob_of, meets, number, parsed
from servec.catalog.history import history_of, instead, under_new_names
from servec.catalog.json_values import Refused, refused
from servec.catalog.syntax import syntax_of
from servec.catalog.versions import NEWEST, holds, in_range
from servec.diag import codes
from servec.diag.findings import Code, Finding, Places, Severity
from servec.diag.suggest import nearest, spelt_out
from servec.source.located import Plain, Span

if TYPE_CHECKING:
    from servec.catalog.released import Released, ReleasedAt
    from servec.ir.facts import Flag
    from servec.ir.serve import Contradiction, Serve

REGISTRIES = {
    "methods": "method of speculative decoding",
    "tool_call_parsers": "parser of tool calls",
    "reasoning_parsers": "parser of reasoning",
    "quantization": "quantization",
}


class Verdict(NamedTuple):
    """A finding at a word of a command line, before it has a place in a source."""

    code: Code
    place: int
    arguments: tuple[tuple[str, object], ...]
    suggestion: str | None = None
    severity: Severity | None = None
    inside: str | None = None
    """What of the flag's value it is about, as `a.b[0]`: all of it with "", with None the flag."""
    of_key: bool = False

    def at(self, span: Span | None, also: Places = ()) -> Finding:
        """The finding at a place."""
        severity = self.severity or self.code.severity
        return Finding(self.code, severity, span, self.arguments, also, self.suggestion)


def judge(
    words: Sequence[str],
    serve: Serve,
    engine: str,
    released: Released,
    version: Version | None,
    call: Called,
    at_start: Severity = Severity.WARNING,
    beside: Mapping[str, Plain] | None = None,
) -> list[Verdict]:
    """Verdicts about the words behind a program. `at_start` is the severity of what the parser
    accepts and the server refuses when it starts; `beside` is what is said in other ways than by
    flags, as `env.NAME` and keys of a file of options."""
    syntax = syntax_of(serve, released, version, call.positionals)
    told = [
        list(
            _Judge(
                words,
                serve,
                engine,
                released,
                version,
                here,
                syntax,
                at_start,
                beside,
                call.refused,
            ).verdicts()
        )
        for here in released.around(version)
    ]
    agreed = told[0]
    for others in told[1:]:
        pairs = ((one, other) for one in agreed for other in others if _same(one, other))
        agreed = [min(pair, key=_severity) for pair in pairs]
    return [_softened(verdict, released, version) for verdict in agreed]


def _same(one: Verdict, other: Verdict) -> bool:
    """Whether two releases say the same of a word: deprecated in one may be gone in the next."""
    is_going = {one.code, other.code} == {codes.DEPRECATED, codes.UNKNOWN_FLAG}
    return one.place == other.place and (one.code is other.code or is_going)


def _severity(verdict: Verdict) -> Severity:
    return verdict.severity or verdict.code.severity


def _softened(verdict: Verdict, released: Released, version: Version | None) -> Verdict:
    own = _severity(verdict)
    if version is None:
        own = Severity.NOTE
    elif not released.covers(version) or not released.was_run(version):
        own = min(own, Severity.WARNING)
    return verdict._replace(severity=own)


class _Judge:
    def __init__(
        self,
        words: Sequence[str],
        serve: Serve,
        engine: str,
        released: Released,
        version: Version | None,
        here: ReleasedAt,
        syntax: Syntax,
        at_start: Severity,
        beside: Mapping[str, Plain] | None,
        refused: Mapping[str, str],
    ) -> None:
        self.refused = refused
        self.at_start = at_start
        self.syntax = syntax
        self.words = words
        self.serve = serve
        self.engine = engine
        self.released = released
        self.version = version
        self.here = here
        self.reading: Reading = read_words(words, here, syntax)
        self.given = {**(beside or {}), **dict(given(self.reading))}

    def verdicts(self) -> Iterator[Verdict]:
        for fault in self.reading.faults:
            yield self.fault(fault)
        seen: set[str] = set()
        for use in self.reading.uses:
            yield from self.use(use)
            if use.flag.kind != "append" and not use.key and use.flag.name in seen:
                yield self.verdict(codes.GIVEN_TWICE, use.place, flag=use.flag.name)
            seen.add(use.flag.name)
        yield from self.registered()
        for rule in self.serve.contradictions:
            if holds(rule, self.version):
                yield from self.contradiction(rule)

    def verdict(
        self, code: Code, place: int, suggestion: str | None = None, **arguments: object
    ) -> Verdict:
        shown = str(self.version) if self.version else "of unknown version"
        named = {"engine": self.engine, "version": shown, **arguments}
        return Verdict(code, place, tuple(named.items()), suggestion)

    def fault(self, fault: Fault) -> Verdict:
        match fault.kind:
            case Kind.UNKNOWN:
                return self.unknown(fault)
            case Kind.AMBIGUOUS:
                others = " or ".join(f"`{other}`" for other in fault.others)
                word = fault.word.partition("=")[0]
                return self.verdict(codes.AMBIGUOUS_FLAG, fault.place, word=word, others=others)
            case Kind.STRAY:
                return self.verdict(codes.STRAY_WORD, fault.place, word=fault.word)
            case Kind.COUNT:
                return self.verdict(
                    codes.BAD_FLAG_VALUE,
                    fault.place,
                    flag=fault.others[0],
                    wanted=f"wants {fault.wanted}",
                    value=_shown(fault.word.partition("=")[2]) or "none",
                    advice="",
                )

    def unknown(self, fault: Fault) -> Verdict:
        level = next((flag for word, flag, _ in self.syntax.levels if word == fault.word), "")
        if level:
            said = {
                "history": " without a number",
                "advice": f"write `{fault.word}2`, or `{level}`",
            }
            return self.verdict(codes.UNKNOWN_FLAG, fault.place, flag=fault.word, **said)
        history = history_of(self.released, _has_flag(fault.word))
        renamed = under_new_names(
            fault.word, self._value_behind(fault), self.serve, self.here, self.version
        ) or instead(fault.word, self.serve, self.released, self.version)
        near = None if history or renamed else self.here.nearest_flag(fault.word)
        advice = renamed or ("take it out, or take another version" if history else "")
        return self.verdict(
            codes.UNKNOWN_FLAG, fault.place, near, flag=fault.word, history=history, advice=advice
        )

    def _value_behind(self, fault: Fault) -> str:
        """The value that an unknown flag seems to have; `true` where it has none."""
        _, tied, value = self.words[fault.place].partition("=")
        behind = self.words[fault.place + 1 : fault.place + 2]
        return value if tied else next((word for word in behind if word[:1] != "-"), "true")

    def use(self, use: Use) -> Iterator[Verdict]:
        if use.abbreviated:
            word = use.word.partition("=")[0]
            yield self.verdict(codes.CUT_SHORT, use.place, word=word, flag=use.spelling)
        versions = self.refused.get(use.flag.name + ("=" if "=" in use.word else ""), "")
        if versions and in_range(self.version or NEWEST, versions):
            yield self.verdict(
                codes.UNKNOWN_FLAG,
                use.place,
                flag=use.flag.name,
                history=": the program refuses it, though its parser has it",
                advice="give the value as a bare word, without the flag",
            )
        if use.flag.removed or use.flag.deprecated:
            told = use.flag.removed or use.flag.deprecated
            advice = told if told not in ("deprecated", "removed") else ""
            advice = advice or instead(use.flag.name, self.serve, self.released, self.version)
            if use.flag.removed:
                yield self.verdict(
                    codes.UNKNOWN_FLAG,
                    use.place,
                    flag=use.flag.name,
                    history=": it was removed",
                    advice=advice or "take it out",
                )
            else:
                yield self.verdict(codes.DEPRECATED, use.place, flag=use.flag.name, advice=advice)
        if use.flag.takes_value:
            yield from self.values(use)

    def values(self, use: Use) -> Iterator[Verdict]:
        for value in [json.dumps(keyed(use, self.syntax))] if use.key else use.values:
            wanted = value_fault(use.flag, value, self.syntax)
            if wanted:
                allowed = [*map(str, (*use.flag.choices, *use.flag.suggested))]
                near = nearest(value, allowed) or spelt_out(value, allowed)
                yield self.bad_value(use, "", wanted, value, near)
            elif owner := self.owner(use.flag):
                for item in refused(parsed(value, self.syntax), owner, self.here):
                    yield from self.inside(use, item)

    def owner(self, flag: Flag) -> str:
        """The class that a flag's JSON value is read into, or nothing."""
        named = {item.key.value: item.value.value for item in self.serve.configs}
        return named.get(knob_of(flag.name), flag.type.rstrip("?").partition(":")[2])

    def bad_value(
        self, use: Use, path: str, wanted: str, value: str, near: str | None = None
    ) -> Verdict:
        flag = f"{use.flag.name}.{path}" if path else use.flag.name
        shown = _shown(value) or "an empty word"
        said = {"flag": flag, "wanted": wanted, "value": shown, "advice": ""}
        found = self.verdict(codes.BAD_FLAG_VALUE, use.place, near, **said)
        return found._replace(inside=path)

    def inside(self, use: Use, item: Refused) -> Iterator[Verdict]:
        """A key or a value inside a JSON value."""
        value = item.value if isinstance(item.value, str) else json.dumps(item.value)
        if HOLE in value or "\\u0000" in value:
            return
        near = nearest(value, item.known)
        if item.wanted:
            yield self.bad_value(use, item.path, item.wanted, value, near)
            return
        outer = item.path.removesuffix(value).rstrip(".")
        where = f" of `{use.flag.name}{'.' if outer else ''}{outer}`"
        history = history_of(self.released, _has_key(item.owner, value))
        said = {"what": "key", "name": value, "where": where, "history": history, "advice": ""}
        severity = None if self.refuses_keys(item.owner) else Severity.WARNING
        found = self.verdict(codes.UNKNOWN_NAME, use.place, near, **said)
        yield found._replace(severity=severity, inside=item.path, of_key=True)

    def refuses_keys(self, owner: str) -> bool:
        """Whether this version refuses unknown keys of a mapping; others pass them over."""
        if owner in self.here.closed or owner in self.here.read_classes:
            return owner in self.here.closed
        ranges = {item.key.value: item.value.value for item in self.serve.strict_configs}
        versions = ranges.get(owner, ranges.get("*"))
        return versions is None or in_range(self.version or NEWEST, versions)

    def registered(self) -> Iterator[Verdict]:
        """Values that have to be names of a registry of the release."""
        for item in self.serve.registries:
            knob, _, key = item.key.value.partition(".")
            names = self.here.names(item.value.of.value)
            use = next((use for use in self.reading.uses if knob_of(use.flag.name) == knob), None)
            value = self.given.get(item.key.value if key else knob)
            other = item.value.unless
            if use is None or not names or not isinstance(value, str) or HOLE in value:
                continue
            if value_fault(use.flag, value, self.syntax):
                continue  # the parser says so itself
            if value not in names and not (other and other.value in self.given):
                is_open = item.value.open is not None and item.value.open.value
                yield self.verdict(
                    codes.UNKNOWN_NAME,
                    use.place,
                    nearest(value, names),
                    what=REGISTRIES[item.value.of.value],
                    name=value,
                    where="",
                    history=history_of(self.released, _has_name(item.value.of.value, value)),
                    advice="",
                )._replace(severity=Severity.WARNING if is_open else self.at_start, inside=key)

    def contradiction(self, rule: Contradiction) -> Iterator[Verdict]:
        for knob, entry in rule.when.entries.items():
            if not meets(self.given.get(knob), entry.value, given=knob in self.given):
                return
        if rule.less:
            first, second = (number(self.given.get(item.value)) for item in rule.less)
            if first is None or second is None or first >= second:
                return
        for two, same in ((rule.equal, True), (rule.unequal, False)):
            values = [self.given.get(item.value) for item in two]
            if two and (None in values or (str(values[0]) == str(values[1])) is not same):
                return
        named = (*rule.less, *rule.equal, *rule.unequal)
        knobs = [*rule.when.entries, *(item.value for item in named)]
        places = [use.place for use in self.reading.uses if knob_of(use.flag.name) in _roots(knobs)]
        one, _, other = rule.says.value.partition(", but ")
        yield self.verdict(
            codes.CONTRADICTION,
            min(places, default=0),
            one=one,
            other=other,
            advice=rule.advice.value,
        )._replace(severity=None if rule.parser and rule.parser.value else self.at_start)


def unknown_variable(
    name: str, prefix: str, engine: str, serve: Serve, released: Released, version: Version | None
) -> Verdict | None:
    """A verdict about a name in the environment that begins as the engine's own do and that the
    version does not read; None where it reads it, or its names were not read."""
    around = [here.variables for here in released.around(version)]
    known = frozenset().union(*around)
    if not name.startswith(prefix) or name in known or not all(around):
        return None
    history = history_of(released, lambda here: name in here.variables)
    shown = str(version) if version else "of unknown version"
    arguments = {"engine": engine, "version": shown, "name": name, "history": history}
    advice = {"advice": instead(name, serve, released, version) or "take it out"}
    advice = advice if history else {"advice": ""}
    own = [item.removeprefix(prefix) for item in known if item.startswith(prefix)]
    near = None if history else nearest(name.removeprefix(prefix), own)
    return Verdict(
        codes.UNKNOWN_VARIABLE,
        0,
        tuple((arguments | advice).items()),
        prefix + near if near else None,
        None if version else Severity.NOTE,
    )


def _roots(knobs: list[str]) -> set[str]:
    return {knob.partition(".")[0] for knob in knobs}


def _has_flag(word: str) -> Callable[[ReleasedAt], bool]:
    return lambda here: word in here.flags or word in here.negatives


def _has_name(registry: str, name: str) -> Callable[[ReleasedAt], bool]:
    return lambda here: name in here.names(registry)


def _has_key(owner: str, name: str) -> Callable[[ReleasedAt], bool]:
    return lambda here: name in here.configs.get(owner, ())


def _shown(value: str) -> str:
    if not value:
        return ""
    return f"`{value}`" if len(value) <= 60 else f"`{value[:57]}...`"
