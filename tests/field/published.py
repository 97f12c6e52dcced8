"""Rows of published configurations -> the servers they start: words, parameters, environment.

argv ["vllm", "serve", "m", "--max-model-len=8192"]
  -> Server(model "m", ranks {0: --max-model-len=8192}, overrides {max_model_len: 8192})

`ranks` is what is published, as it stands; a server of several nodes has words for each rank that
the row shows.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from packaging.version import Version
from servec.api import shipped_catalog
from servec.catalog.calls import called
from servec.catalog.command_line import Syntax, Use, read_words
from servec.catalog.engines import Engine, EngineAt
from servec.catalog.given import knob_of
from servec.catalog.versions import parse_version

from tests.field.rows import Row

NUMBER = re.compile(r"-\d+\Z|-\d*\.\d+\Z")
PARALLEL = {
    "tensor": "tensor_parallel_size",
    "pipeline": "pipeline_parallel_size",
    "data": "data_parallel_size",
    "expert": "enable_expert_parallel",
}
IN_A_FILE = ("tensor_parallel_size", "pipeline_parallel_size", "moe_expert_parallel_size")
"""Keys of a file of options that are the topology of the server."""
ADDED_WORDS = "VLLM_ADDITIONAL_ARGS"
"""A variable whose words the image puts behind its command."""


@dataclass
class Server:
    """One server of a row: `ranks` is what is published, `overrides` what a spec says."""

    role: str
    model: str
    ranks: dict[int, list[str]] = field(default_factory=lambda: {0: []})
    nodes: int = 1
    overrides: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        return self.ranks[min(self.ranks)]


def version_of(row: Row) -> str | None:
    """The version that a row pins: a floor its lower bound; a front end's image none."""
    text = str(row.get("engine_version", "")).removeprefix(">=")
    if "dynamo" in str(row.get("image", "")):
        return None
    return text if parse_version(text) else None


def chunks(words: list[str]) -> list[list[str]]:
    """The words of each flag; a first chunk of bare words where there are any."""
    found: list[list[str]] = [[]]
    for word in words:
        if word.startswith("-") and len(word) > 1 and not NUMBER.match(word):
            found.append([word])
        else:
            found[-1].append(word)
    return [chunk for chunk in found if chunk]


def value_of(words: list[str], *names: str) -> str:
    """The value of the last flag of one of these names; empty where there is none."""
    found = ""
    for chunk in chunks(words):
        name, _, tied = chunk[0].partition("=")
        if name in names:
            found = tied or " ".join(chunk[1:])
    return found


