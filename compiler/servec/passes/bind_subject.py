"""bind, one model: its engine and version, accelerator, facts, precision and recipe."""

from __future__ import annotations

import re
from collections.abc import Callable

from packaging.version import Version

from servec.catalog.catalog import Catalog
from servec.catalog.engines import Engine
from servec.catalog.models import read_facts
from servec.catalog.versions import parse_version
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.diag.suggest import listed, nearest
from servec.ir import decl, knowledge
from servec.ir.facts import CONFIG, EngineVersion, Facts
from servec.ir.program import Subject
from servec.source.located import At, Map, Plain, plain

MODEL_TYPE_OF = {"chat": "instruct", "gen": "base"}
"""A spec's word for a model type -> the recipes' word. Two vocabularies on purpose."""
WITHOUT_RECIPE = "pin a recipe, or say `recipe: none` with `topology: {tp: …}` and `precision:`"


MUST_BE_WHOLE = (
    "checkpoint", "config", "type", "engine", "image", "engine_version", "hardware", "gpus",
    "nodes", "hosts", "launch_mode", "precision", "recipe", "topology", "role", "base", "endpoint",
)  # fmt: skip
"""Keys that the rest of the compiler would guess wrong about where they were given in vain."""
CONFIG_KEYS: dict[str, tuple[str, Callable[[Plain], bool]]] = {
    "architectures": (
        "a list of class names",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    ),
    **{
        key: ("a whole number", lambda value: type(value) is int)
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
    },
}


