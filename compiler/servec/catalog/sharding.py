"""What of a model is cut over GPUs, from the keys of its config.json, and what does not divide.

{num_attention_heads: 32, num_key_value_heads: 8}, tp 3 -> 32 heads cannot be split over 3
{moe_intermediate_size: 3072, quantization_config: {weight_block_size: [128, 128]}}, tp 16
    -> 3072 ÷ 16 = 192, which is not a multiple of 128

Rules: vllm/config/model.py `verify_with_parallel_config` (heads), the fp8 methods'
`validate_fp8_block_shape` (blocks), of vllm 0.6.6 to 0.33.0; read 2026-11-30. A fact that is not
there is no reason to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from servec.diag import codes
from servec.diag.findings import Code
from servec.source.located import At, List, Map

EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


@dataclass(frozen=True, slots=True)
class Split:
    """Over how many GPUs a copy of the model is cut: its attention, its dense layers and shared
    experts, each expert, and the set of experts. None is not known."""

    attention: int
    dense: int | None
    expert: int | None
    experts: int | None


CAPABILITY = re.compile(r"\s*([0-9]+)\.([0-9]+)\s*\Z")
Problem = tuple[Code, tuple[tuple[str, object], ...]]


def capability(text: str) -> tuple[int, int] | None:
    """A compute capability, as 9.0, or None where it cannot be read."""
    found = CAPABILITY.match(text)
    return (int(found[1]), int(found[2])) if found else None


def problems(config: Map, split: Split) -> Iterator[Problem]:
    """Everything that does not divide, each with the arguments of its message."""
    yield from _heads(config, split.attention)
    yield from _experts(config, split.experts)
    yield from _blocks(config, split)


def _heads(config: Map, parts: int) -> Iterator[Problem]:
    heads, kv_heads = _whole(config, "num_attention_heads"), _whole(config, "num_key_value_heads")
    fits = [size for size in range(1, parts) if _divide(heads, kv_heads, size)]
    advice = f"take tp {_choice(fits)}" if fits else ""
    if heads and heads % parts:
        problem = f"{heads} attention heads cannot be split over tp {parts}"
        yield codes.HEADS_NOT_DIVISIBLE, (("problem", problem), ("advice", advice))
    elif kv_heads and kv_heads % parts and parts % kv_heads:
        problem = f"{kv_heads} KV heads can be neither split over tp {parts} nor repeated evenly"
        yield codes.HEADS_NOT_DIVISIBLE, (("problem", problem), ("advice", advice))


def _choice(sizes: list[int]) -> str:
    """The largest of sizes that fit: `4`, `2 or 4`, `1, 2 or 4`."""
    *others, last = map(str, sizes[-4:])
    return f"{', '.join(others)} or {last}" if others else last


def _divide(heads: int | None, kv_heads: int | None, parts: int) -> bool:
    kv_fits = kv_heads is None or kv_heads % parts == 0 or parts % kv_heads == 0
    return (heads is None or heads % parts == 0) and kv_fits


def _experts(config: Map, parts: int | None) -> Iterator[Problem]:
    experts = _count_of_experts(config)
    if experts and parts and experts % parts:
        fits = [size for size in range(1, parts) if experts % size == 0]
        yield (
            codes.EXPERTS_NOT_DIVISIBLE,
            (
                ("experts", experts),
                ("parts", parts),
                ("advice", f"spread them over {_choice(fits)}"),
            ),
        )


def _count_of_experts(config: Map) -> int | None:
    return next((count for key in EXPERTS if (count := _whole(config, key))), None)


def _blocks(config: Map, split: Split) -> Iterator[Problem]:
    """Widths that are cut into pieces smaller than, or across, a block of the quantization."""
    block = _block(config)
    for width, total, parts in _widths(config, split) if block else ():
        if parts > 1 and (total % parts or total // parts % block):
            heads, kv_heads = (
                _whole(config, key) for key in ("num_attention_heads", "num_key_value_heads")
            )
            fits = [
                size
                for size in range(1, parts)
                if total % (size * block) == 0 and _divide(heads, kv_heads, size)
            ]
            yield (
                codes.BLOCK_NOT_DIVISIBLE,
                (
                    ("width", width),
                    ("total", total),
                    ("parts", parts),
                    ("part", f"{total / parts:g}"),
                    ("block", block),
                    ("advice", f"take tp {fits[-1]}" if fits else "take other weights"),
                ),
            )


def _block(config: Map) -> int:
    """The side of a quantized block; 0 where the weights have none, or it is not known."""
    found = config.get("quantization_config")
    size = found.get("weight_block_size") if isinstance(found, Map) else None
    items = size.items if isinstance(size, List) else ()
    sides = [item.value for item in items if isinstance(item, At) and isinstance(item.value, int)]
    return max(sides, default=0)


def _widths(config: Map, split: Split) -> Iterator[tuple[str, int, int]]:
    """Each width that is cut: its key, its size, and over how many GPUs."""
    dense, expert = _whole(config, "intermediate_size"), _whole(config, "moe_intermediate_size")
    shared, several = (
        _whole(config, "shared_expert_intermediate_size"),
        _whole(config, "n_shared_experts"),
    )
    if _count_of_experts(config) and split.expert and (size := expert or dense):
        yield ("moe_intermediate_size" if expert else "intermediate_size"), size, split.expert
    if split.dense is None:
        return
    if shared:
        yield "shared_expert_intermediate_size", shared, split.dense
    elif several and expert and _count_of_experts(config):
        yield "the shared experts' width", several * expert, split.dense
    if dense and (not _count_of_experts(config) or _has_dense_layers(config)):
        yield "intermediate_size", dense, split.dense


def _has_dense_layers(config: Map) -> bool:
    only = config.get("mlp_only_layers")
    listed = isinstance(only, List) and bool(only.items)
    return listed or bool(_whole(config, "first_k_dense_replace"))


def _whole(config: Map, key: str) -> int | None:
    """A positive whole number, of the config or of the text model inside it."""
    inner = config.get("text_config")
    for where in (config, inner):
        node = where.get(key) if isinstance(where, Map) else None
        value = node.value if isinstance(node, At) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
