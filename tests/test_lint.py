"""servec lint: which words of a file are an engine's, where they stand, and what is left alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
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


def test_findings_are_json_where_a_program_reads(tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_text("vllm serve m --no-such-flag\n")
    command = [sys.executable, "-m", "servec", "lint", "--version", "0.29.0", "--format", "json"]
    done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
    (found,) = json.loads(done.stdout)
    assert (done.returncode, found["code"]) == (1, "SV0615")


IMAGE = "vllm/vllm-openai:v0.29.0"
IN_KINDS = [
    ("a.yaml", f"services:\n  a:\n    image: {IMAGE}\n    command: org/m --bogus\n", "4:20"),
    ("a.yaml", f"services:\n  a:\n    image: {IMAGE}\n    command: [org/m, --bogus]\n", "4:22"),
    ("a.yaml", f"containers:\n- image: {IMAGE}\n  args: [org/m, --bogus]\n", "3:17"),
    ("a.yaml", f"containers:\n- image: r.io:50/a/b/{IMAGE}\n  args: [org/m, --bogus]\n", "3:17"),
    ("a.sh", "docker run --gpus all vllm/vllm-openai:v0.29.0 org/m --bogus", "1:54"),
    ("a.sh", "docker run me/vllm-fork:v0.29.0 vllm serve m --bogus", "1:46"),
    ("a.sh", "python -u -X dev -m vllm.entrypoints.openai.api_server --model m --bogus", "1:66"),
    ("a.sh", 'PID=$(vllm serve m --bogus & echo "$!")', "1:20"),
    ("a.sh", "echo `vllm serve m --bogus`", "1:20"),
    ("a.sh", "vllm serve m --chat-template <(cat x) --bogus", "1:39"),
    ("a.sh", 'vllm serve m --port "$(f "$(g)")" --bogus', "1:35"),
    ("a.sh", 'args=(--port 1 # why\n  --bogus)\nvllm serve m "${args[@]}"', "2:3"),
    ("a.sh", 'args=(--port 1)\nargs+=(--bogus)\nexec vllm serve m ${args[*]}', "2:8"),
    ("a.sh", 'ARGS="--port 1 --bogus"\nvllm serve m $ARGS', "1:16"),
    ("a.sh", "ssh h bash -s <<'E'\nset -e\nvllm serve m --bogus\nE\n", "3:14"),
    ("a.sh", "coproc vllm serve m --bogus", "1:21"),
    ("a.sh", "find . | xargs -I{} vllm serve {} --bogus", "1:35"),
    ("Dockerfile", 'FROM vllm/vllm-openai:v0.29.0\nCMD ["org/m", "--bogus"]\n', "2:15"),
    ("Dockerfile", 'FROM x\nCMD ["vllm", "serve", \\\n  # why\n  "org/m", "--bogus"]\n', "4:12"),
    ("b.dockerfile", "FROM x\nRUN date && \\\n    true\nCMD exec vllm serve m --bogus\n", "4:23"),
    ("a.service", "[Service]\nExecStart=/bin/bash -c 'vllm serve m --bogus'\n", "2:38"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "place"), IN_KINDS)
def test_a_call_is_found_wherever_it_stands(path: str, text: str, place: str) -> None:
    assert linted(path, text) == [f"{path}:{place} SV0615"]


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        ("a.sh", "docker run -e VLLM_BOGUS=1 vllm/vllm-openai:v0.29.0 --model m", "1:15"),
        ("a.sh", "docker run --env=VLLM_BOGUS=1 vllm/vllm-openai:v0.29.0 --model m", "1:18"),
        ("a.sh", "docker run -eVLLM_BOGUS vllm/vllm-openai:v0.29.0 --model m", "1:14"),
        (
            "a.service",
            "[Service]\nEnvironment=A=1 'VLLM_BOGUS=x y'\nExecStart=vllm serve m\n",
            "2:18",
        ),
        (
            "a.service",
            "[Service]\nEnvironment=VLLM_BOGUS=1\nExecStart=/bin/sh -c 'vllm serve m'\n",
            "2:13",
        ),
        ("Dockerfile", "FROM x\nENV A=1 VLLM_BOGUS=2\nENTRYPOINT vllm serve m\n", "2:9"),
        ("Dockerfile", "FROM x\nENV VLLM_BOGUS 2\nENTRYPOINT vllm serve m\n", "2:5"),
    ],
)  # fmt: skip
def test_a_variable_is_found_wherever_it_is_set(path: str, text: str, place: str) -> None:
    assert linted(path, text) == [f"{path}:{place} SV0620"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", "docker run vllm/vllm-openai:v0.29.0 /bin/ls --bogus"),
        ("a.sh", "docker run lmsysorg/sglang:v0.5.15 nvidia-smi --bogus"),
        ("a.sh", "trtllm-serve disaggregated -c x.yaml"),
        ("a.sh", "trtllm-serve serve m --tp_size 2"),
        ("a.sh", 'vllm serve m "${args[@]}"'),
        ("a.sh", 'a=(--port 1)\n[ x ] && a+=(--port 2)\nvllm serve m "${a[@]}"'),
        ("a.sh", "ARGS=x\nvllm serve m --port $ARGS"),
        ("a.yaml", "observed: {serve: [\n"),
        ("Dockerfile", 'FROM x\nENTRYPOINT vllm serve m\nCMD ["--bogus"]\n'),
        ("Dockerfile", f'FROM {IMAGE}\nENTRYPOINT ["/start.sh"]\nCMD ["--bogus"]\n'),
    ],
)  # fmt: skip
def test_other_commands_and_files_are_left_alone(path: str, text: str) -> None:
    assert linted(path, text) == []


def test_the_entry_point_of_an_image_tells_what_may_follow() -> None:
    """Up to 0.11.0 the image's program takes no bare model; later its words follow `serve`."""
    older = "docker run vllm/vllm-openai:v0.10.0 org/m"
    assert linted("a.sh", older) == ["a.sh:1:37 SV0625"]
    assert linted("a.sh", older.replace("0.10.0", "0.29.0")) == []
    assert linted("a.sh", "docker run vllm/vllm-openai:v0.10.0 --model m") == []


