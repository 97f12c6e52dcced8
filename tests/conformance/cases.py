"""A release in the catalogue -> command lines: each flag rightly used, and in each wrong way.

--max-model-len, of type int  ->  --max-model-len 3            a legal value
                                  --max-model-len not-one      not of its type
                                  --max-model-len              no value
                                  --max-model-lenq 3           misspelt
                                  --max-model-l 3              cut short, ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from servec.catalog.released import ReleasedAt
from servec.ir.facts import Flag
from servec.source.located import Plain

LEGAL = {
    "int": "3",
    "float": "0.5",
    "str": "word",
    "": "word",
    "json": '{"a": 1}',
    "human_readable_int": "8k",
    "human_readable_int_or_auto": "auto",
    "union_dict_and_str": "word",
    "nullable_str": "word",
    "nullable_kvs": "image=3",
    "json_list_type": '["a"]',
    "from_cli": "{}",
    "from_json": "{}",
    "parse_reasoning_parser": "qwen3",
    "parse_cuda_graph_config_arg": "{}",
}
"""A value for each type; of `json:Keys` it is `{}`."""
LEGAL_OF = {
    "--config": None,
    "--lora-modules": "name=path",
    "--prompt-adapters": "name=path",
    "--enable-chunked-prefill": "true",
    "--multi-step-stream-outputs": "true",
    "--disable-logprobs-during-spec-decoding": "true",
}
"""Values of flags whose type does not tell; None for one that needs a file."""
NOT_ONE = "not-one"
SOME: tuple[Plain, ...] = (
    None, True, 3, -1, 1000000, 2.0, 1.5, "3", " 3.0", "1.5", "yes", "", NOT_ONE, [], [3], ["x"],
    [None], {}, {"not_one": 1}, {"a": "x"},
)  # fmt: skip
"""Values for keys of JSON values."""
SPECIAL: dict[str, tuple[tuple[str, ...], ...]] = {
    "vllm": (
        (),
        ("--help",),
        ("-O3",),
        ("-O", "2"),
        ("-O=1",),
        ("-O.level=3",),
        ("-O", "{}"),
        ("-tp", "2"),
        ("-tp=2",),
        ("-tp2",),
        ("--compilation-config.level", "3"),
        ("--compilation-config.cudagraph_capture_sizes+", "3"),
        ("--speculative-config.method", "ngram"),
        ("--speculative-config.num_speculative_tokens=3",),
        ("--port.number", "3"),
        ("--seed", "1_000"),
        ("--seed", " 3"),
        ("--seed", "3.0"),
        ("--gpu-memory-utilization", "1e-1"),
        ("--gpu-memory-utilization", "nan"),
        ("--max-model-len", "8K"),
        ("--max-model-len", "8.5k"),
        ("--max-model-len", "8kb"),
        ("--max-model-len", "1.5K"),
        ("stray",),
        ("--",),
        ("-x",),
        ("--seed", "--port"),
        ("--seed", "1", "2"),
        ("--enforce-eager", "--seed", "1"),
        ("-O.mode=3",),
        ("-O3.5",),
        ("--help=all",),
        ("--help=page",),
        ("--lora-modules", "a"),
        ("--lora-modules", "a=b", "c=d"),
        ("--lora-modules", '{"name": "a"}'),
        ("--lora-modules", '{"name": "a", "path": "b"}'),
        ("--lora-modules", '{"name": "a", "path": "b", "paht": "c"}'),
        ("--limit-mm-per-prompt", '{"image": 4}'),
        ("--limit-mm-per-prompt", "image=4,audio=2"),
        ("--limit-mm-per-prompt", "image=many"),
        ("--served-model-name", "a", "b", "--seed", "1"),
    ),
    "sglang": (
        (),
        ("--help",),
        ("--tp", "2"),
        ("--dp", "2"),
        ("--pp", "2"),
        ("--ep", "2"),
        ("--tp=2",),
        ("--tp_size", "2"),
        ("--context-length", "8k"),
        ("--context-length", "8K"),
        ("--random-seed", "1_000"),
        ("--random-seed", "3.0"),
        ("--mem-fraction-static", "1e-1"),
        ("--json-model-override-args.key", "3"),
        ("stray",),
        ("-x",),
        ("--random-seed", "--port"),
        ("--disable-radix-cache", "--random-seed", "1"),
        ("--no-disable-radix-cache",),
    ),
}
"""Forms that only some parsers take, and words that are easily taken for others."""


class Case(NamedTuple):
    """A command line's words behind the program and the model."""

    what: str
    flag: str
    words: tuple[str, ...]


def cases(engine: str, here: ReleasedAt) -> Iterator[Case]:
    """The command lines of a release: those that its engine alone takes, then by its flags."""
    for words in SPECIAL[engine]:
        yield Case("special", " ".join(words), words)
    options = [*here.flags, *here.negatives, "-h", "--help"]
    flags = {flag.name: flag for flag in here.flags.values()}
    for _, flag in sorted(flags.items()):
        if not flag.name.startswith("-"):
            continue
        yield from _switches(flag) if not flag.takes_value else _values(flag, here)
        yield from _spellings(flag, options)


