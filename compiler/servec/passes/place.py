"""place: plans -> plans with the nodes of their replicas, or findings why they cannot be there.

nodes: 2, gpus: 8, vllm 0.33.0           -> 2 × 8 GPUs, `native`, meeting at port 29500
hosts: [gpu-1, gpu-2]                    -> rank 0 on gpu-1, rank 1 on gpu-2
role: prefill, and no `decode` beside it -> SV1028
"""

from __future__ import annotations

from collections.abc import Iterator

from servec.catalog.catalog import Catalog
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir import decl
from servec.ir.placement import Group, Host, Placed, Placement
from servec.ir.plan import Plan
from servec.ir.serve_start import Way
from servec.ir.site import pod_interface, targets_of
from servec.passes.place_roles import roles
from servec.source.located import Span
from servec.strategy import nodes

MIG = "/mig-"
"""What the name of a resource has that is an instance of MIG: NVIDIA/k8s-device-plugin, mixed."""
MEETING = 29500
"""Where rank 0 waits for the others: torch's own default."""
APART = 10
"""Between the meeting ports of replicas on one host; an engine may take the next few too."""


def run(
    plans: tuple[Plan, ...], project: decl.Project, catalog: Catalog, findings: Findings
) -> tuple[Placed, ...]:
    placer = _Placer(project, catalog, findings)
    placed = [(plan, placer.placement(plan)) for plan in plans]
    roles(plans, findings)
    placer.ports([(plan, place) for plan, place in placed if place is not None])
    return tuple(Placed(plan, place) for plan, place in placed if place is not None)


