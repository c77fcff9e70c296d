"""Directives of strategic merge patches, and the errors about them.

    $patch                          replace or delete the object that contains it
    $retainKeys                     keep only the listed fields
    $setElementOrder/<list>         the order of the list's items after the merge
    $deleteFromPrimitiveList/<list> scalars to remove from the list

upstream: apimachinery/pkg/util/strategicpatch/patch.go, apimachinery/pkg/util/mergepatch/errors.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.gotext.value import format_s, format_v, type_name

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"
MERGE: Final = "merge"
REPLACE: Final = "replace"
DELETE: Final = "delete"
REMOVED: Final = object()
_FORMAT_NAMES: Final = {DELETE_FROM: "primitive list", SET_ORDER: "setElementOrder list"}


def target_list(key: str, prefix: str) -> str:
    """Return the list name in the directive `key`: `args` for `$setElementOrder/args`.

    Raises ApiError 400 if `key` does not start with `prefix` and a slash.
    """
    # upstream: patch.go:extractKey
    prefix_found, slash, name = key.partition("/")
    if not slash or prefix_found != prefix:
        raise bad_format(_FORMAT_NAMES[prefix])
    return name


def drop_nulls(value: Any) -> None:
    """Remove null members from `value`, a part of a patch, in place."""
    # upstream: patch.go:discardNullValuesFromPatch
    if isinstance(value, list):
        for item in value:
            drop_nulls(item)
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            drop_nulls(item)


def without_directives(value: Any) -> Any:
    """Return `value` without directives, or REMOVED if `value` itself is a directive.

    `value` is a part of a patch, and the original has no value to merge it with. Objects in `value`
    are changed in place.
    """
    # upstream: patch.go:removeDirectives
    if isinstance(value, list):
        return [item for item in map(without_directives, value) if item is not REMOVED]
    if not isinstance(value, dict):
        return value
    if DIRECTIVE in value:
        return REMOVED
    for key, item in list(value.items()):
        result = without_directives(item)
        if result is REMOVED:
            del value[key]
        else:
            value[key] = result
    return value


def internal_error(message: str) -> ApiError:
    """Return ApiError 500 with the reason "", as upstream does for most malformed patches."""
    return ApiError("", 500, message)


def bad_format(what: str) -> ApiError:
    """Return ApiError 400: a directive is malformed; `what` names the malformed part."""
    return bad_request(f"invalid patch format of {what}")


def wrong_argument(expected: str, value: Any) -> ApiError:
    """Return ApiError 500: the `value` of a directive does not have the Go type `expected`."""
    received = "%!s(<nil>)" if value is None else type_name(value)
    return internal_error(f"expected a {expected}, but received a {received}")


def unknown_directive(value: Any, where: Json) -> ApiError:
    """Return ApiError 500: `where` has a `$patch` with an unknown `value`."""
    return internal_error(f"unknown patch type: {format_s(value)} in map: {format_v(where)}")


def missing_merge_key(item: Json, key: str) -> ApiError:
    """Return ApiError 500: the list item `item` lacks the merge key `key`."""
    return internal_error(f"map: {format_v(item)} does not contain declared merge key: {key}")


def panic_error() -> ApiError:
    """Return ApiError 422 for a patch that makes upstream's own code panic.

    Here Fairlead differs from upstream, which responds with a plain 500 after the panic.
    """
    # upstream: apiserver/pkg/server/filters/wrap.go:WithPanicRecovery
    return unprocessable()


def unprocessable() -> ApiError:
    """Return ApiError 422 for a patch that cannot be applied."""
    message = "the server rejected our request due to an error in our request"
    return ApiError("Invalid", 422, message, has_details=True)
