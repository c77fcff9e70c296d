"""Ownership: which objects an owner selects, and which objects without a controller it adopts.

upstream: pkg/controller/controller_ref_manager.go:ClaimObject
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    Job,
    LabelSelector,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import is_static, is_terminal
from fairlead.api.selector import map_selector, selector_matches
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.job.rule import is_finished, is_own

Adopter = ReplicaSet | ReplicationController | DaemonSet | StatefulSet | Deployment | Job
Child = Pod | ReplicaSet | ControllerRevision

_POD_OWNERS: Final = (ReplicaSet, ReplicationController, DaemonSet, StatefulSet, Job)


def adopts(owner: Adopter, child: Child) -> bool:
    """Return whether `owner` adopts `child`, which is in its namespace and has no controller.

    Only Jobs adopt finished pods, because Jobs count them. Some Jobs adopt no pods (`claims_pods`).
    """
    if is_ending(owner) or is_ending(child) or not _may_own(owner, child):
        return False
    if isinstance(child, Pod):
        if is_static(child) or (is_terminal(child) and not isinstance(owner, Job)):
            return False
        if isinstance(owner, Job) and not claims_pods(owner):
            return False
    return selects(owner, child)


def claims_pods(job: Job) -> bool:
    """Return whether `job` adopts the pods that it selects, and releases its other pods.

    A finished Job does not, nor does a Job that another controller manages. Neither does a Job
    without a selector, as in a manifest: only an API server generates the selector.
    """
    return job.spec.selector is not None and not is_finished(job) and is_own(job)


def selects(owner: Adopter, child: Child) -> bool:
    """Return whether the selector of `owner` matches the labels of `child`."""
    selector: LabelSelector | None
    if isinstance(owner, ReplicationController):
        selector = map_selector(owner.spec.selector) if owner.spec.selector else None
    else:
        selector = owner.spec.selector
    return selector_matches(selector, child.metadata.labels)


def is_ending(one: Adopter | Child) -> bool:
    """Return whether `one` is being deleted."""
    return one.metadata.deletion_timestamp != ""


def _may_own(owner: Adopter, child: Child) -> bool:
    """Return whether `owner` can control an object with the kind and name of `child`."""
    if isinstance(child, ReplicaSet):
        return isinstance(owner, Deployment)
    if isinstance(child, ControllerRevision):
        return isinstance(owner, StatefulSet | DaemonSet)
    if isinstance(owner, StatefulSet):
        return ordinal_of(owner.metadata.name, child.metadata.name) is not None
    return isinstance(owner, _POD_OWNERS)
