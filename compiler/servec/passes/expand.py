"""expand: servers and their variants -> one draft a plan, sized by the formula.

    Server(qwen3-8b, variants=(H100-80G × vllm, H200-141G × sglang))
      -> Draft(qwen3-8b--h100-80g-vllm, formula_tp=1),
         Draft(qwen3-8b--h200-141g-sglang, formula_tp=1)

Formula: tp is the next power of two of ⌈parameters × bytes per parameter ÷ (GPU memory × 0.65)⌉;
the other 35 % are for the KV cache and what the engine needs.
"""

from __future__ import annotations

import math
from fractions import Fraction

from servec.ir import knowledge
from servec.ir.facts import BYTES_OF_PRECISION
from servec.ir.plan import Draft
from servec.ir.program import Program, Subject

WEIGHT_SHARE = Fraction(65, 100)


def run(program: Program) -> tuple[Draft, ...]:
    drafts, servers = [], dict[str, int]()
    for server in program.servers:
        for subject in server.variants:
            tp, formula = _formula_tp(subject)
            hosts = [host.value for host in subject.model.hosts]
            turn = max((servers.get(host, 0) for host in hosts), default=0)
            servers |= dict.fromkeys(hosts, turn + 1)
            drafts.append(Draft(subject, server.demands, tp, formula, turn))
    return tuple(drafts)


def _formula_tp(subject: Subject) -> tuple[int | None, str]:
    """The formula's tp and how it was reached; None where the size or the precision is unknown."""
    billions = subject.facts.billions
    per_parameter = BYTES_OF_PRECISION.get(subject.precision or "")
    if billions is None or per_parameter is None:
        return None, ""
    weight_bytes = Fraction(str(billions)) * 10**9 * Fraction(per_parameter)
    memory_bytes = accelerator_bytes(subject.accelerator)
    least = math.ceil(weight_bytes / (memory_bytes * WEIGHT_SHARE))
    tp = 1 << (max(least, 1) - 1).bit_length()
    formula = (
        f"{billions:g}B parameters × {per_parameter:g} bytes on {subject.accelerator.name.value} "
        f"({memory_bytes / 2**30:.1f} GiB × {float(WEIGHT_SHARE):g})"
    )
    return tp, formula


def accelerator_bytes(accelerator: knowledge.Accelerator) -> int:
    """Memory as formulas count it: the driver's total, else the nominal size, in bytes."""
    if accelerator.driver_total_mib is not None:
        return accelerator.driver_total_mib.value * 2**20
    return int(accelerator.nominal_gb.value * 10**9)
