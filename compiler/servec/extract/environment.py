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

from servec.extract import pip
from servec.extract.errors import ExtractionError
from servec.extract.folders import made_once


def environment_of(requirements: Sequence[str], cache: Path) -> Path:
    """The interpreter of an environment with these requirements."""
    wanted = sorted(set(requirements))
    text = "\n".join([sys.version, sys.platform, *wanted])
    target = cache / "environments" / sha256(text.encode()).hexdigest()[:16]
    made_once(target, lambda aside: make(aside, wanted), lambda at: _python(at).exists())
    return _python(target)


def _python(folder: Path) -> Path:
    """The interpreter; a link that leads nowhere once the Python that made it is gone."""
    return folder / "bin" / "python"


def make(folder: Path, requirements: Sequence[str]) -> None:
    """Fill a folder with an environment that has these requirements. Raises ExtractionError."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise ExtractionError(f"an environment could not be made: {said}")
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
    if requirements:
        install = ["--python", str(_python(folder)), "install", "--only-binary", ":all:"]
        problem = "the packages that the parser imports could not be installed"
        pip.run([*install, *pip.QUIET, *requirements], problem, folder)
