"""Published configurations: servec has to be able to say them.

A row becomes a spec, a model for each server, which is compiled at the version that the row pins;
its command lines, of every rank that the row shows, and its environment are compared with what was
published. A row with a mistake of `MISTAKES` passes only where the findings name it and
nothing else, the row without it holds, and the whole row holds at the newest version. Any other
refusal is a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import servec
import yaml
from packaging.version import Version
from servec.api import shipped_catalog

from tests.field.argv import counted
from tests.field.project import compile_models, differ, errors, same_mapping
from tests.field.published import Reader, Server, chunks, value_of, version_of
from tests.field.rows import Row

UNEVEN = "rightly refused: tp counts all GPUs of attention data parallelism, and dp 8 exceeds tp 4"
NULL = "`cuda_graph_config: null` of a file of options means off, and null unsets in an override"
EXEMPT = {
    "srt-slurm-4f717db11c": NULL,
    "srt-slurm-4c5ac7e374": NULL,
    "srt-slurm-9e34bf0b80": NULL,
    "srt-slurm-957247d1ee": NULL,
    "srt-slurm-41ba78ead3": NULL,
    "sgl-cookbook-1ec7e15730": UNEVEN,
    "sgl-cookbook-2f457efded": UNEVEN,
    "sgl-cookbook-ea033fe8e6": UNEVEN,
}
MISTAKES: dict[str, dict[str, str | None]] = {
    "vllm": {
        "headless": "0.9.0",
        "mm_encoder_tp_mode": "0.10.2",
        "nnodes": "0.11.1",
        "node_rank": "0.11.1",
        "master_addr": "0.11.1",
        "reasoning_parser ling3": "0.28.0",
        "reasoning_parser muse_glimmer": "0.28.0",
        "reasoning_parser qwen3": "0.9.0",
        "speculative_config draft_sample_method": "0.21.0",
        "tool_call_parser glm47": "0.14.0",
        "tool_call_parser ling3": "0.28.0",
        "tool_call_parser muse_glimmer": "0.28.0",
        "tool_call_parser openai": "0.10.1",
        "VLLM_SERVER_DEV_MODE": None,
    },
    "sglang": {
        "reasoning_parser gemma4": "0.5.11",
        "reasoning_parser nano_v3": "0.5.7",
        "reasoning_parser nemotron_3": "0.5.10.post1",
        "tool_call_parser gemma4": "0.5.11",
        "tool_call_parser mimo": "0.5.7",
    },
}
"""What publications say to releases that do not have it: a parameter, or a value or key of one, and
the first release that has it. None is what no release gets, since it opens the server."""
TOGETHER = (
    {"nnodes", "node_rank", "master_addr", "headless"},
    {"enable_auto_tool_choice", "tool_call_parser"},
)
"""Parameters that mean nothing without each other."""
UNKNOWN = ("SV0615", "SV0618")
HARDWARE = {
    "h100": "H100-80G",
    "h200": "H200-141G",
    "b200": "B200-180G",
    "b300": "B300-270G",
    "gb200": "GB200-186G",
    "gb300": "GB300-278G",
    "mi300x": "MI300X-192G",
    "mi325x": "MI325X-256G",
    "mi350x": "MI350X-288G",
    "mi355x": "MI355X-288G",
}
ANY = "H200-141G"
ALWAYS = ("--host", "--port", "--served-model-name", "--enable-metrics", "--master-port")
"""What servec always adds; counted where the row has them."""
SLOTS = {"{leader_address}": "--master-addr", "{leader}": "--dist-init-addr"}
"""Words that a node fills in: with the row's own."""


def exempt(row: Row) -> str:
    """Why a row is left out of the count; empty where it is not."""
    known = shipped_catalog().engine(row["engine"]) is not None
    return "" if known else f"servec has no engine for the front end {row['engine']}"


