"""Extraction, through the whole path, with a made-up package that is built as a wheel here."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version
from servec.catalog.versions import in_range
from servec.diag.findings import Findings
from servec.extract.environment import environment_of
from servec.extract.errors import ExtractionError
from servec.extract.folders import cache_folder
from servec.extract.observation import Flag, Observation, from_json, to_json
from servec.extract.observe import observe, parser_says
from servec.extract.package import package_of
from servec.extract.parser import Limits
from servec.extract.recipe import LISTS, Recipe, recipe_of
from servec.source.files import Files, Folder

from tests.conftest import ROOT

DAY = date(2026, 11, 30)
RECIPE = """
package: tiny-engine
claimed: "{version}+cpu"
environment: {TINY_DEVICE: cpu}
parsers:
  - {versions: "<2", parser: "tiny.parsing:Parser", builder: "tiny.arguments:make_parser",
     additions: [{file: tiny/command.py, receiver: serve}]}
type_names: [{function: _optional, holds: inner, name: "{}?"}]
static_flags: [tiny/arguments.py, tiny/command.py]
static_fields:
  - {files: [tiny/fields.py], classes: [Own], annotation: A,
     name: flag, aliases: also, hidden: off_line}
flag_choices:
  - {versions: "<3", flag: --device, words: [{files: [tiny/config.py], literal: Device}]}
  - {versions: "<1", flag: --dtype, words: [{files: [tiny/config.py], literal: Device}]}
  - {flag: --reasoning, words: [{files: [tiny/config.py], literal: Missing}]}
