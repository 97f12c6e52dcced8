"""Speculative decoding: what a spec says, in the parameters that an engine takes it in.

json_flag        one parameter that holds a mapping, its keys in a fixed order
discrete_flags   a parameter for each word
options_file     keys of a file of options beside the wrapper
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from servec.ir.serve import SpeculativeRules
from servec.source.located import Plain


class Draft(NamedTuple):
    """What is said of the draft, by the spec's own words; `method` is the engine's name of the
    algorithm."""

    algorithm: str
    method: str
    words: dict[str, Plain]


Way = Callable[[SpeculativeRules, Draft], Iterator[tuple[str, Plain]]]


def parameters(rules: SpeculativeRules, draft: Draft) -> list[tuple[str, Plain]]:
    """Parameters and their values, in the order that they are written in."""
    return list(WAYS[rules.strategy.value](rules, draft))


def _json_flag(rules: SpeculativeRules, draft: Draft) -> Iterator[tuple[str, Plain]]:
    assert rules.knob is not None
    yield rules.knob.value, dict(_named(rules, draft))


def _discrete_flags(rules: SpeculativeRules, draft: Draft) -> Iterator[tuple[str, Plain]]:
    yield from _named(rules, draft)


def _options_file(rules: SpeculativeRules, draft: Draft) -> Iterator[tuple[str, Plain]]:
    assert rules.knob is not None
    assert rules.inside is not None
    yield f"{rules.knob.value}.{rules.inside.value}", dict(_named(rules, draft))


def _named(rules: SpeculativeRules, draft: Draft) -> Iterator[tuple[str, Plain]]:
    """The engine's own names, in the order of the manifest."""
    words: dict[str, Plain] = {"algorithm": draft.method, **draft.words}
    own = {
        word.key.value: word.value.value
        for item in rules.otherwise
        if item.key.value == draft.algorithm
        for word in item.value
    }
    for item in rules.names:
        word = item.key.value
        if word in words:
            yield own.get(word, item.value.value), words[word]


WAYS: dict[str, Way] = {
    "json_flag": _json_flag,
    "discrete_flags": _discrete_flags,
    "options_file": _options_file,
}
