"""Strict decoding of Fairlead's own file formats: unknown fields are errors.

This module turns msgspec's errors into an `InputError` with the path of the field. For an unknown
field, the error names the known fields.
"""

from __future__ import annotations

import re
import types
import typing
from typing import Annotated, Any, Final, TypeVar

import msgspec

from fairlead.api.codec import with_key
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError, known_names

Form = TypeVar("Form", bound=msgspec.Struct)

# The name of a file, relative to the file that contains the name.
FileName = Annotated[str, msgspec.Meta(extra={"is_file": True})]

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_UNQUOTED: Final = re.compile(r"Expected `str( \| null)?`, got `(bool|int|float)`")
_STEP: Final = re.compile(r"\.([^.\[]+)|(\[)")


class StrictForm(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Base class of forms that reject unknown fields; files contain `a-b` for a field `a_b`."""


def decode_strictly(document: Document, form: type[Form], where: str = "") -> Form:
    """Return `document` decoded as `form`. Raises InputError, which names file and field.

    `where` is the path of `document` within its file, "" if it is the whole file.
    """
    try:
        return msgspec.convert(document.value, form)
    except msgspec.ValidationError as cause:
        refusal = _refusal(document, str(cause), form)
        if not where:
            raise refusal from None
        field = _join(where, refusal.field) if refusal.field else where
        raise InputError(document.source, refusal.problem, field=field) from None


def _refusal(document: Document, message: str, form: type[msgspec.Struct]) -> InputError:
    source = document.source
    problem, _, path = (
        message.rpartition(" - at `$") if " - at `$" in message else (message, "", "")
    )
    path = path.removesuffix("`")
    field = path.removeprefix(".")
    if unknown := _UNKNOWN.fullmatch(problem):
        known = _field_names(_form_at(form, path))
        return InputError(
            source,
            f"unknown field; {known_names(unknown[1], known)}",
            field=_join(field, unknown[1]),
        )
    if missing := _MISSING.fullmatch(problem):
        return InputError(source, "is required", field=_join(field, missing[1]))
    field = with_key(field, document.value, problem)
    # YAML reads unquoted words such as `y` and `on` as booleans, and 010 as a number.
    hint = "; put it in quotes" if _UNQUOTED.fullmatch(problem) else ""
    problem = problem[0].lower() + problem[1:].replace("`", "")
    return InputError(source, f"{problem}{hint}", field=field)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _form_at(form: Any, path: str) -> Any:
    """Return the type of the field at `path`, such as `.events[0].create`, in the type `form`."""
    for step in _STEP.finditer(path):
        if step[1] is None:
            form = _with_parts(typing.get_args(form)[-1 if typing.get_origin(form) is dict else 0])
            continue
        hints = typing.get_type_hints(form)
        names = dict(zip(form.__struct_encode_fields__, form.__struct_fields__, strict=True))
        form = _with_parts(hints[names[step[1]]])
    return form


def _with_parts(form: Any) -> Any:
    """Return the member of the union `form` that has fields or items.

    If no member has fields or items, return the first member. If `form` is not a union, return
    `form`.
    """
    if typing.get_origin(form) not in (types.UnionType, typing.Union):
        return form
    alternatives = [part for part in typing.get_args(form) if part is not type(None)]
    return next(
        (
            part
            for part in alternatives
            if _field_names(part) or typing.get_origin(part) in (list, dict)
        ),
        alternatives[0],
    )


def _field_names(form: Any) -> tuple[str, ...]:
    return tuple(getattr(form, "__struct_encode_fields__", ()))


def field_duration(source: str, field: str, value: str | float | None) -> DurationNs | None:
    """Return the duration `value` of `field`; None if the field is not set. Raises InputError."""
    if value is None:
        return None
    try:
        return read_duration(value)
    except ValueError as cause:
        raise InputError(source, str(cause), field=field) from None
