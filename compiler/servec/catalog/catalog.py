"""The facts of a run. The project's own files are read at once, so that their mistakes are shown;
shipped ones only when something asks for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from servec.catalog.accelerators import AcceleratorTable, canonical
from servec.catalog.contract import check_contract, check_gates, check_serve
from servec.catalog.images import ImageTable
from servec.catalog.versions import parse_range, parse_version
from servec.diag import codes
from servec.diag.findings import Findings
from servec.diag.suggest import nearest
from servec.ir.facts import EngineVersion
from servec.ir.manifest import Aliases, Manifest
from servec.ir.typed import read_record
from servec.source.files import Files
from servec.source.located import At, Map, Span
from servec.source.shipped import MARK

if TYPE_CHECKING:
    from servec.catalog.engines import Engine
    from servec.catalog.recipes import RecipeTable
    from servec.catalog.released import Released
    from servec.ir import knowledge

T = TypeVar("T")
MANIFESTS = ("manifest.yaml", "manifest.json")
WRAPPER = "wrapper.sh.j2"
ENGINES = "catalogs/engines/"


class Catalog:
    """Everything known that is not of one project's models."""

    def __init__(self, files: Files, findings: Findings) -> None:
        self.files = files
        self.findings = findings
        self._engines: dict[str, Engine | None] = {}
        self._released: dict[str, Released | None] = {}

    def read_own(self) -> None:
        """Read what the project has of its own, whether a model uses it or not."""
        for name in self.own_engines:
            self.engine(name)
        own_recipes, _ = self.files.listing("recipes")
        if own_recipes:
            _ = self.recipes
        for path in self.files.listing("catalogs")[0]:
            self._check_own(path)

    def _check_own(self, path: str) -> None:
        match path.rpartition(".")[0]:
            case "catalogs/accelerators":
                _ = self.accelerators
            case "catalogs/instances":
                _ = self.instances
            case "catalogs/machine_images":
                _ = self.machine_images
            case "catalogs/images":
                _ = self.images
            case stem if stem.startswith(ENGINES):
                found = self.released(stem.removeprefix(ENGINES))
                if found is not None:
                    found.check()
            case _:
                from servec.ir import knowledge

                node = self.files.node(path)
                for entry in node.entries.values() if isinstance(node, Map) else ():
                    read_record(knowledge.ModelFacts, entry.value, self.findings)

    def engine(self, name: str) -> Engine | None:
        """An engine by its folder's name or an alias, or None; a broken folder is a finding."""
        name = self.aliases.get(name, name)
        if name not in self._engines:
            self._engines[name] = self._read_engine(name)
        return self._engines[name]

    def contract(self, name: str) -> Manifest | None:
        """An engine's manifest by its folder's name or an alias, or None."""
        name = self.aliases.get(name, name)
        for mark in ("", MARK):
            for file in MANIFESTS:
                path = f"{mark}serve.d/{name}/{file}"
                node = self.files.node(path) if self.files.exists(path) else None
                if node is not None:
                    return read_record(Manifest, node, self.findings)
        return None

    def released(self, name: str) -> Released | None:
        """What released packages of an engine accept, or None where that is not known."""
        name = self.aliases.get(name, name)
        if name not in self._released:
            self._released[name] = self._read_released(name)
        return self._released[name]

    def _read_released(self, name: str) -> Released | None:
        from servec.catalog.released import Released
        from servec.ir.releases import EngineCatalogue

        for mark in ("", MARK):
            path = f"{mark}{ENGINES}{name}.yaml"
            node = self.files.node(path) if self.files.exists(path) else None
            record = read_record(EngineCatalogue, node, self.findings) if node else None
            if record is not None and record.engine.value != name:
                problem = f"the catalogue says `{record.engine.value}`, the file `{name}`"
                self._broken(record.engine.span, name, problem, "give both the same name")
            elif record is not None:
                return Released(record, self.findings) if record.releases else None
        return None

    def version_in(self, name: str, image: str) -> EngineVersion:
        """The version of an engine, by its name or an alias, in a container image."""
        manifest = self.contract(name)
        marker = manifest.tag_marker.value if manifest and manifest.tag_marker else ""
        return self.images.version(name, image, marker)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names of engines: serve.d/aliases.yaml, the project's own before the shipped."""
        found: dict[str, str] = {}
        for mark in ("", MARK):
            path = f"{mark}serve.d/aliases.yaml"
            if self.files.exists(path) and (node := self.files.node(path)) is not None:
                record = read_record(Aliases, node, self.findings)
                for item in record.names if record else ():
                    found.setdefault(item.key.value, item.value.value)
        return found

    @cached_property
    def engine_names(self) -> list[str]:
        """All engines that there are, sorted."""
        shipped = self.files.shipped
        theirs = _engine_folders(shipped.files("serve.d")) if shipped else set()
        return sorted(set(self.own_engines) | theirs)

    @cached_property
    def own_engines(self) -> list[str]:
        """The engines that the project has itself, sorted."""
        return sorted(_engine_folders(self.files.own_files("serve.d")))

    @cached_property
    def accelerators(self) -> AcceleratorTable:
        from servec.ir import knowledge

        return AcceleratorTable(self._table("accelerators", knowledge.Accelerators))

    @cached_property
    def instances(self) -> dict[str, knowledge.Instance]:
        from servec.ir import knowledge

        return self._table("instances", knowledge.Instances)

    @cached_property
    def machine_images(self) -> dict[str, knowledge.MachineImage]:
        from servec.ir import knowledge

        return self._table("machine_images", knowledge.MachineImages)

    @cached_property
    def images(self) -> ImageTable:
        from servec.ir import knowledge

        images: dict[str, knowledge.Image] = self._table("images", knowledge.Images)
        for image in images.values():
            if parse_version(image.version.value) is None:
                self._bad_version(image.version, "a version", 'write it as "0.29.0"')
        return ImageTable(images)

    @cached_property
    def recipes(self) -> RecipeTable:
        from servec.catalog.recipes import RecipeTable
        from servec.ir import knowledge

        own, shipped = self.files.listing("recipes")
        mine = self._records(own, knowledge.RecipeFile)
        for file in mine:
            for item in file.recipes:
                self._check_names(item.value)
        theirs = self._records(shipped, knowledge.RecipeFile)
        return RecipeTable([*mine, *theirs], self.findings)

    def _check_names(self, recipe: knowledge.Recipe) -> None:
        """A leaf under a name that nothing has would never be used, so it is a mistake."""
        from servec.ir import knowledge

        engines = [item.key for item in recipe.tested_versions]
        ranges = [text for item in recipe.tested_versions for text in item.value]
        for accelerator in recipe.hardware:
            if accelerator.key.value not in self.accelerators.by_key:
                self.unknown_accelerator(accelerator.key, exact=True)
            engines += [item.key for precision in accelerator.value for item in precision.value]
        engines += [item.key for kind in recipe.capabilities for item in kind.value]
        for issue in recipe.known_issues:
            if isinstance(issue, knowledge.KnownIssue):
                engines += [issue.engine] if issue.engine else []
                ranges += [issue.versions] if issue.versions else []
        for text in ranges:
            if parse_range(text.value) is None:
                self._bad_version(text, "a range of versions", 'write it as ">=0.9,<0.12"')
        for engine in engines:
            if engine.value not in self.engine_names:
                self.unknown_engine(engine)

    def unknown_engine(self, name: At[str]) -> None:
        self.findings.add(
            codes.UNKNOWN_ENGINE,
            name.span,
            name=name.value,
            known=", ".join(self.engine_names),
            suggestion=nearest(name.value, self.engine_names),
        )

    @property
    def known_engines(self) -> str:
        return "known engines: " + ", ".join(self.engine_names)

    def unknown_accelerator(self, name: At[str], *, exact: bool = False) -> None:
        """`exact`: only a key will do, so a product string is told its key."""
        table = self.accelerators
        meant = table.find(name.value) if exact else None
        suggestion = meant.name.value if meant else nearest(name.value, table.by_key)
        family = canonical(name.value) + "-"
        sizes = [key for key in table.by_key if canonical(key).startswith(family)]
        if sizes and meant is None:
            suggestion = None
        if suggestion is None and not sizes and not exact:
            suggestion = nearest(name.value, self.instances)
        known = "" if suggestion else "known accelerators: " + ", ".join(sizes or table.by_key)
        self.findings.add(
            codes.UNKNOWN_ACCELERATOR,
            name.span,
            name=name.value,
            known=known,
            suggestion=suggestion,
        )

    def _bad_version(self, text: At[str], what: str, advice: str) -> None:
        self.findings.add(codes.BAD_VERSION, text.span, text=text.value, what=what, advice=advice)

    def model_facts(self, checkpoint: str) -> Map | None:
        """A catalogued model's facts, by checkpoint; the project's own before shipped ones."""
        for models in self._organisation(checkpoint):
            facts = models.get(checkpoint)
            if isinstance(facts, Map):
                return facts
        return None

    def checkpoints_beside(self, checkpoint: str) -> list[str]:
        """The catalogued checkpoints of the same organisation."""
        return [name for models in self._organisation(checkpoint) for name in models.entries]

    def _organisation(self, checkpoint: str) -> Iterator[Map]:
        """catalogs/models/<organisation>.yaml of a hub id."""
        organisation, slash, _ = checkpoint.partition("/")
        folder = re.sub(r"[^a-z0-9.-]", "-", organisation.lower())
        for mark in ("", MARK) if slash and organisation else ():
            path = f"{mark}catalogs/models/{folder}.yaml"
            node = self.files.node(path) if self.files.exists(path) else None
            if isinstance(node, Map):
                yield node

    def _table(self, name: str, of: type[Any]) -> dict[str, Any]:
        """A catalogue's entries by key: the project's own replace shipped ones."""
        entries: dict[str, Any] = {}
        own, shipped = self.files.listing("catalogs")
        paths = [path for path in own + shipped if path.rpartition(".")[0].endswith(f"gs/{name}")]
        for record in self._records(paths, of):
            for item in record.entries:
                entries.setdefault(item.key.value, item.value)
        return entries

    def _records(self, paths: Iterable[str], of: type[T]) -> list[T]:
        found = []
        for path in paths:
            node = self.files.node(path)
            record = read_record(of, node, self.findings) if node is not None else None
            if record is not None:
                found.append(record)
        return found

    def _read_engine(self, name: str) -> Engine | None:
        for mark in ("", MARK):
            folder = f"{mark}serve.d/{name}"
            files = [
                f"{folder}/{file}" for file in MANIFESTS if self.files.exists(f"{folder}/{file}")
            ]
            wrapper = f"{folder}/{WRAPPER}"
            has_wrapper = self.files.exists(wrapper)
            is_there = name in self.own_engines if not mark else bool(files) or has_wrapper
            if not is_there:
                continue
            problem = _folder_problem(files, has_wrapper)
            if problem:
                span = Span(files[0] if files else folder, 1, 1)
                self._broken(span, name, problem, "an engine is a manifest and a wrapper template")
                return None
            return self._read_manifest(name, files[0], wrapper)
        return None

    def _read_manifest(self, name: str, file: str, wrapper: str) -> Engine | None:
        node = self.files.node(file)
        manifest = read_record(Manifest, node, self.findings) if node is not None else None
        if manifest is None:
            return None
        from servec.catalog.engines import Engine
        from servec.ir.serve import Serve

        check_contract(manifest, self.findings)
        if manifest.engine.value != name:
            problem = f"the manifest says `{manifest.engine.value}`, the folder `{name}`"
            self._broken(manifest.engine.span, name, problem, "give both the same name")
            return None
        if manifest.serve is None:
            problem = "the manifest does not say how it is called"
            self._broken(manifest.engine.span, name, problem, "add `serve:` to the manifest")
            return None
        serve = read_record(Serve, manifest.serve, self.findings, ("serve",))
        if serve is None:
            return None
        check_serve(serve, self.findings)
        told = serve.environment_only
        if (told is None or told.tag_has is not None) and not (serve.calls and serve.flags):
            problem = "`serve:` has neither `calls` and `flags` nor `environment_only`"
            self._broken(serve.span, name, problem, "say how the engine is called")
            return None
        return Engine(manifest, serve, file, wrapper, lambda: self._checked(name, manifest))

    def _checked(self, name: str, manifest: Manifest) -> Released | None:
        """What released packages accept, once the manifest's gates were held against it."""
        released = self.released(name)
        if released is not None:
            check_gates(manifest, released, self.findings)
        return released

    def _broken(self, span: Span, engine: str, problem: str, advice: str) -> None:
        self.findings.add(codes.BROKEN_ENGINE, span, engine=engine, problem=problem, advice=advice)


def _engine_folders(paths: Iterable[str]) -> set[str]:
    """Names of folders that hold a manifest, whatever its suffix, or a wrapper template."""
    parts = (path.split("/") for path in paths)
    return {
        found[1]
        for found in parts
        if len(found) == 3 and (found[2] == WRAPPER or found[2].startswith("manifest."))
    }


def _folder_problem(manifests: list[str], has_wrapper: bool) -> str:
    if not manifests:
        return "there is no manifest.yaml or manifest.json"
    if len(manifests) > 1:
        return "there are two manifests, one in YAML and one in JSON"
    return "" if has_wrapper else f"there is no {WRAPPER} beside the manifest"
