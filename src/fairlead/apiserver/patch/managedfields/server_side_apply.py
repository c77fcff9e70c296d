"""Server-side apply: merges a configuration and records the fields that the applier owns.

    1. The entries in managedFields are read. If there are none, an entry `before-first-apply` gets
       all fields of the object.
    2. The configuration and the stored object are checked against the schema.
    3. `updater.after_apply` merges, prunes fields that are no longer applied, and finds conflicts.
    4. The applier's entry gets the current time if anything changed.

An additional rule lets the field manager `kubectl` take over objects from client-side `kubectl
apply`. A stored field causes no conflict if it still has the value in the last-applied annotation.
If an object has this annotation, each server-side apply by `kubectl` updates the annotation.

upstream: apimachinery/pkg/util/managedfields/internal/{structuredmerge,lastappliedmanager,
lastappliedupdater,skipnonapplied,conflict}.go,
apiserver/pkg/endpoints/handlers/patch.go:applyPatcher
"""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.error import ApiError, Cause, bad_request
from fairlead.apiserver.patch.managedfields.field_set import (
    EMPTY,
    FieldSet,
    difference,
    paths,
    union,
)
from fairlead.apiserver.patch.managedfields.managed_fields import (
    APPLY,
    STRIPPED_FIELDS,
    UPDATE,
    ManagedFields,
    ManagedFieldsEntry,
    ManagerIdentifier,
    TrackedResource,
    UnknownVersionError,
    entries_after_update,
    entries_of,
    find_applier,
    with_managed_fields,
    with_present_schemas,
    without_managed_fields,
)
from fairlead.apiserver.patch.managedfields.path_element import ItemKeyError
from fairlead.apiserver.patch.managedfields.typed import compare, field_set
from fairlead.apiserver.patch.managedfields.typed_validation import validation_errors
from fairlead.apiserver.patch.managedfields.updater import OwnershipConflictError, after_apply
from fairlead.apiserver.schema.decoder import empty
from fairlead.apiserver.schema.gojson.json_text import parse_json

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
_BEFORE_APPLY_MANAGER_NAME: Final = "before-first-apply"
_PATCH_OBJECT: Final = "failed to create typed patch object ({})"
_LIVE_OBJECT: Final = "failed to create typed live object ({})"
_NEW_OBJECT: Final = (
    "failed to create manager for existing fields: failed to convert new object ({}) to smd typed"
)


class ApplyRequest(Struct, frozen=True, kw_only=True):
    """An apply patch: the configuration that `manager` sent to a resource or its `subresource`."""

    config: Json
    manager: str
    force: bool
    subresource: str = ""


def server_side_apply(
    resource: TrackedResource, live: Json | None, request: ApplyRequest, timestamp: str
) -> Json:
    """Return the object after an apply to `live`, with its managedFields.

    `live` is None if there is no such object. Defaults are not filled in. Raises ApiError:

    - 400 if the configuration contains managedFields
    - 409 for conflicts
    - 500 if an object does not match its schema, or if the API version of a managedFields entry is
      unknown
    """
    config = request.config
    entries = entries_of(live)
    bare = without_managed_fields(live) if live else {}
    if live and not entries:
        _require_type(resource, bare, _NEW_OBJECT, may_repeat=True)
        entries = _entries_before_first_apply(resource, bare, request, timestamp)
    if "managedFields" in _metadata(config):
        raise bad_request("metadata.managedFields must be nil")
    _require_type(resource, config, _PATCH_OBJECT, may_repeat=False)
    if live:
        # A definition may have changed since its objects were stored.
        _require_type(resource, bare, _LIVE_OBJECT, may_repeat=True)
    try:
        managed = with_present_schemas(resource, entries)
    except UnknownVersionError as cause:
        raise ApiError("", 500, str(cause)) from None
    new, managed = _apply_or_conflict(resource, bare, managed, request, timestamp)
    if request.manager == KUBECTL:
        new = _with_last_applied(new, config)
    return with_managed_fields(new, managed)


def _require_type(resource: TrackedResource, obj: Json, failed: str, *, may_repeat: bool) -> None:
    wrong = validation_errors(resource.schema, obj, may_repeat=may_repeat)
    if wrong:
        raise ApiError("", 500, f"{failed.format(object_name(obj))}: {wrong}")


def _metadata(config: Json) -> Json:
    meta = config.get("metadata")
    return meta if isinstance(meta, dict) else {}


def object_name(obj: Json) -> str:
    """Return how error messages name `obj`: `namespace/name; group/version, Kind=…`."""
    # upstream: structuredmerge.go:objectGVKNN
    meta = _metadata(obj)
    namespace, name = (_string_or_empty(meta.get(key)) for key in ("namespace", "name"))
    return f"{namespace}/{name}; {type_name(obj)}"


def type_name(obj: Json) -> str:
    """Return the text `group/version, Kind=…`. For the core group, the group is empty (`/v1`)."""
    api_version = obj["apiVersion"]
    return f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={obj['kind']}"


