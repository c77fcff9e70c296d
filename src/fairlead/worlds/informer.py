"""Telling: changes of a store as the stimuli that a controller understands."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.codec import DecodeError, decode, decode_stored
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus


def is_told(kind: Kind) -> bool:
    """Whether controllers hear of objects of `kind`; events are told to people alone."""
    # upstream: pkg/controller/garbagecollector/graph_builder.go:DefaultIgnoredResources
    return kind.resource != "events"


def net_changes(changes: Sequence[StoredChange]) -> list[StoredChange]:
    """The last change of each object, in order; none of an object that came and went."""
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


def told(change: StoredChange) -> Stimulus:
    """`change` as a stimulus."""
    view = decode(change.object)
    return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)


def told_if_known(change: StoredChange) -> Stimulus | None:
    """`change` of an object that anybody may have written; None for one that nobody can read."""
    try:
        view = decode_stored(change.object)
    except DecodeError:
        return None
    return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)
