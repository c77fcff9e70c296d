"""Bodies: what clients send, whatever its media type, as JSON values.

upstream: apimachinery/pkg/runtime/serializer/json/json.go:Decode,
apiserver/pkg/endpoints/handlers/create.go:transformDecodeError
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.api.text.yaml_documents import YamlError, documents
from fairlead.apiserver.endpoints.request.body_type import type_problem, version_problem
from fairlead.apiserver.endpoints.request.json_number import as_in_json
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.negotiation.media_type import ACCEPTED, JSON, PROTOBUF, YAML
from fairlead.apiserver.negotiation.request_error import unknown_body
from fairlead.apiserver.schema.json_text import NOT_PLAIN, JsonError, parse_json, parse_plain

# The object in a body, and of which version and kind it is if it does not say so itself.
DecodeProtobuf = Callable[[bytes, str, str], Json]

SHOWN_BYTES_MAX: Final = 30
# A number with a point or an exponent, or one that 64 bits may not hold.
_FLOATING: Final = re.compile(rb"[:,\[]-?[0-9]+[.eE]|[0-9]{19}")
# What stands before the reason where JSON is none, or says not what it is.
_NOT_TOLD: Final = "couldn't get version/kind; json parse error: "


def media_type_of(content_type: str) -> str:
    """The media type without its parameters; JSON where nothing is said."""
    return content_type.partition(";")[0].strip().lower() or JSON


def decoded(
    body: bytes,
    content_type: str,
    expected: str,
    protobuf: DecodeProtobuf | None = None,
    api_version: str = "v1",
) -> Json:
    """The object in `body`, of the kind called `expected` for the refusal of anything else.

    Options of a deletion are expected as "", and their refusal is short.

    Raises ApiError: 415 for media types that nobody knows, 400 for what is no object.
    """
    media_type = media_type_of(content_type)
    if media_type == PROTOBUF and protobuf is not None:
        return _from_protobuf(body, api_version, expected, protobuf)
    if media_type not in ACCEPTED or media_type == PROTOBUF:
        raise unknown_body(ACCEPTED)
    try:
        value = _in_order(parsed_yaml(body)[0]) if media_type == YAML else parse_json(body)
    except JsonError as cause:
        raise _unrecognized(body, expected, f"{_NOT_TOLD}{cause}") from None
    except YamlError as cause:
        raise _unrecognized(body, expected, cause.upstream) from None
    if value is None:
        return {}
    problem = type_problem(value)
    if problem:
        why = f"{_NOT_TOLD}json: cannot unmarshal {problem}"
        raise _unrecognized(body, expected, why)
    problem = version_problem(value)
    if problem:
        raise _unrecognized(body, expected, problem)
    read: Json = value
    return read


def _from_protobuf(body: bytes, api_version: str, expected: str, protobuf: DecodeProtobuf) -> Json:
    try:
        return protobuf(body, api_version, expected or "DeleteOptions")
    except ApiError as refusal:
        said = "the object provided is unrecognized:"
        typed = f"the object provided is unrecognized (must be of type {expected}):"
        raise ApiError(
            refusal.reason, refusal.code, refusal.message.replace(said, typed, 1)
        ) from None


def parsed_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The first document in `body` as a JSON value, and what is to be said about its keys.

    The last of equal keys counts. Raises YamlError.
    """
    # Most clients apply JSON, which is YAML and read in a tenth of the time.
    plain = parse_plain(body) if body.startswith(b"{") else NOT_PLAIN
    if plain is not NOT_PLAIN:
        return as_in_json(plain) if _FLOATING.search(body) else plain, []
    # upstream: gopkg.in/yaml.v2 decode.go, as sigs.k8s.io/yaml shows its errors
    notes: list[str] = []

    def note(key: str, line: int) -> None:
        notes.append(f"line {line}: key {quoted(key)} already set in map")

    return as_in_json(next(documents(body, note), None)), notes


def _in_order(value: Any) -> Any:
    """`value` with its members by name, as upstream makes JSON of YAML before it looks at it."""
    match value:
        case dict():
            return {key: _in_order(value[key]) for key in sorted(value)}
        case list():
            return [_in_order(item) for item in value]
        case _:
            return value


def _unrecognized(body: bytes, expected: str, why: str) -> ApiError:
    # upstream: apimachinery/pkg/runtime/serializer/json/json.go, runtime/error.go:summarizeData
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
