"""NamespaceDeletion: deletes the content of a terminating namespace, then finalizes it.

    5 s after the deletion   delete the pods
        pods remain          retry after half of the estimated time until they are gone
        no pods remain       delete all other objects
        objects remain       report the remaining objects and their finalizers, retry
        no objects remain    finalize the namespace

upstream: pkg/controller/namespace/namespace_controller.go,
pkg/controller/namespace/deletion/namespaced_resources_deleter.go, status_condition_utils.go
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import Namespace
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteCollection,
    FinalizeNamespace,
    ObjectRef,
    PatchStatus,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CollectionDeleted,
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    RemainingObjects,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue

# upstream: namespace_controller.go:namespaceDeletionGracePeriod
GRACE: Final[DurationNs] = seconds(5)
# upstream: namespaced_resources_deleter.go:finalizerEstimateSeconds
FINALIZER_ESTIMATE_S: Final = 15
POD: Final = "Pod"
_PODS: Final = "pods."
_REMAINING: Final = "NamespaceContentRemaining"
_HELD: Final = "NamespaceFinalizersRemaining"
# The reason and message of each condition while it is False.
_CLEAR: Final = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    _REMAINING: ("ContentRemoved", "All content successfully removed"),
    _HELD: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class NamespaceDeletion(Struct):
    """The namespace controller: empties and finalizes terminating namespaces."""

    issuer: ClassVar[Issuer] = controller_account("namespace-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Namespace,), deleted=(Namespace,), succeeded=(), failed=(FinalizeNamespace,)
    )

    _terminating: dict[str, Namespace] = field(default_factory=dict)
    _due: dict[str, Instant] = field(default_factory=dict)
    _timers: TimerQueue[str] = field(default_factory=TimerQueue)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Schedule the deletion of a terminating namespace's content, or continue this deletion.

        Returns the commands of the next step if a step has ended.
        """
        match stimulus:
            case ObjectChanged(Namespace() as namespace):
                self._observe(namespace, now)
            case ObjectDeleted(Namespace() as namespace):
                return self._forget(namespace)
            case ObjectsLoaded():
                for one in stimulus.others:
                    if isinstance(one, Namespace):
                        self._observe(one, now)
            case CollectionDeleted():
                return self._continue(stimulus, now)
            case CommandFailed(FinalizeNamespace(target), _, _):
                self._schedule(target.name, now + seconds(1))
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time of the next attempt to delete the content of a namespace, or None."""
        return self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return a command that deletes all pods, for each namespace whose deletion is due."""
        commands: list[Command] = []
        for name in self._timers.pop_due(now):
            if self._due.get(name, now + 1) <= now:
                del self._due[name]
                commands.append(DeleteCollection(name, POD))
        return commands

    def _observe(self, namespace: Namespace, now: Instant) -> None:
        meta = namespace.metadata
        if meta.deletion_timestamp:
            self._terminating[meta.name] = namespace
            self._schedule(meta.name, now + GRACE)

    def _forget(self, namespace: Namespace) -> list[Command]:
        """Stop tracking a removed namespace; return the command that deletes its content.

        Returns [] if the namespace was terminating, because its content has already been deleted.
        """
        name = namespace.metadata.name
        self._due.pop(name, None)
        is_emptied = self._terminating.pop(name, None) is not None
        return [] if is_emptied else [DeleteCollection(name)]

    def _schedule(self, name: str, due: Instant) -> None:
        """Schedule the deletion of the content of the namespace `name` at `due`.

        Does nothing if this deletion is already scheduled for `due` or an earlier time.
        """
        if due < self._due.get(name, due + 1):
            self._due[name] = due
            self._timers.add(due, name)

    def _continue(self, answer: CollectionDeleted, now: Instant) -> list[Command]:
        namespace = self._terminating.get(answer.command.namespace)
        if namespace is None:
            return []
        name, is_about_pods = namespace.metadata.name, answer.command.kind == POD
        if is_about_pods and not answer.remaining:
            return [DeleteCollection(name)]
        # upstream's conditions do not list the pods that remain after the first step
        reported = () if is_about_pods else answer.remaining
        commands: list[Command] = [self._report(namespace, reported)]
        if answer.remaining:
            wait_s = _estimate_s(answer, namespace, now)
            self._schedule(name, now + seconds(wait_s // 2 + 1))
        else:
            commands.append(FinalizeNamespace(_ref(namespace)))
        return commands

    def _report(self, namespace: Namespace, remaining: tuple[RemainingObjects, ...]) -> Command:
        """Return the command that writes the conditions of `namespace`.

        The conditions list the `remaining` objects and their finalizers.
        """
        stated = dict(_CLEAR)
        if remaining:
            rows = sorted(f"{one.resource} has {one.count} resource instances" for one in remaining)
            message = f"Some resources are remaining: {', '.join(rows)}"
            stated[_REMAINING] = ("SomeResourcesRemain", message)
        finalizers = sum((Counter(one.finalizers) for one in remaining), Counter[str]())
        if finalizers:
            rows = sorted(f"{one} in {n} resource instances" for one, n in finalizers.items())
            message = f"Some content in the namespace has finalizers remaining: {', '.join(rows)}"
            stated[_HELD] = ("SomeFinalizersRemain", message)
        conditions = tuple(
            Condition(kind, "False" if _CLEAR[kind] == text else "True", *text)
            for kind, text in stated.items()
        )
        return PatchStatus(_ref(namespace), conditions=conditions)


def _estimate_s(answer: CollectionDeleted, namespace: Namespace, now: Instant) -> int:
    """Return the estimated seconds until the remaining objects are deleted."""
    begun = parse_timestamp(namespace.metadata.deletion_timestamp)
    grace_s = answer.grace_period_s if now < begun + seconds(answer.grace_period_s) else 0
    estimates = [
        grace_s
        if one.resource == _PODS and grace_s
        else (FINALIZER_ESTIMATE_S if one.finalizers else 0)
        for one in answer.remaining
    ]
    return max(estimates, default=0)


def _ref(namespace: Namespace) -> ObjectRef:
    return ObjectRef("Namespace", "", namespace.metadata.name, namespace.metadata.uid)
