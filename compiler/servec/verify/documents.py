"""A stream of YAML documents -> the Kubernetes objects in it, each value with its place.

a.yaml: a Deployment, `---`, a List of two Services -> three objects
"""

from __future__ import annotations

import re
from itertools import pairwise

from servec.diag.findings import Findings
from servec.source.located import Map, Node
from servec.source.yaml_reader import read_yaml
from servec.verify.walk import items, value

NEXT = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
EMPTY = re.compile(r"(?:---)?(?:\s|#.*)*\Z")


def objects_in(path: str, text: str, findings: Findings) -> list[Map]:
    """The objects of a file: mappings with `apiVersion` and `kind`, those of a `List` by
    themselves. A document that cannot be read is a finding, and the others still count."""
    breaks = [0, *(found.start() for found in NEXT.finditer(text) if found.start()), len(text)]
    found: list[Map] = []
    for begin, end in pairwise(breaks):
        document = text[begin:end]
        if not EMPTY.match(document):
            before = "\n" * text.count("\n", 0, begin)  # so that places are those of the file
            found += _objects(read_yaml(path, before + document, findings))
    return found


def _objects(node: Node | None) -> list[Map]:
    if not isinstance(node, Map) or not value(node, "apiVersion") or not value(node, "kind"):
        return []
    if value(node, "kind") == "List":
        return [inner for item in items(node, "items") for inner in _objects(item)]
    return [node]
