"""What a site gives, or what holds where it says nothing."""

from __future__ import annotations

from servec.ir import decl, knowledge

# Resource names of the vendors' device plugins: NVIDIA/k8s-device-plugin, ROCm/k8s-device-plugin,
# intel/intel-device-plugins-for-kubernetes, Ascend device plugin; read 2026-11-30.
GPU_RESOURCES = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "intel": "gpu.intel.com/xe",
    "huawei": "huawei.com/Ascend910",
}
POD_INTERFACE = "eth0"
"""What a pod's own network is called."""


def targets_of(model: decl.Model, project: decl.Project) -> set[str]:
    """What is written for a model: its own targets, else the project's, else all."""
    named = model.targets or project.targets
    return {target.value for target in named} or set(decl.TARGETS.words)


def pod_interface(site: decl.KubernetesSite | None) -> str:
    """The network interface by which the pods of a replica meet."""
    return site.interface.value if site and site.interface else POD_INTERFACE


def gpu_resource(
    accelerator: knowledge.Accelerator, site: decl.KubernetesSite | None
) -> str | None:
    """The name that a pod asks for its GPUs by, or None where neither site nor vendor gives one."""
    if site and site.gpu_resource:
        return site.gpu_resource.value
    return GPU_RESOURCES.get(accelerator.vendor.value)