def _switches(flag: Flag) -> Iterator[Case]:
    for word in (*flag.spellings, *flag.negatives):
        yield Case("switch", flag.name, (word,))
    yield Case("a value for a switch", flag.name, (f"{flag.name}=1",))
    yield Case("a word behind a switch", flag.name, (flag.name, NOT_ONE))
    if flag.kind == "switch":
        yield Case("a negative that is none", flag.name, (f"--no-{flag.name.lstrip('-')}",))


def _values(flag: Flag, here: ReleasedAt) -> Iterator[Case]:
    legal = _legal(flag)
    for value in legal:
        yield Case("a legal value", flag.name, (flag.name, value))
    for spelling in flag.spellings[1:]:
        yield Case("another spelling", flag.name, (spelling, *legal[:1]))
    if flag.name.startswith("--"):
        yield Case("a tied value", flag.name, tuple(f"{flag.name}={value}" for value in legal[:1]))
    yield Case("no value", flag.name, (flag.name,))
    yield Case("two values", flag.name, (flag.name, *(legal * 2)[:2]))
    yield Case("a negative number", flag.name, (flag.name, "-1"))
    yield Case("an empty value", flag.name, (flag.name, ""))
    kind = flag.type.rstrip("?").partition(":")[0]
    if flag.choices:
        yield Case("not a choice", flag.name, (flag.name, NOT_ONE))
    elif kind not in ("str", ""):
        yield Case("not of its type", flag.name, (flag.name, NOT_ONE))
        yield Case("a broken number", flag.name, (flag.name, "1.5.2"))
    if flag.type.endswith("?"):
        yield Case("None", flag.name, (flag.name, "None"))
    owner = flag.type.rstrip("?").partition(":")[2]
    if here.configs.get(owner):
        yield Case("a key that is none", flag.name, (flag.name, '{"not_one": 1}'))
    if owner:
        yield from _keys(flag, owner, (), here)


def _keys(flag: Flag, owner: str, outer: tuple[str, ...], here: ReleasedAt) -> Iterator[Case]:
    """Every key of a JSON value whose values are checked, with each of some values."""
    for name, form in here.fields.items():
        own, _, key = name.partition(".")
        if own != owner:
            continue
        path = (*outer, key)
        for inside in (item for item in form.type.split("|") if item.startswith("json:")):
            yield from _keys(flag, inside.removeprefix("json:"), path, here)
        dotted = ".".join((flag.name, *path))
        words = [word.swapcase() for word in form.choices if isinstance(word, str)]
        for value in (*form.choices, *words, *SOME):
            yield Case("a value in JSON", dotted, (flag.name, json.dumps(_nested(path, value))))
        for text in (*map(str, form.choices[:1]), "3", NOT_ONE, "true", "[1]", "8k"):
            yield Case("a value behind a dot", dotted, (dotted, text))
        yield Case("a list behind a dot", dotted, (f"{dotted}+", "3,4"))


def _nested(path: tuple[str, ...], value: Plain) -> Plain:
    for key in reversed(path):
        value = {key: value}
    return value


def _legal(flag: Flag) -> list[str]:
    if flag.choices:
        return list(dict.fromkeys(str(choice) for choice in (flag.choices[0], flag.choices[-1])))
    if flag.name in LEGAL_OF and flag.takes_value:
        value = LEGAL_OF[flag.name]
        return [] if value is None else [value]
    kind, _, keys = flag.type.rstrip("?").partition(":")
    if keys:
        return ["{}"]
    value = LEGAL.get(kind)
    if value is None:
        return [flag.default] if isinstance(flag.default, str) else []
    return [value]


def _spellings(flag: Flag, options: list[str]) -> Iterator[Case]:
    """The flag's name misspelt, with `_` and cut short, with a legal value."""
    values = tuple(_legal(flag)[:1]) if flag.takes_value else ()
    if not flag.name.startswith("--"):
        return
    yield Case("misspelt", flag.name, (flag.name + "q", *values))
    if "-" in flag.name[2:]:
        yield Case("underscores", flag.name, ("--" + flag.name[2:].replace("-", "_"), *values))
    beginnings = [flag.name[:end] for end in range(3, len(flag.name))]
    free = [word for word in beginnings if word not in options]
    if flag.takes_value and not values:
        return
    for what, wanted in (("cut short", True), ("ambiguous", False)):
        found = [word for word in free if _is_unique(word, options) is wanted]
        if found:
            yield Case(what, flag.name, (found[0] if wanted else found[-1], *values))


def _is_unique(word: str, options: list[str]) -> bool:
    return sum(option.startswith(word) for option in options) == 1
