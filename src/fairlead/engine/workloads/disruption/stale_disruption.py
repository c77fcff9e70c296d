"""Resets stale DisruptionTarget conditions, after disruptions that did not happen.

A component that is about to delete a pod sets the condition first. If the deletion does not follow
within two minutes, the condition is set to False. The kubelet's own conditions are not touched,
because graceful shutdown may take longer.

upstream: pkg/controller/disruption/disruption.go:nonTerminatingPodHasStaleDisruptionCondition
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Command, Condition, ObjectRef, PatchStatus
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.identity import pod_ref

DISRUPTION_TARGET: Final = "DisruptionTarget"
TERMINATION_BY_KUBELET: Final = "TerminationByKubelet"
STALE_AFTER: Final[DurationNs] = seconds(120)


@dataclass(slots=True)
class StaleDisruptions:
    """Pods with a DisruptionTarget condition, and when it becomes stale."""

    _announced: dict[str, tuple[ObjectRef, Instant]] = field(default_factory=dict)  # by pod key
    _timers: TimerQueue[str] = field(default_factory=TimerQueue)

    def see(self, pod: Pod) -> None:
        """Stores the newest version of `pod`."""
        due = _stale_at(pod)
        if due is None:
            self._announced.pop(pod.key, None)
        elif self._announced.get(pod.key) != (pod_ref(pod), due):
            self._announced[pod.key] = (pod_ref(pod), due)
            self._timers.add(due, pod.key)

    def forget(self, pod: Pod) -> None:
        """Removes `pod`."""
        self._announced.pop(pod.key, None)

    def next_due(self) -> Instant | None:
        """When the next condition becomes stale."""
        return self._timers.next_due()

    def reset_stale(self, now: Instant) -> list[Command]:
        """Resets the conditions that are stale at `now`."""
        commands: list[Command] = []
        for key in self._timers.pop_due(now):
            announced = self._announced.get(key)
            if announced is not None and announced[1] <= now:
                del self._announced[key]
                taken_back = Condition(DISRUPTION_TARGET, "False")
                commands.append(PatchStatus(announced[0], conditions=(taken_back,)))
        return commands


def _stale_at(pod: Pod) -> Instant | None:
    target = condition(pod, DISRUPTION_TARGET)
    if target is None or target.status != "True" or target.reason == TERMINATION_BY_KUBELET:
        return None
    if is_terminating(pod) or is_terminal(pod) or not target.last_transition_time:
        return None
    return parse_timestamp(target.last_transition_time) + STALE_AFTER
