"""JSON arguments: what is read of the classes, and what is made of it, against pydantic itself."""

from __future__ import annotations

import json
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest
import servec
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, field_validator
from pydantic.dataclasses import dataclass
from servec.api import shipped_catalog
from servec.catalog.json_values import refused
from servec.catalog.versions import parse_version
from servec.diag.findings import Findings
from servec.extract.json_fields import Classes
from servec.extract.merge import merge
from servec.lint.check import Linter

from tests.test_merge import observed, read


class Level(IntEnum):
    OFF = 0
    ON = 3


class Kernel(Enum):
    FLASH = "pkg.Flash"
    SPARSE = "pkg.Sparse"


@dataclass(config=ConfigDict(extra="forbid"))
class Inner:
    depth: int = 0
    mode: Literal["fast", "slow"] = "fast"


@dataclass
class Open:
    size: int = 0


@dataclass(config=ConfigDict(extra="forbid"))
class Whole:
    whole: int = 0
    bounded: int = Field(default=1, ge=1, lt=9)
    part: float = 0.0
    above: float | None = Field(default=None, gt=0.5)
    truth: bool = False
    text: str = ""
    word: Literal["one", "two"] | None = None
    both: Literal["one"] | Literal["two"] = "one"
    number: Literal[2, 4] = 2
    wide: Literal["one"] | str = "one"
    sizes: list[int] | None = None
    mixed: list[int | str] | None = None
    words: list[Literal["x", "y"]] = Field(default_factory=list)
    table: dict[str, float] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)
    inner: Inner = Field(default_factory=Inner)
    inners: list[Inner] | None = None
    short: Inner = Field(default_factory=Inner)
    loose: Open | None = None
    by_value: Level = Level.OFF
    by_name: Kernel | None = None
    level: Level | None = None
    skipped: bool = True
    anything: Any = None
    made: int = Field(default=0, init=False)

    @field_validator("by_name", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return Kernel[value.upper()] if isinstance(value, str) else value

    @field_validator("short", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"depth": 3} if value == "deep" else value

    @field_validator("skipped", mode="wrap")
    @classmethod
    def _skip_none(cls, value: Any, handler: Any) -> Any:
        return value if value is None else handler(value)


class StoodIn(Exception):
    """Stands for what a stand-in raises."""


FOUND = Classes(StoodIn)
FOUND.add(Whole)
RELEASED = read(merge([observed("1.0.0", **FOUND.told())])).of("1.0.0")
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 4, 8, 9, -1, 0.5, 1.0, 1.5, 2.5, 10**30, "", "0", "3", " 3 ",
    "1_0", "3.0", "3.5", "1e3", "nan", "x", "yes", "True", "one", "ONE", "two", "FLASH", "flash",
    "pkg.Flash", "OFF", [], [1], ["1"], ["x"], ["y", "z"], [None], [[1]], {}, {"a": 1}, {"a": "x"},
    {"depth": 1}, {"depth": "x"}, {"depht": 1}, {"mode": "fats"}, {"size": 1}, {"size": []},
    {"other": 1}, [{"depth": 1}], [{"depth": {}}],
)  # fmt: skip


def is_taken(key: str, value: Any) -> bool:
    try:
        TypeAdapter(Whole).validate_json(json.dumps({key: value}))
    except (ValidationError, KeyError):
        return False
    return True


def refusals(key: str, value: Any) -> list[str]:
    """What is refused of a key's value; of an open class an unknown key is no error."""
    found = refused({key: value}, "Whole", RELEASED)
    return [item.path for item in found if item.wanted or item.owner in RELEASED.closed]


@pytest.mark.parametrize("key", [*Whole.__annotations__, "worng"])
def test_a_value_is_refused_where_pydantic_refuses_it(key: str) -> None:
    """Of every kind of field; what is unsure is taken: a number that equals a word's, and a text
    that a validator may make a class of."""
    unsure = [("number", 2.0), *(("short", value) for value in VALUES if isinstance(value, str))]
    wrong = [
        (value, is_taken(key, value))
        for value in VALUES
        if is_taken(key, value) is bool(refusals(key, value)) and (key, value) not in unsure
    ]
    assert wrong == []


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(SCALARS, lambda part: st.lists(part) | st.dictionaries(st.text(), part))


