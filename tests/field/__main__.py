"""python -m tests.field KIND FILE [-v]: hold servec against a file of cases.

KIND names the form of the rows (a module of this folder). Prints what fails with -v, then
`KIND: passed/total (exempt N)`; exits 0 where every row that is not exempt passes.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tests.field.rows import KINDS, judge, read


def main(arguments: list[str]) -> int:
    verbose = "-v" in arguments
    words = [word for word in arguments if word != "-v"]
    if len(words) != 2 or words[0] not in KINDS:
        print(__doc__, f"\nkinds: {', '.join(KINDS)}", file=sys.stderr)
        return 2
    kind, file = words
    module = importlib.import_module(f"tests.field.{kind}")
    rows = read(Path(file))
    result = judge(module, rows)
    if verbose:
        for name, problems in result.failed.items():
            print(name, *(f"  {problem}" for problem in problems), sep="\n")
        for name, reason in result.exempt.items():
            print(f"{name}\n  exempt: {reason}")
        for row in rows if hasattr(module, "findings") else ():
            for finding in module.findings(row):
                print(f"{row['id']}\n  found: {finding}")
    total = result.passed + len(result.failed)
    print(f"{kind}: {result.passed}/{total} (exempt {len(result.exempt)})")
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
