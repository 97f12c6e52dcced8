"""Where source text comes from: a folder, or a mapping in memory. Paths use `/` and begin at the
project's root; listings are sorted, so that no order of a file system reaches the output."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from servec.source import limits


class Tree(Protocol):
    """Read-only files under one root."""

    def files(self, folder: str) -> list[str]:
        """Every file below `folder`, sorted; none where there is no such folder. Raises OSError
        where a folder cannot be listed."""

    def has_folder(self, folder: str) -> bool:
        """Whether there is such a folder."""

    def has_file(self, path: str) -> bool:
        """Whether there is such a file, or a link in its place."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes, or None where there is no such file. Raises OSError where it cannot
        be read."""


class Memory:
    """A tree in memory: `{path: text}`."""

    def __init__(self, texts: Mapping[str, str | bytes]) -> None:
        self._texts = {
            path: text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
            for path, text in texts.items()
        }

    def files(self, folder: str) -> list[str]:
        return sorted(path for path in self._texts if path.startswith(f"{folder}/"))

    def has_folder(self, folder: str) -> bool:
        return bool(self.files(folder))

    def has_file(self, path: str) -> bool:
        return path in self._texts

    def read(self, path: str) -> bytes | None:
        return self._texts.get(path)


class Folder:
    """A tree on disk. Links are followed, each folder once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self, folder: str) -> list[str]:
        return sorted(_walk(str(self.root / folder), folder, set()))

    def has_folder(self, folder: str) -> bool:
        return os.path.isdir(self.root / folder)

    def has_file(self, path: str) -> bool:
        place = self.root / path
        return os.path.lexists(place) and not os.path.isdir(place)

    def read(self, path: str) -> bytes | None:
        try:
            with open(self.root / path, "rb", opener=_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EINVAL, "it is not a regular file")
                return file.read(limits.FILE_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, and a pipe without waiting for its other end."""
    return os.open(path, flags | os.O_NONBLOCK)


def _walk(folder: str, name: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    try:
        status = os.stat(folder)
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return
    seen.add(identity)
    for entry in entries:
        path = f"{name}/{entry.name}"
        if entry.name.startswith("."):
            continue
        if _is_folder(entry):
            yield from _walk(entry.path, path, seen)
        else:
            yield path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a ring of links: reading it says so, at its own place
        return False