def test_the_tag_of_an_image_of_another_name_is_no_version_of_the_engine() -> None:
    def level(image: str) -> list[Severity]:
        findings = Findings()
        text = f"containers:\n- image: {image}\n  command: [vllm, serve, m, --bogus]\n"
        Linter(shipped_catalog()).lint("a.yaml", text, findings)
        return [item.severity for item in findings]

    assert level("me/chat-server:v0.10.0") == [Severity.NOTE]
    assert level("me/vllm-chat:v0.10.0") == [Severity.ERROR]


HOSTILE = {
    "a here-document that never closes": "vllm serve m\n" + "cat <<E\n" * 50_000,
    "different ones": "vllm serve m\n" + "".join(f"cat <<E{n}\n" for n in range(3_000)),
    "a flag repeated": "vllm serve m " + "--port 1 " * 20_000,
    "lines that go on": "vllm serve m \\\n" * 20_000,
    "wrappers": "sudo " * 50_000 + "vllm serve m",
    "quotes": "vllm serve m `'\"" * 20_000,
    "substitutions in one another": "$(" * 50_000 + "vllm serve m",
    "substitutions that end": "$(" * 20_000 + "vllm serve m" + ")" * 20_000,
    "templates": "vllm serve " + "{{ " * 50_000,
    "lists": "a+=(x)\n" * 20_000 + "vllm serve m ${a[@]}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("path", ["a.sh", "a.yaml", "Dockerfile"])
def test_hostile_text_takes_no_more_time_than_it_is_long(path: str, text: str) -> None:
    """Its steps grow with its length: a quadratic reader would take minutes."""
    linted(path, text)


def run_lint(
    *arguments: str, text: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "servec", "lint", *arguments]
    return subprocess.run(
        command, input=text, capture_output=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["--version", "0.29.0"], 1, b"vllm 0.29.0 has no flag"),
        (["--version", "vllm=0.29.0", "--version", "sglang=0.5.15"], 1, b"vllm 0.29.0 has no flag"),
        (["--version", "sglang=0.5.15"], 0, b"of unknown version has no flag"),
        (["--version", "9.9"], 0, b"what vllm 9.9 accepts is taken from"),
        (["--version", "9.9", "--strict"], 1, b"what vllm 9.9 accepts is taken from"),
        (["--version", "1" * 5000], 2, b"is not a version"),
        (["--version", "vlm=1"], 2, b"unknown engine `vlm`"),
        (["--version", "1.0", "--version", "2.0"], 2, b"ENGINE=VERSION"),
    ],
)  # fmt: skip
def test_a_version_that_is_given_is_used_or_told(given: list[str], code: int, words: bytes) -> None:
    done = run_lint(*given, "-", text=b"vllm serve m --bogus\n")
    assert (done.returncode, words in done.stdout + done.stderr) == (code, True)
    assert b"Traceback" not in done.stderr


def test_what_cannot_be_read_or_shown_is_told(tmp_path: Path) -> None:
    wide = tmp_path / "wide.sh"
    wide.write_bytes("vllm serve m --bogus é\n".encode("utf-16"))
    done = run_lint("--version", "0.29.0", str(wide), PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert (done.returncode, b"SV0615" in done.stdout) == (1, True)
    assert b"Traceback" not in done.stderr
    endless = tmp_path / "endless.sh"
    endless.symlink_to("/dev/zero")
    assert b"SV0108" in run_lint(str(endless)).stdout
    assert run_lint(str(tmp_path)).returncode == 0  # of a folder, files alone
    missing = run_lint(str(tmp_path / "missing.sh"))
    assert (missing.returncode, b"missing.sh:1:1" in missing.stdout) == (1, True)
    nothing = run_lint("-", text=b"make all\n")
    assert b"servec: - has no command line of an engine" in nothing.stderr


@pytest.mark.parametrize(
    ("path", "text", "is_told"),
    [
        ("a.sh", "docker run vllm/vllm-openai:v0.29.0 vllm serve m", True),
        ("a.sh", 'docker run --entrypoint "" vllm/vllm-openai:v0.29.0 vllm serve m', False),
        ("a.sh", "docker run lmsysorg/sglang:v0.5.15 sglang serve --model-path m", False),
        ("a.yaml", "services: {v: {image: vllm/vllm-openai:v0.29.0, command: vllm serve m}}", True),
        (
            "a.yaml",
            "services: {v: {image: vllm/vllm-openai:v0.29.0, entrypoint: vllm serve, command: m}}",
            False,
        ),
        ("a.yaml", "image: vllm/vllm-openai:v0.29.0\ncommand: [vllm, serve, m]", False),
        ("a.yaml", "image: vllm/vllm-openai:v0.29.0\nargs: [vllm, serve, m]", True),
    ],
)
def test_a_program_that_the_image_has_started_is_told(path: str, text: str, is_told: bool) -> None:
    assert any("SV0629" in item for item in linted(path, text)) is is_told
