"""The public functions: what the commands use, stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from servec.diag import codes
from servec.diag.findings import Finding, Findings
from servec.ir.facts import EngineVersion
from servec.ir.launch import Launch
from servec.ir.plan import Plan
from servec.source.files import Files, Folder, Memory, find_project


@dataclass(frozen=True, slots=True)
class Result:
    """What a project compiles to. With an error in `findings` there are no artifacts.

    `artifacts` maps a path from the output folder to the file's bytes.
    """

    plans: tuple[Plan, ...]
    launches: tuple[Launch, ...]
    artifacts: Mapping[str, bytes]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no error among the findings."""
        return not any(finding.severity.word == "error" for finding in self.findings)


def compile(
    root: str | Path = ".",
    *,
    tree: Mapping[str, str | bytes] | None = None,
    names: Sequence[str] = (),
    sets: Sequence[str] = (),
    strict: bool = False,
) -> Result:
    """Compile the project at or above `root`, or the sources in `tree` ({path: text}).

    `names` limits the artifacts to those of some plans, never what is known; `sets` are
    `MODEL.KNOB=VALUE` of the highest rank; `strict` makes an unknown engine version an error.
    Nothing is written. Mistakes are findings, never exceptions.
    """
    from servec import pipeline
    from servec.output import limit_to

    findings = Findings(strict=strict)
    own: Memory | Folder
    if tree is not None:
        own = Memory(tree)
    else:
        found = find_project(Path(root))
        if found is None:
            advice = "give a project's folder, or `tree`"
            findings.add(codes.NO_PROJECT, None, folder=str(root), advice=advice)
            return Result((), (), {}, findings.show())
        own = Folder(found)
    files = Files(own, findings)
    done = pipeline.run(files, findings, sets=tuple(sets), strict=strict)
    chosen = limit_to(done, tuple(names), findings)
    artifacts = {} if findings.errors else {item.path: item.content for item in chosen}
    return Result(done.plans, done.launches, artifacts, findings.show())


def engine_version(engine: str, image: str) -> EngineVersion:
    """The version of an engine in a container image: from the image catalogue, else from the tag.

    `.version` is None where it is unknown; `.source` says where it is from, or why not.
    """
    from servec.catalog.catalog import Catalog

    findings = Findings()
    return Catalog(Files(Memory({}), findings), findings).images.version(engine, image)
