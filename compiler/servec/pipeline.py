"""The order of the passes. Read it aloud: this is the compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from servec.catalog.catalog import Catalog
from servec.diag.findings import Findings
from servec.emit import emit
from servec.ir import decl
from servec.ir.artifact import Artifact
from servec.ir.launch import Launch
from servec.ir.plan import Plan
from servec.ir.program import Program
from servec.passes import bind, declare, expand, gate, layer, lower, parse, place, require
from servec.source.files import Files

PASSES = (
    "parse",
    "declare",
    "bind",
    "expand",
    "require",
    "layer",
    "gate",
    "place",
    "lower",
    "emit",
)
Change = Callable[[Program], Program]
Observer = Callable[[str, object], None]
"""Is told each pass's name and what came out of it: `servec dump` prints it, tests verify it."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one run came to. With an error among the findings nothing of it may be written."""

    project: decl.Project
    program: Program
    plans: tuple[Plan, ...] = ()
    launches: tuple[Launch, ...] = ()
    artifacts: tuple[Artifact, ...] = field(default=())


def run(
    files: Files,
    findings: Findings,
    *,
    sets: tuple[str, ...] = (),
    strict: bool = False,
    observe: Observer = lambda name, ir: None,
    change: Change = lambda program: program,
) -> Compiled:
    """Compile a project. Every pass runs as far as it can, so that all mistakes are shown. `change`
    may put other versions in the place of those that the sources pin."""
    catalog = Catalog(files, findings)

    parsed = parse.run(files)  # files -> located values
    observe("parse", parsed)
    sources = declare.run(parsed, sets, files, findings)  # -> typed declarations
    observe("declare", sources)
    findings.strict = strict or bool(sources.project.strict and sources.project.strict.value)
    catalog.read_own()  # the project's own facts, used or not, so that their mistakes show
    program = change(bind.run(sources, catalog, findings))  # -> every name is what it names
    observe("bind", program)
    drafts = expand.run(program)  # -> one draft a plan, sized by the formula
    observe("expand", drafts)
    drafts = require.run(drafts, findings)  # -> with what tasks demand
    observe("require", drafts)
    plans = layer.run(drafts, sources, findings)  # -> settings, each with its history
    observe("layer", plans)
    plans = gate.run(
        plans, sources.project, catalog, findings
    )  # -> held against versions, the site and safety
    observe("gate", plans)
    placed = place.run(plans, sources.project, catalog, findings)  # -> with their nodes
    observe("place", placed)
    if findings.errors:
        return Compiled(sources.project, program, plans)
    launches = lower.run(placed, sources.project, catalog)  # -> argv and environment
    observe("lower", launches)
    artifacts = emit.run(launches, sources.project, files, findings)  # -> files
    observe("emit", artifacts)
    return Compiled(sources.project, program, plans, launches, artifacts)
