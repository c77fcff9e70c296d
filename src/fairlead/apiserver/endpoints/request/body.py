"""Decodes request bodies (JSON, YAML, protobuf) into JSON values.

upstream: apimachinery/pkg/runtime/serializer/json/json.go:Decode,
apiserver/pkg/endpoints/handlers/rest.go:transformDecodeError
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.api.text.yaml_documents import TooManyValuesError, YamlError, documents
from fairlead.apiserver.endpoints.request.body_type import type_problem, version_problem
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.negotiation.media_type import ACCEPTED, APPLY_PATCH, JSON, PROTOBUF, YAML
from fairlead.apiserver.negotiation.request_error import unknown_body
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.schema.gojson.json_text import NOT_PLAIN, JsonError, parse_json, parse_plain

# (body, default apiVersion, default kind) -> object
DecodeProtobuf = Callable[[bytes, str, str], Json]

SHOWN_BYTES_MAX: Final = 30
# Handling an object with VALUES_MAX values takes about a tenth of a second, and so does a
# CustomResourceDefinition with DEFINITION_VALUES_MAX values. Other requests wait meanwhile. Only a
# few real CustomResourceDefinitions have more than VALUES_MAX values.
VALUES_MAX: Final = 15_000
DEFINITION_VALUES_MAX: Final = 50_000
JSON_PATCH_VALUES_MAX: Final = 50_000  # the number of operations is limited, too
APPLIED_VALUES_MAX: Final = 5_000  # an apply compares the fields of all managers, too
_VALUES_MAX_OF_PATCHES: Final = {
    "application/json-patch+json": JSON_PATCH_VALUES_MAX,
    APPLY_PATCH: APPLIED_VALUES_MAX,
}
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_INT64: Final = 1 << 63
# a number with a point or an exponent, or too long for 64 bits
_FLOATING: Final = re.compile(rb"[:,\[]-?[0-9]+[.eE]|[0-9]{19}")
# the prefix of errors in the JSON syntax, and in apiVersion and kind
_TYPE_UNREADABLE: Final = "couldn't get version/kind; json parse error: "


def values_max(kind: str, media_type: str = JSON) -> int:
    """Return the maximum number of JSON values in a body of `media_type` for objects of `kind`."""
    if kind == CUSTOM_RESOURCE_DEFINITION.kind:
        return DEFINITION_VALUES_MAX
    return _VALUES_MAX_OF_PATCHES.get(media_type, VALUES_MAX)


def media_type_of(content_type: str) -> str:
    """Return the media type without its parameters; JSON if `content_type` is empty."""
    return content_type.partition(";")[0].strip().lower() or JSON


def decoded(
    body: bytes,
    content_type: str,
    expected: str,
    protobuf: DecodeProtobuf | None = None,
    api_version: str = "v1",
    repeats: list[str] | None = None,
) -> Json:
    """Return the object in `body`; {} for null.

    Error messages call the kind of the object `expected`; "" stands for DeleteOptions. `protobuf`
    decodes protobuf bodies; if it is None, their media type counts as unknown. `api_version` is the
    default apiVersion of a protobuf body. Notes about duplicate YAML keys are added to `repeats`.
    Raises ApiError 415 for an unknown media type, and 400 if the body is neither an object nor
    null. Raises ApiError 413 if a YAML or protobuf body has too many values. The number of values
    in a JSON body is not checked here; the server checks it earlier, with `require_few_values`.
    """
    media_type = media_type_of(content_type)
    if media_type == PROTOBUF and protobuf is not None:
        return _from_protobuf(body, api_version, expected, protobuf)
    if media_type not in ACCEPTED or media_type == PROTOBUF:
        raise unknown_body(ACCEPTED)
    try:
        if media_type == YAML:
            value, notes = parsed_yaml(body, values_max(expected))
            value = _in_order(value)
            if repeats is not None:
                repeats += notes
        else:
            value = parse_json(body)
    except JsonError as cause:
        raise _unrecognized(body, expected, f"{_TYPE_UNREADABLE}{cause}") from None
    except YamlError as cause:
        raise _unrecognized(body, expected, cause.upstream) from None
    if value is None:
        return {}
    problem = type_problem(value)
    if problem:
        why = f"{_TYPE_UNREADABLE}json: cannot unmarshal {problem}"
        raise _unrecognized(body, expected, why)
    problem = version_problem(value)
    if problem:
        raise _unrecognized(body, expected, problem)
    read: Json = value
    return read


def _from_protobuf(body: bytes, api_version: str, expected: str, protobuf: DecodeProtobuf) -> Json:
    try:
        value = protobuf(body, api_version, expected or "DeleteOptions")
    except ApiError as refusal:
        untyped = "the object provided is unrecognized:"
        typed = f"the object provided is unrecognized (must be of type {expected}):"
        raise ApiError(
            refusal.reason, refusal.code, refusal.message.replace(untyped, typed, 1)
        ) from None
    most = values_max(expected)
    if len(body) > most:  # a value takes at least a byte
        require_few_values(encode(value), most)
    return value


def parsed_yaml(body: bytes, most: int = VALUES_MAX) -> tuple[Any, list[str]]:
    """Return (first YAML document as a JSON value, notes about duplicate keys).

    The last value of a duplicate key is used. Raises YamlError if the YAML is invalid, and ApiError
    413 if the document has more than `most` values.
    """
    # Most clients apply JSON, which is valid YAML but ten times faster to parse as JSON.
    plain = parse_plain(body) if body.startswith(b"{") else NOT_PLAIN
    if plain is not NOT_PLAIN:
        require_few_values(body, most)
        return with_json_numbers(plain) if _FLOATING.search(body) else plain, []
    # upstream: gopkg.in/yaml.v2 decode.go, as sigs.k8s.io/yaml shows its errors
    notes: list[str] = []

    def note(key: str, line: int) -> None:
        notes.append(f"line {line}: key {quoted(key)} already set in map")

    try:
        value = next(documents(body, note, values_max=most), None)
    except TooManyValuesError:
        raise _too_many_values(most) from None
    return with_json_numbers(value), notes


def require_few_values(body: bytes, most: int) -> None:
    """Refuse JSON with more than `most` values, without parsing it. Raises ApiError 413.

    The number of values determines how long the request takes, and meanwhile all other requests
    wait. The function counts commas and closing brackets outside strings, because one of them
    follows every value inside an object or list. A malformed body with too many values may be
    accepted here.
    """
    if _separators(body) > most and _separators(_STRING.sub(b"", body)) > most:
        raise _too_many_values(most)


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"}") + text.count(b"]")


def _too_many_values(most: int) -> ApiError:
    text = f"Request entity too large: limit is {most} values"
    return ApiError("RequestEntityTooLarge", 413, text)


def _in_order(value: Any) -> Any:
    """Return `value` with members sorted by name, as upstream's conversion of YAML to JSON does."""
    match value:
        case dict():
            return {key: _in_order(value[key]) for key in sorted(value)}
        case list():
            return [_in_order(item) for item in value]
        case _:
            return value


