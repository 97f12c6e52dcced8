"""Recipes: by name, or by family and size.

    architecture Qwen3ForCausalLM, 8.2 billion parameters -> family qwen3 -> recipe qwen3-8b

Ranges are half open; no match is never the nearest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir import knowledge
from servec.source.located import At


class RecipeTable:
    """All recipes. The project's own come first and replace shipped ones of the same name."""

    def __init__(self, files: Iterable[knowledge.RecipeFile], findings: Findings) -> None:
        self.by_name: dict[str, knowledge.Recipe] = {}
        self.by_family: dict[str, list[knowledge.Recipe]] = {}
        # Architecture, part of a checkpoint's name, family.
        self.architectures: list[tuple[At[str], str, str]] = []
        for file in files:
            family = file.family.value
            for item in file.architectures:
                self._add_architecture(family, item, findings)
            for entry in file.recipes:
                self._add(family, entry.value, findings)
        for recipes in self.by_family.values():
            recipes.sort(key=lambda recipe: (_is_shipped(recipe), recipe.size_range[0].value))
            _check_ranges(recipes, findings)

    def _add_architecture(
        self, family: str, item: At[str] | knowledge.NamedArchitecture, findings: Findings
    ) -> None:
        name, part = (
            (item.architecture, item.name.value)
            if isinstance(item, knowledge.NamedArchitecture)
            else (item, "")
        )
        for known, known_part, other in self.architectures:
            same = known.value == name.value and known_part == part and other != family
            if same and not _is_shipped(name) and not _is_shipped(known):
                also, span = (known.span, f"of family `{other}` here"), name.span
                findings.add(
                    codes.DECLARED_TWICE, span, what="architecture", name=name.value, also=also
                )
        self.architectures.append((name, part, family))

    def _add(self, family: str, recipe: knowledge.Recipe, findings: Findings) -> None:
        name = recipe.name.value
        known = self.by_name.get(name)
        if name == "none":
            where, wanted, span = "a recipe's name", "another word", recipe.name.span
            findings.add(codes.BAD_VALUE, span, where=where, wanted=wanted, value="`none`")
        if known is not None:
            if _is_shipped(recipe) == _is_shipped(known):
                also = (known.name.span, "first here")
                span = recipe.name.span
                findings.add(codes.DECLARED_TWICE, span, what="recipe", name=name, also=also)
            return
        self.by_name[name] = recipe
        self.by_family.setdefault(family, []).append(recipe)

    def families(self, architecture: str, checkpoint: str) -> list[str]:
        """The families of an architecture, the project's own first; a family that shares it with
        others is one only where the checkpoint's name says so."""
        found = [
            family
            for known, part, family in self.architectures
            if known.value == architecture
            and (not part or _squeezed(part) in _squeezed(checkpoint))
        ]
        return list(dict.fromkeys(found))

    def match(self, family: str, billions: float) -> knowledge.Recipe | None:
        """The family's recipe for a size, or None."""
        for recipe in self.by_family.get(family, ()):
            low, high = recipe.size_range
            if low.value <= billions < high.value:
                return recipe
        return None

    def ranges(self, family: str) -> str:
        """The family's ranges as a sentence, for a message."""
        recipes = self.by_family.get(family, [])
        known = ", ".join(
            f"{recipe.name.value} [{low.value:g}, {high.value:g})"
            for recipe in sorted(recipes, key=lambda recipe: recipe.size_range[0].value)
            for low, high in (recipe.size_range,)
        )
        return f"its recipes: {known}" if known else "it has no recipes"


def family_word(architecture: str) -> str:
    """A family's name for an architecture that no recipe speaks of: `LlamaForCausalLM` is llama."""
    return re.sub(r"For[A-Z].*\Z", "", architecture).lower()


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _is_shipped(item: knowledge.Recipe | At[str]) -> bool:
    return item.span.file.startswith("servec:")


def _check_ranges(recipes: list[knowledge.Recipe], findings: Findings) -> None:
    for recipe in recipes:
        low, high = recipe.size_range
        if low.value >= high.value:
            findings.add(
                codes.SIZE_RANGES,
                low.span,
                recipe=recipe.name.value,
                problem=f"[{low.value:g}, {high.value:g}) holds nothing",
                advice="write the lower bound first; the upper one is not part of the range",
            )
    widest: dict[bool, knowledge.Recipe] = {}  # the one that reaches furthest, own and shipped
    for recipe in recipes:
        before = widest.setdefault(_is_shipped(recipe), recipe)
        end, start = before.size_range[1], recipe.size_range[0]
        if recipe.size_range[1].value > end.value:
            widest[_is_shipped(recipe)] = recipe
        if before is not recipe and start.value < end.value:
            findings.add(
                codes.SIZE_RANGES,
                start.span,
                recipe=recipe.name.value,
                problem=f"overlaps the one of `{before.name.value}`, which ends at {end.value:g}",
                advice="let each size belong to one recipe of the family",
                also=(end.span, "ends here"),
            )
