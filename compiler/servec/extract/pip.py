"""pip of the Python that servec runs in: what it fetches, and why it could not, in plain words.

The index, proxies and certificates are those that the user's pip is set up for.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from servec.extract.errors import ExtractionError

SECONDS = 3600
QUIET = ("--quiet", "--no-input", "--disable-pip-version-check")
NO_ANSWER = re.compile(r"Retry\(total=0\b.*?\) after connection broken by '\w+\((.*)\)'")
"""What pip says at the last of its attempts to connect."""
NOT_THERE = re.compile(
    r"Could not find a version that satisfies the requirement ([^\s;]+).*\(from versions: (.*)\)"
)
SHOWN = 3


def run(words: Sequence[str], problem: str, folder: Path) -> None:
    """Run pip with its temporary files in a folder. Where it fails, `problem` begins the error.

    It inherits the locks that are held for the folder, so that nobody else writes there before it
    has ended, even if this process is killed.
    """
    command = [sys.executable, "-m", "pip", *words]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            close_fds=False,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    except subprocess.TimeoutExpired as error:
        raise ExtractionError(f"{problem} in an hour") from error
    if done.returncode != 0:
        raise ExtractionError(f"{problem}: {_complaint(done.stderr)}")


def _complaint(text: str) -> str:
    """Why pip failed: in servec's words where it is known, else pip's last complaint."""
    if text.rstrip().endswith("No module named pip"):
        return f"this Python has no pip; `{sys.executable} -m ensurepip` installs it"
    if no_answer := NO_ANSWER.search(text):
        cause = no_answer[1].rpartition(">: ")[2].strip("'\"")
        return f"the package index does not answer ({cause})"
    if not_there := NOT_THERE.search(text):
        return _not_there(not_there[1], not_there[2].split(", "))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    if errors[-1:] == ["Exception:"]:  # and its traceback below
        errors = []
    return (errors or lines or ["pip said nothing"])[-1]


def _not_there(requirement: str, versions: list[str]) -> str:
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    known = f"the newest that it has: {', '.join(versions[: -SHOWN - 1 : -1])}"
    if versions == ["none"]:
        known = "it has nothing of that name, or does not answer"
    return f"the index has no wheel of {requirement} for {here}; {known}"
