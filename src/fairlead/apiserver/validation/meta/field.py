"""Constructors of field errors, in upstream's words.

upstream: apimachinery/pkg/util/validation/field/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.api.text import field_problem
from fairlead.apiserver.error import Cause
from fairlead.apiserver.json_equality import canonical_key

Causes = Iterable[Cause]

CHARACTERS_MAX: Final = 4 << 20  # Somewhat more than a request may contain.
CAUSE_CHARACTERS_MIN: Final = 100
NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def bounded(causes: Causes) -> Iterator[Cause]:
    """Yield `causes` until their total length exceeds CHARACTERS_MAX.

    Each cause contains the path of its field. Many errors below a long path could therefore make
    the total length grow with the square of the request's size.
    """
    characters = 0
    for cause in causes:
        yield cause
        characters += len(cause.message) + len(cause.field) + CAUSE_CHARACTERS_MIN
        if characters > CHARACTERS_MAX:
            return


def invalid(field: str, value: Any, why: str = "") -> Cause:
    """Return the error for a value that breaks a rule; `why` describes the rule."""
    return Cause("FieldValueInvalid", field_problem.invalid(value, why), field)


def required(field: str, why: str = "") -> Cause:
    """Return the error for a missing value; `why` says why the value is required."""
    return Cause("FieldValueRequired", field_problem.required(why), field)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """Return the error for a value that is not one of `supported`."""
    message = field_problem.not_supported(value, supported)
    return Cause("FieldValueNotSupported", message, field)


def duplicate(field: str, value: Any) -> Cause:
    """Return the error for a value that occurs more than once."""
    return Cause("FieldValueDuplicate", field_problem.duplicate(value), field)


def forbidden(field: str, why: str) -> Cause:
    """Return the error FieldValueForbidden; `why` says what is not allowed in `field`."""
    return Cause("FieldValueForbidden", field_problem.forbidden(why), field)


def non_negative(field: str, value: int) -> Causes:
    """Yield an error if `value` is negative."""
    if value < 0:
        yield invalid(field, value, NOT_NEGATIVE)


def repeated_indexes(items: Iterable[Any]) -> frozenset[int]:
    """Return the index of each item that equals an earlier item. Takes linear time.

    The items are JSON values.
    """
    indexes: list[int] = []
    seen: set[str | bytes] = set()
    for index, item in enumerate(items):
        what = canonical_key(item)
        if what in seen:
            indexes.append(index)
        seen.add(what)
    return frozenset(indexes)