class Reader:
    """Reads the rows of one engine at one version."""

    def __init__(self, name: str, version: str | None) -> None:
        engine = shipped_catalog().engine(name)
        assert engine is not None
        self.engine: Engine = engine
        self.parsed: Version | None = parse_version(version) if version else None
        self.at: EngineAt = engine.at(self.parsed)
        self.newest: EngineAt = engine.at(None)
        rules = engine.serve.syntax
        self.syntax = Syntax(
            abbreviations=True,
            underscores=bool(rules and rules.underscores and rules.underscores.value),
            dotted=bool(rules and rules.dotted and rules.dotted.value),
        )

    def servers(self, row: Row) -> Iterator[Server]:
        if "argv" in row:
            yield self._server("", row, row["argv"], row.get("env") or {})
        elif "roles" in row:
            yield from self._roles(row)
        else:
            yield from self._parameters(row)

    def _roles(self, row: Row) -> Iterator[Server]:
        """A server a role; roles with ranks are the nodes of one server."""
        nodes: dict[int, Server] = {}
        for item in row["roles"]:
            env = (row.get("env") or {}) | (item.get("env") or {})
            server = self._server(item["role"], row, item["argv"], env)
            if server.nodes == 1:
                yield server
                continue
            ((rank, words),) = server.ranks.items()
            whole = nodes.setdefault(server.nodes, server)
            if whole.ranks.setdefault(rank, words) != words:
                yield server
        yield from nodes.values()

    def _server(self, role: str, row: Row, argv: list[str], env: Mapping[str, Any]) -> Server:
        words = self._behind_program(argv)
        server = Server(role, row["model"], env=_variables(env))
        files = {name: yaml.safe_load(text) for name, text in (row.get("files") or {}).items()}
        self._read(words, server, files)
        server.nodes = int(value_of(words, "--nnodes", "-n") or 1)
        if server.nodes > 1:
            server.ranks = {int(value_of(words, "--node-rank", "-r") or 0): server.words}
        return server

    def _behind_program(self, argv: list[str]) -> list[str]:
        for start in range(len(argv)):
            call = called(argv[start:], self.engine.serve)
            if call is not None and call.words:
                return argv[start + call.words :]
        return argv

    def _read(self, words: list[str], server: Server, files: Mapping[str, Any]) -> None:
        """The published words as parameters of a spec, which says `nodes` of its own."""
        for chunk in chunks(words):
            if not chunk[0].startswith("-"):
                server.model = chunk[0]
                continue
            use = self.use(chunk)
            knob = knob_of(use.flag.name) if use else knob_of(chunk[0].partition("=")[0])
            owner = self.at.owned.get(knob)
            if owner == "checkpoint":
                server.model = use.values[0] if use else chunk[1]
                continue
            value = _value(use) if use else _unknown(chunk)
            if self.at.file_parameter(knob) and value in files:
                server.files[knob] = value = files[str(value)]
            else:
                server.words.extend(chunk)
            if owner == "nodes" or self.newest.owned.get(knob) == "nodes":
                continue
            self._put(server, use.key if use else "", knob, value)

    def _put(self, server: Server, key: str, knob: str, value: Any) -> None:
        name = f"{knob}.{key}" if key else knob
        if name in server.overrides and self.at.repeats(knob):
            value = [*server.overrides[name], *value]
        elif self.at.repeats(knob) and not isinstance(value, list):
            value = [value]
        server.overrides[name] = value

    def use(self, chunk: list[str]) -> Use | None:
        """A flag as the version has it, else as the newest has it, else None."""
        for here in (self.at.here, self.newest.here):
            reading = read_words(chunk, here, self.syntax) if here else None
            if reading and reading.uses and not reading.faults:
                return reading.uses[0]
        return None

    def is_of_some_release(self, chunk: list[str]) -> bool:
        """Whether any release that was read has a flag."""
        released = self.engine.released
        if released is None or not chunk[0].startswith("-"):
            return True
        readings = (
            read_words(chunk, released.of(release), self.syntax)
            for release in reversed(released.releases)
        )
        return any(reading.uses and not reading.faults for reading in readings)

    def _parameters(self, row: Row) -> Iterator[Server]:
        params, env = row["params"], row.get("env") or {}
        shared = {key: item for key, item in env.items() if not isinstance(item, dict)}
        if isinstance(params.get("roles"), list):
            for item in params["roles"]:
                yield self._container(item, row)
        elif isinstance(params.get("roles"), dict):
            for role, given in params["roles"].items():
                own = env.get(f"{role}_environment") or {}
                yield self._given(role, row, given or {}, shared | own)
        elif "vllmConfig" in params:
            yield self._chart(params["vllmConfig"] or {}, row, shared)
        else:
            yield self._given("", row, params, shared)

    def _container(self, item: dict[str, Any], row: Row) -> Server:
        env = dict(item.get("env") or {})
        added = shlex.split(env.pop(ADDED_WORDS, None) or "")
        words = [*(item.get("args") or []), *added]
        parallel = item.get("parallelism") or {}
        given = {PARALLEL[key]: value for key, value in parallel.items() if key in PARALLEL}
        server = Server(item["role"], row["model"], env=_variables(env))
        self._read(words, server, {})
        self._give(given, server)
        return server

    def _chart(self, given: dict[str, Any], row: Row, env: Mapping[str, Any]) -> Server:
        """Values of a chart in camel case; `v1` and `v0` are a variable there."""
        names = {re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower(): item for key, item in given.items()}
        switch = {"VLLM_USE_V1": "1"} if "v1" in names else {}
        switch = {"VLLM_USE_V1": "0"} if "v0" in names else switch
        server = Server("", row["model"], env=_variables({**switch, **env}))
        own = ("v0", "v1", "extra_args")
        self._give({key: item for key, item in names.items() if key not in own}, server)
        self._read([str(word) for word in names.get("extra_args") or []], server, {})
        return server

    def _given(self, role: str, row: Row, given: dict[str, Any], env: Mapping[str, Any]) -> Server:
        """Parameters by name; where the engine takes them in a file, the topology is apart."""
        server = Server(role, row["model"], env=_variables(env))
        if self.engine.serve.files:
            parameter = next(iter(self.at.files))
            topology = {key: given[key] for key in IN_A_FILE if given.get(key) is not None}
            options = {key: item for key, item in given.items() if key not in IN_A_FILE}
            server.files[parameter] = server.overrides[parameter] = options
            given = {key.replace("moe_expert", "expert"): item for key, item in topology.items()}
        self._give(given, server)
        return server

    def _give(self, given: Mapping[str, Any], server: Server) -> None:
        for name, value in given.items():
            knob = name.replace("-", "_")
            if self.at.owned.get(knob) == "checkpoint":
                server.model = str(value)
            elif value is not None and self.at.owned.get(knob) != "nodes":
                server.overrides[knob] = value
                server.words.extend(_words(knob, value, self.at.negative(knob) or ""))


def _words(knob: str, value: Any, negative: str) -> list[str]:
    """A parameter as its flag, by name alone; false is what the flag has for it, or nothing."""
    flag = "--" + knob.replace("_", "-")
    match value:
        case True:
            return [flag]
        case False:
            return [negative] if negative else []
        case dict():
            return [flag, json.dumps(value)]
        case list():
            return [flag, *map(str, value)]
        case _:
            return [flag, str(value)]


def _variables(env: Mapping[str, Any]) -> dict[str, str]:
    """Variables with a value; null is one that the site gives (a Secret, a field of the pod)."""
    return {name: str(value) for name, value in env.items() if value is not None}


def _value(use: Use) -> Any:
    if not use.flag.takes_value:
        return not use.negated
    if not use.values:
        return True
    values = [_plain(value) for value in use.values]
    return values if len(values) > 1 else values[0]


def _unknown(chunk: list[str]) -> Any:
    _, equals, tied = chunk[0].partition("=")
    values = [_plain(word) for word in [*([tied] if equals else []), *chunk[1:]]]
    return values if len(values) > 1 else (values[0] if values else True)


def _plain(word: str) -> Any:
    """A word as a value that is written as the same word; an object of JSON as a mapping."""
    try:
        value = json.loads(word)
    except ValueError:
        return word
    if isinstance(value, dict):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and json.dumps(value) == word else word