def check(row: Row) -> list[str]:
    version = version_of(row)
    rest, wrong = _without_mistakes(row, version)
    problems, refusals = _check(row, version)
    if not wrong:
        return problems + [f"refused: {text}" for text in refusals]
    named = {text: _quoted(text) & {key.split()[-1] for key in wrong} for text in refusals}
    silent = wrong.keys() - {key for key in wrong for of in named.values() if key.split()[-1] in of}
    return [
        *(f"no finding names `{key}`" for key in sorted(silent)),
        *(f"refused: {text}" for text, names in named.items() if not names),
        *_all(f"without {', '.join(wrong)}", rest, version),
        *_all("of the newest version", _without_mistakes(row, None)[0], None),
    ]


def _all(what: str, row: Row, version: str | None) -> list[str]:
    problems, refusals = _check(row, version)
    return [f"{what}: {text}" for text in problems + refusals]


def findings(row: Row) -> list[str]:
    """Why the version that a row pins refuses it."""
    return [] if exempt(row) or row["id"] in EXEMPT else _check(row, version_of(row))[1]


def _check(row: Row, version: str | None) -> tuple[list[str], list[str]]:
    """What differs, and why servec refuses the row."""
    reader = Reader(row["engine"], version)
    servers = {f"server-{at}": item for at, item in enumerate(reader.servers(row))}
    models = {name: _model(row, server, version, reader) for name, server in servers.items()}
    result = compile_models(models)
    refusals = errors(result) + _unknown(result) + _refused_words(row, version)
    if refusals:
        return [], refusals
    launches = {launch.plan.name: launch for launch in result.launches}
    problems = differ("servers", sorted(servers), sorted(launches))
    for name, server in servers.items():
        if name in launches:
            found = _same_server(row["engine"], server, launches[name])
            problems += [f"{server.role or 'server'}: {problem}" for problem in found]
    return problems, []


def _unknown(result: servec.Result) -> list[str]:
    """What a release beyond those that were read may have gets a warning; no row has one."""
    return [
        f"{item.code.number} {item.message}"
        for item in result.findings
        if item.code.number in UNKNOWN and item.severity.word == "warning"
    ]


def _refused_words(row: Row, version: str | None) -> list[str]:
    """What servec says of the command lines as they were published."""
    lines = [row["argv"]] if "argv" in row else [item["argv"] for item in row.get("roles") or ()]
    found = [
        f"{item.code.number} {item.message}"
        for argv in lines
        for item in servec.check_argv(row["engine"], argv, version=version)
        if item.severity.word == "error"
    ]
    if version is None:
        reader = Reader(row["engine"], None)
        servers = reader.servers(row) if lines else ()
        found += [
            f"no release has `{chunk[0]}`"
            for server in servers
            for chunk in chunks(server.words)
            if not reader.is_of_some_release(chunk)
        ]
    return list(dict.fromkeys(found))


def _model(row: Row, server: Server, version: str | None, reader: Reader) -> dict[str, Any]:
    known = reader.at.topology_spellings
    has_tp = any(known.get(knob) == "tp" for knob in server.overrides)
    gpus = row.get("node_gpus") or int(row.get("n_gpus") or 1) // server.nodes
    return {
        "checkpoint": server.model,
        "engine": row["engine"],
        "hardware": HARDWARE.get(str(row.get("hw", "")).lower(), ANY),
        "recipe": "none",
        **({"nodes": server.nodes, "gpus": gpus} if server.nodes > 1 else {}),
        **({"engine_version": version} if version else {}),
        **({} if has_tp else {"topology": {"tp": 1}}),
        **({"overrides": server.overrides} if server.overrides else {}),
        **({"env": server.env} if server.env else {}),
    }


