"""Runs a compiled wrapper in bash, with an engine that tells what it got."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import servec

GPU = "Available devices:\n  CUDA0: NVIDIA H100 80GB HBM3 (81089 MiB, 80500 MiB free)"
TELLER = r"""#!/bin/bash
if [[ $* == --list-devices ]]; then
  printf '%s\n' "$DEVICES"
  exit
fi
printf '%s\0' "$#" "$@"
env -0
"""


class Started(NamedTuple):
    """What a wrapper came to: the engine's argv and environment where it was started."""

    code: int
    argv: list[str]
    env: dict[str, str]
    stdout: str
    stderr: str


def write_wrapper(result: servec.Result, folder: Path, name: str = "m") -> Path:
    """The files of a model's bash target, and in the same folder each program that it calls."""
    assert result.ok, result.findings
    for path, content in result.artifacts.items():
        if path.startswith(f"{name}/bash/"):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    launch = next(item for item in result.launches if item.plan.name == name)
    program = folder / launch.argv[0]
    program.write_text(TELLER)
    program.chmod(0o755)
    return folder / name / "bash" / "serve.sh"


def start(wrapper: Path, *words: str, **variables: str) -> Started:
    """Run a wrapper with these variables and no others but PATH."""
    programs = wrapper.parents[2]
    done = subprocess.run(
        ["bash", str(wrapper), *words],
        env={"PATH": f"{programs}:{os.environ['PATH']}", "DEVICES": GPU, **variables},
        capture_output=True,
        check=False,
    )
    out = done.stdout.decode()
    number, *told = out.split("\0")
    count = int(number) if told else 0
    env = dict(item.split("=", 1) for item in told[count:] if "=" in item)
    return Started(done.returncode, told[:count], env, out, done.stderr.decode())
