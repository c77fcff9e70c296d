"""Patches that make of an object one that says it is of another kind.

upstream: apimachinery/pkg/runtime/serializer/{json/json.go,versioning/versioning.go}:Decode,
apiextensions-apiserver/pkg/apiserver/customresource_handler.go:DecoderToVersion
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.patch_error import PatchedObject, invalid_patch
from fairlead.apiserver.endpoints.request.body_type import no_conversion, other_kind, type_problem
from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.kind import Kind

# upstream: apiextensions-apiserver/pkg/crdserverscheme/unstructured.go:ObjectKinds
_VERSIONLESS: Final = "Object 'apiVersion' is missing in 'object has no apiVersion field'"


def of_its_kind(kind: Kind, shown: PatchedObject) -> Json:
    """What a patch made, of `kind`; what it does not say about itself is what it was.

    Raises ApiError 422.
    """
    made: Json = shown.made
    problem = type_problem(made)
    if problem:
        said = f"couldn't get version/kind; json parse error: json: cannot unmarshal {problem}"
        raise invalid_patch(shown, said)
    stated, name = made.get("apiVersion") or "", made.get("kind") or ""
    if stated.count("/") > 1:
        raise invalid_patch(shown, f"unexpected GroupVersion string: {stated}")
    if kind.is_custom:
        _require_custom(kind, stated, name, shown)
        return made
    stated, name = stated or kind.api_version, name or kind.kind
    if (stated, name) != (kind.api_version, kind.kind):
        raise invalid_patch(shown, no_conversion(stated, name, kind))
    return {**made, "apiVersion": stated, "kind": name}


def _require_custom(kind: Kind, stated: str, name: str, shown: PatchedObject) -> None:
    if not name:
        raise invalid_patch(shown, f"Object 'Kind' is missing in '{shown.text()}'")
    if not stated:
        message = f"Internal error occurred: {_VERSIONLESS}"
        raise ApiError("InternalError", 500, message, causes=(Cause("", _VERSIONLESS),))
    if name != kind.kind:
        raise other_kind(shown.made, name, kind)
    if stated != kind.api_version:
        raise _other_version(shown.made, stated, kind)


def _other_version(obj: Json, stated: str, kind: Kind) -> ApiError:
    """422 for a custom resource that says it is of another version, even of one that is served."""
    # upstream: pkg/registry/customresource/validator.go:ValidateTypeMeta, as with other_kind; what
    # was patched is read without conversion (apimachinery/pkg/runtime/scheme.go:Convert)
    why = f'Invalid value: "{stated}": must be {kind.api_version}'
    group, _, version = stated.rpartition("/")
    meta = obj.get("metadata")
    name = str(meta.get("name", "")) if isinstance(meta, dict) else ""
    named = replace(kind, group=group, version=version, stored_version="")
    return invalid(named, "", name, (Cause("FieldValueInvalid", why, "apiVersion"),))
