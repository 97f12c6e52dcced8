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


def engine_version(engine: str, image: str) -> EngineVersion:
    """The version of an engine in a container image: from the image catalogue, else from the tag.

    `.version` is None where it is unknown; `.source` says where it is from, or why not.
    """
    return shipped_catalog().version_in(engine, image)


def capabilities(
    engine: str,
    *,
    version: str | None = None,
    image: str | None = None,
    manifest: Mapping[str, Any] | None = None,
) -> Capabilities:
    """What an engine can do, at a version or in an image; of an unknown version, all of it.

    `manifest`: the contract's keys as a mapping, in the place of the shipped manifest. Raises
    `UnknownEngine`, and `InvalidManifest` where that mapping breaks the contract.
    """
    from servec.catalog.capabilities import Capabilities
    from servec.catalog.versions import parse_version

    catalog = shipped_catalog()
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


def read_manifest(manifest: Mapping[str, Any]) -> Manifest:
    """The contract of a manifest given as a mapping; raises `InvalidManifest`."""
    import json

    from servec.catalog.contract import check_contract
    from servec.ir.manifest import Manifest
    from servec.ir.typed import read_record

    findings = Findings()
    files = Files(Memory({"manifest.json": json.dumps(manifest)}), findings)
    node = files.node("manifest.json")
    record = read_record(Manifest, node, findings) if node is not None else None
    if record is not None:
        check_contract(record, findings)
    if record is None or findings.errors:
        raise InvalidManifest(findings.show())
    return record


@cache
def shipped_catalog() -> Catalog:
    """The catalogue of what ships with servec; each file is read once a process."""
    from servec.catalog.catalog import Catalog

    findings = Findings()
    return Catalog(Files(Memory({}), findings), findings)
