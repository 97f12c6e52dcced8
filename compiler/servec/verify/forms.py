"""Forms that the Kubernetes API server holds names, labels and quantities to.

"1500m" -> 3/2      "16Gi" -> 17179869184      "256GiB" -> None

Sources: kubernetes/apimachinery, pkg/util/validation/validation.go, pkg/api/resource/quantity.go;
kubernetes/kubernetes, pkg/apis/core/validation/validation.go; read 2026-12-01.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple


class Form(NamedTuple):
    """A pattern that a text has to match from its beginning to its end, and its greatest length."""

    pattern: str
    longest: int
    what: str

    def takes(self, text: str) -> bool:
        return len(text) <= self.longest and re.match(self.pattern, text) is not None


DNS_LABEL = Form(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", 63, "at most 63 small letters, digits and `-` inside"
)
DNS_1035 = Form(
    r"[a-z]([-a-z0-9]*[a-z0-9])?\Z",
    63,
    "at most 63 small letters, digits and `-` inside, a letter first",
)
DNS_SUBDOMAIN = Form(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z",
    253,
    "at most 253 small letters, digits, `-` and `.` inside",
)
LABEL_VALUE = Form(
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z",
    63,
    "at most 63 letters, digits, and `-`, `_` and `.` inside",
)
LABEL_NAME = Form(
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z",
    63,
    "`prefix/name`, or a name of at most 63 letters, digits, and `-`, `_` and `.` inside",
)
PORT_NAME = Form(
    r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
    15,
    "at most 15 small letters, digits and single `-` inside, with a letter",
)
VARIABLE = Form(r"[^=\x00]+\Z", 1 << 20, "text without `=`")

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000**at) for at, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024**at) for at, letter in enumerate("KMGTPE", 1)},
}
QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))"
    r"(?:([eE][+-]?[0-9]{1,3})|([a-zA-Z]{0,2}))\Z"
)


def is_label_key(text: str) -> bool:
    """Whether a text may be a label's key: a name, behind a DNS prefix and `/` or without."""
    prefix, slash, name = text.rpartition("/")
    return LABEL_NAME.takes(name) and (not slash or DNS_SUBDOMAIN.takes(prefix))


def quantity(value: object) -> Fraction | None:
    """A quantity in units of one; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    found = QUANTITY.match(str(value))
    if found is None:
        return None
    number, exponent, suffix = found.groups()
    if exponent:
        return Fraction(number) * Fraction(10) ** int(exponent[1:])
    scale = SUFFIXES.get(suffix)
    return Fraction(number) * scale if scale is not None else None
