"""Kubernetes: the pod of a model, or of one node of a replica, as a tree for the YAML printer."""

from __future__ import annotations

from hashlib import sha256

from servec.emit.kubernetes_nodes import SLOTS, pod_environment, pod_word, process_words
from servec.emit.options import options_text
from servec.emit.yaml import Traced, Tree
from servec.ir import decl
from servec.ir.artifact import Trace
from servec.ir.launch import FILES, Launch, NodeProcess
from servec.ir.setting import Origin, Setting
from servec.ir.site import gpu_resource

SHARED_MEMORY = "16Gi"
"""A container's own /dev/shm is 64 MiB; processes of one server pass tensors through it."""
KEY_FOLDER = "/run/secrets/servec"
LOAD_SECONDS = 3600
PROBE_SECONDS = 10
DRAIN_SECONDS = 120


def pod(launch: Launch, site: decl.KubernetesSite | None, *, leads: bool = True) -> dict[str, Tree]:
    found: dict[str, Tree] = {
        # A Service called as the engine would inject variables that the engine reads as its own.
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": DRAIN_SECONDS + 30,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    if leads and launch.beside is not None:
        found["initContainers"] = [_beside(launch, launch.beside, site)]
    if not leads and launch.beside is not None:
        found["initContainers"] = [_wait(launch)]
    found["containers"] = [_container(launch, site, leads=leads)]
    volumes: list[Tree] = []
    if launch.plan.topology.gpus > 1:
        memory: dict[str, Tree] = {"medium": "Memory", "sizeLimit": SHARED_MEMORY}
        volumes.append({"name": "shared-memory", "emptyDir": memory})
    if leads and launch.beside is not None and launch.beside.shares:
        volumes.append({"name": "shared-folder", "emptyDir": {}})
    if leads and (secret := _key_secret(launch, site)) is not None:
        origin = Origin(secret.secret.span, "")
        volume: dict[str, Tree] = {
            "secretName": traced(secret.secret.value, None, origin),
            "items": [{"key": secret.key.value, "path": _key_file(launch)}],
            "defaultMode": 0o440,
        }
        volumes.append({"name": "api-key", "secret": volume})
    if launch.files:
        volumes.append({"name": "files", "configMap": {"name": files_name(launch)}})
    if volumes:
        found["volumes"] = volumes
    return found


def _container(launch: Launch, site: decl.KubernetesSite | None, *, leads: bool) -> dict[str, Tree]:
    subject = launch.plan.subject
    image = subject.image
    assert image is not None
    model = f"{subject.file} models.{subject.model.name.value}"
    container: dict[str, Tree] = {
        "name": "server" if leads else "worker",
        "image": traced(image.value, None, Origin(image.span, f"{model}.image")),
    }
    if launch.worker is not None and not leads:
        container |= process_words(launch, launch.worker)
    elif launch.command:
        container |= _command(launch, site, leads=leads)
    if env := pod_environment(launch, site, leads=leads):
        container["env"] = env
    if leads:
        container["ports"] = [{"name": "http", "containerPort": port_of(launch)}]
    if not (leads and launch.beside is not None and launch.beside.computes):
        container["resources"] = _resources(launch, site)
    if leads:
        container |= _probes(launch)
    container["securityContext"] = _security(launch, site)
    if mounts := _mounts(launch, site, leads=leads):
        container["volumeMounts"] = mounts
    return container


def _beside(
    launch: Launch, process: NodeProcess, site: decl.KubernetesSite | None
) -> dict[str, Tree]:
    """The leader's other process, in the server's own image: a sidecar, which starts before the
    server, and which the server waits for."""
    image = launch.plan.subject.image
    assert image is not None
    container: dict[str, Tree] = {
        "name": process.name,
        "image": traced(image.value, None, Origin(image.span, "")),
        "restartPolicy": "Always",
        **process_words(launch, process),
        "env": pod_environment(launch, site, leads=True),
    }
    if process.computes:
        container["resources"] = _resources(launch, site)
    container["startupProbe"] = {
        "tcpSocket": {"port": launch.placement.leader_port},
        "periodSeconds": 1,
        "failureThreshold": 300,
    }
    container["securityContext"] = _security(launch, site)
    container["volumeMounts"] = _mounts(launch, site, leads=True)
    return container


def _wait(launch: Launch) -> dict[str, Tree]:
    """What a worker's pod does first: nothing can be joined before it is there."""
    image = launch.plan.subject.image
    assert image is not None
    script = 'until (exec 3<>"/dev/tcp/$0/$1") 2>/dev/null; do sleep 1; done'
    port = str(launch.placement.leader_port)
    return {
        "name": "wait-for-leader",
        "image": traced(image.value, None, Origin(image.span, "")),
        "command": ["bash", "-c", script, SLOTS["leader_address"], port],
        "securityContext": _security(launch, None),
    }


def _resources(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    resource = gpu_resource(launch.plan.subject.accelerator, site)
    assert resource is not None
    count = str(launch.placement.gpus_per_node)
    rule = "GPUs of each node" if launch.placement.way else "tp · pp · dp GPUs"
    found: dict[str, Tree] = {resource: of_topology(launch, "tp", count, rule)}
    if launch.placement.way is not None and site is not None and site.rdma is not None:
        origin = Origin(site.rdma.resource.span, "")
        found[site.rdma.resource.value] = traced("1", None, origin)
    return {"requests": found, "limits": found}


def _security(launch: Launch, site: decl.KubernetesSite | None) -> dict[str, Tree]:
    capabilities: dict[str, Tree] = {"drop": ["ALL"]}
    if launch.placement.way is not None and site is not None and site.rdma is not None:
        capabilities["add"] = ["IPC_LOCK"]  # RDMA pins the memory that it reads and writes
    return {"allowPrivilegeEscalation": False, "capabilities": capabilities}


def _key_secret(launch: Launch, site: decl.KubernetesSite | None) -> decl.ApiKeySite | None:
    """The Secret of the API key, where the server reads the key from a file."""
    channel = launch.api_key
    return site.api_key if site and channel is not None and channel.file is not None else None


def _key_file(launch: Launch) -> str:
    assert launch.api_key is not None
    assert launch.api_key.file is not None
    return launch.api_key.file.name.value


def _mounts(launch: Launch, site: decl.KubernetesSite | None, *, leads: bool) -> list[Tree]:
    mounts: list[Tree] = []
    if launch.plan.topology.gpus > 1:
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
    if leads and launch.beside is not None and launch.beside.shares:
        mounts.append({"name": "shared-folder", "mountPath": launch.beside.shares})
    if leads and _key_secret(launch, site) is not None:
        mounts.append({"name": "api-key", "mountPath": KEY_FOLDER, "readOnly": True})
    if launch.files:
        mounts.append({"name": "files", "mountPath": FILES, "readOnly": True})
    return mounts


def _command(launch: Launch, site: decl.KubernetesSite | None, *, leads: bool) -> dict[str, Tree]:
    program, *rest = launch.command
    key: list[Tree] = []
    if leads and (secret := _key_secret(launch, site)) is not None:
        assert launch.api_key is not None
        assert launch.api_key.file is not None
        origin = Origin(secret.span, "")
        words = (launch.api_key.file.flag.value, f"{KEY_FOLDER}/{_key_file(launch)}")
        key = [traced(word, None, origin) for word in words]
    return {
        "command": [traced(pod_word(word, launch), None, program.origin) for word in program.words],
        "args": [
            *(
                traced(pod_word(word, launch), group.setting, group.origin)
                for group in rest
                if not group.who or (group.who == "leader") is leads
                for word in group.words
            ),
            *key,
        ],
    }


def _probes(launch: Launch) -> dict[str, Tree]:
    """The port opens after the load, so only the start-up probe waits for it."""
    health = launch.plan.subject.health.path
    origin = Origin(health.span, "", f"health of {launch.plan.subject.engine.name}")
    path = traced(launch.health_path, None, origin)
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


def files_name(launch: Launch) -> str:
    digest = sha256("".join(options_text(file) for file in launch.files).encode())
    return f"{launch.plan.name}-{digest.hexdigest()[:8]}"


def of_topology(launch: Launch, key: str, value: str | int, rule: str) -> Traced:
    setting = launch.plan.setting(f"topology.{key}")
    return traced(value, setting, None if setting else Origin(None, "", rule))


def port_of(launch: Launch) -> Traced:
    return traced(launch.port, launch.plan.setting("port"), None)


def traced(value: str | int, setting: Setting | None, origin: Origin | None) -> Traced:
    if origin is None:
        assert setting is not None
        origin = setting.winner.origin
    return Traced(value, Trace(setting, origin))