def _same_server(engine: str, server: Server, launch: Any) -> list[str]:
    problems = []
    for rank, words in server.ranks.items():
        of = "leader" if rank == 0 else "workers"
        own = [
            str(word)
            for group in launch.command[2:]
            if not group.file and group.who in ("", of)
            for word in group.words
        ]
        facts = {slot: value_of(words, name) for slot, name in SLOTS.items()} | {
            "{rank}": str(rank)
        }
        found = _same_words(engine, words, [facts.get(word, word) for word in own])
        problems += [f"rank {rank}: {text}" for text in found]
    problems += differ("model", server.model, launch.command[1].words[-1])
    files = [
        {key: setting.value for key, setting in item.options}
        for item in launch.files
        if any(group.file == item.name for group in launch.command)
    ]
    problems += differ(
        "files",
        [_sorted(item) for item in server.files.values() if item],
        [_sorted(item) for item in files],
    )
    return problems + same_mapping(
        "environment", server.env, {item.name: item.value for item in launch.env}
    )


def _same_words(engine: str, published: list[str], own: list[str]) -> list[str]:
    """An abbreviated flag is the one that it begins, as a parser reads it."""
    wanted, found = counted(engine, published), counted(engine, own)
    names = {flag[0] for flag in wanted}
    missing, extra = list((wanted - found).elements()), list((found - wanted).elements())
    for flag in list(missing):
        whole = [item for item in extra if item[0].startswith(flag[0]) and item[1:] == flag[1:]]
        if len(whole) == 1:
            missing.remove(flag)
            extra.remove(whole[0])
    return [
        *(f"argv lacks {json.dumps(flag)}" for flag in missing),
        *(
            f"argv has {json.dumps(flag)} too many"
            for flag in extra
            if flag[0] in names or flag[0] not in ALWAYS
        ),
    ]


def _sorted(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True)


def _quoted(text: str) -> set[str]:
    """What a message names, as the names of parameters and their values."""
    words = (word for quoted in re.findall(r"`([^`]+)`", text) for word in quoted.split())
    return {_name(word) for word in words} | set(re.findall(r"[A-Z]+(?:_[A-Z0-9]+)+", text))


def _name(word: str) -> str:
    return word.partition("=")[0].lstrip("-").replace("-", "_").rstrip(":,")


def _without_mistakes(row: Row, version: str | None) -> tuple[Row, dict[str, None]]:
    """A row without what its version does not have, and the mistakes in the order they stand."""
    known = {
        key
        for key, since in MISTAKES.get(row["engine"], {}).items()
        if since is None or (version and Version(version) < Version(since))
    }
    parts = {key: row[key] for key in ("argv", "roles", "params", "env") if row.get(key)}
    wrong = dict.fromkeys(key for key in _said(parts) if key in known)
    names = {key.split()[0] for key in wrong}
    for group in TOGETHER:
        names |= group if names & group else set()
    return {**row, **_cut(parts, names)}, wrong


def _said(tree: Any) -> Iterator[str]:
    """The parameters and variables that a row gives, alone and with each of their words."""
    match tree:
        case [str(), *_]:
            for name, *values in map(_split, chunks(tree)):
                yield from _with_words(name, values)
        case [*items]:
            for item in items:
                yield from _said(item)
        case dict():
            for name, value in tree.items():
                yield from _with_words(name, [value])
                yield from _said(value)


def _with_words(name: str, values: list[Any]) -> Iterator[str]:
    """A value that is a word, and the keys of one that is a mapping."""
    yield _name(name)
    for value in values:
        is_json = isinstance(value, str) and value.startswith("{")
        tree = yaml.safe_load(value) if is_json else value
        for word in tree if isinstance(tree, dict) else [tree]:
            yield f"{_name(name)} {word}"


def _split(chunk: list[str]) -> list[str]:
    name, equals, tied = chunk[0].partition("=")
    return [name, *([tied] if equals else []), *chunk[1:]]


def _cut(tree: Any, names: set[str]) -> Any:
    """A row's part without what has one of these names."""
    match tree:
        case [str(), *_]:
            kept = (chunk for chunk in chunks(tree) if _name(chunk[0]) not in names)
            return [word for chunk in kept for word in chunk]
        case [*items]:
            return [_cut(item, names) for item in items]
        case dict():
            return {
                key: _cut(value, names) for key, value in tree.items() if _name(key) not in names
            }
    return tree
