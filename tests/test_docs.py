"""Every example of the README and docs/ is run: commands and what they print, YAML as sources."""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import servec
import yaml
from servec.diag.findings import Findings
from servec.source.files import Files, Memory

from tests.case_files import read_cases
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SERVEC = f"{sys.executable} -m servec"


def blocks(kind: str) -> list[tuple[Path, str]]:
    return [
        (page, found["body"])
        for page in PAGES
        for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if found["kind"] == kind
    ]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text(encoding="utf-8")],
    ids=lambda page: page.name,
)  # fmt: skip
def test_commands_print_what_the_page_shows(page: Path, blessing: bool) -> None:
    """The page shows a command's whole output, or its first lines."""
    text = page.read_text(encoding="utf-8")
    fresh = BLOCK.sub(lambda found: _rerun(found) if found["kind"] == "console" else found[0], text)
    if blessing:
        page.write_text(fresh, encoding="utf-8")
        return
    assert fresh == text


def _rerun(found: re.Match[str]) -> str:
    lines = found["body"].splitlines()
    out: list[str] = []
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        shown = end - start - 1
        printed = _run(lines[start].removeprefix("$ "))
        out += [lines[start], *(printed[:shown] if shown else printed)]
    return "```console\n" + "".join(f"{line}\n" for line in out) + "```"


def _run(command: str) -> list[str]:
    if command == "make test":
        return []
    words = command.replace("make plans", f"{SERVEC} build").replace(".venv/bin/servec", SERVEC)
    done = subprocess.run(
        ["bash", "-c", words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False, env={**os.environ, "PATH": os.defpath},
    )  # fmt: skip
    return done.stdout.splitlines()


FINDINGS = sorted((ROOT / "docs" / "findings").glob("*.md"))


@pytest.mark.parametrize("page", FINDINGS, ids=lambda page: page.stem)
def test_a_finding_s_page_shows_what_its_cases_give(page: Path, blessing: bool) -> None:
    """Each ```text block of a page is a finding, or a run, of the code's own cases."""
    cases = read_cases(ROOT / "tests" / "mistakes" / page.with_suffix(".case").name)
    runs = ["\n".join(case.out or []) for case in cases]
    findings = [text.strip() for run in runs for text in re.split(r"\n(?=\w+\[SV)|\n\n", run)]
    shown = [text for text in findings if f"[{page.stem}]" in text.partition("\n")[0]]
    text = page.read_text(encoding="utf-8")

    def fresh(found: re.Match[str]) -> str:
        body = found["body"].strip()
        known = runs if body.startswith("$ ") else shown
        if found["kind"] != "text" or (body and any(body in run for run in known)):
            return found[0]
        nearest = difflib.get_close_matches(body, known, n=1, cutoff=0.0)
        assert nearest, f"{page.name}: the cases show no {page.stem}"
        return f"```text\n{nearest[0]}\n```"

    renewed = BLOCK.sub(fresh, text)
    if blessing:
        page.write_text(renewed, encoding="utf-8")
        return
    assert renewed == text


def test_json_of_the_pages_is_a_shard_that_starts() -> None:
    for page, body in blocks("json"):
        assert servec.launch(json.loads(body)).commands, page


def test_python_of_the_pages_runs() -> None:
    for page, body in blocks("python"):
        done = subprocess.run([sys.executable, "-c", body], capture_output=True, check=False)
        assert done.returncode == 0, (page, done.stderr)


def test_yaml_of_the_pages_is_servec_s_own() -> None:
    """Each YAML example is read without a finding, and by PyYAML to the same values."""
    for page, body in blocks("yaml"):
        findings = Findings()
        node = Files(Memory({"a.yaml": body}), findings).node("a.yaml")
        assert node is not None, page
        assert [item.message for item in findings] == [], page
        assert yaml.safe_load(body)


def test_the_pages_projects_compile() -> None:
    """The examples that name their file make up projects that compile without a finding."""
    tree: dict[str, str] = {}
    for page in PAGES:
        named = {
            found[1]: body
            for kind in ("yaml",)
            for at, body in blocks(kind)
            if at == page and (found := re.match(r"# (\S+\.yaml)\n", body))
        }
        tree |= named if page.name != "README.md" else {}
    tree["serve.d/toy/wrapper.sh.j2"] = next(body for _, body in blocks("jinja"))
    tree["configs/acme.json"] = '{"architectures": ["AcmeForCausalLM"], "dtype": "bfloat16"}'
    tree["specs/more.yaml"] = (
        "models:\n"
        "  acme: {checkpoint: acme/acme-7B, config: configs/acme.json, engine: vllm, "
        "image: 'vllm/vllm-openai:v0.29.0', hardware: H100-80G}\n"
        "  toy: {checkpoint: x/toy-1B, recipe: none, precision: bf16, engine: toy, "
        'engine_version: "1.0", hardware: H100-80G, targets: [bash]}\n'
    )
    result = servec.compile(tree=tree)
    assert [f"{item.span} {item.message}" for item in result.findings] == []
    assert {plan.name for plan in result.plans} == {"qwen3-8b", "acme", "toy"}
    wrapper = result.artifacts["toy/bash/serve.sh"].decode()
    assert "\n  --bind 0.0.0.0\n" in wrapper
    assert "\n    ulimit -n 65536\n    exec" in wrapper
