"""JobTable: all jobs, queues and groups, updated with each stimulus.

A session changes these objects directly, instead of copying all jobs when it opens. When it closes,
it undoes the placements that were not dispatched. Only `apply` (observed changes), the methods for
failed commands, and the open session change the table.

    pod ── group it names, or its shadow ──▶ job ── group's queue ──▶ queue

upstream: pkg/scheduler/cache/event_handlers.go
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from fairlead.api.objects import ApiObject, Pod, PodGroup, PriorityClass, Queue
from fairlead.api.pods.facts import is_terminal
from fairlead.engine.batch.info.group import (
    COSCHEDULING_API,
    PREFERENCE,
    GroupInfo,
    group_info,
    group_name,
    shadow_group,
)
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.queue import DEFAULT_QUEUE, QueueInfo, queue_info
from fairlead.engine.batch.info.request import RequestTable
from fairlead.engine.batch.info.task_status import TaskStatus, status_of
from fairlead.engine.batch.scheduler_name import SCHEDULER_NAMES, VOLCANO
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.engine.state.cluster import Cluster, PodChange, PodsLoaded
from fairlead.engine.state.pod_groups import is_kubernetes_pod_group
from fairlead.engine.state.pod_info import PodInfo


class Ownership(Struct, frozen=True):
    """The scheduler names of the pods that this scheduler owns, and the default queue of groups.

    If `own_groups_only` is set, this scheduler ignores PodGroups of scheduling.k8s.io.
    `own_groups_only` is set if the default scheduler schedules these groups (feature gate
    GenericWorkload).
    """

    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    default_queue: str = DEFAULT_QUEUE
    own_groups_only: bool = False


class JobTable:
    """All jobs, queues and groups, updated with each stimulus.

    `releasing_pods` contains the placed pods that are being deleted or that a session has evicted.
    `requests` computes the request of each pod by the configured rule. `pods_with_surplus` contains
    the placed pods whose request by this rule differs from the request that `NodeInfo` counts for
    these pods. `releasing_pods` and `pods_with_surplus` are keyed by `PodInfo.id` and include pods
    of other schedulers. `touched` contains the ids of jobs that changed since the last session.
    """

    def __init__(self, cluster: Cluster, ownership: Ownership, requests: RequestTable) -> None:
        """Create an empty table; `cluster` must process each stimulus before `apply` gets it."""
        self._cluster = cluster
        self._ownership = ownership
        self.requests = requests
        self.jobs: dict[str, JobInfo] = {}
        self.tasks: dict[str, TaskInfo] = {}
        self.queues: dict[str, QueueInfo] = {}
        self._groups: dict[str, dict[str, GroupInfo]] = {}  # by job id, then by API group
        self.priority_classes: dict[str, PriorityClass] = {}
        self.releasing_pods: dict[str, PodInfo] = {}
        self.pods_with_surplus: dict[str, PodInfo] = {}
        self.touched: dict[str, None] = {}

    @property
    def default_queue(self) -> str:
        """Name of the queue for groups whose spec has no queue."""
        return self._ownership.default_queue

    def owns(self, pod: Pod) -> bool:
        """Return whether the schedulerName of `pod` is one of `scheduler_names`."""
        return pod.spec.scheduler_name in self._ownership.scheduler_names

    def component_of(self, job: JobInfo) -> str:
        """Return the reportingController of events about the group of `job`.

        If this scheduler owns a pod of the job, the result is the schedulerName of this pod.
        Otherwise, it is the scheduler's only name, or "volcano" if the scheduler has several names.

        upstream: volcano/pkg/scheduler/util: GenerateComponentName
        """
        names = self._ownership.scheduler_names
        pods = (task.info.pod for task in job.tasks.values())
        otherwise = names[0] if len(names) == 1 else VOLCANO
        return next((pod.spec.scheduler_name for pod in pods if self.owns(pod)), otherwise)

    # --- stimuli ---------------------------------------------------------------------------

    def apply(self, stimulus: Stimulus) -> None:
        """Update the table with `stimulus`; ignore stimuli that do not affect jobs."""
        match stimulus:
            case ObjectChanged(object=changed):
                self._take_in((changed,))
            case ObjectsLoaded(objects=objects):
                self._take_in(objects)
            case ObjectDeleted(object=gone):
                self._forget(gone)
            case _:
                pass
        for change in self._cluster.changes:
            if isinstance(change, PodChange):
                self._pod_changed(change)
            elif isinstance(change, PodsLoaded):
                for each in change.changes():
                    self._pod_changed(each)

    def _take_in(self, objects: Iterable[ApiObject]) -> None:
        for found in objects:
            match found:
                case Pod() if is_terminal(found):
                    self._finished(found)
                case Pod():
                    pass  # `apply` handles the change of the cluster's state
                case PodGroup() if self._is_foreign(found):
                    pass
                case PodGroup():
                    group = group_info(found)
                    self._groups.setdefault(found.key, {})[group.api_group] = group
                    self._choose_group(found.key)
                case Queue():
                    columns = self._cluster.table.resources
                    self.queues[found.metadata.name] = queue_info(found, columns)
                    # The queue decides whether its jobs can run, so the next session must report
                    # all of these jobs again, even those that have not changed.
                    self.touched.update(
                        (job.id, None)
                        for job in self.jobs.values()
                        if job.queue == found.metadata.name
                    )
                case PriorityClass():
                    self.priority_classes[found.metadata.name] = found
                    self._set_priorities()
                case _:
                    pass

    def _forget(self, gone: ApiObject) -> None:
        match gone:
            case Pod():
                self._drop(gone.metadata.uid or gone.key)
            case PodGroup():
                self._groups.get(gone.key, {}).pop(group_info(gone).api_group, None)
                self._choose_group(gone.key)
            case Queue():
                self.queues.pop(gone.metadata.name, None)
            case PriorityClass():
                self.priority_classes.pop(gone.metadata.name, None)
                self._set_priorities()
            case _:
                pass

    # --- groups ----------------------------------------------------------------------------

    def _is_foreign(self, group: PodGroup) -> bool:
        """Return whether the default scheduler schedules the group."""
        return self._ownership.own_groups_only and is_kubernetes_pod_group(group)

    def _choose_group(self, key: str) -> None:
        """Set the group of the job `key`.

        If several APIs have a group with this key, the API that is last in `PREFERENCE` wins. If no
        API has a group with this key, the job loses its group.
        """
        known = self._groups.get(key, {})
        if known:
            group = max(known.values(), key=_preference)
            job = self._job(f"{group.namespace}/{group.name}", group)
            job.group = group
            job.queue = group.queue or self._ownership.default_queue
            self._set_priority(job)
            return
        self._groups.pop(key, None)
        if key in self.jobs:
            self.jobs[key].group = None
            self._drop_if_empty(self.jobs[key])

    def _job(self, job_id: str, group: GroupInfo | None) -> JobInfo:
        job = self.jobs.get(job_id)
        if job is None:
            job = self.jobs[job_id] = JobInfo(job_id, group)
            named = "" if group is None else group.queue
            job.queue = named or self._ownership.default_queue
            self._set_priority(job)
        self.touched[job_id] = None
        return job

    def _drop_if_empty(self, job: JobInfo) -> None:
        is_shadow = job.group is not None and job.group.ref is None
        if not job.tasks and (job.group is None or is_shadow):
            del self.jobs[job.id]
            self.touched.pop(job.id, None)

    # --- pods ------------------------------------------------------------------------------

    def _pod_changed(self, change: PodChange) -> None:
        new = change.new
        if new is None:
            if change.old is not None:
                self._pod_left(change.old)
            return
        self._note_on_node(new)
        job = self._job_of(new.pod)
        if job is None:
            self._drop(new.id)
        else:
            self._put(new, job)

    def _pod_left(self, old: PodInfo) -> None:
        """Handle a pod that was removed from the cluster's state: remove its task from the job.

        A task that has succeeded or failed is kept as a member of its job.
        """
        self.releasing_pods.pop(old.id, None)
        self.pods_with_surplus.pop(old.id, None)
        task = self.tasks.get(old.id)
        if task is not None and task.status not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
            self._drop(old.id)

    def _note_on_node(self, pod: PodInfo) -> None:
        placed = bool(pod.pod.spec.node_name)
        if placed and pod.terminating:
            self.releasing_pods[pod.id] = pod
        elif self.releasing_pods and not self._is_being_evicted(pod):
            self.releasing_pods.pop(pod.id, None)
        if placed and self.requests.of(pod).has_surplus:
            self.pods_with_surplus[pod.id] = pod
        elif self.pods_with_surplus:
            self.pods_with_surplus.pop(pod.id, None)

    def _is_being_evicted(self, pod: PodInfo) -> bool:
        """Return whether the task of `pod` has the status RELEASING, which an eviction sets."""
        task = self.tasks.get(pod.id)
        return task is not None and task.status is TaskStatus.RELEASING

    def _job_of(self, pod: Pod) -> JobInfo | None:
        """Return the job of `pod`, and mark the job as changed; create the job if it is missing.

        A pod whose schedulerName is in `scheduler_names` always has a job. Any other pod has a job
        if it names a group and its status is neither PENDING nor GATED. If the pod has no job, the
        result is None (cache.go: newSchedulerCache; event_handlers.go: getOrCreateJob).
        """
        ours = self.owns(pod)
        name = group_name(pod)
        if not ours and (not name or status_of(pod) in (TaskStatus.PENDING, TaskStatus.GATED)):
            return None
        if name:
            return self._job(f"{pod.metadata.namespace}/{name}", None)
        group = shadow_group(pod)
        return self._job(group.name, group)

    def _put(self, info: PodInfo, job: JobInfo) -> None:
        known, request = self.tasks.get(info.id), self.requests.of(info)
        if known is not None and known.job is job and known.request is request:
            self._update(known, info)
            return
        task = TaskInfo(info, job, request)
        if known is not None:
            if _is_older_than_decision(known, task.status):
                task.status, task.node = known.status, known.node
            self._remove(known)
        self.tasks[info.id] = task
        job.add(task)
        if _has_priority_of_members(job) and (len(job.tasks) == 1 or task.priority > job.priority):
            job.priority = task.priority
        if known is not None and known.job is not job:
            self.touched[known.job.id] = None
            self._drop_if_empty(known.job)

    def _update(self, task: TaskInfo, info: PodInfo) -> None:
        status, node = status_of(info.pod), task.node
        undecided = _is_older_than_decision(task, status)
        task.show(info)
        if undecided:
            task.node = node
        elif status is not task.status:
            task.job.set_status(task, status)

    def _finished(self, pod: Pod) -> None:
        """Keep a succeeded or failed pod as a member of its job; drop the pod if it has no job."""
        job = self._job_of(pod)
        if job is None:
            self._drop(pod.metadata.uid or pod.key)
            return
        self._put(PodInfo(pod, self._cluster.shapes.shape_of(pod)), job)

    def _drop(self, pod_id: str) -> None:
        task = self.tasks.pop(pod_id, None)
        if task is not None:
            self._remove(task)
            self.touched[task.job.id] = None
            self._drop_if_empty(task.job)

    def _remove(self, task: TaskInfo) -> None:
        """Remove `task` from its job, and update the priority of the job."""
        job = task.job
        job.remove(task)
        # Usually the first remaining task has the same priority, which ends the search.
        if _has_priority_of_members(job) and all(
            one.priority < task.priority for one in job.tasks.values()
        ):
            self._set_priority(job)

    # --- outcomes --------------------------------------------------------------------------

    def bind_failed(self, pod_id: str) -> bool:
        """Set the task `pod_id` back to PENDING; return False if the task was not being bound."""
        task = self.tasks.get(pod_id)
        if task is None or task.status is not TaskStatus.BINDING:
            return False
        self._cluster.forget(task.info)
        task.job.set_status(task, TaskStatus.PENDING)
        task.node = ""
        self.touched[task.job.id] = None
        return True

    def eviction_failed(self, pod_id: str) -> bool:
        """Undo the eviction of the task `pod_id`; return False if it was not being evicted."""
        task = self.tasks.get(pod_id)
        if task is None or task.status is not TaskStatus.RELEASING:
            return False
        task.job.set_status(task, status_of(task.info.pod))
        if not task.info.terminating:
            self.releasing_pods.pop(pod_id, None)
        self.touched[task.job.id] = None
        return True

    def status_write_failed(self, target: ObjectRef) -> bool:
        """Mark a job as changed if `target` is its group or one of its pending tasks.

        The next session then writes the status again. Returns whether a job was marked.
        """
        if target.kind == Pod.__name__:
            task = self.tasks.get(target.uid or target.key)
            job = task.job if task is not None and task.status is TaskStatus.PENDING else None
        else:
            job = self.jobs.get(target.key)
            if job is not None and (job.group is None or job.group.ref != target):
                job = None
        if job is None:
            return False
        self.touched[job.id] = None
        return True

    # --- priorities ------------------------------------------------------------------------

    def _set_priorities(self) -> None:
        for job in self.jobs.values():
            self._set_priority(job)

    def _set_priority(self, job: JobInfo) -> None:
        """Set the priority of the job to the value of its priority class.

        If the class is not set or does not exist, use the default class. If there is no default
        class, use 0. If a group of scheduling.k8s.io sets a priority itself, that priority takes
        precedence. A job without a group keeps its priority. A group of Coscheduling has no
        priority class. Its job has the highest priority of its tasks, or 0 if it has no tasks.

        upstream: cache.go: Snapshot; scheduler-plugins pkg/coscheduling/coscheduling.go: Less
        """
        group = job.group
        if group is None:
            return
        if _has_priority_of_members(job):
            job.priority = _highest_priority(job)
            return
        if group.priority is not None:
            job.priority = group.priority
            return
        named = self.priority_classes.get(group.priority_class_name)
        if named is None:
            classes = self.priority_classes.values()
            named = next((c for c in classes if c.global_default), None)
        job.priority = named.value if named is not None else 0

    def validate(self) -> None:
        """Raise AssertionError if a stored sum, priority or index contradicts the tasks."""
        for job in self.jobs.values():
            fresh = JobInfo(job.id, job.group)
            for task in job.tasks.values():
                fresh.add(task)
            if _has_priority_of_members(job):
                assert job.priority == _highest_priority(job), job
            assert _trimmed(fresh.held) == _trimmed(job.held), job
            assert _trimmed(fresh.pending) == _trimmed(job.pending), job
            for mine, theirs in zip(fresh.by_status, job.by_status, strict=True):
                assert mine.keys() == theirs.keys(), job
        for pod_id, task in self.tasks.items():
            assert task.job.tasks[pod_id] is task, task


def _has_priority_of_members(job: JobInfo) -> bool:
    return job.group is not None and job.group.api_group == COSCHEDULING_API


def _highest_priority(job: JobInfo) -> int:
    return max((task.priority for task in job.tasks.values()), default=0)


def _preference(group: GroupInfo) -> int:
    return PREFERENCE.index(group.api_group) if group.api_group in PREFERENCE else -1


def _is_older_than_decision(task: TaskInfo, status: TaskStatus) -> bool:
    """Return whether the observed `status` is older than the last decision about `task`."""
    decided = task.status
    return (decided is TaskStatus.BINDING and status is TaskStatus.PENDING) or (
        decided is TaskStatus.RELEASING and status is TaskStatus.RUNNING
    )


def _trimmed(amounts: list[int]) -> list[int]:
    """Return `amounts` without trailing zeros."""
    end = len(amounts)
    while end and not amounts[end - 1]:
        end -= 1
    return amounts[:end]
