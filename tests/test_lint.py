"""servec lint: which words of a file are an engine's, where they stand, and what is left alone."""

from __future__ import annotations

import re

import pytest
import servec
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from servec.api import shipped_catalog
from servec.catalog.versions import parse_version
from servec.diag.findings import Findings, Severity
from servec.lint.check import Linter
from servec.lint.places import places_of_scalar

LINTER = Linter(shipped_catalog(), parse_version("0.29.0"))


def linted(path: str, text: str) -> list[str]:
    findings = Findings()
    LINTER.lint(path, text, findings)
    return [f"{item.span} {item.code.number}" for item in findings]


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve m --port 8000 2>&1 | tee log",
        "vllm serve m --port 8000 >log 2>&1 &",
        "vllm serve m --port $PORT --max-model-len ${LENGTH:-8192} $EXTRA",
        "exec vllm serve m \\\n  --port 8000 \\\n  --enable-lora",
        "docker pull vllm/vllm-openai:v0.10.0 --platform x",
        "docker run --entrypoint bash vllm/vllm-openai:v0.10.0 -c 'vllm serve m'",
        "docker run --gpus all vllm/vllm-openai:v0.10.0 --model m --port 8000",
        "trivy image vllm/vllm-openai:v0.10.0 --severity HIGH",
        "echo vllm serve m --bogus",
        "cat <<EOF | kubectl apply -f -\nit's vllm serve --bogus\nEOF",
        "# vllm serve m --bogus",
    ],
)
def test_what_is_right_or_no_call_is_left_alone(script: str) -> None:
    assert linted("run.sh", script) == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.sh", "vllm serve m \\\n  --bogus", ["a.sh:2:3 SV0615"]),
        ("a.sh", "bash -c 'vllm serve m --bogus'", ["a.sh:1:23 SV0615"]),
        ("a.sh", "cat <<E >x\nit's\nE\nexec vllm serve m --bogus", ["a.sh:4:19 SV0615"]),
        ("a.sh", "docker run vllm/vllm-openai:v0.10.0 --model m --nnodes 2", ["a.sh:1:47 SV0615"]),
        (
            "a.service",
            "[Service]\nExecStart=/usr/bin/vllm serve m --port %i \\\n  --bogus\n",
            ["a.service:3:3 SV0615"],
        ),
        (
            "a.container",
            "[Container]\nImage=docker.io/vllm/vllm-openai:v0.10.0\nExec=--model m --nnodes 2\n",
            ["a.container:3:16 SV0615"],
        ),
        (
            "a.yaml",
            "containers:\n- image: vllm/vllm-openai:v0.10.0\n  args: [--model, m, --nnodes, '2']\n",
            ["a.yaml:3:22 SV0615"],
        ),
        (
            "a.yaml",
            "containers:\n- image: vllm/vllm-openai:v0.29.0\n  command: [sh, -c]\n  args:\n"
            "  - |\n    set -e\n    ray start --head\n    vllm serve m --port {{ .p }} \\\n"
            "      --bogus\n",
            ["a.yaml:9:7 SV0615"],
        ),
        (
            "a.yaml",
            "services:\n  a:\n    image: vllm/vllm-openai:v0.29.0\n"
            "    command: --model m --bogus\n    environment: [VLLM_BOGUS=1]\n",
            ["a.yaml:4:24 SV0615", "a.yaml:5:19 SV0620"],
        ),
    ],
)
def test_mistake_is_found_at_its_place(path: str, text: str, found: list[str]) -> None:
    assert linted(path, text) == found


CALL = "vllm serve m --bogus 1"


