"""Preemptions: all preemptions in progress, by preemptor."""

from __future__ import annotations

from fairlead.engine.core.command import Command
from fairlead.engine.core.status import Status, unschedulable
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.preemption.default_preemption import NAME
from fairlead.engine.scheduling.preemption.execution import PreemptionExecution
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

_IN_PROGRESS = unschedulable("waiting for the preemption for this pod to be finished").by(NAME)


class Preemptions:
    """Starts and continues preemptions, and keeps preemptors out of the queue meanwhile."""

    def __init__(self, cluster: Cluster, nominator: Nominator, waiting: WaitingPods) -> None:
        """Start without preemptions; victims that are `waiting` are requeued, not deleted."""
        self._cluster = cluster
        self._nominator = nominator
        self._waiting = waiting
        self._by_preemptor: dict[str, PreemptionExecution] = {}

    def start(self, pod: PodInfo, room: PostFilterResult) -> list[Command]:
        """The first commands; none if every victim is already being deleted.

        In that case nominations of lower-priority pods also stay, as in upstream.
        """
        leaving = tuple(victim for victim in room.victims if not victim.terminating)
        if not leaving:
            return []
        node = room.nominated_node or ""
        rivals = self._nominator.pods_on(node)
        lower = tuple(rival for rival in rivals if rival.priority < pod.priority)
        execution = PreemptionExecution(pod, node, lower, leaving, self._reject)
        self._by_preemptor[pod.id] = execution
        commands = execution.start()
        if execution.is_done:
            del self._by_preemptor[pod.id]
        return commands

    def _reject(self, victim: PodInfo) -> bool:
        if self._waiting.find(victim.id) is None:
            return False
        self._waiting.reject(victim.id, NAME, "preempted")
        return True

    def answer(
        self, outcome: CommandSucceeded | CommandFailed
    ) -> tuple[list[Command], list[PodInfo]]:
        """The commands that follow from `outcome`, and the preemptors whose preemption failed."""
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
        """Why `pod` may not be tried yet: the deletion of its last victim was not sent.

        upstream: default_preemption.go: PreEnqueue; executor.go: IsPodRunningPreemption
        """
        execution = self._by_preemptor.get(pod.id)
        if execution is None:
            return None
        if not execution.is_removing_last:
            return _IN_PROGRESS
        last = self._cluster.pods.get(execution.last_victim.key)
        if last is None or last.id != execution.last_victim.id or last.terminating:
            return None
        return _IN_PROGRESS
