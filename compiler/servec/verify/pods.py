"""What the API server refuses of a pod, though its schema takes it.

ports: [{name: Http, containerPort: 0}] -> SV1104 at the name, SV1104 at the number

Source: kubernetes/kubernetes, pkg/apis/core/validation/validation.go, read 2026-12-01.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.source.located import At, Map, Node, Span
from servec.verify.forms import DNS_LABEL, PORT_NAME, VARIABLE, Form, quantity
from servec.verify.walk import at, entries, items, text, value, whole

GROUPS = ("initContainers", "containers", "ephemeralContainers")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
NATIVE = ("cpu", "memory", "ephemeral-storage", "storage")
HUGE_PAGES = "hugepages-"
GRACE_SECONDS = 30
"""What a pod that names no grace period has."""
WORDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("restartPolicy",): ("Always", "OnFailure", "Never"),
    ("dnsPolicy",): ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    ("preemptionPolicy",): ("Never", "PreemptLowerPriority"),
    ("securityContext", "seccompProfile", "type"): ("RuntimeDefault", "Unconfined", "Localhost"),
    ("securityContext", "fsGroupChangePolicy"): ("OnRootMismatch", "Always"),
}
"""Words of a pod, by where they stand."""
CONTAINER_WORDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("imagePullPolicy",): ("Always", "IfNotPresent", "Never"),
    ("terminationMessagePolicy",): ("File", "FallbackToLogsOnError"),
    ("securityContext", "seccompProfile", "type"): ("RuntimeDefault", "Unconfined", "Localhost"),
}
PROTOCOLS = ("TCP", "UDP", "SCTP")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
LEAST = {
    "periodSeconds": 1,
    "timeoutSeconds": 1,
    "successThreshold": 1,
    "failureThreshold": 1,
    "initialDelaySeconds": 0,
    "terminationGracePeriodSeconds": 1,
}


class Port(NamedTuple):
    """A port of a pod's containers."""

    name: str
    number: int


def check_pod(spec: Node, findings: Findings) -> None:
    """Findings about a pod's `spec`."""
    _words(spec, WORDS, findings)
    containers = [item for group in GROUPS for item in items(spec, group)]
    once((text(item, "name") for item in containers), "container", findings)
    volumes = items(spec, "volumes")
    once((text(item, "name") for item in volumes), "volume", findings)
    for volume in volumes:
        _named(text(volume, "name"), DNS_LABEL, "a volume's name", findings)
        if (medium := at(volume, "emptyDir", "medium")) is not None:
            one_of(medium, ("", "Memory", "HugePages"), findings)
        _quantity(at(volume, "emptyDir", "sizeLimit"), findings)
    names = {value(item, "name") for item in volumes}
    claims = {value(item, "name") for item in items(spec, "resourceClaims")}
    grace = whole(spec, "terminationGracePeriodSeconds")
    for container in containers:
        _container(container, names, claims, grace.value if grace else GRACE_SECONDS, findings)
    _numbers_once(items(spec, "containers"), findings)
    _scheduling(spec, findings)


def ports(spec: Node) -> list[Port]:
    """The ports of a pod's containers."""
    return [
        Port(value(port, "name"), number.value)
        for group in GROUPS
        for container in items(spec, group)
        for port in items(container, "ports")
        if (number := whole(port, "containerPort")) is not None
    ]


def one_of(node: Node | None, words: tuple[str, ...], findings: Findings) -> None:
    """A word that the API server knows; case counts."""
    if not isinstance(node, At) or node.value in words:
        return
    said = str(node.value)
    by_case = {word.lower(): word for word in words}
    near = by_case.get(said.lower()) or nearest(said, words)
    known = ", ".join(word or '""' for word in words)
    findings.add(codes.OBJECT_WORD, node.span, word=said, known=known, suggestion=near)


