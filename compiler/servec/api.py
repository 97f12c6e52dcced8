"""The public functions: what the commands use, stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servec.diag import codes
from servec.diag.findings import Finding, Findings
from servec.ir.facts import EngineVersion
from servec.source.files import Files, Folder, Memory, find_project

if TYPE_CHECKING:
    from servec.catalog.capabilities import Capabilities
    from servec.catalog.catalog import Catalog
    from servec.ir.launch import Launch
    from servec.ir.manifest import Manifest
    from servec.ir.plan import Plan


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


class InvalidManifest(ValueError):
    """A manifest that breaks the plugin contract; `.findings` say where and how."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


class UnknownEngine(LookupError):
    """No engine of this name; the message names those that there are."""


def engine_version(engine: str, image: str, *, root: str | Path | None = None) -> EngineVersion:
    """The version of an engine in a container image: from the image catalogue, else from the tag.

    `root` is a project whose own catalogues count too. `.version` is None where it is unknown;
    `.source` says where it is from, or why not.
    """
    return catalog_of(root).version_in(engine, image)


def capabilities(
    engine: str,
    *,
    version: str | None = None,
    image: str | None = None,
    manifest: Mapping[str, Any] | None = None,
    root: str | Path | None = None,
) -> Capabilities:
    """What an engine can do, at a version or in an image; of an unknown version, all of it.

    `manifest`: the contract's keys as a mapping, in the place of the shipped manifest; `root`: a
    project whose own engines and catalogues count too. Raises `UnknownEngine`, and
    `InvalidManifest` where a mapping breaks the contract.
    """
    from servec.catalog.capabilities import Capabilities
    from servec.catalog.versions import parse_version

    catalog = catalog_of(root)
    found = read_manifest(manifest) if manifest is not None else catalog.contract(engine)
    if found is None:
        raise UnknownEngine(f"unknown engine `{engine}`; {catalog.known_engines}")
    if version is not None:
        parsed = parse_version(version)
        why = "given" if parsed else f"`{version}` is not a version"
        return Capabilities(found, EngineVersion(parsed, why))
    if image is not None:
        return Capabilities(found, catalog.version_in(engine, image))
    return Capabilities(found, EngineVersion(None, "no version and no image given"))


def check_argv(
    engine: str, argv: Sequence[str], *, version: str | None = None, image: str | None = None
) -> list[Finding]:
    """What is wrong with a command line of an engine, at a version or in an image; of an unknown
    version, notes. Words are given as the program gets them; nothing is executed.

    A finding's place is in the line `ARGV`, the words quoted as a shell would have them. Raises
    `UnknownEngine`.
    """
    import shlex

    from servec.catalog.calls import called
    from servec.catalog.verdicts import judge
    from servec.catalog.versions import parse_version
    from servec.source.located import Span

    argv = [str(word) for word in argv]
    catalog = shipped_catalog()
    found = catalog.engine(engine)
    if found is None:
        raise UnknownEngine(f"unknown engine `{engine}`; {catalog.known_engines}")
    parsed = parse_version(version) if version is not None else None
    if version is None and image is not None:
        parsed = catalog.version_in(engine, image).version
    call, released = called(argv, found.serve), catalog.released(found.name)
    findings = Findings()
    if call is None or released is None:
        return []
    words = [shlex.quote(word) for word in argv]
    for verdict in judge(
        argv[call.words :], found.serve, found.name, released, parsed, call.positionals
    ):
        place = call.words + verdict.place
        column = len(" ".join(words[:place])) + (2 if place else 1)
        length = len(words[place]) if place < len(words) else 1
        findings.put(verdict.at(Span(ARGV, 1, column, length)))
    return list(findings)


ARGV = "<argv>"
"""The source that findings about a command line point into."""


def read_manifest(manifest: Mapping[str, Any]) -> Manifest:
    """The contract of a manifest given as a mapping; raises `InvalidManifest`."""
    import json

    from servec.catalog.contract import check_contract
    from servec.ir.manifest import Manifest
    from servec.ir.typed import read_record

    findings = Findings()
    files = Files(Memory({"manifest.json": json.dumps(manifest, default=str)}), findings)
    node = files.node("manifest.json")
    record = read_record(Manifest, node, findings) if node is not None else None
    if record is not None:
        check_contract(record, findings)
    if record is not None and record.serve is not None:
        from servec.ir.serve import Serve

        read_record(Serve, record.serve, findings, ("serve",))
    if record is None or findings.errors:
        raise InvalidManifest(findings.show())
    return record


@cache
def catalog_of(root: str | Path | None) -> Catalog:
    """The catalogue of the project at or above a folder; the shipped one where there is none."""
    from servec.catalog.catalog import Catalog

    project = find_project(Path(root)) if root is not None else None
    if project is None:
        return shipped_catalog()
    findings = Findings()
    return Catalog(Files(Folder(project), findings), findings)


@cache
def shipped_catalog() -> Catalog:
    """The catalogue of what ships with servec; each file is read once a process."""
    from servec.catalog.catalog import Catalog

    findings = Findings()
    return Catalog(Files(Memory({}), findings), findings)
