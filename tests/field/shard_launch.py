"""Rows of shard_launch.json: a shard in, argv and environment or the kind of error out.

Rows of artifacts and quoting are of whole projects' targets: `artifacts` reads them.
"""

from __future__ import annotations

import json
from typing import Any

import servec
from servec.diag.findings import Finding
from servec.ir.shard import Command, ShardLaunch, merged

from tests.field import artifacts

EXEMPT = {
    "art-008": "the interface of the pods is the site's word, `kubernetes: {interface}`, and eth0 "
    "without it: the interface of a shard's host reaches no pod",
    "art-019": "the port where a group meets is the manifest's: a project cannot say the shard's",
}
Row = dict[str, Any]

KINDS = {
    "SV0611": "adapter_unrepresentable",
    "SV1009": "compute_capability",
    "SV1018": "conflicting_launch_mode",
    "SV1008": "gpu_not_uniform",
    "SV1005": "gpus_per_node_required",
    "SV0605": "invalid_env_name",
    "SV0205": "invalid_value",
    "SV1015": "kv_events_unsupported",
    "SV1013": "leader_required",
    "SV1014": "leader_required",
    "SV1019": "mig_parallel_unsupported",
    "SV1020": "mig_placement",
    "SV1004": "mixed_fabric",
    "SV1001": "model_path_empty",
    "SV1017": "multi_node_unsupported",
    "SV1007": "not_enough_gpus",
    "SV1016": "owned_flag",
    "SV1003": "rank_out_of_range",
    "SV1021": "secret_channel_unavailable",
    "SV1006": "topology_mismatch",
    "SV1010": "tp_divisibility",
    "SV1011": "tp_divisibility",
    "SV1012": "topology_mismatch",
    "SV1002": "tp_not_positive",
    "SV0301": "unknown_engine",
    "SV0606": "unrepresentable",
    "SV0626": "unsafe_env",
}
"""The kinds of the rows, by servec's codes."""


def check(row: Row) -> list[str]:
    """What differs; of several outcomes that are allowed, one must be the one."""
    expect = row["expect"]
    if row["group"] in ("artifact", "quoting"):
        return artifacts.check(row, lambda item: KINDS.get(item.code.number))
    if "env_list" in expect:
        given = row["input"]
        found = merged(given["inherited"], given["generated"])
        return [] if found == expect["env_list"] else [f"env {found}"]
    outcome = run(row)
    choices = expect.get("any_of") or [expect]
    tried = [differences(choice, outcome, row) for choice in choices]
    return min(tried, key=len)


def run(row: Row) -> ShardLaunch | list[Finding]:
    """The launch of a row, or the errors. A row without a shard asks about the profile alone."""
    given = row["input"]
    request = {
        key: given[key] for key in ("gpus", "node", "constraints", "model") if given.get(key)
    }
    profile = dict(given["profile"])
    if mode := given.get("launch_mode"):
        profile["launch_mode"] = mode
    if not given.get("shard"):
        constraints = given.get("constraints") or {}
        found = servec.check_profile(
            profile,
            given.get("gpus") or (),
            model=given.get("model"),
            min_compute_capability=constraints.get("min_compute_capability"),
        )
        return [item for item in found if item.severity.word == "error"]
    try:
        return servec.launch({**request, "profile": profile, "shard": given["shard"]})
    except servec.InvalidShard as refused:
        return [item for item in refused.findings if item.severity.word == "error"]


def differences(expect: Row, outcome: ShardLaunch | list[Finding], row: Row) -> list[str]:
    """What one allowed outcome has otherwise."""
    if "error" in expect:
        return _error(expect["error"], outcome)
    if isinstance(outcome, list):
        if expect.get("valid"):
            return [f"refused: {item.message}" for item in outcome]
        return [f"refused: {item.code.number} {item.message}" for item in outcome] or ["no launch"]
    found: list[str] = []
    env = {**outcome.env, **outcome.commands[-1].env}
    found += _env(expect.get("env", {}), env, expect.get("env_absent", []))
    for key in ("on_mig", "serves_http", "health_path", "metrics_path"):
        if key in expect and getattr(outcome, key) != expect[key]:
            found.append(f"{key} is {getattr(outcome, key)!r}")
    if "http_probes" in expect and bool(outcome.health_path) != expect["http_probes"]:
        found.append(f"health path is {outcome.health_path!r}")
    spelling = Spelling(row["head"], row["input"]["profile"]["engine"])
    processes = expect.get("processes")
    if processes is not None and len(processes) != len(outcome.commands):
        return [*found, f"{len(outcome.commands)} processes"]
    for process, command in zip(processes or (), outcome.commands, strict=False):
        found += _process(process, command, outcome, spelling)
    words = [word for command in outcome.commands for word in command.argv]
    secret = expect.get("secret_not_in_argv")
    if secret and any(secret in word for word in words):
        found.append("the key is on a command line")
    if "secret_channel" in expect:
        found += (
            []
            if [f for f in outcome.files if f.mode == 0o600 and secret in f.content]
            else ["no file with the key"]
        )
    for word in expect.get("argv_contains", []):
        found += [] if word in words else [f"no {word}"]
    if wanted := expect.get("argv_contains_any"):
        found += [] if set(wanted) & set(words) else [f"none of {wanted}"]
    unknown = set(expect) - KNOWN
    return [*found, *(f"the runner does not read `{key}`" for key in sorted(unknown))]