@pytest.mark.parametrize(
    ("scalar", "place"),
    [
        (f"|\n    set -e\n\n\n    {CALL}\n", "5:18"),
        (f"|\n\n\n    {CALL}", "4:18"),
        (f"|-2\n      set -e; {CALL}\n", "2:28"),
        (f"|2+\n        {CALL}\n\n\n", "2:22"),
        (f"|  # why\n    if true; then\n        {CALL}\n    fi\n", "3:22"),
        ("|\n    vllm serve m \\\n      --bogus\n", "3:7"),
        (">-\n    vllm serve m\n    --port 1\n\n      --bogus\n", "2:0"),
        (">-\n    vllm serve m\n    --port 1\n    --bogus\n", "4:5"),
        (">2\n  vllm serve m\n  --bogus\n", "3:3"),
        ("vllm serve m\n   --port 1\n     --bogus\n", "3:6"),
        ("'vllm serve ''m''\n   --port 1  --bogus'\n", "2:14"),
        ('"vllm serve \\"m\\" \\\n   --port\\x20\\u0031\\  \\\n   --bogus"\n', "3:4"),
        ('"set -e\\nvllm serve m --bogus"\n', "1:28"),
        (f"|\n    bash -c '\n      set -e\n      {CALL}'\n", "4:20"),
        (f"|\n    export A='é 漢😀'; {CALL}\n", "2:35"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_words_of_a_scalar_stand_where_the_file_has_them(scalar: str, place: str, end: str) -> None:
    text = ("run: " + scalar + "next: 1\n").replace("\n", end)
    # A line that is indented further is not folded, so that it begins a command of its own.
    assert linted("a.yaml", text) == ([] if place == "2:0" else [f"a.yaml:{place} SV0615"])


@pytest.mark.parametrize(
    "lines",
    [
        "date\n",
        "a 'b c' \"d $e\"; f\n",
        "a 'b\n c'\n",
        "a \\\n",
        "cat <<E\n'\nE\n",
        "a # it's\n",
        "#\n\n",
    ],
)
def test_lines_before_a_call_do_not_hide_it(lines: str) -> None:
    calls = ["vllm serve m", "echo vllm serve m"][lines.endswith("\\\n")]
    line = lines.count("\n") * 3 + 1
    found = linted("a.sh", lines * 3 + "export VLLM_BOGUS=1\n" + f"{calls} --bogus\n")
    expected = [f"a.sh:{line}:8 SV0620", f"a.sh:{line + 1}:14 SV0615"]
    assert found == ([] if "echo" in calls else expected)


WORDS = st.lists(
    st.text("ab-\\\"'# :é漢😀\u00a0", min_size=1, max_size=9).map(str.strip).filter(bool),
    min_size=1,
    max_size=30,
)


@given(WORDS, st.sampled_from("|>'\""), st.integers(10, 60), st.integers(0, 12))
@example(["😀\u00a0:"], "|", 10, 7)
def test_every_run_of_a_scalar_has_its_place(
    words: list[str], style: str, width: int, seed: int
) -> None:
    """Whatever writes the scalar: each of its words begins at the character that it begins with."""
    value = "".join(word + " \n"[(seed + at) % 5 == 0] for at, word in enumerate(words))
    text = yaml.dump({"a": [value]}, default_style=style, width=width, allow_unicode=seed > 6)
    node = yaml.compose(text, Loader=yaml.CSafeLoader).value[0][1].value[0]
    assert node.value == value
    lines = text.split("\n")
    places = places_of_scalar(node, lines, 1)
    for found in re.finditer(r"[^\s\"'\\]+", value):
        line, column = places.at(found.start())
        raw = lines[line - 1][column - 1 :]
        assert raw.startswith((found[0][0], "\\")), (text, found[0], raw)


def test_a_document_that_cannot_be_read_is_told_and_the_others_are_read() -> None:
    good = "containers:\n- image: vllm/vllm-openai:v0.10.0\n  args: [--nnodes, '2']\n"
    text = f"{good}---\na: [vllm serve m\n---\n{good}---\nb: {{{{ x }}}}: [vllm serve m\n"
    assert linted("a.yaml", text) == [
        "a.yaml:3:10 SV0615",
        "a.yaml:5:4 SV0102",
        "a.yaml:9:10 SV0615",
        "a.yaml:11:11 SV0627",
    ]
    assert linted("a.yaml", "a: [\n") == []  # no engine is named


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("command: [vllm, serve, m]\nargs:\n{{- if .x }}\n- --bogus\n{{- end }}\n", ["4:3"]),
        ("command: [vllm, serve, m]\nargs: [--port, {{ .p }}, --bogus]\n", ["2:26"]),
        ("command: [vllm, serve, '{{ .x | default \"a'b\" }}', --bogus]\n", ["1:52"]),
        ("run: vllm serve m --port {{ .x }} --bogus\n", ["1:35"]),
        ("run: |\n  vllm serve m --port \\\n    {{ .x }}\n  vllm serve m --bogus\n", ["4:16"]),
        ("command: [vllm, serve, m]\nargs: {{ toYaml .x | nindent 4 }}\n", []),
        ("command: [vllm, serve, m]\nargs:\n  {{- toYaml .x | nindent 4 }}\n", []),
        (
            "command: [vllm, serve, m]\nargs:\n{{ if .x }}\n- --port=1\n{{ else }}\n"
            "- --port=2\n{{ end }}\n{{ if .y }}\n- --port=3\n{{ end }}\n",
            [],
        ),
        ("{{/* a: [vllm serve m --bogus\n*/}}\na: 1\n", []),
        ("a: {{ if .x }}b{{ else }}c{{ end }}\nrun: vllm serve m --bogus\n", ["2:19"]),
        ("{% if x %}\nrun: vllm serve m --bogus\n{% endif %}\n", ["2:19"]),
    ],
)
def test_a_template_is_read_without_its_values(template: str, found: list[str]) -> None:
    assert linted("a.yaml", template) == [f"a.yaml:{place} SV0615" for place in found]


def test_the_image_of_a_merged_mapping_tells_the_version() -> None:
    text = (
        "x-a: &a\n  image: vllm/vllm-openai:v0.10.0\n"
        "services:\n  one:\n    <<: *a\n    command: --model m --nnodes 2\n"
    )
    assert linted("a.yaml", text) == ["a.yaml:6:24 SV0615"]


def test_text_for_people_is_no_call() -> None:
    assert linted("a.yaml", "jobs:\n- name: vllm serve m --bogus\n  run: vllm serve m\n") == []


@pytest.mark.parametrize(
    "words",
    [
        "[ray, start, --head, --block]",
        "[vllm, bench, serve, --foo]",
        "[python3, bench.py, --num-prompts, '5']",
        "[nvidia-smi, -L]",
    ],
)
def test_other_programs_of_an_engine_s_image_are_not_the_engine(words: str) -> None:
    text = f"containers:\n- image: vllm/vllm-openai:v0.29.0\n  command: {words}\n"
    assert linted("a.yaml", text) == []


@given(st.binary(max_size=300), st.sampled_from(["a.yaml", "a.sh", "a.service", "-"]))
def test_random_bytes_are_no_defect(content: bytes, path: str) -> None:
    text = "vllm serve " + content.decode("utf-8", "replace").replace("\0", "\ufffd")
    linted(path, text)


def test_words_given_to_the_function_are_judged_without_a_shell() -> None:
    argv = ["vllm", "serve", "m", "--max-model-len", "8k", "--bogus", "$(touch x)", "--seed", 5]
    found = servec.check_argv("vllm", argv, version="0.29.0")  # type: ignore[list-item]
    assert [item.code.number for item in found] == ["SV0615"]
    deep = '{"a":' * 50_000
    servec.check_argv("vllm", ["vllm", "serve", "m", "--hf-overrides", deep], version="0.29.0")
    with pytest.raises(servec.UnknownEngine):
        servec.check_argv("vlm", [])


@pytest.mark.parametrize(
    ("version", "apart", "tied"),
    [
        ("0.8.2", True, True),
        ("0.8.3", True, False),
        ("0.11.0", True, False),
        ("0.11.1", False, False),
    ],
)
def test_a_program_may_refuse_a_flag_that_its_parser_has(
    version: str, apart: bool, tied: bool
) -> None:
    def is_refused(*argv: str) -> bool:
        codes = [item.code.number for item in servec.check_argv("vllm", argv, version=version)]
        assert codes in ([], ["SV0615"])
        return bool(codes)

    assert is_refused("vllm", "serve", "--model", "m") is apart
    assert is_refused("vllm", "serve", "--model=m") is tied
    assert not is_refused("vllm", "serve", "m")
    assert not is_refused("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m")


def test_a_flag_that_is_only_there_to_be_refused_is_an_error() -> None:
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--enable-ep-moe"]
    (old,) = servec.check_argv("sglang", argv, version="0.5.2")
    (refused,) = servec.check_argv("sglang", argv, version="0.5.3.post3")
    assert (old.code.number, old.severity) == ("SV0619", Severity.WARNING)
    assert (refused.code.number, refused.severity) == ("SV0615", Severity.ERROR)
    assert (refused.message, refused.help) == (
        "sglang 0.5.3.post3 has no flag `--enable-ep-moe`: it was removed",
        "use `--ep-size`",
    )
    (between,) = servec.check_argv("sglang", argv, version="0.5.3")  # no release of the catalogue
    assert (between.code.number, between.severity) == ("SV0619", Severity.WARNING)


def test_a_version_that_is_none_is_a_finding() -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m"], version="nonsense")
    assert found.message == "`nonsense` is not a version of PEP 440"


def test_the_history_of_a_flag_that_came_back_is_said() -> None:
    argv = ["vllm", "serve", "m", "--disable-log-requests"]
    (found,) = servec.check_argv("vllm", argv, version="0.20.0")
    assert found.message == (
        "vllm 0.20.0 has no flag `--disable-log-requests`; "
        "it is there until 0.16.0 and since 0.33.0"
    )
