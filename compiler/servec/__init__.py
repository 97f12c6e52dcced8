"""servec: a compiler for LLM serving.

The public functions are imported on first use, so that `servec --version` pays for none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servec.api import (
        InvalidManifest,
        InvalidShard,
        Result,
        UnknownEngine,
        capabilities,
        check_argv,
        check_profile,
        compile,
        engine_version,
        launch,
    )

__version__ = "0.1.0"
__all__ = [
    "InvalidManifest",
    "InvalidShard",
    "Result",
    "UnknownEngine",
    "__version__",
    "capabilities",
    "check_argv",
    "check_profile",
    "compile",
    "engine_version",
    "launch",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `servec` has no attribute `{name}`")
    from servec import api

    return getattr(api, name)
