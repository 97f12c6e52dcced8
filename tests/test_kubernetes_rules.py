"""Rules of the Kubernetes API server that no schema has: one change of a good set of objects breaks
one of them, and is told where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from servec.diag.findings import Findings
from servec.source.located import Map
from servec.source.plain_values import located
from servec.source.yaml_reader import read_yaml
from servec.verify.kubernetes import check_objects

GOOD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: m, labels: {app.kubernetes.io/name: m}}
spec:
  replicas: 1
  selector: {matchLabels: {app: m}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: m}}
    spec:
      restartPolicy: Always
      terminationGracePeriodSeconds: 60
      securityContext: {seccompProfile: {type: RuntimeDefault}}
      resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [H100]}]
      containers:
      - name: server
        image: vllm/vllm-openai:v0.29.0
        imagePullPolicy: IfNotPresent
        env: [{name: HF_HOME, value: /models}]
        ports: [{name: http, containerPort: 8000, protocol: TCP}]
        resources:
          requests: {cpu: 1500m, memory: 8Gi, nvidia.com/gpu: 1}
          limits: {memory: 8Gi, nvidia.com/gpu: "1"}
          claims: [{name: gpus}]
        startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 10}
        livenessProbe: {httpGet: {path: /health, port: 8000}, timeoutSeconds: 20}
        readinessProbe: {httpGet: {path: /health, port: http}, successThreshold: 2}
        lifecycle: {preStop: {sleep: {seconds: 30}}}
        volumeMounts: [{name: shared-memory, mountPath: /dev/shm}]
      volumes: [{name: shared-memory, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
---
apiVersion: v1
kind: Service
metadata: {name: m}
spec:
  selector: {app: m}
  ports: [{name: http, port: 8000, targetPort: http}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: m}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: m}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: m}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: m}, maxReplicas: 2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {options.yaml: "a: 1"}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: m}
spec:
  selector: {matchLabels: {app: m}}
  podMetricsEndpoints: [{port: http, path: /metrics}]
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: m}
spec: {selector: {matchLabels: {}}, endpoints: [{port: http}]}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: g}
spec:
  replicas: 2
  rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 0, maxUnavailable: 1}}
  leaderWorkerTemplate:
    size: 2
    leaderTemplate: {metadata: {labels: {a: b}}, spec: {containers: [{name: s, image: i}]}}
    workerTemplate: {metadata: {labels: {a: c}}, spec: {containers: [{name: s, image: i}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec: {selector: {matchLabels: {a: s}}, template: {metadata: {labels: {a: s}}}}
"""
POD = "0.spec.template.spec"
SERVER = f"{POD}.containers.0"
LONG = "x" * 51
BROKEN: list[tuple[str, str, Any]] = [
    ("SV1101", "2.metadata.name", "M"),
    ("SV1101", "0.metadata.namespace", "a.b"),
    ("SV1101", "1.metadata.name", "7b"),
    ("SV1101", "7.metadata.name", "7b"),
    ("SV1101", f"{SERVER}.name", "a_b"),
    ("SV1101", f"{POD}.volumes.+", {"name": "a.b", "emptyDir": {}}),
    ("SV1101", f"{SERVER}.env.0.name", "A=B"),
    ("SV1101", "1.spec.ports.+", {"name": "Http", "port": 81}),
    ("SV1102", "0.metadata.labels.app.kubernetes.io/name", "-m"),
    ("SV1102", "0.metadata.labels.app.kubernetes.io/name", "m" * 64),
    ("SV1102", "0.metadata.labels.a/b/c", "d"),
    ("SV1103", f"{SERVER}.imagePullPolicy", "IfNotThere"),
    ("SV1103", f"{POD}.restartPolicy", "always"),
    ("SV1103", f"{SERVER}.ports.0.protocol", "tcp"),
    ("SV1103", f"{POD}.topologySpreadConstraints.0.whenUnsatisfiable", "Schedule"),
    ("SV1103", f"{POD}.tolerations.0.operator", "Is"),
    ("SV1103", f"{POD}.tolerations.0.effect", "NoRun"),
    ("SV1103", f"{POD}.volumes.0.emptyDir.medium", "RAM"),
    ("SV1103", f"{POD}.securityContext.seccompProfile.type", "runtime/default"),
    ("SV1103", "0.spec.strategy.type", "Rolling"),
    (
        "SV1103",
        f"{POD}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms.0.matchExpressions.0.operator",
        "Equals",
    ),
    ("SV1104", f"{SERVER}.ports.0.containerPort", 70000),
    ("SV1104", f"{SERVER}.ports.0.containerPort", 0),
    ("SV1104", f"{SERVER}.livenessProbe.httpGet.port", 65536),
    ("SV1104", "1.spec.ports.0.port", 0),
    ("SV1105", f"{SERVER}.env.+", {"name": "HF_HOME", "value": "/x"}),
    ("SV1105", f"{POD}.volumes.+", {"name": "shared-memory", "emptyDir": {}}),
    ("SV1105", f"{POD}.containers.+", {"name": "server", "image": "i"}),
    ("SV1105", f"{SERVER}.ports.+", {"name": "http", "containerPort": 9000}),
    ("SV1105", f"{SERVER}.ports.+", {"name": "more", "containerPort": 8000}),
    ("SV1105", f"{SERVER}.volumeMounts.+", {"name": "shared-memory", "mountPath": "/dev/shm"}),
    ("SV1106", f"{SERVER}.volumeMounts.0.name", "shared-memories"),
    ("SV1107", f"{SERVER}.resources.requests.memory", "9Gi"),
    ("SV1108", f"{SERVER}.resources.requests.nvidia.com/gpu", 2),
    ("SV1108", f"{SERVER}.resources.limits.amd.com/gpu", "0.5"),
    ("SV1108", f"{SERVER}.resources.requests.rdma/ib", 1),
    ("SV1109", f"{SERVER}.startupProbe.periodSeconds", 0),
    ("SV1109", f"{SERVER}.livenessProbe.timeoutSeconds", 0),
    ("SV1109", f"{SERVER}.livenessProbe.successThreshold", 2),
    ("SV1109", f"{POD}.topologySpreadConstraints.0.maxSkew", 0),
    ("SV1110", "0.spec.strategy.rollingUpdate.maxUnavailable", 0),
    ("SV1110", "7.spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable", "0%"),
    ("SV1111", "0.spec.selector.matchLabels.tier", "gpu"),
    ("SV1112", "2.spec.minAvailable", 1),
    ("SV1113", f"{SERVER}.lifecycle.preStop.sleep.seconds", 61),
    ("SV1114", f"{SERVER}.resources.claims.0.name", "gpu"),
    ("SV1115", "3.spec.scaleTargetRef.name", "n"),
    ("SV1116", "1.spec.selector.app", "n"),
    ("SV1116", "5.spec.selector.matchLabels.app", "n"),
    ("SV1117", "1.spec.ports.0.targetPort", "metrics"),
    ("SV1117", "5.spec.podMetricsEndpoints.0.port", "metrics"),
    ("SV1117", "6.spec.endpoints.0.port", "metrics"),
    ("SV1118", "4.data.large", "x" * 1024 * 1024),
    ("SV1119", "7.metadata.name", LONG),
    ("SV1119", "8.metadata.name", LONG + "yz"),
    ("SV1120", f"{SERVER}.resources.requests.memory", "256GiB"),
    ("SV1120", f"{POD}.volumes.0.emptyDir.sizeLimit", "16 Gi"),
]


