"""OwnerRule: decides which pods one owner creates and deletes; one implementation for each kind.

A rule reads a `PodSet` and returns a `Plan`; `pod_sets` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState


@dataclass(frozen=True, slots=True)
class DesiredPod:
    """A pod to create.

    If `name` is "", a name is generated from `prefix`, or from the owner's name.
    """

    template: Json
    slot: str = ""
    name: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Pods to create, in order, and pods to delete, with the reason.

    `again_at` is when to run the rule again if nothing changes. `is_waiting`: pods are missing but
    cannot be created yet.
    """

    create: tuple[DesiredPod, ...] = ()
    delete: tuple[Pod, ...] = ()
    why: str = ""
    again_at: Instant | None = None
    is_waiting: bool = False


NOTHING: Plan = Plan()


class OwnerRule(Protocol):
    """Decides about the pods of one owner.

    `is_watchful`: the rule also depends on which pods are ready.
    """

    is_watchful: ClassVar[bool]

    def slot_of(self, pod: Pod) -> str:
        """Return the slot of `pod`, "" if owners of this kind have none."""
        ...

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return whether `pod`, which was active and is now `after` (None: gone), is replaced."""
        ...

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return the pods to create and delete for `slot`, or for all slots if it is None."""
        ...

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return changes due to pod readiness, once all changes of the instant are handled."""
        ...
