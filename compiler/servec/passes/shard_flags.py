"""What a shard's command and variables are at a version of the engine that is known: the verdicts
that a plan of the same words gets.

args: [--max-model-leng, "8"] at vllm 0.29.0 -> SV0615: has no flag `--max-model-leng`
env: {VLLM_NO_SUCH: "1"}                     -> SV0620 at the name
"""

from __future__ import annotations

from servec.catalog.calls import Called
from servec.catalog.released import Released
from servec.catalog.verdicts import judge, unknown_variable
from servec.diag.findings import Findings, Severity
from servec.passes.lower_shard import server_words
from servec.passes.shard_asked import Asked


def judge_flags(asked: Asked, released: Released, findings: Findings) -> None:
    """Findings about what the version does not accept; none where the version is not known."""
    engine = asked.engine
    if engine is None or engine.call is None or engine.version is None:
        return
    name = engine.manifest.engine.value
    words = list(server_words(asked, engine))
    own = len(words) - len(asked.profile.args)
    for verdict in judge(
        words,
        engine.serve,
        name,
        released,
        engine.version,
        Called(0, 0 if engine.call.model else 1),
        at_start=Severity.ERROR,
        beside={f"env.{item.key.value}": item.value.value for item in asked.profile.env},
    ):
        passed = asked.profile.args[verdict.place - own] if verdict.place >= own else None
        findings.put(verdict.at(passed.span if passed else asked.profile.span))
    prefix = engine.manifest.env_var_prefix.value
    for item in asked.profile.env:
        unknown = unknown_variable(
            item.key.value, prefix, name, engine.serve, released, engine.version
        )
        if unknown is not None:
            findings.put(unknown.at(item.key.span))
