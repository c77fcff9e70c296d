"""The CEL library of named string formats: `format.uuid().validate(text)`.

upstream: apiserver/pkg/cel/library/format.go
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date, datetime
from math import ceil
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.apiserver.validation.meta.format import (
    dns_1035_problems,
    dns_label_problems,
    dns_subdomain_problems,
)
from fairlead.cel.cost.runtime_cost import PATTERN_COST, reading
from fairlead.cel.function import Function, free, member
from fairlead.cel.library.url import uri_problem
from fairlead.cel.value import NONE, OptionalValue

# The size that upstream assumes for the longest pattern of a format.
_PATTERN_SIZE: Final = 128
_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:?\d{2})"
)

Problems = Callable[[str], tuple[str, ...]]


def _prefix(problems: Problems) -> Problems:
    """Return a check for prefixes of names: like `problems`, but it permits a dash at the end."""
    return lambda text: problems(f"{text[:-1]}a" if text.endswith("-") else text)


def _unless(is_right: Callable[[str], bool], problem: str) -> Problems:
    return lambda text: () if is_right(text) else (problem,)


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return bool(text)


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _is_instant(text: str) -> bool:
    try:
        return bool(_INSTANT.fullmatch(text) and datetime.fromisoformat(text.upper()))
    except ValueError:
        return False


def _uri(text: str) -> tuple[str, ...]:
    problem = uri_problem(text)
    return (problem,) if problem else ()


_FORMATS: Final[dict[str, Problems]] = {
    "dns1123Label": dns_label_problems,
    "dns1123Subdomain": dns_subdomain_problems,
    "dns1035Label": dns_1035_problems,
    "qualifiedName": label_key_problems,
    "dns1123LabelPrefix": _prefix(dns_label_problems),
    "dns1123SubdomainPrefix": _prefix(dns_subdomain_problems),
    "dns1035LabelPrefix": _prefix(dns_1035_problems),
    "labelValue": label_value_problems,
    "uri": _uri,
    "uuid": _unless(
        lambda text: _UUID.fullmatch(text) is not None, "does not match the UUID format"
    ),
    "byte": _unless(_is_base64, "invalid base64"),
    "date": _unless(_is_date, "invalid date"),
    "datetime": _unless(_is_instant, "invalid datetime"),
}


class NamedFormat(Struct, frozen=True):
    """A string format, identified by its name."""

    name: str
    type_name: ClassVar[str] = "kubernetes.NamedFormat"


def _named(name: str) -> OptionalValue:
    """Implement `format.named(name)`. The result is an empty optional if the format is unknown."""
    return OptionalValue(NamedFormat(name)) if name in _FORMATS else NONE


def _validated(value: NamedFormat, text: str) -> OptionalValue:
    """Implement `validate`: return the problems of `text`; an empty optional if it is valid."""
    problems = list(_FORMATS[value.name](text))
    return OptionalValue(problems) if problems else NONE


def _validate_cost(_: NamedFormat, text: str) -> int:
    return ceil(reading(text) * _PATTERN_SIZE * PATTERN_COST)


def _constant(name: str) -> Function:
    """Return the function that implements `format.NAME()`, such as `format.uuid()`."""
    return free(f"format.{name}", (), lambda: NamedFormat(name))


FUNCTIONS: Final[tuple[Function, ...]] = (
    *map(_constant, _FORMATS),
    free("format.named", (str,), _named),
    member("validate", (NamedFormat, str), _validated, _validate_cost),
)
