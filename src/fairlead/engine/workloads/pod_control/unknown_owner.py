"""Rules for the pods of owners that the cluster state lacks (unknown owners).

A dump of nodes and pods lacks the owners of its pods. If a pod of an unknown owner is deleted, it
gets one replacement with the same specification. Pods of unknown DaemonSets belong to their node
and are not replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.deletion.garbage_collector import WHY_OWNER_DELETED
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState
from fairlead.engine.workloads.pod_control.pod_template import template_of
from fairlead.engine.workloads.pod_control.rule import NOTHING, DesiredPod, OwnerRule, Plan

# Owners of these kinds always replace failed pods; a Job or a workflow might not.
REPLICA_KINDS: Final = ("ReplicaSet", "ReplicationController")
NAME_KEEPING_KIND: Final = "StatefulSet"
NODE_BOUND_KINDS: Final = ("DaemonSet", "Node")
_DISRUPTION_TARGET: Final = "DisruptionTarget"
_BY_POD_GC: Final = "DeletionByPodGC"  # a reason of _DISRUPTION_TARGET


def keeps_name(kind: str, pod: Pod) -> bool:
    """Return whether an owner of `kind` reuses the name of `pod` for its replacement.

    StatefulSets reuse the name. Other owners reuse the name if it is also the pod's hostname.
    Operators such as Strimzi and CloudNativePG create the replacement of such a pod under the same
    name.
    """
    # upstream: strimzi operator/cluster/model/WorkloadUtils.java: createStatefulPod,
    # cloudnative-pg pkg/specs/pods.go: NewInstance
    return kind == NAME_KEEPING_KIND or pod.spec.hostname == pod.metadata.name


class UnknownOwnerRule(Struct, frozen=True):
    """Replaces the pods of an unknown owner; `kind` is the kind of the owner."""

    reads_readiness: ClassVar[bool] = False

    kind: str

    def keeps_name(self, pod: Pod) -> bool:
        """Return whether the replacement of `pod` gets the name of `pod`."""
        return keeps_name(self.kind, pod)

    def slot_of(self, pod: Pod) -> str:
        """Return the pod's name if its replacement keeps the name, otherwise ""."""
        return pod.metadata.name if self.keeps_name(pod) else ""

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return the result of `slot_of` for each of `replicas`.

        All `replicas` have the same spec.hostname.
        """
        if self.kind == NAME_KEEPING_KIND:
            return replicas.names
        hostname = replicas[0].spec.hostname
        return [name if name == hostname else "" for name in replicas.names]

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return whether the owner replaces `pod`, whose state is now `after` (None: removed).

        Every owner replaces terminating and removed pods, and failed pods that the pod garbage
        collector is about to delete. An owner of a kind in REPLICA_KINDS replaces every failed pod.
        """
        # upstream: pkg/controller/podgc/gc_controller.go: markFailedAndDeletePodWithCondition
        if after is not PodState.FAILED:
            return after in (None, PodState.TERMINATING)
        target = condition(pod, _DISRUPTION_TARGET)
        is_collected = target is not None and target.reason == _BY_POD_GC
        return is_collected or self.kind in REPLICA_KINDS

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Plan one pod for each requested replacement.

        A replacement that needs the name of the original pod is planned only when no pod of this
        name exists.
        """
        slots = list(pods.replacements) if slot is None else [slot]
        return Plan(
            create=tuple(desired for one in slots for desired in self._desired_pods(pods, one))
        )

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return no changes, because no decision depends on the readiness of pods."""
        return NOTHING

    def _desired_pods(self, pods: PodSet, slot: str) -> list[DesiredPod]:
        if slot and pods.holds(slot):
            return []
        return [
            DesiredPod(template_of(replacement.pod), slot=slot, name=slot)
            for replacement in pods.replacements.get(slot, ())
        ]


class NoOpRule(Struct, frozen=True):
    """A rule that does not change the owner's pods."""

    reads_readiness: ClassVar[bool] = False

    def slot_of(self, pod: Pod) -> str:
        """Return "", because pods of such an owner have no slots (see `OwnerRule.slot_of`)."""
        return ""

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return "" for each of `replicas`."""
        return [""] * len(replicas)

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return False, because no pod is replaced."""
        return False

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return no changes."""
        return NOTHING

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return no changes."""
        return NOTHING


class DeletedOwnerRule(Struct, frozen=True):
    """Deletes the pods of an implied ReplicaSet after its Deployment was deleted.

    Module `deployment.rollout` explains implied ReplicaSets.
    """

    reads_readiness: ClassVar[bool] = False

    def slot_of(self, pod: Pod) -> str:
        """Return "", because pods of such an owner have no slots (see `OwnerRule.slot_of`)."""
        return ""

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return "" for each of `replicas`."""
        return [""] * len(replicas)

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return False, because no pod is replaced."""
        return False

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return a plan that deletes all active pods.

        Pods that were created after the owner's deletion are deleted, too.
        """
        return Plan(delete=tuple(pods.active.values()), why=WHY_OWNER_DELETED)

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return no changes."""
        return NOTHING


def no_rule(_kind: str) -> NoOpRule:
    """Return a rule that changes no pods, for an unknown owner in a cluster with API clients."""
    return NoOpRule()


def rule_for_unknown(kind: str) -> UnknownOwnerRule | NoOpRule:
    """Return the rule for an owner that the cluster state lacks; `kind` is the owner's kind."""
    return NoOpRule() if kind in NODE_BOUND_KINDS else UnknownOwnerRule(kind)


def is_unknown_owner(rule: OwnerRule) -> bool:
    """Return whether `rule` replaces the pods of an owner that the cluster state lacks."""
    return isinstance(rule, UnknownOwnerRule)
