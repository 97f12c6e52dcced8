"""How one replica of a model is spread over GPUs."""

from __future__ import annotations

from typing import NamedTuple


class Topology(NamedTuple):
    """tp·pp·dp GPUs. None stands for what is not used."""

    tp: int
    pp: int
    dp: int
    ep: int | None
    cp: int | None
    dcp: int | None
    enable_dp_attention: bool
    replicas: int

    @property
    def gpus(self) -> int:
        return self.tp * self.pp * self.dp


ONE = Topology(1, 1, 1, None, None, None, False, 1)
"""Stands where a topology could not be settled; a finding says why."""
