"""Applies a manifest to an existing object as `kubectl apply` does.

    original    the manifest of the last apply, from the annotation last-applied-configuration
    modified    the new manifest, which may contain only a part of the object
    current     the existing object

Fields that are in `original` but not in `modified` are removed from `current`. Then `modified` is
merged into `current` by the strategic merge rules. Lists of objects are merged by their merge key,
and null removes a field. If a volume or the strategy of a Deployment changes, it keeps only the
fields that it has in `modified` ($retainKeys). The status stays as it is. If the existing
object lacks the annotation, `original` is unknown, so only null and $retainKeys remove fields.
Custom resources have no merge keys, so their lists are replaced.

    original  containers: [{name: app, image: a:1}, {name: log, image: l:1}]
    modified  containers: [{name: app, image: a:2}]
    current   containers: [{name: app, image: a:1, tty: true}, {name: log, image: l:1}]
    result    containers: [{name: app, image: a:2, tty: true}]

If `--server-side` is set, the API server merges the objects. A change to a field that another
manager owns is a conflict. The managedFields of the existing object name the owners. A dump of
`kubectl get` without `--show-managed-fields` has no managedFields, so nothing can conflict.

upstream: staging/src/k8s.io/kubectl/pkg/cmd/apply/patcher.go:patchSimple,
apimachinery/pkg/util/strategicpatch/patch.go:CreateThreeWayMergePatch
"""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.endpoints.field_manager import tracking_of
from fairlead.apiserver.endpoints.request.typed_object import schema_of_kind
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.managedfields.server_side_apply import (
    KUBECTL,
    LAST_APPLIED,
    ApplyRequest,
    server_side_apply,
)
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.patch.strategicpatch.directive import MERGE, RETAIN_KEYS
from fairlead.apiserver.patch.strategicpatch.merge import apply_strategic_merge
from fairlead.apiserver.schema.model import Schema, Type
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.manifest import Manifest

CONFLICT: Final = 409
_RETAINS_KEYS: Final = "retainKeys"
_SERVER_FIELDS: Final = ("creationTimestamp", "generation", "resourceVersion", "uid")


def applied(existing: Manifest, modified: Json) -> Json:
    """Return `existing` after `kubectl apply` of `modified`; null in `modified` removes a field.

    Raises InputError if the two objects cannot be merged.
    """
    current = copy.deepcopy(existing.value)
    schema = None if existing.kind.is_custom else schema_of_kind(existing.kind)
    original = _last_applied(current)
    if original is not None:
        _remove_dropped(schema, current, original, modified)
    patch = copy.deepcopy(_without_status(existing, modified))
    for name in _SERVER_FIELDS:
        patch.get("metadata", {}).pop(name, None)
    if schema is None:
        result: Json = merge_patch(current, patch)
    else:
        try:
            _retain_keys(schema, current, patch)
            result = apply_strategic_merge(schema, current, patch)
        except ApiError as refused:
            raise existing.refuse(refused.message) from None
    if original is not None:
        annotations = result["metadata"].setdefault("annotations", {})
        annotations[LAST_APPLIED] = json.dumps(modified, separators=(",", ":"), sort_keys=True)
    return result


def applied_by_server(
    existing: Manifest, modified: Json, now: Instant, *, forces_conflicts: bool
) -> Json:
    """Return `existing` after `kubectl apply --server-side` of `modified` at `now`.

    Nothing conflicts if `existing` has no managedFields. If the kind of `existing` has no schema
    (`tracking_of`), the function `applied` computes the result. Raises InputError with the API
    server's message if fields conflict.
    """
    tracking = tracking_of(existing.kind, "")
    if tracking is None:
        return applied(existing, modified)
    managed = existing.managed_fields
    live = copy.deepcopy(existing.value)
    live["metadata"]["managedFields"] = list(managed)
    force = forces_conflicts or not managed
    config = _without_status(existing, modified)
    request = ApplyRequest(config=config, manager=KUBECTL, force=force)
    try:
        result = server_side_apply(tracking, live, request, format_timestamp(now))
    except ApiError as refused:
        hint = "; --force-conflicts overrides it" if refused.code == CONFLICT else ""
        raise existing.refuse(f"{refused.message}{hint}") from None
    result["metadata"].pop("managedFields", None)
    return result


