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
from fairlead.apiserver.schema.gojson.json_text import json_kind

_PLAIN_TEXT: Final = re.compile(rb'"([ !#-\[\]-~]*)"')  # a JSON string in ASCII without escapes
OPERATIONS_MAX: Final = 10_000  # upstream: patch.go:maxJSONPatchOperations
COPIED_BYTES_MAX: Final = 3 << 20  # upstream: server/config.go:JSONPatchMaxCopyBytes
_UNKNOWN_KIND: Final = "Unexpected kind: unknown"
_TOO_DEEP: Final = "the document is nested too deeply"
_MISSING_VALUE: Final = "missing value"
_NO_MEMBER: Final = {
    "path": "operation missing path field",
    "from": "operation, missing from field",
}
# Upstream always says about these members that the value is missing.
_UNEXPLAINED: Final = (("add", "path"), ("remove", "path"), ("copy", "path"))
_MISSING: Final = object()


class PatchFailedError(ApiError):
    """ApiError 422: an operation failed.

    The message has no details, as in upstream's answer to a PATCH request. `problem` has the
    details, which upstream states if a webhook or a policy has made the patch. `is_failed_test`
    means that the operation is a `test`, and that the tested value is not the expected one.
    """

    def __init__(self, problem: str, *, is_failed_test: bool = False) -> None:
        """Create the error; the class describes the arguments."""
        failure = unprocessable()
        super().__init__(failure.reason, failure.code, failure.message, has_details=True)
        self.problem = problem
        self.is_failed_test = is_failed_test


def apply_json_patch(obj: Any, operations: Sequence[Any]) -> dict[str, Any]:
    """Return `obj` after the `operations`. Raises ApiError 413, 422.

    A value in an operation is either a JSON value or JSON text (`msgspec.Raw`).
    """
    value = json_of_document(patched_document(obj, operations))
    if not isinstance(value, dict):
        raise unprocessable()
    return value