@given(st.sampled_from(sorted(FOUND.keys["Whole"])), JSON)
def test_no_value_that_pydantic_takes_is_refused(key: str, value: Any) -> None:
    assert not (is_taken(key, value) and refusals(key, value))


def test_classes_are_read_as_they_are() -> None:
    told = FOUND.told()
    assert told["closed"] == ["Inner", "Whole"]
    assert "made" not in told["config_keys"]["Whole"], "what cannot be given is no key"
    assert told["fields"]["Whole.bounded"] == {"type": "int>=1<9"}
    assert told["fields"]["Whole.by_name"] == {
        "type": "word/i|null",
        "choices": ["FLASH", "SPARSE"],
    }
    assert told["fields"]["Whole.inners"] == {"type": "list[json:Inner]|null"}
    assert "Whole.anything" not in told["fields"]


@pytest.mark.parametrize(
    ("version", "words", "says"),
    [
        ("0.29.0", ("--kv-transfer-config", '{"kv_connector":"a","kv_role":"kv_bth"}'),
         "SV0618 `--kv-transfer-config.kv_role` is one of kv_both, kv_consumer, kv_producer or "
         "null, not `kv_bth` kv_both"),
        ("0.29.0", ("--compilation-config", '{"pass_config":{"eliminate_nops":true}}'),
         "SV0621 vllm 0.29.0 knows no key `eliminate_nops` of `--compilation-config.pass_config` "
         "eliminate_noops"),
        ("0.12.0", ("--compilation-config", '{"pass_config":{"enable_fusion":true}}'), ""),
        ("0.29.0", ("--compilation-config.pass_config.eliminate_noops", "maybe"),
         "SV0618 `--compilation-config.pass_config.eliminate_noops` is true or false, not `maybe` "
         "None"),
        ("0.29.0", ("--compilation-config.cudagraph_capture_sizes+", "1,2,x"),
         "SV0618 `--compilation-config.cudagraph_capture_sizes[2]` is a whole number, not "
         "`x` None"),
        ("0.29.0", ("--attention-config.backend", "flash_atn"),
         "SV0618 `--attention-config.backend` is one of … FLASH_ATTN"),
        ("0.29.0", ("--attention-config.backend", "flash_attn"), ""),
        ("0.29.0", ("--eplb-config", '{"num_redundant_experts": 2k}'), ""),
        ("0.12.0", ("--eplb-config", '{"num_redundant_experts": 2k}'),
         'SV0618 `--eplb-config` is a JSON object, not `{"num_redundant_experts": 2k}` None'),
        ("0.29.0", ("--kv-transfer-config", '{"kv_connector":"a"}'),
         "SV0614 `kv_connector` moves the cache, but no `kv_role` says which way None"),
    ],
)  # fmt: skip
def test_a_verdict_names_the_key_and_what_is_near(
    version: str, words: tuple[str, ...], says: str
) -> None:
    found = servec.check_argv("vllm", ["vllm", "serve", "m", *words], version=version)
    told = [f"{item.code.number} {item.message} {item.suggestion}" for item in found]
    begin, _, end = says.partition("…")
    assert len(told) == bool(says)
    assert all(text.startswith(begin) and text.endswith(end) for text in told), told


@pytest.mark.parametrize(("key", "count"), [("kv_port", 0), ("kv_portt", 1)])
def test_a_value_that_is_not_known_yet_is_not_judged(key: str, count: int) -> None:
    findings = Findings()
    linter = Linter(shipped_catalog(), parse_version("0.29.0"))
    linter.lint("a.sh", f"vllm serve m --kv-transfer-config.{key} $PORT\n", findings)
    assert len(findings) == count
