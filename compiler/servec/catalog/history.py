"""What other releases have: when something was there, and what took its place.

--disable-log-requests with 0.20.0 -> "; it is there until 0.16.0 and since 0.33.0"
VLLM_ATTENTION_BACKEND with 0.29.0 -> "use `--attention-backend`"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

    from servec.catalog.released import Released, ReleasedAt
    from servec.ir.serve import Serve


def history_of(released: Released, has: Callable[[ReleasedAt], bool]) -> str:
    """When something was there, as the end of a message; empty where it never was."""
    runs = released.spans_of(has)
    if len(runs) > 1:
        return "; it is there " + " and ".join(map(_run, runs))
    since, until = runs[0] if runs else ("", "")
    if since and until:
        return f"; it was there from {since} to {until}"
    if since:
        return f"; it is there since {since}"
    return f"; it was there until {until}" if until else ""


def _run(run: tuple[str, str]) -> str:
    """One of several runs of releases: `until 0.16.0`, `in 0.9.0`, `since 0.33.0`."""
    first, last = run
    if first and last:
        return f"in {first}" if first == last else f"from {first} to {last}"
    return f"since {first}" if first else f"until {last}"


def instead(name: str, serve: Serve, released: Released, version: Version | None) -> str:
    """What to do with a variable or flag of other versions: the flag that took its place, where
    this version has it; else nothing."""
    flag = {item.key.value: item.value.value for item in serve.successors}.get(name)
    return f"use `{flag}`" if flag in released.at(version).flags else ""
