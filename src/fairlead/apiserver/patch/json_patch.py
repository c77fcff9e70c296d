"""JSON patch (RFC 6902) without mutation, with the leniencies of upstream's library.

`replace` of a member that is not there adds it, `add` without a value adds null, and -1 is a list's
end. Everything else that cannot be done refuses the whole patch, and so does what costs too much:
copies of copies double with each operation.

upstream: gopkg.in/evanphx/json-patch.v4, apiserver/pkg/endpoints/handlers/patch.go:applyJSPatch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlead.api.integer import capped_integer
from fairlead.api.nesting import DEPTH_MAX, is_too_deep
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.likeness import is_alike

Json = dict[str, Any]

_END: Final = "-"
_OF_ALL: Final = ("replace", "test")
OPERATIONS_MAX: Final = 10_000  # upstream: patch.go:maxJSONPatchOperations
COPIED_BYTES_MAX: Final = 3 << 20  # upstream: server/config.go:JSONPatchMaxCopyBytes
# What lists and objects on the way to a change hold is copied each time; this takes half a second.
WORK_MAX: Final = 200_000_000


class _CannotError(Exception):
    """An operation that cannot be done."""


def apply_json_patch(obj: Any, operations: Sequence[Any]) -> Any:
    """`obj` after `operations`, in order. Raises ApiError 413 or 422."""
    if len(operations) > OPERATIONS_MAX:
        raise ApiError(
            "RequestEntityTooLarge",
            413,
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, "
            f"got {len(operations)}",
        )
    budget = _Budget()
    try:
        for operation in operations:
            budget.spend(obj, operation)
            obj = _done(obj, operation)
        budget.check_depth(obj)
    except _CannotError:
        raise ApiError(
            "Invalid",
            422,
            "the server rejected our request due to an error in our request",
            has_details=True,
        ) from None
    return obj


class _Budget:
    """What a patch may cost."""

    def __init__(self) -> None:
        self._work = 0
        self._copied = 0

    def spend(self, obj: Any, operation: Any) -> None:
        """Refuse an operation that would cost more than is left."""
        if not isinstance(operation, dict):
            raise _CannotError
        self._work += _held_on_the_way(obj, _steps(operation.get("path")))
        if operation.get("op") in ("move", "copy"):
            source = _steps(operation.get("from"))
            self._work += _held_on_the_way(obj, source)
            if operation["op"] == "copy":
                self._copied += len(msgspec.json.encode(_at(obj, source)))
        if self._work > WORK_MAX or self._copied > COPIED_BYTES_MAX:
            raise _CannotError

    @staticmethod
    def check_depth(obj: Any) -> None:
        """Refuse what no body may be."""
        if is_too_deep(obj):
            raise _CannotError


def _held_on_the_way(obj: Any, path: list[str]) -> int:
    """How much the lists and objects hold that `path` leads through, as far as it does."""
    held = 0
    for step in path:
        if not isinstance(obj, dict | list):
            break
        held += len(obj)
        if isinstance(obj, dict):
            obj = obj.get(step)
        else:
            at = capped_integer(step, len(obj)) if step.isdecimal() else len(obj)
            obj = obj[at] if at < len(obj) else None
    return held


def _done(obj: Any, operation: Json) -> Any:
    path = _steps(operation.get("path"))
    if not path and operation.get("op") not in _OF_ALL:
        raise _CannotError
    match operation.get("op"):
        case "add":
            return _put(obj, path, operation.get("value"), insert=True)
        case "replace" if not path:
            return _exchanged(obj, operation.get("value"))
        case "replace":
            return _put(obj, path, operation.get("value"), insert=False)
        case "remove":
            return _removed(obj, path)
        case "move":
            source = _steps(operation.get("from"))
            return _put(_removed(obj, source), path, _at(obj, source), insert=True)
        case "copy":
            return _put(obj, path, _copied(obj, _steps(operation.get("from"))), insert=True)
        case "test":
            return _tested(obj, path, operation.get("value"))
        case _:
            raise _CannotError


def _copied(obj: Any, source: list[str]) -> Any:
    if not source:  # upstream: patch.go:findObject has no name for the whole
        raise _CannotError
    return _at(obj, source)


def _exchanged(obj: Any, value: Any) -> Any:
    """Another document in the place of the whole; values that are none are passed over."""
    if isinstance(value, list):
        raise _CannotError
    return value if isinstance(value, dict) else obj


def _steps(pointer: Any) -> list[str]:
    """The members that a JSON pointer (RFC 6901) leads through."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise _CannotError
    parts = pointer.split("/")[1:]
    if len(parts) > DEPTH_MAX:
        raise _CannotError
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _at(obj: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(obj, dict) and step in obj:
            obj = obj[step]
        elif isinstance(obj, list):
            obj = obj[_index(step, len(obj) - 1)]
        else:
            raise _CannotError
    return obj


def _tested(obj: Any, path: list[str], value: Any) -> Any:
    """`obj` if it has `value` there; null is also what is not there."""
    parent = _at(obj, path[:-1])
    missing = isinstance(parent, dict) and bool(path) and path[-1] not in parent
    found = None if missing else _at(obj, path)
    if not is_alike(found, value):
        raise _CannotError
    return obj


def _put(obj: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(obj, dict):
        if rest and step not in obj:
            raise _CannotError
        return {**obj, step: _put(obj[step], rest, value, insert=insert) if rest else value}
    if not isinstance(obj, list):
        raise _CannotError
    if rest or not insert:
        at = _index(step, len(obj) - 1)
        return [*obj[:at], _put(obj[at], rest, value, insert=insert), *obj[at + 1 :]]
    at = len(obj) if step == _END else _index(step, len(obj), end=len(obj))
    return [*obj[:at], value, *obj[at:]]


def _removed(obj: Any, path: list[str]) -> Any:
    if not path:
        raise _CannotError
    step, rest = path[0], path[1:]
    if isinstance(obj, dict) and step in obj:
        if rest:
            return {**obj, step: _removed(obj[step], rest)}
        return {key: value for key, value in obj.items() if key != step}
    if not isinstance(obj, list):
        raise _CannotError
    at = _index(step, len(obj) - 1)
    return [*obj[:at], *([_removed(obj[at], rest)] if rest else ()), *obj[at + 1 :]]


def _index(step: str, last: int, *, end: int | None = None) -> int:
    """A place in a list, at most `last`; negative ones count from `end`, or from behind `last`."""
    digits = step.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii():
        raise _CannotError
    at = capped_integer(digits, 2 * last + 2) * (-1 if step.startswith("-") else 1)
    if at < 0:
        at += (last if end is None else end) + 1
    if not 0 <= at <= last:
        raise _CannotError
    return at
