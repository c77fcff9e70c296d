"""TtlAfterFinished: deletes finished Jobs after ttlSecondsAfterFinished.

upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go
"""

from __future__ import annotations

from typing import ClassVar, Final

from fairlead.api.objects import ApiObject, Job
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Command, DeleteObject, ObjectRef
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff

WHY: Final = "its ttlSecondsAfterFinished has passed"
ENDS: Final = ("Complete", "Failed")


class TtlAfterFinished:
    """The TTL-after-finished controller: deletes finished Jobs."""

    issuer: ClassVar[Issuer] = controller_account("ttl-after-finished-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Job,), deleted=(Job,), succeeded=(), failed=(DeleteObject,)
    )

    def __init__(self) -> None:
        self._dues: dict[str, Instant] = {}  # by uid
        self._timers: TimerQueue[ObjectRef] = TimerQueue()
        self._backoff: RefusalBackoff[str] = RefusalBackoff()  # by uid

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Schedule the deletion of finished Jobs; after a refusal, schedule the deletion again."""
        match stimulus:
            case ObjectChanged(one):
                self._observe(one)
            case ObjectDeleted(Job() as one):
                self._forget(one.metadata.uid)
            case ObjectsLoaded(objects):
                for one in objects:
                    self._observe(one)
            case CommandFailed(DeleteObject(target), reason) if target.uid in self._dues:
                if reason is not FailureReason.NOT_FOUND:
                    self._timers.add(self._backoff.next_try(target.uid, now), target)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time of the next deletion, or None if no deletion is scheduled."""
        return self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return a foreground deletion for each finished Job whose time to live has expired."""
        return [
            DeleteObject(ref, why=WHY, policy="Foreground")
            for ref in self._timers.pop_due(now)
            if self._dues.get(ref.uid, now + 1) <= now
        ]

    def _observe(self, one: ApiObject) -> None:
        if not isinstance(one, Job):
            return
        meta, due = one.metadata, _due(one)
        if due is None or meta.deletion_timestamp:
            self._forget(meta.uid)
        elif self._dues.get(meta.uid) != due:
            self._dues[meta.uid] = due
            self._timers.add(due, ObjectRef("Job", meta.namespace, meta.name, meta.uid))

    def _forget(self, uid: str) -> None:
        self._dues.pop(uid, None)
        self._backoff.reset(uid)


def _due(job: Job) -> Instant | None:
    """Return the time at which to delete `job`, or None if it must not be deleted."""
    ttl = job.spec.ttl_seconds_after_finished
    ends = [
        one.last_transition_time
        for one in job.status.conditions
        if one.type in ENDS and one.status == "True" and one.last_transition_time
    ]
    return None if ttl is None or not ends else parse_timestamp(ends[0]) + seconds(ttl)
