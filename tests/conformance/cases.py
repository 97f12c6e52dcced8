"""A release in the catalogue -> command lines: each flag rightly used, and in each wrong way.

    --max-model-len, of type int  ->  --max-model-len 3            a legal value
                                      --max-model-len not-one      not of its type
                                      --max-model-len              no value
                                      --max-model-lenq 3           misspelt
                                      --max-model-l 3              cut short, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from servec.catalog.released import ReleasedAt
from servec.ir.facts import Flag

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
NOT_ONE = "not-one"


class Case(NamedTuple):
    """A command line's words behind the program and the model."""

    what: str
    flag: str
    words: tuple[str, ...]


def cases(here: ReleasedAt) -> Iterator[Case]:
    """The command lines of a release, in the order of its flags."""
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
    if here.configs.get(flag.type.rstrip("?").partition(":")[2]):
        yield Case("a key that is none", flag.name, (flag.name, '{"not_one": 1}'))


def _legal(flag: Flag) -> list[str]:
    if flag.choices:
        return list(dict.fromkeys(str(choice) for choice in (flag.choices[0], flag.choices[-1])))
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
    for what, wanted in (("cut short", True), ("ambiguous", False)):
        found = [word for word in free if _is_unique(word, options) is wanted]
        if found:
            yield Case(what, flag.name, (found[0] if wanted else found[-1], *values))


def _is_unique(word: str, options: list[str]) -> bool:
    return sum(option.startswith(word) for option in options) == 1
