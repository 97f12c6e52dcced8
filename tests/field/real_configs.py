"""Published configurations: servec has to be able to say them.

A row becomes a spec, a model for each server, which is compiled at the version that the row pins;
its command lines, of every rank that the row shows, and its environment are compared with what was
published. A row that its version refuses has a mistake, which is what servec is for: it is listed
in published_mistakes.py with what is wrong in it. A refusal of any other row is a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import servec
from servec.api import shipped_catalog

from tests.field.argv import counted
from tests.field.project import compile_models, differ, errors, same_mapping
from tests.field.published import Reader, Server, chunks, value_of, version_of
from tests.field.published_mistakes import WRONG
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
REFUSED = frozenset({"VLLM_SERVER_DEV_MODE"})
"""Variables that no version gets, since they open the server: a row with one is a mistake too."""
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
    """What differs at the pinned version. A row with a mistake holds where every refusal names what
    is wrong, the row without it is the same, and the whole row is where no version is pinned."""
    version, wrong = version_of(row), WRONG.get(row["id"], frozenset[str]())
    problems, refusals = _check(row, version)
    if not wrong:
        return [*problems, *(f"refused: {text}" for text in refusals)]
    silent = [text for text in refusals if not _quoted(text) & wrong]
    rest = [text for found in _check(_without(row, wrong), version) for text in found]
    whole = [text for found in _check(_without(row, REFUSED), None) for text in found]
    return [
        *([] if refusals else ["is not refused"]),
        *(f"names nothing that is wrong: {text}" for text in silent),
        *(f"without {', '.join(sorted(wrong))}: {text}" for text in rest),
        *(f"of any version: {text}" for text in whole),
    ]


def findings(row: Row) -> list[str]:
    """Why the version that a row pins refuses it."""
    return [] if exempt(row) or row["id"] in EXEMPT else _check(row, version_of(row))[1]


def _check(row: Row, version: str | None) -> tuple[list[str], list[str]]:
    """What differs, and why servec refuses the row."""
    reader = Reader(row["engine"], version)
    servers = {f"server-{at}": item for at, item in enumerate(reader.servers(row))}
    models = {name: _model(row, server, version, reader) for name, server in servers.items()}
    result = compile_models(models)
    refusals = errors(result) + _refused_words(row, version)
    if refusals:
        return [], refusals
    launches = {launch.plan.name: launch for launch in result.launches}
    problems = differ("servers", sorted(servers), sorted(launches))
    for name, server in servers.items():
        if name in launches:
            found = _same_server(row["engine"], server, launches[name])
            problems += [f"{server.role or 'server'}: {problem}" for problem in found]
    return problems, []


def _refused_words(row: Row, version: str | None) -> list[str]:
    """What servec says of the command lines as they were published."""
    lines = [row["argv"]] if "argv" in row else [item["argv"] for item in row.get("roles") or ()]
    found = [
        f"{item.code.number} {item.message}"
        for argv in lines
        for item in servec.check_argv(row["engine"], argv, version=version)
        if item.severity.word == "error"
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


def _without(row: Row, wrong: frozenset[str]) -> Row:
    """A row without the flags, parameters and variables that are wrong or have a value that is."""

    def is_wrong(name: str, values: Iterable[Any]) -> bool:
        said = {_name(name), *(_name(value) for value in values if isinstance(value, str))}
        return bool(said & wrong)

    def cut(tree: Any) -> Any:
        match tree:
            case [*words] if all(isinstance(word, str) for word in words):
                kept = (
                    chunk
                    for chunk in chunks(words)
                    if not chunk[0].startswith("--")
                    or not is_wrong(chunk[0], [*chunk[1:], *chunk[0].split("=")[1:]])
                )
                return [word for chunk in kept for word in chunk]
            case [*items]:
                return [cut(item) for item in items]
            case dict():
                return {
                    key: cut(value) for key, value in tree.items() if not is_wrong(key, [value])
                }
        return tree

    parts = {key: cut(row[key]) for key in ("argv", "roles", "params", "env") if row.get(key)}
    return {**row, **parts}
