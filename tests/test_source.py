"""Reading: located values, the rules of scalars, and files that mean harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servec.diag.findings import Findings
from servec.source import limits
from servec.source.files import Files, Folder, Memory, find_project
from servec.source.located import At, Map, Node, plain
from servec.source.scalars import Ambiguous, resolve

from tests.test_printers import readers

MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(text: str | bytes, name: str = "a.yaml") -> tuple[Node | None, list[str]]:
    findings = Findings()
    node = Files(Memory({name: text}), findings).node(name)
    return node, [f"{item.code.number} {item.span}" for item in findings]


def test_every_value_has_its_place() -> None:
    node, found = read("a:\n  b: [1, two]\n  'c d': {e: ~}\n")
    assert found == []
    assert isinstance(node, Map)
    places = {
        "b": (2, 6), "c d": (3, 10),
    }  # fmt: skip
    inner = node.get("a")
    assert isinstance(inner, Map)
    for key, (line, column) in places.items():
        entry = inner.entries[key]
        assert (entry.value.span.line, entry.value.span.column) == (line, column)
    assert str(inner.entries["c d"].key.span) == "a.yaml:3:3"
    assert plain(node) == {"a": {"b": [1, "two"], "c d": {"e": None}}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-7", -7), ("+3", 3), ("0", 0), ("0x1F", 31), ("0.90", 0.9), ("1.0e-05", 1e-5),
        (".5", 0.5), ("true", True), ("False", False), ("NULL", None), ("~", None), ("", None),
        ("qwen3", "qwen3"), ("0.29.0", "0.29.0"), ("-", "-"), ("a: b", "a: b"), ("1a", "1a"),
        ("8B", "8B"), ("_1", "_1"), ("1.2.3", "1.2.3"), ("--flag", "--flag"), (".", "."),
    ],
)  # fmt: skip
def test_scalars(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "y", "No", "on", "OFF", "010", "-010", "0o17", "0b11", "1_000", "1_0.5", "1e3", "1E-5",
        "1.5e5", "-.5", "1:30", "12:30:45", "2026-11-30", "2026-1-2 03:04:05", ".inf", "-.INF",
        ".nan", "=", "<<", "1" * 50, "9.9e+999", "08",
    ],
)  # fmt: skip
def test_ambiguous_scalars(text: str) -> None:
    assert isinstance(resolve(text), Ambiguous), resolve(text)


@MANY
@given(st.text(alphabet="0123456789abefxoynt_.:+-ETZ~=", max_size=12))
def test_a_scalar_is_read_as_all_read_it(text: str) -> None:
    """What is not refused, PyYAML (1.1), a 1.2 reader and ryaml read as servec does."""
    document = f"k: {text}\n"
    try:
        value = yaml.safe_load(document)["k"]
    except (yaml.YAMLError, ValueError, TypeError, KeyError):
        return
    node, found = read(document)
    if found or not isinstance(node, Map):
        return
    mine = plain(node)["k"]  # type: ignore[index, call-overload]
    assert (type(value), value) == (type(mine), mine)
    core = readers()[2](document)["k"]
    assert (type(core), core) == (type(mine), mine)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("a: 1\na: 2\n", ["SV0103 a.yaml:2:1"]),
        ("a: !!str 1\n", ["SV0104 a.yaml:1:4"]),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", ["SV0105 a.yaml:3:3"]),
        ("a: yes\n", ["SV0106 a.yaml:1:4"]),
        ("1: a\n", ["SV0107 a.yaml:1:1"]),
        ("? [a]\n: b\n", ["SV0107 a.yaml:1:3"]),
        ("a: *b\n", ["SV0109 a.yaml:1:4"]),
        ("a: &a [*a]\n", ["SV0109 a.yaml:1:8"]),
        ("a: 1\n---\nb: 2\n", ["SV0110 a.yaml:2:1"]),
        ("", ["SV0111 a.yaml:1:1"]),
        ("# nothing\n", ["SV0111 a.yaml:1:1"]),
        ("a: [1,\nb: 2\n", ["SV0102 a.yaml:1:4"]),
        ("a: b: c\n", ["SV0102 a.yaml:1:5"]),
        ("a: \x01\n", ["SV0102 a.yaml:1:4"]),
        (b"a: b\nc: \xff\n", ["SV0101 a.yaml:2:4"]),
    ],
)
def test_what_is_refused(text: str | bytes, codes: list[str]) -> None:
    assert read(text)[1] == codes


def test_anchors_are_read() -> None:
    node, found = read("a: &x {b: 1}\nc: *x\n")
    assert found == []
    assert node is not None
    assert plain(node) == {"a": {"b": 1}, "c": {"b": 1}}


def test_bom_and_crlf() -> None:
    node, found = read(b"\xef\xbb\xbfa: 1\r\nb:\r\n  - c\r\n")
    assert found == []
    assert isinstance(node, Map)
    assert plain(node) == {"a": 1, "b": ["c"]}
    assert str(node.entries["a"].key.span) == "a.yaml:1:1"
    assert str(node.entries["b"].value.span) == "a.yaml:3:3"


def test_json_is_read() -> None:
    text = '{"a": [1, -2.5, 1e-06, true, null],\n "b": {"c": "\\ud83e\\udd99"}}\n'
    node, found = read(text, "a.json")
    assert found == []
    assert isinstance(node, Map)
    assert plain(node) == json.loads(text)
    assert str(node.entries["b"].value.span) == "a.json:2:7"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{"a": 1, "a": 2}', ["SV0103 a.json:1:10"]),
        ('{"a": 1,}', ["SV0102 a.json:1:9"]),
        ('{"a" 1}', ["SV0102 a.json:1:6"]),
        ("{'a': 1}", ["SV0102 a.json:1:2"]),
        ('{"a": "\\ud800"}', ["SV0102 a.json:1:7"]),
        ('{"a": "b', ["SV0102 a.json:1:7"]),
        ('{"a": 1} x', ["SV0102 a.json:1:10"]),
        ("[" * 100, ["SV0108 a.json:1:66"]),
        ("1" * 5000, ["SV0102 a.json:1:1"]),
        ("", ["SV0111 a.json:1:1"]),
    ],
)
def test_json_that_is_refused(text: str, codes: list[str]) -> None:
    assert read(text, "a.json")[1] == codes


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(
        alphabet=st.characters(exclude_categories=("Cs",))), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@MANY
@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_json_is_what_json_loads_says(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    node, found = read(text, "a.json")
    assert found == []
    assert node is not None
    assert json.dumps(plain(node)) == json.dumps(json.loads(text))


def test_bombs_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{inner}]")
    assert read("\n".join(lines))[1][0].startswith("SV0108")
    assert read("[" * 500)[1] == [f"SV0108 a.yaml:1:{limits.DEPTH + 1}"]
    assert read("[" * 10_000)[1] == ["SV0102 a.yaml:1:1001"]  # libyaml's own bound
    assert read(b"a: " + b"x" * limits.FILE_BYTES)[1] == ["SV0108 a.yaml:1:1"]


SOURCE = Path(__file__).parents[1] / "specs" / "qwen3.yaml"


@MANY
@given(st.data())
def test_a_changed_byte_is_a_finding_or_a_value(data: st.DataObject) -> None:
    content = bytearray(SOURCE.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(content) - 1))
        content[index] = data.draw(st.integers(0, 255))
    node, found = read(bytes(content))
    assert node is not None or found


@MANY
@given(st.binary(max_size=200))
def test_random_bytes_never_raise(content: bytes) -> None:
    for name in ("a.yaml", "a.json"):
        node, found = read(content, name)
        assert node is not None or found


def test_the_project_is_found_upwards(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "servec.yaml").write_text("")
    assert find_project(inner) == tmp_path.resolve()
    (tmp_path / "a" / "servec.yaml").write_text("")
    assert find_project(inner) == (tmp_path / "a").resolve()


def test_links_in_a_ring_end(tmp_path: Path) -> None:
    (tmp_path / "specs" / "more").mkdir(parents=True)
    (tmp_path / "specs" / "a.yaml").write_text("models: {}\n")
    (tmp_path / "specs" / "more" / "back").symlink_to(tmp_path / "specs")
    assert Folder(tmp_path).files("specs") == ["specs/a.yaml"]


def test_a_scalar_at_the_root_has_a_place() -> None:
    node, found = read("text\n")
    assert found == []
    assert isinstance(node, At)


@pytest.mark.parametrize("name", ["specs/b\nexport EVIL=1\n#.yaml", "specs/\udcff.yaml"])
def test_names_that_would_break_a_comment_are_refused(name: str) -> None:
    import servec

    result = servec.compile(tree={name: "models: {}\n", "specs/a.yaml": "models: {}\n"})
    assert [item.code.number for item in result.findings] == ["SV0112"]


def test_a_surrogate_in_memory_is_a_finding() -> None:
    import servec

    result = servec.compile(tree={"specs/a.yaml": "models: {a: \ud800}\n"})
    assert [item.code.number for item in result.findings] == ["SV0101"]
