"""PodSet: the pods of one owner by state, with the creations and deletions in flight.

        ┌──────────▶ SUCCEEDED ──┐
    ACTIVE ────────▶ FAILED ─────┼──▶ gone
        └──────────▶ TERMINATING ┘

Of the existing pods, only ACTIVE pods count as replicas, as in upstream's IsPodActive. Writes in
flight are *expectations*, as in upstream. A pod whose creation is expected counts as a replica
already. An ACTIVE pod whose deletion is expected does not count anymore. So no pod is created or
deleted twice.

Example: a ReplicaSet wants 3 pods, and 1 pod is active. Two CreateObject commands are sent, and
`creations_expected` contains 2 names. Because 1 + 2 = 3, a second run at this instant creates no
pod. When a new pod is observed, `put` moves its name from `creations_expected` to `active`.

A pod needs a *replacement* if it stops being ACTIVE and its owner did not delete it.

Some owners have a slot for each pod. The slot is the pod's name for a StatefulSet, the node's name
for a DaemonSet and the completion index for an indexed Job. For other owners the slot is "".

upstream: pkg/controller/controller_utils.go:ControllerExpectations, IsPodActive
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import (
    condition,
    container_restarts,
    differs_in_status_only,
    is_terminal,
    is_terminating,
)
from fairlead.api.pods.original import original_name
from fairlead.api.pods.replicas import Replicas, pod_at
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant

# The maximum of creations in flight, so that a typo in `replicas` can still be corrected.
# upstream: pkg/controller/replicaset/replica_set.go:BurstReplicas,
# pkg/controller/job/job_controller.go:MaxPodCreateDeletePerSync
BURST_REPLICAS: Final = 500


class PodState(StrEnum):
    """Whether an owner counts a pod as active, terminating, succeeded or failed."""

    ACTIVE = "active"
    TERMINATING = "terminating"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


# Members that are read often (STYLE.md, rule 19).
_ACTIVE: Final = PodState.ACTIVE
_TERMINATING: Final = PodState.TERMINATING
_SUCCEEDED: Final = PodState.SUCCEEDED
_FAILED: Final = PodState.FAILED


def pod_state(pod: Pod) -> PodState:
    """Return the state of `pod`; a finished pod stays finished even while it is being deleted."""
    match pod.status.phase:
        case "Succeeded":
            return _SUCCEEDED
        case "Failed":
            return _FAILED
        case _:
            return _TERMINATING if is_terminating(pod) else _ACTIVE


def ready_since(pod: Pod) -> Instant | None:
    """Return the time at which `pod` became ready, or None if it is not ready.

    Returns 0 if the time is unknown. A running pod without conditions counts as ready, because some
    dumps do not contain conditions.
    """
    if pod.status.phase == "Running" and not pod.status.conditions:
        return 0
    ready = condition(pod, "Ready")
    if ready is None or ready.status != "True":
        return None
    return parse_timestamp(ready.last_transition_time) if ready.last_transition_time else 0


def _ready_since(replicas: Replicas, index: int) -> Instant:
    """Return the time at which pod number `index` of `replicas` became ready.

    All pods in `replicas` must be ready.
    """
    return ready_since(replicas[index]) or 0


class Slots(Protocol):
    """Protocol for rules that determine the slot of each pod of an owner.

    For a DaemonSet, for example, the slot is the name of the node. A pod without a slot has the
    slot "".
    """

    def slot_of(self, pod: Pod) -> str:
        """Return the slot of `pod`."""
        ...

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return the result of `slot_of` for each of `replicas`.

        To save time, implementations should not make a Pod object for each replica.
        """
        ...


class EndedPod(Struct, frozen=True):
    """A pod that was ACTIVE and now has the state `after` (None if it was deleted).

    `is_ours` is set if the pod's owner deleted it.
    """

    pod: Pod
    after: PodState | None
    is_ours: bool


class Replacement(Struct, frozen=True):
    """A pod that must be replaced.

    `serial` orders the replacements of an owner. `original` is the name of the pod with which the
    chain of replacements began.
    """

    serial: int
    original: str
    pod: Pod


class ExpectedCreation(Struct, frozen=True):
    """A pod creation in flight.

    `slot` is the slot of the new pod, for example the node's name for a DaemonSet, or "".
    `replacement` describes the pod to replace; None if the new pod replaces no pod.
    """

    slot: str
    replacement: Replacement | None


