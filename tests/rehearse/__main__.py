"""python -m tests.rehearse [NAME…]: start what servec compiles, and look at it.

Every step is told: what was started, asked and seen. What cannot be had here is skipped aloud; exit
1 where something was not as it has to be.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.rehearse import llama, sims, vllm_cpu
from tests.rehearse.stage import Failure, Skip

REHEARSALS: dict[str, Callable[[Path], None]] = {
    "sim": sims.alone,
    "nodes": sims.two_nodes,
    "pair": sims.pair,
    "llama": llama.server,
    "vllm": vllm_cpu.on_the_cpu,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in REHEARSALS]
    if unknown:
        print(f"no rehearsal {unknown[0]}; there are {', '.join(REHEARSALS)}", file=sys.stderr)
        return 2
    ends = [hold(name) for name in names or REHEARSALS]
    passed, skipped = ends.count("passed"), ends.count("skipped")
    print(f"rehearse: {passed} passed, {skipped} skipped, {ends.count('failed')} failed")
    return 1 if "failed" in ends else 0


def hold(name: str) -> str:
    """One rehearsal; how it ended."""
    rehearse = REHEARSALS[name]
    print(f"{name}: {(rehearse.__doc__ or '').splitlines()[0]}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="servec-") as folder:
        try:
            rehearse(Path(folder))
        except Skip as reason:
            print(f"{name}: SKIPPED, {reason}", flush=True)
            return "skipped"
        except Failure as problem:
            print(f"{name}: FAILED, {problem}", flush=True)
            return "failed"
    print(f"{name}: passed in {time.monotonic() - begun:.0f} s", flush=True)
    return "passed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
