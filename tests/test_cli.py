"""The command line as a user and a program meet it: exit codes, streams, help, JSON."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import servec

from tests.conftest import ROOT


def run(*words: str, cwd: Path = ROOT) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "servec", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_version() -> None:
    assert run("--version") == (0, f"servec {servec.__version__}\n", "")


@pytest.mark.parametrize("verb", ["build", "check", "explain", "blame", "dump", "schema"])
def test_help(verb: str) -> None:
    code, out, err = run(verb, "--help")
    assert code == 0
    assert out.startswith(f"Usage: servec {verb}")
    assert err == ""
    assert verb in run("--help")[1]


def test_wrong_usage_is_2() -> None:
    code, out, err = run("chek")
    assert (code, out) == (2, "")
    assert "Did you mean `check`?" in err
    assert run("dump", "--after", "nothing")[0] == 2


def test_findings_are_1_and_go_to_stderr(tmp_path: Path) -> None:
    code, out, err = run("check", cwd=tmp_path)
    assert (code, out) == (1, "")
    assert "SV0901" in err


def test_findings_as_json_go_to_stdout(tmp_path: Path) -> None:
    (tmp_path / "servec.yaml").write_text("out: golden\nspec: [a]\n")
    (tmp_path / "specs").mkdir()
    code, out, err = run("build", "--format", "json", cwd=tmp_path)
    assert (code, err) == (1, "")
    (finding,) = json.loads(out)
    assert finding["code"] == "SV0201"
    assert finding["suggestion"] == "specs"
    assert finding["place"] == {"file": "servec.yaml", "line": 2, "column": 1, "length": 4}


def test_explain_a_knob_in_any_spelling() -> None:
    wanted = run("explain", "gpt-oss-20b-cached", "enable_prefix_caching")
    assert wanted[0] == 0
    assert "spec override" in wanted[1]
    assert "over false" in wanted[1]
    for spelling in ("no_enable_prefix_caching", "--enable-prefix-caching"):
        words = ("explain", "gpt-oss-20b-cached", "--", spelling)
        assert run(*words)[1] == wanted[1]
    assert "formula" not in run("explain", "qwen3-235b", "tp_size")[1]


def test_explain_names_the_nearest_knob() -> None:
    code, _, err = run("explain", "qwen3-8b", "max_model_length")
    assert code == 1
    assert "did you mean `max_model_len`?" in err


def test_explain_a_line_from_any_folder(tmp_path: Path) -> None:
    from_root = run("explain", "golden/qwen3-8b/bash/serve.sh:20")
    assert from_root[0] == 0
    inside = run("explain", "serve.sh:20", cwd=ROOT / "golden" / "qwen3-8b" / "bash")
    assert inside == from_root
    assert run("explain", "golden/nothing.sh:3")[0] == 1
    assert run("explain", "golden/qwen3-8b/bash/serve.sh:999")[0] == 1


def test_explain_a_number_of_gpus_by_all_that_it_is_made_of() -> None:
    plans = (ROOT / "golden" / "infer_plans.yaml").read_text(encoding="utf-8").splitlines()
    number = next(at for at, line in enumerate(plans, 1) if line.strip() == "count: 8")
    code, out, _ = run("explain", f"golden/infer_plans.yaml:{number}")
    assert code == 0
    found = re.search(r"specs/[\w.-]+:\d+:\d+ \(tp (\d+) · pp (\d+) · dp (\d+) GPUs\)", out)
    assert found is not None
    assert math.prod(map(int, found.groups())) == 8
    assert "topology.tp" not in out


def test_explain_a_code() -> None:
    code, out, _ = run("explain", "sv0201")
    assert code == 0
    assert out.startswith("# SV0201: unknown key")
    assert run("explain", "SV9999")[0] == 1


def test_blame_names_a_place_for_each_line() -> None:
    code, out, _ = run("blame", "qwen3-8b")
    assert code == 0
    assert "specs/qwen3.yaml:" in out
    assert "recipes/qwen3.yaml:" in out
    assert "HF_HOME=/models" in out
    assert run("blame", "qwen3-30b")[1].count("vllm serve") == 2  # both variants


@pytest.mark.parametrize(
    "last", ["parse", "declare", "bind", "expand", "require", "layer", "gate", "lower", "emit"]
)
def test_dump_prints_every_pass(last: str) -> None:
    code, out, _ = run("dump", "--after", last)
    assert code == 0
    assert "qwen3-8b" in out


def test_set_is_the_strongest() -> None:
    words = ("explain", "qwen3-8b", "max_model_len", "--set", "qwen3-8b.max_model_len=1024")
    out = run(*words)[1]
    assert "max_model_len = 1024" in out
    assert "command line" in out
    assert "over 16384" in out
    assert "over 32768" in out


def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{sys.executable} -m servec dump --after parse | head -1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">/dev/full", "</dev/null"])
def test_odd_streams_are_no_traceback(redirection: str) -> None:
    for words in ("blame qwen3-8b", "check --format json", "explain SV0201", "--help"):
        command = f"{sys.executable} -m servec {words} {redirection}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, command
        assert done.returncode in (0, 1), command


def test_a_folder_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir {gone}; {sys.executable} -m servec build"
    done = subprocess.run(
        ["bash", "-c", command], cwd=gone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ("qwen3-8b.x={", "did not find"),
        ("qwen3-8b.x=a #b", "from `#` on"),
        ("qwen3-8b.\udcff=1", "characters that no setting has"),
    ],
)
def test_settings_that_are_none(sets: str, says: str) -> None:
    code, _, err = run("build", "--set", sets)
    assert code == 1
    assert "SV0404" in err
    assert says in err
    assert "<command line>:2" not in err


def test_a_flag_that_no_release_has_is_told_the_nearest() -> None:
    code, out, err = run("catalog", "show", "vllm", "--max-modle-len")
    assert (code, out) == (1, "")
    assert err == (
        "servec: no release of vllm has `--max-modle-len`; did you mean `--max-model-len`?\n"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("max_model_len",), "whole number, as 8k too, or auto"),
        (("--max-model-len",), "0.6.0 to 0.8.3               whole number\n"),
        (("VLLM_ATTENTION_BACKEND",), "since then                   use `--attention-backend`"),
        (("kv_transfer_config.kv_role",), "one of kv_both, kv_consumer, kv_producer or null"),
        (("--compilation-config.pass_config.eliminate_noops",), "0.12.0 to "),
        ((), "release          read by  on         sha256 of the package\n"),
    ],
)
def test_what_releases_accept_is_shown_in_words(words: tuple[str, ...], line: str) -> None:
    code, out, err = run("catalog", "show", "vllm", *words)
    assert (code, err) == (0, "")
    assert line in out


def test_two_releases_are_told_apart_by_what_changed() -> None:
    code, out, _ = run("catalog", "diff", "vllm", "0.28.0", "0.29.0")
    assert code == 0
    assert "~ --spec-method  takes hy_v4_mtp, qwen4_exp_mtp too\n" in out
    assert "- key AttentionConfig.use_prefill_decode_attention\n" in out
    code, out, _ = run("catalog", "diff", "vllm", "0.32.0", "0.33.0")
    assert "~ --disable-cascade-attn" not in out, "what turned it off before still does"


@pytest.mark.parametrize("version", ["99", "9.9", "0.1"])
def test_a_version_beyond_what_was_read_is_told(version: str) -> None:
    code, _, err = run("catalog", "diff", "vllm", "0.29.0", version)
    assert code == 0
    assert f"vllm {version} is taken as" in err
    assert "that was read" in err


@pytest.mark.parametrize(
    "verb", [("catalog", "diff", "vllm", "0.29.0"), ("upgrade", "--engine", "vllm", "--to")]
)
def test_a_version_of_too_many_digits_is_none(verb: tuple[str, ...]) -> None:
    code, _, err = run(*verb, "9" * 5000)
    assert code == 2
    assert "version" in err
