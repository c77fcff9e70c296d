"""PodStatusWrites: status writes that change a pod's view now and the pod's JSON value later.

These writes change only conditions, container statuses, the phase and the start time. The new view
is made from the previous view (see `ViewedObjects`). The store performs all other writes. The store
also performs writes that could fail or could change nothing, and writes that set the heartbeat time
of a condition, which views do not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod, PodCondition, PodStatus
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.kind import POD
from fairlead.apiserver.validation.core.pod.status import check_pod_status
from fairlead.engine.core.command import Condition, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.worlds.perform import condition_json
from fairlead.worlds.simulation.viewed_object import ViewedObjects

_READINESS: Final = ("Ready", "ContainersReady")
_CONTAINER_LISTS: Final = frozenset(("containerStatuses", "initContainerStatuses"))
_STARTED: Final = frozenset(("phase", "startTime"))


class StatusWrite(msgspec.Struct, frozen=True, gc=False):
    """A write to the status at `timestamp`: it sets `fields` and merges `conditions`."""

    fields: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    timestamp: str

    def applied_to(self, obj: Json, /) -> Json:
        """Return the pod or node `obj` after this write."""
        status: Json = {**obj.get("status", {}), **self.fields}
        if self.conditions:
            known = status.get("conditions", ())
            written = map(condition_json, self.conditions)
            status["conditions"] = with_conditions(known, written, self.timestamp)
        return {**obj, "status": status}


class PodStatusWrites:
    """Performs the status writes to pods that the module's docstring describes."""

    def __init__(self, pods: ViewedObjects[Pod]) -> None:
        self._pods = pods

    def perform(self, command: PatchStatus, now: Instant) -> Pod | None:
        """Perform `command` and return the new view of the pod.

        Returns None and changes nothing if the store must perform `command` instead.
        """
        if command.target.kind != POD.kind or command.resource_version:
            return None
        if not _is_certain(command.fields):
            return None
        stored = self._pods.find(command.target)
        if stored is None:
            return None
        before, timestamp = stored.view, format_timestamp(now)
        status = _next_status(before.status, command, timestamp)
        if status is None:
            return None
        meta = self._pods.next_metadata(before.metadata)
        view = Pod(metadata=meta, spec=before.spec, status=status)
        write = StatusWrite(command.fields, command.conditions, timestamp)
        return view if self._pods.replace(stored, write, view) else None


def _is_certain(fields: Mapping[str, Any]) -> bool:
    """Return True if a write of `fields` cannot fail and `_next_status` can compute its effect."""
    if fields.keys() <= _CONTAINER_LISTS:
        return True
    return (
        fields.keys() <= _STARTED
        and all(isinstance(one, str) and one for one in fields.values())
        and not any(check_pod_status({}, fields))
    )


def is_of_readiness(command: PatchStatus, pod: Pod) -> bool:
    """Return whether the stimulus ReadinessChanged can report the effect of `command`.

    `command` must be one that PodStatusWrites has performed. Returns False if `pod` is not
    bound, has ended or is terminating. Also returns False if `command` changes anything except
    container statuses and the conditions Ready and ContainersReady. Container statuses are allowed
    because simulated kubelets write them only after restarts, which ReadinessChanged also reports.
    """
    if not pod.spec.node_name or is_terminating(pod) or is_terminal(pod):
        return False
    for one in command.conditions:
        if one.type not in _READINESS:
            return False
    return command.fields.keys() <= _CONTAINER_LISTS


def _next_status(before: PodStatus, command: PatchStatus, timestamp: str) -> PodStatus | None:
    """Return the view of the status after `command`.

    Returns None if `command` changes nothing, or if `next_conditions` returns None.
    """
    conditions = next_conditions(before.conditions, command.conditions, timestamp)
    if conditions is None:
        return None
    status: PodStatus = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
    force_setattr(status, "conditions", conditions)
    if command.fields:
        written = decode_as(PodStatus, command.fields)
        if "phase" in command.fields:
            force_setattr(status, "phase", written.phase)
        if "startTime" in command.fields:
            force_setattr(status, "start_time", written.start_time)
        if written.container_statuses:
            force_setattr(status, "container_statuses", written.container_statuses)
        if written.init_container_statuses:
            force_setattr(status, "init_container_statuses", written.init_container_statuses)
    return None if status == before else status


def next_conditions(
    before: tuple[PodCondition, ...], changes: tuple[Condition, ...], timestamp: str
) -> tuple[PodCondition, ...] | None:
    """Return the conditions `before` with `changes` applied.

    Returns None if a change has no status or has a heartbeat time. An observedGeneration in
    `changes` is ignored, because PodCondition has no such field.
    """
    # The same rule for JSON values: apiserver/condition.py: with_conditions
    merged = list(before)
    for change in changes:
        if not change.status or change.last_heartbeat_time:
            return None
        since, place = timestamp, len(merged)
        for index, old in enumerate(merged):
            if old.type == change.type:
                place = index
                if old.status == change.status:
                    since = old.last_transition_time
                break
        after = PodCondition(
            type=change.type,
            status=change.status,
            reason=change.reason,
            message=change.message,
            last_transition_time=since,
        )
        if place == len(merged):
            merged.append(after)
        else:
            merged[place] = after
    return tuple(merged)
