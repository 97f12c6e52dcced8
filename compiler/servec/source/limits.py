"""Bounds on what one source file may ask of the compiler, so that no file can exhaust it."""

from __future__ import annotations

FILE_BYTES = 16 * 1024 * 1024
DEPTH = 64
# Nodes of one file, an alias counted as all that it stands for.
NODES = 1_000_000
