"""lower, what a wrapper looks at before it starts: flags that an operator may set, and choices
that depend on the version.

vllm 0.29.0, eagle3 -> max_model_len (--max-model-len), enable_lora (a switch), …
                       speculative decoding with `eagle3`: since 0.9.1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from servec.catalog.capabilities import gate_of
from servec.catalog.catalog import Catalog
from servec.catalog.engines import EngineAt
from servec.catalog.released import ReleasedAt
from servec.ir import decl
from servec.ir.facts import Flag
from servec.ir.launch import Gate, Settable, Start, Words
from servec.ir.plan import Plan

BOUND = re.compile(r"(?P<how>>=|<)\s*(?P<release>[0-9]+(?:\.[0-9]+){0,2})\Z")


def start_of(
    plan: Plan, command: tuple[Words, ...], project: decl.Project, catalog: Catalog
) -> Start:
    """What the wrapper of a plan looks at; nothing where a container starts itself."""
    if not command:
        return Start(False, (), "", (), (), ())
    engine = plan.subject.engine.at(plan.subject.version.version)
    manifest = engine.manifest
    marker = manifest.tag_marker.value if manifest.tag_marker else ""
    released = catalog.released(plan.subject.engine.name)
    settable: tuple[Settable, ...] = ()
    version = plan.subject.version.version
    if released is not None and _may_change(plan, project):
        words = {str(word).partition("=")[0] for group in command for word in group.words}
        either = [list(_settable(engine, here, words)) for here in released.around(version)]
        settable = tuple(item for item in either[0] if all(item in other for other in either))
    return Start(
        overrides=_may_change(plan, project),
        settable=settable,
        release=str(version) if version else "the newest version",
        gates=tuple(_gates(plan, engine, catalog)),
        images=tuple(catalog.images.irregular(plan.subject.engine.name, marker)),
        others=tuple(catalog.images.others(plan.subject.engine.name)),
    )


def _may_change(plan: Plan, project: decl.Project) -> bool:
    said = plan.subject.model.env_overrides or project.env_overrides
    return said is None or said.value


def _settable(engine: EngineAt, here: ReleasedAt, words: set[str]) -> Iterator[Settable]:
    """Every flag by each of its names, but those that carry a secret, that servec decides, or
    whose variable the engine reads itself as something else."""
    prefix, taken = engine.manifest.env_var_prefix.value, set()
    for flag in {flag.name: flag for flag in here.flags.values()}.values():
        names = list(_names(flag, prefix))
        if flag.removed or not _is_free(flag, names, engine):
            continue
        spelling = _present(flag.spellings, words) or flag.name
        negative = _present(flag.negatives, words) or _negative(flag, engine)
        for name in names:
            variable = prefix + name.upper()
            reads = variable in here.variables and variable != flag.variable
            if not reads and name not in taken:
                taken.add(name)
                yield Settable(name, spelling, negative, not flag.takes_value)


def _names(flag: Flag, prefix: str) -> Iterator[str]:
    for spelling in flag.spellings:
        if spelling.startswith("--"):
            yield spelling[2:].replace("-", "_").replace(".", "_").lower()
    if flag.variable.startswith(prefix):
        yield flag.variable.removeprefix(prefix).lower()


def _is_free(flag: Flag, names: Iterable[str], engine: EngineAt) -> bool:
    decided = engine.secret_flags | set(engine.owned)
    model = engine.call.model.value if engine.call and engine.call.model else None
    prefix = engine.manifest.env_var_prefix.value
    return model not in flag.spellings and not any(
        name in decided or engine.refuses(prefix + name.upper()) for name in names
    )


def _present(spellings: Iterable[str], words: set[str]) -> str:
    return next((spelling for spelling in spellings if spelling in words), "")


def _negative(flag: Flag, engine: EngineAt) -> str:
    own = engine.negative(flag.name[2:].replace("-", "_"))
    return own if own in flag.negatives else next(iter(flag.negatives), "")


def _gates(plan: Plan, engine: EngineAt, catalog: Catalog) -> Iterator[Gate]:
    """The choices of a plan that other versions do not have."""
    name = plan.subject.engine.name
    said = plan.subject.model.speculative
    if said is not None:
        algorithm = said.algorithm.value
        since = gate_of(engine.manifest, algorithm)
        if since:
            advice = _back_to(plan) or catalog.images.upgrade(name, since)
            yield Gate(f"speculative decoding with {algorithm}", since, "", advice)
    if engine.call is not None:
        what = " ".join(word.value for word in engine.call.program)
        since, before = _bounds(engine.call.versions.value if engine.call.versions else "")
        if since or before:
            advice = _back_to(plan) or catalog.images.upgrade(name, since)
            yield Gate(f"`{what}`", since, before, advice)


def _back_to(plan: Plan) -> str:
    image = plan.subject.image
    return f"it was compiled for {image.value}" if image else ""


def _bounds(versions: str) -> tuple[str, str]:
    """The lowest release of a range and the first that is past it; empty where there is none."""
    found = {"": "", ">=": "", "<": ""}
    for part in versions.split(","):
        bound = BOUND.match(part.strip())
        if bound:
            parts = [*bound["release"].split("."), "0", "0"][:3]
            found[bound["how"]] = ".".join(parts)
    return found[">="], found["<"]
