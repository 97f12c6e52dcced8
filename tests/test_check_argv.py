"""servec.check_argv: what the words of a command are at a version, and what it refuses to judge."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import servec
from packaging.version import Version
from servec.catalog.versions import parse_range
from servec.diag import codes
from servec.diag.findings import Severity


def test_words_given_to_the_function_are_judged_without_a_shell() -> None:
    argv = ["vllm", "serve", "m", "--max-model-len", "8k", "--bogus", "$(touch x)", "--seed", "5"]
    found = servec.check_argv("vllm", argv, version="0.29.0")
    assert [str(item.code) for item in found] == ["SV0615"]
    deep = '{"a":' * 50_000
    servec.check_argv("vllm", ["vllm", "serve", "m", "--hf-overrides", deep], version="0.29.0")
    with pytest.raises(servec.UnknownEngine):
        servec.check_argv("vlm", [])


@pytest.mark.parametrize(
    ("version", "words", "is_taken"),
    [
        ("0.29.0", "--lora-modules a=b c=d", True),
        ("0.29.0", """--lora-modules '{"name": "a", "path": "b"}'""", True),
        ("0.29.0", "--lora-modules a", False),
        ("0.29.0", "--lora-modules a=b c", False),
        ("0.29.0", """--lora-modules '{"name": "a"}'""", False),
        ("0.29.0", """--lora-modules '{"name": "a", "path": "b", "paht": "c"}'""", False),
        ("0.8.4", """--limit-mm-per-prompt '{"image": 4}'""", False),
        ("0.8.5", """--limit-mm-per-prompt '{"image": 4}'""", True),
        ("0.8.4", "--limit-mm-per-prompt image=4,audio=2", True),
        ("0.8.4", "--limit-mm-per-prompt image=many", False),
        ("0.8.4", "-O.level=3", False),
        ("0.12.0", "-O.level=3", True),
        ("0.29.0", "-O3", True),
        ("0.29.0", "-O 3", True),
        ("0.29.0", "-O=3", True),
        ("0.29.0", "-O '{}'", False),
        ("0.29.0", "--help=ModelConfig", True),
        ("0.8.4", "--help=ModelConfig", False),
        ("0.29.0", "--eplb-config.window_size 1k", True),
        ("0.12.0", "--eplb-config.window_size 1k", False),
    ],
)
def test_a_value_is_taken_where_the_release_takes_it(
    version: str, words: str, is_taken: bool
) -> None:
    argv = ["vllm", "serve", "m", *shlex.split(words)]
    found = servec.check_argv("vllm", argv, version=version)
    assert [item.message for item in found if item.severity is Severity.ERROR][:1] == (
        [] if is_taken else [found[0].message]
    )


def test_a_short_word_that_wants_a_number_is_told_so() -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m", "-O", "{}"], version="0.29.0")
    assert found.message == "vllm 0.29.0 has no flag `-O` without a number"
    assert found.help == "write `-O2`, or `--optimization-level`"


@pytest.mark.parametrize("argv", ["vllm serve m", b"vllm", ["vllm", b"serve"], ["vllm", 5], None])
def test_what_are_no_words_is_a_type_error(argv: Any) -> None:
    with pytest.raises(TypeError, match="`argv`"):
        servec.check_argv("vllm", argv, version="0.29.0")


@pytest.mark.parametrize(
    "named", [{"engine": ["vllm"]}, {"version": 29}, {"version": Version("1")}, {"image": b"x"}]
)
def test_what_is_no_text_is_a_type_error(named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"`{next(iter(named))}` is a str"):
        servec.check_argv(**{"engine": "vllm", "argv": ["vllm", "serve", "m"], **named})


@pytest.mark.parametrize("version", ["9" * 5000, "0." + "1" * 5000, "1!" + "2" * 5000, "0.1\n\0"])
def test_a_version_that_python_cannot_read_is_no_version(version: str) -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m"], version=version)
    assert found.code is codes.BAD_VERSION
    assert parse_range(f">={version}") is None


@pytest.mark.parametrize(
    ("version", "apart", "tied"),
    [
        ("0.8.2", True, True),
        ("0.8.3", True, False),
        ("0.11.0", True, False),
        ("0.11.1", False, False),
    ],
)
def test_a_program_may_refuse_a_flag_that_its_parser_has(
    version: str, apart: bool, tied: bool
) -> None:
    def is_refused(*argv: str) -> bool:
        codes = [item.code.number for item in servec.check_argv("vllm", argv, version=version)]
        assert codes in ([], ["SV0615"])
        return bool(codes)

    assert is_refused("vllm", "serve", "--model", "m") is apart
    assert is_refused("vllm", "serve", "--model=m") is tied
    assert not is_refused("vllm", "serve", "m")
    assert not is_refused("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m")


def test_a_flag_that_is_only_there_to_be_refused_is_an_error() -> None:
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--enable-ep-moe"]
    (old,) = servec.check_argv("sglang", argv, version="0.5.2")
    (refused,) = servec.check_argv("sglang", argv, version="0.5.3.post3")
    assert (old.code.number, old.severity) == ("SV0619", Severity.WARNING)
    assert (refused.code.number, refused.severity) == ("SV0615", Severity.ERROR)
    assert (refused.message, refused.help) == (
        "sglang 0.5.3.post3 has no flag `--enable-ep-moe`: it was removed",
        "use `--ep-size`",
    )
    (between,) = servec.check_argv("sglang", argv, version="0.5.3")  # no release of the catalogue
    assert (between.code.number, between.severity) == ("SV0619", Severity.WARNING)


def test_a_version_that_is_none_is_a_finding() -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m"], version="nonsense")
    assert found.message == "`nonsense` is not a version of PEP 440"


def test_the_history_of_a_flag_that_came_back_is_said() -> None:
    argv = ["vllm", "serve", "m", "--disable-log-requests"]
    (found,) = servec.check_argv("vllm", argv, version="0.20.0")
    assert found.message == (
        "vllm 0.20.0 has no flag `--disable-log-requests`; "
        "it is there until 0.16.0 and since 0.33.0"
    )


DRAFT = '{"model":"x","num_speculative_tokens":1}'
NGRAM = '{"method":"ngram","num_speculative_tokens":1,"prompt_lookup_max":2}'


@pytest.mark.parametrize(
    ("version", "words", "says"),
    [
        ("0.7.0", "--pipeline-parallel-size 3 --speculative-model x", "drafts on one stage"),
        ("0.8.5", f"-pp 2 --speculative-config {DRAFT}", "drafts on one stage"),
        ("0.8.5", f"-pp 1 --speculative-config {DRAFT}", ""),
        ("0.8.5", f"-pp 2 --distributed-executor-backend ray --speculative-config {NGRAM}", ""),
        ("0.9.1", f"-pp 2 --speculative-config {NGRAM}", ""),
        ("0.9.2", '-pp 2 --speculative-config {"method":"draft_model"}', "drafts on one stage"),
        ("0.24.0", "--max-num-batched-tokens 128 --max-num-seqs 256", "has a token"),
        ("0.24.0", "--max-num-batched-tokens 256 --max-num-seqs 256", ""),
        (
            "0.24.0",
            "--no-enable-chunked-prefill --max-num-batched-tokens 8k --max-model-len 128k",
            "a prompt is one batch",
        ),
        (
            "0.24.0",
            "--no-enable-chunked-prefill --max-num-batched-tokens 8K --max-model-len 8k",
            "",
        ),
        ("0.24.0", "--max-num-batched-tokens 8k --max-model-len 128k", ""),
        ("0.11.0", "--quantization awq --dtype bfloat16", "computes in float16"),
        ("0.11.0", "--quantization awq --dtype half", ""),
        ("0.24.0", "--quantization awq --dtype bfloat16", ""),
        ("0.24.0", "--quantization awq --dtype float32", "float16 or bfloat16"),
        ("0.21.0", "--quantization gptq --dtype bfloat16", "computes in float16"),
        ("0.22.0", "--quantization gptq --dtype bfloat16", ""),
        ("0.11.0", "--quantization fp8 --dtype float32", "float16 or bfloat16"),
        ("0.11.0", "--quantization fp8 --dtype bfloat16", ""),
        ("0.11.0", "--quantization mxfp4 --dtype half", "computes in bfloat16"),
        ("0.12.0", "--master-port 8000 --port 8000", "where nodes meet"),
        ("0.12.0", "--master-port 8001 --port 8000", ""),
        ("0.29.0", "--gpu-memory-utilization 1.5", "a share of the GPU's memory"),
        ("0.29.0", "--gpu-memory-utilization 1", ""),
        ("0.29.0", "--max-num-seqs 0", "is below 1"),
        ("0.29.0", "--max-model-len -5", "is negative"),
        ("0.29.0", "--max-model-len -1", ""),
    ],
)
def test_what_a_server_refuses_when_it_starts_is_told(version: str, words: str, says: str) -> None:
    found = servec.check_argv("vllm", ["vllm", "serve", "m", *words.split()], version=version)
    told = [item.message for item in found if item.code is codes.CONTRADICTION]
    assert len(told) == bool(says)
    assert all(says in message for message in told)


@pytest.mark.parametrize(
    ("version", "words", "help_"),
    [
        ("0.13.0", ["--task=embed"], "use `--runner pooling --convert embed`"),
        ("0.13.0", ["--task", "embed"], "use `--runner pooling --convert embed`"),
        ("0.13.0", ["--task", "transcription"], "use `--runner` and `--convert`"),
        ("0.20.0", ["--disable-log-requests"], "use `--no-enable-log-requests`"),
        ("0.9.0", ["--no-enable-log-requests"], "use `--disable-log-requests`"),
        ("0.12.0", ["--guided-decoding-backend", "xgrammar"], "use `--structured-outputs-config`"),
        ("0.20.2", ["--cuda-graph-sizes", "1"], "use `--cudagraph-capture-sizes`"),
        ("0.10.0", ["--enable-reasoning"], "use `--reasoning-parser`"),
        ("0.6.6.post1", ["--enable-reasoning"], "take it out, or take another version"),
    ],
)
def test_a_flag_of_another_name_is_told_with_it(version: str, words: list[str], help_: str) -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m", *words], version=version)
    assert (found.code, found.help) == (codes.UNKNOWN_FLAG, help_)


@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        ("--enable-ep-moe --tp-size 8 --ep-size 4", True),
        ("--enable-ep-moe --tp-size 8 --ep-size 8", False),
        ("--enable-deepep-moe --moe-a2a-backend none", True),
        ("--enable-deepep-moe --moe-a2a-backend deepep", False),
        ("--port 3000 --nccl-port 3000", True),
    ],
)
def test_an_older_switch_beside_the_flag_that_took_its_place(words: str, is_told: bool) -> None:
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "m", *words.split()]
    found = servec.check_argv("sglang", argv, version="0.5.2")
    assert (codes.CONTRADICTION in [item.code for item in found]) is is_told


def test_what_is_no_server_of_the_engine_is_told_as_unchecked() -> None:
    for words in (["vllm", "nope", "m"], ["bash", "-c", "vllm serve m"], []):
        (found,) = servec.check_argv("vllm", words, version="0.29.0")
        assert (found.code, found.severity) == (codes.NOT_CHECKED, Severity.WARNING)


def test_a_word_with_a_nul_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="NUL"):
        servec.check_argv("vllm", ["vllm", "serve", "m\0"], version="0.29.0")


def test_the_image_of_another_engine_tells_no_version() -> None:
    argv = ["vllm", "serve", "m", "--foo"]
    (found,) = servec.check_argv("vllm", argv, image="lmsysorg/sglang:v0.5.0")
    assert found.severity is Severity.NOTE


def test_an_empty_value_is_called_so() -> None:
    (found,) = servec.check_argv("vllm", ["vllm", "serve", "m", "--port", ""], version="0.29.0")
    assert found.message.endswith("not an empty word")
