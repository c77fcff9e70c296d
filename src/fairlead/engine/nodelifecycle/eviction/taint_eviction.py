"""TaintEviction: evicts pods that do not tolerate the NoExecute taints of their node.

    not tolerated            cancel the pod's timer, if it has one, and evict the pod now
    tolerated for a time     start a timer when the taint is first seen, and evict the pod when the
                             time is over; a running timer is not replaced by another finite timer
    tolerated forever        cancel the pod's timer
    no taints left           cancel the pod's timer

Evictions by this controller have no rate limit and ignore PodDisruptionBudgets. But not-ready nodes
are tainted at a limited rate. A terminating pod is evaluated like any other pod. So a terminating
pod may be deleted again when the taints of its node change.

upstream: pkg/controller/tainteviction/taint_eviction.go, timed_workers.go (before 1.29 part of the
node lifecycle controller: pkg/controller/nodelifecycle/scheduler/taint_manager.go);
pkg/apis/core/v1/helper/helpers.go:GetMatchingTolerations
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.api.nodes.readiness import TRUE
from fairlead.api.nodes.taint import NO_EXECUTE, taint_text, tolerates
from fairlead.api.objects import ApiObject, Node, Pod, Taint, Toleration
from fairlead.api.pods.facts import condition, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
    observed,
    pod_ref,
)
from fairlead.engine.core.instant import DurationNs, Instant, earliest, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.reporter import EvictionCancelled, EvictionTimed, PodEvicted, Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.profile import VersionProfile
from fairlead.engine.nodelifecycle.well_known import DISRUPTION_TARGET

EVENT_REASON: Final = "TaintManagerEviction"
DISRUPTED: Final = Condition(
    DISRUPTION_TARGET,
    TRUE,
    "DeletionByTaintManager",
    "Taint manager: deleting due to NoExecute taint",
)
TRIES_MAX: Final = 5
RETRY_AFTER: Final[DurationNs] = seconds(0.01)
GONE: Final = (FailureReason.NOT_FOUND, FailureReason.CONFLICT)


class _Timer(Struct, eq=False):
    """A timer that evicts a pod at `due`. The pod's toleration counts from `since`."""

    pod: ObjectRef
    since: Instant
    due: Instant
    is_cancelled: bool = False


class _Deletion(Struct):
    """A pod's deletion that was sent and has no outcome yet, or that waits for its next try."""

    command: DeleteObject
    node: str
    why: str
    tries: int = 1


