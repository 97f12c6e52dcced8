"""The files of one run: the project's own and the shipped ones, each read and parsed once."""

from __future__ import annotations

import errno
import re
from functools import cache
from pathlib import Path

from servec.diag import codes
from servec.diag.findings import Findings
from servec.source import limits
from servec.source.located import Node, Span
from servec.source.shipped import MARK, shipped_root
from servec.source.tree import Folder, Memory, Tree

SUFFIXES = (".yaml", ".yml", ".json")
PROJECT_FILE = "servec.yaml"
YAML_BREAKS = "\r\n|[\n\r\x85\u2028\u2029]"  # as libyaml counts lines


class Files:
    """Text and located values by path. Shipped files carry the mark `servec:` in their path."""

    def __init__(self, own: Tree, findings: Findings) -> None:
        self.own = own
        self.findings = findings
        root = shipped_root()
        same = isinstance(own, Folder) and own.root.resolve() == root
        self.shipped: Folder | None = None if same else Folder(root)
        self._nodes: dict[str, Node | None] = {}
        self._texts: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}

    def listing(self, folder: str) -> tuple[list[str], list[str]]:
        """The data files below a folder: the project's own, then the shipped ones."""
        own = [path for path in self.own_files(folder) if path.lower().endswith(SUFFIXES)]
        if self.shipped is None:
            return own, []
        shipped = [MARK + path for path in self.shipped.files(folder) if path.endswith(SUFFIXES)]
        return own, shipped

    def has_folder(self, folder: str) -> bool:
        """Whether the project has a folder of this path."""
        return self.own.has_folder(folder)

    def exists(self, path: str) -> bool:
        if path.startswith(MARK):
            return self.shipped is not None and self.shipped.has_file(path[len(MARK) :])
        return path in self._texts or self.own.has_file(path)

    def text(self, path: str) -> str | None:
        """The text of a file that was listed or exists; None with a finding where it has none."""
        if path not in self._texts:
            content = self._bytes(path)
            if content is None:
                return None
            decoded = _decode(path, content, self.findings)
            if decoded is None:
                return None
            self._texts[path] = decoded
        return self._texts[path]

    def node(self, path: str) -> Node | None:
        """The file's value, or None where there is none; findings are made at the first call."""
        if path not in self._nodes:
            self._nodes[path] = self._parse(path)
        return self._nodes[path]

    def line(self, path: str, number: int) -> str | None:
        """One line of a file that was read, for carets."""
        if path not in self._lines:
            breaks = YAML_BREAKS if path.lower().endswith((".yaml", ".yml")) else "\r?\n"
            self._lines[path] = re.split(breaks, self._texts.get(path, ""))
        lines = self._lines[path]
        return lines[number - 1] if 0 < number <= len(lines) else None

    def add(self, path: str, text: str) -> None:
        """A source that is no file, as the words of the command line."""
        self._texts[path] = text

    def own_files(self, folder: str) -> list[str]:
        """Every file of the project below a folder, of whatever kind. A name that cannot stand in
        a comment or a message is refused."""
        try:
            return [path for path in self.own.files(folder) if self._has_plain_name(path)]
        except OSError as error:
            problem = error.strerror or str(error)
            self.findings.add(codes.UNREADABLE, Span(folder, 1, 1), problem=problem)
            return []

    def _has_plain_name(self, path: str) -> bool:
        if path.isprintable():
            return True
        shown = "".join(c if c.isprintable() else "\ufffd" for c in path)
        problem = "its name has characters that cannot be shown"
        self.findings.add(codes.UNREADABLE, Span(shown, 1, 1), problem=problem)
        return False

    def _parse(self, path: str) -> Node | None:
        text = self.text(path)
        if text is None:
            return None
        if path.lower().endswith(".json"):
            from servec.source.json_reader import read_json

            return read_json(path, text, self.findings)
        from servec.source.yaml_reader import read_yaml

        known = _read_shipped(path, text) if path.startswith(MARK) else None
        return known or read_yaml(path, text, self.findings)

    def _bytes(self, path: str) -> bytes | None:
        try:
            if path.startswith(MARK):
                return self.shipped.read(path[len(MARK) :]) if self.shipped else None
            content = self.own.read(path)
            if content is None:
                raise OSError(errno.ENOENT, "it is gone, or a link that leads nowhere")
            return content
        except OSError as error:
            problem = error.strerror or str(error)
            self.findings.add(codes.UNREADABLE, Span(path, 1, 1), problem=problem)
            return None


@cache
def _read_shipped(path: str, text: str) -> Node | None:
    """A shipped file's value, read once a process whatever is compiled; None with a mistake."""
    from servec.source.yaml_reader import read_yaml

    findings = Findings()
    node = read_yaml(path, text, findings)
    return None if list(findings) else node


def _decode(path: str, content: bytes, findings: Findings) -> str | None:
    if len(content) > limits.FILE_BYTES:
        limit = limits.FILE_BYTES // 1024 // 1024
        problem, advice = f"more than {limit} MiB", "split the file"
        findings.add(codes.TOO_LARGE, Span(path, 1, 1), problem=problem, advice=advice)
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        span = Span(path, line, column)
        findings.add(codes.NOT_UTF8, span, offset=error.start, byte=content[error.start])
        return None


def find_project(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds a servec.yaml."""
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate
    return None


__all__ = ["Files", "Folder", "Memory", "find_project"]