def patched_document(obj: Any, operations: Sequence[Any]) -> PartialObject | PartialArray:
    """Return `obj` with the JSON Patch `operations` applied; the result may be a list.

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
    except OperationError as failure:
        raise PatchFailedError(str(failure)) from None
    except RecursionError:
        raise PatchFailedError(_TOO_DEEP) from None
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
        """Apply one operation. Raises OperationError, PatchFailedError."""
        if not isinstance(operation, Mapping):
            raise OperationError(_UNKNOWN_KIND)
        match kind := _member(operation, "op"):
            case "add":
                self._add(_path_of(operation, kind), operation.get("value"))
            case "remove":
                self._remove(_path_of(operation, kind))
            case "replace":
                self._replace(_path_of(operation, kind), operation)
            case "move":
                self._move(_path_of(operation, kind, "from"), operation)
            case "copy":
                self._copy(_path_of(operation, kind, "from"), operation)
            case "test":
                self._test(_path_of(operation, kind), operation)
            case str():
                raise OperationError(f"Unexpected kind: {kind}")
            case _:
                raise OperationError(_UNKNOWN_KIND)

    def _find(self, path: str, problem: str) -> tuple[PartialObject | PartialArray, str]:
        """Return (container of the value at `path`, last token of `path`).

        Raises OperationError with the text `problem` if the container does not exist.
        """
        tokens = path.split("/")
        if not 2 <= len(tokens) <= DEPTH_MAX:
            raise OperationError(f"{problem}: missing value")
        container = self.root
        try:
            for token in tokens[1:-1]:
                container = container.opened(_unescaped(token))
        except OperationError:
            raise OperationError(f"{problem}: missing value") from None
        return container, _unescaped(tokens[-1])

    def _add(self, path: str, value: Any) -> None:
        problem = f'add operation does not apply: doc is missing path: "{path}"'
        container, key = self._find(path, problem)
        _add_to(container, key, _null_to_none(value), f"error in add for path: '{path}'")

    def _remove(self, path: str) -> None:
        problem = f'remove operation does not apply: doc is missing path: "{path}"'
        container, key = self._find(path, problem)
        try:
            container.remove(key)
        except OperationError as cause:
            raise OperationError(f"error in remove for path: '{path}': {cause}") from None

    def _replace(self, path: str, operation: Mapping[str, Any]) -> None:
        value = operation.get("value", _MISSING)
        if path:
            problem = "replace operation does not apply: doc is missing"
            container, key = self._find(path, f"{problem} path: {path}")
            try:
                container.get(key)
            except OperationError:
                raise OperationError(f"{problem} key: {path}: missing value") from None
            container.set(key, None if value is _MISSING else _null_to_none(value))
        elif value is _MISSING:
            raise OperationError("replace operation value must be object or array")
        else:
            self.root = opened(_null_to_none(value))

    def _move(self, source: str, operation: Mapping[str, Any]) -> None:
        problem = "move operation does not apply: doc is missing"
        container, key = self._find(source, f"{problem} from path: {source}")
        try:
            value = container.get(key)
            container.remove(key)
        except OperationError as cause:
            raise OperationError(f"error in move for path: '{key}': {cause}") from None
        path = _path_of(operation, "move")
        container, key = self._find(path, f"{problem} destination path: {path}")
        _add_to(container, key, value, f"error in move for path: '{path}'")

    def _copy(self, source: str, operation: Mapping[str, Any]) -> None:
        problem = "copy operation does not apply: doc is missing"
        container, key = self._find(source, f"{problem} from path: {source}")
        try:
            value = container.get(key)
        except OperationError as cause:
            raise OperationError(f"error in copy for from: '{source}': {cause}") from None
        path = _path_of(operation, "copy")
        container, key = self._find(path, f"{problem} destination path: {path}")
        copied = to_json(value)
        if copied is not None:
            self._copied += len(msgspec.json.encode(copied))
        if self._copied > COPIED_BYTES_MAX:
            raise OperationError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {COPIED_BYTES_MAX}"
            )
        _add_to(container, key, copied, "error while adding value during copy")

    def _test(self, path: str, operation: Mapping[str, Any]) -> None:
        expected = _null_to_none(operation.get("value"))
        if not path:
            if "value" not in operation:
                raise unprocessable()
            found: Any = self.root
        else:
            problem = f"test operation does not apply: is missing path: {path}"
            container, key = self._find(path, problem)
            try:
                found = container.get(key)
            except OperationError as cause:
                raise OperationError(f"error in test for path: '{path}': {cause}") from None
        has_both = found is not None and expected is not None
        if not (parts_equal(found, expected) if has_both else found is expected):
            problem = f"testing value {path} failed: test failed"
            raise PatchFailedError(problem, is_failed_test=True)


def _add_to(container: PartialObject | PartialArray, key: str, value: Any, problem: str) -> None:
    try:
        container.add(key, value)
    except OperationError as cause:
        raise OperationError(f"{problem}: {cause}") from None


def _path_of(operation: Mapping[str, Any], kind: str, member: str = "path") -> str:
    """Return the path that the member `member` of an operation contains.

    Raises OperationError if the member is not a string.
    """
    value = _member(operation, member)
    if isinstance(value, str):
        return value
    if (kind, member) in _UNEXPLAINED:
        why = _MISSING_VALUE
    elif value is None:
        why = f"{_NO_MEMBER[member]}: {_MISSING_VALUE}"
    else:
        why = f"json: cannot unmarshal {json_kind(value)} into Go value of type string"
    raise OperationError(f"{kind} operation failed to decode {member}: {why}")


def _member(operation: Mapping[str, Any], name: str) -> Any:
    """Return the decoded member `name` of an operation; None if it is null or does not exist."""
    value = operation.get(name)
    if isinstance(value, msgspec.Raw):
        plain = _PLAIN_TEXT.fullmatch(raw := bytes(value))
        return plain[1].decode() if plain else None if raw == b"null" else to_json(value)
    return value


def _null_to_none(value: Any) -> Any:
    return None if isinstance(value, msgspec.Raw) and bytes(value) == b"null" else value


def _unescaped(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
