"""Rows of recipes: layers, matches by family and size, product strings, model configurations."""

from __future__ import annotations

import math
from typing import Any

from servec.catalog.recipes import family_word
from servec.ir.setting import Rank

from tests.field.project import compile_models, differ, errors, parameters
from tests.field.rows import Row

EXEMPT: dict[str, str] = {}
ARCHITECTURES = {
    "qwen3": "Qwen3ForCausalLM",
    "qwen2.5": "Qwen2ForCausalLM",
    "gpt-oss": "GptOssForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "llama": "LlamaForCausalLM",
}


def check(row: Row) -> list[str]:
    return CHECKS[row["kind"]](row["inputs"], row["expect"])


def _layers(inputs: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    model = {
        "checkpoint": "/models/x",
        "engine": inputs["framework"],
        "hardware": inputs["hardware_key"],
        "precision": inputs["precision"],
        "recipe": inputs["recipe"],
        "type": inputs["model_type"],
        "topology": {"tp": 1},
    }
    result = compile_models({"m": model})
    if not result.ok:
        return errors(result)
    plan = result.plans[0]
    recipe = plan.subject.recipe
    tested = {
        item.key.value: [text.value for text in item.value] for item in recipe.tested_versions
    }
    layers = {Rank.HARDWARE: [], Rank.CAPABILITY: []}
    for setting in plan.settings:
        for definition, _ in setting.history:
            if definition.rank in layers:
                layers[definition.rank].append([definition.name, definition.written])
    return [
        *differ("hardware layer", expect["hardware_layer"], layers[Rank.HARDWARE]),
        *differ("capability layer", expect["capability_layer"], layers[Rank.CAPABILITY]),
        *differ("merged", expect["merged"], parameters(plan)),
        *differ(
            "size range", expect["size_range"], [float(size.value) for size in recipe.size_range]
        ),
        *differ("tested versions", expect["tested_versions"], tested),
    ]


def _match(inputs: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    family, billions = inputs["family"], inputs["param_billions"]
    architecture = ARCHITECTURES.get(family, f"{family.title()}ForCausalLM")
    name = family if family == "qwen2.5" else "model"  # only there the name tells the family
    config = {
        "architectures": [architecture],
        "torch_dtype": "bfloat16",
        "_name_or_path": f"{name}-{billions}B",
    }
    model = {"checkpoint": "/models/x", "engine": "vllm", "hardware": "H200-141G"}
    result = compile_models({"m": model}, configs={"/models/x": config})
    recipe = result.plans[0].subject.recipe.name.value if result.plans else None
    codes = {finding.code.number for finding in result.findings}
    problems = differ("recipe", expect["recipe"], recipe)
    if recipe is None and not codes & {"SV0303", "SV0304"}:
        problems.append(f"no recipe for another reason: {errors(result)}")
    return problems


def _gpu(inputs: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    model = {
        "checkpoint": "/models/x-1B",
        "engine": "vllm",
        "hardware": inputs["gpu_model"],
        "precision": "bf16",
        "recipe": "none",
    }
    result = compile_models({"m": model})
    key = result.plans[0].subject.accelerator.name.value if result.plans else None
    return differ("key", expect["hardware_key"], key if key in inputs["hardware_keys"] else None)


def _introspect(inputs: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    checkpoint, config = inputs["checkpoint"], inputs["config_json"]
    if not expect["ok"]:
        model = {"checkpoint": checkpoint, "engine": "vllm", "hardware": "H200-141G"}
        refused = errors(compile_models({"m": model}, configs={checkpoint: config}))
        return [] if refused else ["no error, and the row has one"]
    problems: list[str] = []
    for name, mib in inputs["gpu_memory_mib"].items():
        accelerator = f"CASE-{name.upper()}-1G"
        catalogue = f"{accelerator}: {{vendor: nvidia, nominal_gb: 1, driver_total_mib: {mib}}}\n"
        model = {
            "checkpoint": checkpoint,
            "engine": "vllm",
            "hardware": accelerator,
            "gpus": 1024,
            "recipe": "none",
        }
        result = compile_models(
            {"m": model},
            configs={checkpoint: config},
            files={"catalogs/accelerators.yaml": catalogue},
        )
        if not result.plans:
            return errors(result)
        plan = result.plans[0]
        problems += differ(f"tp on {name}", expect[f"formula_tp[{name}]"], plan.topology.tp)
    facts = plan.subject.facts
    family = _family(checkpoint, config)
    size = facts.billions or 0.0
    # A size that is estimated from dimensions may differ by 5 %.
    slack = 0.05 if facts.size_source == "dimensions" else 0.0
    wanted = expect["param_billions"]
    if not math.isclose(size, wanted) and abs(size - wanted) > slack * wanted:
        problems.append(f"size: expected {expect['param_billions']}, found {size}")
    return [
        *problems,
        *differ("architecture", expect["architecture"], facts.architecture),
        *differ("family", expect["family"], family),
        *differ("dtype", expect["dtype"], facts.dtype),
        *differ("bytes", expect["bytes_per_param"], facts.bytes_per_parameter),
        *differ("precision", expect["precision_key"], facts.precision),
        *(differ("bits", expect["bits"], _bits(facts.precision)) if expect["bits"] else []),
    ]


def _bits(precision: str | None) -> int | None:
    digits = "".join(character for character in precision or "" if character.isdigit())
    return int(digits) if digits else None


def _family(checkpoint: str, config: dict[str, Any]) -> str:
    """The family that servec finds, by what it says or by the recipe that it takes."""
    model = {"checkpoint": checkpoint, "engine": "vllm", "hardware": "H200-141G", "gpus": 1024}
    result = compile_models({"m": model}, configs={checkpoint: config})
    for plan in result.plans:
        return str(plan.subject.recipe_choice.split(",")[0].removeprefix("family "))
    for finding in result.findings:
        if finding.code.number == "SV0303":
            return str(dict(finding.arguments)["family"])
    return family_word(config["architectures"][0])


CHECKS = {"layers": _layers, "match": _match, "gpu": _gpu, "introspect": _introspect}
