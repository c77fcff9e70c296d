"""Patcher: applies the patch in a request body to an object.

The media type of the body states the type of the patch:

    json-patch            operations, applied in order (RFC 6902)
    merge-patch           changed members; null deletes a member (RFC 7386)
    strategic-merge-patch changed members, with lists merged by the schema; not for custom resources
    apply-patch           server-side apply of one manager's fields

After the patch, the object is decoded by the kind's schema, like the body of a PUT.

upstream: apiserver/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text import field_problem
from fairlead.api.text.yaml_documents import YamlError
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.conversion.kind_conversion import shown
from fairlead.apiserver.endpoints.field_manager import tracking_of
from fairlead.apiserver.endpoints.handlers.rest import conversions_of, in_internal_version
from fairlead.apiserver.endpoints.request.body import (
    media_type_of,
    parsed_yaml,
    values_max,
    with_go_numbers,
)
from fairlead.apiserver.endpoints.request.body_type import no_conversion, other_kind, type_problem
from fairlead.apiserver.endpoints.request.options import WriteOptions
from fairlead.apiserver.endpoints.request.typed_object import (
    IGNORE,
    STRICT,
    read_by_type,
    repeated,
    schema_of_kind,
    strict_error,
    warnings_of,
)
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError, Cause, bad_request, invalid
from fairlead.apiserver.gotext.value import format_v
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import APPLY_PATCH
from fairlead.apiserver.negotiation.request_error import unknown_body, unknown_patch
from fairlead.apiserver.patch.jsonpatch.apply import json_of_document, patched_document
from fairlead.apiserver.patch.jsonpatch.operation import operations_of
from fairlead.apiserver.patch.jsonpatch.patched_document import document_text, merged_part
from fairlead.apiserver.patch.managedfields.server_side_apply import (
    ApplyRequest,
    object_name,
    server_side_apply,
    type_name,
)
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.patch.strategicpatch.merge import apply_strategic_merge
from fairlead.apiserver.schema.declaration_order import as_declared
from fairlead.apiserver.schema.from_unstructured import restored
from fairlead.apiserver.schema.gojson.json_text import JsonError, json_kind, parse_json
from fairlead.apiserver.schema.model import Schema
from fairlead.apiserver.schema.scalar import TypeMismatchError
from fairlead.apiserver.suspension import WebhookCalls

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")  # may be too long for 64 bits
_GO_MAP: Final = "map[string]interface {}"
_NO_OBJECT: Final = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
    'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
CUSTOM_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


class Patcher(Struct, frozen=True):
    """The patch in a request.

    `kind` is the kind of the patched object, or of its view in `subresource`, such as Scale.
    """

    scope: RequestScope
    options: WriteOptions
    kind: Kind
    media_type: str
    subresource: str = ""

    @property
    def is_apply(self) -> bool:
        """True if the patch is a server-side apply."""
        return self.media_type == APPLY_PATCH

    @property
    def operation(self) -> str:
        """The operation in the managedFields entry of the patch."""
        return "Apply" if self.is_apply else "Update"

    def patched(self, old: Json) -> WebhookCalls[Json]:
        """Return `old` after the patch; both have the internal version.

        Raises ApiError 400, 409, 413, 422, 500.
        """
        before = shown(self.kind, old)
        changed = (yield from self._applied(before)) if self.is_apply else self._changed(before)
        return in_internal_version(self.scope, self.kind, changed)

    def created(self) -> WebhookCalls[Json]:
        """Return the object that server-side apply creates, converted to the internal version.

        Raises ApiError.
        """
        made = yield from self._applied(None)
        return in_internal_version(self.scope, self.kind, made)

    def _changed(self, old: Json) -> Json:
        match self.media_type:
            case "application/json-patch+json":
                return self._by_operations(old)
            case "application/merge-patch+json":
                return self._merged(old)
            case _:
                return self._strategically(old)

    def _applied(self, old: Json | None) -> WebhookCalls[Json]:
        """Return the result of server-side apply to `old`.

        `old` is None if the object does not exist yet.
        """
        config = self._configuration()
        conversions = conversions_of(self.scope) if self.kind.is_custom else None
        tracking = tracking_of(self.kind, self.subresource, conversions)
        if tracking is None:
            raise unknown_patch()
        application = ApplyRequest(
            config=config,
            manager=self.options.manager,
            force=bool(self.options.force),
            subresource=self.subresource,
        )
        timestamp = format_timestamp(self.scope.now)
        apply = partial(server_side_apply, tracking, old, application, timestamp)
        made = apply() if conversions is None else (yield from conversions.run(apply))
        return self._decoded_apply(config, made)

    def _decoded_apply(self, config: Json, applied: Json) -> Json:
        """Return `applied`, the result of server-side apply, decoded by the kind's schema.

        Raises ApiError 500 if a value has the wrong type.
        """
        try:
            made, _ = self._restored(applied)  # without warnings about dropped fields
        except TypeMismatchError as cause:
            why = cause.restoring
            if not self.kind.is_custom:
                why = f"unable to convert unstructured object to {type_name(config)}: {why}"
            prefix = f"failed to convert new object ({object_name(config)}) to proper version: "
            raise ApiError("", 500, prefix + why) from None
        return made

    def _by_operations(self, old: Json) -> Json:
        is_typed = self.options.validation != IGNORE
        operations, notes = operations_of(self.scope.request.body, is_typed=is_typed)
        document = patched_document(old, operations)
        return self._decoded_document(json_of_document(document), notes, lambda: document)

    def _merged(self, old: Json) -> Json:
        try:
            patch = self._parsed("error decoding patch: ")
        except ApiError:
            if self.options.validation != IGNORE:
                raise
            patch = None
        if isinstance(patch, dict):
            made, notes = merge_patch(old, patch), list(repeated(patch))
            return self._decoded_document(made, notes, lambda: self._merged_document(old))
        if patch is not None and self.options.validation != IGNORE:
            raise _undecodable("error decoding patch: ", patch, _GO_MAP)
        if not isinstance(patch, list):
            raise bad_request("Invalid JSON Patch")
        return self._decoded_document(
            merge_patch(None, patch), [], lambda: self._merged_document(None)
        )

    def _merged_document(self, old: Json | None) -> Any:
        return merged_part(old, msgspec.Raw(self.scope.request.body.strip()))

    def _strategically(self, old: Json) -> Json:
        patch = self._parsed("")
        if patch is None:
            return old
        schema = schema_of_kind(self.kind)
        if not isinstance(patch, dict) or schema is None:
            raise _undecodable("", patch, _GO_MAP)
        notes = list(repeated(patch))
        if notes or _LONG_NUMBER.search(self.scope.request.body):
            patch = with_go_numbers(patch)
        made = apply_strategic_merge(schema, old, patch)
        # As upstream, changes of kind and apiVersion are ignored silently.
        named = {"kind": self.kind.kind, "apiVersion": self.kind.api_version}
        known = {key: text for key, text in named.items() if _is_text(made.get(key))}
        made = {**made, **known}
        return self._validated(made, notes, PatchBody(patch))

    def _parsed(self, prefix: str) -> Any:
        try:
            return parse_json(self.scope.request.body)
        except JsonError as cause:
            raise bad_request(f"{prefix}{cause}") from None

    def _configuration(self) -> Json:
        try:
            most = values_max(self.kind.kind, APPLY_PATCH)
            config, repeats = parsed_yaml(self.scope.request.body, most)
        except YamlError as cause:
            prefix = "error decoding YAML: error converting YAML to JSON: yaml: "
            raise bad_request(f"{prefix}{_yaml_problem(cause)}") from None
        if config is None:
            config = {}
        if not isinstance(config, dict):
            prefix = "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            raise _undecodable(prefix, config, _GO_MAP)
        kind = self.kind
        stated = (config.get("apiVersion"), config.get("kind"))
        if stated != (kind.api_version, kind.kind):
            group, _, version = str(stated[0] or "").rpartition("/")
            raise bad_request(f"invalid object type: {group}/{version}, Kind={stated[1] or ''}")
        self._note_repeats(repeats)
        return config

    def _note_repeats(self, notes: list[str]) -> None:
        if notes and self.options.validation == STRICT:
            listed = "\n  ".join(("yaml: unmarshal errors:", *notes))
            prefix = "error strict decoding YAML: error converting YAML to JSON: "
            raise bad_request(prefix + listed)
        self.scope.warnings.extend(warnings_of(notes, self.options.validation))

    def _validated(self, made: Json, notes: list[str], subject: PatchSubject) -> Json:
        """Decode `made`, the result of a patch, with its kind's schema; return the decoded object.

        `notes` are the unknown and duplicate fields that were found in the patch. Error messages
        quote `subject`.
        """
        if isinstance(subject, PatchedObject):
            made = of_its_kind(self.kind, subject)
        made, more = self._decoded(made, subject)
        notes += more
        if notes and self.options.validation == STRICT:
            raise invalid_patch(subject, strict_error(notes))
        self.scope.warnings.extend(warnings_of(notes, self.options.validation))
        return made

    def _decoded_document(self, made: Any, notes: list[str], document: Callable[[], Any]) -> Json:
        """Decode `made`, the result of a patch, with its kind's schema; return the decoded object.

        `document` returns the JSON of the patched object, for quotations in error messages.
        """
        shown = PatchedObject(schema_of_kind(self.kind), made, document)
        if not isinstance(made, dict):
            raise invalid_patch(shown, _NO_OBJECT)
        return self._validated(made, notes, shown)

    def _restored(self, made: Json) -> tuple[Json, list[str]]:
        """Decode the result `made` of a patch; return (decoded object, notes of unknown fields).

        If a value of a built-in object has the wrong type, the numbers in `made` are converted to
        the types of their fields, and `made` is decoded once more, as in upstream. Raises
        TypeMismatchError if a value still has the wrong type.
        """
        try:
            return read_by_type(self.kind, made)
        except TypeMismatchError:
            schema = schema_of_kind(self.kind)
            if schema is None or self.kind.is_custom:
                raise
            # Upstream decodes fields in the order of declaration, and reports the first mismatch.
            return read_by_type(self.kind, restored(schema, as_declared(schema, made)))

    def _decoded(self, made: Json, subject: PatchSubject) -> tuple[Json, list[str]]:
        if isinstance(subject, PatchedObject):
            return self._decoded_text(made, subject)
        try:
            shaped, notes = self._restored(made)
        except TypeMismatchError as cause:
            raise invalid_patch(subject, cause.restoring) from None
        if len(notes) > 1:  # upstream reads members in sorted order
            _, notes = self._restored(_in_order(made))
        return shaped, notes

    def _decoded_text(self, made: Json, shown: PatchedObject) -> tuple[Json, list[str]]:
        """Decode the result `made` of a patch; return (decoded object, notes of unknown fields).

        The notes have the order of the fields in `shown.text()`. Raises ApiError 422 for the first
        error in that order.
        """
        try:
            shaped, notes = read_by_type(self.kind, made)
            if len(notes) > 1:
                _, notes = read_by_type(self.kind, _as_written(made, shown))
        except TypeMismatchError as cause:
            why = str(cause)
            try:
                read_by_type(self.kind, _as_written(made, shown))
            except TypeMismatchError as first:
                why = str(first)
            raise invalid_patch(shown, why) from None
        return shaped, notes


def patcher_of(
    scope: RequestScope, options: WriteOptions, kind: Kind | None = None, subresource: str = ""
) -> Patcher:
    """Return the patcher for the body of a request.

    `kind` is the kind of the object to which the patch is applied, such as Scale. The default is
    the kind of the path. `subresource` is the subresource of the path, or "" for the object itself.
    Raises ApiError 415 if the body's media type is not a patch format for `kind`.
    """
    content_type = scope.request.headers.get("content-type", "")
    media_type = media_type_of(content_type) if content_type else ""
    kind = kind or scope.kind
    if kind.is_custom and media_type == STRATEGIC_PATCH:
        raise unknown_body(CUSTOM_PATCHES)
    if media_type not in (*CUSTOM_PATCHES, STRATEGIC_PATCH):
        raise unknown_patch()
    return Patcher(scope, options, kind, media_type, subresource)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _yaml_problem(cause: YamlError) -> str:
    """Return a YAML syntax error in the words of upstream's YAML library."""
    # upstream: gopkg.in/yaml.v2 decode.go:parser.fail counts lines from 0, and omits line 0
    return f"line {cause.line - 1}: {cause.problem}" if cause.line > 1 else cause.problem


