"""JobRoom: whether the Job of an evicted pod replaces the pod.

An evicted pod counts as a failed pod, unless the podFailurePolicy of its Job ignores disruptions.
At its limit of failed pods, a Job fails and creates no further pods.

upstream: pkg/controller/job/job_controller.go:syncJob
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
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
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.pod_status import KILLED_EXIT_CODE
from fairlead.engine.workloads.disruption.controller import DISRUPTION_TARGET
from fairlead.engine.workloads.job.progress import JobProgress
from fairlead.engine.workloads.pod_control.pod_set import EndedPod, PodSet, PodState

_EVICTED: Final = PodCondition(DISRUPTION_TARGET, "True", "EvictionByEvictionAPI")
_KILLED: Final = ContainerState(terminated=ContainerTermination(exit_code=KILLED_EXIT_CODE))


class JobRoom:
    """Counts the failures of each Job in `objects`: the failed pods and the evicted pods."""

    def __init__(self, objects: Iterable[ApiObject], now: Instant) -> None:
        """Read the Jobs and their pods."""
        self._now = now
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

        Also return True if `objects` do not contain a Job of the pod.
        """
        uid = self._job_of(pod)
        return not uid or self._progress[uid].replaces(_evicted(pod), self._jobs[uid])

    def first_not_replaced(self, pods: Sequence[Pod]) -> Pod | None:
        """Return the first of `pods` that is not replaced if they are evicted one after another.

        Returns None if all of them are replaced. Nothing is counted.
        """
        uids = {uid: None for pod in pods if (uid := self._job_of(pod))}
        before = {uid: deepcopy(self._progress[uid]) for uid in uids}
        found = None
        for pod in pods:
            if not self.replaces(pod):
                found = pod
                break
            self.evict(pod)
        self._progress |= before
        return found

    def evict(self, pod: Pod) -> None:
        """Count the eviction of `pod` as a failure of its Job, if it has one."""
        if uid := self._job_of(pod):
            ended = EndedPod(_evicted(pod), PodState.FAILED, is_ours=False)
            self._progress[uid].count_ended([ended], self._jobs[uid], self._now)

    def _job_of(self, pod: Pod) -> str:
        """Return the uid of the Job of `pod`, "" if the pod has no Job in the snapshot."""
        owner = controller_of(pod.metadata)
        return owner.uid if owner is not None and owner.uid in self._jobs else ""


def _evicted(pod: Pod) -> Pod:
    """Return `pod` as it ends after an eviction.

    It has the condition DisruptionTarget. Its containers have ended after the grace period, as in a
    simulation with the default settings.
    """
    conditions = (*pod.status.conditions, _EVICTED)
    ended = {one.name: one for one in pod.status.container_statuses if one.state.terminated}
    containers = tuple(
        ended.get(one.name) or ContainerStatus(name=one.name, state=_KILLED)
        for one in pod.spec.containers
    )
    status = replace(pod.status, conditions=conditions, container_statuses=containers)
    return replace(pod, status=status)