class _Placer:
    def __init__(self, project: decl.Project, catalog: Catalog, findings: Findings) -> None:
        self.project = project
        self.catalog = catalog
        self.findings = findings
        self.sites = {item.key.value: item.value for item in project.nodes}
        self.used: dict[str, int] = {}
        self.meetings: dict[str, int] = {}

    def placement(self, plan: Plan) -> Placement | None:
        subject, count = plan.subject, plan.subject.nodes
        site = self.project.kubernetes
        resource = site.gpu_resource if site else None
        targets = targets_of(subject.model, self.project)
        if resource is not None and MIG in resource.value and "kubernetes" in targets:
            self.one_instance(plan, resource.span)
        per_node, rest = divmod(plan.topology.gpus, count)
        way = self.way(plan) if count > 1 else None
        if rest:
            self.findings.add(
                codes.BAD_TOPOLOGY,
                (subject.model.nodes or subject.model.name).span,
                problem=f"{plan.topology.gpus} GPUs cannot be spread over {count} nodes evenly",
                advice="every node of a replica has the same number of GPUs",
            )
        groups = self.groups(plan, per_node)
        if rest or groups is None or (count > 1 and way is None):
            return None
        self.no_rdma(plan, count)
        port = MEETING
        if way is not None:
            names = [host.name for group in groups for host in group]
            turn = max((self.meetings.get(name, 0) for name in names), default=0)
            self.meetings |= dict.fromkeys(names, turn + 1)
            port += APART * turn
        return Placement(count, per_node, way, port, groups)

    def no_rdma(self, plan: Plan, count: int) -> None:
        """Tell of pods that would talk over TCP."""
        cluster, model = self.project.kubernetes, plan.subject.model
        has_pods = "kubernetes" in targets_of(model, self.project)
        if count > 1 and has_pods and (cluster is None or cluster.rdma is None):
            place, interface = model.nodes or model.name, pod_interface(cluster)
            self.findings.add(codes.NO_RDMA, place.span, nodes=count, interface=interface)

    def way(self, plan: Plan) -> Way | None:
        """How the engine spans nodes, with a finding where it does not."""
        subject, model = plan.subject, plan.subject.model
        engine = subject.engine.at(subject.version.version)
        said, known = model.launch_mode, [way.name.value for way in engine.serve.nodes]
        place = (said or model.nodes or model.name).span
        if said is not None and said.value not in known:
            lists = f"{subject.engine.name} has {', '.join(known) or 'none'}"
            self.findings.add(
                codes.BAD_VALUE,
                said.span,
                where="`launch_mode`",
                wanted=f"a way over several nodes; {lists}",
                value=f"`{said.value}`",
                suggestion=nearest(said.value, known),
            )
            return None
        way = nodes.chosen(engine, said.value if said else "")
        if way is None or subject.told is not None:
            problem, advice = nodes.why_none(engine, subject.nodes, said.value if said else "")
            self.findings.add(codes.NO_NODES, place, problem=problem, advice=advice)
            return None
        if way.needs is not None and plan.setting(_knob(way.needs.value)) is None:
            problem = f"`launch_mode: {way.name.value}` needs `{_knob(way.needs.value)}`"
            advice = "add it to `overrides`"
            self.findings.add(codes.NO_NODES, place, problem=problem, advice=advice)
        rules, topology = engine.serve.topology, plan.topology
        if (
            rules.dp_over_nodes is not None
            and rules.dp_over_nodes.value == "attention"
            and topology.dp > 1
            and not topology.enable_dp_attention
        ):
            self.findings.add(
                codes.BAD_TOPOLOGY,
                place,
                problem=f"dp {topology.dp} over {subject.nodes} nodes, which "
                f"{subject.engine.name} does in the attention alone",
                advice="raise tp, add `enable_dp_attention: true`, or take one node and replicas",
            )
        return way

    def groups(self, plan: Plan, per_node: int) -> tuple[Group, ...] | None:
        """The hosts of each replica by rank; None with a finding where they do not fit."""
        subject, said = plan.subject, plan.subject.model.hosts
        if not said:
            return ()
        count, replicas = subject.nodes, plan.topology.replicas
        unknown = [name for name in said if name.value not in self.sites]
        for name in unknown:
            near = nearest(name.value, self.sites)
            known = ", ".join(self.sites)
            advice = f"servec.yaml has {known}" if known else "list it in servec.yaml under `nodes`"
            self.findings.add(
                codes.UNKNOWN_HOST,
                name.span,
                name=name.value,
                advice="" if near else advice,
                suggestion=near,
            )
        if unknown:
            return None
        names = [name.value for name in said]
        twice = next((name for name in said if names.count(name.value) > 1), None)
        if twice is not None:
            problem = f"`{twice.value}` is there twice: every node of a model is a host of its own"
            self.misfit(twice.span, problem, "write two models for two servers on a host")
            return None
        if len(names) != count * replicas:
            problem = f"{_count(len(names), 'host')} for {_count(replicas, 'replica')} of "
            problem += _count(count, "node")
            self.misfit(said[0].span, problem, f"name {count * replicas}")
            return None
        fitting = [self.fits(plan, name.value, name.span, per_node) for name in said]
        if not all(fitting):
            return None
        hosts = [self.host(name.value, name.span, count) for name in said]
        groups = tuple(tuple(hosts[at : at + count]) for at in range(0, len(hosts), count))
        self.addresses(groups, said[0].span)
        return groups

    def misfit(self, span: Span, problem: str, advice: str) -> None:
        self.findings.add(codes.HOSTS_DO_NOT_FIT, span, problem=problem, advice=advice)

    def fits(self, plan: Plan, name: str, span: Span, per_node: int) -> bool:
        """Whether a host has the accelerators that a plan wants of it, beside earlier plans."""
        site, wants = self.sites[name], plan.subject.accelerator.name.value
        has = site.accelerator and self.catalog.accelerators.find(site.accelerator.value)
        if site.accelerator is not None and (has is None or has.name.value != wants):
            problem = f"`{name}` has {site.accelerator.value}, the model is planned for {wants}"
            self.misfit(span, problem, "take another host, or another `hardware`")
            return False
        if site.mig is not None and site.mig.value:
            self.one_instance(plan, span)
        before = self.used.get(name, 0)
        self.used[name] = before + per_node
        if site.gpus is not None and before + per_node > site.gpus.value:
            taken = f", {before} of them taken by models above" if before else ""
            problem = f"`{name}` has {_count(site.gpus.value, 'GPU')}{taken}, and {per_node} "
            self.misfit(span, problem + "are needed", "take another host")
            return False
        return True

    def one_instance(self, plan: Plan, span: Span) -> None:
        """Instances of MIG do not talk to one another: a copy of a model is on one."""
        topology = plan.topology
        if topology.tp * topology.pp > 1:
            self.findings.add(codes.MIG_PARALLEL, span, tp=topology.tp, pp=topology.pp)

    def host(self, name: str, span: Span, count: int) -> Host:
        site = self.sites[name]
        fabric = self.project.fabric.value if self.project.fabric else ""
        hcas = [item for item in site.hcas if not fabric or item.value.value == fabric]
        if fabric and site.hcas and not hcas:
            self.no_adapter(name, fabric, sorted({item.value.value for item in site.hcas}))
        fabrics = sorted({item.value.value for item in hcas})
        if count > 1 and len(fabrics) > 1:
            other = next(item for item in hcas if item.value.value == fabrics[1])
            self.findings.add(codes.MIXED_FABRIC, other.key.span, fabrics=" and ".join(fabrics))
        if count > 1 and not nodes.reaches_others(site.address.value):
            self.findings.add(codes.LOOPBACK_LEADER, site.address.span, address=site.address.value)
        if count > 1 and site.interface is None:
            self.findings.add(codes.NO_INTERFACE, site.span, nodes=count, key="interface")
        if count > 1 and site.gid_index is not None and not hcas:
            self.findings.add(codes.GID_UNUSED, site.gid_index.span, index=site.gid_index.value)
        said = {
            "address": site.address,
            "interface": site.interface,
            "gid_index": site.gid_index,
            "nvlink_domain": site.nvlink_domain,
        }
        places = {key: item.span for key, item in said.items() if item is not None}
        places |= {"hcas": hcas[0].key.span} if hcas else {}
        return Host(
            name=name,
            address=site.address.value,
            interface=site.interface.value if site.interface else "",
            hcas=tuple(item.key.value for item in hcas),
            gid_index=site.gid_index.value if site.gid_index else None,
            nvlink_domain=site.nvlink_domain.value if site.nvlink_domain else "",
            places=places,
        )

    def no_adapter(self, name: str, fabric: str, known: list[str]) -> None:
        assert self.project.fabric is not None
        self.findings.add(
            codes.BAD_VALUE,
            self.project.fabric.span,
            where="`fabric`",
            wanted=f"one that `{name}` has an adapter on: {', '.join(known)}",
            value=f"`{fabric}`",
            suggestion=nearest(fabric, known),
        )

    def addresses(self, groups: tuple[Group, ...], span: Span) -> None:
        """A finding where two nodes of a replica have one address."""
        for group in groups:
            addresses = [host.address for host in group]
            twice = next((one for one in addresses if addresses.count(one) > 1), None)
            if twice is not None:
                problem = f"two hosts of one replica have the address {twice}"
                self.misfit(span, problem, "give each its own in servec.yaml")

    def ports(self, placed: list[tuple[Plan, Placement]]) -> None:
        """Every port of a host is one server's."""
        taken: dict[tuple[str, int], str] = {}
        for plan, place in placed:
            port = plan.setting("port")
            for host in sorted({host.name for group in place.groups for host in group}):
                for number, what in _ports(plan, place, host):
                    other = taken.setdefault((host, number), what)
                    if other != what:
                        span = port.winner.origin.span if port else None
                        self.findings.add(
                            codes.PORT_TWICE,
                            span or plan.subject.model.name.span,
                            one=f"{what} on {host}",
                            other=other,
                            port=number,
                        )


def _ports(plan: Plan, place: Placement, host: str) -> Iterator[tuple[int, str]]:
    """What listens on a host, and where."""
    if host not in {group[0].name for group in place.groups}:
        return
    port = plan.setting("port")
    if port is not None and isinstance(port.value, int):
        yield port.value, f"`{plan.name}`"
    if place.way is not None:
        yield place.leader_port, f"the meeting of `{plan.name}`"


def _knob(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
