"""FailOn: the condition of `--fail-on 'priority>=1000'` on pods that must not be displaced.

    condition  = field operator value | loop
    field      = priority | namespace | name | labels.KEY
    operator   = == | = | != | >= | <= | > | <        (the last four for priority only)

Texts must match completely; `*` stands for any characters and `?` for one character. A missing
label equals nothing and differs from everything. `loop` holds if any pods are displaced repeatedly.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol

from fairlead.api.text.integer import parse_int64
from fairlead.whatif.input.error import InputError, known_names

SOURCE: Final = "--fail-on"
LOOP: Final = "loop"

_CONDITION: Final = re.compile(r"\s*([A-Za-z0-9_./-]+)\s*(==|!=|>=|<=|=|>|<)\s*(.*?)\s*")
_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TEXT_FIELDS: Final = ("namespace", "name")
_LABEL: Final = "labels."


class _PodFields(Protocol):
    """The fields that a condition can compare."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class FailOn:
    """One condition `field operator value`; of `loop` the operator and the value are ""."""

    text: str
    field: str
    operator: str
    value: str

    @property
    def is_loop(self) -> bool:
        """Whether it holds for repeated displacements instead of pods."""
        return self.field == LOOP

    def matches(self, pod: _PodFields) -> bool:
        """Whether `pod` must not be displaced."""
        if self.is_loop:
            return False
        if self.field == "priority":
            return _ORDERS[self.operator](pod.priority, int(self.value))
        equal = self._equals(pod)
        return not equal if self.operator == "!=" else equal

    def _equals(self, pod: _PodFields) -> bool:
        if self.field.startswith(_LABEL):
            label = pod.labels.get(self.field.removeprefix(_LABEL))
            return label is not None and fnmatchcase(label, self.value)
        return fnmatchcase(pod.namespace if self.field == "namespace" else pod.name, self.value)


def parse_fail_on(text: str) -> FailOn:
    """The condition in `text`. Raises InputError."""
    if text.strip() == LOOP:
        return FailOn(text, LOOP, "", "")
    matched = _CONDITION.fullmatch(text)
    if matched is None:
        problem = f"{text!r} is not FIELD OPERATOR VALUE, such as priority>=1000, and not {LOOP}"
        raise InputError(SOURCE, problem)
    name, sign, value = matched.groups()
    condition = FailOn(text, name, sign, value.strip("'\""))
    _refuse(condition)
    return condition


def _refuse(condition: FailOn) -> None:
    """Raise InputError for an invalid combination of field, operator and value."""
    name, value = condition.field, condition.value
    if name == "priority":
        if parse_int64(value) is None:
            raise InputError(SOURCE, f"{value!r} is not an integer", field=name)
        return
    if name not in _TEXT_FIELDS and not (name.startswith(_LABEL) and name != _LABEL):
        known = known_names(name, ("priority", *_TEXT_FIELDS, "labels.KEY"))
        raise InputError(SOURCE, f"unknown field {name!r}; {known}")
    if condition.operator not in ("=", "==", "!="):
        raise InputError(SOURCE, f"{condition.operator} compares numbers; use = or !=", field=name)
    if not value:
        raise InputError(SOURCE, "a value is missing", field=name)
