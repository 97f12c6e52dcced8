"""Command lines compared as shard_launch.json says: the program and a multiset of flags."""

from __future__ import annotations

import json
import re
from collections import Counter

ALIASES = {
    "vllm": {
        "-tp": "--tensor-parallel-size",
        "-pp": "--pipeline-parallel-size",
        "-n": "--nnodes",
        "-r": "--node-rank",
        "-q": "--quantization",
        "-dp": "--data-parallel-size",
        "--model": "<positional>",
    },
    "sglang": {
        "--tensor-parallel-size": "--tp-size",
        "--tp": "--tp-size",
        "--pipeline-parallel-size": "--pp-size",
        "--nccl-init-addr": "--dist-init-addr",
        "--model": "--model-path",
    },
}
DEFAULTS = {
    "vllm": {("--tensor-parallel-size", "1"), ("--pipeline-parallel-size", "1")},
    "sglang": {("--tp-size", "1"), ("--pp-size", "1")},
}
ALWAYS = ("--host", "--served-model-name", "--enable-metrics")
"""What servec always adds."""

Flag = tuple[str, ...]


def flags(engine: str, argv: list[str]) -> tuple[list[str], list[Flag]]:
    """The program's words and the flags in order; the model as `<positional>` where it is bare."""
    aliases = ALIASES.get(engine, {})
    program: list[str] = []
    found: list[list[str]] = []
    for word in argv:
        if word.startswith("-") and not word.lstrip("-").replace(".", "").isdigit():
            name, equals, value = word.partition("=")
            found.append([aliases.get(name, name), *([value] if equals else [])])
        elif found:
            found[-1].append(word)
        else:
            program.append(word)
    rows = [tuple(flag) for flag in found]
    if engine == "vllm" and len(program) > 2:
        rows.append(("<positional>", *program[2:]))
        program = program[:2]
    return program, [row for row in rows if row not in DEFAULTS.get(engine, set())]


def compare(engine: str, expected: list[str], found: list[str]) -> list[str]:
    """What differs; flags that servec always adds count only where the row has them."""
    program, wanted = flags(engine, expected)
    own_program, own = flags(engine, found)
    names = {flag[0] for flag in wanted}
    own = [flag for flag in own if flag[0] not in ALWAYS or flag[0] in names]
    missing = Counter(wanted) - Counter(own)
    extra = Counter(own) - Counter(wanted)
    problems = []
    if program != own_program:
        problems.append(f"program: expected {program}, found {own_program}")
    for flag in missing:
        problems.append(f"argv lacks {json.dumps(flag)}")
    for flag in extra:
        problems.append(f"argv has {json.dumps(flag)} too many")
    return problems


SPELLINGS = {
    "sglang": {
        "--tp": "--tp-size",
        "--tensor-parallel-size": "--tp-size",
        "--pp": "--pp-size",
        "--pipeline-parallel-size": "--pp-size",
        "--dp": "--dp-size",
        "--data-parallel-size": "--dp-size",
        "--ep": "--ep-size",
        "--expert-parallel-size": "--ep-size",
        "--speculative-algo": "--speculative-algorithm",
        "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
        "--cuda-graph-bs": "--cuda-graph-bs-decode",
    },
    "vllm": {**ALIASES["vllm"], "--disable-log-requests": "--no-enable-log-requests"},
    "tensorrt-llm": {
        "--tensor-parallel-size": "--tp-size",
        "--pipeline-parallel-size": "--pp-size",
        "--expert-parallel-size": "--ep-size",
    },
}
"""Names of one flag, as the engines' parsers have them; what was renamed by its newest name."""
OF_ONE = re.compile(r"--(tp|pp|dp|ep|(tensor|pipeline|data|expert)-parallel)-size\Z")


def counted(engine: str, words: list[str]) -> Counter[Flag]:
    """The flags behind a program and a model, each as often as it is there: names with dashes,
    JSON by what it says, and the keys of one flag together as an object."""
    _, rows = flags("", words)
    spelling = SPELLINGS.get(engine, {})
    found: Counter[Flag] = Counter()
    objects: dict[str, dict[str, str]] = {}
    for name, *values in rows:
        head, dot, key = name.partition(".")
        name = head.replace("_", "-")
        name = spelling.get(name, name)
        if dot:
            objects.setdefault(name, {})[key] = values[0] if values else "true"
        elif not (OF_ONE.match(name) and values == ["1"]):
            found[(name, *map(_said, values))] += 1
    found.update((name, json.dumps(keys, sort_keys=True)) for name, keys in objects.items())
    return found


def _said(word: str) -> str:
    if not word.startswith(("{", "[")):
        return word
    try:
        return json.dumps(json.loads(word), sort_keys=True)
    except ValueError:
        return word
