"""python bench/launch.py: what one answer about a shard costs, as a function and as a command.

Prints the least of several runs: milliseconds of a call, and CPU milliseconds of a whole process
beside those of bare Python; with a version, the profile's own words are held against its catalogue.
Limits: 1 ms a call, 120 ms of CPU a command.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import servec

SHARD: dict[str, Any] = {
    "profile": {
        "engine": "vllm",
        "model_path": "/models/m",
        "tp": 8,
        "pp": 2,
        "nodes": 2,
        "gpus_per_node": 8,
        "args": ["--max-model-len", "32768"],
    },
    "shard": {
        "rank": 1,
        "leader_addr": "10.0.0.1",
        "leader_port": 29501,
        "mgmt_interface": "eno1",
        "hcas": ["mlx5_0", "mlx5_1"],
    },
}
VERSION = "0.29.0"
CALLS, RUNS = 200, 15


def main() -> None:
    servec.launch(SHARD, engine_version=VERSION)  # the manifest is read once
    call = min(_call() for _ in range(CALLS))
    print(f"a call: {call:.2f} ms")
    launch = [sys.executable, "-m", "servec", "launch"]
    for what, command in (
        ("bare Python", [sys.executable, "-c", ""]),
        ("a command", launch),
        ("a command with a version", [*launch, "--engine-version", VERSION]),
    ):
        least = min(_process(command) for _ in range(RUNS))
        print(f"{what}: {least:.0f} ms of CPU")


def _call() -> float:
    started = time.perf_counter()
    servec.launch(SHARD, engine_version=VERSION)
    return (time.perf_counter() - started) * 1000


def _process(command: list[str]) -> float:
    environment = {name: text for name, text in os.environ.items() if "DONTWRITE" not in name}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, input=json.dumps(SHARD), text=True, stdout=subprocess.DEVNULL, check=True,
        env=environment,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds * 1000


if __name__ == "__main__":
    main()
