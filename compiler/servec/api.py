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
    from servec.ir.decl import EngineSite
    from servec.ir.launch import Launch
    from servec.ir.manifest import Manifest
    from servec.ir.plan import Plan
    from servec.ir.shard import ShardLaunch
    from servec.passes.shard_asked import Asked
    from servec.source.located import Node


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

    A finding's place is in the line `ARGV`, the words quoted as a shell would have them; its code
    is `str(finding.code)`, as `SV0615`. Raises `UnknownEngine`, `TypeError` where `argv` is no
    sequence of `str`, or another argument is none, and `ValueError` where a word has a NUL.
    """
    import shlex

    from servec.catalog.calls import called
    from servec.catalog.verdicts import judge
    from servec.catalog.versions import parse_version
    from servec.source.located import Span

    _require_text(engine=engine, version=version or "", image=image or "")
    _require_words(argv)
    catalog = shipped_catalog()
    found = catalog.engine(engine)
    if found is None:
        raise UnknownEngine(f"unknown engine `{engine}`; {catalog.known_engines}")
    parsed = parse_version(version) if version is not None else None
    findings = Findings()
    if version is not None and parsed is None:
        findings.add(codes.BAD_VERSION, None, text=version, what="a version", advice=GIVE_VERSION)
    if version is None and image is not None:
        holder = catalog.images.held_by(image)
        if holder in (None, found.name):
            parsed = catalog.version_in(engine, image).version
    call, released = called(argv, found.serve), catalog.released(found.name)
    words = [shlex.quote(word) for word in argv]
    if call is None:
        known = dict.fromkeys(" ".join(w.value for w in c.program) for c in found.serve.calls)
        findings.add(
            codes.NOT_CHECKED,
            Span(ARGV, 1, 1, len(words[0]) if words else 1),
            words=" ".join(words[:2]) or "nothing",
            engine=found.name,
            known=" or ".join(f"`{program}`" for program in known),
        )
    if call is None or released is None:
        return list(findings)
    for verdict in judge(
        list(argv[call.words :]),
        found.serve,
        found.name,
        released,
        parsed,
        call,
    ):
        place = call.words + verdict.place
        column = len(" ".join(words[:place])) + (2 if place else 1)
        length = len(words[place]) if place < len(words) else 1
        findings.put(verdict.at(Span(ARGV, 1, column, length)))
    return list(findings)


def _require_text(**arguments: object) -> None:
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise TypeError(f"`{name}` is a str, not {type(value).__name__}")


def _require_words(argv: object) -> None:
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence):
        raise TypeError(f"`argv` is a sequence of words, not {type(argv).__name__}")
    for place, word in enumerate(argv):
        if not isinstance(word, str):
            raise TypeError(f"word {place} of `argv` is a str, not {type(word).__name__}")
        if "\0" in word:
            raise ValueError(f"word {place} of `argv` has a NUL, which no program can be given")


GIVE_VERSION = 'give it as "0.29.0"'
ARGV = "<argv>"
"""The source that findings about a command line point into."""


class InvalidShard(ValueError):
    """A shard that may not start; `.findings` say why, the first one first."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(item.message for item in findings if _stops(item)))
        self.findings = findings


def launch(
    shard: Mapping[str, Any], *, engine_version: str | None = None, root: str | Path | None = None
) -> ShardLaunch:
    """The processes of one shard: what a node agent starts, in order.

    `shard` is `{profile: {…}, shard: {…}, gpus: […], node: {…}, constraints: {…}}` as JSON has it
    (`servec schema shard`). Without `engine_version` the newest rules hold. `root` is a project
    whose own engines and site count. Pure: nothing is started, written or asked. Raises
    `InvalidShard` for everything that is refused.
    """
    from servec.source.plain_values import located

    findings = Findings()
    node = located(shard, findings)
    if findings.errors:
        raise InvalidShard(findings.told())
    return launch_node(node, engine_version=engine_version, root=root)


