"""Where servec's own data folders are: beside the code in a wheel, at the root in a checkout."""

from __future__ import annotations

from pathlib import Path

MARK = "servec:"
"""What stands before the path of a shipped file in messages and plans."""


def shipped_root() -> Path:
    package = Path(__file__).resolve().parents[1]
    installed = package / "shipped"
    return installed if installed.is_dir() else package.parents[1]
