"""Shapes of words that several kinds of files share: names, versions, flags, precisions."""

from __future__ import annotations

import re
from typing import Generic, NamedTuple, TypeVar

from servec.ir.shape import Choice, Text
from servec.source.located import At

T = TypeVar("T")


class Item(NamedTuple, Generic[T]):
    """One `key: value` where the keys are data."""

    key: At[str]
    value: T


NAME_CHARACTERS = 48
NAME = Text(
    rf"(?!.*--)[a-z0-9]([-a-z0-9]{{0,{NAME_CHARACTERS - 2}}}[a-z0-9])?\Z",
    f"a name of at most {NAME_CHARACTERS} lower-case letters, digits and single `-`",
)
TEXT = Text(r"[^\x00]+\Z", "text that is not empty")
VERSION = Text(r"\S+\Z", 'a version in quotes, as "0.29.0"')
RANGE = Text(what='a range of versions, as ">=0.9,<0.12"')
FLAG = Text(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "a flag")
ENGINE = Text(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", "a name of letters, digits, `.`, `_` and `-`")
RULE_RANGE = Text(
    r"(?:\s*(?:[<>]=?|==|!=|~=)\s*[0-9][^\s,]*\s*(?:,(?!\Z)|\Z))+\Z",
    'a range of versions, as ">=0.9,<0.12"',
)
RECIPE_TYPE = Choice(
    ("instruct", "base"), {"chat": "instruct", "gen": "base"}, ("specs", "a recipe")
)
PRECISIONS = ("bf16", "fp16", "fp32", "fp8", "int8", "int4", "fp4", "mxfp4")
PRECISION = Choice(
    PRECISIONS,
    aliases={"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32"}
    | {"float8": "fp8", "fp8_e4m3": "fp8", "awq": "int4", "gptq": "int4", "nvfp4": "fp4"},
)
NEGATIVE_NUMBER = re.compile(r"-\d+\Z|-\d*\.\d+\Z")
"""What argparse takes for a number and not for a flag."""
API_KEY_PLACES = (
    "give it by `systemd: {api_key: FILE}` and `kubernetes: {api_key: {secret, key}}` of"
    " servec.yaml, or as SERVEC_API_KEY in the server's environment file"
)
"""Where the key belongs that clients must have."""
