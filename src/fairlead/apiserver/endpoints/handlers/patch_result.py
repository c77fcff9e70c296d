"""The result of a patch: checks of its type, and how error messages show it.

upstream: apiserver/pkg/endpoints/handlers/patch.go:applyPatchToObject, jsonPatcher,
apimachinery/pkg/runtime/serializer/{json/json.go,versioning/versioning.go}:Decode,
apiextensions-apiserver/pkg/apiserver/customresource_handler.go:DecoderToVersion
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text import field_problem
from fairlead.apiserver.endpoints.request.body_type import no_conversion, other_kind, type_problem
from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.gotext.value import format_v
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.patch.jsonpatch.patched_document import document_text
from fairlead.apiserver.schema.model import Schema

# upstream: apiextensions-apiserver/pkg/crdserverscheme/unstructured.go:ObjectKinds
_VERSIONLESS: Final = "Object 'apiVersion' is missing in 'object has no apiVersion field'"


@dataclass(frozen=True, slots=True)
class PatchedObject:
    """The patched object; `document` makes its JSON document, only if it is shown."""

    schema: Schema | None
    made: Any
    document: Callable[[], Any]

    def text(self) -> str:
        """The text for an error message."""
        return document_text(self.schema, self.document())


@dataclass(frozen=True, slots=True)
class PatchBody:
    """The body of a strategic merge patch, shown as Go prints a map."""

    sent: Json

    def text(self) -> str:
        """The text for an error message."""
        return format_v(self.sent)


PatchSubject = PatchedObject | PatchBody


def invalid_patch(subject: PatchSubject, why: str) -> ApiError:
    """422 for the result of a patch; upstream names no object."""
    cause = Cause("FieldValueInvalid", field_problem.invalid(subject.text(), why), "patch")
    message = f' "" is invalid: {cause}'
    return ApiError("Invalid", 422, message, causes=(cause,), has_details=True)


def of_its_kind(kind: Kind, shown: PatchedObject) -> Json:
    """The patched object with its type, which must be `kind`; a missing type is filled in.

    Raises ApiError 422.
    """
    made: Json = shown.made
    problem = type_problem(made)
    if problem:
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {problem}"
        raise invalid_patch(shown, why)
    api_version, name = made.get("apiVersion") or "", made.get("kind") or ""
    if api_version.count("/") > 1:
        raise invalid_patch(shown, f"unexpected GroupVersion string: {api_version}")
    if kind.is_custom:
        _require_custom(kind, api_version, name, shown)
        return made
    api_version, name = api_version or kind.api_version, name or kind.kind
    if (api_version, name) != (kind.api_version, kind.kind):
        raise invalid_patch(shown, no_conversion(api_version, name, kind))
    return {**made, "apiVersion": api_version, "kind": name}


def _require_custom(kind: Kind, api_version: str, name: str, shown: PatchedObject) -> None:
    if not name:
        raise invalid_patch(shown, f"Object 'Kind' is missing in '{shown.text()}'")
    if not api_version:
        message = f"Internal error occurred: {_VERSIONLESS}"
        raise ApiError("InternalError", 500, message, causes=(Cause("", _VERSIONLESS),))
    if name != kind.kind:
        raise other_kind(shown.made, name, kind)
    if api_version != kind.api_version:
        raise _other_version(shown.made, api_version, kind)


def _other_version(obj: Json, api_version: str, kind: Kind) -> ApiError:
    """422: a patched custom resource states another version, even if that is served."""
    # upstream: pkg/registry/customresource/validator.go:ValidateTypeMeta, as with other_kind; what
    # was patched is read without conversion (apimachinery/pkg/runtime/scheme.go:Convert)
    why = f'Invalid value: "{api_version}": must be {kind.api_version}'
    group, _, version = api_version.rpartition("/")
    meta = obj.get("metadata")
    name = str(meta.get("name", "")) if isinstance(meta, dict) else ""
    named = replace(kind, group=group, version=version, stored_version="")
    return invalid(named, "", name, (Cause("FieldValueInvalid", why, "apiVersion"),))
