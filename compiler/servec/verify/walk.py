"""Ways into a located tree, which may lack any part."""

from __future__ import annotations

from collections.abc import Iterator

from servec.source.located import At, Entry, List, Map, Node


def at(node: Node | None, *keys: str) -> Node | None:
    """What stands below a mapping, or None where any part is not there."""
    for key in keys:
        node = node.get(key) if isinstance(node, Map) else None
    return node


def items(node: Node | None, *keys: str) -> tuple[Node, ...]:
    found = at(node, *keys)
    return found.items if isinstance(found, List) else ()


def entries(node: Node | None, *keys: str) -> Iterator[Entry]:
    found = at(node, *keys)
    yield from found.entries.values() if isinstance(found, Map) else ()


def text(node: Node | None, *keys: str) -> At[str] | None:
    found = at(node, *keys)
    if not isinstance(found, At) or not isinstance(found.value, str):
        return None
    return At(found.value, found.span)


def whole(node: Node | None, *keys: str) -> At[int] | None:
    found = at(node, *keys)
    if not isinstance(found, At) or isinstance(found.value, bool):
        return None
    return At(found.value, found.span) if isinstance(found.value, int) else None


def value(node: Node | None, *keys: str) -> str:
    """A text that is there, or none."""
    found = text(node, *keys)
    return found.value if found else ""


def labels(node: Node | None, *keys: str) -> dict[str, str]:
    return {
        entry.key.value: str(entry.value.value)
        for entry in entries(node, *keys)
        if isinstance(entry.value, At)
    }
