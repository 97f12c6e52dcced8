"""What the frame of a wrapper needs to look around before it starts, quoted for bash.

Settable(max_model_len, --max-model-len), … -> tables of names; Gate(eagle3, 0.9.1) -> words
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from servec.emit.shell import quote
from servec.ir.launch import Gate, Launch, Settable

WIDTH = 96


def start_words(launch: Launch) -> dict[str, object]:
    """The frame's variables about the start."""
    subject, start = launch.plan.subject, launch.start
    manifest, serve = subject.engine.manifest, subject.engine.serve
    known = subject.version.version
    version = "" if known is None or known.epoch else str(known)
    if version and "." not in version:
        version += ".0"
    joiner = serve.flag_words.value if serve.flag_words else "-"
    image = subject.image.value if subject.image else ""
    return {
        "prefix": manifest.env_var_prefix.value,
        "prefixes": " ".join(f'"${{!{prefix}@}}"' for prefix in _prefixes(launch)),
        "overrides": start.overrides,
        "engine": subject.engine.name,
        "release": f"{subject.engine.name} {start.release}",
        "version": quote(version),
        "compiled": version or "unknown",
        "compiled_for": quote(f"{subject.engine.name} {version or 'of unknown version'}"),
        "image": quote(image) if image else "",
        "joiner": joiner,
        "settable": bool(start.settable),
        **_key_words(launch),
        **_tables(start.settable, joiner),
        "others": [(quote(place), other) for place, other in start.others],
        "gates": [_gate(gate) for gate in start.gates],
        "known": [(quote(name), quote(version)) for name, version in start.images],
        "marker": quote(manifest.tag_marker.value) if manifest.tag_marker else "",
    }


def _key_words(launch: Launch) -> dict[str, str]:
    """How the API key is handed over: by a variable, or in a file that a flag names."""
    channel = launch.api_key
    file = channel.file if channel else None
    return {
        "key_variable": channel.variable.value if channel and channel.variable else "",
        "key_flag": quote(file.flag.value) if file else "",
        "key_file": quote(file.name.value) if file else "",
        "key_name": quote(file.key.value) if file else "",
    }


def _prefixes(launch: Launch) -> list[str]:
    """What the variables begin with that the engine reads: its own prefix, and others."""
    engine = launch.plan.subject.engine
    own = engine.manifest.env_var_prefix.value
    return [own, *(item.value for item in engine.serve.reads if item.value != own)]


def _tables(settable: Iterable[Settable], joiner: str) -> dict[str, str]:
    """The lists of names; a spelling is told only where it is not the name's own."""
    found: dict[str, list[str]] = {
        "values": [], "switches": [], "pairs": [], "opposites": [], "spelled": []
    }  # fmt: skip
    for item in sorted(settable):
        if not item.is_switch:
            found["values"].append(item.name)
        elif not item.negative:
            found["switches"].append(item.name)
        elif item.negative == f"--no-{item.flag[2:]}":
            found["pairs"].append(item.name)
        else:
            found["opposites"].append(f"{item.name}={item.negative}")
        if item.flag != "--" + item.name.replace("_", joiner):
            found["spelled"].append(f"{item.name}={item.flag}")
    return {name: _filled(words) for name, words in found.items()}


def _filled(words: list[str]) -> str:
    lines = wrap(" ".join(words), WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"    {line}" for line in lines)


def _gate(gate: Gate) -> dict[str, str]:
    return {
        "since": quote(gate.since),
        "before": quote(gate.before),
        "what": quote(gate.what),
        "advice": quote(f"; {gate.advice}" if gate.advice else ""),
    }
