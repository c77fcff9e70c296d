"""Writes: a log of the changes in the scripted cluster, in the form of the recordings."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.engine.core.command import RecordEvent

_RECORDED: Final = ("PodScheduled", "DisruptionTarget")
_NOTE_MAX: Final = 1024
_CUT: Final = " ..."


class Writes(Struct):
    """A log of changes; `entries` are in chronological order.

    A time `t_ms` is in ms since EPOCH of the module `timeline_world`.
    """

    entries: list[Json] = field(default_factory=list)

    def _add(self, t_ms: int, kind: str, **fields: Any) -> None:
        self.entries.append({"t_ms": t_ms, "kind": kind, **fields})

    def bind(self, t_ms: int, pod: str, node: str) -> None:
        """Log that `pod` was bound to `node`."""
        self._add(t_ms, "bind", pod=pod, node=node)

    def bind_error(self, t_ms: int, pod: str, node: str, code: int, message: str) -> None:
        """Log that the API server refused to bind `pod` to `node`."""
        self._add(t_ms, "bind_error", pod=pod, node=node, code=code, message=message)

    def running(self, t_ms: int, pod: str) -> None:
        """Log that the kubelet started `pod`."""
        self._add(t_ms, "running", pod=pod)

    def removed(self, t_ms: int, pod: str) -> None:
        """Log that `pod` was removed from the API."""
        self._add(t_ms, "removed", pod=pod)

    def delete(self, t_ms: int, pod: str, node: str, *, already_terminating: bool) -> None:
        """Log that the scheduler deleted the victim `pod` on `node`.

        `already_terminating` is set if the pod had been deleted before.
        """
        self._add(t_ms, "delete", pod=pod, node=node, already_terminating=already_terminating)

    def delete_error(self, t_ms: int, pod: str, message: str) -> None:
        """Log that the API server refused to delete the victim `pod`."""
        self._add(t_ms, "delete_error", pod=pod, message=message)

    def event(self, t_ms: int, event: RecordEvent) -> None:
        """Log that the scheduler recorded `event`."""
        fields: Json = {
            "object": event.regarding.key,
            "type": event.type,
            "reason": event.reason,
            "action": event.action,
            "note": cut(event.note),
        }
        if event.related is not None:
            fields["related"] = event.related.key
        self._add(t_ms, "event", **fields)

    def pod_changed(self, t_ms: int, before: Json | None, after: Json) -> None:
        """Log what changed between `before` and `after`: the nomination and two conditions.

        The conditions are PodScheduled and DisruptionTarget. Nothing is logged for a new pod, for
        which `before` is None.
        """
        if before is None:
            return
        meta = after["metadata"]
        pod = f"{meta['namespace']}/{meta['name']}"
        was, now = (v["status"].get("nominatedNodeName", "") for v in (before, after))
        if was != now:
            self._add(t_ms, "nominated", pod=pod, node=now)
        known = _conditions(before)
        for name, found in _conditions(after).items():
            if name in _RECORDED and known.get(name) != found:
                status, reason, message = found
                fields = {"status": status, "reason": reason, "message": message}
                self._add(t_ms, "condition", pod=pod, type=name, **fields)


def _conditions(pod: Json) -> dict[str, tuple[str, str, str]]:
    return {
        found["type"]: (found["status"], found.get("reason", ""), found.get("message", ""))
        for found in pod["status"].get("conditions", [])
    }


def cut(note: str) -> str:
    """Return the event note `note`, cut to at most 1,024 characters.

    upstream: pkg/scheduler/schedule_one.go:truncateMessage
    """
    if len(note) <= _NOTE_MAX:
        return note
    return note[: _NOTE_MAX - len(_CUT)] + _CUT
