"""Preemptions: all preemptions in progress, keyed by preemptor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.core.status import Status, unschedulable
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.scheduling.preemption.default_preemption import NAME
from fairlead.engine.scheduling.preemption.execution import new_execution as new_group_execution
from fairlead.engine.scheduling.preemption.unbound_victims import UnboundVictims
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo

_IN_PROGRESS = unschedulable("waiting for the preemption for this pod to be finished").by(NAME)
_GROUP_IN_PROGRESS = unschedulable(
    "waiting for the preemption for this pod group to be finished"
).by(NAME)
# upstream: executor.go: actuatePodGroupPreemption
_WHOLE_CLUSTER = "cluster"


class Execution(Protocol):
    """Protocol for one preemption in progress, such as `PreemptionExecution`.

    If `is_synchronous` is set, the preemptor's scheduling cycle does not end before the preemption
    is done. If `failed` is set when the preemption is done, the preemptor is not nominated.
    """

    is_synchronous: ClassVar[bool]
    preemptor: PodInfo
    failed: bool

    @property
    def is_done(self) -> bool:
        """Whether all commands have been sent and their outcomes received."""
        ...

    @property
    def must_retry(self) -> bool:
        """Whether the preemptor must be retried immediately."""
        ...

    def start(self) -> list[Command]:
        """Return the first commands of the preemption."""
        ...

    def handle_outcome(self, outcome: CommandSucceeded | CommandFailed) -> list[Command] | None:
        """Return the next commands after `outcome`.

        Returns None if another preemption sent the command.
        """
        ...

    def must_wait(self, pods: Mapping[str, PodInfo]) -> bool:
        """Return whether the preemptor must wait until the deletion of all victims has begun.

        The victim that is deleted last must be terminating or gone.

        `pods` are all pods in the cluster, keyed by `namespace/name`.
        """
        ...


NewExecution = Callable[
    [PodInfo, str, tuple[PodInfo, ...], tuple[PodInfo, ...], UnboundVictims],
    Execution | None,
]


class Preemptions:
    """Starts and continues preemptions, and gates pods while they wait for a preemption."""

    def __init__(
        self,
        cluster: Cluster,
        nominator: Nominator,
        unbound: UnboundVictims,
        new_execution: NewExecution,
    ) -> None:
        """Start without preemptions; `unbound` requeues victims that are not bound yet."""
        self._cluster = cluster
        self._nominator = nominator
        self._unbound = unbound
        self._new_execution = new_execution
        self._by_preemptor: dict[str, Execution] = {}

    def start(
        self, pod: PodInfo, result: PostFilterResult
    ) -> tuple[list[Command], Execution | None]:
        """Start a preemption; return (its first commands, its Execution).

        The Execution is None if the cycle need not wait for the end of the preemption.
        """
        node = result.nominated_node or ""
        rivals = self._nominator.pods_on(node)
        lower = tuple(rival for rival in rivals if rival.priority < pod.priority)
        execution = self._new_execution(pod, node, lower, result.victims, self._unbound)
        if execution is None:
            return [], None
        commands = self._begin(pod.id, execution)
        waits = execution.is_synchronous and not execution.is_done
        return commands, execution if waits else None

    def start_group(
        self, pod: PodInfo, group: ObjectRef, victims: tuple[PodInfo, ...]
    ) -> list[Command]:
        """Start the preemption for `group`, which contains `pod`; return its first commands."""
        execution = new_group_execution(pod, _WHOLE_CLUSTER, (), victims, self._unbound, group)
        return [] if execution is None else self._begin(_group_id(pod), execution)

    def _begin(self, preemptor: str, execution: Execution) -> list[Command]:
        self._by_preemptor[preemptor] = execution
        commands = execution.start()
        if execution.is_done:
            del self._by_preemptor[preemptor]
        return commands

    def handle_outcome(
        self, outcome: CommandSucceeded | CommandFailed
    ) -> tuple[list[Command], list[PodInfo]]:
        """Return the next commands after `outcome`, and the preemptors to retry immediately."""
        for key, execution in self._by_preemptor.items():
            commands = execution.handle_outcome(outcome)
            if commands is not None:
                return commands, self._end_if_done(key, execution)
        return [], []

    def _end_if_done(self, key: str, execution: Execution) -> list[PodInfo]:
        """Remove `execution` if it is done; return the preemptor if it must be retried now.

        The result is a list, which is empty if the preemptor need not be retried.
        """
        if not execution.is_done:
            return []
        del self._by_preemptor[key]
        return [execution.preemptor] if execution.must_retry else []

    def gate(self, pod: PodInfo) -> Status | None:
        """Return a rejection while `pod` waits for a preemption that it or its PodGroup started.

        upstream: default_preemption.go: PreEnqueue
        """
        if not self._by_preemptor:
            return None
        if self._must_wait(pod.id):
            return _IN_PROGRESS
        is_member = pod.pod.spec.scheduling_group is not None
        return _GROUP_IN_PROGRESS if is_member and self._must_wait(_group_id(pod)) else None

    def _must_wait(self, preemptor: str) -> bool:
        execution = self._by_preemptor.get(preemptor)
        return execution is not None and execution.must_wait(self._cluster.pods)


def _group_id(pod: PodInfo) -> str:
    return f"group {group_key(pod)}"
