"""Owners without a controller of their own: unknown ones, and those that are gone.

A pod's owner that is not among the known objects is stood in for: each of its pods that is
deleted gets one successor with the same specification, so that a dump of nodes and pods alone
is enough. Pods of unknown DaemonSets belong to their nodes and are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.garbage import WHY_OWNER_DELETED
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState
from fairlead.engine.workloads.pod_control.pod_template import template_of
from fairlead.engine.workloads.pod_control.rule import NOTHING, Plan, Wish

# Their pods come back even when they end by themselves; a Job's or a workflow's need not.
REPLICA_KINDS: Final = ("ReplicaSet", "ReplicationController")
NAME_KEEPING_KIND: Final = "StatefulSet"
NODE_BOUND_KINDS: Final = ("DaemonSet", "Node")


@dataclass(frozen=True, slots=True)
class StandIn:
    """An owner of this `kind` that nobody knows more of."""

    is_watchful: ClassVar[bool] = False

    kind: str

    @property
    def keeps_names(self) -> bool:
        """Whether a successor takes its original's name."""
        return self.kind == NAME_KEEPING_KIND

    def slot_of(self, pod: Pod) -> str:
        """A StatefulSet's pods keep their names, others are interchangeable."""
        return pod.metadata.name if self.keeps_names else ""

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """A deleted pod has a successor, one that failed only where it surely would."""
        return after in (None, PodState.LEAVING) or (
            after is PodState.FAILED and self.kind in REPLICA_KINDS
        )

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """One successor for each loss, once its name is free if it keeps it."""
        slots = list(pods.losses) if slot is None else [slot]
        return Plan(create=tuple(wish for one in slots for wish in self._wishes(pods, one)))

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Nothing follows."""
        return NOTHING

    def _wishes(self, pods: PodSet, slot: str) -> list[Wish]:
        if slot and pods.holds(slot):
            return []
        return [
            Wish(template_of(loss.pod), slot=slot, name=slot) for loss in pods.losses.get(slot, ())
        ]


@dataclass(frozen=True, slots=True)
class HandsOff:
    """An owner whose pods are not ours to touch."""

    is_watchful: ClassVar[bool] = False

    def slot_of(self, pod: Pod) -> str:
        """No slots."""
        return ""

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """Nobody is replaced."""
        return False

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Nothing."""
        return NOTHING

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Nothing follows."""
        return NOTHING


@dataclass(frozen=True, slots=True)
class Buried:
    """An owner that nobody has seen, and that goes with the one above it: so do its pods."""

    is_watchful: ClassVar[bool] = False

    def slot_of(self, pod: Pod) -> str:
        """No slots."""
        return ""

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """Nobody is replaced."""
        return False

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Delete what is left, also what was still being created."""
        return Plan(delete=tuple(pods.active.values()), why=WHY_OWNER_DELETED)

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Nothing follows."""
        return NOTHING


def rule_for_unknown(kind: str) -> StandIn | HandsOff:
    """The rule for the pods of an owner of `kind` that is not known."""
    return HandsOff() if kind in NODE_BOUND_KINDS else StandIn(kind)
