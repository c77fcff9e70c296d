"""ReplicaSetView: reads the pod counts of a rollout's ReplicaSets.

    ReportedReplicaSets   reads the `status` of the ReplicaSets, as upstream does. The ReplicaSet
                          controller writes the `status`, so each step waits until the `status`
                          shows the effect of the previous step.
    CountedReplicaSets    counts the pods, because no status is written. If the dump lacks a
                          ReplicaSet, the ReplicaSet is inferred from its pods.

A rollout takes the same steps with both variants. If ReportedReplicaSets is used, the rollout takes
the steps later, because the status is written after the pods change.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.deployment.rolling_update import RECREATE, ReplicaSetState
from fairlead.engine.workloads.deployment.rollout import Rollout
from fairlead.engine.workloads.pod_control.pod_sets import PodSets

States = tuple[ReplicaSetState | None, list[ReplicaSetState]]


class ReplicaSetView(Protocol):
    """Reads the pod counts of a rollout's ReplicaSets."""

    def find_current(self, rollout: Rollout, *, is_loaded: bool) -> None:
        """Find the ReplicaSet with the Deployment's template; store its key in the rollout.

        `is_loaded` is set if the objects come from a snapshot.
        """
        ...

    def states(self, rollout: Rollout, now: Instant) -> States:
        """Return the states of the current ReplicaSet (or None) and of the old ReplicaSets."""
        ...

    def has_old_pods(self, rollout: Rollout) -> bool:
        """Return whether old ReplicaSets have unfinished pods, including terminating pods."""
        ...

    def follows_pods(self, rollout: Rollout) -> bool:
        """Return whether the change of a pod can affect the next step of the rollout."""
        ...

    def watch(self, rollout: Rollout, now: Instant) -> None:
        """Watch the pods whose changes can affect the next step of the rollout."""
        ...


class ReportedReplicaSets(Struct, frozen=True):
    """Reads the pod counts from the status of the ReplicaSets."""

    pod_sets: PodSets

    def find_current(self, rollout: Rollout, *, is_loaded: bool) -> None:
        """Find the ReplicaSet with the Deployment's template by comparing templates.

        No ReplicaSet has to be inferred from its pods: this class is used only with an API server,
        and the API server stores all ReplicaSets. So `is_loaded` has no effect.
        """
        rollout.find_current()

    def states(self, rollout: Rollout, now: Instant) -> States:
        """Return the states of the ReplicaSets.

        The numbers of available pods come from the status of the ReplicaSets.
        """
        return rollout.reported_states()

    def has_old_pods(self, rollout: Rollout) -> bool:
        """Return whether an old ReplicaSet has unfinished pods or a status.replicas above 0."""
        return not (
            rollout.has_reported_no_old_pods and rollout.has_no_old_pods(self.pod_sets.sets)
        )

    def follows_pods(self, rollout: Rollout) -> bool:
        """Return whether the strategy is Recreate, which waits until the old pods are gone."""
        return rollout.deployment.spec.strategy.type == RECREATE

    def watch(self, rollout: Rollout, now: Instant) -> None:
        """Do nothing, because every change of a ReplicaSet's status is handled anyway."""


class CountedReplicaSets(Struct, frozen=True):
    """Counts the pods of the ReplicaSets."""

    pod_sets: PodSets

    def find_current(self, rollout: Rollout, *, is_loaded: bool) -> None:
        """Find the ReplicaSet with the Deployment's template.

        If the objects come from a snapshot (`is_loaded`), it is possible that no ReplicaSet has
        this template. The current ReplicaSet is then found by its revision, or else by the ages of
        its pods.
        """
        rollout.find_current(is_loaded=is_loaded)

    def states(self, rollout: Rollout, now: Instant) -> States:
        """Return the states of the ReplicaSets, with their available pods counted at `now`."""
        return rollout.counted_states(self.pod_sets.sets, now)

    def has_old_pods(self, rollout: Rollout) -> bool:
        """Return whether old ReplicaSets have unfinished pods, including terminating pods."""
        return not rollout.has_no_old_pods(self.pod_sets.sets)

    def follows_pods(self, rollout: Rollout) -> bool:
        """Return True, because the availability of every pod affects the counts."""
        return True

    def watch(self, rollout: Rollout, now: Instant) -> None:
        """Add the ReplicaSets of the rollout to `pod_sets.watched` if the rollout is in progress.

        In this case, also schedule a sync for the time at which ready pods become available. If the
        rollout is not in progress, remove its ReplicaSets from `pod_sets.watched`.
        """
        _, old = self.states(rollout, now)
        is_in_progress = bool(rollout.creating) or any(
            one.replicas or self.has_old_pods(rollout) for one in old
        )
        for key in (*rollout.replica_sets, *rollout.implied):
            if is_in_progress:
                self.pod_sets.watched[key] = None
            else:
                self.pod_sets.watched.pop(key, None)
        if is_in_progress:
            self._run_when_available(rollout, now)

    def _run_when_available(self, rollout: Rollout, now: Instant) -> None:
        """Schedule a sync for the time at which ready pods become available (minReadySeconds).

        No object changes at that time, so nothing else would cause the sync.
        """
        min_ready = seconds(rollout.deployment.spec.min_ready_seconds)
        for key in (*rollout.replica_sets, *rollout.implied):
            pods = self.pod_sets.sets.get(key)
            due = pods.next_available(min_ready, now) if pods is not None else None
            if due is not None:
                self.pod_sets.run_at(key, due)