def launch_node(
    node: Node, *, engine_version: str | None = None, root: str | Path | None = None
) -> ShardLaunch:
    """`launch` of a value that knows its places."""
    from servec.ir.shard import ShardFacts
    from servec.passes.lower_shard import lower_shard

    asked, findings, site = _asked(node, engine_version, root)
    if asked is not None and asked.shard is None:
        asked.shard = ShardFacts(span=asked.request.span)
    found = _refusals(asked, findings, root)
    if asked is None or findings.errors:
        raise InvalidShard(found)
    return lower_shard(asked, site, found)


def check_profile(
    profile: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]] = (),
    *,
    engine_version: str | None = None,
    model: Mapping[str, Any] | None = None,
    min_compute_capability: Mapping[str, float] | None = None,
    root: str | Path | None = None,
) -> list[Finding]:
    """What is wrong with a profile on a node's GPUs, before any shard exists; nothing where it may
    be served. The first error is the one to tell.

    `gpus` is `[{index, name, compute_capability, memory_total_mb}]`, empty where they are not
    known; `model` has keys of a config.json; `min_compute_capability` is a table by quantization
    that holds in the place of the engine's own.
    """
    from servec.source.plain_values import located

    tree: dict[str, Any] = {"profile": profile, "gpus": list(gpus)}
    if model is not None:
        tree["model"] = model
    if min_compute_capability is not None:
        tree["constraints"] = {"min_compute_capability": dict(min_compute_capability)}
    findings = Findings()
    node = located(tree, findings)
    if findings.errors:
        return list(findings.told())
    asked, findings, _ = _asked(node, engine_version, root)
    return list(_refusals(asked, findings, root))


def _stops(finding: Finding) -> bool:
    return finding.severity.word == "error"


def _asked(
    node: Node, version: str | None, root: str | Path | None
) -> tuple[Asked | None, Findings, str | None]:
    """The request that a value is, read and with its engine; and the site's own program."""
    from servec.catalog.versions import parse_version
    from servec.ir.shard import Request
    from servec.ir.typed import read_record
    from servec.passes.shard_asked import Asked

    findings = Findings()
    request = read_record(Request, node, findings)
    parsed = parse_version(version) if version else None
    if version and parsed is None:
        findings.add(codes.BAD_VERSION, None, text=version, what="a version", advice=GIVE_VERSION)
    if request is None or findings.errors:
        return None, findings, None
    said = request.profile.engine
    engine = catalog_of(root).engine(said.value)
    site = _site(root).get(engine.name) if engine else None
    if engine is not None and site is not None and site.disabled and site.disabled.value:
        also = (site.disabled.span, "here")
        findings.add(codes.ENGINE_DISABLED, said.span, engine=engine.name, also=also)
    program = site.program.value if site and site.program else None
    return Asked(request, engine.at(parsed) if engine else None), findings, program


def _refusals(
    asked: Asked | None, findings: Findings, root: str | Path | None
) -> tuple[Finding, ...]:
    """All findings, errors before the rest, each in the order in which it was told."""
    from servec.passes.shard_rules import refusals

    if asked is not None:
        catalog = catalog_of(root)
        refusals(asked, sorted({*catalog.engine_names, *catalog.aliases}), findings)
        if not findings.errors:
            _judge(asked, catalog, findings)
    told = findings.told()
    return tuple(sorted(told, key=lambda item: not _stops(item)))


def _judge(asked: Asked, catalog: Catalog, findings: Findings) -> None:
    """Holds a profile's own words and variables against the version that is said, if one is."""
    engine, profile = asked.engine, asked.profile
    if engine is None or engine.version is None or not (profile.args or profile.env):
        return
    from servec.passes.shard_flags import judge_flags

    released = catalog.released(engine.manifest.engine.value)
    if released is not None:
        judge_flags(asked, released, findings)


@cache
def _site(root: str | Path | None) -> dict[str, EngineSite]:
    """What a project's servec.yaml says of engines; nothing where there is no project."""
    project = find_project(Path(root)) if root is not None else None
    if project is None:
        return {}
    from servec.ir.decl import Project
    from servec.ir.typed import read_record

    findings = Findings()
    node = Files(Folder(project), findings).node("servec.yaml")
    record = read_record(Project, node, findings) if node is not None else None
    return {item.key.value: item.value for item in record.engines} if record else {}


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