def _unrecognized(body: bytes, expected: str, why: str) -> ApiError:
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:transformDecodeError, summarizeData
    if not expected:
        return bad_request(why)
    start = body[:SHOWN_BYTES_MAX]
    shown = start.decode("utf-8", "replace") if body.startswith(b"{") else start.hex()
    if len(body) > SHOWN_BYTES_MAX:
        shown += " ..."
    shown = shown or "<empty>"
    return bad_request(
        f"the object provided is unrecognized (must be of type {expected}): {why} ({shown})"
    )


def with_json_numbers(value: Any) -> Any:
    """Return `value`, parsed from YAML, with the number types of upstream.

    Upstream converts YAML to JSON, and then parses the JSON. Therefore, 1.0 becomes the integer 1,
    and an integer beyond 64 bits becomes a float.
    """
    # upstream: sigs.k8s.io/yaml/yaml.go:convertToJSONableObject
    return _numbered(value, True)  # noqa: FBT003 - a positional recursion argument


def with_go_numbers(value: Any) -> Any:
    """Return the parsed JSON `value`, with integers beyond 64 bits replaced by floats, as in Go."""
    # upstream: sigs.k8s.io/json, which unmarshals integers as int64 or float64
    return _numbered(value, False)  # noqa: FBT003 - as above


def _numbered(value: Any, is_yaml: bool) -> Any:  # noqa: FBT001 - as above
    match value:
        case dict():
            made = {key: _numbered(item, is_yaml) for key, item in value.items()}
            is_same = type(value) is dict and all(made[key] is value[key] for key in made)
            return value if is_same else made
        case list():
            items = [_numbered(item, is_yaml) for item in value]
            return items if any(map(_is_other, items, value)) else value
        case float() if is_yaml and value.is_integer() and -_INT64 <= value < _INT64:
            return int(value)
        case int() if not -_INT64 <= value < _INT64:
            return float(value)
        case _:
            return value


def _is_other(one: Any, other: Any) -> bool:
    return one is not other
