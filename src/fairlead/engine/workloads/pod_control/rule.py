"""OwnerRule: decides which pods one owner creates and deletes.

Each kind of owner has an implementation. A rule reads a `PodSet` and returns a `Plan`, and
`pod_sets` executes the plan. The slot of a pod is its name for a StatefulSet, its node for a
DaemonSet and its completion index for an indexed Job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import CreateObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState


class DesiredPod(Struct, frozen=True):
    """A pod to create from `template`.

    If `name` is "", a name is generated from `prefix`, or from the owner's name if `prefix` is "".
    The claims in `claims` that do not exist yet are created before the pod. `slot` is the slot of
    the pod, or "" if the pods of the owner have no slots.
    """

    template: Json
    slot: str = ""
    name: str = ""
    prefix: str = ""
    claims: tuple[CreateObject, ...] = ()


class Plan(Struct, frozen=True):
    """Pods to create, in the order of `create`, and pods to delete.

    `why` is the reason of the deletions. `again_at` is the time of the next run of the rule if no
    object changes. `awaits_creation` is set if pods are missing but cannot be created yet.
    """

    create: tuple[DesiredPod, ...] = ()
    delete: tuple[Pod, ...] = ()
    why: str = ""
    again_at: Instant | None = None
    awaits_creation: bool = False


NOTHING: Plan = Plan()


class OwnerRule(Protocol):
    """Decides about the pods of one owner.

    If `reads_readiness` is set, the decisions also depend on the readiness of pods.
    """

    reads_readiness: ClassVar[bool]

    def slot_of(self, pod: Pod) -> str:
        """Return the slot of `pod`, or "" if the pods of this kind of owner have no slots."""
        ...

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return the result of `slot_of` for each of `replicas`.

        To save time, implementations should not make a Pod object for each replica.
        """
        ...

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return whether `pod` must be replaced after it stopped being active.

        `after` is the new state of `pod`, None if the pod was deleted.
        """
        ...

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return the pods to create and delete for `slot`, or for all slots if `slot` is None."""
        ...

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return the pods to create and the pods to delete after changes in the readiness of pods.

        Called after all changes of an instant are handled.
        """
        ...
