"""A model's facts, read from a mapping with the keys of a Hugging Face config.json.

    {"architectures": ["Qwen3ForCausalLM"], "torch_dtype": "bfloat16", …} -> Facts

Formulas: the size from dimensions counts embeddings, attention and feed-forward weights of a
decoder (EleutherAI, "Transformer Math 101", parameter counting); experts follow the rule of
transformers' MoE models (`decoder_sparse_step`, `mlp_only_layers`, `first_k_dense_replace`).
"""

from __future__ import annotations

import re

from servec.ir.facts import Facts
from servec.source.located import At, List, Map, Node, Plain, plain

SIZE_IN_NAME = re.compile(r"(?:\A|[-_/ ])([0-9]{1,5}(?:\.[0-9]{1,3})?)[bB](?=[-_/. ]|\Z)")
PRECISION_OF_DTYPE = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
MOST_LAYERS, MOST = 10_000, 10**15
"""Beyond these a configuration's number is a mistake, and counts as not known."""
FLOAT_METHODS = frozenset(("fp8", "fbgemm_fp8", "ptpc_fp8", "nvfp4", "modelopt_fp4"))
"""Methods whose weights are floating point though the configuration does not say so."""


def read_facts(checkpoint: str, config: Map | None, *, whole: bool = True) -> Facts:
    """The facts of a checkpoint, from its config where there is one, else from its name alone.

    In a whole config.json a missing dtype is float16, as the library that reads it decides; in a
    catalogue's entry, which may leave things out, it is not known.
    """
    billions, source = _size(checkpoint, config)
    if config is None:
        return Facts(None, billions, source, None, None, None)
    dtype = _dtype(config) or ("float16" if whole else None)
    return Facts(_architecture(config), billions, source, dtype, _precision(config, dtype), config)


def _architecture(config: Map) -> str | None:
    node = config.get("architectures")
    first = node.items[0] if isinstance(node, List) and node.items else None
    return first.value if isinstance(first, At) and isinstance(first.value, str) else None


def _size(checkpoint: str, config: Map | None) -> tuple[float | None, str]:
    named = _text(config, "_name_or_path") if config else None
    for name, source in ((named, "`_name_or_path`"), (checkpoint.rstrip("/"), "checkpoint name")):
        found = SIZE_IN_NAME.search(name.rpartition("/")[2]) if name else None
        if found:
            return float(found[1]), source
    if config is None:
        return None, ""
    counted = _integer(config, "parameters")
    if counted:
        return counted / 1e9, "parameter count"
    estimated = _estimated_parameters(config)
    return (estimated / 1e9, "dimensions") if estimated else (None, "")


def _estimated_parameters(config: Map) -> int | None:
    text = config.get("text_config")
    config = text if isinstance(text, Map) else config
    vocabulary, hidden = _integer(config, "vocab_size"), _integer(config, "hidden_size")
    layers, heads = _integer(config, "num_hidden_layers"), _integer(config, "num_attention_heads")
    if not (vocabulary and hidden and layers and heads) or layers > MOST_LAYERS:
        return None
    kv_heads = _integer(config, "num_key_value_heads") or heads
    head = _integer(config, "head_dim") or hidden // heads
    attention = 2 * hidden * heads * head + 2 * hidden * kv_heads * head
    embeddings = vocabulary * hidden * (1 if _flag(config, "tie_word_embeddings") else 2)
    return embeddings + layers * attention + _feed_forward(config, hidden, layers)


def _feed_forward(config: Map, hidden: int, layers: int) -> int:
    width = _integer(config, "intermediate_size") or 4 * hidden
    dense = 3 * hidden * width
    experts = next(
        (
            count
            for key in ("num_local_experts", "num_experts", "n_routed_experts")
            if (count := _integer(config, key))
        ),
        1,
    )
    if experts == 1:
        return layers * dense
    expert = 3 * hidden * (_integer(config, "moe_intermediate_size") or width)
    shared = _integer(config, "n_shared_experts") or 0
    sparse = expert * (experts + shared) + hidden * experts
    step = _integer(config, "decoder_sparse_step") or 1
    first_dense = _integer(config, "first_k_dense_replace") or 0
    only = config.get("mlp_only_layers")
    dense_layers = (
        {item.value for item in only.items if isinstance(item, At)}
        if isinstance(only, List)
        else set()
    )
    count = sum(
        layer < first_dense or layer in dense_layers or (layer + 1) % step != 0
        for layer in range(layers)
    )
    return count * dense + (layers - count) * sparse


def _dtype(config: Map) -> str | None:
    inner = config.get("text_config")
    for where in (config, inner):
        if isinstance(where, Map):
            named = _text(where, "torch_dtype") or _text(where, "dtype")
            if named:
                return named.removeprefix("torch.")
    return None


def _precision(config: Map, dtype: str | None) -> str | None:
    node = config.get("quantization_config")
    if not isinstance(node, Map):
        return PRECISION_OF_DTYPE.get(dtype or "")
    method = (_text(node, "quant_method") or "").lower()
    if not node.entries:
        return PRECISION_OF_DTYPE.get(dtype or "")
    if method == "mxfp4":
        return "mxfp4"
    algorithm = (_text(node, "quant_algo") or "").lower()
    bits, is_float = _weight_bits(node)
    is_float = is_float or method in FLOAT_METHODS or "fp" in algorithm
    if bits is None:
        bits = 4 if "4" in f"{method} {algorithm}" else 8 if is_float else None
    if bits == 8:
        return "fp8" if is_float else "int8"
    if bits == 4:
        return "fp4" if is_float else "int4"
    return None


def _weight_bits(quantization: Map) -> tuple[int | None, bool]:
    """Bits of a weight and whether they are a float, as the methods spell it."""
    for key in ("bits", "nbits", "w_bit", "weight_bits"):
        if bits := _integer(quantization, key):
            return bits, False
    named = re.fullmatch(r"(u?int|float)([0-9]{1,2})", _text(quantization, "weights") or "")
    if named:
        return int(named[2]), named[1] == "float"
    groups = quantization.get("config_groups")
    for entry in groups.entries.values() if isinstance(groups, Map) else ():
        weights = entry.value.get("weights") if isinstance(entry.value, Map) else None
        if isinstance(weights, Map) and (bits := _integer(weights, "num_bits")):
            return bits, _text(weights, "type") == "float"
    if _flag(quantization, "load_in_4bit"):
        return 4, False
    if _flag(quantization, "load_in_8bit"):
        return 8, False
    return None, False


def _value(config: Map, key: str) -> Plain:
    node: Node | None = config.get(key)
    return plain(node) if node is not None else None


def _text(config: Map, key: str) -> str | None:
    value = _value(config, key)
    return value if isinstance(value, str) else None


def _integer(config: Map, key: str) -> int | None:
    value = _value(config, key)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value < MOST else None  # type: ignore[operator, return-value]


def _flag(config: Map, key: str) -> bool:
    return _value(config, key) is True