class TaintEviction:
    """The controller that evicts pods which do not tolerate the NoExecute taints of their node."""

    issuer: ClassVar[Issuer] = controller_account("taint-eviction-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, Node),
        deleted=(Pod, Node),
        succeeded=(DeleteObject,),
        failed=(DeleteObject,),
        readiness=False,
    )

    def __init__(
        self,
        profile: VersionProfile,
        reporter: Reporter,
        pods: NodePods | None = None,
        *,
        is_taking_over: bool = False,
    ) -> None:
        """Start without timers; `pods` may be shared with other controllers.

        If `is_taking_over` is set, the first list of objects counts as already processed. The timer
        of a pod in this list starts at the time since which the pod and all NoExecute taints of its
        node have existed. Terminating pods in this list get no timer.
        """
        self._profile = profile
        self._reporter = reporter
        self._is_taking_over = is_taking_over
        self._pods = NodePods() if pods is None else pods
        self._taints: dict[str, tuple[Taint, ...]] = {}  # NoExecute taints of existing nodes
        self._timers: dict[str, _Timer] = {}  # by pod key
        self._due: TimerQueue[_Timer] = TimerQueue()
        self._remembered: dict[str, None] = {}  # keys of pods evicted by a timer (1.16)
        self._deletions: dict[ObjectRef, _Deletion] = {}
        self._retries: TimerQueue[ObjectRef] = TimerQueue()

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Evaluate the pods that `stimulus` affects; return the evictions and their events."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            changed = stimulus.object
            if type(changed) is Node:
                return self._observe_node(changed, now)
            if type(changed) is Pod:
                return self.handle_pod(changed, now)
        elif type(stimulus) is ObjectDeleted:
            return self._forget(stimulus.object, now)
        elif type(stimulus) is ObjectsLoaded:
            return self._load(stimulus, now)
        elif type(stimulus) is CommandSucceeded and type(stimulus.command) is DeleteObject:
            self._observe_deleted(stimulus.command, now)
        elif type(stimulus) is CommandFailed and type(stimulus.command) is DeleteObject:
            self._observe_refused(stimulus.command, stimulus.reason, now)
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> list[Command]:
        """Handle the changed `pod`, as `handle` does; return the resulting commands."""
        before = self._pods.put(pod)
        if before is not None and _is_same_pod(before, pod):
            return []
        commands: list[Command] = []
        if before is not None and before.metadata.uid != pod.metadata.uid:
            commands += self._cancel(pod.key, now)
        taints = self._taints.get(pod.spec.node_name)
        return commands + (self._evaluate(pod, taints, now) if taints else [])

    def next_deadline(self) -> Instant | None:
        """Return the earliest time at which a toleration expires or a deletion is retried.

        Returns None if neither is pending.
        """
        return earliest(self._due.next_due(), self._retries.next_due())

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Evict the pods whose tolerations have expired, and retry failed deletions."""
        commands: list[Command] = []
        for timer in self._due.pop_due(now):
            if not timer.is_cancelled:
                commands += self._fire(timer)
        for ref in self._retries.pop_due(now):
            if ref in self._deletions:
                commands.append(self._deletions[ref].command)
        return commands

    # --- observations --------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> list[Command]:
        self._pods.load(loaded)
        nodes = (one for one in loaded.others if isinstance(one, Node))
        commands = [c for node in nodes for c in self._observe_node(node, now)]
        self._is_taking_over = False
        return commands

    def _observe_node(self, node: Node, now: Instant) -> list[Command]:
        """Evaluate the pods of a node if its taints have changed.

        The pods of a new node are evaluated even if the node has no taints. These pods may have
        timers from an earlier node of the same name.
        """
        name = node.metadata.name
        taints = tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
        if self._taints.get(name) == taints:
            return []
        self._taints[name] = taints
        if not taints and not self._timers and not self._remembered:
            return []  # nothing to cancel
        return [c for pod in self._pods.on(name) for c in self._evaluate(pod, taints, now)]

    def _forget(self, gone: ApiObject, now: Instant) -> list[Command]:
        """Remove a deleted node or pod. The deletion of a node cancels no timers."""
        if type(gone) is Pod:
            self._pods.remove(gone)
            return self._cancel(gone.key, now)
        if type(gone) is Node:
            self._taints.pop(gone.metadata.name, None)
        return []

    # --- tolerations ---------------------------------------------------------------------------

    def _evaluate(self, pod: Pod, taints: tuple[Taint, ...], now: Instant) -> list[Command]:
        if not taints:
            return self._cancel(pod.key, now)
        limit_s = tolerated_s(taints, pod.spec.tolerations)
        if limit_s is ENDLESS:
            return self._cancel(pod.key, now) if self._profile.cancels_when_endless else []
        if limit_s < 0:
            return [*self._cancel(pod.key, now), *self._evict(pod, taints)]
        return self._time(pod, taints, limit_s, now)

    def _time(
        self, pod: Pod, taints: tuple[Taint, ...], limit_s: int, now: Instant
    ) -> list[Command]:
        """Start a timer that evicts the pod in `limit_s` seconds; if `limit_s` is 0, evict it now.

        If the pod already has a timer that was started before `now`, nothing changes.
        """
        if self._is_taking_over and is_terminating(pod):
            return []
        key = pod.key
        running = self._timers.get(key)
        if (running is not None and running.since < now) or key in self._remembered:
            return []
        if running is not None:
            self._stop(key)
        if limit_s == 0:
            return list(self._evict(pod, taints))
        since = _tolerated_since(pod, taints, now) if self._is_taking_over else now
        due = max(now, since + seconds(limit_s))
        timer = self._timers[key] = _Timer(pod_ref(pod), since, due)
        self._due.add(timer.due, timer)
        names, node = tuple(map(taint_text, _causes(pod, taints))), pod.spec.node_name
        self._reporter.report(EvictionTimed(timer.pod, node, names, limit_s, timer.due, now))
        return []

    def _cancel(self, key: str, now: Instant) -> list[Command]:
        timer = self._stop(key)
        self._remembered.pop(key, None)
        if timer is None:
            return []
        self._reporter.report(EvictionCancelled(timer.pod, now))
        return [self._event(timer.pod, f"Cancelling deletion of Pod {key}")]

    def _stop(self, key: str) -> _Timer | None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.is_cancelled = True
        return timer

    # --- evictions -----------------------------------------------------------------------------

    def _fire(self, timer: _Timer) -> Iterable[Command]:
        del self._timers[timer.pod.key]
        pod = self._pods.get(timer.pod.key)
        if pod is None:
            return ()
        if self._profile.remembers_evicted:
            self._remembered[timer.pod.key] = None
        return self._evict(pod, self._taints.get(pod.spec.node_name, ()))

    def _evict(self, pod: Pod, taints: tuple[Taint, ...]) -> Iterator[Command]:
        ref = pod_ref(pod)
        yield self._event(ref, f"Marking for deletion Pod {pod.key}")
        if self._profile.adds_disruption_target and not _is_marked(pod):
            disrupted = observed(DISRUPTED, pod.metadata.generation)
            yield PatchStatus(ref, conditions=(disrupted,))
        causes = _causes(pod, taints)
        why = f"taint {', '.join(map(taint_text, causes))}" if causes else "taint"
        delete = DeleteObject(ref, why=why)
        if not is_terminating(pod):
            self._deletions[ref] = _Deletion(delete, pod.spec.node_name, why)
        yield delete

    def _event(self, regarding: ObjectRef, note: str) -> RecordEvent:
        source = self._profile.eviction_source
        return RecordEvent(regarding, "Normal", EVENT_REASON, "", note, source)

    def _observe_deleted(self, command: DeleteObject, now: Instant) -> None:
        done = self._deletions.get(command.target)
        if done is not None and done.command == command:
            del self._deletions[command.target]
            self._reporter.report(PodEvicted(command.target, done.node, done.why, now))

    def _observe_refused(self, command: DeleteObject, reason: FailureReason, now: Instant) -> None:
        """Retry a deletion that failed, up to TRIES_MAX tries; give up if the pod is gone."""
        done = self._deletions.get(command.target)
        if done is None or done.command != command:
            return
        if reason in GONE or done.tries == TRIES_MAX:
            del self._deletions[command.target]
            return
        done.tries += 1
        self._retries.add(now + RETRY_AFTER, command.target)


def _causes(pod: Pod, taints: tuple[Taint, ...]) -> Sequence[Taint]:
    """Return those of `taints` that `pod` does not tolerate, or tolerates for a limited time.

    Returns all of `taints` if the pod tolerates all of them forever. In some versions, the pod's
    running timer then goes on and may still evict the pod (`VersionProfile.cancels_when_endless`).
    """
    found = [one for one in taints if tolerated_s((one,), pod.spec.tolerations) is not ENDLESS]
    return found or taints


def _tolerated_since(pod: Pod, taints: tuple[Taint, ...], now: Instant) -> Instant:
    """Return the time since which the pod and all of `taints` have existed.

    A timestamp that is missing or invalid counts as `now`.
    """
    texts = (pod.metadata.creation_timestamp, *(taint.time_added for taint in taints))
    return min(now, max(_instant(text, now) for text in texts))


def _instant(text: str, otherwise: Instant) -> Instant:
    try:
        return parse_timestamp(text) if text else otherwise
    except ValueError:
        return otherwise


def _is_same_pod(before: Pod, after: Pod) -> bool:
    return (
        before.metadata.uid == after.metadata.uid
        and before.spec.node_name == after.spec.node_name
        and before.spec.tolerations == after.spec.tolerations
    )


def _is_marked(pod: Pod) -> bool:
    found = condition(pod, DISRUPTION_TARGET)
    return found is not None and (found.status, found.reason, found.message) == (
        DISRUPTED.status,
        DISRUPTED.reason,
        DISRUPTED.message,
    )


ENDLESS: Final = None


def tolerated_s(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int | None:
    """Return the seconds until the pod is evicted: ENDLESS (None) for never, -1 for immediately.

    `taints` must not be empty. If any of them is not tolerated, the pod is evicted immediately.
    For each taint, the first matching toleration applies, even if a later one lasts longer. The
    taint whose toleration ends first determines the result.
    """
    shortest: int | None = ENDLESS
    for taint in taints:
        used = next((one for one in tolerations if tolerates(one, taint)), None)
        if used is None:
            return -1
        limit = used.toleration_seconds
        if limit is not None and (shortest is None or limit < shortest):
            shortest = max(0, limit)
    return shortest
