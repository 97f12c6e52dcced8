"""Extraction in trouble: killed, two at once, no network, no room, wheels that are traps."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.version import Version
from servec.extract.environment import environment_of
from servec.extract.errors import ExtractionError
from servec.extract.package import package_of
from servec.extract.recipe import recipe_of

from tests.conftest import ROOT
from tests.test_extract import PACKAGE, Bench

ONE = Version("1.0")
EXTRACT = (sys.executable, "-m", "servec", "catalog", "extract")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def project(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The bench as a project, with the recipe of an engine of its own."""
    (bench.folder / "servec.yaml").write_text("targets: [bash]\n")
    monkeypatch.chdir(bench.folder)
    monkeypatch.setenv("SERVEC_CACHE", str(bench.cache))
    return bench


def killed_while(script: str, has_begun: Path) -> None:
    """Run a script in a process, which is killed when a file is there."""
    process = subprocess.Popen([sys.executable, "-c", script])
    for _ in range(300):
        if has_begun.exists():
            break
        time.sleep(0.1)
    assert has_begun.exists()
    process.kill()
    process.wait()


def fetching(bench: Bench) -> str:
    return f"""
from pathlib import Path
from packaging.version import Version
from servec.extract.package import package_of
package_of("tiny-engine", Version("1.0"), Path({str(bench.cache)!r}))
"""


def observing(bench: Bench, wheel: Path) -> str:
    return f"""
from pathlib import Path
from tests.test_extract import Bench, Limits
Bench(Path({str(bench.folder)!r})).observe(Path({str(wheel)!r}), limits=Limits(seconds=2))
"""