KNOWN = {
    "env", "env_absent", "on_mig", "serves_http", "health_path", "metrics_path", "http_probes",
    "processes", "secret_not_in_argv", "secret_channel", "argv_contains", "argv_contains_any",
    "valid",
}  # fmt: skip


def _error(wanted: Row, outcome: ShardLaunch | list[Finding]) -> list[str]:
    if not isinstance(outcome, list) or not outcome:
        return [f"no error, {wanted['kind']} is wanted"]
    first = outcome[0]
    found = []
    if KINDS.get(first.code.number) != wanted["kind"]:
        found.append(f"{first.code.number} {first.message}, {wanted['kind']} is wanted")
    message = first.message.lower()
    names = [*wanted.get("contains", []), *([wanted["names"]] if "names" in wanted else [])]
    found += [f"{text!r} is not in: {message}" for text in names if text.lower() not in message]
    return found


def _env(wanted: Row, found: dict[str, str], absent: list[str]) -> list[str]:
    problems = []
    for name, value in wanted.items():
        allowed = value["any_of"] if isinstance(value, dict) else [value]
        if found.get(name) not in allowed:
            problems.append(f"{name} is {found.get(name)!r}, {allowed} is wanted")
    return problems + [f"{name} is set" for name in absent if name in found]


def _process(wanted: Row, command: Command, launch: ShardLaunch, spelling: Spelling) -> list[str]:
    found = _env(wanted.get("env", {}), {**launch.env, **command.env}, wanted.get("env_absent", []))
    if "name" in wanted and wanted["name"] != command.name:
        found.append(f"name {command.name}")
    if wanted.get("sidecar", False) != (command.lifetime == "sidecar"):
        found.append(f"lifetime {command.lifetime}")
    if wanted.get("wait_for", command.wait_for_leader_port) != command.wait_for_leader_port:
        found.append(f"waits for {command.wait_for_leader_port!r}")
    return found + _argv(wanted, list(command.argv), spelling)


def _argv(wanted: Row, words: list[str], spelling: Spelling) -> list[str]:
    expected = list(wanted["argv"])
    programs = expected.pop(0)["any_of"] if isinstance(expected[0], dict) else [[]]
    program = next((item for item in programs if words[: len(item)] == item), None)
    if program is None:
        return [f"program {words[:3]}"]
    mine, theirs = spelling.flags(words[len(program) :]), spelling.flags(expected)
    may = {spelling.name(name) for name in wanted.get("argv_may_add", [])}
    absent = {spelling.name(name) for name in wanted.get("argv_absent", [])}
    found = [f"{flag[0]} is there" for flag in mine if flag[0] in absent]
    left = list(mine)
    for flag in theirs:
        match = next((item for item in left if _same(flag, item)), None)
        if match is None:
            found.append(f"lacks {flag}")
        else:
            left.remove(match)
    return found + [f"adds {flag}" for flag in left if flag[0] not in may]


class Spelling:
    """How the head of the file has the words of one engine compared."""

    def __init__(self, head: Row, engine: str) -> None:
        self.aliases: dict[str, str] = head["aliases"].get(engine, {})
        self.defaults: dict[str, str] = head["defaults"].get(engine, {})

    def name(self, word: str) -> str:
        return self.aliases.get(word, word)

    def flags(self, words: list[Any]) -> list[tuple[Any, ...]]:
        """The flags with their values; words before the first one are `<positional>`. Flags that
        equal the engine's default are dropped."""
        found: list[list[Any]] = [["<positional>"]]
        for word in words:
            if isinstance(word, str) and word.startswith("-") and not word[1:2].isdigit():
                name, equals, value = word.partition("=")
                found.append([self.name(name), *([value] if equals else [])])
            else:
                found[-1].append(word)
        rows = [tuple(flag) for flag in found if len(flag) > 1 or flag[0] != "<positional>"]
        return [row for row in rows if list(row[1:]) != [self.defaults.get(row[0])]]


def _same(wanted: tuple[Any, ...], found: tuple[Any, ...]) -> bool:
    return len(wanted) == len(found) and all(map(_same_word, wanted, found))


def _same_word(wanted: Any, found: str) -> bool:
    match wanted:
        case {"any_of": choices}:
            return found in choices
        case {"json": value}:
            return bool(json.loads(found) == value)
        case {"json_superset": value}:
            tree = json.loads(found)
            return all(tree.get(key) == item for key, item in value.items())
        case _:
            return bool(wanted == found)
