"""gate, the settings: what may not be passed on, and why.

overrides: {api_key: …}           -> SV0604, and the line is not shown
overrides: {enable_x: true} beside the topology's own --enable-x -> SV0608
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from servec.catalog.engines import OWN_KNOBS, EngineAt
from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir.plan import Plan
from servec.ir.setting import Group, Rank, Setting
from servec.passes.carried import not_carried, secret_advice, unexpanded
from servec.source.located import Plain

PARAMETER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*\Z")


CREDENTIAL = re.compile(
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|"
    r"AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,}|nvapi-[\w-]{20,}"
)
"""Forms of tokens that their issuers give a prefix, so that they can be found."""


def is_credential(value: Plain) -> bool:
    """Whether a text holds what looks like a token, under whatever name."""
    return any(CREDENTIAL.search(text) for text in _texts(value))


def settings(plan: Plan, findings: Findings) -> None:
    """Findings about a plan's settings, at most one a setting."""
    engine = plan.subject.engine.at(plan.subject.version.version)
    taken = {
        flag.flag.value: f"topology.{flag.of.value}"
        for flag, _ in engine.topology_values(plan.topology)
    }
    for setting in plan.settings:
        _judge(setting, engine, taken, findings)
    _files(plan, engine, findings)


def _files(plan: Plan, engine: EngineAt, findings: Findings) -> None:
    """A file of options that the user names, beside options that servec would write into one."""
    for setting in plan.settings:
        option = engine.option(setting.knob)
        named = plan.setting(option[0]) if option else None
        clash = setting.value is not None and named is not None and named.value is not None
        if option and named is not None and clash:
            findings.add(
                codes.CONTRADICTION,
                setting.winner.origin.span,
                one=f"`{option[1]}` belongs into the file of `{option[0]}`",
                other=f"`{option[0]}` names a file of your own",
                advice=f"write that file's options under `{option[0]}:`, and servec makes the file",
                also=(named.winner.origin.span, "the file") if named.winner.origin.span else (),
            )
            return


def _judge(setting: Setting, engine: EngineAt, taken: dict[str, str], findings: Findings) -> None:
    winner = setting.winner
    span, name = winner.origin.span, winner.name.removeprefix("topology.")
    is_secret = setting.knob in engine.secret_flags and not (
        setting.value is None or isinstance(setting.value, bool)
    )
    flags = (engine.flag(setting.knob), engine.negative(setting.knob))
    other = next((taken[flag] for flag in flags if flag in taken), None)
    if is_secret or is_credential(setting.value):
        findings.add(codes.SECRET, span, name=name, advice=secret_advice(name))
    elif setting.knob in engine.owned:
        advice = f"use `{engine.owned[setting.knob]}` of the spec"
        findings.add(codes.OWNED, span, knob=name, advice=advice)
    elif not PARAMETER.match(name):
        findings.add(
            codes.UNREPRESENTABLE,
            span,
            knob=winner.origin.path.rpartition(".overrides.")[2] or name,
            problem="this cannot be the name of a flag",
            advice="write the engine's own name with `_`",
            suggestion=_parameter_name(name),
        )
    elif setting.group is Group.TOPOLOGY:
        return
    elif other is not None:
        flag = f"`{engine.flag(setting.knob)}`"
        findings.add(codes.SET_TWICE, span, knob=name, other=other, flag=flag)
    else:
        for problem, advice in _unrepresentable(setting, engine):
            place = winner.place
            findings.add(codes.UNREPRESENTABLE, place, knob=name, problem=problem, advice=advice)
            return
        if text := next(filter(None, map(unexpanded, _texts(setting.value))), ""):
            findings.add(codes.NOT_EXPANDED, winner.place, text=text)


def _parameter_name(name: str) -> str | None:
    """`--max-model-len` and `max model len` are meant to be `max_model_len`."""
    word = re.sub(r"[\s-]+", "_", name.strip("-_ \t"))
    return word if PARAMETER.match(word) else None


def _unrepresentable(setting: Setting, engine: EngineAt) -> Iterator[tuple[str, str]]:
    value, knob = setting.value, setting.knob
    kind = engine.kind_of(knob)
    if kind is bool and not isinstance(value, bool) and value is not None:
        yield "it is a switch", "write `true` or `false`, without quotes"
    if kind is int and type(value) is not int and value is not None:
        yield "it is a whole number", "write the number, without quotes"
    in_words = not engine.repeats(knob) and not engine.takes_json(knob)
    if knob == "port" and not _is_port(value):
        yield "a port is a whole number from 1 to 65535", "give the port that is served"
    is_said = setting.winner.rank > Rank.DERIVED
    if knob in OWN_KNOBS and knob != "port" and is_said and not (isinstance(value, str) and value):
        yield "it must be one text", "every artifact speaks of it"
    if value is None and setting.winner.rank < Rank.OVERRIDE:
        yield "it has no value", "give one, or leave it out; a spec's `null` unsets a recipe's"
    if isinstance(value, list) and not value:
        yield "the list is empty", "leave the parameter out"
    if isinstance(value, list) and in_words and any(_is_flag(item) for item in value):
        yield "an item that begins with `-` would be read as a flag", "set that flag by itself"
    if engine.knob(setting.winner.name)[1] and not isinstance(setting.winner.written, bool):
        yield "its name says the opposite of a switch", "write `true` or `false`"
    for text in _texts(value):
        problem = not_carried(text)
        if problem:
            yield problem, "take it out"
    if any(not math.isfinite(number) for number in _numbers(value)):
        yield "it is not a finite number", "give a finite one"


def _is_flag(item: Plain) -> bool:
    return isinstance(item, str) and item.startswith("-")


def _is_port(value: Plain) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535


def _texts(value: Plain) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from _texts(item)


def _numbers(value: Plain) -> Iterator[float]:
    match value:
        case float():
            yield value
        case list():
            for item in value:
                yield from _numbers(item)
        case dict():
            for item in value.values():
                yield from _numbers(item)
