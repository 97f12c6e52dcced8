"""Engines: a manifest, a wrapper template, and what both mean at one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.version import Version

from servec.catalog.versions import first_that_holds, holds, parse_version
from servec.ir.facts import Flag
from servec.ir.manifest import Manifest
from servec.ir.serve import TOPOLOGY_KEYS, Call, Negatives, RequirementRule, Serve, TopologyFlag
from servec.ir.setting import same
from servec.ir.topology import Topology
from servec.source.located import Plain, plain

if TYPE_CHECKING:
    from servec.catalog.released import Released, ReleasedAt

OWN_KNOBS = ("host", "port", "served_model_name")


class Engine:
    """One engine of `serve.d/`. `file` is its manifest, `wrapper` the path of its template; what
    its releases accept is read when it is asked for."""

    def __init__(
        self,
        manifest: Manifest,
        serve: Serve,
        file: str,
        wrapper: str,
        released: Callable[[], Released | None],
    ) -> None:
        self._released = released
        self.manifest = manifest
        self.serve = serve
        self.file = file
        self.wrapper = wrapper
        self._at: dict[Version | None, EngineAt] = {}

    @property
    def name(self) -> str:
        return self.manifest.engine.value

    @cached_property
    def released(self) -> Released | None:
        """What its released packages accept, or None where that is not known."""
        return self._released()

    def at(self, version: Version | None) -> EngineAt:
        """The engine at a version; None is an unknown version, which takes the newest rules."""
        if version not in self._at:
            self._at[version] = EngineAt(self, version)
        return self._at[version]


class EngineAt:
    """An engine at one version: how its parameters are spelled, called and turned. What a release
    accepts comes from the catalogue, and from the manifest where there is none."""

    def __init__(self, engine: Engine, version: Version | None) -> None:
        self._engine = engine
        self.manifest = engine.manifest
        self.serve = serve = engine.serve
        self.version = version
        rules = serve.topology
        self.topology_spellings = {key: key for key in TOPOLOGY_KEYS} | {
            name.value: item.key.value for item in rules.spellings for name in item.value
        }
        lists = serve.lists
        self._repeated = frozenset(name.value for name in lists.repeated) if lists else frozenset()
        self._json_lists = frozenset(name.value for name in lists.json) if lists else frozenset()
        self.files = {item.key.value: item.value.value for item in serve.files}
        self.owned = {item.key.value: item.value.value for item in serve.owned}
        secrets = serve.secrets
        self.secret_flags = frozenset(n.value for n in secrets.flags) if secrets else frozenset()
        self.secret_env = frozenset(n.value for n in secrets.env) if secrets else frozenset()
        self._knobs: dict[str, tuple[str, bool]] = {}

    @cached_property
    def here(self) -> ReleasedAt | None:
        """The release of this version, where the engine has a catalogue."""
        released = self._engine.released
        return released.at(self.version) if released else None

    @cached_property
    def call(self) -> Call | None:
        return first_that_holds(self.serve.calls, self.version)

    @cached_property
    def negatives(self) -> Negatives | None:
        return first_that_holds(self.serve.negatives, self.version)

    @cached_property
    def topology_flags(self) -> tuple[TopologyFlag, ...]:
        rules, version = self.serve.topology, self.version
        if version is None and rules.unknown_as is not None:
            version = parse_version(rules.unknown_as.value)
        return tuple(flag for flag in rules.flags if holds(flag, version))

    def topology_values(self, topology: Topology) -> Iterator[tuple[TopologyFlag, int]]:
        """The flags of a topology and their values; a flag appears where its value is above 1."""
        for flag in self.topology_flags:
            value = self._topology_value(flag.of.value, topology)
            if value > 1:
                yield flag, value

    def _topology_value(self, key: str, topology: Topology) -> int:
        rules = self.serve.topology
        attention = topology.enable_dp_attention and rules.tp_counts is not None
        match key:
            case "tp" if attention and self.tp_counts_all:
                return topology.tp * topology.dp
            case "attention_dp":
                return topology.dp if attention else 1
            case "plain_dp":
                return 1 if attention else topology.dp
            case "dcp" if topology.dcp is None and rules.dcp_follows_cp:
                return topology.cp or 1
            case _:
                return getattr(topology, key) or 1

    @property
    def tp_counts_all(self) -> bool:
        """Whether tp's flag counts all GPUs of attention data parallelism."""
        counts = self.serve.topology.tp_counts
        return counts is not None and counts.value == "all"

    @property
    def cuts_layers(self) -> bool:
        """Whether tp cuts each layer; where its flag has a fixed value, whole layers are spread."""
        return any(flag.of.value == "tp" and flag.value is None for flag in self.topology_flags)

    @property
    def experts_span_all(self) -> bool:
        """Whether expert parallelism is a switch, and spreads the experts over all GPUs."""
        flags = [flag for flag in self.topology_flags if flag.of.value == "ep"]
        return any(flag.bare is not None and flag.bare.value for flag in flags)

    def cut_by(self, part: str) -> list[str]:
        """The parameters that say over how many GPUs the `dense` layers, or the `experts`, go."""
        rules = self.serve.topology.cut_by
        return [knob.value for item in rules if item.key.value == part for knob in item.value]

    @property
    def quantization_knobs(self) -> list[str]:
        """The parameters that name a quantization."""
        registries = self.serve.registries
        return [item.key.value for item in registries if item.value.of.value == "quantization"]

    def refuses(self, variable: str) -> bool:
        """Whether a variable opens the server, or is servec's to decide."""
        return any(
            variable.startswith(item.value) if item.value.endswith("_") else variable == item.value
            for item in self.serve.refused_env
        )

    def knob(self, name: str) -> tuple[str, bool]:
        """The knob that a parameter's name turns, and whether the name says the opposite."""
        known = self._knobs.get(name)
        if known is None:
            known = self._knobs[name] = self._find_knob(name.replace("-", "_"))
        return known

    @property
    def _no(self) -> str:
        return self.negatives.prefix.value if self.negatives else "no-"

    def _find_knob(self, name: str) -> tuple[str, bool]:
        prefix = self._no.replace("-", "_")
        if prefix and name.startswith(prefix) and self._has_negative(name[len(prefix) :]):
            return name[len(prefix) :], True
        return name, False

    def repeats(self, knob: str) -> bool:
        """Whether a list is the flag again for each item."""
        known = self.known(knob)
        return known.kind == "append" if known else knob in self._repeated

    def takes_json(self, knob: str) -> bool:
        """Whether a list is one word of JSON."""
        known = self.known(knob)
        if known is None:
            return knob in self._json_lists
        return known.type.rstrip("?").partition(":")[0] == "json"

    def known(self, knob: str) -> Flag | None:
        """The flag of a parameter, where the release's flags are known and it has it."""
        return self.here.flags.get(self.flag(knob)) if self.here else None

    def lacks(self, flag: str) -> bool:
        """Whether the release is known not to have a flag."""
        return self.here is not None and flag not in self.here.flags

    def _has_negative(self, knob: str) -> bool:
        known = self.known(knob)
        if known is not None:
            return f"--{self._no}{knob.replace('_', '-')}" in known.negatives
        rule = self.negatives
        if rule is None:
            return False
        if rule.only:
            return any(name.value == knob for name in rule.only)
        return all(name.value != knob for name in rule.all_but)

    def file_parameter(self, name: str) -> str | None:
        """The parameter that names a file, by any name that the release has for its flag."""
        known = self.known(name)
        for parameter in self.files:
            if name == parameter or (known is not None and known is self.known(parameter)):
                return parameter
        return None

    def option(self, knob: str) -> tuple[str, str] | None:
        """The parameter that names a file and the key in that file, where a knob is such a key."""
        parameter, dot, key = knob.partition(".")
        return (parameter, key) if dot and parameter in self.files else None

    def flag(self, knob: str) -> str:
        """The flag of a knob; a key behind a dot is a name of a JSON value and stays as it is."""
        words, (name, dot, key) = self.serve.flag_words, knob.partition(".")
        head = name if words and words.value == "_" else name.replace("_", "-")
        return f"--{head}{dot}{key}"

    def negative(self, knob: str) -> str | None:
        """The flag that says `false`, or None where leaving the flag out is all there is."""
        return f"--{self._no}{knob.replace('_', '-')}" if self._has_negative(knob) else None

    def renamed(self, knob: str, value: Plain) -> list[tuple[str, Plain]]:
        """What a parameter is called at this version, where that is another name; else nothing."""
        for rule in self.serve.renamed:
            wanted = plain(rule.value) if rule.value is not None else value
            if rule.knob.value == knob and same(wanted, value) and holds(rule, self.version):
                become = {name: plain(item.value) for name, item in rule.become.entries.items()}
                return [(name, value if new is None else new) for name, new in become.items()]
        whole = self._written_out(knob)
        return [(whole, value)] if whole else []

    def _written_out(self, knob: str) -> str | None:
        """The parameter that a shortened one stands for, where the engine's parser takes such."""
        flag = self.flag(knob)
        if self.here is None or not self.here.abbreviations or flag in self.here.flags:
            return None
        options = [*self.here.flags, *self.here.negatives]
        found = [option for option in options if option.startswith(flag)]
        is_one = len(found) == 1 and found[0] in self.here.flags
        return found[0][2:].replace("-", "_") if is_one and flag not in options else None

    def kind_of(self, knob: str) -> type[bool] | type[int] | None:
        """What a parameter's value must be, as far as the rules of requirements tell."""
        return self._kinds.get(knob)

    @cached_property
    def _kinds(self) -> dict[str, type[bool] | type[int]]:
        kinds: dict[str, type[bool] | type[int]] = {}
        for item in self.serve.requirements:
            rule = first_that_holds(item.value, self.version)
            if rule is not None and rule.knob is not None:
                is_floor = rule.floor is not None and rule.floor.value
                value = plain(rule.value) if rule.value is not None else True
                if is_floor or isinstance(value, bool):
                    kinds[rule.knob.value] = int if is_floor else bool
        return kinds

    def requirement(self, name: str) -> RequirementRule | None:
        """The rule of a requirement at this version, or None where there is none."""
        for item in self.serve.requirements:
            if item.key.value == name:
                return first_that_holds(item.value, self.version)
        return None


def negated(value: Plain) -> Plain:
    """What the opposite spelling of a switch says."""
    return not value if isinstance(value, bool) else value
