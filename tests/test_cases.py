"""Every case file of tests/cases and tests/mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from servec.diag import codes

from tests.case_files import Case, actual, bless, expected_text, read_cases

HERE = Path(__file__).parent
PATHS = sorted([*HERE.glob("cases/*/*.case"), *HERE.glob("mistakes/*.case")])
CASES = [case for path in PATHS for case in read_cases(path)]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.path.parent.name}/{case.path.stem}/{case.name}" for case in CASES]
)
def test_case(case: Case, tmp_path: Path, blessing: bool) -> None:
    out, findings = actual(case, tmp_path)
    if blessing:
        bless(case, out, findings)
        return
    if case.out is not None:
        assert "\n".join(out) == "\n".join(case.out)
    else:
        found = sorted(
            f"{finding.span.file}:{finding.span.line} {expected_text(finding)}"
            for finding in findings
            if finding.span
        )
        assert found == case.expectations
        assert found, "a case without [out] must expect a finding"


@pytest.mark.parametrize("number", codes.BY_NUMBER)
def test_code_has_a_page_and_a_mistake(number: str) -> None:
    page = HERE.parent / "docs" / "findings" / f"{number}.md"
    assert page.read_text(encoding="utf-8").startswith(f"# {number}: ")
    cases = read_cases(HERE / "mistakes" / f"{number}.case")
    assert cases
    for case in cases:
        shown = "\n".join(case.out or case.expectations)
        assert number in shown, f"{case.name} does not show {number}"
