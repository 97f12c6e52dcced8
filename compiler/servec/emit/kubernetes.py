"""Kubernetes: Deployment, Service and kustomization of a model, as trees for the YAML printer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from servec.emit.header import header
from servec.emit.options import options_text
from servec.emit.yaml import Traced, Tree, print_yaml
from servec.ir import decl
from servec.ir.artifact import Artifact, Trace
from servec.ir.launch import FILES, Launch
from servec.ir.setting import Origin, Setting
from servec.ir.site import gpu_resource

SHARED_MEMORY = "16Gi"
"""A container's own /dev/shm is 64 MiB; processes of one server pass tensors through it."""
LOAD_SECONDS = 3600
PROBE_SECONDS = 10
DRAIN_SECONDS = 120


def manifests(launch: Launch, site: decl.KubernetesSite | None) -> Iterator[Artifact]:
    folder = f"{launch.plan.name}/kubernetes"
    trees = {"deployment": _deployment(launch, site), "service": _service(launch)}
    if launch.files:
        trees["files"] = _files(launch)
    trees["kustomization"] = _kustomization(site, list(trees))
    for name, tree in trees.items():
        text, traces = print_yaml(header(launch.plan), tree)
        yield Artifact(f"{folder}/{name}.yaml", text, traces=traces)


def _labels(launch: Launch) -> dict[str, Tree]:
    return {
        "app.kubernetes.io/name": launch.plan.subject.model.name.value,
        "app.kubernetes.io/instance": launch.plan.name,
        "app.kubernetes.io/component": "inference-server",
        "app.kubernetes.io/managed-by": "servec",
    }


def _selector(launch: Launch) -> dict[str, Tree]:
    return {"app.kubernetes.io/instance": launch.plan.name}


def _deployment(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    name = launch.plan.subject.model.name
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": _traced(launch.plan.name, None, Origin(name.span, "", "the model's name")),
            "labels": _labels(launch),
        },
        "spec": {
            "replicas": _of_topology(
                launch, "replicas", launch.plan.topology.replicas, "one unless told otherwise"
            ),
            "selector": {"matchLabels": _selector(launch)},
            # GPUs have no spare: a new server starts where an old one has gone.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "progressDeadlineSeconds": LOAD_SECONDS + 600,
            "template": {
                "metadata": {"labels": _labels(launch), **_scraped(launch)},
                "spec": _pod(launch, site),
            },
        },
    }


def _scraped(launch: Launch) -> dict[str, Tree]:
    """Annotations by which Prometheus finds the metrics, where its configuration heeds them."""
    metrics, endpoint = launch.metrics, launch.plan.subject.engine.manifest.metrics_endpoint
    if metrics is None or endpoint is None:
        return {}
    origin = Origin(endpoint.span, "", f"metrics of {launch.plan.subject.engine.name}")
    return {
        "annotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": _traced(str(metrics.port), None, origin),
            "prometheus.io/path": _traced(metrics.path, None, origin),
        }
    }


