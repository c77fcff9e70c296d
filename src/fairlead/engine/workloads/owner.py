"""Owners: objects that control pods, and the rule that decides about the pods of each owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from msgspec import Struct

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
from fairlead.engine.workloads.daemon_set.rule import DaemonSetRule
from fairlead.engine.workloads.identity import failed_create
from fairlead.engine.workloads.job.rule import JobRule
from fairlead.engine.workloads.pod_control.controller_history import Histories
from fairlead.engine.workloads.pod_control.pod_set import PodSet
from fairlead.engine.workloads.pod_control.pod_template import read_template
from fairlead.engine.workloads.pod_control.rule import OwnerRule
from fairlead.engine.workloads.pod_control.unknown_owner import NoOpRule
from fairlead.engine.workloads.replica_set.rule import ReplicaSetRule
from fairlead.engine.workloads.stateful_set.rule import StatefulSetRule

Owner = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job

API_VERSIONS: Final[Mapping[type[Any], str]] = {
    ReplicaSet: "apps/v1",
    ReplicationController: "v1",
    StatefulSet: "apps/v1",
    DaemonSet: "apps/v1",
    Job: "batch/v1",
}


def is_owner(obj: ApiObject) -> TypeGuard[Owner]:
    """Return whether `obj` controls pods."""
    return type(obj) in API_VERSIONS


def reference_to(owner: Owner) -> OwnerReference:
    """Return the owner reference of pods controlled by `owner`."""
    return OwnerReference(
        api_version=API_VERSIONS[type(owner)],
        kind=type(owner).__name__,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )


def unusable_template_events(owner: Owner, rule: OwnerRule) -> list[Command]:
    """Return a FailedCreate event if the owner's template cannot be decoded as a pod, else [].

    `rule` is the rule of `owner`.
    """
    may_be_unusable = isinstance(rule, NoOpRule | JobRule)  # see `OwnerRules.rule_of`
    if not may_be_unusable or read_template(owner.spec.template) is not None:
        return []
    meta = owner.metadata
    ref = ObjectRef(type(owner).__name__, meta.namespace, meta.name, meta.uid)
    return [failed_create(ref, "spec.template describes no pod")]


class OwnerRules(Struct, frozen=True):
    """Creates the rule of each owner.

    If `tracks_jobs` is set, pods of Jobs get the tracking finalizer. `seed` determines the order in
    which DaemonSets update their pods. If `applies_max_unavailable` is set, StatefulSets update as
    many pods at a time as their maxUnavailable allows.
    """

    nodes: Mapping[str, Node]
    histories: Histories
    tracks_jobs: bool
    seed: int
    applies_max_unavailable: bool = False

    def rule_of(self, owner: Owner, pods: PodSet, before: OwnerRule) -> OwnerRule:
        """Return the rule for the newest version of `owner`; `before` is its previous rule.

        The rule does nothing in two cases: the owner's template cannot be decoded as a pod, or the
        owner is being deleted, so that the garbage collector handles its pods. A Job is an
        exception: it has a JobRule in both cases.
        """
        # a Job counts its pods until the end, even while it is being deleted
        if isinstance(owner, Job):
            if isinstance(before, JobRule):
                return before.changed(owner)
            return JobRule.of(owner, pods, is_tracked=self.tracks_jobs).changed(owner)
        if isinstance(owner, StatefulSet):
            # the status contains the revisions, even while the StatefulSet is being deleted
            history = self.histories.of(pods.key, owner)
            history.resolve(owner, pods.pods.samples())
        if owner.metadata.deletion_timestamp:
            return NoOpRule()
        if read_template(owner.spec.template) is None:
            return NoOpRule()
        match owner:
            case ReplicaSet() | ReplicationController():
                return ReplicaSetRule(owner.spec.replicas, owner.spec.template)
            case StatefulSet():
                history = self.histories.of(pods.key, owner)
                return StatefulSetRule.of(
                    owner, history, applies_max_unavailable=self.applies_max_unavailable
                )
            case DaemonSet():
                history = self.histories.of(pods.key, owner)
                history.resolve(owner, pods.pods.samples())
                return (
                    DaemonSetRule.of(owner, self.nodes, history, before, pods, self.seed)
                    or NoOpRule()
                )
