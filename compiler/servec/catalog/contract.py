"""The plugin contract's rules across fields: what one key of a manifest says of another.

supported_algorithms: [eagle3], algorithm_map: {}  -> SV0214: `eagle3` has no name of the engine
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from servec.catalog.capabilities import feature_word
from servec.catalog.versions import parse_version
from servec.diag import codes
from servec.diag.findings import Findings
from servec.ir.manifest import Feature, Manifest
from servec.source.located import At, Span

if TYPE_CHECKING:
    from servec.catalog.released import Released
    from servec.ir.serve import Serve


class _Breach(NamedTuple):
    span: Span
    problem: str
    advice: str


def check_contract(manifest: Manifest, findings: Findings) -> None:
    """Findings about a manifest whose keys contradict one another, each at its line."""
    for rule in (_algorithms, _gates, _companions, _features):
        for breach in rule(manifest):
            findings.add(codes.CONTRACT, breach.span, problem=breach.problem, advice=breach.advice)


def check_serve(serve: Serve, findings: Findings) -> None:
    """Findings about rules of `serve:` that need one another."""
    for breach in _speculative(serve):
        findings.add(codes.CONTRACT, breach.span, problem=breach.problem, advice=breach.advice)


def check_gates(manifest: Manifest, released: Released, findings: Findings) -> None:
    """Findings about algorithms that a release has and the manifest's gates do not, or the other
    way round; releases whose methods were not read tell nothing."""
    names = {item.key.value: item.value.value for item in manifest.algorithm_map}
    gates = {
        item.value: feature.since
        for feature in manifest.version_features
        for item in feature.adds.supported_algorithms
    }
    for algorithm in manifest.supported_algorithms:
        name, since = names.get(algorithm.value, ""), gates.get(algorithm.value)
        gate = f"the gate is {since.value}" if since else "there is no gate"
        for release, methods in _methods_until(name, released):
            is_open = since is None or Version(release) >= Version(since.value)
            if is_open != (name in methods):
                has = "has" if name in methods else "does not have"
                findings.add(
                    codes.WRONG_GATE,
                    (since or algorithm).span,
                    problem=f"{manifest.engine.value} {release} {has} `{name}`, and {gate}",
                    advice="give the version that its own package has the method from",
                )
                break


def _methods_until(name: str, released: Released) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The releases whose methods were read, up to the first that has one of them. What is lost
    later is no matter of a gate."""
    for release in released.releases:
        version = parse_version(release)
        methods = released.at(version).methods if version else ()
        if methods:
            yield release, methods
        if name in methods:
            return


def _algorithms(manifest: Manifest) -> Iterator[_Breach]:
    names = [item.value for item in manifest.supported_algorithms]
    said = manifest.speculative_decoding
    if said.value != bool(names):
        state = "no" if said.value else "some"
        advice = "say `true` exactly where there are algorithms"
        problem = f"`speculative_decoding: {str(said.value).lower()}`, but {state} algorithms"
        yield _Breach(said.span, problem, advice)
    for item, name in _repeated(manifest.supported_algorithms):
        yield _Breach(item.span, f"`{name}` is listed twice", "list it once")
    mapped = {item.key.value for item in manifest.algorithm_map}
    for item in manifest.supported_algorithms:
        if item.value not in mapped:
            problem = f"`{item.value}` has no name of the engine"
            yield _Breach(item.span, problem, "add it to `algorithm_map`")
    for entry in manifest.algorithm_map:
        if entry.key.value not in names:
            problem = f"`{entry.key.value}` is mapped and not among `supported_algorithms`"
            yield _Breach(entry.key.span, problem, "list it there, or take it out here")


def _gates(manifest: Manifest) -> Iterator[_Breach]:
    names = {item.value for item in manifest.supported_algorithms}
    floor = manifest.min_version
    gated: list[At[str]] = []
    for feature in manifest.version_features:
        if floor is not None and Version(floor.value) > Version(feature.since.value):
            problem = f"`since: {feature.since.value}` is below `min_version` {floor.value}"
            yield _Breach(feature.since.span, problem, "take the gate out, or lower the floor")
        for item in feature.adds.supported_algorithms:
            if item.value not in names:
                problem = f"`{item.value}` is gated and not among `supported_algorithms`"
                yield _Breach(item.span, problem, "list it there: that is the newest view")
        gated += feature.adds.supported_algorithms
    for item, name in _repeated(tuple(gated)):
        yield _Breach(item.span, f"`{name}` is gated twice", "keep the first version that has it")


def _companions(manifest: Manifest) -> Iterator[_Breach]:
    names = {item.key.value for item in manifest.capability_map}
    for item in manifest.capability_map:
        for group in item.value.requires_any_of:
            for companion in group:
                if companion.value not in names:
                    problem = f"the companion `{companion.value}` is no capability"
                    yield _Breach(companion.span, problem, "declare it in `capability_map`")


def _features(manifest: Manifest) -> Iterator[_Breach]:
    prefix = manifest.env_var_prefix.value
    for item in manifest.engine_features:
        feature: Feature = item.value
        if not feature.env_var.value.startswith(prefix):
            problem = f"`{feature.env_var.value}` does not begin with `{prefix}`"
            yield _Breach(feature.env_var.span, problem, "use the engine's prefix")
        values = [value.value for value in feature.values]
        if (feature.type.value == "enum") != bool(values):
            advice = "`values` belong to an enum, and an enum has some"
            yield _Breach(feature.type.span, "`type` and `values` do not fit", advice)
        default = feature.default
        if default is not None and values and default.value not in values:
            problem = f"the default `{default.value}` is none of the values"
            yield _Breach(default.span, problem, f"take one of: {', '.join(values)}")
        elif default is not None and (problem := feature_word(feature, default.value)[1]):
            problem = f"the default `{default.value}` {problem}"
            yield _Breach(default.span, problem, "give one that the feature could be set to")


def _speculative(serve: Serve) -> Iterator[_Breach]:
    """What each way of saying speculative decoding needs of the manifest."""
    rules = serve.speculative
    if rules is None:
        return
    strategy = rules.strategy
    if strategy.value in ("json_flag", "options_file") and rules.knob is None:
        yield _Breach(strategy.span, f"`{strategy.value}` has no `knob`", "name the parameter")
    if strategy.value == "options_file":
        files = [item.key.value for item in serve.files]
        if rules.inside is None:
            problem = "`options_file` has no `inside`"
            yield _Breach(strategy.span, problem, "name the key that holds it")
        if rules.knob is not None and rules.knob.value not in files:
            problem = f"`{rules.knob.value}` names no file"
            yield _Breach(rules.knob.span, problem, "add it to `serve: {files: …}`")


def _repeated(items: tuple[At[str], ...]) -> Iterator[tuple[At[str], str]]:
    seen: set[str] = set()
    for item in items:
        if item.value in seen:
            yield item, item.value
        seen.add(item.value)
