"""golden/: what this repository's specs compile to, held by the programs that will read it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import servec
import yaml

from tests.conftest import ROOT

GOLDEN = ROOT / "golden"
WRAPPERS = sorted(GOLDEN.glob("*/bash/serve.sh"))
UNITS = sorted(GOLDEN.glob("*/systemd/*.service"))
MANIFESTS = sorted(GOLDEN.glob("*/kubernetes/*.yaml"))
RESULT = servec.compile(ROOT)
ALONE = {launch.plan.name for launch in RESULT.launches if launch.placement.way is None}
"""Models on one node; what is over several is asked rank by rank in test_nodes.py."""
BIN = Path(sys.executable).parent


def test_golden_is_what_the_specs_say() -> None:
    found = {
        path.relative_to(GOLDEN).as_posix(): path.read_bytes()
        for path in GOLDEN.rglob("*")
        if path.is_file()
    }
    assert RESULT.ok
    assert dict(RESULT.artifacts) == found


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "1", "TZ": "Pacific/Chatham", "LC_ALL": "tr_TR.UTF-8", "umask": "077"},
    ],
)
def test_bytes_depend_on_nothing_around(environment: dict[str, str], tmp_path: Path) -> None:
    """The same sources, written in another order into another folder, give the same bytes."""
    folders = ("specs", "recipes", "serve.d", "catalogs", "templates", "configs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(files, reverse=environment["PYTHONHASHSEED"] == "1"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    (tmp_path / "servec.yaml").write_bytes((ROOT / "servec.yaml").read_bytes())
    mask = environment.get("umask", "022")
    command = f"umask {mask}; exec {shlex.quote(sys.executable)} -m servec build"
    variables = {key: value for key, value in environment.items() if key != "umask"}
    subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=os.environ | variables,
        check=True,
        capture_output=True,
    )
    # There the data folders are the project's own, which shipped ones are not: no path differs.
    for path in GOLDEN.rglob("*"):
        copy = tmp_path / "golden" / path.relative_to(GOLDEN)
        if path.is_file():
            assert copy.read_bytes() == path.read_bytes(), path
            assert (copy.stat().st_mode & 0o777) == (0o755 if path.suffix == ".sh" else 0o644)


def test_every_pinned_version_is_in_a_catalogue_of_flags() -> None:
    """No fact is older than an image that is pinned here, and nothing is refused."""
    codes = {finding.code.number for finding in RESULT.findings}
    assert not codes & {"SV0615", "SV0616", "SV0618", "SV0620", "SV0624"}


def test_manifest_is_read_by_sha256sum() -> None:
    done = subprocess.run(
        ["sha256sum", "--strict", "--quiet", "-c", "MANIFEST.sha256"],
        cwd=GOLDEN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda path: path.parts[-3])
def test_wrapper(wrapper: Path) -> None:
    """bash, shellcheck and shfmt have nothing to say."""
    for command in (
        ["bash", "-n", wrapper],
        [BIN / "shellcheck", "-S", "style", wrapper],
        [BIN / "shfmt", "-d", "-i", "2", "-ci", wrapper],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), command


ONE_NODE = pytest.mark.parametrize(
    "wrapper",
    [path for path in WRAPPERS if path.parts[-3] in ALONE],
    ids=lambda path: path.parts[-3],
)


@ONE_NODE
def test_wrapper_prints_the_plans_argv(wrapper: Path) -> None:
    launch = next(item for item in RESULT.launches if item.plan.name == wrapper.parts[-3])
    printed = subprocess.run(
        ["bash", wrapper, "--print"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert _words(printed[0]) == list(launch.argv)
    names = [line.removeprefix("# environment: ") for line in printed[1:]]
    assert names == [variable.name for variable in launch.env]


def _words(line: str) -> list[str]:
    """Bash's own reading of a line of quoted words."""
    script = f"printf '%s\\0' {line}"
    out = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    return out.decode().split("\0")[:-1]


