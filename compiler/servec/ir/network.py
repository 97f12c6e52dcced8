"""Shapes of words of a network: addresses, hosts, interfaces, RDMA adapters."""

from __future__ import annotations

from servec.ir.shape import Text

BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = rf"({BYTE}\.){{3}}{BYTE}"
PART = "[0-9A-Fa-f]{1,4}"
# Eight parts, or fewer where `::` stands for one or more.
IPV6 = "|".join((
    f"({PART}:){{7}}{PART}",
    *(f"({PART}:){{1,{7 - after}}}(:{PART}){{1,{after}}}" for after in range(1, 7)),
    f"({PART}:){{1,7}}:",
    f":((:{PART}){{1,7}}|:)",
))  # fmt: skip
# RFC 1123: the last label is not of digits alone, and so no mistaken address.
LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST_NAME = rf"(?!(.*\.)?[0-9]+\Z)(?=.{{1,253}}\Z){LABEL}(\.{LABEL})*"
ADDRESS = Text(rf"({IPV4}|{IPV6}|{HOST_NAME})\Z", "an IP address or a host's name")
INTERFACE = Text(r"(?!\.{1,2}\Z)[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}\Z", "a network interface, as eno1")
HCA = Text(r"[A-Za-z0-9_]+\Z", "an RDMA adapter, as mlx5_0")
