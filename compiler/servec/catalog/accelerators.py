"""Accelerators by key, or by the product string that a driver prints.

    NVIDIA H100 80GB HBM3 -> H100-80G      NVIDIA H200 -> H200-141G      h100_80g -> H100-80G

A string is brought to the form of a key and must then equal one; never a prefix match, so GH200,
H20 or H100 NVL are not taken for their neighbours.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servec.ir.knowledge import Accelerator

# Words of a product string that say nothing about which accelerator it is: whose it is, and in
# which form it is mounted.
SILENT = re.compile(r"(?:NVIDIA|AMD|TESLA|GEFORCE|INSTINCT|SXM[0-9]*|PCIE|OAM|HBM[0-9]*E?)\Z")
SIZE = re.compile(r"([0-9]+)GB?\Z")


@cache
def canonical(text: str) -> str:
    """A product string in the form of a key."""
    words = re.split(r"[\s_-]+", text.strip().upper())
    return "-".join(SIZE.sub(r"\1G", word) for word in words if not SILENT.match(word))


class AcceleratorTable:
    """All accelerators, and the ways to name them."""

    def __init__(self, accelerators: dict[str, Accelerator]) -> None:
        self.by_key = accelerators
        self._by_name: dict[str, str] = {}
        families: dict[str, list[str]] = {}
        for key, accelerator in accelerators.items():
            name = canonical(key)
            self._by_name[name] = key
            family, _, size = name.rpartition("-")
            if family and SIZE.match(size):
                families.setdefault(family, []).append(key)
            for product in accelerator.products:
                self._by_name.setdefault(canonical(product.value), key)
        for family, keys in families.items():
            if len(keys) == 1:
                self._by_name.setdefault(family, keys[0])

    def find(self, text: str) -> Accelerator | None:
        key = text if text in self.by_key else self._by_name.get(canonical(text))
        return self.by_key[key] if key else None