def once(names: Iterable[At[str] | None], what: str, findings: Findings) -> None:
    """Names that may stand only once in their list."""
    seen: dict[str, Span] = {}
    for name in names:
        if name is None:
            continue
        if name.value in seen:
            also = (seen[name.value], "first here")
            findings.add(codes.OBJECT_TWICE, name.span, what=what, name=name.value, also=also)
        seen.setdefault(name.value, name.span)


def port_number(node: Node | None, findings: Findings) -> None:
    found = whole(node)
    if found is not None and not 1 <= found.value <= 65535:
        problem = f"a port is a number of 1 to 65535, not {found.value}"
        findings.add(codes.OBJECT_PORT, found.span, problem=problem)


def port_name(node: Node | None, findings: Findings) -> None:
    found = text(node)
    if found is not None and not PORT_NAME.takes(found.value):
        problem = f"a port's name has {PORT_NAME.what}, not `{found.value}`"
        findings.add(codes.OBJECT_PORT, found.span, problem=problem)


def _named(name: At[str] | None, form: Form, what: str, findings: Findings) -> None:
    if name is not None and not form.takes(name.value):
        findings.add(codes.OBJECT_NAME, name.span, what=what, form=form.what, name=name.value)


def _words(node: Node, known: dict[tuple[str, ...], tuple[str, ...]], findings: Findings) -> None:
    for place, words in known.items():
        one_of(at(node, *place), words, findings)


def _container(
    container: Node, volumes: set[str], claims: set[str], grace: int, findings: Findings
) -> None:
    _named(text(container, "name"), DNS_LABEL, "a container's name", findings)
    _words(container, CONTAINER_WORDS, findings)
    variables = items(container, "env")
    once((text(item, "name") for item in variables), "variable", findings)
    for item in variables:
        _named(text(item, "name"), VARIABLE, "a variable's name", findings)
    _ports(container, findings)
    _mounts(container, volumes, findings)
    _resources(container, claims, findings)
    for name in PROBES:
        _probe(name, at(container, name), findings)
    sleep = whole(container, "lifecycle", "preStop", "sleep", "seconds")
    if sleep is not None and sleep.value > grace:
        findings.add(codes.OBJECT_GRACE, sleep.span, sleep=sleep.value, grace=grace)


def _ports(container: Node, findings: Findings) -> None:
    found = items(container, "ports")
    once((text(item, "name") for item in found), "port", findings)
    for port in found:
        port_name(at(port, "name"), findings)
        port_number(at(port, "containerPort"), findings)
        port_number(at(port, "hostPort"), findings)
        one_of(at(port, "protocol"), PROTOCOLS, findings)


def _numbers_once(containers: tuple[Node, ...], findings: Findings) -> None:
    """Containers share the pod's network: two that listen on one port do not start together."""
    seen: dict[tuple[int, str], Span] = {}
    for container in containers:
        for port in items(container, "ports"):
            number = whole(port, "containerPort")
            if number is None:
                continue
            key = (number.value, value(port, "protocol") or "TCP")
            if key in seen:
                also = (seen[key], "first here")
                name = f"{key[0]}/{key[1]}"
                findings.add(codes.OBJECT_TWICE, number.span, what="port", name=name, also=also)
            seen.setdefault(key, number.span)


def _mounts(container: Node, volumes: set[str], findings: Findings) -> None:
    mounts = items(container, "volumeMounts")
    once((text(item, "mountPath") for item in mounts), "mount path", findings)
    for mount in mounts:
        name = text(mount, "name")
        if name is not None and name.value not in volumes:
            near = nearest(name.value, volumes)
            findings.add(codes.MOUNT_WITHOUT_VOLUME, name.span, name=name.value, suggestion=near)


def _quantity(node: Node | None, findings: Findings) -> Fraction | None:
    if not isinstance(node, At):
        return None
    found = quantity(node.value)
    if found is None or found < 0:
        findings.add(codes.OBJECT_QUANTITY, node.span, text=str(node.value))
    return found


