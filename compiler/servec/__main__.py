"""The command `servec`."""

from __future__ import annotations

import gc
import sys

COLLECT_AFTER = 50_000
"""Objects until the collector looks for cycles: the trees of a compiler live to its end."""


def main() -> None:
    """Run the command line. Asking for the version imports nothing else."""
    if sys.argv[1:] == ["--version"]:
        from servec import __version__

        print(f"servec {__version__}")
        return
    gc.set_threshold(COLLECT_AFTER)
    from servec.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
