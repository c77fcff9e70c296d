"""Patching: what an object becomes by the patch in a body, by its media type.

    json-patch            operations, in order
    merge-patch           members, null for none
    strategic-merge-patch members, lists merged as the kind's schema says; not for custom resources
    apply-patch           what one manager wants, with the fields that it owns

What comes out is read by the kind's schema again, so that a patch cannot smuggle in what a PUT
could not.

upstream: apiserver/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.text.yaml_documents import YamlError
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.conversion.kind_conversion import shown, stored
from fairlead.apiserver.endpoints.field_manager import tracking_of
from fairlead.apiserver.endpoints.handlers.patch_error import (
    PatchBody,
    PatchedObject,
    PatchSubject,
    invalid_patch,
)
from fairlead.apiserver.endpoints.handlers.patched_kind import of_its_kind
from fairlead.apiserver.endpoints.request.body import media_type_of, parsed_yaml
from fairlead.apiserver.endpoints.request.json_number import as_held
from fairlead.apiserver.endpoints.request.options import WriteOptions
from fairlead.apiserver.endpoints.request.typed_object import (
    IGNORE,
    STRICT,
    read_by_type,
    repeated,
    schema_of_kind,
    strict_error,
    told,
)
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import APPLY_PATCH
from fairlead.apiserver.negotiation.request_error import unknown_body, unknown_patch
from fairlead.apiserver.patch.jsonpatch.apply import json_of_document, patched_document
from fairlead.apiserver.patch.jsonpatch.operation import operations_of
from fairlead.apiserver.patch.jsonpatch.patched_document import merged_part
from fairlead.apiserver.patch.managedfields.server_side_apply import (
    ApplyRequest,
    object_name,
    server_side_apply,
    type_name,
)
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.patch.strategicpatch.merge import apply_strategic_merge
from fairlead.apiserver.schema.declared import as_declared
from fairlead.apiserver.schema.json_text import JsonError, json_kind, parse_json
from fairlead.apiserver.schema.restoring import restored
from fairlead.apiserver.schema.single import TypeMismatchError

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")  # 64 bits may not hold it
_GO_MAP: Final = "map[string]interface {}"
_NO_OBJECT: Final = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
    'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
CUSTOM_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


@dataclass(frozen=True, slots=True)
class Patcher:
    """A patch as it was sent, to an object of `kind` or to the view of one that a part is."""

    scope: RequestScope
    options: WriteOptions
    kind: Kind
    media_type: str
    subresource: str = ""

    @property
    def is_apply(self) -> bool:
        """Whether it says what shall be, rather than what shall change."""
        return self.media_type == APPLY_PATCH

    @property
    def operation(self) -> str:
        """As managedFields call it."""
        return "Apply" if self.is_apply else "Update"

    def patched(self, old: Json) -> Json:
        """What becomes of `old`, as it is stored. Raises ApiError: 400, 409, 413, 422, 500."""
        return stored(self.kind, self._changed(shown(self.kind, old)))

    def created(self) -> Json:
        """What an apply makes of nothing, as it is stored. Raises ApiError."""
        return stored(self.kind, self._applied(None))

    def _changed(self, old: Json) -> Json:
        match self.media_type:
            case _ if self.is_apply:
                return self._applied(old)
            case "application/json-patch+json":
                return self._by_operations(old)
            case "application/merge-patch+json":
                return self._merged(old)
            case _:
                return self._strategically(old)

    def _applied(self, old: Json | None) -> Json:
        """What becomes of `old`, or of nothing, by what its manager wants."""
        config = self._configuration()
        tracking = tracking_of(self.kind, self.subresource)
        if tracking is None:
            raise unknown_patch()
        application = ApplyRequest(
            config=config,
            manager=self.options.manager,
            force=bool(self.options.force),
            subresource=self.subresource,
        )
        timestamp = format_timestamp(self.scope.now)
        made = server_side_apply(tracking, old, application, timestamp)
        return self._made_of(config, made)

    def _made_of(self, config: Json, applied: Json) -> Json:
        """What was applied, as its kind has it."""
        try:
            made, _ = self._restored(applied)  # and nobody is told what is dropped
        except TypeMismatchError as cause:
            why = cause.restoring
            if not self.kind.is_custom:
                why = f"unable to convert unstructured object to {type_name(config)}: {why}"
            said = f"failed to convert new object ({object_name(config)}) to proper version: "
            raise ApiError("", 500, said + why) from None
        return made

    def _by_operations(self, old: Json) -> Json:
        is_typed = self.options.validation != IGNORE
        operations, notes = operations_of(self.scope.request.body, is_typed=is_typed)
        document = patched_document(old, operations)
        return self._read_again(json_of_document(document), notes, lambda: document)

    def _merged(self, old: Json) -> Json:
        try:
            patch = self._parsed("error decoding patch: ")
        except ApiError:
            if self.options.validation != IGNORE:
                raise
            patch = None
        if isinstance(patch, dict):
            made, notes = merge_patch(old, patch), list(repeated(patch))
            return self._read_again(made, notes, lambda: self._merged_document(old))
        if patch is not None and self.options.validation != IGNORE:
            raise _undecodable("error decoding patch: ", patch, _GO_MAP)
        if not isinstance(patch, list):
            raise bad_request("Invalid JSON Patch")
        return self._read_again(merge_patch(None, patch), [], lambda: self._merged_document(None))

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
            patch = as_held(patch)
        made = apply_strategic_merge(schema, old, patch)
        # What an object is cannot be patched this way, and nobody is told.
        named = {"kind": self.kind.kind, "apiVersion": self.kind.api_version}
        known = {key: text for key, text in named.items() if _is_text(made.get(key))}
        made = {**made, **known}
        return self._shaped(made, notes, PatchBody(patch))

    def _parsed(self, said: str) -> Any:
        try:
            return parse_json(self.scope.request.body)
        except JsonError as cause:
            raise bad_request(f"{said}{cause}") from None

    def _configuration(self) -> Json:
        try:
            config, repeats = parsed_yaml(self.scope.request.body)
        except YamlError as cause:
            said = "error decoding YAML: error converting YAML to JSON: yaml: "
            raise bad_request(f"{said}{_yaml_problem(cause)}") from None
        if config is None:
            config = {}
        if not isinstance(config, dict):
            said = "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            raise _undecodable(said, config, _GO_MAP)
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
            said = "error strict decoding YAML: error converting YAML to JSON: "
            raise bad_request(said + listed)
        self.scope.warnings.extend(told(notes, self.options.validation))

    def _shaped(self, made: Json, notes: list[str], told_of: PatchSubject) -> Json:
        """`made` as its kind has it; `told_of` is what a refusal shows."""
        if isinstance(told_of, PatchedObject):
            made = of_its_kind(self.kind, told_of)
        made, more = self._decoded(made, told_of)
        notes += more
        if notes and self.options.validation == STRICT:
            raise invalid_patch(told_of, strict_error(notes))
        self.scope.warnings.extend(told(notes, self.options.validation))
        return made

    def _read_again(self, made: Any, notes: list[str], document: Callable[[], Any]) -> Json:
        """What a patch of an object's text has made, which `document` is."""
        shown = PatchedObject(schema_of_kind(self.kind), made, document)
        if not isinstance(made, dict):
            raise invalid_patch(shown, _NO_OBJECT)
        return self._shaped(made, notes, shown)

    def _restored(self, made: Json) -> tuple[Json, list[str]]:
        """`made`, which upstream does not read again. Raises TypeMismatchError."""
        try:
            return read_by_type(self.kind, made)
        except TypeMismatchError:
            schema = schema_of_kind(self.kind)
            if schema is None or self.kind.is_custom:
                raise
            # Of several that are wrong the first as declared is told.
            return read_by_type(self.kind, restored(schema, as_declared(schema, made)))

    def _decoded(self, made: Json, told_of: PatchSubject) -> tuple[Json, list[str]]:
        if isinstance(told_of, PatchedObject):
            return self._decoded_text(made, told_of)
        try:
            shaped, notes = self._restored(made)
        except TypeMismatchError as cause:
            raise invalid_patch(told_of, cause.restoring) from None
        if len(notes) > 1:  # upstream looks at members in order
            _, notes = self._restored(_in_order(made))
        return shaped, notes

    def _decoded_text(self, made: Json, shown: PatchedObject) -> tuple[Json, list[str]]:
        """`made`, which upstream reads from its text: what is wrong there first is told."""
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
    """The patch in a body, for the call's kind unless another is meant.

    Raises ApiError 415 for a media type that is none.
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
    """What is wrong with a YAML text, in the words of upstream's library."""
    # upstream: gopkg.in/yaml.v2 yaml.go:parser.fail counts lines from 0, and tells no first one
    return f"line {cause.line - 1}: {cause.problem}" if cause.line > 1 else cause.problem


def _undecodable(said: str, value: Any, wanted: str) -> ApiError:
    return bad_request(
        f"{said}json: cannot unmarshal {json_kind(value)} into Go value of type {wanted}"
    )


def _as_written(made: Json, shown: PatchedObject) -> Json:
    """`made` with all members where they stand in its text."""
    named: Json = {key: made[key] for key in ("apiVersion", "kind") if key in made}
    written: Json = parse_json(shown.text())
    return {**written, **named}


def _in_order(value: Any) -> Any:
    """`value` with the members of its objects in order."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return list(map(_in_order, value)) if isinstance(value, list) else value
