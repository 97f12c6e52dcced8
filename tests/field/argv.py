"""Command lines compared as shard_launch.json says: the program and a multiset of flags."""

from __future__ import annotations

import json
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
