"""Owners: the objects that stand for pods, and the rule that each of them stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Job,
    Node,
    OwnerReference,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.workloads.controller_history import Histories
from fairlead.engine.workloads.daemon_set.rule import DaemonPods
from fairlead.engine.workloads.identity import failed_create
from fairlead.engine.workloads.job.rule import JobPods
from fairlead.engine.workloads.pod_control.pod_set import PodSet
from fairlead.engine.workloads.pod_control.pod_template import read_template
from fairlead.engine.workloads.pod_control.rule import Rule
from fairlead.engine.workloads.pod_control.unknown_owner import HandsOff
from fairlead.engine.workloads.replica_set.rule import Replicas
from fairlead.engine.workloads.stateful_set.rule import StatefulPods

Owner = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job

API_VERSIONS: Final[Mapping[type[Any], str]] = {
    ReplicaSet: "apps/v1",
    ReplicationController: "v1",
    StatefulSet: "apps/v1",
    DaemonSet: "apps/v1",
    Job: "batch/v1",
}


def is_owner(one: ApiObject) -> TypeGuard[Owner]:
    """Whether `one` stands for pods."""
    return type(one) in API_VERSIONS


def reference_to(owner: Owner) -> OwnerReference:
    """How the pods of `owner` refer to it."""
    return OwnerReference(
        api_version=API_VERSIONS[type(owner)],
        kind=type(owner).__name__,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )


def complaints(owner: Owner) -> list[Command]:
    """The event that tells why `owner` makes no pods, if its template describes none."""
    if read_template(owner.spec.template) is not None:
        return []
    meta = owner.metadata
    ref = ObjectRef(type(owner).__name__, meta.namespace, meta.name, meta.uid)
    return [failed_create(ref, "spec.template describes no pod")]


def rule_of(
    owner: Owner, pods: PodSet, before: Rule, nodes: Mapping[str, Node], histories: Histories
) -> Rule:
    """What `owner` wants of its `pods` now; `before` is what it wanted until now.

    An owner whose template describes no pod wants nothing that anybody could do, and one that is
    to go wants nothing any more: what becomes of its pods is the garbage collector's.
    """
    if isinstance(owner, Job):  # which counts its pods to its own end
        known = before if isinstance(before, JobPods) else JobPods.of(owner, pods)
        return known.changed(owner)
    if owner.metadata.deletion_timestamp:
        return HandsOff()
    if read_template(owner.spec.template) is None:
        return HandsOff()
    match owner:
        case ReplicaSet() | ReplicationController():
            return Replicas(owner.spec.replicas, owner.spec.template)
        case StatefulSet():
            history = histories.of(pods.key, owner)
            history.resolve(owner, pods.pods.values())
            return StatefulPods.of(owner, history)
        case DaemonSet():
            history = histories.of(pods.key, owner)
            history.resolve(owner, pods.pods.values())
            return DaemonPods.of(owner, nodes, history, before, pods) or HandsOff()
