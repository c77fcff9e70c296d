"""Telling: changes of a store as the stimuli that a controller understands."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.codec import DecodeError, decode, without_nulls
from fairlead.apiserver.storage import Change, ChangeType, Json
from fairlead.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus


def net_changes(changes: Sequence[Change]) -> list[Change]:
    """The last change of each object, in order; none of an object that came and went."""
    if len(changes) == 1:
        return list(changes)
    last: dict[tuple[str, str], Change] = {}
    fresh: set[tuple[str, str]] = set()
    for change in changes:
        identity = (change.kind.resource, change.object["metadata"]["uid"])
        last.pop(identity, None)
        if change.type is ChangeType.ADDED:
            fresh.add(identity)
        if change.type is not ChangeType.DELETED or identity not in fresh:
            last[identity] = change
    return list(last.values())


def told(change: Change) -> Stimulus:
    """`change` as a stimulus."""
    view = decode(change.object)
    return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)


def told_if_known(change: Change) -> Stimulus | None:
    """`change` of an object that anybody may have written; None for one that nobody can read."""
    try:
        view = decode(without_nulls(_unsigned(change.object)))
    except DecodeError:
        return None
    return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)


def _unsigned(obj: Json) -> Json:
    """`obj` without who wrote what of it: no controller asks, and it is long."""
    meta = obj["metadata"]
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: meta[key] for key in meta if key != "managedFields"}}