def is_running(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(") ")[2][0] not in "ZX"


def test_what_a_killed_run_started_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A download goes on where its parent was killed; nobody else writes in its folder until it
    has ended."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "4")
        monkeypatch.setenv("PIP_RETRIES", "0")
        process = subprocess.Popen([sys.executable, "-c", fetching(bench)])
        index.settimeout(60)
        asked, _ = index.accept()
        process.kill()
        process.wait()
        package = package_of("tiny-engine", ONE, bench.cache, bench.wheel())
        asked.close()
    assert "waiting for another process that makes" in capfd.readouterr().err
    found = {path.relative_to(package.root).as_posix() for path in package.root.rglob("*.py")}
    assert found == {*PACKAGE}
    assert [path for path in bench.left() if ".making" in path or "pip-" in path] == []


def test_a_package_that_is_replaced_is_never_half(bench: Bench) -> None:
    package_of("tiny-engine", ONE, bench.cache, bench.wheel())
    other = bench.wheel({"tiny/envs.py": "VARIABLES = ['TINY_NEW']\n"})
    script = f"""
import os, shutil
from pathlib import Path
from packaging.version import Version
from servec.extract.package import package_of
remove = shutil.rmtree
def dying(folder, **more):
    if (Path(folder) / "sources").exists():
        remove(Path(folder) / "sources" / "tiny")
        os.kill(os.getpid(), {int(signal.SIGKILL)})
    remove(folder, **more)
shutil.rmtree = dying
package_of("tiny-engine", Version("1.0"), Path({str(bench.cache)!r}), Path({str(other)!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    package = package_of("tiny-engine", ONE, bench.cache)
    found = {path.relative_to(package.root).as_posix() for path in package.root.rglob("*.py")}
    assert found == {*PACKAGE}
    package_of("tiny-engine", ONE, bench.cache, bench.wheel())
    assert [path for path in bench.left() if ".old" in path] == []


def test_a_parser_outlives_a_killed_run_for_no_longer_than_its_time(bench: Bench) -> None:
    """And nothing is kept of it, so the next run reads the release."""
    begun = bench.folder / "begun"
    slow = f"import os, time\nopen({str(begun)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    wheel = bench.wheel({"tiny/arguments.py": slow})
    killed_while(observing(bench, wheel), begun)
    time.sleep(0.2)
    parser = int(begun.read_text())
    ended = time.monotonic() + 20
    while is_running(parser) and time.monotonic() < ended:
        time.sleep(0.2)
    assert not is_running(parser)
    assert not list(bench.cache.glob("observations/*"))
    assert bench.observe(bench.wheel()).read == "parser"


def test_a_parser_that_is_killed_says_nothing_of_the_release(bench: Bench) -> None:
    """As where memory is short: the sources are not taken for what the parser takes."""
    killed = "import os\nos.kill(os.getpid(), 9)\n"
    with pytest.raises(ExtractionError, match="ended by SIGKILL; is memory short"):
        bench.observe(bench.wheel({"tiny/arguments.py": killed}))
    assert not list(bench.cache.glob("observations/*"))


def test_a_release_is_asked_again_where_its_parser_gave_no_answer(bench: Bench) -> None:
    there = bench.folder / "there"
    fails_first = f"open({str(there)!r})\n{PACKAGE['tiny/arguments.py']}"
    wheel = bench.wheel({"tiny/arguments.py": fails_first})
    assert bench.observe(wheel).read == "static"
    there.touch()
    assert bench.observe().read == "parser"


@pytest.mark.parametrize("record", ["", "{", "[]", '{"file": "x"}'])
def test_a_package_whose_record_is_broken_is_unpacked_anew(bench: Bench, record: str) -> None:
    wheel = bench.wheel()
    package_of("tiny-engine", ONE, bench.cache, wheel)
    (bench.cache / "packages" / "tiny-engine-1.0" / "package.json").write_text(record)
    assert package_of("tiny-engine", ONE, bench.cache, wheel).file == wheel.name


def test_an_environment_whose_python_is_gone_is_made_anew(bench: Bench) -> None:
    python = environment_of([], bench.cache)
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert environment_of([], bench.cache) == python
    assert subprocess.run([python, "-c", ""], check=False).returncode == 0


def test_two_runs_at_once_both_get_into_the_catalogue(project: Bench) -> None:
    slow = f"import time\ntime.sleep(1.5)\n{PACKAGE['tiny/arguments.py']}"
    wheels = {
        version: project.wheel({"tiny/arguments.py": slow}, version)
        for version in ("1.0", "1.1", "1.2")
    }
    runs = [
        subprocess.Popen([*EXTRACT, "tiny", version, "--wheel", wheels[version]])
        for version in ("1.0", "1.1", "1.2", "1.2")
    ]
    assert [run.wait() for run in runs] == [0] * 4
    catalogue = project.folder / "catalogs" / "engines" / "tiny.yaml"
    found = yaml.safe_load(catalogue.read_text())
    assert list(found["releases"]) == ["1.0", "1.1", "1.2"]
    assert {head["read"] for head in found["releases"].values()} == {"parser"}
    assert [path.name for path in catalogue.parent.iterdir()] == ["tiny.yaml"]


def test_a_catalogue_with_a_mistake_is_left_as_it_is(project: Bench) -> None:
    catalogue = project.folder / "catalogs" / "engines" / "tiny.yaml"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text("engine: tiny\nreleases: {'1.0': {read: parser}}\n")
    command = [*EXTRACT, "tiny", "1.1", "--wheel", str(project.wheel(version="1.1"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "catalogs/engines/tiny.yaml:2:12" in done.stderr
    assert "releases: {'1.0': {read: parser}}" in catalogue.read_text()


def test_a_reading_without_the_parser_is_told(project: Bench) -> None:
    wheel = project.wheel({"tiny/arguments.py": "raise ValueError('no GPU')\n"})
    command = [*EXTRACT, "tiny", "1.0", "--wheel", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "so its sources were read: ValueError: no GPU" in done.stderr


def test_without_a_network_what_was_read_is_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.observe(bench.wheel())
    with socket.socket() as silent:  # a port that nothing listens at
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(ExtractionError, match=r"index does not answer \(.*refused\)"):
            bench.observe(version="1.1")
        assert bench.observe().read == "parser"
        assert bench.observe(again=True).read == "parser", "its sources and environment are there"


def test_a_python_without_pip_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(environment_of([], bench.cache)))
    with pytest.raises(ExtractionError, match=r"has no pip; `.*python -m ensurepip` installs it"):
        package_of("tiny-engine", ONE, bench.cache)


def test_a_requirement_that_does_not_fit_this_machine_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.wheel()
    bench.wheel(version="1.1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(bench.folder))
    message = r"no wheel of tiny-engine==2\.0 for Python 3\.\S+ on \w+ \w+; .*has: 1\.1, 1\.0$"
    with pytest.raises(ExtractionError, match=message):
        environment_of(["tiny-engine==2.0"], bench.cache)


def test_the_wheel_of_one_platform_is_read_on_all(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where this machine could not run it: its C library is older, or of another kind."""
    wheel = bench.wheel()
    wheel.rename(bench.folder / "tiny_engine-1.0-cp38-abi3-manylinux_2_60_x86_64.whl")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(bench.folder))
    assert package_of("tiny-engine", ONE, bench.cache).file.endswith("manylinux_2_60_x86_64.whl")


