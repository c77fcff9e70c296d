"""Applies JSON patches (RFC 6902) without mutation of the original.

As in evanphx/json-patch, some operations differ from the RFC:

- `replace` of an absent member adds it; `copy` of an absent member adds null.
- `add` without a value adds null.
- A negative list index counts from the end.
- Text before the first slash of a path is ignored.

If an operation is impossible even by these rules, the whole patch fails. The size of copied values
is limited: a document that is copied into itself doubles with each operation.

A value in the patch stays JSON text until a path refers to a part of it, because `test` compares
JSON texts.

upstream: gopkg.in/evanphx/json-patch.v4 at 4.13.0,
apiserver/pkg/endpoints/handlers/patch.go:applyJSPatch
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.text.nesting import DEPTH_MAX, is_too_deep
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.jsonpatch.document import (
    OperationError,
    PartialArray,
    PartialObject,
    opened,
    parts_equal,
    to_json,
)
from fairlead.apiserver.patch.strategicpatch.directive import unprocessable

_PLAIN_TEXT: Final = re.compile(rb'"([ !#-\[\]-~]*)"')  # a JSON string in ASCII without escapes
OPERATIONS_MAX: Final = 10_000  # upstream: patch.go:maxJSONPatchOperations
COPIED_BYTES_MAX: Final = 3 << 20  # upstream: server/config.go:JSONPatchMaxCopyBytes
_MISSING: Final = object()


class TestFailedError(ApiError):
    """ApiError 422: a `test` operation failed."""

    def __init__(self) -> None:
        """The message is the one that upstream has for every failed operation."""
        failure = unprocessable()
        super().__init__(failure.reason, failure.code, failure.message, has_details=True)


def apply_json_patch(obj: Any, operations: Sequence[Any]) -> dict[str, Any]:
    """Return `obj` after the `operations`. Raises ApiError 413, 422.

    A value in an operation is either a JSON value or JSON text (`msgspec.Raw`).
    """
    value = json_of_document(patched_document(obj, operations))
    if not isinstance(value, dict):
        raise unprocessable()
    return value


def patched_document(obj: Any, operations: Sequence[Any]) -> PartialObject | PartialArray:
    """Return the document after the `operations`; the document may be a list.

    Raises ApiError 413 or 422.
    """
    if len(operations) > OPERATIONS_MAX:
        raise ApiError(
            "RequestEntityTooLarge",
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{OPERATIONS_MAX}, "
            f"got {len(operations)}",
        )
    try:
        patch = _Patch(obj)
        for operation in operations:
            patch.apply_operation(operation)
    except (OperationError, RecursionError):
        raise unprocessable() from None
    return patch.root


def json_of_document(document: PartialObject | PartialArray) -> Any:
    """Return a document as a JSON value. Raises ApiError 422 if it is nested too deeply."""
    try:
        value = to_json(document)
    except RecursionError:
        raise unprocessable() from None
    if is_too_deep(value):
        raise unprocessable()
    return value


class _Patch:
    """A document to which operations are applied one after the other."""

    def __init__(self, obj: Any) -> None:
        self.root = opened(obj)
        self._copied = 0

    def apply_operation(self, operation: Any) -> None:
        """Apply one operation. Raises OperationError, TestFailedError."""
        if not isinstance(operation, Mapping):
            raise OperationError
        match _string_member(operation, "op"):
            case "add":
                self._add(_string_member(operation, "path"), operation.get("value"))
            case "remove":
                container, key = self._find(_string_member(operation, "path"))
                container.remove(key)
            case "replace":
                self._replace(_string_member(operation, "path"), operation)
            case "move":
                container, key = self._find(_string_member(operation, "from"))
                value = container.get(key)
                container.remove(key)
                self._add(_string_member(operation, "path"), value)
            case "copy":
                container, key = self._find(_string_member(operation, "from"))
                self._copy(container.get(key), _string_member(operation, "path"))
            case "test":
                self._test(_string_member(operation, "path"), operation)
            case _:
                raise OperationError

    def _find(self, path: str) -> tuple[PartialObject | PartialArray, str]:
        """Return (container of the value at `path`, last token of `path`)."""
        tokens = path.split("/")
        if not 2 <= len(tokens) <= DEPTH_MAX:
            raise OperationError
        container = self.root
        for token in tokens[1:-1]:
            container = container.opened(_unescaped(token))
        return container, _unescaped(tokens[-1])

    def _add(self, path: str, value: Any) -> None:
        container, key = self._find(path)
        container.add(key, _null_to_none(value))

    def _replace(self, path: str, operation: Mapping[str, Any]) -> None:
        value = operation.get("value", _MISSING)
        if path:
            container, key = self._find(path)
            container.get(key)
            container.set(key, None if value is _MISSING else _null_to_none(value))
        elif value is _MISSING:
            raise unprocessable()
        else:
            self.root = opened(_null_to_none(value))

    def _copy(self, value: Any, path: str) -> None:
        container, key = self._find(path)
        copied = to_json(value)
        if copied is not None:
            self._copied += len(msgspec.json.encode(copied))
        if self._copied > COPIED_BYTES_MAX:
            raise OperationError
        container.add(key, copied)

    def _test(self, path: str, operation: Mapping[str, Any]) -> None:
        expected = _null_to_none(operation.get("value"))
        if not path:
            if "value" not in operation:
                raise unprocessable()
            found: Any = self.root
        else:
            container, key = self._find(path)
            found = container.get(key)
        has_both = found is not None and expected is not None
        if not (parts_equal(found, expected) if has_both else found is expected):
            raise TestFailedError


def _string_member(operation: Mapping[str, Any], name: str) -> str:
    value = operation.get(name)
    if isinstance(value, msgspec.Raw):
        plain = _PLAIN_TEXT.fullmatch(raw := bytes(value))
        value = plain[1].decode() if plain else None if raw == b"null" else to_json(value)
    if not isinstance(value, str):
        raise OperationError
    return value


def _null_to_none(value: Any) -> Any:
    return None if isinstance(value, msgspec.Raw) and bytes(value) == b"null" else value


def _unescaped(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
