"""Termination: drains the nodes of NodeClaims that are being deleted, then removes these nodes.

Pods are evicted within their disruption budgets, ordinary pods before critical pods. Termination
waits for pods with do-not-disrupt, unless the NodeClaim has a termination grace period. In that
case, every pod is deleted early enough to end before the period does. DaemonSet pods stay until the
node is removed.

upstream: pkg/controllers/node/termination/{controller,terminator/terminator}.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.facts import default_of
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminating
from fairlead.api.timestamp import parse_duration, parse_timestamp
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.pod import has_do_not_disrupt
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.core.command import Command, DeleteObject, EvictPod, ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant, seconds

RETRY_NS: Final[DurationNs] = seconds(5)
_CRITICAL: Final = ("system-cluster-critical", "system-node-critical")
_DEFAULT_GRACE_S: Final[int] = default_of("core.v1.PodSpec", "terminationGracePeriodSeconds")


class DrainStep(Struct, frozen=True):
    """The next commands of a drain. `remains` is False if the drain is complete."""

    commands: tuple[Command, ...]
    remains: bool


def drain_step(claim: NodeClaim, on_node: PodsOnNode, now: Instant) -> DrainStep:
    """Return the next step of a drain: the eviction of ordinary pods, or else of critical pods.

    If the grace period of some pods would exceed the NodeClaim's deadline, these pods are deleted
    instead.
    """
    leaving, staying = on_node.leaving, on_node.not_yet_leaving
    if not staying:
        return DrainStep((), remains=bool(leaving))
    deadline = _deadline(claim)
    overdue = [pod for pod in staying if deadline is not None and now >= deadline - _grace(pod)]
    if overdue:
        deleted = (DeleteObject(_ref(pod), why="termination grace period") for pod in overdue)
        return DrainStep(tuple(deleted), remains=True)
    ordinary = [pod for pod in leaving if not _is_critical(pod)]
    evicted = (
        EvictPod(_ref(pod), why="karpenter")
        for pod in ordinary or leaving
        if not is_terminating(pod) and not has_do_not_disrupt(pod, now)
    )
    return DrainStep(tuple(evicted), remains=True)


def _is_critical(pod: Pod) -> bool:
    return pod.spec.priority_class_name in _CRITICAL


def _deadline(claim: NodeClaim) -> Instant | None:
    period = claim.spec.termination_grace_period
    if period is None or not claim.metadata.deletion_timestamp:
        return None
    return parse_timestamp(claim.metadata.deletion_timestamp) + parse_duration(period)


def _grace(pod: Pod) -> DurationNs:
    grace = pod.spec.termination_grace_period_seconds
    return seconds(_DEFAULT_GRACE_S if grace is None else grace)


def _ref(pod: Pod) -> ObjectRef:
    meta = pod.metadata
    return ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
