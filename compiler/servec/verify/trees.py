"""Trees of the printers -> located trees, whose places are those of the sources.

{name: Traced("7b", models.7b at specs/a.yaml:2:3)} -> Map(name: At("7b", specs/a.yaml:2:3))
"""

from __future__ import annotations

from servec.emit.yaml import Traced, Tree
from servec.source.located import At, Entry, List, Map, Node, Span


def located_tree(tree: Tree, outer: Span) -> Node:
    """A tree whose parts are at the places that they came from; `outer` is that of the others."""
    match tree:
        case Traced(value, trace):
            return At(value, trace.origin.span or outer)
        case dict():
            return Map(
                {
                    key: Entry(At(key, outer), located_tree(item, outer))
                    for key, item in tree.items()
                },
                outer,
            )
        case list():
            return List(tuple(located_tree(item, outer) for item in tree), outer)
        case _:
            return At(tree, outer)
