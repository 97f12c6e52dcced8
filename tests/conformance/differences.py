"""The differences between servec and released parsers that are meant, each with its reason."""

from __future__ import annotations

from typing import NamedTuple

TAKES, REFUSES = "takes", "refuses"


class Named(NamedTuple):
    """Differences of one reason: what servec says of these flags in these ways of use, at these
    versions; of all where none are said. Of a special command line the flag is all its words."""

    engine: str
    servec: str
    reason: str
    flags: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    def has(self, engine: str, version: str, servec: str, flag: str, what: str) -> bool:
        """Whether a difference is one of these."""
        return (engine, servec) == (self.engine, self.servec) and all(
            not known or item in known
            for known, item in (
                (self.flags, flag),
                (self.ways, what),
                (self.versions, version),
            )
        )


ILLEGAL = ("a negative number", "an empty value", "not of its type", "a broken number", "None")
NAMED = (
    Named(
        "vllm",
        REFUSES,
        "`vllm serve` refuses it before its parser, which alone is asked here, sees it",
        ("--model",),
        ("a legal value", "a tied value", "a negative number", "an empty value"),
        ("0.6.6.post1", "0.8.5.post1", "0.10.2"),
    ),
    Named(
        "vllm",
        REFUSES,
        "refused too, by a check right behind the parser",
        ("--enable-auto-tool-choice", "--enable-reasoning"),
        ("switch", "underscores", "cut short"),
    ),
    Named(
        "vllm",
        REFUSES,
        "the parser takes any JSON; the engine refuses unknown keys when it starts",
        ("--speculative-config",),
        ("a legal value", "another spelling", "a tied value", "underscores", "cut short"),
    ),
    Named(
        "vllm",
        REFUSES,
        "these releases drop an unknown key without a word, so the setting would not hold",
        (
            "--compilation-config",
            "--ec-transfer-config",
            "--eplb-config",
            "--kv-events-config",
            "--kv-transfer-config",
            "--pooler-config",
            "--structured-outputs-config",
        ),
        ("a key that is none",),
        ("0.10.2", "0.12.0"),
    ),
    Named(
        "vllm",
        TAKES,
        "the parser reads the file that the flag names, and servec reads no file",
        ("--config",),
        ("a negative number", "an empty value"),
    ),
    Named(
        "vllm",
        TAKES,
        "the flag's action reads the value, and the catalogue knows no form of it",
        (
            "--lora-modules",
            "--prompt-adapters",
            "--enable-chunked-prefill",
            "--multi-step-stream-outputs",
            "--disable-logprobs-during-spec-decoding",
        ),
        ILLEGAL,
    ),
    Named(
        "vllm",
        TAKES,
        "the type is a function of the release, of which the catalogue knows the name alone",
        (
            "--compilation-config",
            "--kv-transfer-config",
            "--override-pooler-config",
            "--limit-mm-per-prompt",
            "--model-loader-extra-config",
            "--tokenizer-pool-extra-config",
        ),
        ILLEGAL,
        ("0.6.6.post1", "0.8.5.post1"),
    ),
    Named(
        "vllm",
        TAKES,
        "a key behind `-O.` before keys were taken so: the value is read by the release's function",
        ("-O.level=3",),
        ("special",),
        ("0.6.6.post1", "0.8.5.post1"),
    ),
    Named(
        "vllm",
        REFUSES,
        "the old short name with a key, which the parser rewrites; servec advises the flag's name",
        ("-O.level=3",),
        ("special",),
    ),
    Named(
        "vllm",
        TAKES,
        "the release checks several keys together, or the form of a text, behind their types",
        (
            "--attention-config.backend_per_kind",
            "--compilation-config.custom_ops",
            "--compilation-config.inductor_passes",
            "--ec-manager-config.manager_config",
            "--eplb-config.communicator",
            "--kernel-config.linear_backend_per_quant",
            "--profiler-config.capture_torch_profiler",
            "--profiler-config.profiler",
            "--profiler-config.proton_backend",
            "--profiler-config.proton_context",
            "--profiler-config.proton_data",
            "--profiler-config.proton_graph_attribution",
            "--profiler-config.proton_hook",
            "--profiler-config.proton_mode",
            "--profiler-config.proton_output_format",
            "--profiler-config.proton_profiler_dir",
            "--profiler-config.torch_profiler_activities",
            "--profiler-config.torch_profiler_dir",
            "--structured-outputs-config.disable_additional_properties",
            "--structured-outputs-config.disable_any_whitespace",
            "--structured-outputs-config.reasoning_parser",
        ),
        ("a value in JSON", "a value behind a dot", "a list behind a dot"),
    ),
    Named(
        "vllm",
        TAKES,
        "a validator of the release may make a class of a text, so any text is taken",
        (
            "--compilation-config.pass_config",
            "--quantization-config.linear",
            "--quantization-config.moe",
        ),
        ("a value in JSON", "a value behind a dot"),
    ),
    Named(
        "vllm",
        TAKES,
        "`vllm serve` answers it before its parser, which alone is asked here, sees it",
        ("--help=all", "--help=page"),
        ("special",),
        ("0.10.2",),
    ),
    Named(
        "sglang",
        TAKES,
        "the type is a function of the release, of which the catalogue knows the name alone",
        ("--cuda-graph-config",),
        ILLEGAL,
    ),
    Named(
        "sglang",
        TAKES,
        "the type has the name of one that takes `K`; this one takes `Ki`",
        ("--context-length 8K",),
        ("special",),
    ),
    Named(
        "sglang",
        TAKES,
        "deprecated flags whose use this release refuses; servec warns",
        ("--enable-flashinfer-mla", "--enable-flashmla"),
        ("switch", "cut short", "underscores"),
        ("0.4.6.post5",),
    ),
)


def reason_of(engine: str, version: str, servec: str, flag: str, what: str) -> str:
    """The reason of a difference; empty for one that is not meant."""
    found = (named for named in NAMED if named.has(engine, version, servec, flag, what))
    return next((named.reason for named in found), "")
