"""The command `servec`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Asking for the version imports nothing else."""
    if sys.argv[1:] == ["--version"]:
        from servec import __version__

        print(f"servec {__version__}")
        return
    from servec.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
