"""The output folder: written whole, held against the sources, and nobody else's files touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """
models:
  a: {checkpoint: Qwen/Qwen3-8B, engine: vllm, engine_version: "0.29.0", hardware: H100-80G}
  b: {checkpoint: Qwen/Qwen3-8B, engine: vllm, engine_version: "0.29.0", hardware: H100-80G}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "servec.yaml").write_text("targets: [bash]\n")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(SPEC)
    return tmp_path


def servec(project: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "servec", *words],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_check_says_nothing_when_all_is_well(project: Path) -> None:
    assert servec(project, "build")[0] == 0
    assert servec(project, "check") == (0, "")


def test_check_says_which_file_is_changed_missing_and_left_over(project: Path) -> None:
    servec(project, "build")
    golden = project / "golden"
    wrapper = golden / "a" / "bash" / "serve.sh"
    wrapper.write_text(wrapper.read_text().replace("32768", "4096"))
    (golden / "b" / "plan.json").unlink()
    (golden / "c").mkdir()
    (golden / "c" / "serve.sh").write_text("")
    code, out = servec(project, "check")
    assert code == 1
    assert "SV0801" in out
    assert "`golden/a/bash/serve.sh` differs" in out
    assert "`--max-model-len 32768`, it is `--max-model-len 4096`" in out
    assert "`golden/b/plan.json` is missing" in out
    assert "`golden/c/serve.sh` was not written by servec" in out
    assert "3 errors" in out
    spec = project / "specs" / "a.yaml"
    spec.write_text("".join(line for line in SPEC.splitlines(keepends=True) if "  b:" not in line))
    assert "`golden/b/bash/serve.sh` comes from no source any more" in servec(project, "check")[1]


def test_an_equal_file_is_not_written(project: Path) -> None:
    servec(project, "build")
    before = {path: path.stat() for path in (project / "golden").rglob("*")}
    assert "0 files written" in servec(project, "build")[1]
    for path, status in before.items():
        assert (path.stat().st_mtime_ns, path.stat().st_ino) == (status.st_mtime_ns, status.st_ino)


def test_leftovers_are_removed_and_changed_ones_told(project: Path) -> None:
    servec(project, "build")
    golden = project / "golden"
    (golden / "b" / "plan.json").write_text("mine now\n")
    spec = project / "specs" / "a.yaml"
    spec.write_text("".join(line for line in SPEC.splitlines(keepends=True) if "  b:" not in line))
    code, out = servec(project, "build")
    assert code == 0
    assert not (golden / "b" / "bash").exists()
    assert (golden / "b" / "plan.json").read_text() == "mine now\n"
    assert "`golden/b/plan.json` comes from no source any more, but was changed by hand" in out


def test_strangers_are_told_and_left(project: Path) -> None:
    golden = project / "golden"
    golden.mkdir()
    (golden / "README.md").write_text("mine\n")
    (golden / ".keep").write_text("")
    out = servec(project, "build")[1]
    assert "`golden/README.md` was not written by servec" in out
    assert ".keep" not in out
    assert (golden / "README.md").read_text() == "mine\n"


def test_a_strangers_file_in_an_artifact_s_place_is_not_overwritten(project: Path) -> None:
    wrapper = project / "golden" / "a" / "bash" / "serve.sh"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text("#!/bin/sh\necho mine\n")
    code, out = servec(project, "build")
    assert code == 1
    assert "stands where servec would write" in out
    assert wrapper.read_text() == "#!/bin/sh\necho mine\n"
    assert not (project / "golden" / "infer_plans.yaml").exists()


def test_a_lost_manifest_is_made_again(project: Path) -> None:
    servec(project, "build")
    (project / "golden" / "MANIFEST.sha256").unlink()
    (project / "specs" / "a.yaml").write_text(SPEC.replace("H100-80G", "H200-141G"))
    assert servec(project, "build")[0] == 0
    assert servec(project, "check") == (0, "")


def test_links_are_not_followed(project: Path) -> None:
    servec(project, "build")
    plan = project / "golden" / "a" / "plan.json"
    plan.unlink()
    plan.symlink_to("plan.json")
    code, out = servec(project, "check")
    assert code == 1
    assert "a link stands in its place" in out
    assert "Traceback" not in out


def test_a_linked_folder_leads_nowhere(project: Path) -> None:
    """A model's folder that is a link: told, and nothing behind it is written or removed."""
    servec(project, "build")
    outside = project.parent / f"{project.name}-b"
    (project / "golden" / "b").rename(outside)
    (project / "golden" / "b").symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    code, out = servec(project, "check")
    assert code == 1
    assert "a link stands at `b`" in out
    (project / "specs" / "a.yaml").write_text(SPEC.replace("H100-80G", "H200-141G"))
    assert servec(project, "build")[0] == 1
    spec = project / "specs" / "a.yaml"
    spec.write_text("".join(line for line in SPEC.splitlines(keepends=True) if "  b:" not in line))
    servec(project, "build")
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before


