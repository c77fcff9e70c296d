"""PodSet: the pods of one owner, by what they count as, and what is under way about them.

        ┌──────────▶ SUCCEEDED ──┐
    ACTIVE ────────▶ FAILED ─────┼──▶ gone
        └──────────▶ LEAVING ────┘

Only ACTIVE pods count as replicas; upstream's IsPodActive draws the same line
(pkg/controller/controller_utils.go). A creation under way is a *birth*, a deletion by us under
way a *death*: births count as replicas and deaths do not, so nothing is asked for twice
(upstream calls these expectations). A pod that stops being ACTIVE without our doing is *lost*.

Some owners give each pod a slot of its own (a StatefulSet its name, a DaemonSet its node);
elsewhere the slot is "".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import condition, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.annotation import original_name

# Whoever asks for a billion pods gets them bit by bit, and may think again.
# upstream: pkg/controller/replicaset/replica_set.go:BurstReplicas,
# pkg/controller/job/job_controller.go:MaxPodCreateDeletePerSync
BIRTHS_MAX: Final = 500


class PodState(StrEnum):
    """What a pod counts as for its owner."""

    ACTIVE = "active"
    LEAVING = "leaving"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def pod_state(pod: Pod) -> PodState:
    """What `pod` counts as; having finished outweighs being deleted."""
    match pod.status.phase:
        case "Succeeded":
            return PodState.SUCCEEDED
        case "Failed":
            return PodState.FAILED
        case _:
            return PodState.LEAVING if is_terminating(pod) else PodState.ACTIVE


def ready_since(pod: Pod) -> Instant | None:
    """Since when `pod` is ready (0 where nothing says it), None when it is not.

    A dump cut down to what matters may have no conditions at all; a pod that runs is ready there.
    """
    if pod.status.phase == "Running" and not pod.status.conditions:
        return 0
    ready = condition(pod, "Ready")
    if ready is None or ready.status != "True":
        return None
    return parse_timestamp(ready.last_transition_time) if ready.last_transition_time else 0


@dataclass(frozen=True, slots=True)
class End:
    """A pod that is on its way out or `after` it; None when it is gone. `is_ours`: by our doing."""

    pod: Pod
    after: PodState | None
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """A pod that went without our doing; `serial` orders the losses of an owner."""

    serial: int
    original: str
    pod: Pod


@dataclass(frozen=True, slots=True)
class Birth:
    """A pod whose creation is under way; `loss` is the one it stands in for."""

    slot: str
    loss: Loss | None


@dataclass(slots=True, kw_only=True)
class PodSet:
    """What is known of one owner's pods; all keys are pod names in `namespace`.

    `kin` are the sets of all ReplicaSets of a Deployment, by key, this one included.
    `is_observed`: somebody reads what is written to be read. `ends` are those since its rule last
    looked, None where no rule does.
    `ready` says of active pods that are ready since when. `proven` says that the last creation was
    taken; until one is, only one is tried at a time. `retry_at` is set while the owner waits after
    a refusal, `refusal` is what it was told until one is taken.
    """

    key: str
    namespace: str
    owner: OwnerReference
    is_observed: bool = False
    pods: dict[str, Pod] = field(default_factory=dict)
    active: dict[str, Pod] = field(default_factory=dict)
    ready: dict[str, Instant] = field(default_factory=dict)
    by_slot: dict[str, dict[str, None]] = field(default_factory=dict)
    births: dict[str, Birth] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)  # slot -> name of its birth
    deaths: dict[str, str] = field(default_factory=dict)
    losses: dict[str, deque[Loss]] = field(default_factory=dict)  # by slot
    lost: int = 0
    succeeded: int = 0
    failed: int = 0
    leaving: int = 0
    serial: int = 0
    ends: list[End] | None = None
    kin: dict[str, PodSet] = field(default_factory=dict, repr=False, compare=False)
    proven: bool = False
    failures: int = 0
    refusal: str = ""
    retry_at: Instant | None = None

    @property
    def ref(self) -> ObjectRef:
        """The identity of the owner."""
        return ObjectRef(self.owner.kind, self.namespace, self.owner.name, self.owner.uid)

    @property
    def births_allowed(self) -> int:
        """How many more creations may be under way."""
        return max(0, BIRTHS_MAX - len(self.births))

    # --- pods come, change and go --------------------------------------------------------------

    def put(self, pod: Pod, slot: str) -> PodState | None:
        """Take the newest version of `pod`; what the same pod counted as before, None if new."""
        name = pod.metadata.name
        before = self._state(pod)
        after = pod_state(pod)
        self.end_birth(name)
        self.pods[name] = pod
        self.by_slot.setdefault(slot, {})[name] = None
        if self.deaths.get(name) == pod.metadata.uid and after is PodState.ACTIVE:
            return before
        is_ours = self.deaths.pop(name, None) is not None
        if self.ends is not None and before is not after is not PodState.ACTIVE:
            self.ends.append(End(pod, after, is_ours))
        if after is PodState.ACTIVE:
            self._activate(pod)
        else:
            self._deactivate(name)
        self._count(before, after)
        return before

    def remove(self, pod: Pod, slot: str) -> PodState | None:
        """Forget `pod`; what it counted as before, None if it was not known."""
        before = self._state(pod)
        if before is None:
            return None
        name = pod.metadata.name
        del self.pods[name]
        self._deactivate(name)
        self.leaving -= before is PodState.LEAVING
        is_ours = self.deaths.pop(name, None) is not None
        if self.ends is not None:
            self.ends.append(End(pod, None, is_ours))
        in_slot = self.by_slot.get(slot, {})
        in_slot.pop(name, None)
        if not in_slot:
            self.by_slot.pop(slot, None)
        return before

    def reslot(self, slot_of: Callable[[Pod], str]) -> None:
        """Let `slot_of` say from now on which slot each pod takes."""
        self.by_slot = {}
        for name, pod in self.pods.items():
            self.by_slot.setdefault(slot_of(pod), {})[name] = None

    def holds(self, name: str) -> bool:
        """Whether a pod of that name exists or is being created."""
        return name in self.pods or name in self.births

    def in_slot(self, slot: str) -> list[Pod]:
        """The existing pods of `slot`."""
        return [self.pods[name] for name in self.by_slot.get(slot, ())]

    # --- what is under way ---------------------------------------------------------------------

    def begin_birth(self, name: str, birth: Birth) -> None:
        """The creation of a pod is under way."""
        self.births[name] = birth
        if birth.slot:
            self.expected[birth.slot] = name

    def end_birth(self, name: str) -> Birth | None:
        """The creation came to its end, good or bad."""
        birth = self.births.pop(name, None)
        if birth is not None and self.expected.get(birth.slot) == name:
            del self.expected[birth.slot]
        return birth

    def begin_death(self, pod: Pod) -> None:
        """The deletion of `pod` by its owner is under way."""
        self.deaths[pod.metadata.name] = pod.metadata.uid
        self._deactivate(pod.metadata.name)

    def end_death(self, name: str) -> None:
        """The deletion was refused: the pod counts again if it ever did."""
        if self.deaths.pop(name, None) is not None and name in self.pods:
            pod = self.pods[name]
            if pod_state(pod) is PodState.ACTIVE:
                self._activate(pod)

    @property
    def pods_alive(self) -> list[str]:
        """The names of pods that have not finished, also of those that are on their way out."""
        return [
            name
            for name, pod in self.pods.items()
            if pod_state(pod) in (PodState.ACTIVE, PodState.LEAVING)
        ]

    def available(self, min_ready: DurationNs, now: Instant) -> int:
        """How many active pods have been ready for `min_ready`."""
        # upstream: pkg/api/v1/pod/util.go:IsPodAvailable
        if not min_ready:
            return len(self.ready)
        return sum(since + min_ready <= now for since in self.ready.values())

    def is_available(self, name: str, min_ready: DurationNs, now: Instant) -> bool:
        """Whether the pod `name` is active and has been ready for `min_ready`."""
        since = self.ready.get(name)
        return since is not None and since + min_ready <= now

    def next_available(self, min_ready: DurationNs, now: Instant) -> Instant | None:
        """When the next ready pod will have been so for `min_ready`, None when none waits."""
        if not min_ready:
            return None
        dues = (since + min_ready for since in self.ready.values())
        return min((due for due in dues if due > now), default=None)

    def _activate(self, pod: Pod) -> None:
        name = pod.metadata.name
        self.active[name] = pod
        since = ready_since(pod)
        if since is None:
            self.ready.pop(name, None)
        else:
            self.ready[name] = since

    def _deactivate(self, name: str) -> None:
        self.active.pop(name, None)
        self.ready.pop(name, None)

    def _state(self, pod: Pod) -> PodState | None:
        known = self.pods.get(pod.metadata.name)
        return pod_state(known) if known and known.metadata.uid == pod.metadata.uid else None

    def _count(self, before: PodState | None, after: PodState) -> None:
        if before is not after:
            self.succeeded += after is PodState.SUCCEEDED
            self.failed += after is PodState.FAILED
            self.leaving += after is PodState.LEAVING
            self.leaving -= before is PodState.LEAVING

    # --- losses and who stands in for them -----------------------------------------------------

    def lose(self, pod: Pod, slot: str) -> None:
        """`pod` wants a successor; in a slot of its own only the last one does."""
        self.lost += 1
        loss = Loss(self.lost, original_name(pod), pod)
        if slot:
            self.losses[slot] = deque([loss])
        else:
            self.losses.setdefault(slot, deque()).append(loss)

    def next_loss(self, slot: str) -> Loss | None:
        """The earliest loss of `slot` that has no successor; it has one from now on."""
        waiting = self.losses.get(slot)
        if not waiting:
            return None
        loss = waiting.popleft()
        if not waiting:
            del self.losses[slot]
        return loss

    def restore_loss(self, slot: str, loss: Loss) -> None:
        """The successor of `loss` was not born after all."""
        waiting = (*self.losses.get(slot, ()), loss)
        self.losses[slot] = deque(sorted(waiting, key=lambda one: one.serial))
