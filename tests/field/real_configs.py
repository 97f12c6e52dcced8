"""Published configurations: servec has to be able to say them.

A row becomes a spec, a model for each process, and its command lines and environment are compared
with what was published. Where the pinned version refuses a row, which is a finding about the row,
it is compiled without the version; `findings` gives what was said.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import servec
from servec.api import shipped_catalog
from servec.catalog.given import knob_of

from tests.field.project import compile_models, differ, errors, same_mapping
from tests.field.published import Reader, Server, chunks, version_of
from tests.field.rows import Row

UNEVEN = "rightly refused: tp counts all GPUs of attention data parallelism, and dp 8 exceeds tp 4"
NULL = "`cuda_graph_config: null` of a file of options means off, and null unsets in an override"
EXEMPT = {
    "sgl-cookbook-1ec7e15730": UNEVEN,
    "sgl-cookbook-2f457efded": UNEVEN,
    "sgl-cookbook-ea033fe8e6": UNEVEN,
    "srt-slurm-4f717db11c": NULL,
    "srt-slurm-4c5ac7e374": NULL,
    "srt-slurm-9e34bf0b80": NULL,
    "srt-slurm-957247d1ee": NULL,
    "srt-slurm-41ba78ead3": NULL,
}
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
ALWAYS = ("--host", "--port", "--served-model-name", "--enable-metrics")
"""What servec always adds; counted where the row has them."""


def exempt(row: Row) -> str:
    """Why a row is left out of the count; empty where it is not."""
    engine = shipped_catalog().engine(row["engine"])
    if engine is None:
        return f"servec has no engine for the front end {row['engine']}"
    names = set(re.findall(r'"([A-Z][A-Z0-9_]+)": ', json.dumps(row)))
    refused = sorted(name for name in names if engine.at(None).refuses(name))
    return f"servec refuses the variable {', '.join(refused)}, which opens the server" * bool(
        refused
    )


def check(row: Row) -> list[str]:
    version = version_of(row)
    problems, refused = _check(row, version)
    if refused and version is not None:
        problems, _ = _check(row, None)
    return problems


def findings(row: Row) -> list[str]:
    """The errors of a row at the version that it pins."""
    version = version_of(row)
    return errors(_compile(row, version)[1]) if version and not exempt(row) else []


def _compile(row: Row, version: str | None) -> tuple[dict[str, Server], servec.Result, Reader]:
    reader = Reader(row["engine"], version)
    servers = {f"server-{at}": item for at, item in enumerate(reader.servers(row))}
    models = {name: _model(row, server, version, reader) for name, server in servers.items()}
    return servers, compile_models(models), reader


def _model(row: Row, server: Server, version: str | None, reader: Reader) -> dict[str, Any]:
    known = reader.at.topology_spellings
    has_tp = any(known.get(knob) == "tp" for knob in server.overrides)
    return {
        "checkpoint": server.model,
        "engine": row["engine"],
        "hardware": _hardware(str(row.get("hw", ""))),
        "recipe": "none",
        **({"engine_version": version} if version else {}),
        **({} if has_tp else {"topology": {"tp": 1}}),
        **({"overrides": server.overrides} if server.overrides else {}),
        **({"env": server.env} if server.env else {}),
    }


def _hardware(name: str) -> str:
    return HARDWARE.get(name.lower(), ANY)


def _check(row: Row, version: str | None) -> tuple[list[str], bool]:
    """What differs, and whether servec refused it."""
    servers, result, reader = _compile(row, version)
    if errors(result):
        return errors(result), True
    launches = {launch.plan.name: launch for launch in result.launches}
    problems = differ("servers", sorted(servers), sorted(launches))
    for name, server in servers.items():
        if name in launches:
            found = _same_server(server, launches[name], reader)
            problems += [f"{server.role or 'server'}: {problem}" for problem in found]
    return problems, False


def _same_server(server: Server, launch: Any, reader: Reader) -> list[str]:
    _, model, *groups = launch.command
    own = [word for group in groups if not group.file for word in group.words]
    wanted = _flags(server.words, reader)
    found = _flags(own, reader)
    for name in ALWAYS:
        if not any(_dashed(flag[0]) == name for flag in wanted):
            found = Counter({flag: n for flag, n in found.items() if _dashed(flag[0]) != name})
    problems = differ("model", server.model, model.words[-1])
    problems += [f"argv lacks {json.dumps(flag)}" for flag in (wanted - found)]
    problems += [f"argv has {json.dumps(flag)} too many" for flag in (found - wanted)]
    files = {
        group.file: {key: setting.value for key, setting in item.options}
        for group in groups
        for item in launch.files
        if group.file == item.name
    }
    wanted_files = [json.dumps(given, sort_keys=True) for given in server.files.values() if given]
    own_files = [json.dumps(given, sort_keys=True) for given in files.values()]
    problems += differ("files", wanted_files, own_files)
    env = {item.name: item.value for item in launch.env}
    return problems + same_mapping("environment", server.env, env)


def _flags(words: list[str], reader: Reader) -> Counter[tuple[str, ...]]:
    """Flags by their first name, and by that which the version has for it, with their values; a
    topology flag of 1 says nothing."""
    found: Counter[tuple[str, ...]] = Counter()
    topology = reader.at.topology_spellings
    for chunk in chunks(words):
        name, equals, tied = chunk[0].partition("=")
        use = reader.use(chunk)
        if use is not None and not use.negated:
            name = use.flag.name + (f".{use.key}" if use.key else "")
        values = [*([tied] if equals else []), *chunk[1:]]
        become = reader.at.renamed(knob_of(name), values[0] if values else True)
        if len(become) == 1:
            ((knob, meant),) = become
            name = (reader.at.negative(knob) or "") if meant is False else reader.at.flag(knob)
        if knob_of(name) not in topology or values != ["1"]:
            found[(name, *map(_same, values))] += 1
    return found


def _dashed(flag: str) -> str:
    return flag.replace("_", "-")


def _same(word: str) -> str:
    """A word as it is compared: JSON by what it says."""
    if not word.startswith(("{", "[")):
        return word
    try:
        return json.dumps(json.loads(word), sort_keys=True)
    except ValueError:
        return word