@dataclass(slots=True, kw_only=True)
class PodSet:
    """The pods of one owner in `namespace`, and the writes in flight, keyed by pod name.

    The fields `ended` and `restarts` are None if the rule does not use them.
    """

    key: str
    namespace: str
    owner: OwnerReference
    pods: LazyDict[Pod] = field(default_factory=lambda: LazyDict(pod_at))
    active: LazyDict[Pod] = field(default_factory=lambda: LazyDict(pod_at))
    # The time at which each ready active pod became ready.
    ready: LazyDict[Instant] = field(default_factory=lambda: LazyDict(_ready_since))
    creations_expected: dict[str, ExpectedCreation] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)  # slot -> name of the pod being created
    deletions_expected: dict[str, str] = field(default_factory=dict)  # name -> uid
    replacements: dict[str, deque[Replacement]] = field(default_factory=dict)  # by slot
    replacements_requested: int = 0
    succeeded: int = 0  # also counts pods that no longer exist
    failed: int = 0  # also counts pods that no longer exist
    terminating: int = 0
    serial: int = 0
    ended: list[EndedPod] | None = None  # the pods that ended since the last run of the rule
    # The number of container restarts of each unfinished pod that has any.
    restarts: dict[str, int] | None = None
    # The pod sets of all ReplicaSets of the owner's Deployment, by key, including this pod set.
    siblings: dict[str, PodSet] = field(default_factory=dict, repr=False, compare=False)
    # Set after a successful creation and cleared when a backoff starts. While it is not set, only
    # one pod is created at a time (instead of upstream's slow start).
    proven: bool = False
    failures: int = 0
    # The error message of the last refused creation. Becomes "" when a creation succeeds or no pod
    # is missing.
    refusal: str = ""
    retry_at: Instant | None = None  # set while the owner is in backoff after a failure
    _by_slot: dict[str, dict[str, None]] = field(default_factory=dict)
    # set if `_by_slot` is not built yet
    _slots: Slots | None = field(default=None, repr=False, compare=False)

    @property
    def by_slot(self) -> dict[str, dict[str, None]]:
        """The names of the pods in each slot.

        After a call of `load`, the dict is built when it is next read.
        """
        slots, self._slots = self._slots, None
        if slots is not None:
            self._by_slot = {}
            loaded = {id(group): slots.slots_of(group) for group in self.pods.groups()}
            for name, found in zip(self.pods, self.pods.raw(), strict=True):
                if isinstance(found, tuple):
                    slot = loaded[id(found[0])][found[1]]
                else:
                    slot = slots.slot_of(found)
                self._by_slot.setdefault(slot, {})[name] = None
        return self._by_slot

    @property
    def first(self) -> Pod | None:
        """The pod that was stored first; None if there is no pod."""
        return next((self.pods[name] for name in self.pods), None)

    @property
    def ref(self) -> ObjectRef:
        """Object reference of the owner."""
        return ObjectRef(self.owner.kind, self.namespace, self.owner.name, self.owner.uid)

    @property
    def creations_allowed(self) -> int:
        """Number of creations that may be sent in addition to the creations in flight."""
        return max(0, BURST_REPLICAS - len(self.creations_expected))

    # --- changes of pods -----------------------------------------------------------------------

    def refresh(self, pod: Pod) -> bool:
        """Store a new version of an active pod; return whether it was stored.

        `refresh` has the same effect as `put`, but is faster. The version is stored only if nothing
        but the status differs, the pod is still active, and its deletion is not in flight. If the
        set counts container restarts (`restarts`), their number must also be unchanged.
        """
        name = pod.metadata.name
        known = self.active.get(name)
        if known is None or not differs_in_status_only(known, pod):
            return False
        # The pod is not terminating, because `known` was not.
        if is_terminal(pod) or name in self.deletions_expected:
            return False
        if self.restarts is not None and self.restarts.get(name, 0) != container_restarts(pod):
            return False
        self.pods[name] = pod
        self._activate(pod)
        return True

    def load(self, replicas: Replicas, slots: Slots) -> None:
        """Store `replicas` faster than with one call of `put` for each pod.

        `replicas` are pods of a snapshot. `slots` determines the slot of each pod.
        """
        has_expectations = self.creations_expected or self.deletions_expected
        is_usual = self.ended is None and self.restarts is None and not has_expectations
        if (
            not is_usual
            or pod_state(replicas[0]) is not _ACTIVE
            or not replicas.have_own_keys
            or not self.pods.keys().isdisjoint(replicas.names)
        ):
            for pod in replicas:
                self.put(pod, slots.slot_of(pod))
            return
        is_new = not self.pods or self._slots is not None
        self.pods.load(replicas.rows_by_name)
        self.active.load(replicas.rows_by_name)
        if ready_since(replicas[0]) is not None:  # then all pods in `replicas` are ready
            self.ready.load(replicas.rows_by_name)
        if is_new:
            self._slots = slots
        else:
            for name, slot in zip(replicas.names, slots.slots_of(replicas), strict=True):
                self._by_slot.setdefault(slot, {})[name] = None

    def put(self, pod: Pod, slot: str) -> PodState | None:
        """Store the newest version of `pod`; return its previous state, None for a new pod."""
        name = pod.metadata.name
        before = self._state(pod)
        after = pod_state(pod)
        self.creation_observed(name)
        self.pods[name] = pod
        self._note_restarts(pod)
        if self._slots is None:  # else `by_slot` is built later, from all pods
            self._by_slot.setdefault(slot, {})[name] = None
        if self.deletions_expected.get(name) == pod.metadata.uid and after is _ACTIVE:
            return before
        is_ours = self.deletions_expected.pop(name, None) is not None
        if self.ended is not None and before is not after is not _ACTIVE:
            self.ended.append(EndedPod(pod, after, is_ours))
        if after is _ACTIVE:
            self._activate(pod)
        else:
            self._deactivate(name)
        self._count(before, after)
        return before

    def remove(self, pod: Pod, slot: str, *, has_left: bool = False) -> PodState | None:
        """Remove `pod`; return its last state, or None if the pod was unknown.

        `has_left` is set if the pod has lost its owner but still exists. Such a pod does not count
        as ended.
        """
        before = self._state(pod)
        if before is None:
            return None
        name = pod.metadata.name
        del self.pods[name]
        if self.restarts is not None:
            self.restarts.pop(name, None)
        self._deactivate(name)
        self.terminating -= before is _TERMINATING
        is_ours = self.deletions_expected.pop(name, None) is not None
        if self.ended is not None and not has_left:
            self.ended.append(EndedPod(pod, None, is_ours))
        in_slot = self._by_slot.get(slot, {})
        in_slot.pop(name, None)
        if not in_slot:
            self._by_slot.pop(slot, None)
        return before

    def update_slots(self, slots: Slots) -> None:
        """Use `slots` to determine the slot of every pod from now on."""
        self._slots, self._by_slot = slots, {}

    def count_restarts(self) -> None:
        """If `restarts` is None, set it to the numbers of container restarts.

        After this call, `put` keeps the numbers current.
        """
        if self.restarts is None:
            self.restarts = {}
            for pod in self.pods.values():
                self._note_restarts(pod)

    def _note_restarts(self, pod: Pod) -> None:
        if self.restarts is None:
            return
        found = 0 if is_terminal(pod) else container_restarts(pod)
        if found:
            self.restarts[pod.metadata.name] = found
        else:
            self.restarts.pop(pod.metadata.name, None)

    @property
    def restarts_counted(self) -> int:
        """The sum of the numbers in `restarts`; 0 if `restarts` is None."""
        return sum((self.restarts or {}).values())

    def holds(self, name: str) -> bool:
        """Return whether a pod `name` exists or is being created."""
        return name in self.pods or name in self.creations_expected

    def in_slot(self, slot: str) -> list[Pod]:
        """Return the existing pods in `slot`."""
        return [self.pods[name] for name in self.by_slot.get(slot, ())]

    # --- pending writes ------------------------------------------------------------------------

    def expect_creation(self, name: str, creating: ExpectedCreation) -> None:
        """Record that the creation of the pod `name` is in flight."""
        self.creations_expected[name] = creating
        if creating.slot:
            self.expected[creating.slot] = name

    def creation_observed(self, name: str) -> ExpectedCreation | None:
        """End the expected creation of the pod `name`, whether it succeeded or failed.

        Returns the expected creation, or None if no creation of this pod was expected.
        """
        creating = self.creations_expected.pop(name, None)
        if creating is not None and self.expected.get(creating.slot) == name:
            del self.expected[creating.slot]
        return creating

    def expect_deletion(self, pod: Pod) -> None:
        """Record that the deletion of `pod` is in flight. The pod no longer counts as a replica."""
        self.deletions_expected[pod.metadata.name] = pod.metadata.uid
        self._deactivate(pod.metadata.name)

    def deletion_failed(self, name: str) -> None:
        """Record that the deletion of the pod `name` was refused and is no longer in flight.

        The pod counts as a replica again if it is active.
        """
        if self.deletions_expected.pop(name, None) is not None and name in self.pods:
            pod = self.pods[name]
            if pod_state(pod) is _ACTIVE:
                self._activate(pod)

    @property
    def pods_alive(self) -> list[str]:
        """Names of the pods that have not finished, including terminating pods."""
        return [
            name for name, pod in self.pods.items() if pod_state(pod) in (_ACTIVE, _TERMINATING)
        ]

    def available(self, min_ready: DurationNs, now: Instant) -> int:
        """Return the number of active pods that have been ready for at least `min_ready` (ns)."""
        # upstream: pkg/api/v1/pod/util.go:IsPodAvailable
        if not min_ready:
            return len(self.ready)
        return sum(since + min_ready <= now for since in self.ready.values())

    def is_available(self, name: str, min_ready: DurationNs, now: Instant) -> bool:
        """Return whether the pod `name` is active and has been ready for `min_ready` (ns)."""
        if not min_ready:
            return name in self.ready  # the time need not be read
        since = self.ready.get(name)
        return since is not None and since + min_ready <= now

    def next_available(self, min_ready: DurationNs, now: Instant) -> Instant | None:
        """Return the time at which the next ready pod becomes available.

        Returns None if all ready pods are available.
        """
        if not min_ready:
            return None
        dues = (since + min_ready for since in self.ready.values())
        return min((due for due in dues if due > now), default=None)

    def _activate(self, pod: Pod) -> None:
        name = pod.metadata.name
        self.active[name] = pod
        since = ready_since(pod)
        if since is None:
            self.ready.discard(name)
        else:
            self.ready[name] = since

    def _deactivate(self, name: str) -> None:
        self.active.discard(name)
        self.ready.discard(name)

    def _state(self, pod: Pod) -> PodState | None:
        known = self.pods.get(pod.metadata.name)
        return pod_state(known) if known and known.metadata.uid == pod.metadata.uid else None

    def _count(self, before: PodState | None, after: PodState) -> None:
        if before is not after:
            self.succeeded += after is _SUCCEEDED
            self.failed += after is _FAILED
            self.terminating += after is _TERMINATING
            self.terminating -= before is _TERMINATING

    # --- replacements --------------------------------------------------------------------------

    def request_replacement(self, pod: Pod, slot: str) -> None:
        """Record that `pod` must be replaced.

        If `slot` is not "", only the last request for this slot counts.
        """
        self.replacements_requested += 1
        replacement = Replacement(self.replacements_requested, original_name(pod), pod)
        if slot:
            self.replacements[slot] = deque([replacement])
        else:
            self.replacements.setdefault(slot, deque()).append(replacement)

    def next_replacement(self, slot: str) -> Replacement | None:
        """Remove and return the earliest replacement in `slot`; None if there is none."""
        waiting = self.replacements.get(slot)
        if not waiting:
            return None
        replacement = waiting.popleft()
        if not waiting:
            del self.replacements[slot]
        return replacement

    def unreplaced(self) -> list[Pod]:
        """Return the pods that must be replaced, in the order of the requests.

        A pod is left out if its slot is the name of a pod that exists or is being created.
        """
        waiting = (
            one
            for slot, requested in self.replacements.items()
            if not (slot and self.holds(slot))
            for one in requested
        )
        return [one.pod for one in sorted(waiting, key=lambda one: one.serial)]

    def restore_replacement(self, slot: str, replacement: Replacement) -> None:
        """Put `replacement`, whose creation failed, back into the queue of `slot`."""
        waiting = (*self.replacements.get(slot, ()), replacement)
        self.replacements[slot] = deque(sorted(waiting, key=lambda one: one.serial))
