"""ReplicaSetView: how a rollout gets the numbers of pods of its ReplicaSets.

    ReportedReplicaSets   from `status` of the ReplicaSets, as upstream. The ReplicaSet controller
                          writes it, so each step waits until the previous one is reported.
    CountedReplicaSets    from the pods. No status is written, and ReplicaSets that the snapshot
                          lacks are implied by their pods.

Both describe the same pods, so a rollout takes the same steps; reported counts arrive later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.deployment.rolling_update import RECREATE, ReplicaSetState
from fairlead.engine.workloads.deployment.rollout import Rollout
from fairlead.engine.workloads.pod_control.pod_sets import PodSets

States = tuple[ReplicaSetState | None, list[ReplicaSetState]]


class ReplicaSetView(Protocol):
    """The counts of pods of a rollout's ReplicaSets."""

    def find_current(self, rollout: Rollout, *, is_loaded: bool) -> None:
        """Find the ReplicaSet with the Deployment's template; `is_loaded`: from a snapshot."""
        ...

    def states(self, rollout: Rollout, now: Instant) -> States:
        """Return the current ReplicaSet, if there is one, and the old ones."""
        ...

    def has_old_pods(self, rollout: Rollout) -> bool:
        """Return whether old ReplicaSets still have pods, terminating ones included."""
        ...

    def follows_pods(self, rollout: Rollout) -> bool:
        """Return whether a change of a pod can affect the next step."""
        ...

    def watch(self, rollout: Rollout, now: Instant) -> None:
        """Watch for the changes on which the next step depends."""
        ...


@dataclass(frozen=True, slots=True)
class ReportedReplicaSets:
    """Counts from `status` of the ReplicaSets."""

    pod_sets: PodSets

    def find_current(self, rollout: Rollout, *, is_loaded: bool) -> None:
        """Compare templates only: the objects are complete."""
        rollout.find_current()

    def states(self, rollout: Rollout, now: Instant) -> States:
        """Return the states that the ReplicaSets report."""
        return rollout.reported_states()

    def has_old_pods(self, rollout: Rollout) -> bool:
        """Return whether the old ReplicaSets report pods, or whether pods of them exist."""
        return not (
            rollout.has_reported_no_old_pods and rollout.has_no_old_pods(self.pod_sets.sets)
        )

    def follows_pods(self, rollout: Rollout) -> bool:
        """Return True for Recreate only; other steps depend on the status of ReplicaSets."""
        return rollout.deployment.spec.strategy.type == RECREATE

    def watch(self, rollout: Rollout, now: Instant) -> None:
        """Do nothing, because every change of a ReplicaSet's status is handled anyway."""


@dataclass(frozen=True, slots=True)
class CountedReplicaSets:
    """Counts from the pods themselves."""

    pod_sets: PodSets

    def find_current(self, rollout: Rollout, *, is_loaded: bool) -> None:
        """Compare templates, and in a snapshot also revisions and the age of pods."""
        rollout.find_current(is_loaded=is_loaded)

    def states(self, rollout: Rollout, now: Instant) -> States:
        """Return the states with available pods counted."""
        return rollout.counted_states(self.pod_sets.sets, now)

    def has_old_pods(self, rollout: Rollout) -> bool:
        """Return whether pods of old ReplicaSets exist that have not finished."""
        return not rollout.has_no_old_pods(self.pod_sets.sets)

    def follows_pods(self, rollout: Rollout) -> bool:
        """Return True: every pod counts that becomes available or unavailable."""
        return True

    def watch(self, rollout: Rollout, now: Instant) -> None:
        """Watch the pods while the rollout is in progress."""
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
            self._wake_when_available(rollout, now)

    def _wake_when_available(self, rollout: Rollout, now: Instant) -> None:
        """Wake when ready pods become available after minReadySeconds, which changes no object."""
        min_ready = seconds(rollout.deployment.spec.min_ready_seconds)
        for key in (*rollout.replica_sets, *rollout.implied):
            pods = self.pod_sets.sets.get(key)
            due = pods.next_available(min_ready, now) if pods is not None else None
            if due is not None:
                self.pod_sets.wake(key, due)
