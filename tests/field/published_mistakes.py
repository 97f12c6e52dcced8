"""Published configurations that the version which they pin refuses: the parameters, values and
variables that are wrong in them, each read in the released package itself."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """What is wrong, why, and in which rows."""

    names: str
    why: str
    rows: str


NODES = "nnodes node_rank master_addr headless"
TOOLS = "enable_auto_tool_choice tool_call_parser"
MISTAKES = (
    Mistake(
        NODES,
        "vllm has several nodes of its own from 0.11.1 on; 0.6.2 and 0.11.0 are pinned",
        "recipes-3f16b2ff3d recipes-540713c774 recipes-89d3379b0c recipes-dde35f7a52 "
        "recipes-9c785d05e6 recipes-ad1bb44fc0 recipes-7f9e34c805 recipes-1f4f132b58 "
        "recipes-9224b0b54f recipes-09ecba1bd3",
    ),
    Mistake(
        f"{NODES} qwen3",
        "neither several nodes nor the parser of reasoning `qwen3` in vllm 0.8.5",
        "recipes-1b3def5b99",
    ),
    Mistake(
        "mm_encoder_tp_mode",
        "vllm has it from 0.10.2 on; 0.7.0 is pinned",
        "recipes-499af1a11a recipes-02e4a117b0 recipes-339e911cee",
    ),
    Mistake(
        "qwen3",
        "no parser of reasoning `qwen3` in vllm 0.8.5",
        "recipes-2e2f6133a1 recipes-0ce4eb5e49 recipes-b506afc7a8 recipes-fd01c405f0",
    ),
    Mistake(
        f"{TOOLS} ling3",
        "no parser `ling3` in vllm before 0.28.0; 0.25.0 is pinned",
        "recipes-07b74f215d recipes-41379034c0",
    ),
    Mistake(
        f"{TOOLS} muse_glimmer",
        "no parser `muse_glimmer` in vllm before 0.28.0; 0.27.0 is pinned",
        "recipes-0a1675dd76 recipes-94bbd7432e recipes-22c1f8b9e5 recipes-bb99550132",
    ),
    Mistake(
        f"{TOOLS} openai",
        "no parser of tool calls `openai` in vllm 0.10.0",
        "recipes-eada91c4ff recipes-1be12e2a6c recipes-5cec3478bf",
    ),
    Mistake(
        f"{TOOLS} glm47",
        "no parser of tool calls `glm47` in vllm before 0.14.0; 0.11.0 is pinned",
        "recipes-6452843ca9 recipes-b12c609f4d recipes-6605d4c990",
    ),
    Mistake(
        "speculative_config",
        "no key `draft_sample_method` in vllm before 0.21.0; 0.20.0 is pinned",
        "recipes-1947fff518 recipes-1ba466a7ac",
    ),
    Mistake(
        "gemma4",
        "no parsers `gemma4` in sglang 0.5.10",
        "sgl-cookbook-bb32c3d579 sgl-cookbook-5d5830f6ee sgl-cookbook-adccd88c8c "
        "sgl-cookbook-86469853f2 sgl-cookbook-2868e03e2e",
    ),
    Mistake("mimo", "no parser of tool calls `mimo` in sglang 0.5.6", "sgl-cookbook-e38e8c16ae"),
    Mistake(
        "nano_v3",
        "no parser of reasoning `nano_v3` in sglang 0.5.6",
        "sgl-cookbook-f8db2da83e sgl-cookbook-52817987e6 sgl-cookbook-466dbcba93 "
        "sgl-cookbook-e1cd66a06f sgl-cookbook-d1d821c701 sgl-cookbook-a44626a847 "
        "sgl-cookbook-14d842976c sgl-cookbook-2445fcd88e",
    ),
    Mistake(
        "nemotron_3",
        "no parser of reasoning `nemotron_3` in sglang 0.5.8",
        "sgl-cookbook-4cf50c7df5 sgl-cookbook-c9ba472cdc sgl-cookbook-ce6aa51497 "
        "sgl-cookbook-f3dffd7d19",
    ),
    Mistake(
        "VLLM_SERVER_DEV_MODE",
        "opens the server to anyone who reaches it; servec sets it for nobody",
        "srt-slurm-c23182f4b8 srt-slurm-c6f51fb5d4",
    ),
)
WRONG = {row: frozenset(each.names.split()) for each in MISTAKES for row in each.rows.split()}
