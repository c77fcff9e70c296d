"""Bodies: what clients send, whatever its media type, as JSON values.

upstream: apimachinery/pkg/runtime/serializer/json/json.go:Decode,
apiserver/pkg/endpoints/handlers/create.go:transformDecodeError
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fairlead.api.yaml_values import YamlError, documents
from fairlead.apiserver.error import ApiError, Cause, bad_request, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.json_text import (
    NOT_PLAIN,
    JsonError,
    json_kind,
    parse_json,
    parse_plain,
)
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.serving.negotiation import ACCEPTED, JSON, PROTOBUF, YAML
from fairlead.apiserver.serving.refusal import unknown_body
from fairlead.apiserver.serving.yaml_number import as_in_json

Json = dict[str, Any]
DecodeProtobuf = Callable[[bytes], Json]

SHOWN_BYTES_MAX: Final = 30
_TYPED: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
# What is read, though nothing of that version is served, as what.
_READ_AS: Final = {("policy/v1beta1", "Eviction"): "policy/v1"}


def media_type_of(content_type: str) -> str:
    """The media type without its parameters; JSON where nothing is said."""
    return content_type.partition(";")[0].strip().lower() or JSON


def decoded(
    body: bytes, content_type: str, expected: str, protobuf: DecodeProtobuf | None = None
) -> Json:
    """The object in `body`, of the kind called `expected` for the refusal of anything else.

    Options of a deletion are expected as "", and their refusal is short.

    Raises ApiError: 415 for media types that nobody knows, 400 for what is no object.
    """
    media_type = media_type_of(content_type)
    if media_type == PROTOBUF and protobuf is not None:
        return _from_protobuf(body, expected, protobuf)
    if media_type not in ACCEPTED or media_type == PROTOBUF:
        raise unknown_body(ACCEPTED)
    try:
        value = parsed_yaml(body)[0] if media_type == YAML else parse_json(body)
    except (JsonError, YamlError) as cause:
        raise _unrecognized(body, expected, str(cause)) from None
    if value is None and body.strip():
        return {}
    problem = type_problem(value)
    if problem:
        raise _unrecognized(body, expected, f"json: cannot unmarshal {problem}")
    read: Json = value
    return read


def type_problem(value: Any) -> str:
    """Why nobody can tell of which type a body is; empty where it can be told."""
    # upstream: apimachinery/pkg/runtime/serializer/json/meta.go:Interpret
    if not isinstance(value, dict):
        return f"{json_kind(value)} into Go value of type {_TYPED}"
    for field in ("apiVersion", "kind"):
        said = value.get(field)
        if said is not None and not isinstance(said, str):
            return f"{json_kind(said)} into Go struct field .{field} of type string"
    return ""


def _from_protobuf(body: bytes, expected: str, protobuf: DecodeProtobuf) -> Json:
    try:
        return protobuf(body)
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
        return as_in_json(plain), []
    # upstream: gopkg.in/yaml.v2 decode.go, as sigs.k8s.io/yaml shows its errors
    notes: list[str] = []

    def note(key: str, line: int) -> None:
        notes.append(f'line {line}: key "{key}" already set in map')

    return as_in_json(next(documents(body, note), None)), sorted(notes)


def require_type(obj: Json, kind: Kind) -> Json:
    """`obj` as the `kind` that its path names. Raises ApiError 400 for another.

    What it does not say about itself is taken from the path.
    """
    api_version = obj.get("apiVersion") or kind.api_version
    name = obj.get("kind") or kind.kind
    api_version = _READ_AS.get((api_version, name), api_version)
    if kind.is_custom and api_version == kind.api_version and name != kind.kind:
        raise other_kind(obj, str(name), kind)
    if (api_version, name) != (kind.api_version, kind.kind):
        raise bad_request(_misplaced(str(api_version), str(name), kind))
    meta = obj.get("metadata")
    return {**obj, "apiVersion": api_version, "kind": name, "metadata": meta or {}}


def other_kind(obj: Json, name: str, kind: Kind) -> ApiError:
    """422 for a custom resource that says it is of another kind."""
    # upstream: apiextensions-apiserver/pkg/registry/customresource/validator.go:validateKind
    cause = Cause("FieldValueInvalid", f'Invalid value: "{name}": must be {kind.kind}', "kind")
    meta = obj.get("metadata")
    called = str(meta.get("name", "")) if isinstance(meta, dict) else ""
    return invalid(replace(kind, kind=name), "", called, (cause,))


def _misplaced(api_version: str, name: str, kind: Kind) -> str:
    if kind.is_custom:
        return (
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    cannot = f'{name} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    return cannot + no_conversion(api_version, name, kind)


def no_conversion(api_version: str, name: str, kind: Kind) -> str:
    """Why an object that says it is another is none of a built-in `kind`."""
    if schema_of(api_version, name) is None:
        why = f'no kind "{name}" is registered for version "{api_version}" in scheme '
        return why + '"pkg/api/legacyscheme/scheme.go:30"'
    package = kind.group.partition(".")[0] or "core"
    version = api_version.rpartition("/")[2]
    return f"converting ({version}.{name}) to ({package}.{kind.kind}): unknown conversion"


def _unrecognized(body: bytes, expected: str, why: str) -> ApiError:
    # upstream: apimachinery/pkg/runtime/serializer/json/json.go, runtime/error.go:summarizeData
    said = f"couldn't get version/kind; json parse error: {why}"
    if not expected:
        return bad_request(said)
    start = body[:SHOWN_BYTES_MAX]
    shown = start.decode("utf-8", "replace") if body.startswith(b"{") else start.hex()
    if len(body) > SHOWN_BYTES_MAX:
        shown += " ..."
    shown = shown or "<empty>"
    return bad_request(
        f"the object provided is unrecognized (must be of type {expected}): {said} ({shown})"
    )
