"""The releases whose parsers are asked, and the goldens that are pinned to them."""

from __future__ import annotations

import json
from typing import NamedTuple

from tests.conftest import ROOT

RELEASES = {
    "vllm": (
        "0.6.6.post1", "0.8.5.post1", "0.10.2", "0.12.0", "0.20.2", "0.28.0", "0.29.0", "0.33.0",
    ),
    "sglang": ("0.4.6.post5", "0.5.2", "0.5.15", "0.5.15.post1", "0.5.23"),
}  # fmt: skip
"""Old, middle and new ones, and every release that a golden is pinned to."""
LEAST = {"vllm": 6, "sglang": 4}
PROGRAMS = {
    "vllm": ("vllm", "serve", "org/model"),
    "sglang": ("python3", "-m", "sglang.launch_server", "--model-path", "org/model"),
}
"""How a generated command line begins: the program and the model."""


NODE = {"rank": "1", "leader": "10.0.0.1:29500", "leader_address": "10.0.0.1"}
"""The facts of a node, where a command line depends on them."""


class Golden(NamedTuple):
    """A command line that this repository holds."""

    name: str
    engine: str
    version: str
    argv: tuple[str, ...]


def goldens() -> list[Golden]:
    """Every command line of golden/, with the version that it is pinned to."""
    found = []
    for path in sorted((ROOT / "golden").glob("*/plan.json")):
        engine = json.loads(path.read_text(encoding="utf-8"))["engine"]
        name = path.parent.name
        for argv in (engine["argv"], engine.get("worker_argv", ())):
            words = tuple(_filled(word) for word in argv)
            if words and words[0] == engine["argv"][0]:
                found.append(Golden(name, engine["name"], engine["version"], words))
    return found


def _filled(word: str) -> str:
    """A word with what a node would put into it."""
    for slot, text in NODE.items():
        word = word.replace(f"{{{slot}}}", text)
    return word
