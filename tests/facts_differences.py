"""python -m tests.facts_differences [FOLDER]: the catalogues against other readings of releases.

A reading is <engine>-<version>.json with the flags that a released parser has. Shows where the
catalogue has other flags, negative forms, kinds, enforced choices or defaults, and why, where that
is meant.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from servec.api import shipped_catalog
from servec.catalog.released import ReleasedAt
from servec.ir.facts import Flag

FACTS = Path(__file__).parents[2] / "shared" / "facts" / "engines"
ENGINES = ("vllm", "sglang")
KINDS = {
    "store_true": "switch",
    "store_const": "switch",
    "flag": "switch",
    "bool_optional": "pair",
    "append": "append",
}
CLASS = re.compile(r"<\w+>\Z")
"""A default that no word can say, as the name of its class."""
ABSENT = "==SUPPRESS=="
NAMED = {
    ("vllm", "0.9.2", "--api-server-count", "default"): "the command itself adds it, with 1",
    (
        "vllm",
        "0.9.2",
        "--data-parallel-start-rank",
        "default",
    ): "the command itself adds it, with 0",
}
"""Differences that are meant, each with its reason."""


class Difference(NamedTuple):
    """What one release's reading and the catalogue say of a flag."""

    engine: str
    version: str
    flag: str
    what: str
    read: Any
    ours: Any


def reason_of(found: Difference) -> str:
    """Why a difference is meant; empty where it is not."""
    if found.what == "choices" and [word for word in found.read if word != "None"] == found.ours:
        return "the type reads the word None as none, which the parser then does not find"
    return NAMED.get(found[:4], "")


def differences(folder: Path) -> Iterator[Difference]:
    """Every difference, release after release."""
    for engine in ENGINES:
        released = shipped_catalog().released(engine)
        assert released is not None
        for path in sorted(folder.glob(f"{engine}-*.json")):
            version = path.stem.removeprefix(f"{engine}-")
            if version in released.releases:
                reading = json.loads(path.read_text(encoding="utf-8"))["flags"]
                yield from _release(engine, version, reading, released.of(version))


def _release(
    engine: str, version: str, reading: list[dict[str, Any]], here: ReleasedAt
) -> Iterator[Difference]:
    flags = [flag for flag in reading if flag["flags"][0].startswith("-")]
    read = {word for flag in flags for word in flag["flags"]}
    for word in sorted(read ^ set(here.flags)):
        yield Difference(engine, version, word, "flag", word in read, word in here.flags)
    for flag in flags:
        ours = here.flags.get(flag["flags"][0])
        if ours is not None:
            for what, one, other in _facts(flag, ours):
                if one != other:
                    yield Difference(engine, version, flag["flags"][0], what, one, other)


def _facts(flag: dict[str, Any], ours: Flag) -> Iterator[tuple[str, object, object]]:
    kind = flag["kind"].partition(":")[0]
    default = flag.get("default")
    yield "negative", sorted(flag.get("negative", [])), sorted(ours.negatives)
    yield "kind", KINDS.get(kind, kind), ours.kind
    yield "choices", _words(flag.get("choices", [])), _words(ours.choices)
    unsaid = default == ABSENT or (isinstance(default, str) and CLASS.match(default))
    yield "default", None if unsaid else default, ours.default


def _words(choices: Any) -> list[str]:
    return sorted({str(choice) for choice in choices})


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else FACTS
    found = list(differences(folder))
    for item in found:
        print(*item[:4], f"read {item.read!r}, catalogued {item.ours!r}", sep="  ")
        print(f"    {reason_of(item) or 'NOT MEANT'}")
    wrong = [item for item in found if not reason_of(item)]
    print(f"facts_differences: {len(found)} differences, {len(wrong)} of them not meant")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
