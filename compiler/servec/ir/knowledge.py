"""What recipes and catalogues declare, typed and checked: facts with a source.

As in `ir/decl.py`, each class is one mapping of a file and each field a key of it.
"""

from __future__ import annotations

from servec.ir.shape import (
    Anything,
    Bool,
    Either,
    Int,
    ListOf,
    MapOf,
    Number,
    OrNull,
    Parameters,
    Record,
    declaration,
    key,
    rest,
)
from servec.ir.words import PRECISION, RANGE, RECIPE_TYPE, TEXT, VERSION, Item
from servec.source.located import At, Map, Node, Span

# --- recipes -------------------------------------------------------------------------------------

ByEngine = tuple[Item[Map], ...]
ByPrecision = tuple[Item[ByEngine], ...]


@declaration
class NamedArchitecture:
    """An architecture that belongs to the family only where the checkpoint's name says so."""

    span: Span
    architecture: At[str] = key(TEXT, "the class in config.json", required=True)
    name: At[str] = key(TEXT, "a part of the checkpoint's name", required=True)


@declaration
class KnownIssue:
    """What is known to go wrong, and when: with any engine, or with one in some versions."""

    span: Span
    issue: At[str] = key(TEXT, "what goes wrong, and what to do", required=True)
    engine: At[str] | None = key(TEXT, "the engine that it is seen with")
    versions: At[str] | None = key(RANGE, "the engine's versions that have it")
    deterministic: At[bool] | None = key(Bool(), "only with `deterministic: true`")
    parameters: Map | None = key(Parameters(), "only while these parameters have these values")


@declaration
class Recipe:
    """One entry of recipes/<family>.yaml: two layers, kept apart, nothing inherited."""

    name: At[str]
    span: Span
    size_range: tuple[At[float], ...] = key(
        ListOf(Number(), 2, 2), "billions of parameters, half open", required=True
    )
    tested_versions: tuple[Item[tuple[At[str], ...]], ...] = key(
        MapOf(ListOf(RANGE)), "versions that were tested, by engine; items are OR, commas AND"
    )
    known_issues: tuple[At[str] | KnownIssue, ...] = key(
        ListOf(Either(TEXT, Record(KnownIssue))), "what is known to go wrong"
    )
    hardware: tuple[Item[ByPrecision], ...] = key(
        MapOf(MapOf(MapOf(Parameters()), PRECISION)),
        "parameters by accelerator, precision and engine",
    )
    capabilities: tuple[Item[ByEngine], ...] = key(
        MapOf(MapOf(Parameters()), RECIPE_TYPE), "parameters by model type and engine"
    )


@declaration
class RecipeFile:
    """A file of `recipes/`: one family."""

    span: Span
    family: At[str] = key(TEXT, "the family's name", required=True, name="_family")
    architectures: tuple[At[str] | NamedArchitecture, ...] = key(
        ListOf(Either(TEXT, Record(NamedArchitecture))),
        "classes of config.json that are this family",
        name="_architectures",
    )
    recipes: tuple[Item[Recipe], ...] = rest(Record(Recipe), "a recipe, by name")


# --- catalogues ----------------------------------------------------------------------------------

SOURCE = Anything()


@declaration
class Accelerator:
    """A GPU as it is planned with; memory in the driver's MiB where that is known."""

    name: At[str]
    span: Span
    vendor: At[str] = key(TEXT, "nvidia, amd, …", required=True)
    compute_capability: At[str] | None = key(TEXT, "CUDA compute capability")
    architecture: At[str] | None = key(TEXT, "the name of the chip's architecture")
    nominal_gb: At[float] = key(Number(1), "memory as it is sold, GB", required=True)
    driver_total_mib: At[int] | None = key(Int(1), "memory as the driver prints it, MiB")
    runtime_total_gib: At[float] | None = key(Number(), "memory as CUDA's runtime sees it, GiB")
    formats: tuple[At[str], ...] = key(ListOf(TEXT), "number formats that it computes in")
    mig_profiles: tuple[At[str], ...] = key(ListOf(TEXT), "profiles that it can be cut into")
    products: tuple[At[str], ...] = key(ListOf(TEXT), "further names that a driver prints")
    note: At[str] | None = key(TEXT, "what else to know")
    source: Node | None = key(SOURCE, "where the facts are from")
    date: At[str] | None = key(TEXT, "when they were read")


@declaration
class Instance:
    """A machine that can be rented: how many of which accelerator."""

    name: At[str]
    span: Span
    accelerator: At[str] = key(TEXT, "accelerator key", required=True)
    gpus: At[int] = key(Int(1), "how many it has", required=True)
    cloud: At[str] | None = key(TEXT, "whose it is")
    vcpus: At[int] | None = key(Int(1), "virtual CPUs")
    memory_gib: At[float] | None = key(Number(), "memory of the host, GiB")
    fabric: At[str] | None = key(TEXT, "network between nodes")
    driver: At[str] | None = key(VERSION, "NVIDIA driver that it comes with")
    note: At[str] | None = key(TEXT, "what else to know")
    source: Node | None = key(SOURCE, "where the facts are from")


@declaration
class MachineImage:
    """What a rented machine is started from: the driver is of the image, not of the machine."""

    name: At[str]
    span: Span
    driver: At[str] = key(VERSION, "NVIDIA driver that is installed", required=True)
    cuda: At[str] | None = key(TEXT, "CUDA version that the driver brings")
    date: At[str] | None = key(TEXT, "when the facts were last true")
    note: At[str] | None = key(TEXT, "what else to know")
    source: Node | None = key(SOURCE, "where the facts are from")


@declaration
class Image:
    """A published container image and what is inside."""

    name: At[str]
    span: Span
    engine: At[str] = key(TEXT, "the engine inside", required=True)
    version: At[str] = key(VERSION, "that engine's version", required=True)
    inner: tuple[Item[At[str]], ...] = key(MapOf(VERSION), "versions of engines inside it")
    cuda: At[str] | None = key(TEXT, "CUDA toolkit")
    driver: At[str] | None = key(VERSION, "lowest driver that it runs with")
    registry: At[str] | None = key(TEXT, "where it is published")
    date: At[str] | None = key(TEXT, "when it was published")
    note: At[str] | None = key(TEXT, "what else to know")
    source: Node | None = key(SOURCE, "where the facts are from")


@declaration
class ModelFacts:
    """An entry of catalogs/models/: keys of a config.json, read where a fact is asked for."""

    span: Span
    facts: tuple[Item[Node], ...] = rest(OrNull(Anything()), "a key of config.json")


@declaration
class Accelerators:
    """catalogs/accelerators.yaml."""

    span: Span
    source: Node | None = key(SOURCE, "where the facts are from", name="_source")
    entries: tuple[Item[Accelerator], ...] = rest(Record(Accelerator), "an accelerator, by key")


@declaration
class Instances:
    """catalogs/instances.yaml."""

    span: Span
    sources: Node | None = key(SOURCE, "where the facts are from", name="_sources")
    entries: tuple[Item[Instance], ...] = rest(Record(Instance), "an instance type")


@declaration
class MachineImages:
    """catalogs/machine_images.yaml."""

    span: Span
    sources: Node | None = key(SOURCE, "where the facts are from", name="_sources")
    entries: tuple[Item[MachineImage], ...] = rest(Record(MachineImage), "a machine image")


@declaration
class Images:
    """catalogs/images.yaml."""

    span: Span
    source: Node | None = key(SOURCE, "where the facts are from", name="_source")
    entries: tuple[Item[Image], ...] = rest(Record(Image), "an image, by its reference")
