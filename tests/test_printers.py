"""Each printer read back by a reader of its own format: parse(print(x)) == x, hostile text too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servec.emit.kubernetes_nodes import literal
from servec.emit.plans import _entry
from servec.emit.shell import quoted
from servec.emit.systemd import assignment, command
from servec.emit.yaml import print_yaml

from tests.kubernetes_reader import expand_as_kubernetes
from tests.systemd_reader import read_assignment, read_command
from tests.test_golden import readers

NASTY = [
    "", " ", "a b", "\n", "a\nb", "'", '"', "''", "it's", '"quoted"', "$", "$HOME", "${X}",
    "$(id)", "$(X)", "$$(X)", "`id`", "%", "%h", "%%", "\\", "\\n", "a\\", "-", "--", "-x",
    "--flag=v", "~", "~root", "*", "?", "[a]", "{a,b}", "!", "!!", "#", "# c", "a #b", ";",
    "a;b", "&", "|", ">", "<", "(", ")", "\t", "\r", "\x01", "\x1b[0m", "\x7f", "\x85",
    "\xa0", "\u2028", "\u2029", "\ufeff", "ü", "日本", "🦙", "\U0001f999", "e\u0301", "y", "Y",
    "n", "yes", "no", "on", "off", "true", "null", "~", "0", "00", "010", "0o10", "0x10",
    "0b1", "1_000", "1e3", "9e9", "1.0", ".5", "1.", "1:30", "12:30:45", "2026-11-30",
    ".inf", ".nan", "NaN", "=", "<<", "-1", "+1", "- a", "a: b", "a:", ":a", "key: value",
    "[", "]", "{", "}", ",", "a,b", "@a", "%a", "&a", "*a", "|a", ">a", "a" * 200,
    "x " * 60, "é" * 90, "a=b", "if", "then", "[0]=x", "_1", "0.1.2", "1.2.3.4",
]  # fmt: skip
TEXT = st.one_of(
    st.sampled_from(NASTY),
    st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\x00")),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map("".join),
)
MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(st.lists(TEXT, min_size=1, max_size=20))
def test_bash_reads_back(words: list[str]) -> None:
    _bash_reads_back(words)


def test_bash_reads_back_every_nasty_word() -> None:
    _bash_reads_back(NASTY)


def test_shellcheck_has_nothing_to_say_about_any_word(tmp_path: Path) -> None:
    script = tmp_path / "a.sh"
    lines = "\n".join(f"  {quoted([word])}" for word in [*NASTY, "~/x", "a\\\\"])
    script.write_text(f'#!/usr/bin/env bash\nargv=(\n{lines}\n)\nexec "${{argv[@]}}"\n')
    shellcheck = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run(
        [shellcheck, "-S", "style", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_bash_reads_back_in_any_locale(locale: str) -> None:
    _bash_reads_back(NASTY, locale)


def _bash_reads_back(words: list[str], locale: str = "C.UTF-8") -> None:
    script = f"argv=(\n  {quoted(words)}\n)\nprintf '%s\\0' \"${{argv[@]}}\""
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": locale}
    )
    assert done.stdout.decode().split("\0")[:-1] == words


@MANY
@given(st.lists(TEXT, max_size=6))
def test_systemd_command_reads_back(words: list[str]) -> None:
    assert read_command(command(["/bin/bash", *words])) == ["/bin/bash", *words]


@MANY
@given(TEXT)
def test_systemd_assignment_reads_back(value: str) -> None:
    assert read_assignment(assignment("NAME", value)) == f"NAME={value}"


LEAVES = st.one_of(
    TEXT, st.integers(-(10**18), 10**18), st.booleans(), st.none(),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)  # fmt: skip
TREES = st.dictionaries(
    TEXT.filter(lambda key: len(key) < 100),
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(TEXT.filter(lambda key: len(key) < 100), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@MANY
@given(TREES)
def test_yaml_reads_back_by_four_readers(tree: dict[str, Any]) -> None:
    text, _ = print_yaml(["a comment"], tree)
    for read in readers():
        found = read(text)
        assert (found or {}) == tree
        assert json.dumps(found or {}) == json.dumps(tree)  # types and order too


@MANY
@given(st.text(alphabet="$(){}Xx_ a") | TEXT)
def test_kubernetes_leaves_words_alone(word: str) -> None:
    assert expand_as_kubernetes(literal(word), {"X": "expanded"}) == word


def test_every_nasty_word_reads_back_everywhere() -> None:
    """The words that are known to do harm, each printer, whatever chance brings to the others."""
    for word in NASTY:
        assert expand_as_kubernetes(literal(word), {"X": "expanded"}) == word
        assert read_command(command(["/bin/bash", word])) == ["/bin/bash", word]
        assert read_assignment(assignment("NAME", word)) == f"NAME={word}"
        text, _ = print_yaml([], {"k": [word, {word: word}]})
        for read in readers():
            assert read(text) == {"k": [word, {word: word}]}, word


@MANY
@given(
    st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True) | TEXT.filter(lambda key: len(key) < 90),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2),
        max_leaves=5,
    ),
)
def test_infer_plans_entries_are_those_of_pyyaml(key: str, value: Any) -> None:
    """At the depth of engine_params, `key: value` is what PyYAML writes there, byte for byte."""
    nested: Any = {key: value}
    for _ in range(4):
        nested = {"k": nested}
    wanted = yaml.safe_dump(nested, sort_keys=False, allow_unicode=True, default_flow_style=False)
    assert "\n".join(_entry(key, value, 4)) + "\n" == wanted.split("\n", 4)[4]