def _undecodable(prefix: str, value: Any, wanted: str) -> ApiError:
    return bad_request(
        f"{prefix}json: cannot unmarshal {json_kind(value)} into Go value of type {wanted}"
    )


def _as_written(made: Json, shown: PatchedObject) -> Json:
    """Return the result `made` of a patch, with its members in the order of error messages."""
    named: Json = {key: made[key] for key in ("apiVersion", "kind") if key in made}
    written: Json = parse_json(shown.text())
    return {**written, **named}


def _in_order(value: Any) -> Any:
    """Return `value` with its members sorted by name."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return list(map(_in_order, value)) if isinstance(value, list) else value


# --- results -------------------------------------------------------------------------------------

# upstream: apiserver/pkg/endpoints/handlers/patch.go:applyPatchToObject, jsonPatcher,
# apimachinery/pkg/runtime/serializer/{json/json.go,versioning/versioning.go}:Decode,
# apiextensions-apiserver/pkg/apiserver/customresource_handler.go:DecoderToVersion

# upstream: apiextensions-apiserver/pkg/crdserverscheme/unstructured.go:ObjectKinds
_VERSIONLESS: Final = "Object 'apiVersion' is missing in 'object has no apiVersion field'"


class PatchedObject(Struct, frozen=True):
    """The result `made` of a patch, in a form that error messages can quote.

    `document` returns the object's JSON, and is called only when an error message quotes the
    object.
    """

    schema: Schema | None
    made: Any
    document: Callable[[], Any]

    def text(self) -> str:
        """Return the object's JSON text for an error message."""
        return document_text(self.schema, self.document())


