"""Kubernetes: Deployment, Service and kustomization of a model, as trees for the YAML printer.

A replica over several nodes is a group of a LeaderWorkerSet (leaderworkerset.x-k8s.io/v1): a leader
that serves and workers that join it. What a pod knows of itself comes from the group's variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from servec.diag.findings import Findings
from servec.emit.header import header
from servec.emit.kubernetes_pod import LOAD_SECONDS, files_name, of_topology, pod, port_of, traced
from servec.emit.options import options_text
from servec.emit.yaml import Traced, Tree, print_yaml
from servec.ir import decl
from servec.ir.artifact import Artifact
from servec.ir.launch import Launch
from servec.ir.setting import Origin
from servec.source.located import Map
from servec.verify.kubernetes import check_objects
from servec.verify.trees import located_tree

SERVER, WORKER = "inference-server", "inference-worker"


def manifests(
    launch: Launch, site: decl.KubernetesSite | None, findings: Findings
) -> Iterator[Artifact]:
    """The files of a model; what the API server would refuse of them is told."""
    folder = f"{launch.plan.name}/kubernetes"
    if launch.placement.way is None:
        trees = {"deployment": _deployment(launch, site)}
    else:
        trees = {"leaderworkerset": _group(launch, site)}
    trees["service"] = _service(launch)
    if launch.files:
        trees["files"] = _files(launch)
    check_objects(_objects(launch, list(trees.values())), findings)
    trees["kustomization"] = _kustomization(site, list(trees))
    for name, tree in trees.items():
        text, traces = print_yaml(header(launch.plan), tree)
        yield Artifact(f"{folder}/{name}.yaml", text, traces=traces)


def _objects(launch: Launch, trees: list[dict[str, Tree]]) -> list[Map]:
    place = launch.plan.subject.model.name.span
    found = (located_tree(tree, place) for tree in trees)
    return [item for item in found if isinstance(item, Map)]


def _labels(launch: Launch, component: str = SERVER) -> dict[str, Tree]:
    return {
        "app.kubernetes.io/name": launch.plan.subject.model.name.value,
        "app.kubernetes.io/instance": launch.plan.name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "servec",
    }


def _named(launch: Launch) -> Traced:
    name = launch.plan.subject.model.name
    return traced(launch.plan.name, None, Origin(name.span, "", "the model's name"))


def _selector(launch: Launch) -> dict[str, Tree]:
    found: dict[str, Tree] = {"app.kubernetes.io/instance": launch.plan.name}
    if launch.placement.way is not None:
        found["app.kubernetes.io/component"] = SERVER
    return found


def _deployment(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": _named(launch),
            "labels": _labels(launch),
        },
        "spec": {
            "replicas": of_topology(
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
                "spec": pod(launch, site),
            },
        },
    }


def _group(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    """A LeaderWorkerSet. A group whose pod has gone starts anew as a whole: its processes wait for
    one another and cannot be joined later."""
    placement = launch.placement
    of_nodes = launch.plan.subject.model.nodes
    size = Origin(of_nodes.span if of_nodes else None, "", "nodes of a replica")
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": _named(launch),
            "labels": _labels(launch),
        },
        "spec": {
            "replicas": of_topology(
                launch, "replicas", launch.plan.topology.replicas, "one unless told otherwise"
            ),
            # GPUs have no spare: a new group starts where an old one has gone.
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "startupPolicy": "LeaderCreated",
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "leaderWorkerTemplate": {
                "size": traced(placement.nodes, None, size),
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {
                    "metadata": {"labels": _labels(launch), **_scraped(launch)},
                    "spec": pod(launch, site),
                },
                "workerTemplate": {
                    "metadata": {"labels": _labels(launch, WORKER)},
                    "spec": pod(launch, site, leads=False),
                },
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
            "prometheus.io/port": traced(str(metrics.port), None, origin),
            "prometheus.io/path": traced(metrics.path, None, origin),
        }
    }


def _service(launch: Launch) -> dict[str, Tree]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _named(launch), "labels": _labels(launch)},
        "spec": {
            "selector": _selector(launch),
            "ports": [{"name": "http", "port": port_of(launch), "targetPort": "http"}],
        },
    }


def _files(launch: Launch) -> dict[str, Tree]:
    """The files of options. The name has their digest: changed options are a new object, so that a
    server that still runs, or is rolled back to, keeps its own."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": files_name(launch), "labels": _labels(launch)},
        "immutable": True,
        "data": {file.name: options_text(file) for file in launch.files},
    }


def _kustomization(site: decl.KubernetesSite | None, files: list[str]) -> dict[str, Tree]:
    tree: dict[str, Tree] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
    }
    if site and site.namespace:
        origin = Origin(site.namespace.span, "")
        tree["namespace"] = traced(site.namespace.value, None, origin)
    tree["resources"] = [f"{name}.yaml" for name in files]
    return tree
