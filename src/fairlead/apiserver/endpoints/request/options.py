"""The query parameters of each verb, validated by upstream's rules.

upstream: apimachinery/pkg/apis/meta/{v1,internalversion}/validation/validation.go,
apimachinery/pkg/apis/meta/v1/conversion.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.text.field_problem import quoted
from fairlead.api.text.integer import capped_integer, parse_int64
from fairlead.api.timestamp import parse_duration
from fairlead.apiserver.endpoints.request.body import media_type_of
from fairlead.apiserver.endpoints.request.selector import parsed_selectors
from fairlead.apiserver.error import Cause, bad_request
from fairlead.apiserver.negotiation.media_type import APPLY_PATCH
from fairlead.apiserver.negotiation.request_error import bad_option
from fairlead.apiserver.request import Request
from fairlead.apiserver.validation.meta.field import invalid, not_supported, required

FALSE: Final = ("false", "0")
MANAGER_BYTES_MAX: Final = 128
UNSIGNED_MAX: Final = (1 << 64) - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_UNSIGNED: Final = re.compile(r"[0-9]+")
_DURATION_TERM: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?P<unit>[^0-9.]*)")
_DURATION_UNITS: Final = ("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h")
EXACT: Final = "Exact"
NOT_OLDER_THAN: Final = "NotOlderThan"
_MATCH: Final = "resourceVersionMatch"


def is_true(request: Request, name: str) -> bool:
    """Return whether the boolean parameter `name` is present and neither `false` nor `0`."""
    # upstream: apimachinery/pkg/runtime/conversion.go:Convert_Slice_string_To_bool
    for key, value in request.query:
        if key == name:
            return value.lower() not in FALSE
    return False


def integer(request: Request, name: str) -> int | None:
    """Return the integer parameter `name`; None if it is missing.

    Raises ApiError 400 if the parameter is not a 64-bit integer.
    """
    if not request.has(name):
        return None
    text = request.parameter(name)
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = parse_int64(text)
    if number is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def resource_version_problem(text: str) -> str:
    """Return the error text if `text` is not a valid resourceVersion; "" if it is valid."""
    problem = unsigned_problem(text)
    return problem and f"resourceVersion: Invalid value: {quoted(text)}: {problem}"


def unsigned_problem(text: str) -> str:
    """Return the error text if `text` is not an unsigned 64-bit integer, otherwise ""."""
    why = "invalid syntax"
    if _UNSIGNED.fullmatch(text):
        if capped_integer(text, UNSIGNED_MAX + 1) <= UNSIGNED_MAX:
            return ""
        why = "value out of range"
    return f"strconv.ParseUint: parsing {quoted(text)}: {why}"


class ListOptions(Struct, frozen=True):
    """The ListOptions of a list, watch or deletecollection request.

    `version` is resourceVersion, `match` is resourceVersionMatch, and `send_initial` is
    sendInitialEvents. If a parameter is missing, its field is "" or None; a missing limit is 0. If
    a watch of version "" or "0" sets neither resourceVersionMatch nor sendInitialEvents, `match` is
    `NotOlderThan` and `send_initial` is True.
    """

    label_selector: str
    field_selector: str
    version: str
    match: str
    limit: int
    continue_token: str
    timeout_s: int | None
    bookmarks: bool
    send_initial: bool | None
    is_watch: bool


def list_options(request: Request, *, is_watch: bool) -> ListOptions:
    """Return the ListOptions in the query of a list, or of a watch if `is_watch` is set.

    Raises ApiError 400 or 422 if a parameter is invalid.
    """
    timeout_s, limit = integer(request, "timeoutSeconds"), integer(request, "limit") or 0
    labels, fields = request.parameter("labelSelector"), request.parameter("fieldSelector")
    if labels or fields:
        parsed_selectors(labels, fields)  # upstream parses selectors before it validates
    is_set = request.has("sendInitialEvents")
    send_initial = is_true(request, "sendInitialEvents") if is_set else None
    version, match = request.parameter("resourceVersion"), request.parameter(_MATCH)
    if is_watch and not is_set and not match and version in ("", "0"):
        # upstream: apimachinery meta/internalversion: SetListOptionsDefaults
        send_initial, match = True, NOT_OLDER_THAN
    options = ListOptions(
        label_selector=labels,
        field_selector=fields,
        version=version,
        match=match,
        limit=limit,
        continue_token=request.parameter("continue"),
        timeout_s=timeout_s,
        bookmarks=is_true(request, "allowWatchBookmarks"),
        send_initial=send_initial,
        is_watch=is_watch,
    )
    causes = tuple(_watch_causes(options) if is_watch else _list_causes(options))
    if causes:
        raise bad_option("ListOptions", *causes)
    return options


def _list_causes(options: ListOptions) -> Iterator[Cause]:
    if options.match:
        yield from _list_match_causes(options)
    if options.send_initial is not None:
        yield _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _list_match_causes(options: ListOptions) -> Iterator[Cause]:
    field = _MATCH
    if not options.version:
        yield _forbidden(field, f"{field} is forbidden unless resourceVersion is provided")
    if options.continue_token:
        yield _forbidden(field, f"{field} is forbidden when continue is provided")
    if options.match not in (EXACT, NOT_OLDER_THAN):
        supported = f'"{EXACT}", "{NOT_OLDER_THAN}", ""'
        yield _unsupported(field, f'"{options.match}"', supported)
    if options.match == EXACT and options.version == "0":
        yield _forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"')


def _watch_causes(options: ListOptions) -> Iterator[Cause]:
    field = _MATCH
    if options.send_initial is not None and options.match != NOT_OLDER_THAN:
        why = f"sendInitialEvents requires setting {field} to {NOT_OLDER_THAN}"
        yield _forbidden(field, why)
    if not options.match:
        return
    if options.send_initial is None:
        why = f"{field} is forbidden for watch unless sendInitialEvents is provided"
        yield _forbidden(field, why)
    if options.match != NOT_OLDER_THAN:
        yield _unsupported(field, f'"{options.match}"', f'"{NOT_OLDER_THAN}"')
    if options.continue_token:
        yield _forbidden(field, f"{field} is forbidden when continue is provided")


class WriteOptions(Struct, frozen=True):
    """The options of a create, update or patch request.

    `validation` is Strict, Warn (default) or Ignore. `requested_validation` is the parameter
    fieldValidation as the client sent it, "" if it is missing.
    """

    dry_run: bool
    manager: str
    validation: str
    force: bool | None
    requested_validation: str = ""


def write_options(request: Request, name: str) -> WriteOptions:
    """Return the WriteOptions in the query. Raises ApiError 422.

    `name` is the type of the options in error messages, such as PatchOptions.
    """
    is_set = request.has("force")
    options = WriteOptions(
        dry_run=request.has("dryRun"),
        manager=request.parameter("fieldManager"),
        validation=request.parameter("fieldValidation") or "Warn",
        force=is_true(request, "force") if is_set else None,
        requested_validation=request.parameter("fieldValidation"),
    )
    causes = (
        *(_patch_causes(request, options) if name == "PatchOptions" else ()),
        *_manager_causes(options.manager),
        *dry_run_causes(tuple(value for key, value in request.query if key == "dryRun")),
        *_validation_causes(options.validation),
    )
    if causes:
        raise bad_option(name, *causes)
    return options


def dry_run_causes(values: tuple[str, ...]) -> Iterator[Cause]:
    """Yield the errors in the values of dryRun."""
    if values and any(value != "All" for value in values):
        yield not_supported("dryRun", list(values), ("All",))


def _patch_causes(request: Request, options: WriteOptions) -> Iterator[Cause]:
    # upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidatePatchOptions
    if media_type_of(request.headers.get("content-type", "")) == APPLY_PATCH:
        if not options.manager:
            yield required("fieldManager", "is required for apply patch")
    elif options.force is not None:
        yield _forbidden("force", "may not be specified for non-apply patch")


def _manager_causes(manager: str) -> Iterator[Cause]:
    # upstream: validation.go:ValidateFieldManager
    if len(manager.encode()) > MANAGER_BYTES_MAX:
        why = f"may not be more than {MANAGER_BYTES_MAX} bytes"
        yield Cause("FieldValueTooLong", f"Too long: {why}", "fieldManager")
    at = 0
    for mark in manager:
        if not mark.isprintable():
            why = f"invalid character U+{ord(mark):04X} (at position {at})"
            yield invalid("fieldManager", manager, why)
        at += len(mark.encode())


def _validation_causes(validation: str) -> Iterator[Cause]:
    if validation not in ("Ignore", "Warn", "Strict"):
        supported = '"", "Ignore", "Strict", "Warn"'
        yield _unsupported("fieldValidation", quoted(validation), supported)


def _forbidden(field: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def _unsupported(field: str, value: str, supported: str) -> Cause:
    text = f"Unsupported value: {value}: supported values: {supported}"
    return Cause("FieldValueNotSupported", text, field)


def require_timeout(request: Request) -> None:
    """Validate the `timeout` parameter, which Fairlead otherwise ignores. Raises ApiError 400."""
    # upstream: endpoints/filters/request_deadline.go, which ends requests that take longer
    text = request.parameter("timeout") if request.query else ""
    if text:
        try:
            parse_duration(text)
        except ValueError:
            why = f"time: {_duration_problem(text)}"
            raise bad_request(f"invalid timeout specified in the request URL - {why}") from None


def _duration_problem(text: str) -> str:
    """Return Go's error text for `text`, which is not a valid duration."""
    # upstream: time/format.go:ParseDuration
    at = 1 if text[:1] in ("+", "-") else 0
    while found := _DURATION_TERM.match(text, at):
        unit = found["unit"]
        if not unit:
            return f"missing unit in duration {quoted(text)}"
        if unit not in _DURATION_UNITS:
            return f"unknown unit {quoted(unit)} in duration {quoted(text)}"
        at = found.end()
    return f"invalid duration {quoted(text)}"
