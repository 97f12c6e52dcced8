"""servec lint: which words of a file are an engine's, where they stand, and what is left alone."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import servec
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version
from servec.api import shipped_catalog
from servec.catalog.versions import parse_range, parse_version
from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.lint.check import Linter
from servec.lint.find import ACTION, ACTION_LINE

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
    argv = ["vllm", "serve", "m", "--max-model-len", "8k", "--bogus", "$(touch x)", "--seed", "5"]
    found = servec.check_argv("vllm", argv, version="0.29.0")
    assert [str(item.code) for item in found] == ["SV0615"]
    deep = '{"a":' * 50_000
    servec.check_argv("vllm", ["vllm", "serve", "m", "--hf-overrides", deep], version="0.29.0")
    with pytest.raises(servec.UnknownEngine):
        servec.check_argv("vlm", [])


@pytest.mark.parametrize(
    ("version", "words", "is_taken"),
    [
        ("0.29.0", "--lora-modules a=b c=d", True),
        ("0.29.0", """--lora-modules '{"name": "a", "path": "b"}'""", True),
        ("0.29.0", "--lora-modules a", False),
        ("0.29.0", "--lora-modules a=b c", False),
        ("0.29.0", """--lora-modules '{"name": "a"}'""", False),
        ("0.29.0", """--lora-modules '{"name": "a", "path": "b", "paht": "c"}'""", False),
        ("0.8.4", """--limit-mm-per-prompt '{"image": 4}'""", False),
        ("0.8.5", """--limit-mm-per-prompt '{"image": 4}'""", True),
        ("0.8.4", "--limit-mm-per-prompt image=4,audio=2", True),
        ("0.8.4", "--limit-mm-per-prompt image=many", False),
        ("0.8.4", "-O.level=3", False),
        ("0.12.0", "-O.level=3", True),
        ("0.29.0", "-O3", True),
        ("0.29.0", "-O 3", True),
        ("0.29.0", "-O=3", True),
        ("0.29.0", "-O '{}'", False),
        ("0.29.0", "--help=ModelConfig", True),
        ("0.8.4", "--help=ModelConfig", False),
        ("0.29.0", "--eplb-config.window_size 1k", True),
        ("0.12.0", "--eplb-config.window_size 1k", False),
    ],
)
def test_a_value_is_taken_where_the_release_takes_it(
    version: str, words: str, is_taken: bool
) -> None:
    argv = ["vllm", "serve", "m", *shlex.split(words)]
    found = servec.check_argv("vllm", argv, version=version)
    assert [item.message for item in found if item.severity is Severity.ERROR][:1] == (
        [] if is_taken else [found[0].message]
    )


def test_a_short_word_that_wants_a_number_is_told_so() -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m", "-O", "{}"], version="0.29.0")
    assert found.message == "vllm 0.29.0 has no flag `-O` without a number"
    assert found.help == "write `-O2`, or `--optimization-level`"


@pytest.mark.parametrize("argv", ["vllm serve m", b"vllm", ["vllm", b"serve"], ["vllm", 5], None])
def test_what_are_no_words_is_a_type_error(argv: Any) -> None:
    with pytest.raises(TypeError, match="`argv`"):
        servec.check_argv("vllm", argv, version="0.29.0")


@pytest.mark.parametrize(
    "named", [{"engine": ["vllm"]}, {"version": 29}, {"version": Version("1")}, {"image": b"x"}]
)
def test_what_is_no_text_is_a_type_error(named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"`{next(iter(named))}` is a str"):
        servec.check_argv(**{"engine": "vllm", "argv": ["vllm", "serve", "m"], **named})


@pytest.mark.parametrize("version", ["9" * 5000, "0." + "1" * 5000, "1!" + "2" * 5000, "0.1\n\0"])
def test_a_version_that_python_cannot_read_is_no_version(version: str) -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m"], version=version)
    assert found.code is codes.BAD_VERSION
    assert parse_range(f">={version}") is None


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


FOLDED = """\
kind: Pod
spec:
  containers:
  - image: vllm/vllm-openai:v0.29.0
    command: [sh, -c]
    args:
    - >-
      exec vllm serve m
      --max-model-len 12

      --late 1
  - image: vllm/vllm-openai:v0.29.0
    command: [bash, -c]
    args:
      - |2-

        vllm serve m \\
          --first x
        vllm serve m --second x
"""
HELM = """\
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  containers:
  - name: server
    image: vllm/vllm-openai:v0.29.0
    name: {{ .Values.name | quote }}
    {{- if .Values.args }}
    {{- /* a comment
      of two lines */}}
    args:
      - --model={{ .Values.model }}
      - --max-model-len={{ .Values.length }}
      - --no-such-flag={{ .Values.x }}
    {{- end }}
"""


def places(text: str, name: str = "a.yaml") -> list[tuple[str, int, int]]:
    findings = Findings()
    Linter(shipped_catalog()).lint(name, text, findings)
    return [(item.code.number, item.span.line, item.span.column) for item in findings if item.span]


def test_words_of_block_scalars_have_their_own_places() -> None:
    lines = FOLDED.splitlines()
    found = places(FOLDED.replace("      --late 1", "      --late=1"))
    assert [lines[line - 1][column - 1 :].split()[0] for _, line, column in found] == [
        "--first",
        "--second",
    ]
    joined = FOLDED.replace("12\n\n", "12\n")  # nothing between them: one command
    lines = joined.splitlines()
    found = places(joined)
    assert [lines[line - 1][column - 1 :].split()[0] for _, line, column in found] == [
        "--late",
        "--first",
        "--second",
    ]


def test_a_template_is_read_without_its_actions() -> None:
    assert places(HELM) == [("SV0615", 14, 9)]


def test_what_is_not_read_is_told() -> None:
    whole = "command: [vllm, serve, m, --no-such-flag]\n"
    assert places(whole + "---\na: [\n") == [("SV0615", 1, 27), ("SV0627", 4, 1)]
    assert places("[" * 100_000 + "vllm serve")[0][0] == "SV0627"
    assert places("a: b: c # no engine here") == []


def test_findings_are_json_where_a_program_reads(tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_text("vllm serve m --no-such-flag\n")
    command = [sys.executable, "-m", "servec", "lint", "--version", "0.29.0", "--format", "json"]
    done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
    (found,) = json.loads(done.stdout)
    assert (done.returncode, found["code"]) == (1, "SV0615")


def test_an_action_that_is_not_closed_ends_at_the_next() -> None:
    text = "kind: Pod\nname: {{ a\nargs: [x, {{ b }}]\n"
    assert ACTION.findall(text) == ["{{ b }}"]
    assert ACTION_LINE.findall("{{ a\n{{ b }}\n") == ["{{ b }}"]
