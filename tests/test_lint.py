"""servec lint: which words of a file are an engine's, where they stand, and what is left alone."""

from __future__ import annotations

import pytest
import servec
from hypothesis import given
from hypothesis import strategies as st
from servec.api import shipped_catalog
from servec.catalog.versions import parse_version
from servec.diag.findings import Findings
from servec.lint.check import Linter

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
    argv = ["vllm", "serve", "m", "--max-model-len", "8k", "--bogus", "$(touch x)", "--seed", 5]
    found = servec.check_argv("vllm", argv, version="0.29.0")  # type: ignore[list-item]
    assert [item.code.number for item in found] == ["SV0615"]
    deep = '{"a":' * 50_000
    servec.check_argv("vllm", ["vllm", "serve", "m", "--hf-overrides", deep], version="0.29.0")
    with pytest.raises(servec.UnknownEngine):
        servec.check_argv("vlm", [])
