"""Rules of the code itself: what imports what, what names what, how a pass looks."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from servec.catalog.catalog import Catalog
from servec.diag.findings import Findings
from servec.pipeline import PASSES
from servec.source.files import Files, Folder

from tests.conftest import ROOT

PACKAGE = ROOT / "compiler" / "servec"
MODULES = sorted(PACKAGE.rglob("*.py"))
EVALUATES = {"servec.passes.require", "servec.passes.bind", "servec.passes.layer"}
LAUNCHES = ("emit", "strategy", "ir/launch.py", "passes/lower.py")


def imports(path: Path) -> set[str]:
    """Modules that a file imports when it is loaded or called."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def test_no_engine_is_named_in_python() -> None:
    """Engine knowledge is data: no string, name or attribute of the package is an engine's name."""
    engines = re.compile(r"vllm|sglang|tensorrt|trtllm|llama[-_]?cpp|\blmi\b|\bdjl\b", re.I)
    found = []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            name = text if isinstance(text, str) and id(node) not in documented else ""
            name = name or getattr(node, "id", "") or getattr(node, "attr", "")
            if isinstance(name, str) and engines.search(name):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")  # type: ignore[attr-defined]
    assert found == []


def test_what_launches_imports_nothing_that_evaluates() -> None:
    for path in MODULES:
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith(LAUNCHES):
            assert not imports(path) & EVALUATES, place


def test_passes_touch_no_file_clock_or_environment() -> None:
    forbidden = {"os", "pathlib", "time", "datetime", "random", "subprocess", "locale", "io"}
    for folder in ("passes", "ir", "catalog", "emit", "diag"):
        for path in (PACKAGE / folder).glob("*.py"):
            assert not imports(path) & forbidden, path.name


@pytest.mark.parametrize("name", [name for name in PASSES if name != "emit"])
def test_a_pass_has_one_public_function(name: str) -> None:
    module = importlib.import_module(f"servec.passes.{name}")
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    public = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    assert public[0] == "run"
    assert len((module.__doc__ or "").strip().splitlines()) >= 4, "five lines before and after"


def test_modules_are_short_and_documented() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        # A table, and a program that imports nothing of servec, since it runs in a release's place.
        is_one = path.name in ("codes.py", "walk.py")
        assert is_one or text.count("\n") <= 400, path
        assert ast.get_docstring(ast.parse(text)), path


def test_shipped_data_is_without_findings() -> None:
    """In this checkout the shipped folders are the project's own, so all of it is read."""
    findings = Findings()
    catalog = Catalog(Files(Folder(ROOT), findings), findings)
    catalog.read_own()
    assert [str(item.span) + item.message for item in findings] == []
    accelerators = catalog.accelerators.by_key
    for instance in catalog.instances.values():
        assert instance.accelerator.value in accelerators
    assert {"vllm", "sglang"} <= set(catalog.engine_names)
