"""Preemptions: all preemptions in progress, by preemptor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from fairlead.engine.core.command import Command
from fairlead.engine.core.status import Status, unschedulable
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.preemption.default_preemption import NAME
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

_IN_PROGRESS = unschedulable("waiting for the preemption for this pod to be finished").by(NAME)


class Execution(Protocol):
    """How one preemptor's preemption is carried out (`PreemptionExecution`).

    With `is_synchronous` the preemptor's scheduling cycle ends when the execution is done; `failed`
    then means that nothing was preempted for it.
    """

    is_synchronous: ClassVar[bool]
    preemptor: PodInfo
    failed: bool

    @property
    def is_done(self) -> bool:
        """Whether nothing more will be sent."""
        ...

    @property
    def erred(self) -> bool:
        """Whether the preemptor must be tried again at once."""
        ...

    def start(self) -> list[Command]:
        """Return the first commands."""
        ...

    def answer(self, outcome: CommandSucceeded | CommandFailed) -> list[Command]:
        """Return the commands that follow from the outcome of an earlier one."""
        ...

    def holds_back(self, pods: Mapping[str, PodInfo]) -> bool:
        """Return whether the preemptor may not be tried yet; `pods` are all pods by key."""
        ...


NewExecution = Callable[
    [PodInfo, str, tuple[PodInfo, ...], tuple[PodInfo, ...], Callable[[PodInfo], bool]],
    Execution | None,
]


class Preemptions:
    """Starts and continues preemptions, and keeps preemptors out of the queue meanwhile."""

    def __init__(
        self,
        cluster: Cluster,
        nominator: Nominator,
        waiting: WaitingPods,
        new_execution: NewExecution,
    ) -> None:
        """Start without preemptions; victims that are `waiting` are requeued, not deleted."""
        self._cluster = cluster
        self._nominator = nominator
        self._waiting = waiting
        self._new_execution = new_execution
        self._by_preemptor: dict[str, Execution] = {}

    def start(self, pod: PodInfo, room: PostFilterResult) -> tuple[list[Command], Execution | None]:
        """Return the first commands, and the preemption if its outcome is to be awaited."""
        node = room.nominated_node or ""
        rivals = self._nominator.pods_on(node)
        lower = tuple(rival for rival in rivals if rival.priority < pod.priority)
        execution = self._new_execution(pod, node, lower, room.victims, self._reject)
        if execution is None:
            return [], None
        self._by_preemptor[pod.id] = execution
        commands = execution.start()
        if execution.is_done:
            del self._by_preemptor[pod.id]
            return commands, None
        return commands, execution if execution.is_synchronous else None

    def _reject(self, victim: PodInfo) -> bool:
        if self._waiting.find(victim.id) is None:
            return False
        self._waiting.reject(victim.id, NAME, "preempted")
        return True

    def answer(
        self, outcome: CommandSucceeded | CommandFailed
    ) -> tuple[list[Command], list[PodInfo]]:
        """Return the commands that follow from `outcome`, and the preemptors that failed."""
        commands: list[Command] = []
        failed: list[PodInfo] = []
        for key, execution in list(self._by_preemptor.items()):
            commands += execution.answer(outcome)
            if execution.is_done:
                del self._by_preemptor[key]
                if execution.erred:
                    failed.append(execution.preemptor)
        return commands, failed

    def gate(self, pod: PodInfo) -> Status | None:
        """Return why `pod` may not be tried yet, while its preemption holds it back.

        upstream: default_preemption.go: PreEnqueue
        """
        execution = self._by_preemptor.get(pod.id)
        if execution is None or not execution.holds_back(self._cluster.pods):
            return None
        return _IN_PROGRESS
