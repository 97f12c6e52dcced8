"""Published command lines against what the engine's own parser said of them.

The parser stops at its first mistake and servec tells all, so one of the errors has to name what
the parser does. What is abbreviated is compared flag by flag. Deprecated flags have to be told;
servec also tells those that a release deprecates elsewhere than in its parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import servec
from servec.diag.findings import Finding

from tests.field.rows import Row

EXEMPT: dict[str, str] = {}
SHORT, AMBIGUOUS, DEPRECATED = "SV0616", "SV0617", "SV0619"
CHOICE = re.compile(r"invalid choice: '([^']*)'")


def check(row: Row) -> list[str]:
    found = servec.check_argv(row["engine"], row["argv"], version=row["version"])
    errors = [item for item in found if item.severity.word == "error"]
    said = [item.message for item in errors]
    problems = []
    if bool(errors) is bool(row["accepted"]):
        problems.append(f"the parser said: {row['message'][-300:] or 'accepted'}; servec: {said}")
    elif errors and not any(_names(item, row["message"]) for item in errors):
        problems.append(f"none names what the parser does, {row['message'][:300]}: {said}")
    short = _flags(found, SHORT, AMBIGUOUS)
    if short != set(row["abbreviated"]):
        problems.append(f"abbreviated: {row['abbreviated']}, servec: {sorted(short)}")
    if untold := set(row["deprecated"]) - _flags(found, DEPRECATED):
        problems.append(f"deprecated: {sorted(untold)} gets no warning")
    return problems


def _names(error: Finding, message: str) -> bool:
    """Whether an error is of a flag, key or value of the parser's message: of the value itself
    where that is no choice, and never of what might have been given instead."""
    quoted = set(re.findall(r"`([^`]+)`", error.message))
    if choice := CHOICE.search(message):
        return choice[1] in quoted
    subject = re.split(r"\(choose from|could match", message)[0]
    return bool(quoted & set(re.split(r"[\s='\"\[\]/:,]+", subject)))


def _flags(found: Iterable[Finding], *codes: str) -> set[str]:
    return {item.message.split("`")[1] for item in found if item.code.number in codes}
