"""Published command lines against what the engine's own parser said of them."""

from __future__ import annotations

import re

import servec
from servec.diag.codes import CUT_SHORT, DEPRECATED

from tests.field.rows import Row

EXEMPT: dict[str, str] = {}


def check(row: Row) -> list[str]:
    found = servec.check_argv(row["engine"], row["argv"], version=row["version"])
    errors = [item.message for item in found if item.severity.word == "error"]
    problems = []
    if bool(errors) is bool(row["accepted"]):
        said = row["message"][-300:] or "accepted"
        problems.append(f"the parser said: {said}; servec: {errors or 'nothing'}")
    for key, code, name in (("abbreviated", CUT_SHORT, "word"), ("deprecated", DEPRECATED, "flag")):
        told = {str(dict(item.arguments)[name]) for item in found if item.code is code}
        if row["accepted"]:
            problems += [f"{key}: {flag} gets no warning" for flag in row[key] if flag not in told]
    if errors and row["message"] and not any(named_in(row["message"], text) for text in errors):
        problems.append(f"the parser said: {row['message'][-300:]}; servec names another: {errors}")
    return problems


def named_in(said: str, error: str) -> bool:
    """Whether an error names a flag, value or word that the parser's message has."""
    words = re.findall(r"`([^`]+)`", error)
    return any(word.lstrip("-") in said for word in words)