class Binder:
    """Finds what a model's names name; each lack is a finding, and the model is left out."""

    def __init__(self, sources: decl.Sources, catalog: Catalog, findings: Findings) -> None:
        self.sources = sources
        self.catalog = catalog
        self.findings = findings
        self.sites = {item.key.value: item.value for item in sources.project.engines}

    def subject(self, model: decl.Model, file: str, name: str) -> Subject | None:
        engine = self.engine(model)
        version = self.version(model, engine) if engine else None
        hardware = self.hardware(model)
        machine_image = self.machine_image(model)
        facts = self.facts(model)
        found = self.recipe(model, facts) if facts else None
        precision = facts.precision if facts else None
        precision = model.precision.value if model.precision else precision
        if precision is None and found and found[0] is not None:
            advice = f"give `precision:`, or {CONFIG}"
            self.no_fact(model, ["precision"], advice)
            return None
        whole = not any(map(model.is_hole, MUST_BE_WHOLE))
        if not (whole and engine and version and hardware and facts and found):
            return None
        accelerator, instance, gpus = hardware
        recipe, choice = found
        return Subject(
            name=name,
            model=model,
            file=file,
            engine=engine,
            version=version,
            image=model.image,
            accelerator=accelerator,
            instance=instance,
            machine_image=machine_image,
            gpus=gpus,
            nodes=model.nodes.value if model.nodes else 1,
            facts=facts,
            model_type=MODEL_TYPE_OF[model.type.value if model.type else "chat"],
            precision=precision,
            recipe=recipe,
            recipe_choice=choice,
        )

    def engine(self, model: decl.Model) -> Engine | None:
        if model.engine is None:
            self.missing(model, "engine", self.catalog.known_engines)
            return None
        name = model.engine.value
        if name not in self.catalog.engine_names and name not in self.catalog.aliases:
            self.catalog.unknown_engine(model.engine)
            return None
        site = self.sites.get(name)
        if site and site.disabled and site.disabled.value:
            also = (site.disabled.span, "disabled here")
            self.findings.add(codes.ENGINE_DISABLED, model.engine.span, engine=name, also=also)
            return None
        return self.catalog.engine(name)

    def version(self, model: decl.Model, engine: Engine) -> EngineVersion | None:
        said = self.said_version(model)
        if model.engine_version and said is None:
            return None
        if model.is_hole("engine_version") or model.is_hole("image"):
            return None
        if model.image is None:
            if said is not None:
                return EngineVersion(said, "spec")
            return self.unknown(model, engine, EngineVersion(None, "no image, no engine_version"))
        images = self.catalog.images
        found = images.find(engine.name, model.image.value)
        theirs = found[0].engine.value if found else images.engine_of(model.image.value)
        if theirs is not None and self.catalog.aliases.get(theirs, theirs) != engine.name:
            span = model.image.span
            self.findings.add(codes.OTHER_IMAGE, span, theirs=theirs, engine=engine.name)
            return None
        version = self.catalog.version_in(engine.name, model.image.value)
        if said is None:
            return version if version.known else self.unknown(model, engine, version)
        if version.version is not None and version.version != said:
            self.findings.add(
                codes.VERSIONS_DISAGREE,
                model.image.span,
                image=version.version,
                source=version.source,
                version=said,
                also=(model.engine_version.span, "the other") if model.engine_version else (),
            )
            return None
        return version if version.known else EngineVersion(said, "spec")

    def said_version(self, model: decl.Model) -> Version | None:
        if model.engine_version is None:
            return None
        version = parse_version(model.engine_version.value)
        if version is None:
            text, advice = model.engine_version.value, 'write it as "0.29.0"'
            span = model.engine_version.span
            self.findings.add(codes.BAD_VERSION, span, text=text, what="a version", advice=advice)
        return version

    def unknown(self, model: decl.Model, engine: Engine, version: EngineVersion) -> EngineVersion:
        place = model.image or model.engine or model.name
        self.findings.add(
            codes.VERSION_UNKNOWN,
            place.span,
            engine=engine.name,
            reason=version.source,
            severity=Severity.ERROR if self.findings.strict else None,
        )
        return version

    def hardware(
        self, model: decl.Model
    ) -> tuple[knowledge.Accelerator, knowledge.Instance | None, int | None] | None:
        """The accelerator, the machine where it is one that the catalogue has, and the GPUs."""
        gpus = model.gpus.value if model.gpus else None
        if model.hardware is None:
            self.missing(model, "hardware", "an accelerator key as `H100-80G`")
            return None
        name = model.hardware.value
        accelerator = self.catalog.accelerators.find(name)
        instances = self.catalog.instances if accelerator is None else {}
        if (instance := instances.get(name) or instances.get(name.lower())) is not None:
            accelerator = self.catalog.accelerators.find(instance.accelerator.value)
            if gpus is not None and gpus > instance.gpus.value:
                self.findings.add(
                    codes.NOT_ENOUGH_GPUS,
                    model.gpus.span if model.gpus else model.hardware.span,
                    needs=gpus,
                    has=instance.gpus.value,
                    reason="`gpus` says so",
                )
            gpus = min(gpus or instance.gpus.value, instance.gpus.value)
        if accelerator is None:
            self.catalog.unknown_accelerator(model.hardware)
            return None
        return accelerator, instance, gpus

    def machine_image(self, model: decl.Model) -> knowledge.MachineImage | None:
        """What the machine starts from, where the spec says it and the catalogue has it."""
        if model.machine_image is None:
            return None
        name, known = model.machine_image.value, self.catalog.machine_images
        if name not in known:
            near = nearest(name, known)
            names = "known machine images: " + ", ".join(known)
            self.findings.add(
                codes.UNKNOWN_MACHINE_IMAGE,
                model.machine_image.span,
                name=name,
                known="" if near else f"{names}; add yours to catalogs/machine_images.yaml",
                suggestion=near,
            )
        return known.get(name)

    def facts(self, model: decl.Model) -> Facts | None:
        """What is known of the model; None with a finding where its config cannot be used."""
        checkpoint = model.checkpoint.value if model.checkpoint else ""
        if model.is_hole("config"):
            return None
        if model.config is None:
            entry = self.catalog.model_facts(checkpoint)
            return read_facts(checkpoint, entry, whole=False)
        path = model.config.value
        config = self.sources.configs.get(path)
        if config is not None:
            return read_facts(checkpoint, config) if self.usable(config) else None
        if not self.catalog.files.exists(path):
            self.findings.add(codes.CONFIG_MISSING, model.config.span, path=path)
        elif (node := self.catalog.files.node(path)) is not None:
            self.findings.add(codes.MODEL_CONFIG, node.span, key="the whole", wanted="a mapping")
        return None

    def usable(self, config: Map) -> bool:
        """Whether the keys that decide are of their kind."""
        whole = True
        for key, (wanted, fits) in CONFIG_KEYS.items():
            node = config.get(key)
            if node is not None and not fits(plain(node)):
                self.findings.add(codes.MODEL_CONFIG, node.span, key=f"`{key}`", wanted=wanted)
                whole = False
        return whole

    def recipe(self, model: decl.Model, facts: Facts) -> tuple[knowledge.Recipe | None, str] | None:
        """The recipe and how it was chosen; None with a finding where the choice fails."""
        if model.is_hole("recipe") or model.is_hole("checkpoint"):
            return None
        if model.recipe is not None and model.recipe.value == "none":
            return None, "none"
        table = self.catalog.recipes
        if model.recipe is not None:
            found = table.by_name.get(model.recipe.value)
            if found is None:
                self.unknown_recipe(model.recipe)
            return (found, "pin") if found else None
        return self.match(model, facts)

    def match(self, model: decl.Model, facts: Facts) -> tuple[knowledge.Recipe, str] | None:
        """The recipe of the model's family and size."""
        table, place = self.catalog.recipes, model.checkpoint or model.name
        if facts.architecture is None:
            lacks = ["architecture", *(["size"] if facts.billions is None else [])]
            if model.precision is None and facts.precision is None:
                lacks.append("precision")
            self.no_fact(model, lacks, f"give {CONFIG}; {WITHOUT_RECIPE}")
            return None
        families = table.families(facts.architecture, f"{_name_of(facts)} {place.value}")
        if not families:
            what = f"`{facts.architecture}`"
            self.findings.add(codes.NO_FAMILY, place.span, what=what)
            return None
        if facts.billions is None:
            self.no_fact(model, ["size"], "pin a recipe with `recipe:`")
            return None
        for family in families:
            found = table.match(family, facts.billions)
            if found is not None:
                return found, f"family {family}, {facts.billions:.3g}B ({facts.size_source})"
        family, size = families[0], f"{facts.billions:g}"
        ranges = table.ranges(family)
        self.findings.add(codes.NO_RECIPE, place.span, family=family, size=size, ranges=ranges)
        return None

    def unknown_recipe(self, name: At[str]) -> None:
        names = ["none", *self.catalog.recipes.by_name]
        near = nearest(name.value, names)
        known = "" if near else "known recipes: " + ", ".join(names)
        self.findings.add(
            codes.UNKNOWN_RECIPE, name.span, name=name.value, known=known, suggestion=near
        )

    def missing(self, model: decl.Model, key: str, advice: str) -> None:
        if model.is_hole(key):
            return
        where = f"`models.{model.name.value}`"
        self.findings.add(codes.MISSING_KEY, model.name.span, where=where, key=key, advice=advice)

    def no_fact(self, model: decl.Model, facts: list[str], advice: str) -> None:
        """Tell which facts are missing. A name is near that has the same numbers: another size of
        a model is not what was meant."""
        place = model.checkpoint or model.name
        near = None
        if model.config is None and facts[0] == "architecture":
            beside = self.catalog.checkpoints_beside(place.value)
            numbers = re.findall(r"\d+", place.value)
            same = [name for name in beside if re.findall(r"\d+", name) == numbers]
            near = nearest(place.value, same)
        self.findings.add(
            codes.MISSING_FACT,
            place.span,
            facts=listed(facts),
            verb="is" if len(facts) == 1 else "are",
            checkpoint=place.value,
            advice=advice,
            suggestion=near,
        )


def _name_of(facts: Facts) -> str:
    """`_name_or_path` of the config: what the model was called before it was copied."""
    node = facts.config.get("_name_or_path") if facts.config else None
    return node.value if isinstance(node, At) and isinstance(node.value, str) else ""
