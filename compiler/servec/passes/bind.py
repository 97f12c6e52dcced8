"""bind: names -> what they name.

qwen3-8b: {engine: vllm, image: vllm/vllm-openai:v0.29.0, hardware: NVIDIA H100 80GB HBM3}
  -> Subject(engine=Engine(vllm), version=0.29.0 (image catalogue), accelerator=H100-80G,
             precision=bf16 (facts), recipe=qwen3-8b (family qwen3, 8 billion parameters))
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from servec.catalog.catalog import Catalog
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir import decl
from servec.ir.program import Demand, Program, Server, Subject
from servec.passes.bind_subject import Binder
from servec.source.located import At, Span

BASE_KEYS = ("type",)
"""What a model without a server of its own may say beside `base` or `endpoint`."""
AXES = ("hardware", "engine", "image", "engine_version", "precision", "type")
PLAN_NAME_CHARACTERS = 63  # a DNS-1123 label (RFC 1123; Kubernetes object names)


def run(sources: decl.Sources, catalog: Catalog, findings: Findings) -> Program:
    models = _index(sources, findings)
    roots = {name: _root(name, models, findings) for name in models}
    _check_types(models, roots, findings)
    demands = _demands(sources, models, roots, findings)
    axes = _axes(sources, models, findings)
    binder = Binder(sources, catalog, findings)
    servers = []
    for name in sorted(models):
        model, file = models[name]
        if model.checkpoint is None or roots[name] != name:
            continue
        variants = []
        for variant, words in _variants(model, axes.get(name)):
            subject = binder.subject(variant, file, _plan_name(model, words, findings))
            if subject is not None:
                variants.append(subject)
        servers.append(Server(model, tuple(variants), tuple(demands.get(name, ()))))
    _check_names(servers, findings)
    _check_sets(sources, models, findings)
    return Program(tuple(servers))


Models = dict[str, tuple[decl.Model, str]]


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
            if _is_one_kind(item.value, findings):
                models[name] = (item.value, spec.key.value)
    if not any(model.checkpoint for model, _ in models.values()) and not findings.errors:
        folders = ", ".join(f"`{item.value}/`" for item in sources.project.specs) or "`specs/`"
        findings.add(codes.NO_SPECS, None, folders=folders)
    return models


def _is_one_kind(model: decl.Model, findings: Findings) -> bool:
    """A model is served, shares a server, or is somebody else's: its keys say which."""
    kind = "base" if model.base else "endpoint" if model.endpoint else ""
    if not kind:
        if model.checkpoint is None:
            where, advice = f"`models.{model.name.value}`", "add `checkpoint: <hub id or path>`"
            findings.add(
                codes.MISSING_KEY, model.name.span, where=where, key="checkpoint", advice=advice
            )
        return model.checkpoint is not None
    others = [
        name
        for name in decl.Model.__slots__
        if name not in ("name", "span", kind, *BASE_KEYS) and getattr(model, name)
    ]
    for name in others:
        value = getattr(model, name)
        span = (
            value[0].span
            if isinstance(value, tuple) and isinstance(value[0], decl.Adapter)
            else (value.span if hasattr(value, "span") else model.name.span)
        )
        findings.add(codes.MIXED_MODEL, span, key=name, kind=kind)
    return not others


def _root(name: str, models: Models, findings: Findings) -> str | None:
    """The model whose server `name` uses, along the `base:` chain; None where it leads nowhere."""
    chain = [name]
    while (base := models[chain[-1]][0].base) is not None:
        if base.value in chain:
            if base.value == name:  # told once for each model of the ring, not for those before it
                ring = " -> ".join([*chain, base.value])
                findings.add(codes.BASE_CYCLE, base.span, chain=ring)
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
            else:
                axes[name] = item.value
    return axes


def _variants(
    model: decl.Model, matrix: decl.Matrix | None
) -> list[tuple[decl.Model, tuple[str, ...]]]:
    """The model with each combination of the matrix's values in the place of its own."""
    if matrix is None:
        return [(model, ())]
    named = [(axis, getattr(matrix, axis)) for axis in AXES if getattr(matrix, axis)]
    found = []
    for choice in product(*(values for _, values in named)):
        chosen = {axis: value for (axis, _), value in zip(named, choice, strict=True)}
        words = tuple(value.value for value in choice)
        found.append((replace(model, **chosen), words))
    return found


def _plan_name(model: decl.Model, words: tuple[str, ...], findings: Findings) -> str:
    """`<model>--<value>-<value>`, lower case, other characters as `-`."""
    if not words:
        return model.name.value
    tail = "-".join("".join(c if c.isalnum() else "-" for c in word.lower()) for word in words)
    name = f"{model.name.value}--{tail.strip('-')}"
    if len(name) > PLAN_NAME_CHARACTERS or not name.isascii():
        what, limit = "a plan", PLAN_NAME_CHARACTERS
        findings.add(codes.BAD_NAME, model.name.span, name=name, what=what, limit=limit)
    return name


def _check_names(servers: list[Server], findings: Findings) -> None:
    seen: dict[str, Subject] = {}
    for server in servers:
        for subject in server.variants:
            if subject.name in seen:
                also = (seen[subject.name].model.name.span, "and here")
                span = subject.model.name.span
                findings.add(codes.PLAN_NAMES, span, name=subject.name, also=also)
            seen[subject.name] = subject


def _check_sets(sources: decl.Sources, models: Models, findings: Findings) -> None:
    for item in sources.sets:
        if item.model.value not in models:
            _unknown_model(item.model, models, findings)
        elif models[item.model.value][0].checkpoint is None:
            findings.add(codes.NOT_SERVED, item.model.span, name=item.model.value)
