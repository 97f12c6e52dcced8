"""bind: names -> what they name.

qwen3-8b: {engine: vllm, image: vllm/vllm-openai:v0.29.0, hardware: NVIDIA H100 80GB HBM3}
  -> Subject(engine=Engine(vllm), version=0.29.0 (image catalogue), accelerator=H100-80G,
             precision=bf16 (facts), recipe=qwen3-8b (family qwen3, 8 billion parameters))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from servec.catalog.catalog import Catalog
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir import decl
from servec.ir.program import Demand, Program, Server
from servec.ir.shape import changed
from servec.passes.bind_subject import Binder
from servec.source.located import At, Span

BASE_KEYS = ("type",)
"""What a model without a server of its own may say beside `base` or `endpoint`."""
AXES = ("hardware", "engine", "image", "engine_version", "precision", "type")
Models = dict[str, tuple[decl.Model, str]]
"""Models by name, each with the file that it stands in."""
PLAN_NAME_CHARACTERS = 63  # a DNS-1123 label (RFC 1123; Kubernetes object names)


def run(sources: decl.Sources, catalog: Catalog, findings: Findings) -> Program:
    _check_site(sources, catalog)
    models = _index(sources, findings)
    roots = {name: _root(name, models, findings) for name in models}
    _check_types(models, roots, findings)
    demands = _demands(sources, models, roots, findings)
    axes = _axes(sources, models, findings)
    _check_sets(sources, models, findings)
    if not any(model.checkpoint for model, _ in models.values()) and not findings.errors:
        folders = ", ".join(f"`{item.value}/`" for item in sources.project.specs) or "`specs/`"
        findings.add(codes.NO_SPECS, None, folders=folders)
    binder = Binder(sources, catalog, findings)
    servers = []
    for name, (model, file) in models.items():
        if model.checkpoint is None or roots[name] != name or _kind(model):
            continue
        variants = []
        for variant, plan_name in _variants(model, axes.get(name), findings):
            subject = binder.subject(variant, file, plan_name)
            if subject is not None:
                variants.append(subject)
        servers.append(Server(model, tuple(variants), tuple(demands.get(name, ()))))
    return Program(tuple(servers), tuple(_others(models, roots)))


def _others(models: Models, roots: dict[str, str | None]) -> Iterator[tuple[str, str | None]]:
    for name in models:
        root = roots[name]
        if _kind(models[name][0]) and root is not None:
            yield name, None if models[root][0].endpoint else root


def _check_site(sources: decl.Sources, catalog: Catalog) -> None:
    for item in sources.project.engines:
        if item.key.value not in catalog.engine_names:
            catalog.unknown_engine(item.key)


def _index(sources: decl.Sources, findings: Findings) -> Models:
    models: Models = {}
    for spec in sources.specs:
        for item in spec.value.models:
            name = item.key.value
            if name in models:
                also = (models[name][0].name.span, "first here")
                span = item.key.span
                findings.add(codes.DECLARED_TWICE, span, what="model", name=name, also=also)
                continue
            models[name] = (item.value, spec.key.value)
            _check_kind(item.value, findings)
    return models


def _kind(model: decl.Model) -> str:
    """What makes a model one without a server of its own."""
    return "base" if model.base else "endpoint" if model.endpoint else ""


def _check_kind(model: decl.Model, findings: Findings) -> None:
    """A model is served, shares a server, or is somebody else's: its keys say which."""
    kind = _kind(model)
    others = [name for name in model.said if name not in (kind, *BASE_KEYS)]
    if kind and others:
        span, keys = model.said[others[0]], ", ".join(f"`{name}`" for name in others)
        findings.add(codes.MIXED_MODEL, span, keys=keys, kind=kind)
    known_holes = any(model.is_hole(name) for name in ("checkpoint", "base", "endpoint"))
    if not kind and model.checkpoint is None and not known_holes:
        where, advice = f"`models.{model.name.value}`", "add `checkpoint: <hub id or path>`"
        findings.add(
            codes.MISSING_KEY, model.name.span, where=where, key="checkpoint", advice=advice
        )


def _root(name: str, models: Models, findings: Findings) -> str | None:
    """The model whose server `name` uses, along the `base:` chain; None where it leads nowhere."""
    chain = [name]
    while (base := models[chain[-1]][0].base) is not None:
        if base.value in chain:
            ring = chain[chain.index(base.value) :]
            if name == min(ring):  # told once for a ring, from its first model
                first = models[name][0].base
                words = " -> ".join([*ring[ring.index(name) :], *ring[: ring.index(name)], name])
                findings.add(codes.BASE_CYCLE, first.span if first else None, chain=words)
            return None
        if base.value not in models:
            _unknown_model(base, models, findings)
            return None
        chain.append(base.value)
    return chain[-1]


