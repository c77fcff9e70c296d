"""OwnerStatus: writes the status and revisions of the owners of pods for API clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import (
    DaemonSet,
    Job,
    JobStatus,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.daemon_set.rule import DaemonSetRule
from fairlead.engine.workloads.daemon_set.status import daemon_status
from fairlead.engine.workloads.job.rule import JobRule, is_own
from fairlead.engine.workloads.job.status import job_events, job_status
from fairlead.engine.workloads.job.tracking_finalizer import (
    JobSyncSchedule,
    release_counted,
    releases,
)
from fairlead.engine.workloads.owner import Owner
from fairlead.engine.workloads.pod_control.controller_history import Histories, History
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.replica_set.status import first_status, replica_status
from fairlead.engine.workloads.stateful_set.status import stateful_status
from fairlead.engine.workloads.status_writer import StatusWriter


class OwnerOutput(Protocol):
    """Writes the parts of an owner that API clients read: status, revisions and job tracking."""

    def learn(self, key: str, owner: Owner) -> None:
        """Store the newest version of `owner`."""
        ...

    def forget(self, key: str) -> None:
        """Remove a deleted owner."""
        ...

    def write(self, key: str, now: Instant) -> list[Command]:
        """Return the writes that are needed after the pods of the owner `key` have changed."""
        ...


class NoOwnerStatus(Struct, frozen=True):
    """Writes no status, because no client reads the status of owners."""

    pod_sets: PodSets
    histories: Histories
    writer: StatusWriter

    def learn(self, key: str, owner: Owner) -> None:
        """Do nothing."""

    def forget(self, key: str) -> None:
        """Do nothing."""

    def write(self, key: str, now: Instant) -> list[Command]:
        """Return no commands."""
        return []


class OwnerStatus(Struct):
    """Writes the status of the owners of pods; stores the newest version of each owner, by key."""

    pod_sets: PodSets
    histories: Histories
    writer: StatusWriter
    _schedule: JobSyncSchedule = field(default_factory=JobSyncSchedule)
    _owners: dict[str, Owner] = field(default_factory=dict)
    # Names of the pods that existed when the current generation was first seen.
    _first: dict[str, frozenset[str]] = field(default_factory=dict)

    def learn(self, key: str, owner: Owner) -> None:
        """Store the newest version of `owner`."""
        before = self._owners.get(key)
        if before is None or before.metadata.generation != owner.metadata.generation:
            self._first[key] = frozenset(self.pod_sets.sets[key].pods)
        self._owners[key] = owner
        if isinstance(owner, Job):
            self._schedule.learn(key, owner)
        self.pod_sets.mark_changed(key)

    def forget(self, key: str) -> None:
        """Remove a deleted owner."""
        self._owners.pop(key, None)
        self._first.pop(key, None)
        self._schedule.forget(key)

    def write(self, key: str, now: Instant) -> list[Command]:
        """Return the writes that update the status and the revisions of the owner `key`."""
        owner = self._owners.get(key)
        if owner is None:
            return []
        pods = self.pod_sets.sets[key]
        due = pods.next_available(seconds(getattr(owner.spec, "min_ready_seconds", 0)), now)
        if due is not None:
            self.pod_sets.run_at(key, due)
        match owner:
            case Job():
                return self._write_job(key, owner, now)
            case StatefulSet():
                history = self.histories.of(key, owner)
                status = stateful_status(owner, self._counted(key, owner), history, now)
                return self._write_revised(key, owner, history, status)
            case DaemonSet() if isinstance(rule := self.pod_sets.rules[key], DaemonSetRule):
                history = self.histories.of(key, owner)
                counted = self._counted(key, owner)
                status = daemon_status(owner, rule, counted, history, now)
                return self._write_revised(key, owner, history, status)
            case ReplicaSet() | ReplicationController():
                status = first_status(owner, replica_status(owner, pods, now))
                return self._write(key, owner.status, status)
            case _:
                return []

    def _counted(self, key: str, owner: StatefulSet | DaemonSet) -> list[Pod]:
        """Return the pods to count in the status of `owner`.

        If the status does not contain the newest generation of `owner` yet, only the pods that
        existed when this generation was first seen are counted. Upstream's controllers also write
        such earlier counts: they count the pods, create or delete some, and then write the status.
        """
        # upstream: stateful_set_control.go:updateStatefulSet, daemon_controller.go:syncDaemonSet
        pods = self.pod_sets.sets[key].pods.values()
        if owner.status.get("observedGeneration", 0) == owner.metadata.generation:
            return list(pods)
        return [pod for pod in pods if pod.metadata.name in self._first[key]]

    def _write_revised(
        self, key: str, owner: StatefulSet | DaemonSet, history: History, status: Json
    ) -> list[Command]:
        pods = self.pod_sets.sets[key].pods.values()
        live = [history.revision_of(pod) for pod in pods]
        return history.next_writes(live) + self._write(key, owner.status, status)

    def _write_job(self, key: str, job: Job, now: Instant) -> list[Command]:
        pods, rule = self.pod_sets.sets[key], self.pod_sets.rules[key]
        if not isinstance(rule, JobRule) or not is_own(job):
            return []
        due = self._schedule.waits_until(key, now)
        if due is not None:
            self.pod_sets.run_at(key, due)
            return []
        release_counted(rule.progress, pods)
        status = job_status(job, rule.progress, pods, now)
        # Only fields of JobStatus are compared. A change of other fields alone is not written.
        is_written = msgspec.convert(status, JobStatus) == job.status != JobStatus()
        if not is_written:
            written = self.writer.write(pods.ref, as_json(job.status), status)
            return (job_events(pods.ref, job, status) if written else []) + written
        commands = [*releases(job, rule.progress, pods)]
        if not commands:
            self._schedule.end(key)
        return commands

    def _write(
        self, key: str, before: Mapping[str, Any], status: Mapping[str, Any]
    ) -> list[Command]:
        return self.writer.write(self.pod_sets.sets[key].ref, before, status)
