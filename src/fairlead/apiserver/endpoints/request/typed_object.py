"""Typed bodies: what was sent, read by the schema of its kind.

What the kind does not know is dropped; what was dropped, or said twice, is told: as an error in
Strict, as warnings in Warn, not at all in Ignore. Kinds without a schema (custom resources) are
taken as they are.

upstream: apiserver/pkg/endpoints/handlers/{create,update,patch}.go, fieldValidation
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.decoding import decoded, empty
from fairlead.apiserver.schema.json_text import Repeating
from fairlead.apiserver.schema.model import Schema, schema_of
from fairlead.apiserver.schema.place import Notes, Place
from fairlead.apiserver.schema.single import TypeMismatchError

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"
_EVERYWHERE: Final = ("apiVersion", "kind", "metadata")


def schema_of_kind(kind: Kind) -> Schema | None:
    """The type of a kind's objects, None where nobody wrote it down."""
    if kind.custom is not None:
        return kind.custom.fields
    return None if kind.is_custom else schema_of(kind.api_version, kind.kind)


def zero_object(kind: Kind) -> Json:
    """An object of which nothing was said, as bookmarks show it. Shared: do not mutate."""
    schema = None if kind.is_custom else schema_of(kind.api_version, kind.kind)
    return {} if schema is None else empty(schema)


def typed(
    kind: Kind, obj: Json, validation: str, repeats: Sequence[str] = ()
) -> tuple[Json, tuple[str, ...]]:
    """`obj` as its kind has it, and warnings; `repeats` are keys that stood twice in YAML.

    Raises ApiError 400 for a value of a wrong type, and in Strict for fields that are not known
    or are there twice.
    """
    cannot = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    try:
        shaped, notes = read_by_type(kind, obj)
    except TypeMismatchError as cause:
        raise bad_request(f"{cannot}{cause}") from None
    if (notes or repeats) and validation == STRICT:
        together = "\n  ".join(("yaml: unmarshal errors:", *repeats))
        said = [together, *notes] if repeats else notes
        raise bad_request(f"{cannot}{strict_error(said)}")
    return shaped, told([*repeats, *notes], validation)


def read_by_type(kind: Kind, obj: Json) -> tuple[Json, list[str]]:
    """`obj` as its kind has it, and what is to be said about its fields.

    Raises TypeMismatchError.
    """
    if kind.custom is not None:
        notes = Notes()
        _note_repeated(obj, Place(), notes)
        return kind.custom.shaped(obj, notes), notes.texts
    schema = schema_of_kind(kind)
    if schema is None:
        return obj, repeated(obj)
    return decoded(schema, obj)


def of_another_version(kind: Kind, obj: Json) -> list[str]:
    """What is to be said about the fields of a custom resource whose version is not `kind`'s.

    By the type that another version has here, no object has fields of its own.
    """
    if kind.custom is None or obj.get("apiVersion", kind.api_version) == kind.api_version:
        return []
    return [f'unknown field "{key}"' for key in sorted(obj) if key not in _EVERYWHERE]


def strict_error(notes: Sequence[str]) -> str:
    """All that is to be said about fields as one refusal."""
    return f"strict decoding error: {', '.join(notes)}"


def told(notes: Iterable[str], validation: str) -> tuple[str, ...]:
    """What is said about fields as warnings."""
    return tuple(notes) if validation == WARN else ()


def repeated(value: Any) -> list[str]:
    """A note for each member that stands twice in its object."""
    notes = Notes()
    _note_repeated(value, Place(), notes)
    return notes.texts


def _note_repeated(value: Any, place: Place, notes: Notes) -> None:
    if isinstance(value, Repeating):
        seen: set[str] = set()
        for key, _ in value.pairs:
            if key in seen:
                notes.repeated(Place(place, key))
            seen.add(key)
    for step, item in _steps(value):
        _note_repeated(item, Place(place, step), notes)


def _steps(value: Any) -> Iterable[tuple[str | int, Any]]:
    match value:
        case dict():
            return value.items()
        case list():
            return enumerate(value)
        case _:
            return ()
