"""Reads the apiVersion and kind that a body states, and requires that they match the path.

upstream: apimachinery/pkg/runtime/serializer/json/{meta.go:Interpret,json.go:gvkWithDefaults},
serializer/versioning/versioning.go:Decode, apiserver/pkg/endpoints/handlers/create.go
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.error import ApiError, Cause, bad_request, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.decoder import decoded
from fairlead.apiserver.schema.gojson.json_text import Repeating, json_kind
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError

# apiVersion and kind
StatedType = tuple[str, str]

_TYPED: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_FIELDS: Final = {"apiversion": "apiVersion", "kind": "kind"}
# Types in a version that is not served, and the served version by which they are decoded.
_READ_AS: Final = {("policy/v1beta1", "Eviction"): "policy/v1"}
# Registered types without a schema: types of one version, and types of every version.
_OTHER_KINDS: Final = ("v1", "List")
_UNVERSIONED: Final = frozenset(
    ("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")
)
_KINDS_OF_ALL: Final = _UNVERSIONED | frozenset(
    f"{verb}Options" for verb in ("Create", "Delete", "Get", "List", "Patch", "Update")
)
# Kinds whose internal type belongs to another group in upstream.
_INTERNAL_GROUPS: Final = {("events.k8s.io", "Event"): ""}


def type_problem(body: Any) -> str:
    """Return the error text if apiVersion or kind of a body cannot be read; "" if both can."""
    if not isinstance(body, dict):
        return f"{json_kind(body)} into Go value of type {_TYPED}"
    for key, value in _members(body):
        field = _FIELDS.get(key.lower())
        if field and value is not None and not isinstance(value, str):
            return f"{json_kind(value)} into Go struct field .{field} of type string"
    return ""


def stated_type(obj: Json) -> StatedType:
    """Return the (apiVersion, kind) that `obj` states; a missing value is "".

    The case of the member names is ignored, as in Go: `APIVERSION` is read, too.
    """
    found = {"apiVersion": "", "kind": ""}
    for key, value in _members(obj):
        field = _FIELDS.get(key.lower())
        if field and isinstance(value, str):
            found[field] = value
    return found["apiVersion"], found["kind"]


def version_problem(obj: Json) -> str:
    """Return the error text for a malformed apiVersion in `obj`; "" if it is valid."""
    # upstream: apimachinery/pkg/runtime/schema/group_version.go:ParseGroupVersion
    api_version = stated_type(obj)[0]
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


def require_type(obj: Json, kind: Kind, body: bytes = b"") -> Json:
    """Return `obj` with the apiVersion and kind of `kind`, the kind that the request path names.

    Error messages quote `body`. Raises ApiError 400 or 422 if `obj` states another apiVersion or
    kind.
    """
    stated, stated_kind = stated_type(obj)
    name = stated_kind or kind.kind
    group, slash, version = stated.rpartition("/")
    group = group if slash else ""
    if not version and group in ("", kind.group):  # no apiVersion, or only the group of `kind`
        group, version = kind.group, kind.version
    api_version = f"{group}/{version}" if group else version
    api_version = _READ_AS.get((api_version, name), api_version)
    if kind.is_custom and api_version == kind.api_version and name != kind.kind:
        raise other_kind(obj, name, kind)
    if (api_version, name) != (kind.api_version, kind.kind):
        raise bad_request(_misplaced(obj, api_version, name, kind, body))
    return _of_type(obj, kind)


def other_kind(obj: Json, name: str, kind: Kind) -> ApiError:
    """Return ApiError 422: `obj`, a custom resource, states the kind `name` instead of `kind`."""
    # upstream: apiextensions-apiserver/pkg/registry/customresource/validator.go:ValidateTypeMeta
    cause = Cause("FieldValueInvalid", f'Invalid value: "{name}": must be {kind.kind}', "kind")
    meta = obj.get("metadata")
    called = str(meta.get("name", "")) if isinstance(meta, dict) else ""
    return invalid(replace(kind, kind=name), "", called, (cause,))


def no_conversion(api_version: str, name: str, kind: Kind) -> str:
    """Return the error text for a body that cannot be converted to the built-in `kind`.

    `api_version` and `name` are the apiVersion and the kind that the body states.
    """
    if not _is_known(api_version, name):
        why = f"no kind {quoted(name)} is registered for version {quoted(api_version)} in scheme "
        return why + '"pkg/api/legacyscheme/scheme.go:30"'
    package = kind.group.partition(".")[0] or "core"
    version = "v1" if name in _UNVERSIONED else api_version.rpartition("/")[2]
    return f"converting ({version}.{name}) to ({package}.{kind.kind}): unknown conversion"


def _misplaced(obj: Json, api_version: str, name: str, kind: Kind, body: bytes) -> str:
    version = api_version.rpartition("/")[2]
    if kind.is_custom:
        return _other_version(api_version, kind)
    cannot = f"{name} in version {quoted(version)} cannot be handled as a {kind.kind}: "
    if not version:
        missing = body.decode("utf-8", "replace")
        return f"{cannot}Object 'apiVersion' is missing in '{missing}'"
    schema = schema_of(api_version, name)
    if schema is not None:
        try:
            decoded(schema, obj)
        except TypeMismatchError as cause:
            return f"{cannot}{cause}"
        if _internal(api_version, name) == _internal(kind.api_version, kind.kind):
            return _other_version(api_version, kind)
    return cannot + no_conversion(api_version, name, kind)


def _other_version(api_version: str, kind: Kind) -> str:
    return (
        f"the API version in the data ({api_version}) does not match the expected API version "
        f"({kind.api_version})"
    )


def _internal(api_version: str, name: str) -> StatedType:
    group = api_version.rpartition("/")[0]
    return _INTERNAL_GROUPS.get((group, name), group), name


def _is_known(api_version: str, name: str) -> bool:
    is_of_all = name in _KINDS_OF_ALL and schema_of(api_version, "WatchEvent") is not None
    is_other = (api_version, name) == _OTHER_KINDS or is_of_all
    return is_other or schema_of(api_version, name) is not None


def _of_type(obj: Json, kind: Kind) -> Json:
    typed = {"apiVersion": kind.api_version, "kind": kind.kind}
    made = {**obj, **typed}
    if made.get("metadata") is None:
        made["metadata"] = {}
    if not isinstance(obj, Repeating):
        return made
    repeating = Repeating(made)
    pairs = [(key, typed.get(key, value)) for key, value in obj.pairs]
    missing = [(key, value) for key, value in made.items() if key not in obj]
    repeating.pairs = pairs + missing
    return repeating


def _members(obj: Json) -> Iterable[tuple[str, Any]]:
    return obj.pairs if isinstance(obj, Repeating) else obj.items()
