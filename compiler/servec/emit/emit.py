"""emit: launches -> artifacts.

Launch(qwen3-8b) -> qwen3-8b/plan.json, qwen3-8b/bash/serve.sh, qwen3-8b/systemd/…,
                    qwen3-8b/kubernetes/…; and infer_plans.yaml of all of them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from servec.diag import codes
from servec.diag.findings import Findings
from servec.emit.bash_nodes import facts
from servec.emit.kubernetes import manifests
from servec.emit.options import option_files
from servec.emit.plan_json import plan_json
from servec.emit.plans import infer_plans
from servec.ir import decl
from servec.ir.artifact import Artifact
from servec.ir.launch import Launch
from servec.ir.site import targets_of
from servec.source.files import Files

MANIFEST = "MANIFEST.sha256"


def run(
    launches: tuple[Launch, ...], project: decl.Project, files: Files, findings: Findings
) -> tuple[Artifact, ...]:
    from servec.emit.bash import Wrappers

    wrappers = Wrappers(files, findings)
    artifacts = [infer_plans(launches)]
    for launch in launches:
        wrapper = wrappers.render(launch) if launch.command else None
        artifacts += _of_model(launch, project, wrapper, findings)
    _names_once(artifacts, launches, findings)
    artifacts.append(manifest(artifacts))
    return tuple(sorted(artifacts, key=lambda artifact: artifact.path))


def _names_once(
    artifacts: list[Artifact], launches: tuple[Launch, ...], findings: Findings
) -> None:
    """One host may have the units of all models, one namespace their objects: no two have one name.
    A LeaderWorkerSet makes a Service for each of its groups."""
    places = {launch.plan.name: launch.plan.subject.model.name.span for launch in launches}
    replicas = {launch.plan.name: launch.plan.topology.replicas for launch in launches}
    names: list[tuple[str, str, str]] = []
    for item in artifacts:
        plan, _, inside = item.path.partition("/")
        kind, _, name = inside.partition("/")
        if kind == "systemd":
            names.append(("unit", name, plan))
        elif name == "service.yaml":
            names.append(("Service", plan, plan))
        elif name == "leaderworkerset.yaml":
            names += (("Service", f"{plan}-{at}", plan) for at in range(replicas[plan]))
    owners: dict[tuple[str, str], str] = {}
    for what, name, plan in names:
        one = owners.setdefault((what, name), plan)
        if one != plan:
            also = (places[one], "the other")
            findings.add(
                codes.NAME_TWICE, places[plan], what=what, name=name, one=one, other=plan, also=also
            )


def manifest(artifacts: Iterable[Artifact]) -> Artifact:
    """MANIFEST.sha256: every other file and its digest, as `sha256sum -c` reads them."""
    digests = {item.path: sha256(item.content).hexdigest() for item in artifacts}
    return Artifact(MANIFEST, manifest_text(digests))


def manifest_text(digests: Mapping[str, str]) -> str:
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def _of_model(
    launch: Launch,
    project: decl.Project,
    wrapper: Artifact | None,
    findings: Findings,
) -> Iterator[Artifact]:
    targets = targets_of(launch.plan.subject.model, project)
    yield plan_json(launch)
    if not launch.command:  # a container that owns its entry point: no host runs it
        targets = targets & {"kubernetes"}
    if wrapper is not None and targets & {"bash", "systemd"}:  # the unit starts the wrapper
        yield wrapper
        yield from option_files(launch, "bash")
        yield from facts(launch)
    if "systemd" in targets:
        from servec.emit.systemd import units

        yield from units(launch, project.systemd)
    if "kubernetes" in targets:
        yield from manifests(launch, project.kubernetes, findings)
