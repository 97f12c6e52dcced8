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


MOST_GPUS = 1024
"""No advice goes beyond it."""
OTHERWISE = {codes.BLOCK_NOT_DIVISIBLE: "take other weights"}
"""What to do where no smaller tp helps."""
CAPABILITY = re.compile(r"\s*([0-9]+)\.([0-9]+)\s*\Z")
Problem = tuple[Code, tuple[tuple[str, object], ...]]


def capability(text: str) -> tuple[int, int] | None:
    """A compute capability, as 9.0, or None where it cannot be read."""
    found = CAPABILITY.match(text)
    return (int(found[1]), int(found[2])) if found else None


def problems(config: Map, split: Split) -> Iterator[Problem]:
    """Everything that does not divide, each with the arguments of its message: the sizes that it
    advises divide everything, or at least what it tells of."""
    found = list(_found(config, split))
    if not found:
        return
    sizes = range(1, min(split.attention, MOST_GPUS + 1))
    left = {size: {code for code, _ in _found(config, _resized(split, size))} for size in sizes}
    for code, arguments in found:
        fits = [size for size in sizes if not left[size]]
        fits = fits or [size for size in sizes if code not in left[size]]
        advice = f"take tp {_choice(fits)}" if fits else OTHERWISE.get(code, "")
        if code is codes.EXPERTS_NOT_DIVISIBLE and not fits:
            advice = f"spread them over {_choice(_divisors(config, split))}"
        yield code, (*arguments, ("advice", advice))


def _resized(split: Split, tp: int) -> Split:
    """The split at another tp: what is cut over a multiple of tp follows it, and the GPUs of an
    expert are what the experts leave."""

    def follow(parts: int | None) -> int | None:
        return parts if parts is None or parts % split.attention else parts // split.attention * tp

    experts, expert = follow(split.experts), follow(split.expert)
    if split.experts and experts and split.expert:
        expert = max(1, split.expert * tp * split.experts // (split.attention * experts))
    return Split(tp, follow(split.dense), expert, experts)


def _found(config: Map, split: Split) -> Iterator[Problem]:
    yield from _heads(config, split.attention)
    yield from _experts(config, split.experts)
    yield from _blocks(config, split)


def _heads(config: Map, parts: int) -> Iterator[Problem]:
    heads, kv_heads = _whole(config, "num_attention_heads"), _whole(config, "num_key_value_heads")
    problem = ""
    if heads and heads % parts:
        problem = f"{heads} attention heads cannot be split over tp {parts}"
    elif kv_heads and kv_heads % parts and parts % kv_heads:
        problem = f"{kv_heads} KV heads can be neither split over tp {parts} nor repeated evenly"
    if problem:
        yield codes.HEADS_NOT_DIVISIBLE, (("problem", problem),)


def _choice(sizes: list[int]) -> str:
    """The largest of sizes that fit: `4`, `2 or 4`, `1, 2 or 4`."""
    *others, last = map(str, sizes[-4:])
    return f"{', '.join(others)} or {last}" if others else last


def _experts(config: Map, parts: int | None) -> Iterator[Problem]:
    experts = _count_of_experts(config)
    if experts and parts and experts % parts:
        yield codes.EXPERTS_NOT_DIVISIBLE, (("experts", experts), ("parts", parts))


def _divisors(config: Map, split: Split) -> list[int]:
    """The numbers of GPUs over which the experts can be spread, fewer than they are now."""
    experts = _count_of_experts(config) or 1
    most = min(split.experts or 1, MOST_GPUS + 1)
    return [size for size in range(1, most) if experts % size == 0]


def _count_of_experts(config: Map) -> int | None:
    return next((count for key in EXPERTS if (count := _whole(config, key))), None)


def _blocks(config: Map, split: Split) -> Iterator[Problem]:
    """Widths that are cut into pieces smaller than, or across, a block of the quantization."""
    block = _block(config)
    for width, total, parts in _widths(config, split) if block else ():
        if parts > 1 and (total % parts or total // parts % block):
            yield (
                codes.BLOCK_NOT_DIVISIBLE,
                (
                    ("width", width),
                    ("total", total),
                    ("parts", parts),
                    ("part", f"{total / parts:g}"),
                    ("block", block),
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