lists:
  variables: [{files: [tiny/envs.py], keys: [VARIABLES]}]
  methods: [{files: [tiny/config.py], literal: Method}]
  tool_call_parsers:
    - {files: [tiny/missing/*.py], keys: [PARSERS]}
    - {files: [tiny/tools/*.py], calls: register}
  reasoning_parsers: [{flag: --reasoning, but: [auto]}]
  attention_backends: [{files: [tiny/config.py], members: Backend}]
  deprecation_notes: [{files: [tiny/config.py], notes: deprecated}]
quantization:
  - names: [{files: [tiny/config.py], keys: [QUANTIZATION]}]
    files: [tiny/config.py]
    tables: [QUANTIZATION]
    classes: [tiny/layers/*.py]
    method: get_min_capability
config_keys: {files: [tiny/config.py], classes: [DraftConfig]}
"""
PACKAGE = {
    "tiny/__init__.py": "",
    "tiny/parsing.py": """
import argparse

class Parser(argparse.ArgumentParser):
    pass

class Pair(argparse.BooleanOptionalAction):
    "Says the opposite with a word of its own, too."
    def __init__(self, option_strings, dest, **kwargs):
        super().__init__(option_strings, dest, **kwargs)
        self.option_strings = [*self.option_strings, "--disable-" + dest]
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, not option_string.startswith(("--no-", "--disable-")))

class OldAction(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        pass

class GoneDeprecatedAction(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        raise ValueError("is gone")
""",
    "tiny/arguments.py": """
import argparse, enum, importlib.metadata, json, os, sys
from tiny.parsing import GoneDeprecatedAction, OldAction, Pair

def _made(inner):
    def _optional(text):
        return None if text == "None" else inner(text)
    return _optional

class Mode(enum.Enum):
    FAST = "fast"

def make_parser(parser):
    group = parser.add_argument_group("engine")
    device = os.environ["TINY_DEVICE"]
    version = importlib.metadata.version("tiny-engine")
    print("what a package prints is no answer", flush=True)
    group.add_argument("--port", "-p", type=int, default=8000)
    group.add_argument("--device", choices={"gpu", "cpu"}, default=device)
    group.add_argument("--set", choices={"b", "c", "a"})
    group.add_argument("--build", default=version)
    group.add_argument("--cache", action=Pair, default=None)
    group.add_argument("--eager", action="store_true")
    group.add_argument("--dtype", metavar=["auto", "half"], type=_made(str), default="auto")
    group.add_argument("--rope", type=json.loads, nargs="+", default=Mode.FAST)
    group.add_argument("--reasoning", type=_made(str), choices=["auto", "deep", None])
    group.add_argument("--middleware", action="append", required=True)
    group.add_argument("--old", action=OldAction, nargs=0, help="does nothing")
    group.add_argument("--gone", action=GoneDeprecatedAction, nargs=0)
    group.add_argument("--older", type=float, help="[DEPRECATED] use --port", default=object())
    oldest = "Slow.\\n\\n    Deprecated: use --port." if "--help" in sys.argv else None
    group.add_argument("--oldest", help=oldest)
    group.add_argument("--stays", help="Also for the\\ndeprecated --old.")
    group.add_argument("--hidden", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
    return parser
""",
    "tiny/command.py": """
raise RuntimeError("only read, never imported")

def command(commands):
    serve = commands.add_parser("serve")
    serve.add_argument("model_tag", nargs="?")
    other = commands.add_parser("chat")
    other.add_argument("--url")
""",
    "tiny/envs.py": 'VARIABLES: dict = {"TINY_PORT": lambda: 1, **{"TINY_DEVICE": None}}\n',
    "tiny/config.py": """
from typing import ClassVar, Literal
from tiny.layers.awq import AWQConfig as Awq
from tiny.layers.awq import MarlinConfig, NextConfig, OddConfig

More = Literal["mtp"]
Device = Literal["cpu"] | Literal["gpu"] | Literal["tpu"]
Method = Literal["ngram", "eagle", More]
QUANTIZATION = {"awq": Awq, "marlin": MarlinConfig, "odd": OddConfig, "later": elsewhere}
QUANTIZATION.update({"added": NextConfig})

class Backend:
    FLASH = "flash"
    _private = 1
    def __len__(self): return 1

class DraftConfig:
    "Nothing that a function documents as deprecated is a note."
    model: str
    depth: int = 1
    kinds: ClassVar[int] = 2
    _hidden: int = 3
    def check(self):
        "deprecated: a docstring"
        raise ValueError(f"{self.model} is deprecated")
""",
    "tiny/fields.py": """
class Own:
    max_len: A[int, "the longest text"] = 1
    heads: A[int, Arg(flag="--num-heads", also=["--heads"])] = 1
    inner: A[int, Arg(off_line=True)] = 1
    port: A[int, "known already"] = 1
    plain: int = 1
class Other:
    other: A[int, "of another class"] = 1
""",
    "tiny/tools/first.py": '@Manager.register(["hermes", "pro"])\nclass Hermes: ...\n',
    "tiny/tools/second.py": 'Manager.register(name="mistral")(Mistral)\n',
    "tiny/layers/awq.py": """
class AWQConfig:
    @classmethod
    def get_min_capability(cls): return 75
class MarlinConfig(AWQConfig): ...
class OddConfig:
    def get_min_capability(cls): raise NotImplementedError
class OtherConfig:
    def get_min_capability(cls):
        if elsewhere(): return 0
        if lucky(): return 90 if bold() else 89
        else: return OddConfig.get_min_capability()
class NextConfig:
    def get_min_capability(cls): return OtherConfig.get_min_capability()
""",
}
EXPECTED = """
{"dest": "build", "flags": ["--build"], "kind": "value", "default": "1.0+cpu"}
{"dest": "cache", "flags": ["--cache"], "kind": "bool_optional", "negative": ["--no-cache", "--disable-cache"]}
{"dest": "device", "flags": ["--device"], "kind": "value", "choices": ["cpu", "gpu", "tpu"], "default": "cpu"}
{"dest": "dtype", "flags": ["--dtype"], "kind": "value", "type": "str?", "suggested": ["auto", "half"], "default": "auto"}
{"dest": "eager", "flags": ["--eager"], "kind": "store_true", "default": false}
{"dest": "hidden", "flags": ["--hidden"], "kind": "value"}
{"dest": "middleware", "flags": ["--middleware"], "kind": "append", "required": true}
{"dest": "old", "flags": ["--old"], "kind": "flag:OldAction"}
{"dest": "gone", "flags": ["--gone"], "kind": "flag:GoneDeprecatedAction", "deprecated": true, "removed": true}
{"dest": "older", "flags": ["--older"], "kind": "value", "type": "float", "default": "<object>", "deprecated": true}
{"dest": "oldest", "flags": ["--oldest"], "kind": "value", "deprecated": true}
{"dest": "port", "flags": ["--port", "-p"], "kind": "value", "type": "int", "default": 8000}
{"dest": "reasoning", "flags": ["--reasoning"], "kind": "value", "type": "str?", "choices": ["auto", "deep", "None"]}
{"dest": "rope", "flags": ["--rope"], "kind": "value", "nargs": "+", "type": "json", "default": "fast"}
{"dest": "set", "flags": ["--set"], "kind": "value", "choices": ["a", "b", "c"]}
{"dest": "stays", "flags": ["--stays"], "kind": "value"}
{"dest": "model_tag", "flags": ["<positional>"], "kind": "value", "nargs": "?"}
"""  # noqa: E501


class Bench:
    """A cache folder, an extraction recipe and wheels of the made-up package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.say(RECIPE)

    def say(self, recipe: str) -> None:
        place = self.folder / "serve.d" / "tiny"
        place.mkdir(parents=True, exist_ok=True)
        (place / "extract.yaml").write_text(recipe)

    def recipe(self) -> Recipe:
        return recipe_of("tiny", Files(Folder(self.folder), Findings()))

    def wheel(self, changed: Mapping[str, str] | None = None, version: str = "1.0") -> Path:
        path = self.folder / f"tiny_engine-{version}-py3-none-any.whl"
        home = f"tiny_engine-{version}.dist-info"
        about = {
            f"{home}/METADATA": f"Metadata-Version: 2.1\nName: tiny-engine\nVersion: {version}\n",
            f"{home}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{home}/RECORD": "",
            "tiny/weights.bin": "no Python",
        }
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in (PACKAGE | dict(changed or {}) | about).items():
                archive.writestr(name, text)
        return path

    def observe(
        self,
        wheel: Path | None = None,
        *,
        version: str = "1.0",
        again: bool = False,
        limits: Limits | None = None,
    ) -> Observation:
        return observe(
            "tiny",
            version,
            recipe=self.recipe(),
            wheel=wheel,
            cache=self.cache,
            again=again,
            today=DAY,
            limits=limits,
        )

    def left(self) -> list[str]:
        """What lies in the cache but for locks."""
        files = (path for path in self.cache.rglob("*") if not path.name.endswith(".lock"))
        return sorted(path.relative_to(self.cache).as_posix() for path in files)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_wheel_in_hand_is_observed_with_its_own_parser(bench: Bench) -> None:
    wheel = bench.wheel()
    seen = bench.observe(wheel)
    kept = json.loads((bench.cache / "observations" / "tiny-1.0.json").read_text())
    assert (seen.read, seen.reason, kept["date"]) == ("parser", "", "2026-11-30")
    lines = EXPECTED.strip().splitlines()
    by_dest = {flag["dest"]: flag for flag in kept["flags"]}
    assert by_dest == {flag["dest"]: flag for flag in map(json.loads, lines)}
    assert [flag["flags"] for flag in kept["flags"]] == sorted(f["flags"] for f in kept["flags"])
    assert kept["package"]["file"] == wheel.name
    assert wheel.exists(), "a wheel in hand is the user's"
    assert "tiny" not in sys.modules, "nothing of the package is imported here"


def test_what_the_parser_does_not_tell_is_read_from_the_sources(bench: Bench) -> None:
    seen = bench.observe(bench.wheel())
    assert seen.lists == {
        "variables": ("TINY_DEVICE", "TINY_PORT"),
        "methods": ("eagle", "mtp", "ngram"),
        "tool_call_parsers": ("hermes", "mistral", "pro"),
        "reasoning_parsers": ("deep",),
        "attention_backends": ("FLASH",),
        "deprecation_notes": (
            "Nothing that a function documents as deprecated is a note.",
            "… is deprecated",
        ),
    }
    minima = {"awq": 75, "marlin": 75, "odd": None, "later": None, "added": 89}
    assert seen.quantization == minima
    assert seen.classes.keys == {"DraftConfig": ("model", "depth")}


def test_an_observation_is_kept_and_made_anew_when_asked(bench: Bench) -> None:
    wheel = bench.wheel()
    seen = bench.observe(wheel)
    file = bench.cache / "observations" / "tiny-1.0.json"
    text = file.read_text()
    assert from_json(text, LISTS) == seen
    file.write_text(text.replace('"2026-11-30"', '"2001-01-01"'))
    assert bench.observe().date == "2001-01-01"
    assert bench.observe(wheel).date == "2001-01-01", "the same wheel"
    assert bench.observe(again=True) == seen
    assert file.read_text() == text, "the same bytes"
    file.write_text("{")
    assert bench.observe() == seen, "a broken file is made anew"
    other = bench.wheel({"tiny/envs.py": "VARIABLES = ['TINY_NEW']\n"})
    assert bench.observe(other).lists["variables"] == ("TINY_NEW",)


def test_a_release_is_downloaded_as_the_users_pip_says(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.wheel()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(bench.folder))
    assert bench.observe().read == "parser"
    assert not list(bench.cache.rglob("*.whl")), "the wheel is not kept"
    assert not list(bench.cache.rglob("weights.bin")), "Python files are all that is unpacked"
    with pytest.raises(ExtractionError, match=r"tiny-engine==1\.1 could not be downloaded: \w"):
        bench.observe(version="1.1")
    assert not [path for path in bench.left() if "1.1" in path]


def test_an_unpacking_that_is_killed_leaves_nothing_that_is_taken_for_whole(bench: Bench) -> None:
    wheel = bench.wheel()
    script = f"""
import os, zipfile
from pathlib import Path
from packaging.version import Version
from servec.extract.package import package_of
read, seen = zipfile.ZipFile.open, []
def dying(self, item, *more):
    seen.append(item)
    if len(seen) == 4:
        os.kill(os.getpid(), {int(signal.SIGKILL)})
    return read(self, item, *more)
zipfile.ZipFile.open = dying
package_of("tiny-engine", Version("1.0"), Path({str(bench.cache)!r}), Path({str(wheel)!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    half = [path for path in bench.left() if path.endswith(".py")]
    assert len(half) == 3, "the unpacking had begun"
    assert not (bench.cache / "packages" / "tiny-engine-1.0").exists()
    package = package_of("tiny-engine", Version("1.0"), bench.cache, wheel)
    assert {path.relative_to(package.root).as_posix() for path in package.root.rglob("*.py")} == {
        *PACKAGE
    }
    assert sorted(path for path in bench.left() if "making" in path) == []


def test_an_environment_is_made_once_and_never_half(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.wheel({"tiny/envs.py": "PORT = 7\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ExtractionError, match=r"installed: .* of tiny-engine==1\.0 for"):
        environment_of(["tiny-engine==1.0"], bench.cache)
    assert bench.left() == ["environments"], "nothing is left of it"
    monkeypatch.setenv("PIP_FIND_LINKS", str(bench.folder))
    python = environment_of(["tiny-engine==1.0"], bench.cache)
    command = [str(python), "-I", "-c", "import tiny.envs; print(tiny.envs.PORT)"]
    assert subprocess.check_output(command, text=True) == "7\n"
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert environment_of(["tiny-engine==1.0"] * 2, bench.cache) == python
    assert environment_of([], bench.cache) != python


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("raise ValueError('no GPU')", "ValueError: no GPU"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os._exit(9)", "the parser's process ended with 9 and no answer"),
        ("from tiny.parsing import Nothing", "ImportError: cannot import name 'Nothing'"),
        ("import tiny.compiled", "No module named 'tiny.compiled'"),
    ],
)
def test_a_parser_that_cannot_be_run_is_read_from_its_source(
    bench: Bench, broken: str, reason: str
) -> None:
    arguments = f"""
def make_parser(parser):
    {broken}
    parser.add_argument("--port", "-p", type=int, default=8000, choices=[1, 2])
    parser.add_argument("--rope", nargs="+", **settings["rope"])
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=not_plain)
"""
    seen = bench.observe(bench.wheel({"tiny/arguments.py": arguments}))
    assert (seen.read, seen.reason.startswith(reason)) == ("static", True), seen.reason
    assert seen.flags == (
        Flag("cache", ("--cache",), "bool_optional", ("--no-cache",)),
        Flag("eager", ("--eager",), "store_true", default=False),
        Flag("max_len", ("--max-len",), "unknown"),
        Flag("heads", ("--num-heads", "--heads"), "unknown"),
        Flag("port", ("--port", "-p"), "value", type="int", choices=(1, 2), default=8000),
        Flag("rope", ("--rope",), "unknown", nargs="+"),
        Flag("url", ("--url",), "value"),
        Flag("model_tag", ("<positional>",), "value", nargs="?"),
    )
    assert '"read": "static"' in to_json(seen)
    assert seen.lists["methods"] == ("eagle", "mtp", "ngram")


@pytest.mark.parametrize(
    ("hungry", "limits", "reason"),
    [
        ("import time; time.sleep(600)", Limits(seconds=2), "the parser took more than 2 seconds"),
        ("b'x' * (8 << 30)", Limits(memory_bytes=1 << 30, seconds=60), "MemoryError"),
    ],
)
def test_a_parser_has_bounds_of_time_and_memory(
    bench: Bench, hungry: str, limits: Limits, reason: str
) -> None:
    marker = bench.folder / "still-here"
    child = f"import time; time.sleep(4); open({str(marker)!r}, 'w')"
    arguments = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {child!r}])
{hungry}
"""
    wheel = bench.wheel({"tiny/arguments.py": arguments})
    began = time.monotonic()
    seen = bench.observe(wheel, limits=limits)
    assert time.monotonic() - began < 30
    assert (seen.read, seen.reason.partition(":")[0]) == ("static", reason)
    time.sleep(max(0.0, 5.5 - (time.monotonic() - began)))
    assert not marker.exists(), "what the parser started is ended with it"


def test_a_module_that_is_missing_is_stood_in_for(bench: Bench) -> None:
    arguments = """
import gpu.kernels
from gpu import Device, compiled
from gpu.compiler.deep import Target

try:
    import nothing_like_this
    NAME = "found"
except ImportError:
    NAME = "absent"

@compiled
def make_parser(parser):
    class Mine(Device):
        target: Target | None = None
    parser.add_argument("--name", default=NAME)
    parser.add_argument("--mine", default=Mine.__name__)
    parser.add_argument("--driver", default=hasattr(gpu.runtime, "driver"))
    return parser
"""
    absent = "stand_ins: [{modules: [gpu], absent: [gpu.runtime.driver]}]\n"
    bench.say(RECIPE + absent)
    seen = bench.observe(bench.wheel({"tiny/arguments.py": arguments}))
    assert (seen.read, seen.reason, seen.stand_ins) == ("parser", "", ("gpu",))
    assert [flag.default for flag in seen.flags] == [False, "Mine", "absent", None]
    bench.say(RECIPE)  # an import that nothing catches is stood in for without being named
    again = bench.observe(again=True)
    assert (again.stand_ins, again.flags[0].default) == (("gpu",), True)


@pytest.mark.parametrize(
    "said", ["choices=gpu.NAMES", "default=gpu.NAME", "default=[gpu.NAME]", "choices=['a', gpu.B]"]
)
def test_a_stand_in_never_reaches_an_observation(bench: Bench, said: str) -> None:
    arguments = f"""
import gpu

def make_parser(parser):
    parser.add_argument("--name", {said})
"""
    seen = bench.observe(bench.wheel({"tiny/arguments.py": arguments}))
    assert seen.read == "static"
    assert "its module is not installed" in seen.reason


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tiny_engine-1.0-py3-none-any.whl", b"<html>", "is not a whole wheel"),
        ("tiny_engine-1.0-py3-none-any.whl", None, "is not a whole wheel"),
        ("tiny_engine-2.0-py3-none-any.whl", b"", "is tiny-engine 2.0, not tiny-engine 1.0"),
        ("other-1.0-py3-none-any.whl", b"", "is other 1.0, not tiny-engine 1.0"),
        ("tiny.zip", b"", "is not named as a wheel is"),
    ],
)
def test_a_file_that_is_no_wheel_of_the_release_is_refused(
    bench: Bench, name: str, content: bytes | None, message: str
) -> None:
    cut = bench.wheel().read_bytes()[:-200]
    wheel = bench.folder / name
    wheel.write_bytes(cut if content is None else content)
    with pytest.raises(ExtractionError, match=message):
        bench.observe(wheel)
    assert not [path for path in bench.left() if path.endswith((".py", ".json"))]


def test_a_damaged_or_hostile_wheel_is_refused(bench: Bench) -> None:
    for name in ("../evil.py", "/evil.py", "tiny/../../evil.py"):
        with pytest.raises(ExtractionError, match="leads out of its folder"):
            bench.observe(bench.wheel({name: ""}))
    wheel = bench.wheel({"tiny/envs.py": "VARIABLES = {'SOMETHING_LONG': 1}\n"})
    content = wheel.read_bytes()
    wheel.write_bytes(content.replace(b"SOMETHING_LONG", b"SOMETHING_LYNG", 1))
    with pytest.raises(ExtractionError, match="is not a whole wheel"):
        bench.observe(wheel)
    with pytest.raises(ExtractionError, match=r"gone-1\.0.*No such file"):
        observe(
            "tiny",
            "1.0",
            recipe=recipe_with(bench, "package: tiny-engine", "package: gone"),
            wheel=bench.folder / "gone-1.0-py3-none-any.whl",
            cache=bench.cache,
        )
    assert not list(bench.folder.rglob("evil.py"))
    assert [path for path in bench.left() if path.endswith(".py")] == []


def recipe_with(bench: Bench, old: str, new: str) -> Recipe:
    assert old in RECIPE
    bench.say(RECIPE.replace(old, new))
    return bench.recipe()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('versions: "<2"', 'versions: "below 2"', "extract.yaml:6:16"),
        ("type_names:", "type_name:", "did you mean `type_names`"),
        (
            "lists:",
            "lists:\n  tool_parsers: [{flag: --x}]",
            "must be one of `variables`, `methods`",
        ),
        ("package: tiny-engine", "", "package"),
        ("literal: Method", 'strings: "["', "a regular expression"),
        ("files: [tiny/envs.py]", "files: [../envs.py]", "a path in the package"),
    ],
)
def test_a_mistake_in_a_recipe_is_told_with_its_place(
    bench: Bench, old: str, new: str, message: str
) -> None:
    with pytest.raises(ExtractionError) as caught:
        recipe_with(bench, old, new)
    assert message in str(caught.value)
    assert "serve.d/tiny/extract.yaml" in str(caught.value)


def test_an_engine_without_a_recipe_and_a_version_that_is_none_are_told(bench: Bench) -> None:
    with pytest.raises(ExtractionError, match=r"serve\.d/quick/extract\.yaml is missing"):
        recipe_of("quick")
    with pytest.raises(ExtractionError, match="`newest` is not a version"):
        bench.observe(version="newest")
    seen = bench.observe(bench.wheel(version="3.0"), version="3.0")
    assert (seen.read, seen.reason) == (
        "static",
        "the extraction recipe has no way to the parser of this version",
    )


def test_the_cache_folder_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVEC_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    monkeypatch.setenv("HOME", "/three")
    assert cache_folder() == Path("/one")
    monkeypatch.delenv("SERVEC_CACHE")
    assert cache_folder() == Path("/two/servec")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/three/.cache/servec")


def test_the_walker_stands_alone() -> None:
    """It runs where servec is not installed, and must not find servec's modules by their place."""
    walk = ROOT / "compiler" / "servec" / "extract" / "walk.py"
    assert "servec" not in walk.read_text().partition("from __future__")[2]
    request = json.dumps({"limits": {"memory_bytes": 1 << 30, "seconds": 9}})
    command = [sys.executable, "-I", "-S", str(walk)]
    done = subprocess.run(command, input=request, text=True, capture_output=True, check=False)
    assert "KeyError: 'distribution'" in done.stderr, "all that it imports was there"


@pytest.mark.parametrize(
    "engine", sorted(p.parent.name for p in ROOT.glob("serve.d/*/extract.yaml"))
)
def test_shipped_recipes_are_whole(engine: str) -> None:
    """Every version from the oldest on has a way and exactly one of each thing it installs."""
    recipe = recipe_of(engine)
    bounds = {
        part.lstrip("<>=!~")
        for rules in (recipe.parsers, recipe.requirements, recipe.stand_ins)
        for rule in rules
        if rule.versions is not None
        for part in rule.versions.value.split(",")
    }
    assert all(in_range(Version(bound), f"=={bound}") for bound in bounds)
    for version in map(Version, ["0.4", *bounds, "99"]):
        assert recipe.ways(version), version
        names = [text.partition("==")[0] for text in recipe.installed(version)]
        assert len(names) == len(set(names)), version
        assert {"torch", "transformers"} <= set(names), version


def test_the_parser_of_a_release_says_what_it_takes(bench: Bench) -> None:
    words = [["m", "--port", "1", "--middleware", "x"], ["m", "--port", "x"], ["--help"]]
    found, said = parser_says(
        "tiny", "1.0", words, recipe=bench.recipe(), wheel=bench.wheel(), cache=bench.cache
    )
    assert found == bench.observe().sha256
    assert said == (None, "argument --port/-p: invalid int value: 'x'", None)
    with pytest.raises(ExtractionError, match=r"the parser of tiny 2\.0 cannot be asked"):
        parser_says(
            "tiny",
            "2.0",
            words,
            recipe=bench.recipe(),
            wheel=bench.wheel(version="2.0"),
            cache=bench.cache,
        )
