"""JSON patch (RFC 6902) without mutation, with the leniencies of upstream's library.

`replace` of a member that is not there adds it, `copy` of one adds null, `add` without a value adds
null, negative places in a list count from behind, and what stands before the first stroke of a path
is passed over. Everything else that cannot be done refuses the whole patch, and so do copies of
copies, which double with each operation.

What a patch brings stays the text that it is until a path leads into it: `test` compares texts.

upstream: gopkg.in/evanphx/json-patch.v4 at 4.13.0,
apiserver/pkg/endpoints/handlers/patch.go:applyJSPatch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.nesting import DEPTH_MAX, is_too_deep
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.jsonpatch.document import (
    Array,
    CannotError,
    Object,
    closed,
    is_same,
    opened,
)
from fairlead.apiserver.patch.strategicpatch.directive import unable

OPERATIONS_MAX: Final = 10_000  # upstream: patch.go:maxJSONPatchOperations
COPIED_BYTES_MAX: Final = 3 << 20  # upstream: server/config.go:JSONPatchMaxCopyBytes
_MISSING: Final = object()


class UnmetTestError(ApiError):
    """A `test` has found something else than it names: 422, as for all that cannot be done."""

    def __init__(self) -> None:
        """There is no more to say of it."""
        said = unable()
        super().__init__(said.reason, said.code, said.message, has_details=True)


def apply_json_patch(obj: Any, operations: Sequence[Any]) -> dict[str, Any]:
    """`obj` after `operations`, in order. Raises ApiError 413 or 422, and 500 as upstream does.

    Values of operations may be JSON values, or their texts as `msgspec.Raw`.
    """
    made = value_of(patched_document(obj, operations))
    if not isinstance(made, dict):
        raise unable()
    return made


def patched_document(obj: Any, operations: Sequence[Any]) -> Object | Array:
    """Likewise, as a document, which may be a list."""
    if len(operations) > OPERATIONS_MAX:
        raise ApiError(
            "RequestEntityTooLarge",
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{OPERATIONS_MAX}, "
            f"got {len(operations)}",
        )
    try:
        patching = _Patching(obj)
        for operation in operations:
            patching.do(operation)
    except (CannotError, RecursionError):
        raise unable() from None
    return patching.root


def value_of(document: Object | Array) -> Any:
    """The JSON value of a document. Raises ApiError 422 for one that no body may be."""
    try:
        made = closed(document)
    except RecursionError:
        raise unable() from None
    if is_too_deep(made):
        raise unable()
    return made


class _Patching:
    """A document that is being patched."""

    def __init__(self, obj: Any) -> None:
        self.root = opened(obj)
        self._copied = 0

    def do(self, operation: Any) -> None:
        """Carry out one operation. Raises CannotError."""
        if not isinstance(operation, Mapping):
            raise CannotError
        match _text(operation, "op"):
            case "add":
                self._add(_text(operation, "path"), operation.get("value"))
            case "remove":
                place, key = self._find(_text(operation, "path"))
                place.remove(key)
            case "replace":
                self._replace(_text(operation, "path"), operation)
            case "move":
                place, key = self._find(_text(operation, "from"))
                value = place.get(key)
                place.remove(key)
                self._add(_text(operation, "path"), value)
            case "copy":
                place, key = self._find(_text(operation, "from"))
                self._copy(place.get(key), _text(operation, "path"))
            case "test":
                self._test(_text(operation, "path"), operation)
            case _:
                raise CannotError

    def _find(self, path: str) -> tuple[Object | Array, str]:
        """What has the member that `path` leads to, and its name there."""
        steps = path.split("/")
        if not 2 <= len(steps) <= DEPTH_MAX:
            raise CannotError
        place = self.root
        for step in steps[1:-1]:
            place = place.opened(_unescaped(step))
        return place, _unescaped(steps[-1])

    def _add(self, path: str, value: Any) -> None:
        place, key = self._find(path)
        place.add(key, _or_none(value))

    def _replace(self, path: str, operation: Mapping[str, Any]) -> None:
        value = operation.get("value", _MISSING)
        if path:
            place, key = self._find(path)
            place.get(key)
            place.set(key, None if value is _MISSING else _or_none(value))
        elif value is _MISSING:
            raise unable()
        else:
            self.root = opened(_or_none(value))

    def _copy(self, value: Any, path: str) -> None:
        place, key = self._find(path)
        copied = closed(value)
        if copied is not None:
            self._copied += len(msgspec.json.encode(copied))
        if self._copied > COPIED_BYTES_MAX:
            raise CannotError
        place.add(key, copied)

    def _test(self, path: str, operation: Mapping[str, Any]) -> None:
        wanted = _or_none(operation.get("value"))
        if not path:
            if "value" not in operation:
                raise unable()
            found: Any = self.root
        else:
            place, key = self._find(path)
            found = place.get(key)
        has_both = found is not None and wanted is not None
        if not (is_same(found, wanted) if has_both else found is wanted):
            raise UnmetTestError


def _text(operation: Mapping[str, Any], name: str) -> str:
    value = _or_none(operation.get(name))
    if isinstance(value, msgspec.Raw):
        value = closed(value)
    if not isinstance(value, str):
        raise CannotError
    return value


def _or_none(value: Any) -> Any:
    return None if isinstance(value, msgspec.Raw) and bytes(value) == b"null" else value


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