def _string_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _apply_or_conflict(
    resource: TrackedResource,
    live: Json,
    managed: ManagedFields,
    request: ApplyRequest,
    timestamp: str,
) -> tuple[Json, ManagedFields]:
    """Apply `request` to `live`; return (new object, new managedFields entries).

    Raises ApiError 409 for conflicts, and 500 if a list item has no usable key. If the field
    manager is kubectl, a field that still has kubectl's last-applied value causes no conflict.
    """
    try:
        return _apply(resource, live, managed, request, timestamp)
    except ItemKeyError as cause:
        raise ApiError("", 500, f"failed to compare objects: {cause}") from None
    except OwnershipConflictError as cause:
        conflicts: dict[ManagerIdentifier, FieldSet] = cause.conflicts
        if request.manager == KUBECTL:
            waived = _unchanged_since_last_applied(resource, live)
            rest = {one: difference(fields, waived) for one, fields in conflicts.items()}
            conflicts = {one: fields for one, fields in rest.items() if fields}
        if conflicts:
            raise _conflict(conflicts) from None
    return _apply(resource, live, managed, replace(request, force=True), timestamp)


def _apply(
    resource: TrackedResource,
    live: Json,
    managed: ManagedFields,
    request: ApplyRequest,
    timestamp: str,
) -> tuple[Json, ManagedFields]:
    config = request.config
    owner = _applier_identifier(managed, request)
    owners = {one: entry.fields for one, entry in managed.items()}
    new, kept = after_apply(
        resource.version,
        live or empty(resource.schema),
        config,
        owners,
        manager=owner,
        force=request.force,
        other_versions=resource.versions_of(managed),
    )
    own = difference(kept.pop(owner, EMPTY), STRIPPED_FIELDS)
    made = {one: replace(managed[one], fields=fields) for one, fields in kept.items()}
    before = managed.get(owner)
    if own:
        # An apply that changes nothing keeps its timestamp, so that nothing is written.
        since = timestamp if new is not None else (before.time if before else "")
        # The entry moves to the version of this apply, because an applier has one entry.
        current = replace(owner, api_version=config["apiVersion"])
        made[current] = ManagedFieldsEntry(own, since)
    return (live if new is None else new), made


def _applier_identifier(managed: ManagedFields, request: ApplyRequest) -> ManagerIdentifier:
    """Return the identifier of the applier's entry; a new identifier if there is no entry.

    The identifier of an existing entry contains the API version of the applier's last apply.
    """
    known = find_applier(managed, request.manager, request.subresource)
    if known is not None:
        return known
    version = request.config["apiVersion"]
    return ManagerIdentifier(request.manager, APPLY, version, request.subresource)


def _entries_before_first_apply(
    resource: TrackedResource, live: Json, request: ApplyRequest, timestamp: str
) -> ManagedFields:
    """Return one entry that owns all fields of `live`, an object without managedFields."""
    owner = ManagerIdentifier(
        _BEFORE_APPLY_MANAGER_NAME, UPDATE, request.config["apiVersion"], request.subresource
    )
    return entries_after_update(resource, empty(resource.schema), live, {}, owner, timestamp)


def _conflict(conflicts: dict[ManagerIdentifier, FieldSet]) -> ApiError:
    """Return ApiError 409 that lists the conflicting fields of each manager.

    The managers are sorted by identifier.
    """
    owners = sorted(conflicts, key=lambda owner: owner.sort_key)
    by_manager = {_manager_text(owner): list(paths(conflicts[owner])) for owner in owners}
    causes = tuple(
        Cause("FieldManagerConflict", f"conflict with {who}", path)
        for who, fields in by_manager.items()
        for path in fields
    )
    if len(causes) == 1:
        message = f"{causes[0].message}: {causes[0].field}"
        return _conflict_error(f"Apply failed with 1 conflict: {message}", causes)
    lines = [f"Apply failed with {len(causes)} conflicts: "]
    for who, fields in by_manager.items():
        lines += [f"conflicts with {who}:\n", *(f"- {path}\n" for path in fields)]
    return _conflict_error("".join(lines).rstrip("\n"), causes)


def _conflict_error(message: str, causes: tuple[Cause, ...]) -> ApiError:
    return ApiError("Conflict", 409, message, causes=causes)


def _manager_text(owner: ManagerIdentifier) -> str:
    # upstream: conflict.go:printManager
    through = f" with subresource {quoted(owner.subresource)}" if owner.subresource else ""
    version = "" if owner.operation == APPLY else f" using {owner.api_version}"
    return f"{quoted(owner.manager)}{through}{version}"


def _unchanged_since_last_applied(resource: TrackedResource, live: Json) -> FieldSet:
    """Return the fields in kubectl's last-applied annotation that have the same value in `live`."""
    try:
        last = parse_json(live["metadata"]["annotations"][LAST_APPLIED])
    except (KeyError, ValueError):
        return EMPTY
    if not isinstance(last, dict) or validation_errors(resource.schema, last):
        return EMPTY
    changes = compare(resource.schema, last, live)
    differing = union(union(changes.modified, changes.added), changes.removed)
    return difference(field_set(resource.schema, last), differing)


def _with_last_applied(obj: Json, config: Json) -> Json:
    """Return `obj` with the last-applied annotation set to `config`.

    If `obj` has no such annotation, return `obj` unchanged.
    """
    meta = obj.get("metadata") or {}
    if LAST_APPLIED not in (meta.get("annotations") or {}):
        return obj
    text = json.dumps(_without_last_applied(config), sort_keys=True, separators=(",", ":")) + "\n"
    annotations = {**meta["annotations"], LAST_APPLIED: text}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def _without_last_applied(config: Json) -> Json:
    meta = config.get("metadata") or {}
    annotations = dict(meta.get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    rest = {key: value for key, value in meta.items() if key != "annotations"}
    if annotations:
        rest["annotations"] = annotations
    return {**config, "metadata": rest}
