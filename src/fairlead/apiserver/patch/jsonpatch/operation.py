"""Decodes JSON patches into operations, and returns warnings about their fields.

Values stay JSON text, because the operation `test` compares JSON texts. With field validation
(`is_typed`), upstream decodes each operation into a struct of four fields, so unknown and duplicate
fields cause warnings.

upstream: apiserver/pkg/endpoints/handlers/patch.go:jsonPatchOp, gopkg.in/evanphx/json-patch.v4
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fairlead.apiserver.error import bad_request
from fairlead.apiserver.schema.field_location import FieldLocation, Notes
from fairlead.apiserver.schema.gojson.json_text import JsonError, Repeating, json_kind, parse_json

_TEXTS: Final = ("op", "path", "from")
_FIELDS: Final = frozenset((*_TEXTS, "value"))
_decode: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None]).decode


def operations_of(body: bytes, *, is_typed: bool) -> tuple[list[Any], list[str]]:
    """Return (operations, warnings) of the JSON patch `body`. Raises ApiError 400.

    `is_typed` is False if fieldValidation is Ignore; the list of warnings is then empty.
    """
    prefix = "error decoding patch: " if is_typed else ""
    try:
        operations = parse_json(body)
    except JsonError as cause:
        raise bad_request(f"{prefix}{cause}") from None
    if operations is None:
        return [], []
    problem = next(_problems(operations, is_typed=is_typed), "")
    if problem:
        raise bad_request(f"{prefix}json: cannot unmarshal {problem}")
    notes = list(_field_warnings(operations)) if is_typed else []
    try:
        return list(_decode(body)), notes
    except (msgspec.DecodeError, RecursionError):
        return operations, notes  # only `parse_json` can decode this body


def _problems(operations: Any, *, is_typed: bool) -> Iterator[str]:
    list_type = "[]handlers.jsonPatchOp" if is_typed else "jsonpatch.Patch"
    item_type = "handlers.jsonPatchOp" if is_typed else "jsonpatch.Operation"
    if not isinstance(operations, list):
        yield f"{json_kind(operations)} into Go value of type {list_type}"
        return
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            yield f"{json_kind(operation)} into Go value of type {item_type}"
        elif is_typed:
            for key, value in _members(operation):
                if key in _TEXTS and value is not None and not isinstance(value, str):
                    found = json_kind(value)
                    yield f"{found} into Go struct field jsonPatchOp.{key} of type string"


def _field_warnings(operations: list[Any]) -> list[str]:
    notes = Notes()
    for index, operation in enumerate(operations):
        if _is_ordinary(operation):
            continue
        seen: set[str] = set()
        for key, value in _members(operation or {}):
            path = FieldLocation(FieldLocation(FieldLocation(), index), key)
            if key not in _FIELDS:
                notes.unknown(path)
                continue
            if key in seen:
                notes.repeated(path)
            seen.add(key)
            _note_duplicates(value, path, notes)
    return [f"json patch {text}" for text in notes.texts]


def _is_ordinary(operation: Any) -> bool:
    """Return whether an operation has only known fields, none twice, and no composite `value`."""
    return (
        type(operation) is dict
        and operation.keys() <= _FIELDS
        and not isinstance(operation.get("value"), dict | list)
    )


def _note_duplicates(value: Any, path: FieldLocation, notes: Notes) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _note_duplicates(item, FieldLocation(path, index), notes)
    elif isinstance(value, dict):
        seen: set[str] = set()
        for key, item in _members(value):
            if key in seen:
                notes.repeated(FieldLocation(path, key))
            seen.add(key)
            _note_duplicates(item, FieldLocation(path, key), notes)


def _members(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return value.pairs if isinstance(value, Repeating) else list(value.items())
