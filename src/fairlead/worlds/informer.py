"""Translates changes of a store into the stimuli that controllers receive."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.api.codec import DecodeError, decode, decode_stored
from fairlead.api.objects import ApiObject
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus


def is_watched(kind: Kind) -> bool:
    """Return whether controllers receive objects of `kind`; they receive all kinds except Event."""
    return is_watched_resource(kind.resource)


def is_watched_resource(resource: str) -> bool:
    """Return whether controllers receive the objects of `resource`; see `is_watched`."""
    # upstream: pkg/controller/garbagecollector/graph_builder.go:DefaultIgnoredResources
    return resource != "events"


def net_changes(changes: Sequence[StoredChange]) -> list[StoredChange]:
    """Return the last change of each object, ordered by the time of that change.

    Objects that were added and deleted again in `changes` are left out.
    """
    if len(changes) == 1:
        return list(changes)
    last: dict[tuple[str, str], StoredChange] = {}
    fresh: set[tuple[str, str]] = set()
    for change in changes:
        identity = (change.kind.resource, change.object["metadata"]["uid"])
        last.pop(identity, None)
        if change.type is ChangeType.ADDED:
            fresh.add(identity)
        if change.type is not ChangeType.DELETED or identity not in fresh:
            last[identity] = change
    return list(last.values())


def decoded(change: StoredChange) -> ApiObject:
    """Return the typed view of the object in `change`. Raises DecodeError."""
    obj = change.object
    return decode_stored(obj) if b"null" in change.text else decode(obj)


def stimulus_if_decodable(
    change: StoredChange, view_of: Callable[[StoredChange], ApiObject] = decoded
) -> Stimulus | None:
    """Return the stimulus that reports `change`; None if `view_of` cannot decode the object."""
    try:
        view = view_of(change)
    except DecodeError:
        return None
    return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)
