"""Reading files of cases and judging rows; a row is never softened to pass."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

KINDS = (
    "recipe_layers",
    "plan_runs",
    "requirement_rules",
    "engine_capabilities",
    "argv_verdicts",
    "real_configs",
    "bug_reports",
    "shard_launch",
)
Row = dict[str, Any]


class Kind(Protocol):
    """A module for one form of rows. It may have `exempt(row)`, a rule that gives the reason, and
    `findings(row)`, what servec says of a row that holds."""

    EXEMPT: dict[str, str]

    def check(self, row: Row) -> list[str]:
        """What differs; nothing where the row holds."""


@dataclass
class Result:
    """How the rows of one file fared."""

    passed: int = 0
    failed: dict[str, list[str]] = field(default_factory=dict)
    exempt: dict[str, str] = field(default_factory=dict)


def read(path: Path) -> list[Row]:
    """The rows of a file of lines; of one JSON object with `cases`, which get the rest of it as
    `head`; or of one of tables, whose rows get `table`, `folder` and an `id`."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line]
    tree = json.loads(text)
    if "cases" in tree:
        head = {name: value for name, value in tree.items() if name != "cases"}
        return [{**row, "head": head} for row in tree["cases"]]
    tables = {name: rows for name, rows in tree.items() if isinstance(rows, list)}
    return [
        {**row, "table": name, "folder": str(path.parent), "id": f"{name} {number}"}
        for name, rows in tables.items()
        for number, row in enumerate(rows)
    ]


def judge(kind: Kind, rows: list[Row]) -> Result:
    """Rows with a quirk of the system they came from are exempt, and those a module names or
    has a rule for."""
    result = Result()
    for row in rows:
        by_rule = getattr(kind, "exempt", lambda row: "")
        reason = kind.EXEMPT.get(row["id"]) or row.get("quirk") or by_rule(row)
        if reason:
            result.exempt[row["id"]] = reason
            continue
        try:
            problems = kind.check(row)
        except Exception as error:  # a row must not hide the rows behind it
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            result.failed[row["id"]] = problems
        else:
            result.passed += 1
    return result
