"""What other releases have: when something was there, and what took its place.

--disable-log-requests with 0.20.0 -> "; it is there until 0.16.0 and since 0.33.0"
VLLM_ATTENTION_BACKEND with 0.29.0 -> "use `--attention-backend`"
--task embed with 0.29.0           -> "use `--runner pooling --convert embed`"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from servec.catalog.given import knob_of
from servec.catalog.versions import holds
from servec.source.located import Plain, plain

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


def under_new_names(
    word: str, value: str, serve: Serve, here: ReleasedAt, version: Version | None
) -> str:
    """What to write in the place of a flag that this version knows under other names: with this
    value where its names are told, `true` for a switch; nothing where it has none."""
    asked = {knob_of(word): value}
    if word.startswith("--no-"):
        asked[knob_of(word).removeprefix("no_")] = "false"
    rules = [rule for rule in serve.renamed if rule.knob.value in asked and holds(rule, version)]
    for rule in rules:
        wanted = asked[rule.knob.value].lower()
        if rule.value is None or str(plain(rule.value)).lower() == wanted:
            became = {knob: plain(item.value) for knob, item in rule.become.entries.items()}
            words = (_words(knob, value if to is None else to, here) for knob, to in became.items())
            return f"use `{' '.join(words)}`"
    names = dict.fromkeys(knob for rule in rules for knob in rule.become.entries)
    return "use " + " and ".join(f"`{_words(name, True, here)}`" for name in names) if names else ""


def _words(knob: str, value: Plain, here: ReleasedAt) -> str:
    """A parameter as its words at a release; nothing where the release has no such flag."""
    flag = here.flags.get(f"--{knob.replace('_', '-')}")
    if flag is None:
        return f"--{knob.replace('_', '-')} {value}"
    if value is False and flag.negatives:
        return flag.negatives[0]
    return flag.name if value is True else f"{flag.name} {value}"