def _unknown_model(name: At[str], models: Models, findings: Findings) -> None:
    known = "known models: " + ", ".join(sorted(models))
    suggestion = nearest(name.value, sorted(models))
    findings.add(
        codes.UNKNOWN_MODEL, name.span, name=name.value, known=known, suggestion=suggestion
    )


def _check_types(models: Models, roots: dict[str, str | None], findings: Findings) -> None:
    for name, root in roots.items():
        model = models[name][0]
        if root is None or root == name or model.type is None:
            continue
        server = models[root][0]
        root_type = server.type.value if server.type else "chat"
        if model.type.value != root_type:
            findings.add(
                codes.TWO_TYPES,
                model.type.span,
                model=name,
                type=model.type.value,
                root=root,
                root_type=root_type,
                also=(server.type.span if server.type else server.name.span, "the server"),
            )


def _demands(
    sources: decl.Sources, models: Models, roots: dict[str, str | None], findings: Findings
) -> dict[str, list[Demand]]:
    demands: dict[str, list[Demand]] = {}
    first: dict[str, Span] = {}
    for spec in sources.specs:
        for item in spec.value.tasks:
            task = item.value
            if item.key.value in first:
                also = (first[item.key.value], "first here")
                name, span = item.key.value, item.key.span
                findings.add(codes.DECLARED_TWICE, span, what="task", name=name, also=also)
                continue
            first[item.key.value] = item.key.span
            if task.model.value not in models:
                _unknown_model(task.model, models, findings)
                continue
            root = roots[task.model.value]
            if root is not None and task.requires is not None:
                demand = Demand(item.key.value, spec.key.value, task.requires)
                demands.setdefault(root, []).append(demand)
    return demands


def _axes(sources: decl.Sources, models: Models, findings: Findings) -> dict[str, decl.Matrix]:
    axes: dict[str, decl.Matrix] = {}
    for spec in sources.specs:
        for item in spec.value.matrix:
            name = item.key.value
            if name not in models:
                _unknown_model(item.key, models, findings)
            elif models[name][0].checkpoint is None:
                findings.add(codes.NOT_SERVED, item.key.span, name=name)
            elif name in axes:
                also = (axes[name].name.span, "first here")
                span = item.key.span
                findings.add(codes.DECLARED_TWICE, span, what="matrix of", name=name, also=also)
            elif not any(getattr(item.value, axis) for axis in AXES):
                where, advice = f"`matrix.{name}`", f"name what varies: {', '.join(AXES)}"
                span = item.key.span
                findings.add(codes.MISSING_KEY, span, where=where, key="hardware", advice=advice)
            else:
                axes[name] = item.value
    return axes


def _variants(
    model: decl.Model, matrix: decl.Matrix | None, findings: Findings
) -> list[tuple[decl.Model, str]]:
    """The model with each combination of the matrix's values in the place of its own, and the
    name of its plan."""
    if matrix is None:
        return [(model, model.name.value)]
    named = [(axis, getattr(matrix, axis)) for axis in AXES if getattr(matrix, axis)]
    found: dict[str, tuple[At[str], ...]] = {}
    variants = []
    for choice in product(*(values for _, values in named)):
        name = _plan_name(model, choice, findings)
        if name in found:
            one, other = next(
                pair for pair in zip(found[name], choice, strict=True) if pair[0] is not pair[1]
            )
            also = (one.span, "the other")
            findings.add(codes.PLAN_NAMES, other.span, name=name, also=also)
            continue
        found[name] = choice
        chosen = {axis: value for (axis, _), value in zip(named, choice, strict=True)}
        said = model.said | {axis: value.span for axis, value in chosen.items()}
        variants.append((changed(model, **chosen, said=said), name))
    return variants


def _plan_name(model: decl.Model, choice: tuple[At[str], ...], findings: Findings) -> str:
    """`<model>--<value>-<value>`, lower case, other characters as `-`."""
    words = (re.sub(r"[^a-z0-9]+", "-", value.value.lower()).strip("-") for value in choice)
    name = f"{model.name.value}--{'-'.join(words)}"
    if len(name) > PLAN_NAME_CHARACTERS:
        what, limit = "a plan", PLAN_NAME_CHARACTERS
        findings.add(codes.BAD_NAME, choice[-1].span, name=name, what=what, limit=limit)
    return name


def _check_sets(sources: decl.Sources, models: Models, findings: Findings) -> None:
    for item in sources.sets:
        if item.model.value not in models:
            _unknown_model(item.model, models, findings)
        elif models[item.model.value][0].checkpoint is None:
            findings.add(codes.NOT_SERVED, item.model.span, name=item.model.value)
