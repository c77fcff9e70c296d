"""Formats amounts of resources: cores, sizes with binary units, and counts.

Cores and percentages are rounded as decimal numbers, with ties to the even digit. The HTML report
(`static/format.js`) rounds in the same way. To one decimal place, 0.35 becomes 0.4. If binary
floating-point numbers were rounded, 0.35 would become 0.3, because the binary number for 0.35 is
slightly less than 0.35.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from fairlead.whatif.outcome.run_outcome import unit_of

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount_text(resource: str, amount: float) -> str:
    """Return `amount` as text; cores and sizes have about three digits, counts have all digits.

    `amount` is in millicores for cpu, and in bytes for sizes such as memory. For all other
    resources, `amount` is a count.
    """
    match unit_of(resource):
        case "milli":
            cores = Decimal(str(amount)) / 1000
            return f"{cores:,.0f}" if cores >= 100 else f"{float(f'{cores:.3g}'):,g}"
        case "bytes":
            return _binary(amount)
        case _:
            return f"{amount:,}"


def percent_text(part: int, whole: int) -> str:
    """Return `part` as a percentage of `whole`; "" if `whole` is 0."""
    return f"{100 * Decimal(part) / whole:.1f}%" if whole else ""


def _binary(amount: float) -> str:
    power, value = 0, float(amount)
    while value >= 1024 and power < len(_BINARY) - 1:
        value /= 1024
        power += 1
    return (
        f"{value:,.1f}{_BINARY[power]}"
        if power and value < 100
        else f"{value:,.0f}{_BINARY[power]}"
    )
