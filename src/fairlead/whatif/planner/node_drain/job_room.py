"""JobRoom: whether the Job of an evicted pod replaces the pod.

An evicted pod counts as a failed pod, unless the podFailurePolicy of its Job ignores disruptions. A
Job that reaches its limit of failed pods fails, and creates no further pods.

upstream: pkg/controller/job/job_controller.go:syncJob
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import (
    ApiObject,
    ContainerState,
    ContainerStatus,
    ContainerTermination,
    Job,
    OwnerReference,
    Pod,
    PodCondition,
)
from fairlead.api.pods.facts import controller_of
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.kubelet.pod_lifecycle import granted_grace
from fairlead.engine.workloads.disruption.controller import DISRUPTION_TARGET
from fairlead.engine.workloads.job.finished_condition import finished_condition
from fairlead.engine.workloads.job.progress import JobProgress
from fairlead.engine.workloads.pod_control.pod_set import EndedPod, PodSet, PodState

_EVICTED: Final = PodCondition(DISRUPTION_TARGET, "True", "EvictionByEvictionAPI")


class JobRoom:
    """Counts the failures of each Job in `objects`: the failed pods and the evicted pods."""

    def __init__(
        self, objects: Iterable[ApiObject], now: Instant, exit_code: Callable[[Pod], int]
    ) -> None:
        """Read the Jobs and their pods.

        `exit_code` returns the exit code of the containers of a terminating pod.
        """
        self._now = now
        self._exit_code = exit_code
        known = list(objects)
        self._jobs = {one.metadata.uid: one for one in known if isinstance(one, Job)}
        owner = OwnerReference(kind="Job")
        pods = {uid: PodSet(key=uid, namespace="", owner=owner) for uid in self._jobs}
        for one in known:
            if isinstance(one, Pod) and (uid := self._job_of(one)):
                pods[uid].put(one, "")
        self._progress = {
            uid: JobProgress.of(job, pods[uid], is_tracked=False) for uid, job in self._jobs.items()
        }

    def replaces(self, pod: Pod) -> bool:
        """Return whether the Job of `pod` would replace the pod after an eviction.

        Also return True if `pod` has no Job in the snapshot.
        """
        uid = self._job_of(pod)
        return not uid or self._progress[uid].replaces(self._evicted(pod), self._jobs[uid])

    def not_replaced(self, pods: Sequence[Pod]) -> list[Pod]:
        """Return the `pods` that are not replaced if all `pods` are evicted one after another.

        Each eviction counts as a failure of the pod's Job. The counts are restored at the end.
        """
        with self._restored(pods):
            return self._evict_all(pods)

    def failing(self, pods: Sequence[Pod]) -> dict[str, Job]:
        """Return {pod: Job} for the `pods` that are not replaced if all `pods` are evicted.

        If the evictions make a Job fail, none of its pods is replaced. If the evictions make only
        an index fail, the pods of other indexes are replaced. The counts of failures are restored
        at the end.
        """
        with self._restored(pods):
            lost = {pod.key for pod in self._evict_all(pods)}
            owners = {pod.key: uid for pod in pods if (uid := self._job_of(pod))}
            return {
                key: self._jobs[uid]
                for key, uid in owners.items()
                if key in lost or self._has_failed(uid)
            }

    def _evict_all(self, pods: Iterable[Pod]) -> list[Pod]:
        """Count an eviction of each of `pods` for its Job; return the pods that no Job replaces."""
        found = []
        for pod in pods:
            if not self.replaces(pod):
                found.append(pod)
            self.evict(pod)
        return found

    @contextmanager
    def _restored(self, pods: Iterable[Pod]) -> Iterator[None]:
        """Restore the counts of the Jobs of `pods` when the `with` block ends."""
        uids = {uid: None for pod in pods if (uid := self._job_of(pod))}
        before = {uid: self._progress[uid].copied() for uid in uids}
        try:
            yield
        finally:
            self._progress |= before

    def _has_failed(self, uid: str) -> bool:
        job, progress = self._jobs[uid], self._progress[uid]
        found = progress.finished or finished_condition(
            job, progress, restarts=0, is_idle=False, now=self._now
        )
        return found is not None and not found.is_success

    def evict(self, pod: Pod) -> None:
        """Count the eviction of `pod` as a failure of its Job; do nothing if `pod` has no Job."""
        if uid := self._job_of(pod):
            ended = EndedPod(self._evicted(pod), PodState.FAILED, is_ours=False)
            self._progress[uid].count_ended([ended], self._jobs[uid], self._now)

    def _job_of(self, pod: Pod) -> str:
        """Return the uid of the Job of `pod`; "" if the pod has no Job in the snapshot."""
        owner = controller_of(pod.metadata)
        return owner.uid if owner is not None and owner.uid in self._jobs else ""

    def _evicted(self, pod: Pod) -> Pod:
        """Return `pod` in its final state after eviction, with the condition DisruptionTarget."""
        grace = granted_grace(pod)
        meta = replace(
            pod.metadata,
            deletion_timestamp=format_timestamp(self._now + grace),
            deletion_grace_period_seconds=grace // seconds(1),
        )
        terminating = replace(pod, metadata=meta)
        end = ContainerTermination(exit_code=self._exit_code(terminating))
        ended = {one.name: one for one in pod.status.container_statuses if one.state.terminated}
        containers = tuple(
            ended.get(one.name)
            or ContainerStatus(name=one.name, state=ContainerState(terminated=end))
            for one in pod.spec.containers
        )
        conditions = (*pod.status.conditions, _EVICTED)
        status = replace(pod.status, conditions=conditions, container_statuses=containers)
        return replace(terminating, status=status)
