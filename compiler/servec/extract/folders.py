"""The cache folder: things that are made once, whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from servec.extract.errors import ExtractionError


def cache_folder() -> Path:
    """$SERVEC_CACHE, else servec's folder in the user's cache."""
    own = os.environ.get("SERVEC_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "servec"


def made_once(
    target: Path, make: Callable[[Path], None], holds: Callable[[Path], bool] = Path.is_dir
) -> Path:
    """The folder `target`, which `make` fills where it is not there yet.

    It is filled beside its place and moved there, so that an interrupted run leaves nothing that
    could be taken for it; only one process makes it, the others wait. A folder that `holds` does
    not accept is made anew.
    """
    try:
        with _lock(target):
            if not holds(target):
                _make(target, make)
    except OSError as error:
        raise ExtractionError(f"{target}: {error.strerror or error}") from error
    return target


def write_whole(target: Path, text: str) -> None:
    """Write a file beside its place and move it there."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        aside.write_text(text, encoding="utf-8")
        aside.replace(target)
    except OSError as error:
        raise ExtractionError(f"{target}: {error.strerror or error}") from error


@contextmanager
def _lock(target: Path) -> Iterator[None]:
    """Held by one process at a time, and given up by one that dies."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(f".{target.name}.lock"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(target: Path, make: Callable[[Path], None]) -> None:
    aside = target.with_name(f".{target.name}.making")
    shutil.rmtree(aside, ignore_errors=True)  # what an interrupted run left
    aside.mkdir()
    try:
        make(aside)
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
