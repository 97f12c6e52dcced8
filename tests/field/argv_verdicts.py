"""Published command lines against what the engine's own parser said of them."""

from __future__ import annotations

import servec

from tests.field.rows import Row

EXEMPT: dict[str, str] = {}
ABBREVIATED, DEPRECATED = "SV0616", "SV0619"


def check(row: Row) -> list[str]:
    found = servec.check_argv(row["engine"], row["argv"], version=row["version"])
    errors = [item.message for item in found if item.severity.word == "error"]
    problems = []
    if bool(errors) is bool(row["accepted"]):
        said = row["message"][-300:] or "accepted"
        problems.append(f"the parser said: {said}; servec: {errors or 'nothing'}")
    warned = {item.code.number for item in found if item.severity.word == "warning"}
    for key, code in (("abbreviated", ABBREVIATED), ("deprecated", DEPRECATED)):
        if row[key] and row["accepted"] and code not in warned:
            problems.append(f"{key}: {row[key]} gets no warning")
    return problems
