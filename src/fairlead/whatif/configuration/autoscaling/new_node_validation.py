"""Validates the amounts, labels and taints of new nodes in users' files, as an API server does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import QuantityText, Taint
from fairlead.api.quantity import NANOS_PER_UNIT, QuantityError, parse_quantity
from fairlead.whatif.input.byte_amount import missing_unit
from fairlead.whatif.input.error import known_names

Problems = Iterator[tuple[str, str]]  # (path of a field, problem)

# Far beyond the largest machines on offer; a larger amount is a mistake, such as a wrong unit.
_CORES_MAX: Final = 1_000_000
_AMOUNT_MAX: Final = 1 << 60
_DIVISIBLE: Final = ("cpu", "memory", "ephemeral-storage")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def amount_problems(name: str, text: QuantityText) -> Iterator[str]:
    """Yield the reasons why a node cannot have the amount `text` of the resource `name`."""
    try:
        amount = parse_quantity(text)
    except QuantityError as cause:
        yield str(cause)
        return
    most = _CORES_MAX if name == "cpu" else _AMOUNT_MAX
    if not 0 <= amount.nano <= most * NANOS_PER_UNIT:
        yield f"{text} is not from 0 to {most:,}"
    elif name not in _DIVISIBLE and amount.nano % NANOS_PER_UNIT:
        yield f"{text} is not a whole number"
    else:
        yield from missing_unit(name, text)


def label_problems(path: str, labels: Mapping[str, str]) -> Problems:
    """Yield (path of the label, problem) for each problem of `labels`, which are at `path`."""
    for key, value in labels.items():
        for problem in (*label_key_problems(key), *label_value_problems(value)):
            yield f"{path}[{key}]", problem


def taint_problems(path: str, taint: Taint) -> Problems:
    """Yield (path of the field, problem) for each problem of `taint`, which is at `path`."""
    for problem in label_key_problems(taint.key):
        yield f"{path}.key", problem
    for problem in label_value_problems(taint.value or ""):
        yield f"{path}.value", problem
    if taint.effect not in _EFFECTS:
        problem = f"{taint.effect!r} is not a taint effect; {known_names(taint.effect, _EFFECTS)}"
        yield f"{path}.effect", problem