def test_a_disk_without_room_is_told(bench: Bench) -> None:
    wheel = bench.wheel({"tiny/large.py": "#" * 100_000})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(ExtractionError, match=r"packages/tiny-engine-1\.0: File too large"):
            bench.observe(wheel)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path for path in bench.left() if path.endswith(".py")] == []
    assert bench.observe(wheel).read == "parser"


def test_a_cache_that_is_whole_is_only_read(bench: Bench) -> None:
    bench.observe(bench.wheel())
    for lock in bench.cache.rglob("*.lock"):
        lock.unlink()
    package_of("tiny-engine", ONE, bench.cache)
    environment_of([], bench.cache)
    assert list(bench.cache.rglob("*.lock")) == []
    with pytest.raises(ExtractionError, match="Not a directory"):
        package_of("tiny-engine", ONE, Path(os.devnull), bench.wheel())


def changed(wheel: Path, name: str, size: int) -> None:
    """Let the archive's table tell another size of a file than it has."""
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, "#" * 100_000)
        archive.getinfo(name).file_size = size


@pytest.mark.parametrize(
    ("size", "message"),
    [(2 << 30, r"more than \d+ Python files, or 1024 MiB"), (9, "is not a whole wheel")],
)
def test_a_wheel_that_grows_is_refused(bench: Bench, size: int, message: str) -> None:
    wheel = bench.wheel()
    changed(wheel, "tiny/bomb.py", size)
    with pytest.raises(ExtractionError, match=message):
        bench.observe(wheel)
    assert [path for path in bench.left() if path.endswith(".py")] == []


def test_a_wheel_of_too_many_files_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("servec.extract.package.SOURCE_FILES", len(PACKAGE))
    bench.observe(bench.wheel())
    with pytest.raises(ExtractionError, match=f"more than {len(PACKAGE)} Python files"):
        bench.observe(bench.wheel({"tiny/more.py": ""}))


def test_bounds_that_are_lower_already_stay() -> None:
    script = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import walk
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
walk.bound({"memory_bytes": 16 << 30, "seconds": 9})
print(*resource.getrlimit(resource.RLIMIT_AS), *resource.getrlimit(resource.RLIMIT_CPU))
"""
    folder = ROOT / "compiler" / "servec" / "extract"
    command = [sys.executable, "-B", "-c", script, str(folder)]
    assert subprocess.check_output(command, text=True) == f"{4 << 30} {4 << 30} 9 14\n"


def test_an_engine_that_is_misspelt_is_named() -> None:
    engine = min(path.parent.name for path in ROOT.glob("serve.d/*/extract.yaml"))
    with pytest.raises(ExtractionError, match=f"did you mean `{engine}`"):
        recipe_of(engine + "x")
