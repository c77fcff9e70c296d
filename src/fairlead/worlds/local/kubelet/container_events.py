"""ContainerEvents: records the kubelet's events about starting and stopping containers.

Pulling takes no time, so every image counts as already present on the node.

upstream: pkg/kubelet/kuberuntime/kuberuntime_container.go:startContainer, killContainer,
pkg/kubelet/images/image_manager.go:EnsureImageExists
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component

Record = Callable[[RecordEvent, Component, Instant], None]

_KUBELET: Final = "kubelet"
_LISTS: Final = (
    ("initContainerStatuses", "spec.initContainers"),
    ("containerStatuses", "spec.containers"),
    ("ephemeralContainerStatuses", "spec.ephemeralContainers"),
)


class ContainerEvents:
    """Records an event when a container of any pod starts or stops."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def observe(self, change: StoredChange, store: Store, now: Instant) -> None:
        """Record the container events that follow from a change of a pod."""
        if change.kind is not POD or change.type is not ChangeType.MODIFIED:
            return
        pod, meta = change.object, change.object["metadata"]
        events = list(_events(change.previous or {}, pod))
        if not events or _is_silent(store.find(NODE, "", pod["spec"].get("nodeName", ""))):
            return
        subject = ObjectRef("Pod", meta["namespace"], meta["name"], meta["uid"])
        for part, reason, note in events:
            event = RecordEvent(subject, "Normal", reason, "", note, _KUBELET, field_path=part)
            self._record(event, Component.KUBELET, now)


def _events(before: Json, pod: Json) -> Iterator[tuple[str, str, str]]:
    """Yield (field path, reason, note) of each event that follows from the change of a pod."""
    is_stopping = _is_to_go(pod) and not _is_to_go(before)
    old, new = before.get("status", {}), pod.get("status", {})
    is_killed = new.get("reason") in _KILLED and new.get("phase") != old.get("phase")
    is_killed |= old.get("phase") in _ENDED and not _is_to_go(pod)  # a client has ended the pod
    for statuses, containers in _LISTS:
        if new.get(statuses) is old.get(statuses) and not is_stopping:
            continue
        known = {row["name"]: row for row in old.get(statuses) or ()}
        for row in new.get(statuses) or ():
            name, part = row["name"], f"{containers}{{{row['name']}}}"
            if _restarts(row) > _restarts(known.get(name, row)):
                yield part, "Killing", f"Container {name} {_why_restarted(known[name], row)}"
            if _started_at(row) not in ("", _started_at(known.get(name, {}))):
                there = "already present on machine and can be accessed by the pod"
                yield part, "Pulled", f'Container image "{row["image"]}" {there}'
                yield part, "Created", "Container created"
                yield part, "Started", "Container started"
            was_running = "running" in known.get(name, {}).get("state", {})
            is_running = "running" in row["state"]
            if (is_stopping and is_running) or (is_killed and was_running and not is_running):
                yield part, "Killing", f"Stopping container {name}"


# Reasons of pods that their kubelet has stopped without a deletion.
_KILLED: Final = ("DeadlineExceeded", "Evicted", "Preempting")
_ENDED: Final = ("Succeeded", "Failed")


def _is_to_go(pod: Json) -> bool:
    return "deletionTimestamp" in pod.get("metadata", {})


def _started_at(status: Json) -> str:
    """Return the start time of a container that is running or terminated; "" if it is waiting."""
    state = status.get("state", {})
    latest = state.get("running") or state.get("terminated") or {}
    return str(latest.get("startedAt") or "")


def _why_restarted(before: Json, row: Json) -> str:
    # upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodActions,
    # computePodResizeAction
    if before.get("image") == row["image"]:
        return "resize requires restart"
    return "definition changed, will be restarted"


def _restarts(status: Json) -> int:
    return int(status.get("restartCount") or 0)


def _is_silent(node: Json | None) -> bool:
    """Return whether the node is unreachable; its kubelet then reports nothing."""
    conditions = (node or {}).get("status", {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "Unknown" for row in conditions)
