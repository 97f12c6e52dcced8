"""Objects of Kubernetes that are applied together -> findings about what the API server refuses, or
what never works, though every schema takes it.

Service selector {app: a}, and no pod has the label -> SV1116 at the selector

Sources: kubernetes/kubernetes, pkg/apis/{apps,autoscaling,core,policy}/validation;
kubernetes-sigs/lws, pkg/webhooks/leaderworkerset_webhook.go; read 2026-12-01.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.source.located import At, Map, Node, plain
from servec.verify.forms import (
    DNS_1035,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_NAME,
    LABEL_VALUE,
    Form,
    is_label_key,
)
from servec.verify.pods import Port, check_pod, once, one_of, port_number, ports
from servec.verify.walk import at, entries, items, labels, text, value, whole

FORMS = {"Service": DNS_1035, "LeaderWorkerSet": DNS_1035, "Namespace": DNS_LABEL}
"""Kinds whose names are narrower than a DNS subdomain."""
TEMPLATES: dict[str, tuple[tuple[str, ...], ...]] = {
    "Deployment": (("spec", "template"),),
    "ReplicaSet": (("spec", "template"),),
    "StatefulSet": (("spec", "template"),),
    "DaemonSet": (("spec", "template"),),
    "Job": (("spec", "template"),),
    "CronJob": (("spec", "jobTemplate", "spec", "template"),),
    "Pod": ((),),
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
}
"""Where a kind has its pods."""
ROLLOUTS = {
    "Deployment": ("strategy", ("RollingUpdate", "Recreate")),
    "StatefulSet": ("updateStrategy", ("RollingUpdate", "OnDelete")),
    "DaemonSet": ("updateStrategy", ("RollingUpdate", "OnDelete")),
    "LeaderWorkerSet": ("rolloutStrategy", ("RollingUpdate",)),
}
"""Where a kind says how its pods are replaced, and the ways that there are."""
STATEFUL_NAME = 52
"""A controller puts `-` and ten digits of a digest behind a StatefulSet's name in a label."""
CONFIG_BYTES = 1024 * 1024
MONITORS = {"PodMonitor": "podMetricsEndpoints", "ServiceMonitor": "endpoints"}


class Pods(NamedTuple):
    """The pods that an object makes."""

    labels: dict[str, str]
    ports: list[Port]


def check_objects(objects: Sequence[Map], findings: Findings) -> None:
    """Findings about objects, and about how they go together."""
    pods = [found for item in objects for found in _pods(item)]
    for item in objects:
        _metadata(item, findings)
        for place in TEMPLATES.get(value(item, "kind"), ()):
            template = at(item, *place)
            _labels(at(template, "metadata"), findings)
            spec = at(template, "spec")
            if spec is not None:
                check_pod(spec, findings)
        match value(item, "kind"):
            case "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet":
                _selector(item, findings)
            case "Service":
                _service(item, pods, findings)
            case "PodDisruptionBudget":
                _budget(item, findings)
            case "HorizontalPodAutoscaler" | "ScaledObject":
                _scaler(item, objects, findings)
            case "ConfigMap":
                _config_map(item, findings)
            case "PodMonitor" | "ServiceMonitor":
                _monitor(item, objects, pods, findings)
        _rollout(item, findings)
        _made_names(item, findings)


def _pods(item: Map) -> Iterator[Pods]:
    for place in TEMPLATES.get(value(item, "kind"), ()):
        template = at(item, *place)
        spec = at(template, "spec")
        if spec is not None:
            yield Pods(labels(template, "metadata", "labels"), ports(spec))


def _metadata(item: Map, findings: Findings) -> None:
    kind, name = value(item, "kind"), text(item, "metadata", "name")
    form = FORMS.get(kind, DNS_SUBDOMAIN)
    if name is not None:
        _name(name, form, f"the name of a {kind}", findings)
    namespace = text(item, "metadata", "namespace")
    if namespace is not None:
        _name(namespace, DNS_LABEL, "a namespace", findings)
    _labels(at(item, "metadata"), findings)


def _name(name: At[str], form: Form, what: str, findings: Findings) -> None:
    if not form.takes(name.value):
        findings.add(codes.OBJECT_NAME, name.span, what=what, form=form.what, name=name.value)


def _labels(metadata: Node | None, findings: Findings) -> None:
    for entry in entries(metadata, "labels"):
        if not is_label_key(entry.key.value):
            problem = f"a label's key is {LABEL_NAME.what}, not `{entry.key.value}`"
            findings.add(codes.OBJECT_LABEL, entry.key.span, problem=problem)
        if isinstance(entry.value, At) and not LABEL_VALUE.takes(str(entry.value.value)):
            problem = f"a label's value is {LABEL_VALUE.what}, not `{entry.value.value}`"
            findings.add(codes.OBJECT_LABEL, entry.value.span, problem=problem)


