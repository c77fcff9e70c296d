"""Formats resource amounts, kept as integers, as quantities."""

from __future__ import annotations

from typing import Final

from fairlead.api.quantity import Format, Quantity, canonical

_NANOS_PER_UNIT: Final = 10**9
_NANOS_PER_MILLI: Final = 10**6
_BINARY: Final = ("memory", "ephemeral-storage", "hugepages-")


def amount_text(name: str, amount: int) -> str:
    """Return `amount` of resource `name` (cpu in milli) as a quantity, such as 250m or 1536Mi."""
    if name == "cpu":
        return canonical(Quantity(nano=amount * _NANOS_PER_MILLI))
    family = Format.BINARY_SI if name.startswith(_BINARY) else Format.DECIMAL_SI
    return canonical(Quantity(nano=amount * _NANOS_PER_UNIT, format=family))