@ONE_NODE
def test_wrapper_execs_the_engine(wrapper: Path, tmp_path: Path) -> None:
    """The engine gets the argv and the variables, in the wrapper's own process."""
    launch = next(item for item in RESULT.launches if item.plan.name == wrapper.parts[-3])
    program = tmp_path / launch.argv[0]
    program.write_text('#!/bin/bash\nprintf "%s\\0" "$$" "$0" "$@"; env -0\n')
    program.chmod(0o755)
    process = subprocess.Popen(
        ["bash", wrapper],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
    )
    out = process.communicate()[0].decode().split("\0")
    assert out[0] == str(process.pid)
    assert [Path(out[1]).name, *out[2 : 1 + len(launch.argv)]] == list(launch.argv)
    for variable in launch.env:
        assert f"{variable.name}={variable.value}" in out


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda path: path.parts[-3])
def test_every_flag_is_explained(wrapper: Path) -> None:
    """Each flag's line names a source line that says it, or the rule that derived it."""
    path = wrapper.relative_to(GOLDEN).as_posix()
    from servec.diag.findings import Findings
    from servec.pipeline import run
    from servec.source.files import Files, Folder

    findings = Findings()
    files = Files(Folder(ROOT), findings)
    artifact = next(item for item in run(files, findings).artifacts if item.path == path)
    lines = artifact.text.splitlines()
    first = lines.index("argv=(") + 1
    for number in range(first + 1, lines.index(")") + 1):
        trace = artifact.traces[number]
        flag, origin = lines[number - 1].split()[0], trace.origin
        assert origin.span or origin.rule, flag
        if origin.span and not origin.rule and trace.setting is not None:
            source = files.line(origin.span.file, origin.span.line) or ""
            key = source[origin.span.column - 1 :]
            said = trace.setting.winner.name.removeprefix("topology.")
            is_need = trace.setting.winner.rank.words == "eval requirement"
            assert is_need or key.replace("-", "_").startswith(said) or said in source, flag


def test_lines_of_infer_plans_name_their_own_setting() -> None:
    """A line `key: value` that a setting made is of that setting's name."""
    from servec.diag.findings import Findings
    from servec.pipeline import run
    from servec.source.files import Files, Folder

    findings = Findings()
    artifacts = run(Files(Folder(ROOT), findings), findings).artifacts
    plans = next(item for item in artifacts if item.path == "infer_plans.yaml")
    traced = 0
    for number, line in enumerate(plans.text.splitlines(), 1):
        trace = plans.traces.get(number)
        if trace is None or trace.setting is None or line.strip().startswith("count:"):
            continue
        name = trace.setting.winner.knob.removeprefix("topology.")
        key = line.split(":")[0].strip()
        if re.match(r" {8}[a-z_]+:", line):
            assert key in (name, trace.setting.winner.name), (number, line)
            traced += 1
    assert traced > 60


def _systemd() -> bool:
    return shutil.which("systemd-analyze") is not None


@pytest.mark.skipif(not _systemd(), reason="systemd-analyze is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_unit(unit: Path) -> None:
    """systemd-analyze verify exits 0 and says nothing; its exit code alone proves little."""
    done = subprocess.run(
        ["systemd-analyze", "verify", unit],
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{unit.parent}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_units_are_there() -> None:
    assert len(UNITS) >= 4
    assert len(MANIFESTS) >= 9


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_manifest_reads_alike(manifest: Path) -> None:
    """Four YAML readers agree about every value, types included."""
    readings = [_typed(read(manifest.read_text())) for read in readers()]
    assert all(reading == readings[0] for reading in readings)


def readers() -> list[Any]:
    import ryaml
    import yamlcore
    from ruamel.yaml import YAML

    return [
        yaml.safe_load,
        YAML(typ="safe", pure=True).load,
        lambda text: yaml.load(text, Loader=yamlcore.CoreLoader),
        ryaml.loads,
    ]


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return (type(value).__name__, value)


@pytest.mark.parametrize(
    "manifest",
    [path for path in MANIFESTS if path.stem != "kustomization"],
    ids=lambda path: f"{path.parts[-3]}/{path.stem}",
)
def test_manifest_fits_the_schema(manifest: Path) -> None:
    """Kubernetes' own OpenAPI schema, unknown fields refused."""
    import kubernetes_validate

    tree = yaml.safe_load(manifest.read_text())
    if tree["kind"] != "LeaderWorkerSet":
        kubernetes_validate.validate(tree, "1.34", strict=True)
        return
    group = tree["spec"]["leaderWorkerTemplate"]
    for template in (group["leaderTemplate"], group["workerTemplate"]):
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        kubernetes_validate.validate(pod, "1.34", strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
@pytest.mark.parametrize("folder", sorted({path.parent for path in MANIFESTS}))
def test_kustomize_builds(folder: Path) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", folder],
        env=os.environ | {"KUBECONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert sorted(kinds) in (["Deployment", "Service"], ["LeaderWorkerSet", "Service"])