def _made_names(item: Map, findings: Findings) -> None:
    """Names that controllers make of an object's own, by the longest of them."""
    name = text(item, "metadata", "name")
    if name is None:
        return
    made, longest = "", 0
    match value(item, "kind"):
        case "StatefulSet":
            made, longest = name.value, STATEFUL_NAME
        case "LeaderWorkerSet":
            # Each group's workers are a StatefulSet of the group's name, each pod a host name.
            replicas = whole(item, "spec", "replicas")
            group = (replicas.value if replicas else 1) - 1
            made, longest = f"{name.value}-{max(group, 0)}", STATEFUL_NAME
    if len(made) > longest:
        findings.add(codes.MADE_NAME, name.span, made=made, length=len(made), longest=longest)


def _selector(item: Map, findings: Findings) -> None:
    known = labels(item, "spec", "template", "metadata", "labels")
    for entry in entries(item, "spec", "selector", "matchLabels"):
        said = str(plain(entry.value))
        if known.get(entry.key.value) != said:
            findings.add(
                codes.SELECTOR_WITHOUT_LABEL, entry.value.span, label=f"{entry.key.value}: {said}"
            )


def _rollout(item: Map, findings: Findings) -> None:
    place, words = ROLLOUTS.get(value(item, "kind"), ("", ()))
    strategy = at(item, "spec", place)
    one_of(at(strategy, "type"), words, findings)
    for key in ("rollingUpdate", "rollingUpdateConfiguration"):
        surge, gone = at(strategy, key, "maxSurge"), at(strategy, key, "maxUnavailable")
        if surge is not None and gone is not None and _is_none(surge) and _is_none(gone):
            findings.add(codes.NO_ROLLOUT, gone.span, also=(surge.span, "and this"))


def _is_none(node: Node) -> bool:
    return isinstance(node, At) and str(node.value) in ("0", "0%")


def _service(item: Map, pods: list[Pods], findings: Findings) -> None:
    found = items(item, "spec", "ports")
    once((text(port, "name") for port in found), "port", findings)
    for port in found:
        port_number(at(port, "port"), findings)
        if (name := text(port, "name")) is not None:
            _name(name, DNS_LABEL, "a port's name", findings)
        one_of(at(port, "protocol"), ("TCP", "UDP", "SCTP"), findings)
    selector = at(item, "spec", "selector")
    if selector is None or not pods:
        return
    chosen = [one for one in pods if _chooses(labels(selector), one.labels)]
    if not chosen:
        findings.add(codes.SELECTS_NOTHING, selector.span, what="this Service")
        return
    for port in found:
        target = at(port, "targetPort")
        if isinstance(target, At) and isinstance(target.value, str):
            _port_there(At(target.value, target.span), chosen, findings)


def _port_there(name: At[str], chosen: list[Pods], findings: Findings) -> None:
    known = {port.name for one in chosen for port in one.ports if port.name}
    if name.value not in known:
        near = nearest(name.value, known)
        findings.add(codes.NO_SUCH_PORT, name.span, name=name.value, suggestion=near)


def _chooses(selector: dict[str, str], found: dict[str, str]) -> bool:
    return all(found.get(key) == said for key, said in selector.items())


def _budget(item: Map, findings: Findings) -> None:
    least, most = at(item, "spec", "minAvailable"), at(item, "spec", "maxUnavailable")
    if (least is None) is (most is None):
        spec = at(item, "spec")
        span = most.span if most is not None else (spec or item).span
        findings.add(codes.BUDGET, span, count="both" if most is not None else "none")


def _scaler(item: Map, objects: Sequence[Map], findings: Findings) -> None:
    target = at(item, "spec", "scaleTargetRef")
    name = text(target, "name")
    kind = value(target, "kind") or "Deployment"
    known = {value(one, "metadata", "name") for one in objects if value(one, "kind") == kind}
    if name is not None and name.value not in known:
        findings.add(codes.SCALES_NOTHING, name.span, kind=kind, name=name.value)


def _config_map(item: Map, findings: Findings) -> None:
    size = sum(
        len(entry.key.value) + len(str(plain(entry.value)).encode())
        for group in ("data", "binaryData")
        for entry in entries(item, group)
    )
    if size > CONFIG_BYTES:
        findings.add(codes.LARGE_CONFIG_MAP, item.span, size=size)


def _monitor(item: Map, objects: Sequence[Map], pods: list[Pods], findings: Findings) -> None:
    kind = value(item, "kind")
    selector = at(item, "spec", "selector", "matchLabels")
    if selector is None:
        return
    wanted = labels(selector)
    if kind == "PodMonitor":
        chosen = [one for one in pods if _chooses(wanted, one.labels)]
        known = {port.name for one in chosen for port in one.ports if port.name}
    else:
        services = [one for one in objects if value(one, "kind") == "Service"]
        found = [one for one in services if _chooses(wanted, labels(one, "metadata", "labels"))]
        chosen = [Pods({}, []) for _ in found]
        known = {value(port, "name") for one in found for port in items(one, "spec", "ports")}
    if not chosen:
        findings.add(codes.SELECTS_NOTHING, selector.span, what=f"this {kind}")
        return
    for endpoint in items(item, "spec", MONITORS[kind]):
        port = text(endpoint, "port")
        if port is not None and port.value not in known:
            findings.add(codes.NO_SUCH_PORT, port.span, name=port.value)
