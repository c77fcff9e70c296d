"""HorizontalPodAutoscalers: syncs each autoscaler every 15 s, starting 15 s after its creation.

A change of a pod, a target or an autoscaler takes effect at the next sync of the autoscaler.

upstream: pkg/controller/podautoscaler/horizontal.go, rate_limiters.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct, field

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import (
    ApiObject,
    HorizontalPodAutoscaler,
    LabelSelector,
    Pod,
    Unstructured,
)
from fairlead.api.pods.replicas import Replicas, pod_at
from fairlead.api.selector import selector_matches
from fairlead.engine.core.command import Command, PatchObject, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.event_sink import EventSink, NoEvents
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import (
    SCALABLE,
    NoOtherScales,
    OtherScales,
    ScaleError,
    ScaleTargets,
    is_scale_target,
)
from fairlead.engine.workloads.horizontal_pod_autoscaler.status import CONTROLLER

if TYPE_CHECKING:
    from fairlead.engine.workloads.horizontal_pod_autoscaler.autoscaler import (
        Autoscaler,
        Rescale,
        Rivals,
    )

Labels = Mapping[str, str]
LabelsKey = tuple[tuple[str, str], ...]

SCALABLE_KINDS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class _Namespace(Struct):
    """The autoscalers and pods of a namespace, by name.

    `selecting` caches, for each set of labels, the names of the autoscalers that select pods with
    these labels. `by_labels` caches the pods by their labels. `by_labels` is None after a pod has
    changed. `generation` counts changes of selectors.
    """

    autoscalers: dict[str, Autoscaler] = field(default_factory=dict)
    pods: LazyDict[Pod] = field(default_factory=lambda: LazyDict(pod_at))
    selecting: dict[LabelsKey, tuple[str, ...]] = field(default_factory=dict)
    by_labels: dict[LabelsKey, dict[str, Pod]] | None = None
    generation: int = 0

    def forget_selectors(self) -> None:
        """Drop the cache `selecting` after an autoscaler was deleted or its selector changed."""
        self.selecting.clear()
        self.generation += 1

    def add_selector(self, name: str, selector: LabelSelector) -> None:
        """Add the autoscaler `name`, which had no selector before, to the cache `selecting`."""
        self.generation += 1
        for key, names in self.selecting.items():
            if selector_matches(selector, dict(key)):
                self.selecting[key] = (*names, name)

    def matching(self, selector: LabelSelector) -> dict[str, Pod]:
        """Return the pods that `selector` matches, by name."""
        if self.by_labels is None:
            self.by_labels = {}
            for name, pod in self.pods.items():
                key = _labels_key(pod.metadata.labels)
                self.by_labels.setdefault(key, {})[name] = pod
        found: dict[str, Pod] = {}
        for key, pods in self.by_labels.items():
            if selector_matches(selector, dict(key)):
                found |= pods
        return found

    def selected_by(self, labels: Labels) -> tuple[str, ...]:
        """Return the names of the autoscalers whose selectors match `labels`."""
        key = _labels_key(labels)
        found = self.selecting.get(key)
        if found is None:
            found = self.selecting[key] = tuple(
                name
                for name, one in self.autoscalers.items()
                if one.selector is not None and selector_matches(one.selector, labels)
            )
        return found


def _labels_key(labels: Labels) -> LabelsKey:
    return tuple(sorted(labels.items()))


class HorizontalPodAutoscalers:
    """The HorizontalPodAutoscaler controller.

    `history` contains each change of a target's number of replicas, in chronological order.
    """

    issuer: ClassVar[Issuer] = controller_account(CONTROLLER)
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, HorizontalPodAutoscaler, *SCALABLE, Unstructured),
        deleted=(Pod, HorizontalPodAutoscaler, *SCALABLE, Unstructured),
        succeeded=(PatchObject,),
        failed=(PatchObject,),
    )

    def __init__(
        self,
        config: HorizontalPodAutoscalerConfig | None = None,
        events: EventSink | None = None,
        others: OtherScales | None = None,
    ) -> None:
        self._config = config or HorizontalPodAutoscalerConfig()
        self._events = events or NoEvents()
        self._namespaces: dict[str, _Namespace] = {}
        self._targets = ScaleTargets(others or NoOtherScales())
        self._queue: TimerQueue[tuple[str, str]] = TimerQueue()
        self.history: list[Rescale] = []

    @property
    def autoscalers(self) -> Iterable[Autoscaler]:
        """All autoscalers, grouped by namespace."""
        for namespace in self._namespaces.values():
            yield from namespace.autoscalers.values()

    def replicas_of(self, autoscaler: Autoscaler) -> int | None:
        """Return the replicas of the autoscaler's target; None if the target has no scale."""
        try:
            namespace = autoscaler.view.metadata.namespace
            return self._targets.find(autoscaler.view.spec.scale_target_ref, namespace).replicas
        except ScaleError:
            return None

    def is_waiting(self) -> bool:
        """Return whether any autoscaler has a sync scheduled."""
        return any(one.due is not None for one in self.autoscalers)

    # --- Controller ----------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Store a changed object, or forget a deleted one.

        After the success or failure of a scale patch, returns the commands that report this outcome
        in the autoscaler's status and events.
        """
        match stimulus:
            case ObjectChanged(one):
                self._observe(one, now)
            case ObjectDeleted(one):
                self._forget(one, now)
            case ObjectsLoaded():
                self._load(stimulus, now)
            case CommandSucceeded(PatchObject() as command):
                return self._handle_outcome(command, None)
            case CommandFailed(PatchObject() as command, _, message):
                return self._handle_outcome(command, message)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Store a changed pod; return no commands."""
        meta = pod.metadata
        namespace = self._namespace(meta.namespace)
        if namespace.autoscalers:
            self._update(pod, namespace, now)
        namespace.pods[meta.name] = pod
        namespace.by_labels = None
        return ()

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next sync is due, or None if no sync is scheduled."""
        return self._queue.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Sync the autoscalers that are due."""
        commands: list[Command] = []
        for namespace, name in self._queue.pop_due(now):
            one = self._namespace(namespace).autoscalers.get(name)
            if one is None or one.due is None or one.due > now:
                continue  # deleted, or another queue entry is for its next sync
            if one.pending is not None:  # the previous scale patch is in flight
                one.due = now + self._config.sync_period
            else:
                register = partial(self._register, one, now)
                commands += self._sent(one.sync(self._targets, register, now))
            self._enqueue(one)
        return commands

    # --- changes -------------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> None:
        for one in loaded.others:  # a CustomResourceDefinition may follow its objects
            self._targets.others.observe(one)
        for some in loaded.grouped:
            if isinstance(some, Replicas):
                self._load_replicas(some, now)
            else:
                self._observe(some, now)

    def _observe(self, one: ApiObject, now: Instant) -> None:
        match one:
            case Pod():
                self.handle_pod(one, now)
            case HorizontalPodAutoscaler():
                self._observe_autoscaler(one, now)
            case _ if is_scale_target(one):
                if self._targets.observe(one):
                    self._wake_autoscalers_of(one, now)
            case _ if self._targets.others.observe(one):
                self._wake_autoscalers_of(one, now)
            case _:
                pass

    def _forget(self, one: ApiObject, now: Instant) -> None:
        match one:
            case Pod():
                self._forget_pod(one, now)
            case HorizontalPodAutoscaler():
                namespace = self._namespace(one.metadata.namespace)
                namespace.autoscalers.pop(one.metadata.name, None)
                namespace.forget_selectors()
                self._wake_all(namespace, now)  # their pods may no longer be selected twice
            case _ if is_scale_target(one):
                self._targets.forget(one)
                self._wake_autoscalers_of(one, now)
            case _ if self._targets.others.forget(one):
                self._wake_autoscalers_of(one, now)
            case _:
                pass

    def _update(self, pod: Pod, namespace: _Namespace, now: Instant) -> None:
        """Update the autoscalers that select `pod`, or have selected its stored version."""
        meta = pod.metadata
        before = namespace.pods.get(meta.name)
        if before is not None and before.metadata.labels != meta.labels:
            self._remove(before, namespace, now)
        for name in namespace.selected_by(meta.labels):
            one = namespace.autoscalers[name]
            one.pods[meta.name] = pod
            self._wake(one, now)

    def _load_replicas(self, replicas: Replicas, now: Instant) -> None:
        """Store pods, as `handle_pod` does for each of them."""
        namespace = self._namespace(replicas[0].metadata.namespace)
        if namespace.autoscalers:
            for pod in replicas:
                self.handle_pod(pod, now)
            return
        namespace.pods.load(replicas.rows_by_name)
        namespace.by_labels = None

    def _forget_pod(self, pod: Pod, now: Instant) -> None:
        namespace = self._namespace(pod.metadata.namespace)
        known = namespace.pods.pop(pod.metadata.name, None)
        namespace.by_labels = None
        if known is not None and namespace.autoscalers:
            self._remove(known, namespace, now)

    def _remove(self, pod: Pod, namespace: _Namespace, now: Instant) -> None:
        for name in namespace.selected_by(pod.metadata.labels):
            one = namespace.autoscalers[name]
            one.pods.pop(pod.metadata.name, None)
            self._wake(one, now)

    def _observe_autoscaler(self, view: HorizontalPodAutoscaler, now: Instant) -> None:
        namespace = self._namespace(view.metadata.namespace)
        name = view.metadata.name
        known = namespace.autoscalers.get(name)
        if known is None or known.view.metadata.uid != view.metadata.uid:
            # Few simulated clusters have an autoscaler.
            from fairlead.engine.workloads.horizontal_pod_autoscaler.autoscaler import (  # noqa: PLC0415
                Autoscaler,
            )

            first = now + self._config.sync_period
            made = namespace.autoscalers[name] = Autoscaler(view, self._config, first, due=first)
            namespace.forget_selectors()
            self._enqueue(made)
            return
        is_changed = known.view.spec != view.spec
        known.view = view
        if is_changed:
            self._wake(known, now)

    def _wake_autoscalers_of(self, target: ApiObject, now: Instant) -> None:
        meta = target.metadata
        kind = target.kind if isinstance(target, Unstructured) else type(target).__name__
        for one in self._namespace(meta.namespace).autoscalers.values():
            reference = one.view.spec.scale_target_ref
            if (reference.kind, reference.name) == (kind, meta.name):
                self._wake(one, now)

    def _wake_all(self, namespace: _Namespace, now: Instant) -> None:
        for one in namespace.autoscalers.values():
            self._wake(one, now)

    def _wake(self, one: Autoscaler, now: Instant) -> None:
        """Mark the metrics of `one` as stale, and schedule its next regular sync."""
        one.is_stale = True
        due = one.scheduled_at_or_after(now)
        if one.due is None or due < one.due:
            one.due = due
            self._enqueue(one)

    # --- syncs ---------------------------------------------------------------------------------

    def _register(self, one: Autoscaler, now: Instant, selector: LabelSelector) -> Rivals:
        """Store `selector`, the pod selector of the scale target of the autoscaler `one`.

        Returns a function without parameters, which returns the keys of the autoscalers that select
        at least one of the pods of `one`.
        """
        namespace = self._namespace(one.view.metadata.namespace)
        if one.selector != selector:
            if one.selector is None:
                namespace.add_selector(one.view.metadata.name, selector)
            else:
                namespace.forget_selectors()
            one.selector = selector
            one.pods = namespace.matching(selector)
            one.is_stale = True
            self._wake_all(namespace, now)  # `one` may now select pods of other autoscalers
        return partial(_rivals, one, namespace)

    def _handle_outcome(self, command: PatchObject, problem: str | None) -> list[Command]:
        target = command.target
        if target.kind not in SCALABLE_KINDS and "." not in target.kind:
            return []
        for one in self._namespace(target.namespace).autoscalers.values():
            pending = one.pending
            if pending is not None and pending.command == command:
                if problem is not None:
                    return self._sent(one.refused(problem))
                self.history.append(pending.rescale)
                return self._sent(one.scaled())
        return []

    def _sent(self, commands: Iterable[Command]) -> list[Command]:
        """Return `commands`, but leave out the events if no API client reads events."""
        sent: list[Command] = []
        for command in commands:
            if isinstance(command, RecordEvent):
                sent += self._events.record(command)
            else:
                sent.append(command)
        return sent

    def _enqueue(self, one: Autoscaler) -> None:
        if one.due is not None:
            self._queue.add(one.due, (one.view.metadata.namespace, one.view.metadata.name))

    def _namespace(self, name: str) -> _Namespace:
        found = self._namespaces.get(name)
        if found is None:
            found = self._namespaces[name] = _Namespace()
        return found


def _rivals(one: Autoscaler, namespace: _Namespace) -> list[str]:
    """Return the keys of all autoscalers, `one` included, that select any pod in `one.pods`."""
    if not one.is_stale and one.rivals[0] == namespace.generation:
        return one.rivals[1]
    found = {
        name for pod in one.pods.values() for name in namespace.selected_by(pod.metadata.labels)
    }
    rivals = sorted(f"{one.view.metadata.namespace}/{name}" for name in found)
    one.rivals = (namespace.generation, rivals)
    return rivals