def test_partial_builds_forget_nothing(project: Path) -> None:
    """What a partial build leaves alone stays servec's: a later whole build removes it."""
    servec(project, "build")
    spec = project / "specs" / "a.yaml"
    only_a = "".join(line for line in SPEC.splitlines(keepends=True) if "  b:" not in line)
    spec.write_text(SPEC.replace("H100-80G", "H200-141G"))
    servec(project, "build", "a")
    spec.write_text(only_a)
    servec(project, "build", "a")
    code, out = servec(project, "build")
    assert code == 0
    assert "SV0804" not in out
    assert not (project / "golden" / "b").exists()
    assert servec(project, "check") == (0, "")


KILLED = """
import os, sys
from servec import output
from servec.cli import run
left = int(sys.argv[1])
def counted(function):
    def wrapped(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*args, **kwargs)
    return wrapped
for name in ("replace", "fchmod", "unlink", "rmdir"):
    setattr(os, name, counted(getattr(os, name)))
sys.exit(run(["build"]))
"""


@pytest.mark.parametrize("after", range(0, 24, 3))
def test_killed_anywhere_then_changed_then_clean(project: Path, after: int) -> None:
    """Killed after any operation on a file, with other sources before the next build."""
    servec(project, "build")
    spec = project / "specs" / "a.yaml"
    spec.write_text(SPEC.replace("H100-80G", "H200-141G"))
    subprocess.run(
        [sys.executable, "-c", KILLED, str(after)], cwd=project, check=False, capture_output=True
    )
    spec.write_text("".join(line for line in SPEC.splitlines(keepends=True) if "  b:" not in line))
    code, out = servec(project, "build")
    assert code == 0, out
    assert "SV0804" not in out
    assert not (project / "golden" / "b").exists()
    assert servec(project, "check") == (0, "")


def test_pipes_and_notes_are_told_and_left(project: Path) -> None:
    servec(project, "build")
    golden = project / "golden"
    os.mkfifo(golden / "extra")
    (golden / "a" / ".servec-notes").write_text("mine\n")
    assert "`golden/extra` was not written by servec" in servec(project, "check")[1]
    (project / "specs" / "a.yaml").write_text(SPEC.replace("H100-80G", "H200-141G"))
    assert servec(project, "build")[0] == 0
    assert (golden / "a" / ".servec-notes").exists()
    (golden / "extra").unlink()
    (golden / "a" / "plan.json").unlink()
    os.mkfifo(golden / "a" / "plan.json")
    assert "something that is no file stands in its place" in servec(project, "check")[1]


def test_one_error_and_nothing_is_written(project: Path) -> None:
    (project / "specs" / "b.yaml").write_text("models: {c: {engine: vllm}}\n")
    code, out = servec(project, "build")
    assert code == 1
    assert "SV0204" in out
    assert not (project / "golden").exists()


def test_names_limit_what_is_written(project: Path) -> None:
    assert servec(project, "build", "a")[0] == 0
    golden = project / "golden"
    assert (golden / "a" / "plan.json").exists()
    assert not (golden / "b").exists()
    text = (golden / "infer_plans.yaml").read_text()
    assert "  a:" in text
    assert "  b:" in text
    assert servec(project, "check", "a") == (0, "")
    assert servec(project, "check")[0] == 1
    code, out = servec(project, "build", "aa")
    assert code == 1
    assert "did you mean `a`?" in out


def test_an_interrupted_build_is_completed_by_the_next(project: Path) -> None:
    """Killed after some files: the next run knows them as its own, and ends where it should."""
    servec(project, "build")
    golden = project / "golden"
    whole = {path: path.read_bytes() for path in golden.rglob("*") if path.is_file()}
    for path in sorted(whole):
        path.write_bytes(b"")
        (path.parent / f".servec-1-{path.name}").write_bytes(b"half")
        servec(project, "build")
        assert {p: p.read_bytes() for p in golden.rglob("*") if p.is_file()} == whole


@pytest.mark.parametrize(
    "out", [".", "specs", "specs/out", ".git", "recipes", "../out", "/tmp/out"]
)
def test_the_output_folder_is_one_of_its_own(project: Path, out: str) -> None:
    (project / "servec.yaml").write_text(f"out: {out}\n")
    code, text = servec(project, "build")
    assert code == 1
    assert "SV0806" in text or "SV0205" in text
    assert sorted(os.listdir(project)) == ["servec.yaml", "specs"]


def test_a_link_out_of_the_project_is_refused(project: Path, tmp_path_factory: object) -> None:
    outside = project.parent / f"{project.name}-outside"
    outside.mkdir()
    (project / "golden").symlink_to(outside)
    code, text = servec(project, "build")
    assert code == 1
    assert "leads out of the project" in text
    assert list(outside.iterdir()) == []
