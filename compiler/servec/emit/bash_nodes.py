"""The wrapper of a replica over several nodes: one script for all ranks, and a file of facts each.

NodeVariable(NCCL_IB_HCA, "{hcas}", given hcas) -> if [[ $hcas ]]; then export NCCL_IB_HCA="$hcas"
Host(gpu-2, 10.0.0.2, eno1)                     -> SERVEC_NODE_ADDRESS=10.0.0.2 in node-0-1.env
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from servec.emit.header import header
from servec.emit.shell import expanded, quote, quoted, where
from servec.ir.artifact import Artifact, Trace
from servec.ir.launch import Launch, NodeProcess, NodeVariable
from servec.ir.placement import Group, Host
from servec.ir.setting import Origin
from servec.ir.slots import Filled, Word

INDENT = "  "
# What a file of facts may say, without SERVEC_: what servec writes there, and an operator's own.
FACTS = (
    "LEADER_ADDRESS", "NODE_ADDRESS", "INTERFACE", "HCAS", "GID_INDEX", "NVLINK",
    "WAIT_SECONDS", "IMAGE", "ALLOW_CPU", "API_KEY",
)  # fmt: skip


def node_words(launch: Launch) -> dict[str, object]:
    """The frame's variables about nodes and devices."""
    devices = launch.devices
    placement = launch.placement
    found: dict[str, object] = {
        "beside": "",
        "worker": "",
        "nodes": placement.nodes if placement.way else 0,
        "devices": quoted(devices[0]) if devices else "",
        "shows": quote(devices[1]) if devices else "",
        "gpus": placement.gpus_per_node,
    }
    if placement.way is None:
        return found
    slots = _slots(launch)
    return found | {
        "replicas": launch.plan.topology.replicas,
        "fact_names": FACTS,
        "slots": slots,
        "leader_port": placement.leader_port,
        "node_exports": "\n".join(_exports(launch.node_env)),
        "beside": _process(launch.beside),
        "beside_name": quote(launch.beside.name) if launch.beside else "",
        "worker": _process(launch.worker),
    }


def node_names(launch: Launch) -> list[str]:
    """Names of the variables that a node may get."""
    return list(dict.fromkeys(variable.name for variable in launch.node_env))


def facts(launch: Launch) -> Iterator[Artifact]:
    """`node-<replica>-<rank>.env` for each host that the site names: what the rank knows."""
    for replica, group in enumerate(launch.placement.groups if launch.placement.way else ()):
        for rank, host in enumerate(group):
            lines = [*(f"# {line}" for line in header(launch.plan)), f"# on {host.name}"]
            traces = {}
            for name, value, whose, key in _facts(group, host):
                if value:
                    lines.append(f"{name}={value}")
                    path = f"servec.yaml nodes.{whose.name}.{key}"
                    traces[len(lines)] = Trace(None, Origin(whose.places[key], path))
            path = f"{launch.plan.name}/bash/node-{replica}-{rank}.env"
            yield Artifact(path, "\n".join(lines) + "\n", traces=traces)


def _facts(group: Group, host: Host) -> Iterator[tuple[str, str, Host, str]]:
    """Each variable, its value, and whose key of servec.yaml says it."""
    leader, domains = group[0], {node.nvlink_domain for node in group}
    yield "SERVEC_LEADER_ADDRESS", leader.address, leader, "address"
    yield "SERVEC_NODE_ADDRESS", host.address, host, "address"
    yield "SERVEC_INTERFACE", host.interface, host, "interface"
    yield "SERVEC_HCAS", ",".join(host.hcas), host, "hcas"
    index = "" if host.gid_index is None else str(host.gid_index)
    yield "SERVEC_GID_INDEX", index, host, "gid_index"
    shares = host.nvlink_domain and len(domains) == 1
    yield "SERVEC_NVLINK", "1" if shares else "", host, "nvlink_domain"


def _slots(launch: Launch) -> set[str]:
    """The slots that anything of the script speaks of."""
    words: list[Word] = [word for group in launch.command for word in group.words]
    words += [variable.value for variable in launch.node_env]
    for process in (launch.beside, launch.worker):
        words += [word for group in process.groups for word in group] if process else ()
    found = {slot for word in words if isinstance(word, Filled) for slot in word.slots}
    for variable in launch.node_env:
        found |= {variable.given, variable.lacking}
    if launch.beside is not None:
        found.add("leader")
    for group in launch.command:
        found |= {"leads"} if group.who == "leader" else {"joins"} if group.who else set()
    return found - {""}


def _exports(variables: Iterable[NodeVariable]) -> Iterator[str]:
    """The exports, those of one condition together."""
    for (given, lacking, leads), group in groupby(variables, lambda item: item[2:5]):
        pairs = " ".join(f"{item.name}={expanded(item.value)}" for item in group)
        tests = [f"[[ ${given} ]]"] if given else [f"[[ ! ${lacking} ]]"] if lacking else []
        tests += ["((rank == 0))"] if leads else []
        if tests:
            yield f"if {' && '.join(tests)}; then export {pairs}; fi"
        else:
            yield f"export {pairs}"


def _process(process: NodeProcess | None) -> str:
    """A command, a group a line; a group is left out where a fact in it is not known."""
    if process is None:
        return ""
    return "\n".join(INDENT + _group(group) for group in process.groups)


def _group(group: tuple[Word, ...]) -> str:
    unsure = [slot for word in group if isinstance(word, Filled) for slot in word.slots]
    if "node_address" not in unsure:
        return " ".join(map(expanded, group))
    return where("node_address", group)
