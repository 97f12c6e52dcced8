"""Any file -> engine command lines, read as what it is: YAML, a Dockerfile, a unit or a script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from servec.lint.find import Found, in_text
from servec.lint.find_docker import in_dockerfile, is_dockerfile
from servec.lint.find_yaml import Unread, in_yaml, is_yaml


def find(path: str, text: str, marks: re.Pattern[str]) -> Iterator[Found | Unread]:
    """Every command line of a file, and where it cannot be read further. `marks` are what a text
    has that may hold one."""
    if is_yaml(path, text):
        return in_yaml(text, marks)
    if is_dockerfile(path):
        return in_dockerfile(text)
    return in_text(text, marks)
