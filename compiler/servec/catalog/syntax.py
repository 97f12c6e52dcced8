"""What a parser takes beside exact flags at a version: rules of the manifest -> `Syntax`.

dotted: true, dotted_since: "0.9.0", levels: [{word: -O, flag: --optimization-level}]
  -> Syntax(dotted=True, levels=(("-O", "--optimization-level", ""),))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from servec.catalog.command_line import Syntax
from servec.catalog.versions import NEWEST, holds, in_range, parse_version
from servec.source.located import At

if TYPE_CHECKING:
    from servec.catalog.released import Released
    from servec.ir.serve import Serve


def syntax_of(
    serve: Serve, released: Released, version: Version | None, positionals: int
) -> Syntax:
    """The rules that hold at a version; `positionals` is how many bare words the call takes."""
    rules = serve.syntax
    if rules is None:
        return Syntax(abbreviations=released.abbreviations, positionals=positionals)
    since = parse_version(rules.dotted_since.value) if rules.dotted_since else None
    is_dotted = rules.dotted is not None and rules.dotted.value
    levels = {rule.word.value: rule for rule in reversed(rules.levels) if holds(rule, version)}
    return Syntax(
        abbreviations=released.abbreviations,
        underscores=rules.underscores is not None and rules.underscores.value,
        dotted=is_dotted and (since is None or version is None or version >= since),
        positionals=positionals,
        pairs=_holds(rules.pairs, version),
        topics=_holds(rules.topics, version),
        items={
            item.key.value: (
                tuple(word.value for word in item.value.required),
                tuple(word.value for word in item.value.optional),
            )
            for item in rules.items
        },
        suffixes=_holds(rules.suffixes, version),
        levels=tuple(
            (word, rule.flag.value, rule.key.value if rule.key else "")
            for word, rule in levels.items()
        ),
    )


def _holds(versions: At[str] | None, version: Version | None) -> bool:
    return versions is not None and in_range(version or NEWEST, versions.value)
