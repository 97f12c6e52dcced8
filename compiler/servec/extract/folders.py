"""The cache folder: things that are made once, whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
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
    not accept is made anew. One that it accepts is only read, so the cache may be read-only.
    """
    try:
        if not holds(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            lock = target.with_name(f".{target.name}.lock")
            with _locked(lock, os.O_RDWR | os.O_CREAT, target):
                if not holds(target):
                    _make(target, make)
    except OSError as error:
        raise ExtractionError(f"{target}: {error.strerror or error}") from error
    return target


def write_whole(target: Path, make: Callable[[], str]) -> None:
    """Write a file beside its place and move it there. One process at a time makes the text of a
    file in a folder, so that it can build on the text that is there."""
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent, os.O_RDONLY, target):
            try:
                aside.write_text(make(), encoding="utf-8")
                aside.replace(target)
            finally:
                aside.unlink(missing_ok=True)
    except OSError as error:
        raise ExtractionError(f"{target}: {error.strerror or error}") from error


@contextmanager
def _locked(place: Path, how: int, what: Path) -> Iterator[None]:
    """A file or folder, held by one process at a time and given up by one that dies.

    Programs that inherit it hold it too: what a killed run has started may still be writing.
    """
    held = os.open(place, how, 0o666)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"servec: waiting for another process that makes {what}", file=sys.stderr)
            fcntl.flock(held, fcntl.LOCK_EX)
        os.set_inheritable(held, True)
        yield
    finally:
        os.close(held)


def _make(target: Path, make: Callable[[Path], None]) -> None:
    aside = target.with_name(f".{target.name}.making")
    old = target.with_name(f".{target.name}.old")
    _remove(aside, old)  # what an interrupted run left
    aside.mkdir()
    try:
        make(aside)
        if target.exists():
            target.rename(old)  # a folder that is removed in its place is half there for a while
        aside.rename(target)
    finally:
        _remove(aside, old)


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
