"""Sentences about changed manifests -> the manifests, matched by key words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Manifest = dict[str, Any]
CONTRACT: Manifest = {
    "engine": "acme",
    "env_var_prefix": "ACME_",
    "speculative_decoding": True,
    "supported_algorithms": ["ngram"],
    "algorithm_map": {"ngram": "NGRAM"},
    "hot_reload": False,
}
OF_ANOTHER_TYPE: dict[str, list[Any]] = {
    "engine": [1, [], {}],
    "env_var_prefix": [1, [], {}],
    "speculative_decoding": ["true", 1, "yes", {}],
    "supported_algorithms": ["ngram", {"ngram": 1}, 1, [1]],
    "algorithm_map": ["ngram", ["ngram"], 1, {"ngram": 1}],
    "hot_reload": ["true", 1, "yes", {}],
}
METRICS = {"path": "/metrics", "format": "prometheus"}
CAPABILITY = {"suffix": "LORA", "type": "boolean"}
GATE = {"since": "0.8.0", "adds": {"supported_algorithms": ["ngram"]}}
FEATURE = {"env_var": "ACME_MODE", "type": "enum", "values": ["a", "b"]}


def changed(sentence: str) -> list[Manifest] | None:
    """The manifests that a sentence speaks of; None where no form fits."""
    for words, make in FORMS:
        if all(re.search(word, sentence, re.IGNORECASE) for word in words):
            return make(sentence)
    return None


def _with(**keys: Any) -> Manifest:
    return {**CONTRACT, **keys}


def _named(sentence: str) -> list[str]:
    """The contract's fields that a sentence names; all of them where it names none."""
    return [name for name in CONTRACT if re.search(rf"\b{name}\b", sentence)] or list(CONTRACT)


def _dropped(sentence: str) -> list[Manifest]:
    fields = _named(sentence)
    return [{key: CONTRACT[key] for key in CONTRACT if key != field} for field in fields]


def _retyped(sentence: str) -> list[Manifest]:
    return [
        _with(**{field: value}) for field in _named(sentence) for value in OF_ANOTHER_TYPE[field]
    ]


def _metrics(**keys: Any) -> Manifest:
    return _with(metrics_endpoint=METRICS | keys)


def _feature(**keys: Any) -> Manifest:
    return _with(engine_features={"mode": FEATURE | keys})


def _gated(*gates: Manifest, **keys: Any) -> Manifest:
    return _with(version_features=list(gates), **keys)


def _always(*manifests: Manifest) -> Callable[[str], list[Manifest]]:
    return lambda _: list(manifests)


UNKNOWN_KEY = r"\b(unknown|extra|additional)\b.*\bkey\b"
FORMS: list[tuple[tuple[str, ...], Callable[[str], list[Manifest]]]] = [
    ((UNKNOWN_KEY, "metrics_endpoint"), _always(_metrics(colour="red"))),
    (
        (UNKNOWN_KEY, "capability_map"),
        _always(_with(capability_map={"lora": CAPABILITY | {"colour": "red"}})),
    ),
    ((UNKNOWN_KEY, "version_features"), _always(_gated(GATE | {"colour": "red"}))),
    ((UNKNOWN_KEY, "engine_features?"), _always(_feature(colour="red"))),
    ((UNKNOWN_KEY, r"top.level|manifest"), _always(_with(colour="red"))),
    (("format", "metrics|word|unknown"), _always(_metrics(format="xml"))),
    (
        (r"\bport\b", r"range|\b0\b|65536|70000|negative"),
        _always(_metrics(port=0), _metrics(port=65536), _metrics(port=-1)),
    ),
    (("enum", r"without|no values|empty|missing"), _always(_with(
        engine_features={"mode": {"env_var": "ACME_MODE", "type": "enum"}}
    ))),
    (("default", "outside|not (in|among)|none of"), _always(_feature(default="c"))),
    (("gate", "twice|two gates"), _always(_gated(GATE, GATE | {"since": "0.9.0"}))),
    (
        ("gate|version_features", "outside|not (in|among)|unlisted"),
        _always(_gated(GATE | {"adds": {"supported_algorithms": ["mtp"]}})),
    ),
    (("min_version", "above|below|higher|newer"), _always(_gated(GATE, min_version="0.9.0"))),
    (
        ("companion|requires_any_of", r"\bno\b|not|unknown|undeclared"),
        _always(_with(capability_map={"lora": CAPABILITY | {"requires_any_of": [["rank"]]}})),
    ),
    (
        ("feature|env_var\\b", "variable|env_var", "without|not begin|prefix"),
        _always(_feature(env_var="MODE"), _feature(env_var="OTHER_MODE")),
    ),
    (
        ("prefix", "underscore", "lower"),
        _always(_with(env_var_prefix="ACME"), _with(env_var_prefix="acme_")),
    ),
    (("prefix", "underscore"), _always(_with(env_var_prefix="ACME"))),
    (("prefix", "lower"), _always(_with(env_var_prefix="acme_"))),
    (
        (r"supported_algorithms (\[\]|empty)", "speculative_decoding.*false"),
        _always(_with(speculative_decoding=False, supported_algorithms=[], algorithm_map={})),
    ),
    (
        ("duplicate|twice", "algorithm"),
        _always(_with(supported_algorithms=["ngram", "ngram"])),
    ),
    (
        (r"since '?v0\.8\.0'?|since.*(prefix|pre-?release|not a release)",),
        _always(_gated(GATE | {"since": "v0.8.0"}), _gated(GATE | {"since": "0.8.0rc1"})),
    ),
    (
        ("algorithm_map", "outside|without|not (in|among)"),
        _always(
            _with(algorithm_map={"ngram": "NGRAM", "mtp": "MTP"}), _with(algorithm_map={})
        ),
    ),
    ((r"\b(drop|remove|omit|lack|missing|without)",), _dropped),
    ((r"wrong type|another type|\bas (a |an )?(string|number|list|map|int)|not a ",), _retyped),
]  # fmt: skip
"""Forms of sentences, the special before the general: words that each must be there."""
