"""python -m tests.conformance [ENGINE [VERSION]] [-v]: ask the parsers of released packages.

Prints a line a release, and every difference that is not named; with -v the named ones too. Exits 1
where there is one. A run of all releases of an engine without one writes its part of
tests/conformance/record.json.
"""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import suppress
from datetime import date
from multiprocessing import Process

from servec.extract.errors import ExtractionError
from servec.extract.observe import fetch

from tests.conformance.compare import Compared, compare
from tests.conformance.record import write
from tests.conformance.releases import RELEASES


def main(arguments: list[str]) -> int:
    verbose = "-v" in arguments
    asked = [word for word in arguments if word != "-v"]
    results: dict[str, dict[str, Compared]] = {}
    releases = [
        (engine, version)
        for engine, versions in RELEASES.items()
        for version in versions
        if asked == [engine, version][: len(asked)]
    ]
    Process(target=fetch_ahead, args=(releases,), daemon=True).start()
    for engine, version in releases:
        started = time.monotonic()
        try:
            found = compare(engine, version)
        except ExtractionError as error:
            print(f"{engine} {version} could not be asked: {error}", file=sys.stderr)
            return 1
        results.setdefault(engine, {})[version] = found
        show(engine, version, found, time.monotonic() - started, verbose)
    if not results:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = any(found.wrong for releases in results.values() for found in releases.values())
    if not wrong and len(asked) < 2:
        write(results, date.today())
    return 1 if wrong else 0


def fetch_ahead(releases: list[tuple[str, str]]) -> None:
    """Fetch what the next releases need while the parser of one is asked. A release that cannot be
    fetched is told where it is asked."""
    for engine, version in releases:
        with suppress(ExtractionError):
            fetch(engine, version)


def show(engine: str, version: str, found: Compared, seconds: float, verbose: bool) -> None:
    """A release's line, and its differences below."""
    named = len(found.differences) - len(found.wrong)
    agreed = found.argvs - len(found.differences)
    print(
        f"{engine} {version}: {agreed}/{found.argvs} agree, {named} named differences, "
        f"{len(found.wrong)} others ({seconds:.0f} s)",
        flush=True,
    )
    for item in found.differences if verbose else found.wrong:
        print(f"  {item.line.what}: {shlex.join(item.line.argv)}")
        print(f"    servec {item.servec}: {' '.join(item.message.split())[:200]}")
        if item.reason:
            print(f"    named: {item.reason}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
