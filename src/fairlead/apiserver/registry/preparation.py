"""Sets the server-owned fields of an object that is created or updated.

If a kind has the subresource `status`, only writes to this subresource change the status. A new
object of such a kind loses the status that the client sent. The strategy of a kind can make
exceptions.

upstream: apiserver/pkg/registry/rest/{create,update}.go:BeforeCreate, BeforeUpdate
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import (
    FieldPath,
    MirroredField,
    PreparationContext,
    ResourceStrategy,
)

_SERVERS_METADATA: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
_NOT_OF_NEW: Final = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "selfLink",
)


def prepared_for_create(
    kind: Kind,
    strategy: ResourceStrategy,
    obj: Json,
    *,
    uid: str,
    timestamp: str,
    zero_status: Json | None = None,
) -> Json:
    """Return `obj` with the metadata and status of a new object.

    `uid` is the object's new uid, and `timestamp` is the time of creation. If the strategy sets the
    initial status, the object gets this status. Otherwise, the object keeps the client's status if
    the kind has no status subresource, or if the strategy accepts the client's status. In all other
    cases, the object gets `zero_status`, or no status if `zero_status` is None.
    """
    meta = {key: value for key, value in obj["metadata"].items() if key not in _NOT_OF_NEW}
    meta |= {"uid": uid, "creationTimestamp": timestamp}
    if kind.has_generation:
        meta["generation"] = 1
    prepared = {**obj, "metadata": meta}
    if strategy.initial_status is not None:
        prepared["status"] = strategy.initial_status(obj, timestamp)
    elif kind.has_status and not strategy.accepts_status_on_create:
        prepared.pop("status", None)
        if zero_status is not None:
            prepared["status"] = zero_status
    return prepared


def prepared_for_update(kind: Kind, strategy: ResourceStrategy, old: Json, new: Json) -> Json:
    """Return `new` with the server-owned metadata and the status of `old`.

    The generation is incremented if the strategy requires this. If `kind` has no status
    subresource, or if the strategy has `updates_status`, the status of `new` is kept instead.
    """
    before = old["metadata"]
    ignored = (*_SERVERS_METADATA, "selfLink")
    meta = {key: value for key, value in new["metadata"].items() if key not in ignored}
    meta |= {key: before[key] for key in _SERVERS_METADATA if key in before}
    meta["resourceVersion"] = before["resourceVersion"]
    prepared = {**new, "metadata": meta}
    if kind.has_status and not strategy.updates_status:
        prepared.pop("status", None)
        if "status" in old:
            prepared["status"] = old["status"]
    counts = kind.has_generation or strategy.has_generation_once_changed
    if counts and strategy.increments_generation(old, prepared):
        meta["generation"] = before.get("generation", 0) + 1
    return prepared


def prepared_for_status_update(strategy: ResourceStrategy, old: Json, new: Json) -> Json:
    """Return `old` with the status of `new`, and with the metadata that a status write may set.

    The strategy's `metadata_with_status` lists the fields of the metadata that come from `new`.
    The fields in the strategy's `server_status` keep the values that they have in `old`.
    """
    before, after = old["metadata"], new["metadata"]
    written = strategy.metadata_with_status
    meta = {key: value for key, value in before.items() if key not in written}
    meta |= {key: after[key] for key in written if key in after}
    prepared = {key: value for key, value in old.items() if key != "status"}
    if "status" in new:
        prepared["status"] = new["status"]
    had = old.get("status", {})
    server_status = {key: had[key] for key in strategy.server_status if had.get(key)}
    if server_status:
        prepared["status"] = {**prepared.get("status", {}), **server_status}
    return {**prepared, "metadata": meta}


def with_spec(old: Json, spec: Json) -> Json:
    """Return `old` with the new `spec`; if this changes the spec, increment the generation."""
    if spec == old.get("spec"):
        return old
    meta = {**old["metadata"], "generation": old["metadata"].get("generation", 0) + 1}
    return {**old, "metadata": meta, "spec": spec}


def created_by(strategy: ResourceStrategy, obj: Json, context: PreparationContext) -> Json:
    """Return the new object `obj` with the fields that its strategy sets.

    Raises ApiError if the strategy refuses the object.
    """
    if strategy.prepare_for_create is not None:
        obj = strategy.prepare_for_create(obj, context)
    return with_null_lists(strategy.null_when_empty, obj)


def updated_by(
    strategy: ResourceStrategy, old: Json, new: Json, context: PreparationContext
) -> Json:
    """Return `new`, an update of `old`, with the fields that `strategy` sets or restores.

    Raises ApiError if the strategy refuses the update.
    """
    if strategy.prepare_for_update is not None:
        new = strategy.prepare_for_update(old, new, context)
    return with_null_lists(strategy.null_when_empty, new)


def with_null_lists(paths: tuple[FieldPath, ...], obj: Json) -> Json:
    """Return `obj` with each empty list at `paths` replaced by null.

    Upstream's storage returns null for these lists.
    """
    for path in paths:
        obj = _with_null_list(obj, path)
    return obj


def _with_null_list(obj: Json, path: FieldPath) -> Json:
    key, rest = path[0], path[1:]
    value = obj.get(key)
    if not rest:
        return {**obj, key: None} if value == [] else obj
    if not value:
        return obj
    made = _with_null_list(value, rest)
    return obj if made is value else {**obj, key: made}


def with_mirrored_field(mirrored: MirroredField | None, obj: Json) -> Json:
    """Return `obj` with the same value in a single field and in the first item of a list.

    `mirrored` describes the field and the list; if it is None, `obj` is returned unchanged. If only
    the field or only the list has a value, the value is copied to the other place. If the field
    differs from the first item, the list is replaced by a list that contains only the field's
    value.
    """
    if mirrored is None:
        return obj
    part, key = mirrored.part, mirrored.key
    had = obj.get(part, {})
    listed = had.get(mirrored.listed) or []
    head = (listed[0].get(key) if key else listed[0]) if listed else None
    first = had.get(mirrored.single) or head
    if not first or had.get(mirrored.single) == head:
        return obj
    if first != head:
        listed = [{key: first} if key else first]
    return {**obj, part: {**had, mirrored.single: first, mirrored.listed: listed}}