def _pod(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    pod: dict[str, Tree] = {
        # A Service called as the engine would inject variables that the engine reads as its own.
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": DRAIN_SECONDS + 30,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(launch, site)],
    }
    volumes: list[Tree] = []
    if launch.plan.topology.gpus > 1:
        memory: dict[str, Tree] = {"medium": "Memory", "sizeLimit": SHARED_MEMORY}
        volumes.append({"name": "shared-memory", "emptyDir": memory})
    if launch.files:
        volumes.append({"name": "files", "configMap": {"name": _files_name(launch)}})
    if volumes:
        pod["volumes"] = volumes
    return pod


def _container(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    subject = launch.plan.subject
    image, resource = subject.image, gpu_resource(subject.accelerator, site)
    assert image is not None
    assert resource is not None
    model = f"{subject.file} models.{subject.model.name.value}"
    container: dict[str, Tree] = {
        "name": "server",
        "image": _traced(image.value, None, Origin(image.span, f"{model}.image")),
    }
    if launch.command:
        container |= _command(launch)
    if launch.env:
        container["env"] = [
            {
                "name": variable.name,
                "value": _traced(_literal(variable.value), None, variable.origin),
            }
            for variable in launch.env
        ]
    count = str(launch.plan.topology.gpus)
    gpus: dict[str, Tree] = {resource: _of_topology(launch, "tp", count, "tp · pp · dp GPUs")}
    container["ports"] = [{"name": "http", "containerPort": _port(launch)}]
    container["resources"] = {"requests": gpus, "limits": gpus}
    container |= _probes(launch)
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts: list[Tree] = []
    if launch.plan.topology.gpus > 1:
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
    if launch.files:
        mounts.append({"name": "files", "mountPath": FILES, "readOnly": True})
    if mounts:
        container["volumeMounts"] = mounts
    return container


def _command(launch: Launch) -> dict[str, Tree]:
    program, *rest = launch.command
    return {
        "command": [_traced(_literal(word), None, program.origin) for word in program.words],
        "args": [
            _traced(_literal(word), group.setting, group.origin)
            for group in rest
            for word in group.words
        ],
    }


def _probes(launch: Launch) -> dict[str, Tree]:
    """The port opens after the load, so only the start-up probe waits for it."""
    health = launch.plan.subject.health.path
    origin = Origin(health.span, "", f"health of {launch.plan.subject.engine.name}")
    path = _traced(launch.health_path, None, origin)
    get: dict[str, Tree] = {"httpGet": {"path": path, "port": "http"}}
    timeout = {"timeoutSeconds": launch.health_timeout_seconds}
    period = PROBE_SECONDS
    return {
        "startupProbe": {
            **get,
            "periodSeconds": period,
            **timeout,
            "failureThreshold": LOAD_SECONDS // period,
        },
        "readinessProbe": {**get, "periodSeconds": period, **timeout, "failureThreshold": 3},
        "livenessProbe": {
            **get,
            "periodSeconds": 30,
            "timeoutSeconds": max(20, launch.health_timeout_seconds),
            "failureThreshold": 4,
        },
    }


def _service(launch: Launch) -> dict[str, Tree]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": launch.plan.name, "labels": _labels(launch)},
        "spec": {
            "selector": _selector(launch),
            "ports": [{"name": "http", "port": _port(launch), "targetPort": "http"}],
        },
    }


def _files(launch: Launch) -> dict[str, Tree]:
    """The files of options. The name has their digest: changed options are a new object, so that a
    server that still runs, or is rolled back to, keeps its own."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _files_name(launch), "labels": _labels(launch)},
        "immutable": True,
        "data": {file.name: options_text(file) for file in launch.files},
    }


def _files_name(launch: Launch) -> str:
    digest = sha256("".join(options_text(file) for file in launch.files).encode())
    return f"{launch.plan.name}-{digest.hexdigest()[:8]}"


def _kustomization(site: decl.KubernetesSite | None, files: list[str]) -> dict[str, Tree]:
    tree: dict[str, Tree] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
    }
    if site and site.namespace:
        origin = Origin(site.namespace.span, "")
        tree["namespace"] = _traced(site.namespace.value, None, origin)
    tree["resources"] = [f"{name}.yaml" for name in files]
    return tree


def _of_topology(launch: Launch, key: str, value: str | int, rule: str) -> Traced:
    setting = launch.plan.setting(f"topology.{key}")
    return _traced(value, setting, None if setting else Origin(None, "", rule))


def _port(launch: Launch) -> Traced:
    return _traced(launch.port, launch.plan.setting("port"), None)


def _traced(value: str | int, setting: Setting | None, origin: Origin | None) -> Traced:
    if origin is None:
        assert setting is not None
        origin = setting.winner.origin
    return Traced(value, Trace(setting, origin))


def _literal(word: str) -> str:
    """A word that Kubernetes passes on as it is: `$(NAME)` would be expanded, `$$` halved."""
    return re.sub(r"\$(?=[$(])", "$$", word)
