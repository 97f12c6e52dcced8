"""Requirements -> a Python environment that has them, made once in the cache folder.

The packages that a release's parser imports are installed here and nowhere else. An environment is
known by its requirements and the Python that it was made with.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from servec.extract.errors import ExtractionError
from servec.extract.folders import made_once
from servec.extract.package import pip_says

INSTALL_SECONDS = 3600


def environment_of(requirements: Sequence[str], cache: Path) -> Path:
    """The interpreter of an environment with these requirements."""
    wanted = sorted(set(requirements))
    text = "\n".join([sys.version, sys.platform, *wanted])
    target = cache / "environments" / sha256(text.encode()).hexdigest()[:16]
    made_once(target, lambda aside: _make(aside, wanted))
    return _python(target)


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _make(folder: Path, requirements: list[str]) -> None:
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    _run(command, "an environment could not be made")
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
    if requirements:
        command = [sys.executable, "-m", "pip", "--python", str(_python(folder)), "install"]
        command += ["--quiet", "--no-input", "--disable-pip-version-check", *requirements]
        _run(command, f"{', '.join(requirements)} could not be installed")


def _run(command: list[str], problem: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ExtractionError(f"{problem} in an hour") from error
    if done.returncode != 0:
        raise ExtractionError(f"{problem}: {pip_says(done.stderr)}")
