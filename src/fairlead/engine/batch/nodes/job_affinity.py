"""AffinityOfJobs: inter-pod affinity by kube-batch's rules (the defect `affinity-foreign-pod`).

The rules count only tasks that have a node and whose job is in this session. Every task is
evaluated for every node, which is slow.

upstream: predicates.go: InterPodAffinityMatches without metadata, at 1.16
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlead.engine.batch.info.job import TaskInfo
from fairlead.engine.batch.info.job_table import JobTable
from fairlead.engine.batch.info.task_status import ALLOCATED_STATUSES
from fairlead.engine.core.status import SKIP, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality
from fairlead.engine.plugins.inter_pod_affinity.filter import (
    NOT_ATTRACTED,
    REPELLED,
    REPELLED_BY_EXISTING,
    STATUSES,
)
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import (
    AffinityTerm,
    TermKind,
    affinity_terms,
    has_pod_affinity,
)
from fairlead.engine.state.pod_info import PodInfo

# namespace selectors were introduced later
_NO_NAMESPACE_LABELS: Mapping[str, str] = {}


class AffinityOfJobs:
    """PreFilter and Filter for inter-pod affinity among the tasks of the session's jobs."""

    name = "InterPodAffinity"
    locality = Locality.CLUSTER

    def __init__(self, jobs: JobTable, cluster: Cluster) -> None:
        """`jobs` contains the tasks that count as existing pods; other pods are ignored."""
        self._jobs = jobs
        self._cluster = cluster

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if neither the pod nor any placed task has affinity terms."""
        if has_pod_affinity(pod.shape.spec):
            return None
        has_terms = (has_pod_affinity(task.info.shape.spec) for task in self._placed())
        return None if any(has_terms) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return the status of the first affinity rule that `node` violates, or None."""
        placed = list(self._placed())
        if self._is_repelled_by_existing(pod, node, placed):
            return STATUSES[REPELLED_BY_EXISTING]
        if not has_pod_affinity(pod.shape.spec):
            return None
        terms = affinity_terms(pod.shape.spec, pod.namespace)
        if not self._is_attracted(_of(terms, TermKind.REQUIRED_AFFINITY), pod, node, placed):
            return STATUSES[NOT_ATTRACTED]
        apart = _of(terms, TermKind.REQUIRED_ANTI_AFFINITY)
        if any(self._is_met([term], node, placed) for term in apart):
            return STATUSES[REPELLED]
        return None

    def _placed(self) -> Iterator[TaskInfo]:
        """Yield the tasks that have a node and belong to a job with a group and a queue.

        upstream: plugins/util/util.go: PodLister.FilteredList.
        """
        for job in self._jobs.jobs.values():
            if job.group is not None and job.queue in self._jobs.queues:
                for status in ALLOCATED_STATUSES:
                    yield from job.by_status[status].values()

    def _is_repelled_by_existing(
        self, pod: PodInfo, node: NodeInfo, placed: list[TaskInfo]
    ) -> bool:
        mine = _pod_class(pod)
        for task in placed:
            if not has_pod_affinity(task.info.shape.spec):
                continue
            terms = affinity_terms(task.info.shape.spec, task.info.namespace)
            for term in _of(terms, TermKind.REQUIRED_ANTI_AFFINITY):
                if _matches(term, mine) and self._shares(node, task, term):
                    return True
        return False

    def _is_attracted(
        self, terms: list[AffinityTerm], pod: PodInfo, node: NodeInfo, placed: list[TaskInfo]
    ) -> bool:
        """Return whether a task in `placed` matches all `terms` in the topology domains of `node`.

        If no task in `placed` matches all `terms` on any node, return whether `pod` itself matches
        all `terms`. If `terms` is empty, return True.
        """
        if not terms or self._is_met(terms, node, placed):
            return True
        matching = (task for task in placed if _all_match(terms, _pod_class(task.info)))
        return next(matching, None) is None and _all_match(terms, _pod_class(pod))

    def _is_met(self, terms: list[AffinityTerm], node: NodeInfo, placed: list[TaskInfo]) -> bool:
        return any(
            _all_match(terms, _pod_class(task.info))
            and all(self._shares(node, task, term) for term in terms)
            for task in placed
        )

    def _shares(self, node: NodeInfo, task: TaskInfo, term: AffinityTerm) -> bool:
        """Return whether the task's node is in the same topology domain as `node`."""
        found = self._cluster.table.find(task.node)
        key, value = term.topology_key, node.labels.get(term.topology_key)
        return found is not None and value is not None and found.labels.get(key) == value


def _of(terms: tuple[AffinityTerm, ...], kind: TermKind) -> list[AffinityTerm]:
    return [term for term in terms if term.kind is kind]


def _pod_class(pod: PodInfo) -> PodClass:
    return PodClass(pod.namespace, pod.labels, terminating=pod.terminating)


def _matches(term: AffinityTerm, pods: PodClass) -> bool:
    return term.matches(pods, _NO_NAMESPACE_LABELS)


def _all_match(terms: list[AffinityTerm], pods: PodClass) -> bool:
    return all(_matches(term, pods) for term in terms)
