"""Finds amounts of bytes that lack a unit, such as a memory of 16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.objects import QuantityText
from fairlead.api.quantity import parse_quantity

_OF_BYTES: Final = ("memory", "ephemeral-storage")
# Far below what any machine has, or any container needs.
_LEAST: Final = 1 << 19


def missing_unit(name: str, text: QuantityText) -> Iterator[str]:
    """Yield a problem if `text`, an amount of the resource `name`, seems to lack a unit.

    An amount of memory or storage below 512 KiB, except 0, seems to lack a unit. `text` is a valid
    quantity.
    """
    amount = parse_quantity(text).whole
    if name in _OF_BYTES and 0 < amount < _LEAST:
        example = f"{amount}Gi" if amount < 1024 else f"{amount}Mi"
        yield f"{text} is only {amount:,} bytes; write a unit, such as {example}"
