"""bind, one model: its engine and version, accelerator, facts, precision and recipe."""

from __future__ import annotations

from packaging.version import Version

from servec.catalog.catalog import Catalog
from servec.catalog.engines import Engine
from servec.catalog.models import Facts, read_facts
from servec.catalog.recipes import family_word
from servec.catalog.versions import EngineVersion, parse_version
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.diag.suggest import nearest
from servec.ir import decl, knowledge
from servec.ir.program import Subject
from servec.source.located import At, Span

MODEL_TYPE_OF = {"chat": "instruct", "gen": "base"}
"""A spec's word for a model type -> the recipes' word. Two vocabularies on purpose."""


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
        facts = self.facts(model)
        precision = model.precision.value if model.precision else facts.precision
        type_word = model.type.value if model.type else "chat"
        recipe, choice, fits = self.recipe(model, facts)
        if precision is None and recipe is not None:
            self.no_fact(model, "precision", "give `precision:`, or `config:` with the config.json")
            fits = False
        if not self.lowerable(model) or not (engine and version and hardware and fits):
            return None
        accelerator, gpus = hardware
        return Subject(
            name=name,
            model=model,
            file=file,
            engine=engine,
            version=version,
            image=model.image,
            accelerator=accelerator,
            gpus=gpus,
            facts=facts,
            model_type=MODEL_TYPE_OF[type_word],
            precision=precision,
            recipe=recipe,
            recipe_choice=choice,
        )

    def engine(self, model: decl.Model) -> Engine | None:
        if model.engine is None:
            self.missing(model, "engine", self.catalog.known_engines)
            return None
        name = model.engine.value
        if name not in self.catalog.engine_names:
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
        if model.image is None:
            if said is not None:
                return EngineVersion(said, "spec")
            return self.unknown(model, engine, EngineVersion(None, "no image, no engine_version"))
        images = self.catalog.images
        found = images.find(engine.name, model.image.value)
        if found is not None and found[0].engine.value != engine.name:
            theirs = found[0].engine.value
            span = model.image.span
            self.findings.add(codes.OTHER_IMAGE, span, theirs=theirs, engine=engine.name)
            return None
        version = images.version(engine.name, model.image.value)
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

    def hardware(self, model: decl.Model) -> tuple[knowledge.Accelerator, int | None] | None:
        gpus = model.gpus.value if model.gpus else None
        if model.hardware is None:
            self.missing(model, "hardware", "an accelerator key as `H100-80G`")
            return None
        name = model.hardware.value
        accelerator = self.catalog.accelerators.find(name)
        if accelerator is None and (instance := self.catalog.instances.get(name)) is not None:
            accelerator = self.catalog.accelerators.find(instance.accelerator.value)
            if gpus is not None and gpus > instance.gpus.value:
                self.findings.add(
                    codes.NOT_ENOUGH_GPUS,
                    model.gpus.span if model.gpus else model.hardware.span,
                    needs=gpus,
                    has=instance.gpus.value,
                    reason="`gpus`",
                )
            gpus = gpus or instance.gpus.value
        if accelerator is None:
            self.catalog.unknown_accelerator(model.hardware)
            return None
        return accelerator, gpus

    def facts(self, model: decl.Model) -> Facts:
        checkpoint = model.checkpoint.value if model.checkpoint else ""
        if model.config is None:
            entry = self.catalog.model_facts(checkpoint)
            return read_facts(checkpoint, entry, whole=False)
        config = self.sources.configs.get(model.config.value)
        if config is None and not self.catalog.files.exists(model.config.value):
            span = model.config.span
            self.findings.add(codes.CONFIG_MISSING, span, path=model.config.value)
        elif config is None and self.catalog.files.node(model.config.value) is not None:
            wanted, span = "a mapping", Span(model.config.value, 1, 1)
            self.findings.add(codes.MODEL_CONFIG, span, key="the whole", wanted=wanted)
        return read_facts(checkpoint, config)

    def recipe(self, model: decl.Model, facts: Facts) -> tuple[knowledge.Recipe | None, str, bool]:
        """The recipe, how it was chosen, and whether the choice worked out."""
        if model.recipe is not None and model.recipe.value == "none":
            return None, "none", True
        table = self.catalog.recipes
        if model.recipe is not None:
            found = table.by_name.get(model.recipe.value)
            if found is None:
                self.unknown_recipe(model.recipe)
            return found, "pin", found is not None
        checkpoint = model.checkpoint.value if model.checkpoint else ""
        if facts.architecture is None:
            advice = "give `config:` with the config.json, or pin a recipe with `recipe:`"
            self.no_fact(model, "architecture", advice)
            return None, "", False
        named = f"{_name_of(facts)} {checkpoint}"
        family = table.family(facts.architecture, named)
        if family is None:
            what = f"`{facts.architecture}` (family `{family_word(facts.architecture)}`)"
            self.findings.add(codes.NO_FAMILY, model.name.span, what=what)
            return None, "", False
        if facts.billions is None:
            self.no_fact(model, "size", "pin a recipe with `recipe:`")
            return None, "", False
        found = table.match(family, facts.billions)
        if found is None:
            span, ranges = model.name.span, table.ranges(family)
            size = f"{facts.billions:g}"
            self.findings.add(codes.NO_RECIPE, span, family=family, size=size, ranges=ranges)
            return None, "", False
        return found, f"family {family}, {facts.billions:.3g}B ({facts.size_source})", True

    def unknown_recipe(self, name: At[str]) -> None:
        names = list(self.catalog.recipes.by_name)
        self.findings.add(
            codes.UNKNOWN_RECIPE,
            name.span,
            name=name.value,
            known="known recipes: " + ", ".join(names),
            suggestion=nearest(name.value, names),
        )

    def lowerable(self, model: decl.Model) -> bool:
        """What the language has and no target has yet is refused aloud, never left out."""
        nodes = model.nodes if model.nodes and model.nodes.value > 1 else None
        role = model.role if model.role and model.role.value != "full" else None
        features = model.features if model.features and model.features.entries else None
        adapters = model.adapters[0] if model.adapters else None
        later = {
            "nodes": nodes,
            "role": role,
            "features": features,
            "adapters": adapters,
            "speculative": model.speculative,
        }
        for what, item in later.items():
            if item is not None:
                self.findings.add(codes.NOT_YET, item.span, what=what)
        return not any(later.values())

    def missing(self, model: decl.Model, key: str, advice: str) -> None:
        where = f"`models.{model.name.value}`"
        self.findings.add(codes.MISSING_KEY, model.name.span, where=where, key=key, advice=advice)

    def no_fact(self, model: decl.Model, fact: str, advice: str) -> None:
        place = model.checkpoint or model.name
        checkpoint = place.value
        self.findings.add(
            codes.MISSING_FACT, place.span, fact=fact, checkpoint=checkpoint, advice=advice
        )


def _name_of(facts: Facts) -> str:
    """`_name_or_path` of the config: what the model was called before it was copied."""
    node = facts.config.get("_name_or_path") if facts.config else None
    return node.value if isinstance(node, At) and isinstance(node.value, str) else ""
