"""What a command line gives: words as its parser reads them -> parameters and their values.

--no-enable-lora --speculative-config {"method":"mtp"}
  -> enable_lora: False, speculative_config: '{"method":…}', speculative_config.method: mtp
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from servec.catalog.command_line import HOLE, Reading, Syntax, Use, expanded
from servec.source.located import List, Node, Plain, plain

PLAIN = Syntax()

UNITS = {
    **{letter: 1000**at for at, letter in enumerate("kmgt", 1)},
    **{letter: 1024**at for at, letter in enumerate("KMGT", 1)},
}


def given(reading: Reading) -> Iterator[tuple[str, Plain]]:
    """Parameters with their values; keys of JSON values too, behind a dot."""
    for use in reading.uses:
        knob = knob_of(use.flag.name)
        if not use.flag.takes_value:
            yield knob, not use.negated
        elif use.key:
            yield f"{knob}.{use.key}", use.values[0]
            yield knob, ""
        else:
            yield knob, use.values[0] if len(use.values) == 1 else list(use.values)
            for key, value in parsed(use.values[0]).items() if use.values else ():
                if value is not None:  # as good as not said
                    yield f"{knob}.{key}", value


def knob_of(flag: str) -> str:
    """The parameter that a flag is."""
    return flag.lstrip("-").replace("-", "_")


def keyed(use: Use, syntax: Syntax) -> dict[str, Plain]:
    """The mapping that `--flag.one.key value` is; `--flag.one.key+ a,b` is a list of texts."""
    *outer, last = use.key.split(".")
    text = use.values[0] if use.values else ""
    value: Plain = list(text.split(",")) if last.endswith("+") else _read(text, syntax)
    for key in (last.removesuffix("+"), *reversed(outer)):
        value = {key: value}
    return value if isinstance(value, dict) else {}


def _read(text: str, syntax: Syntax) -> Plain:
    """A JSON value, or what is none as text."""
    try:
        found: Plain = json.loads(expanded(text) if syntax.suffixes else text)
    except (ValueError, RecursionError):
        return text
    return found


def parsed(value: str, syntax: Syntax = PLAIN) -> dict[str, Any]:
    """The mapping that a JSON value holds; empty where it holds none."""
    if not value.lstrip().startswith("{"):
        return {}
    try:
        found = json.loads(expanded(value) if syntax.suffixes else value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def meets(value: Plain, wanted: Node, *, given: bool) -> bool:
    """Whether a parameter is as a rule wants it: a value, one of several, `"*"` for any, `">1"` and
    `"<1"` for a number above or below one, null for none."""
    if isinstance(value, str) and HOLE in value:
        return False
    if isinstance(wanted, List):
        return any(meets(value, item, given=given) for item in wanted.items)
    said = plain(wanted)
    if said is None:
        return not given
    if said == "*":
        return given
    if isinstance(said, str) and said[:1] in ("<", ">"):
        found, bound = number(value), number(said[1:])
        if found is None or bound is None:
            return False
        return found > bound if said[0] == ">" else found < bound
    return given and (value == said or str(value) == str(said))


def number(value: Plain) -> float | None:
    """A value as a number, or None where it is none. Engines read `8k` as 8000 and `8K` as 8192:
    vllm/engine/arg_utils.py, human_readable_int, read 2026-12-01."""
    if not isinstance(value, str | int | float):
        return None
    text, unit = str(value), 1
    if text[-1:] in UNITS:
        text, unit = text[:-1], UNITS[text[-1]]
    try:
        return float(text) * unit
    except ValueError:
        return None
