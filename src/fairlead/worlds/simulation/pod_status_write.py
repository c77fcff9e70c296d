"""PodStatusWrites: writes to pod status that change the view at once and the JSON value later.

When a zone fails, tens of thousands of pods become unready; later they restart and become ready
again. Controllers read the views of these pods, but hardly anything reads their JSON values. So a
write that only changes conditions and container statuses makes a new view from the previous view,
and stores a PatchedPod without a JSON value:

    stored   DumpedObject v7            PatchedPod(base=v7, writes=[Ready=False at t], view=v8)
    view     v7 (M, S, A)               v8 (M', S, A')

M, S and A are metadata, spec and status. A PatchedPod has the earlier object (`base`) and the
writes since then. The JSON value is made when the storage reads it, by the rules of
`Store.patch_status`. The store performs all other writes. It also performs a write to conditions
and container statuses if the write could fail or change nothing, if a quota counts the pod, or if a
written condition has a heartbeat time, which views lack.
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
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.registry.dumped_object import DumpedObject
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Key
from fairlead.engine.core.command import Condition, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.worlds.perform import condition_json
from fairlead.worlds.pod_views import PodViews

# After so many writes to a pod, the JSON value is made, so that the writes need not be kept.
WRITES_MAX: Final = 8
_READINESS: Final = ("Ready", "ContainersReady")

_CONTAINER_LISTS: Final = frozenset(("containerStatuses", "initContainerStatuses"))

# The container status lists by their JSON names, the conditions, and the time of the write.
_Write = tuple[Mapping[str, Any], tuple[Condition, ...], str]


class PatchedPod(msgspec.Struct, frozen=True, gc=False):
    """The stored pod `base` after `writes` to its status; `view` is its typed view."""

    base: DumpedObject | Json
    writes: tuple[_Write, ...]
    view: Pod

    @property
    def kind(self) -> Kind:
        """The kind Pod."""
        return POD

    @property
    def key(self) -> Key:
        """The namespace and name of the pod."""
        return self.view.metadata.namespace, self.view.metadata.name

    @property
    def value(self) -> Json:
        """The pod as JSON. Each access makes the JSON again; callers must not mutate the result."""
        base = self.base
        before: Json = base.value if isinstance(base, DumpedObject) else base
        status: Json = {**before.get("status", {})}
        for fields, conditions, timestamp in self.writes:
            status |= fields
            if conditions:
                known = status.get("conditions", ())
                written = map(condition_json, conditions)
                status["conditions"] = with_conditions(known, written, timestamp)
        version = self.view.metadata.resource_version
        metadata = {**before["metadata"], "resourceVersion": version}
        return {**before, "status": status, "metadata": metadata}


class PodStatusWrites:
    """Performs commands that only change conditions and container statuses of pods."""

    def __init__(self, storage: DeferredStorage, views: PodViews, quotas: QuotaLedgers) -> None:
        """`views` are the newest views of the pods in `storage`; `quotas` counts these pods."""
        self._storage = storage
        self._views = views
        self._quotas = quotas

    def perform(self, command: PatchStatus, now: Instant) -> Pod | None:
        """Perform `command` and return the new view of the pod.

        Returns None and changes nothing if the store must perform `command`. The caller uses this
        method only while no webhook or policy binding exists.
        """
        target = command.target
        if target.kind != POD.kind or command.resource_version:
            return None
        if not command.fields.keys() <= _CONTAINER_LISTS:
            return None
        before = self._views.newest(target.uid)
        if before is None:
            return None
        key = target.namespace, target.name
        meta = before.metadata
        if key != (meta.namespace, meta.name) or self._quotas.are_counted(target.namespace):
            return None
        base, writes = self._stored(key, before)
        if base is None or len(writes) >= WRITES_MAX:
            return None
        timestamp = format_timestamp(now)
        status = _next_status(before.status, command, timestamp)
        if status is None:
            return None
        view = _with_status(before, status, str(self._storage.version + 1))
        writes = (*writes, (command.fields, command.conditions, timestamp))
        if not self._storage.replace_deferred(PatchedPod(base, writes, view)):
            return None
        self._views.put(view)
        return view

    def _stored(self, key: Key, view: Pod) -> tuple[DumpedObject | Json | None, tuple[_Write, ...]]:
        """Return (`base`, `writes`) of the pod that is stored under `key`.

        `base` is the current or an earlier version of the pod, and `writes` are the status writes
        since this version (as in `PatchedPod`). `base` is None if it is not certain that `view`
        shows the stored version, or if the pod is stored as JSON without a status.
        """
        found = self._storage.find_deferred(POD, key)
        if type(found) is PatchedPod and found.view is view:
            return found.base, found.writes
        if type(found) is DumpedObject and found.view is view:
            return found, ()
        if type(found) is dict:
            version = found["metadata"]["resourceVersion"]
            if version == view.metadata.resource_version and found.get("status"):
                return found, ()
        return None, ()


def is_of_readiness(command: PatchStatus, pod: Pod) -> bool:
    """Return whether the stimulus ReadinessChanged can report the effect of `command`.

    `command` must be one that PodStatusWrites has performed. The result is True if `pod` is bound,
    has not ended and is not terminating, and `command` changes no conditions except Ready and
    ContainersReady. Changes of container statuses are allowed, because simulated kubelets write
    them only after restarts, and ReadinessChanged also reports restarts.
    """
    if not pod.spec.node_name or is_terminating(pod) or is_terminal(pod):
        return False
    return all(one.type in _READINESS for one in command.conditions)


def _next_status(before: PodStatus, command: PatchStatus, timestamp: str) -> PodStatus | None:
    """Return the view of the status after `command`.

    Returns None if `command` changes nothing, or if `_next_conditions` returns None.
    """
    conditions = _next_conditions(before.conditions, command.conditions, timestamp)
    if conditions is None:
        return None
    status: PodStatus = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
    force_setattr(status, "conditions", conditions)
    if command.fields:
        written = decode_as(PodStatus, command.fields)
        if written.container_statuses:
            force_setattr(status, "container_statuses", written.container_statuses)
        if written.init_container_statuses:
            force_setattr(status, "init_container_statuses", written.init_container_statuses)
    return None if status == before else status


def _next_conditions(
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
        place = next((i for i, one in enumerate(merged) if one.type == change.type), len(merged))
        old = merged[place] if place < len(merged) else None
        since = timestamp
        if old is not None and old.status == change.status:
            since = old.last_transition_time
        after = PodCondition(
            type=change.type,
            status=change.status,
            reason=change.reason,
            message=change.message,
            last_transition_time=since,
        )
        merged[place : place + 1] = [after]
    return tuple(merged)


def _with_status(before: Pod, status: PodStatus, version: str) -> Pod:
    meta = before.metadata.__copy__()  # type: ignore[attr-defined]
    force_setattr(meta, "resource_version", version)
    return Pod(metadata=meta, spec=before.spec, status=status)
