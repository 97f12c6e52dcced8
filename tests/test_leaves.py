"""Every leaf of every shipped recipe, for both model types, through the public function.

The plans come to one infer_plans.yaml that is kept in tests/leaves/: a change of a recipe shows
there, and a change of a recipe's layout alone must not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import servec
from servec.catalog.catalog import Catalog
from servec.diag.findings import Findings
from servec.source.files import Files, Memory

KEPT = Path(__file__).parent / "leaves" / "infer_plans.yaml"
TYPES = ("chat", "gen")


def leaves() -> list[tuple[str, str, str, str]]:
    """Recipe, accelerator, precision and engine of every leaf."""
    findings = Findings()
    table = Catalog(Files(Memory({}), findings), findings).recipes
    assert not findings.show()
    return [
        (name, accelerator.key.value, precision.key.value, engine.key.value)
        for name, recipe in sorted(table.by_name.items())
        for accelerator in recipe.hardware
        for precision in accelerator.value
        for engine in precision.value
    ]


def spec() -> str:
    lines = ["models:"]
    for recipe, accelerator, precision, engine in leaves():
        for kind in TYPES:
            name = f"{recipe}-{accelerator}-{precision}-{engine}-{kind}".lower().replace(".", "-")
            lines.append(
                f"  {name}: {{checkpoint: /models/x, recipe: {recipe}, hardware: {accelerator}, "
                f"precision: {precision}, engine: {engine}, type: {kind}, topology: {{tp: 1}}}}"
            )
    return "\n".join(lines) + "\n"


def test_there_are_168_leaves() -> None:
    assert len(leaves()) == 168


def test_infer_plans_of_all_leaves(blessing: bool) -> None:
    result = servec.compile(tree={"servec.yaml": "targets: [bash]\n", "specs/all.yaml": spec()})
    assert result.ok
    assert len(result.plans) == 2 * 168
    text = result.artifacts["infer_plans.yaml"]
    if blessing:
        KEPT.write_bytes(text)
    assert text == KEPT.read_bytes()


FLAT = """
_family: own
own-8b:
  size_range: [6, 12]
  hardware:
    H100-80G: {bf16: {vllm: {dtype: bfloat16, max_model_len: 32768, reasoning_parser: qwen3}}}
  capabilities:
    instruct: {vllm: {tool_call_parser: hermes}}
"""
MOVED = """
# The same parameters: one moved to the other layer, keys spelled with dashes, blocks spread out.
_family: own
_architectures: [OwnForCausalLM]
own-8b:
  capabilities:
    base: {vllm: {}}
    instruct:
      vllm:
        reasoning-parser: "qwen3"
        tool-call-parser: hermes
  known_issues: ["none that matter"]
  hardware:
    H100-80G:
      bf16:
        vllm:
          dtype: bfloat16
          max-model-len: 0x8000
  size_range: [6, 12]
"""


@pytest.mark.parametrize("recipe", [FLAT, MOVED])
def test_layout_moves_no_byte(recipe: str) -> None:
    model = "{checkpoint: /m, recipe: own-8b, engine: vllm, hardware: H100-80G, precision: bf16"
    tree = {
        "servec.yaml": "targets: [bash]\n",
        "recipes/own.yaml": recipe,
        "specs/a.yaml": f"models: {{m: {model}, topology: {{tp: 1}}}}}}\n",
    }
    text = servec.compile(tree=tree).artifacts["infer_plans.yaml"].decode()
    parameters = text.split("engine_params:\n")[1].split("      scaling")[0]
    assert parameters == (
        "        dtype: bfloat16\n"
        "        max_model_len: 32768\n"
        "        reasoning_parser: qwen3\n"
        "        tool_call_parser: hermes\n"
    )
    assert "serving_requirements" not in text
    assert "own-8b" not in text
