"""The `--fail-on` conditions of `fairlead sweep`: each compares a measure with a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.sweep.measure import BY_NAME, Number

_FORM: Final = re.compile(r"([a-z0-9_]+)(>=|<=|>|<|=)(\d+(?:\.\d+)?)")
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class MeasureCondition:
    """A condition that compares `measure` with `number` by the operator `sign`."""

    measure: str
    sign: str
    number: float

    def holds(self, row: Mapping[str, Number | None]) -> bool:
        """Return whether the condition holds for the case with the measures in `row`."""
        value = row[self.measure]
        return value is not None and _OPERATORS[self.sign](value, self.number)


def parse_condition(text: str) -> MeasureCondition:
    """Parse a condition such as `pending>0`. Raises InputError."""
    found = _FORM.fullmatch(text.replace(" ", ""))
    if found is None:
        raise InputError("--fail-on", f"{text!r} is not MEASURE>NUMBER, such as pending>0")
    require_measure("--fail-on", found[1])
    return MeasureCondition(found[1], found[2], float(found[3]))


def require_measure(option: str, name: str) -> None:
    """Raise InputError for the option `option` if there is no measure called `name`."""
    if name not in BY_NAME:
        raise InputError(option, f"{name!r} is not a measure; {known_names(name, BY_NAME)}")
