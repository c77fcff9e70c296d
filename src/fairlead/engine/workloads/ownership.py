"""Ownership: which objects without a controller an owner adopts.

upstream: pkg/controller/controller_ref_manager.go:ClaimObject
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    Job,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import is_static, is_terminal
from fairlead.api.selector import selector_matches
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.job.rule import is_finished, is_own
from fairlead.engine.workloads.selection import Adopter, Child, selector_of, selects

_POD_OWNERS: Final = (ReplicaSet, ReplicationController, DaemonSet, StatefulSet, Job)


def adopts(owner: Adopter, child: Child) -> bool:
    """Return whether `owner` adopts `child`, which no owner controls.

    Both objects are in the same namespace. Only Jobs adopt finished pods, because Jobs count them.
    Some owners adopt nothing (`claims`).
    """
    if is_ending(owner) or is_ending(child) or not _may_own(owner, child):
        return False
    if isinstance(child, Pod) and (
        is_static(child) or (is_terminal(child) and not isinstance(owner, Job))
    ):
        return False
    return selects(owner, child) and claims(owner)


def claims(owner: Adopter) -> bool:
    """Return whether `owner` adopts the objects that it selects, and releases its other objects.

    Returns False for a finished Job, and for a Job that another controller manages. Also returns
    False if the selector of `owner` is missing or empty, or does not match the owner's template.
    If the selector is empty, `owner` would adopt every orphan. If the selector is missing or does
    not match the template, `owner` would release each pod that it creates. An API server accepts no
    owner with such a selector, but a manifest may contain one.
    """
    if isinstance(owner, Job) and (is_finished(owner) or not is_own(owner)):
        return False
    selector = selector_of(owner)
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    labels = (owner.spec.template.get("metadata") or {}).get("labels") or {}
    return selector_matches(selector, labels)


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