class PatchBody(Struct, frozen=True):
    """The body of a strategic merge patch, as error messages quote it."""

    sent: Json

    def text(self) -> str:
        """Return the body as text for error messages, in the format in which Go prints a map."""
        return format_v(self.sent)


PatchSubject = PatchedObject | PatchBody


def invalid_patch(subject: PatchSubject, why: str) -> ApiError:
    """Return ApiError 422: the result of a patch is invalid, because of `why`.

    The message quotes `subject`, which is the patched object or the patch itself. As in upstream,
    the message contains "" in place of the object's name.
    """
    cause = Cause("FieldValueInvalid", field_problem.invalid(subject.text(), why), "patch")
    message = f' "" is invalid: {cause}'
    return ApiError("Invalid", 422, message, causes=(cause,), has_details=True)


def of_its_kind(kind: Kind, shown: PatchedObject) -> Json:
    """Return the patched object with the apiVersion and kind of `kind`.

    If the apiVersion or the kind of a built-in object is missing, it is added. For a custom
    resource, raises ApiError 422 if the kind is missing, and ApiError 500 if only the apiVersion is
    missing. For any object, raises ApiError 422 if the apiVersion or the kind is malformed, or
    differs from that of `kind`.
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
    """Return ApiError 422: the patched custom resource states a version other than the request's.

    This is an error even if the server serves the stated version.
    """
    # The patched object is decoded without a conversion to the request's version, so it still has
    # the version that it states. upstream: apimachinery/pkg/runtime/scheme.go:Convert,
    # pkg/registry/customresource/validator.go:ValidateTypeMeta (which also causes `other_kind`)
    why = f'Invalid value: "{api_version}": must be {kind.api_version}'
    group, _, version = api_version.rpartition("/")
    meta = obj.get("metadata")
    name = str(meta.get("name", "")) if isinstance(meta, dict) else ""
    named = replace(kind, group=group, version=version, stored_version="")
    return invalid(named, "", name, (Cause("FieldValueInvalid", why, "apiVersion"),))