def _without_status(existing: Manifest, modified: Json) -> Json:
    """Return `modified`; for a built-in kind, remove the status, which no update can change."""
    # upstream: pkg/registry/core/node/strategy.go: nodeStrategy.PrepareForUpdate, and others
    if existing.kind.is_custom:
        return modified
    return {name: value for name, value in modified.items() if name != "status"}


def merge_patch_between(before: Json, after: Json) -> Json:
    """Return the RFC 7386 merge patch that turns `before` into `after`."""
    patch: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := merge_patch_between(old, value):
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch


def _last_applied(current: Json) -> Json | None:
    """Return the manifest of the last `kubectl apply`; None if no annotation contains it."""
    annotations = current["metadata"].get("annotations", {})
    try:
        found = msgspec.json.decode(annotations.get(LAST_APPLIED, "null"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _remove_dropped(schema: Schema | None, current: Any, original: Json, modified: Json) -> None:
    """Remove the fields from `current` that are in `original` but not in `modified`."""
    for name, was in original.items():
        if name not in current or name in ("apiVersion", "kind", "status"):
            continue
        if name not in modified:
            del current[name]
        elif isinstance(was, dict) and isinstance(modified[name], dict):
            if isinstance(current[name], dict):
                _remove_dropped(_member(schema, name), current[name], was, modified[name])
        elif isinstance(was, list) and isinstance(modified[name], list):
            current[name] = _without_dropped(schema, name, current[name], was, modified[name])


def _retain_keys(schema: Schema | None, current: Json, patch: Json) -> None:
    """Add $retainKeys to the changed objects in `patch` that have the patch strategy retainKeys.

    The merge removes those fields of such an object that the patch does not contain. For example, a
    volume has only one source, so a new source replaces the old one.
    """
    # upstream: apimachinery/pkg/util/strategicpatch/patch.go:diffMaps, diffListsOfMaps
    for name, value in patch.items():
        field = None if schema is None else schema.fields.get(name)
        if field is None:
            continue
        retains, before = _RETAINS_KEYS in field.strategies, current.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            _retain_keys_of(field.schema, before, value, retains=retains)
        elif isinstance(value, list) and isinstance(before, list) and field.merge_key:
            known = _by_key(before, field.merge_key)
            for key, item in _by_key(value, field.merge_key).items():
                if key in known:
                    _retain_keys_of(field.schema.items, known[key], item, retains=retains)


def _retain_keys_of(schema: Schema | None, before: Json, part: Json, *, retains: bool) -> None:
    keys = sorted(part)
    _retain_keys(schema, before, part)
    if retains and any(key not in before or before[key] != part[key] for key in keys):
        part[RETAIN_KEYS] = keys


def _member(schema: Schema | None, name: str) -> Schema | None:
    if schema is None:
        return None
    field = schema.fields.get(name)
    return None if field is None or schema.type is Type.MAP else field.schema


def _without_dropped(
    schema: Schema | None, name: str, current: Any, original: list[Any], modified: list[Any]
) -> Any:
    """Return the list `current` without the items that are in `original` but not in `modified`.

    An atomic list is returned unchanged.
    """
    field = None if schema is None else schema.fields.get(name)
    if field is None or MERGE not in field.strategies or not isinstance(current, list):
        return current
    key = field.merge_key
    if not key:
        dropped = [item for item in original if item not in modified]
        return [item for item in current if item not in dropped]
    old, new = _by_key(original, key), _by_key(modified, key)
    kept = [item for item in current if item.get(key) in new or item.get(key) not in old]
    for item in kept:
        if item.get(key) in old and item.get(key) in new:
            items = field.schema.items
            _remove_dropped(items, item, old[item[key]], new[item[key]])
    return kept


def _by_key(items: list[Any], key: str) -> dict[Any, Json]:
    return {item[key]: item for item in items if isinstance(item, dict) and key in item}
