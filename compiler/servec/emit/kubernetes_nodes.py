"""Kubernetes: the words and variables of a pod, where it is one node of a replica too.

--master-addr {leader_address} -> --master-addr $(LWS_LEADER_ADDRESS)
VLLM_HOST_IP={node_address}    -> SERVEC_NODE_ADDRESS from status.podIP, then $(SERVEC_NODE_ADDRESS)

LeaderWorkerSet gives every container of a group LWS_LEADER_ADDRESS, LWS_GROUP_SIZE and
LWS_WORKER_INDEX: github kubernetes-sigs/lws, docs/concepts, read 2026-12-01.
"""

from __future__ import annotations

import re

from servec.emit.yaml import Traced, Tree
from servec.ir import decl
from servec.ir.artifact import Trace
from servec.ir.launch import Launch, NodeProcess, NodeVariable
from servec.ir.setting import Origin
from servec.ir.site import pod_interface
from servec.ir.slots import Filled, Slot, Word

NODE_ADDRESS = "SERVEC_NODE_ADDRESS"
SLOTS = {
    "rank": "$(LWS_WORKER_INDEX)",
    "leader": "$(LWS_LEADER_ADDRESS):{port}",
    "leader_address": "$(LWS_LEADER_ADDRESS)",
    "node_address": f"$({NODE_ADDRESS})",
}


def pod_word(word: Word, launch: Launch, facts: dict[str, str] | None = None) -> str:
    """A word as Kubernetes has to read it: text as it is, slots by the pod's own variables or by
    the site's `facts`."""
    if not isinstance(word, Filled):
        return literal(word)
    known = {name: literal(value) for name, value in (facts or {}).items()}
    known |= {name: text.format(port=launch.placement.leader_port) for name, text in SLOTS.items()}
    return "".join(
        known[part.name] if isinstance(part, Slot) else literal(part) for part in word.parts
    )


def literal(word: str) -> str:
    """A word that Kubernetes passes on as it is: `$(NAME)` would be expanded, `$$` halved."""
    return re.sub(r"\$(?=[$(])", "$$", word)


def process_words(launch: Launch, process: NodeProcess) -> dict[str, Tree]:
    """The command of a process beside the server."""
    words: list[Tree] = [
        Traced(pod_word(word, launch), Trace(None, process.origin))
        for group in process.groups
        for word in group
    ]
    return {"command": words}


def pod_environment(launch: Launch, site: decl.KubernetesSite | None, *, leads: bool) -> list[Tree]:
    """The variables of a container: those of the node first, since others are made of them."""
    found: list[Tree] = []
    facts = _facts(site)
    known = {*facts, *SLOTS}
    variables = [item for item in launch.node_env if _is_there(item, known, leads)]
    words = [item.value for item in variables]
    for process in (launch.beside, launch.worker):
        words += [word for group in process.groups for word in group] if process else ()
    if any("node_address" in word.slots for word in words if isinstance(word, Filled)):
        field: dict[str, Tree] = {"fieldRef": {"fieldPath": "status.podIP"}}
        found.append({"name": NODE_ADDRESS, "valueFrom": field})
    for item in variables:
        if text := pod_word(item.value, launch, facts):
            value = Traced(text, Trace(None, item.origin))
            found.append({"name": item.name, "value": value})
    channel, secret = launch.api_key, site.api_key if site else None
    if leads and secret is not None and channel is not None and channel.variable is not None:
        ref: dict[str, Tree] = {
            "name": Traced(secret.secret.value, Trace(None, Origin(secret.secret.span, ""))),
            "key": secret.key.value,
        }
        name = channel.variable.value
        found.append({"name": name, "valueFrom": {"secretKeyRef": ref}})
    for variable in launch.env:
        value = Traced(literal(variable.value), Trace(None, variable.origin))
        found.append({"name": variable.name, "value": value})
    return found


def _facts(site: decl.KubernetesSite | None) -> dict[str, str]:
    """What the site says of every pod's network."""
    facts = {"interface": pod_interface(site)}
    rdma = site.rdma if site else None
    if rdma is not None:
        # Without names NCCL takes every adapter that the pod is given.
        facts["hcas"] = "=" + ",".join(item.value for item in rdma.hcas) if rdma.hcas else ""
        if rdma.gid_index is not None:
            facts["gid_index"] = str(rdma.gid_index.value)
    return facts


def _is_there(item: NodeVariable, known: set[str], leads: bool) -> bool:
    if item.leads and not leads:
        return False
    return item.given in known if item.given else item.lacking not in known
