"""What a shard's words and variables may not be: values that the engine refuses, adapters, the API
key, flags that servec owns, names that load code.

args: [--port, "1"]     -> SV1016: `--port` is set by servec
env: {LD_PRELOAD: /x}   -> SV0626: it makes the server load other code
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from servec.catalog.engines import EngineAt
from servec.diag import codes
from servec.diag.findings import Findings
from servec.passes.carried import ENV_NAME, IN_THE_IMAGE, not_carried, refused
from servec.passes.shard_asked import Asked, number, place, text
from servec.source.located import At


def judge_words(asked: Asked, findings: Findings) -> None:
    """All of it; what needs the engine only where that is known."""
    if asked.engine is not None:
        _values(asked, asked.engine, findings)
        _adapters(asked, asked.engine, findings)
        _key(asked, asked.engine, findings)
        _owned(asked, asked.engine, findings)
    _words(asked, findings)
    _variables(asked, findings)


def _values(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    """Values that the engine is known to refuse whatever the rest."""
    rules = engine.serve.adapters
    if rules is None or rules.max_rank is None:
        return
    ranks = [item.value for item in rules.ranks]
    most = max((number(item.rank) for item in asked.profile.adapters), default=0)
    for value in asked.values(rules.max_rank.value):
        given = int(value.value) if value.value.isdigit() else -1
        if ranks and given not in ranks:
            wanted = f"one of {', '.join(map(str, ranks))}"
        elif 0 <= given < most:
            wanted = f"at least {most}, the rank of an adapter"
        else:
            continue
        findings.add(
            codes.BAD_VALUE,
            value.span,
            where=f"`{engine.flag(rules.max_rank.value)}`",
            wanted=wanted,
            value=f"`{value.value}`",
        )


def _adapters(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    rules, name = engine.serve.adapters, engine.manifest.engine.value
    taken = {text(asked.profile.served_model_name)}
    for adapter in asked.profile.adapters:
        called, path = adapter.name.value, adapter.path.value
        joined = rules is not None and rules.paths is not None and rules.paths.value
        if rules is None:
            span, problem = adapter.span, f"servec knows no way to give {name} adapters"
            advice = "take them out"
        elif not path:
            span, problem, advice = adapter.path.span, "an adapter has no path", "give one"
        elif joined and "," in path:
            span, problem = adapter.path.span, f"{name} lists adapters by paths with commas"
            advice = "take a path without a comma"
        elif not joined and (not called or "=" in called or called.startswith("-")):
            span, problem = adapter.name.span, f"`{called}` is no name for an adapter"
            advice = "use letters, digits and `-`, a letter first"
        elif called in taken:
            span, problem = adapter.name.span, f"`{called}` is served already"
            advice = "give each adapter a name of its own, and none the model's"
        elif rules.ranks and number(adapter.rank) > rules.ranks[-1].value:
            span = place(adapter.rank, adapter.span)
            problem = f"{name} takes ranks up to {rules.ranks[-1].value}"
            advice = "take an adapter of a lower rank"
        else:
            taken.add(called)
            continue
        findings.add(codes.ADAPTERS, span, problem=problem, advice=advice)


KEY = re.compile(r"[!-~]+\Z")
"""What the header of a request can carry."""


def _key(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    shard, name = asked.shard, engine.manifest.engine.value
    if shard is None or not text(shard.api_key):
        return
    span = place(shard.api_key, shard.span)
    channel, ways = asked.api_key, engine.serve.api_key
    if channel is None:
        problem = f"{name} takes no API key but on its command line, where every user reads it"
        advice = "leave the key out, and put a proxy in front that asks for it"
        if ways:
            problem = f"{name} {engine.version} takes an API key on its command line alone"
            wanted = ways[-1].versions
            advice = f"take {name} {wanted.value}" if wanted else advice
        elif not engine.secret_flags:
            problem = f"{name} has no API key"
        findings.add(codes.NO_KEY_CHANNEL, span, problem=problem, advice=advice)
    elif channel.file is not None:
        flag = channel.file.flag.value
        given = next((item for item in asked.arguments if item.flag == flag), None)
        if given is not None:
            problem = f"the key goes into a file of {flag}, of which there is one already"
            advice = f"take {flag} out of `args`, and give its options as flags"
            findings.add(codes.NO_KEY_CHANNEL, given.word.span, problem=problem, advice=advice)
    if not KEY.match(text(shard.api_key)):
        problem = "a key has visible characters of ASCII, and no blank"
        advice = "give another key"
        findings.add(
            codes.UNREPRESENTABLE, span, knob="shard.api_key", problem=problem, advice=advice
        )
    elif problem := not_carried(text(shard.api_key)):
        advice = "take it out"
        findings.add(
            codes.UNREPRESENTABLE, span, knob="shard.api_key", problem=problem, advice=advice
        )


def _owned(asked: Asked, engine: EngineAt, findings: Findings) -> None:
    owned = owned_flags(asked, engine)
    for argument in asked.arguments:
        flag = argument.flag.replace("_", "-") if engine.serve.flag_words is None else argument.flag
        begun = [item for item in owned if item.startswith(flag) and len(flag) > 3]
        meant = flag if flag in owned else begun[0] if begun else ""
        if meant:
            span = argument.word.span
            findings.add(codes.OWNED_FLAG, span, flag=meant, advice=owned[meant])


def owned_flags(asked: Asked, engine: EngineAt) -> dict[str, str]:
    """Flags that servec gives a value itself, and where that value is said."""
    serve, own = engine.serve, engine.serve.flags
    found: dict[str, str] = {}
    if own is not None:
        found |= {own.host.value: "give `bind_addr`", own.port.value: "give `http_port`"}
        if own.served_model_name is not None:
            found[own.served_model_name.value] = "give `served_model_name`"
        if own.threads is not None and asked.shard and number(asked.shard.threads):
            found[own.threads.value] = "it is given as `threads`"
    for knob, key in engine.topology_spellings.items():
        if key in ("tp", "pp"):
            found[engine.flag(knob)] = f"give `{key}`"
    for knob in engine.owned:
        found[engine.flag(knob)] = "it follows from the model and the nodes"
    for knob in engine.secret_flags:
        found[engine.flag(knob)] = "a command line is no place for a secret: give `api_key`"
    if engine.call is not None and engine.call.model is not None:
        found[engine.call.model.value] = "give `model_path`"
    if asked.way is not None:
        found |= {flag.flag.value: "it follows from the nodes" for flag in asked.way.flags}
    if serve.adapters is not None:
        found[engine.flag(serve.adapters.list.value)] = "give `adapters`"
    if serve.kv_events is not None:
        found[serve.kv_events.flag.value] = "give `kv_events` and `kv_events_port`"
    return found


def _words(asked: Asked, findings: Findings) -> None:
    """Text that no process can be given."""
    profile, shard = asked.profile, asked.shard
    texts: Iterable[tuple[str, At[str] | None]] = (
        ("model_path", profile.model_path),
        ("served_model_name", profile.served_model_name),
        *(("args", word) for word in profile.args),
        *(("adapters", item.path) for item in profile.adapters),
        *(("adapters", item.name) for item in profile.adapters),
        *((("leader_addr", shard.leader_addr), ("bind_addr", shard.bind_addr)) if shard else ()),
        *((("mgmt_interface", shard.mgmt_interface),) if shard else ()),
        *(("hcas", item) for item in (shard.hcas if shard else ())),
    )
    for knob, word in texts:
        problem = not_carried(text(word))
        if word is not None and problem:
            advice = "take it out"
            findings.add(
                codes.UNREPRESENTABLE, word.span, knob=knob, problem=problem, advice=advice
            )


def _variables(asked: Asked, findings: Findings) -> None:
    channel = asked.api_key
    taken = channel.variable.value if channel and channel.variable else ""
    for item in asked.profile.env:
        name, span = item.key.value, item.key.span
        if not ENV_NAME.match(name):
            findings.add(codes.BAD_ENV_NAME, span, name=name)
        elif name == taken:
            reason, advice = "it carries the API key", "give the key as `shard.api_key`"
            findings.add(codes.REFUSED_VARIABLE, span, name=name, reason=reason, advice=advice)
        elif asked.engine is not None and (reason := refused(name, asked.engine)):
            findings.add(
                codes.REFUSED_VARIABLE, span, name=name, reason=reason, advice=IN_THE_IMAGE
            )
        elif problem := not_carried(item.value.value):
            advice = "take it out"
            findings.add(
                codes.UNREPRESENTABLE, item.value.span, knob=name, problem=problem, advice=advice
            )
