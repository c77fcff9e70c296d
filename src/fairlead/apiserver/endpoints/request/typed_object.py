"""Decodes an object by the schema of its kind, with fieldValidation.

If an object has unknown or duplicate fields, `Strict` rejects the request, and `Warn` adds warnings
to the response. `Warn` and `Ignore` drop the unknown fields. Objects of kinds without a schema are
checked for duplicate fields only.

upstream: apiserver/pkg/endpoints/handlers/{create,update,patch}.go, fieldValidation
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.decoder import decoded, empty
from fairlead.apiserver.schema.field_location import FieldLocation, Notes
from fairlead.apiserver.schema.gojson.json_text import Repeating
from fairlead.apiserver.schema.model import Schema, schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"
_COMMON_FIELDS: Final = ("apiVersion", "kind", "metadata")


def schema_of_kind(kind: Kind) -> Schema | None:
    """Return the schema of a kind; None if the kind has no schema."""
    if kind.custom is not None:
        return kind.custom.fields
    return None if kind.is_custom else schema_of(kind.api_version, kind.kind)


def zero_object(kind: Kind) -> Json:
    """Return the empty object of `kind`, to which a bookmark event adds its metadata.

    All callers share the result, so they must not mutate it.
    """
    schema = None if kind.is_custom else schema_of(kind.api_version, kind.kind)
    return {} if schema is None else empty(schema)


def typed(
    kind: Kind, obj: Json, validation: str, repeats: Sequence[str] = ()
) -> tuple[Json, tuple[str, ...]]:
    """Return (`obj` decoded by its schema, warnings).

    `repeats` are notes about duplicate YAML keys. Raises ApiError 400 for a value of a wrong type.
    If `validation` is Strict, also raises ApiError 400 for unknown and duplicate fields.
    """
    cannot = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    try:
        shaped, notes = read_by_type(kind, obj)
    except TypeMismatchError as cause:
        raise bad_request(f"{cannot}{cause}") from None
    if (notes or repeats) and validation == STRICT:
        together = "\n  ".join(("yaml: unmarshal errors:", *repeats))
        all_notes = [together, *notes] if repeats else notes
        raise bad_request(f"{cannot}{strict_error(all_notes)}")
    return shaped, warnings_of([*repeats, *notes], validation)


def read_by_type(kind: Kind, obj: Json) -> tuple[Json, list[str]]:
    """Return (`obj` decoded by its schema, notes about unknown and duplicate fields).

    Raises TypeMismatchError for a value of a wrong type.
    """
    if kind.custom is not None:
        notes = Notes()
        _note_repeated(obj, FieldLocation(), notes)
        return kind.custom.pruned_and_defaulted(obj, notes), notes.texts
    schema = schema_of_kind(kind)
    if schema is None:
        return obj, repeated(obj)
    return decoded(schema, obj)


def of_another_version(kind: Kind, obj: Json) -> list[str]:
    """Return notes about a custom resource `obj` whose apiVersion differs from that of `kind`.

    Return [] if `obj` is not such an object. Each field except apiVersion, kind and metadata gets a
    note that it is unknown. Upstream decodes such an object with a type that has only these three
    fields.
    """
    if kind.custom is None or obj.get("apiVersion", kind.api_version) == kind.api_version:
        return []
    return [f'unknown field "{key}"' for key in sorted(obj) if key not in _COMMON_FIELDS]


def strict_error(notes: Sequence[str]) -> str:
    """Return an error text that lists all `notes` about unknown and duplicate fields."""
    return f"strict decoding error: {', '.join(notes)}"


def warnings_of(notes: Iterable[str], validation: str) -> tuple[str, ...]:
    """Return `notes` about unknown or duplicate fields if `validation` is Warn; otherwise ()."""
    return tuple(notes) if validation == WARN else ()


def repeated(value: Any) -> list[str]:
    """Return a note for each duplicate member in `value`, at any depth."""
    notes = Notes()
    _note_repeated(value, FieldLocation(), notes)
    return notes.texts


def _note_repeated(value: Any, place: FieldLocation, notes: Notes) -> None:
    if isinstance(value, Repeating):
        seen: set[str] = set()
        for key, _ in value.pairs:
            if key in seen:
                notes.repeated(FieldLocation(place, key))
            seen.add(key)
    for step, item in _steps(value):
        _note_repeated(item, FieldLocation(place, step), notes)


def _steps(value: Any) -> Iterable[tuple[str | int, Any]]:
    match value:
        case dict():
            return value.items()
        case list():
            return enumerate(value)
        case _:
            return ()