def found_in(objects: list[Any]) -> list[str]:
    findings = Findings()
    nodes = [located(item, findings) for item in objects]
    check_objects([node for node in nodes if isinstance(node, Map)], findings)
    return [item.code.number for item in findings]


def changed(path: str, value: Any) -> list[Any]:
    """The good objects with one value in the place of another; `+` is one more of a list."""
    objects = list(yaml.safe_load_all(GOOD))
    node: Any = objects
    steps = list(_steps(path, objects))
    for step in steps[:-1]:
        node = node[step]
    if steps[-1] == "+":
        node.append(value)
    else:
        node[steps[-1]] = value
    return objects


def _steps(path: str, node: Any) -> Iterator[Any]:
    """The keys of a path; a key may have dots of its own."""
    while path:
        if isinstance(node, list):
            word, _, path = path.partition(".")
            step: Any = word if word == "+" else int(word)
            node = node[step] if step != "+" else None
        else:
            known = [key for key in node or {} if path == key or path.startswith(f"{key}.")]
            step = max(known, key=len) if known else path
            path = path[len(step) :].removeprefix(".")
            node = (node or {}).get(step)
        yield step


def test_good_objects_are_left_alone() -> None:
    assert found_in(list(yaml.safe_load_all(GOOD))) == []


@pytest.mark.parametrize(("code", "path", "value"), BROKEN)
def test_a_broken_rule_is_told(code: str, path: str, value: Any) -> None:
    assert found_in(changed(path, value)) == [code]


@pytest.mark.parametrize("golden", sorted(Path("golden").glob("*/kubernetes")), ids=str)
def test_goldens_break_no_rule(golden: Path) -> None:
    findings = Findings()
    nodes = [read_yaml(str(path), path.read_text(), findings) for path in golden.glob("*.yaml")]
    check_objects([node for node in nodes if isinstance(node, Map)], findings)
    assert [item.message for item in findings] == []
