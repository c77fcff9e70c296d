"""Logs the writes of controllers to nodes and pods, in the format of recorded node timelines.

Each changed taint, condition, label or phase of an object is one entry; deletions and events are
separate entries. Equal events and deletions in the same millisecond are logged once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND, parse_timestamp
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import Command, DeleteObject, RecordEvent
from fairlead.engine.core.instant import Instant

EPOCH: Final = parse_timestamp("2030-01-01T00:00:00Z")  # The time of the first monitor pass.


def stamp_ms(text: str) -> int:
    """Return the API timestamp `text` in ms since the first monitor pass."""
    return (parse_timestamp(text) - EPOCH) // NANOSECONDS_PER_MILLISECOND


class NodeWriteLog:
    """The write log; `entries` are in chronological order."""

    def __init__(self) -> None:
        """Start with an empty log."""
        self.entries: list[Json] = []
        self._context: Json | None = None

    def begin(self, command: Command, by: str, now: Instant, store: Store) -> None:
        """Until `end` is called, attribute all observed changes to the controller `by`.

        Also log `command` if it is a RecordEvent, or a DeleteObject of a pod that is in `store`.
        """
        self._context = {"t_ms": (now - EPOCH) // NANOSECONDS_PER_MILLISECOND, "by": by}
        match command:
            case RecordEvent():
                self._add_once(_event(command))
            case DeleteObject(target) if target.kind == "Pod":
                pod = store.find(POD, target.namespace, target.name)
                if pod is not None:
                    self._add_once(_deletion(command, pod))

    def end(self) -> None:
        """Stop logging changes until the next command begins."""
        self._context = None

    def observe(self, change: StoredChange) -> None:
        """Log what `change` modifies in a node or a pod, if a controller caused the change."""
        if self._context is None or change.type is not ChangeType.MODIFIED:
            return
        before = change.previous or {}
        if change.kind is NODE:
            for entry in _node_differences(before, change.object):
                self._add(entry)
        elif change.kind is POD:
            for entry in _pod_differences(before, change.object):
                self._add(entry)

    def _add(self, entry: Json) -> None:
        self.entries.append({**(self._context or {}), **entry})

    def _add_once(self, entry: Json) -> None:
        if self._context is not None and {**self._context, **entry} not in self._of_this_instant():
            self._add(entry)

    def _of_this_instant(self) -> list[Json]:
        now = (self._context or {})["t_ms"]
        same: list[Json] = []
        for entry in reversed(self.entries):
            if entry["t_ms"] != now:
                break
            same.append(entry)
        return same


def _event(event: RecordEvent) -> Json:
    about = event.regarding
    return {
        "kind": "event",
        "object_kind": about.kind,
        "object": about.key,
        "type": event.type,
        "reason": event.reason,
        "message": event.note,
    }


def _deletion(command: DeleteObject, pod: Json) -> Json:
    return {
        "kind": "pod_delete",
        "pod": command.target.key,
        "node": pod["spec"].get("nodeName", ""),
        "grace_seconds": command.grace_period_s,
        "already_terminating": "deletionTimestamp" in pod["metadata"],
    }


def _node_differences(before: Json, after: Json) -> Iterator[Json]:
    name = {"node": after["metadata"]["name"]}
    for entry in _taint_differences(_taints(before), _taints(after)):
        yield name | entry
    old, new = _conditions(before), _conditions(after)
    for kind, condition in new.items():
        if old.get(kind) != condition:
            heartbeat = {"heartbeat_ms": stamp_ms(condition["lastHeartbeatTime"])}
            entry = {"kind": "node_condition", "new": kind not in old}
            yield name | entry | _condition(condition) | heartbeat
    labels = before["metadata"].get("labels", {})
    for key, value in after["metadata"].get("labels", {}).items():
        if labels.get(key) != value:
            yield name | {"kind": "node_label", "key": key, "value": value}


def _taint_differences(old: Json, new: Json) -> Iterator[Json]:
    for key, taint in old.items():
        if key not in new:
            yield {"kind": "taint_remove", **_taint(taint)}
    for key, taint in new.items():
        if old.get(key) != taint:
            kind = "taint_update" if key in old else "taint_add"
            added = {"time_added_ms": stamp_ms(taint["timeAdded"])} if "timeAdded" in taint else {}
            yield {"kind": kind, **_taint(taint), **added}


def _taints(node: Json) -> Json:
    return {f"{t['key']}:{t['effect']}": t for t in node.get("spec", {}).get("taints", ())}


def _taint(taint: Json) -> Json:
    return {"key": taint["key"], "value": taint.get("value", ""), "effect": taint["effect"]}


def _conditions(obj: Json) -> Json:
    return {one["type"]: one for one in obj.get("status", {}).get("conditions", ())}


def _condition(condition: Json) -> Json:
    return {
        "type": condition["type"],
        "status": condition["status"],
        "reason": condition.get("reason", ""),
        "message": condition.get("message", ""),
        "transition_ms": stamp_ms(condition["lastTransitionTime"]),
    }


def _pod_differences(before: Json, after: Json) -> Iterator[Json]:
    meta = after["metadata"]
    name = {
        "pod": f"{meta['namespace']}/{meta['name']}",
        "node": after["spec"].get("nodeName", ""),
    }
    old, new = _conditions(before), _conditions(after)
    for kind, condition in new.items():
        if old.get(kind) != condition:
            yield name | {"kind": "pod_condition"} | _condition(condition)
    phase = after.get("status", {}).get("phase")
    if before.get("status", {}).get("phase") != phase:
        yield name | {"kind": "pod_phase", "phase": phase}
