"""Directives: members of a strategic merge patch that say how to merge, and what is wrong there.

    $patch                          replace or delete the object that it stands in
    $retainKeys                     drop all fields but these
    $setElementOrder/<list>         the order in which items are to stand
    $deleteFromPrimitiveList/<list> single values that go

upstream: apimachinery/pkg/util/strategicpatch/patch.go, apimachinery/pkg/util/mergepatch/errors.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.gotext.value import go_kind, go_text, go_verb

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"
MERGE: Final = "merge"
REPLACE: Final = "replace"
DELETE: Final = "delete"
GONE: Final = object()
_FORMATS: Final = {DELETE_FROM: "primitive list", SET_ORDER: "setElementOrder list"}


def list_of(key: str, prefix: str) -> str:
    """Which list `key` is about. Raises ApiError 400."""
    # upstream: patch.go:extractKey
    found, stroke, name = key.partition("/")
    if not stroke or found != prefix:
        raise bad_format(_FORMATS[prefix])
    return name


def drop_nulls(value: Any) -> None:
    """Take out of `value`, a part of a patch, the members that are null."""
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
    """`value`, a part of a patch, as it stands where nothing was; GONE if it is a directive.

    Its objects lose what goes.
    """
    # upstream: patch.go:removeDirectives
    if isinstance(value, list):
        return [item for item in map(without_directives, value) if item is not GONE]
    if not isinstance(value, dict):
        return value
    if DIRECTIVE in value:
        return GONE
    for key, item in list(value.items()):
        made = without_directives(item)
        if made is GONE:
            del value[key]
        else:
            value[key] = made
    return value


def refused(message: str) -> ApiError:
    """500 without a reason: that is what upstream makes of most of these."""
    return ApiError("", 500, message)


def bad_format(what: str) -> ApiError:
    """400: a directive's value is of no use."""
    return bad_request(f"invalid patch format of {what}")


def bad_argument(wanted: str, value: Any) -> ApiError:
    """500: a value is of another type than a directive can work on."""
    received = "%!s(<nil>)" if value is None else go_kind(value)
    return refused(f"expected a {wanted}, but received a {received}")


def bad_directive(value: Any, where: Json) -> ApiError:
    """500: a value of $patch that nobody knows."""
    return refused(f"unknown patch type: {go_verb(value)} in map: {go_text(where)}")


def no_key(item: Json, key: str) -> ApiError:
    """500: an item lacks what tells it from its neighbours."""
    return refused(f"map: {go_text(item)} does not contain declared merge key: {key}")


def crashed() -> ApiError:
    """422: upstream's own code breaks down over this, which nobody can want to rely on."""
    # upstream: apiserver/pkg/server/filters/wrap.go:WithPanicRecovery tells of it, as 500
    return unable()


def unable() -> ApiError:
    """422 without a word of what is wrong, as upstream has it."""
    said = "the server rejected our request due to an error in our request"
    return ApiError("Invalid", 422, said, has_details=True)