def _resources(container: Node, claims: set[str], findings: Findings) -> None:
    amounts: dict[str, dict[str, Fraction]] = {"requests": {}, "limits": {}}
    places: dict[tuple[str, str], Span] = {}
    for group, found in amounts.items():
        for entry in entries(container, "resources", group):
            amount = _quantity(entry.value, findings)
            if amount is not None:
                found[entry.key.value] = amount
                places[group, entry.key.value] = entry.value.span
    requests, limits = amounts.values()
    for name, amount in requests.items():
        if is_device(name):
            continue
        if name in limits and amount > limits[name]:
            also = (places["limits", name], "the limit")
            findings.add(
                codes.REQUEST_OVER_LIMIT, places["requests", name], resource=name, also=also
            )
    for name in dict.fromkeys((*requests, *limits)):
        if is_device(name):
            _device(name, requests.get(name), limits.get(name), places, findings)
    for claim in items(container, "resources", "claims"):
        named = text(claim, "name")
        if named is not None and named.value not in claims:
            near = nearest(named.value, claims)
            findings.add(codes.CLAIM_NOT_THERE, named.span, name=named.value, suggestion=near)


def is_device(resource: str) -> bool:
    """Whether a resource is counted by a device plugin: a name with a domain."""
    return "/" in resource and not resource.startswith(("kubernetes.io/", HUGE_PAGES))


def _device(
    name: str,
    request: Fraction | None,
    limit: Fraction | None,
    places: dict[tuple[str, str], Span],
    findings: Findings,
) -> None:
    place = places.get(("limits", name)) or places["requests", name]
    if any(amount is not None and amount.denominator != 1 for amount in (request, limit)):
        findings.add(codes.DEVICES, place, resource=name, problem="is counted in whole devices")
    elif limit is None:
        findings.add(codes.DEVICES, place, resource=name, problem="has a request and no limit")
    elif request is not None and request != limit:
        problem = f"has the request {request} and the limit {limit}"
        findings.add(codes.DEVICES, place, resource=name, problem=problem)


def _probe(name: str, probe: Node | None, findings: Findings) -> None:
    for key, least in LEAST.items():
        found = whole(probe, key)
        if found is not None and found.value < least:
            problem = f"`{key}` is {found.value}, and at least {least}"
            findings.add(codes.OBJECT_PROBE, found.span, problem=problem)
    successes = whole(probe, "successThreshold")
    if name != "readinessProbe" and successes is not None and successes.value > 1:
        problem = f"`successThreshold` of a {name} is 1, not {successes.value}"
        findings.add(codes.OBJECT_PROBE, successes.span, problem=problem)
    for way in ("httpGet", "tcpSocket", "grpc"):
        port_number(at(probe, way, "port"), findings)
    if (scheme := at(probe, "httpGet", "scheme")) is not None:
        one_of(scheme, ("HTTP", "HTTPS"), findings)


def _scheduling(spec: Node, findings: Findings) -> None:
    for toleration in items(spec, "tolerations"):
        one_of(at(toleration, "operator"), ("Exists", "Equal", "Lt", "Gt"), findings)
        effects = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
        one_of(at(toleration, "effect"), effects, findings)
    for spread in items(spec, "topologySpreadConstraints"):
        one_of(at(spread, "whenUnsatisfiable"), ("DoNotSchedule", "ScheduleAnyway"), findings)
        skew = whole(spread, "maxSkew")
        if skew is not None and skew.value < 1:
            findings.add(codes.OBJECT_PROBE, skew.span, problem="`maxSkew` is at least 1")
    each_map(at(spec, "affinity"), lambda found: _expressions(found, findings))


def _expressions(node: Map, findings: Findings) -> None:
    for key in ("matchExpressions", "matchFields"):
        for expression in items(node, key):
            one_of(at(expression, "operator"), OPERATORS, findings)


def each_map(node: Node | None, visit: Callable[[Map], None]) -> None:
    """Every mapping in a tree, the outer before the inner."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Map):
            visit(found)
            waiting += [entry.value for entry in reversed(found.entries.values())]
        elif found is not None and not isinstance(found, At):
            waiting += reversed(found.items)
