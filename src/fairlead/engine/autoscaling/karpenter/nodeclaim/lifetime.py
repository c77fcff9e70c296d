"""The expiration of NodeClaims, and the times at which the pods of their nodes last changed.

upstream: pkg/controllers/nodeclaim/expiration/controller.go, podevents/controller.go
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp, parse_timestamp
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, duration_or_never
from fairlead.engine.autoscaling.karpenter.pod import is_owned_by
from fairlead.engine.core.instant import DurationNs, Instant, seconds

_POD_EVENT_PERIOD_NS: Final[DurationNs] = 10 * NANOSECONDS_PER_SECOND


def expires_at(claim: NodeClaim) -> Instant | None:
    """Return the time at which the NodeClaim expires.

    At this time the NodeClaim is deleted, even if no disruption budget allows this. Returns None if
    the NodeClaim never expires or is already being deleted.
    """
    expire_after = duration_or_never(claim.spec.expire_after)
    if expire_after is None or claim.metadata.deletion_timestamp:
        return None
    return parse_timestamp(claim.metadata.creation_timestamp) + expire_after


def is_pod_event(old: Pod | None, new: Pod) -> bool:
    """Return whether a change of a pod postpones the consolidation of its node.

    The result is True if the pod has just been bound, has terminated, or has begun to terminate.
    The result is False for DaemonSet pods.
    """
    if is_owned_by(new, "DaemonSet") or not new.spec.node_name:
        return False
    was_bound = old is not None and bool(old.spec.node_name)
    was_terminal = old is not None and is_terminal(old)
    was_terminating = old is not None and is_terminating(old)
    return (
        not was_bound
        or (is_terminal(new) and not was_terminal)
        or (is_terminating(new) and not was_terminating)
    )


def last_event_at(pod: Pod, now: Instant) -> Instant:
    """Return the earlier of `now` and the time of the last event of `pod` (see `is_pod_event`).

    The binding of the pod is one of these events. If the pod does not state when it was bound, its
    start time replaces the time of the binding. If the pod does not state its start time either,
    its creation time is used. If the pod states none of these times, the result is `now`.
    """
    scheduled = condition(pod, "PodScheduled")
    bound = (
        (scheduled.last_transition_time if scheduled is not None else None)
        or pod.status.start_time
        or pod.metadata.creation_timestamp
    )
    if not bound:
        return now
    times = [parse_timestamp(bound)]
    if is_terminal(pod):
        ends = (one.state.terminated for one in pod.status.container_statuses)
        times += [parse_timestamp(end.finished_at) for end in ends if end and end.finished_at]
    if is_terminating(pod):
        grace = seconds(pod.metadata.deletion_grace_period_seconds or 0)
        times.append(parse_timestamp(pod.metadata.deletion_timestamp) - grace)
    return min(max(times), now)


def with_pod_event(claim: NodeClaim, event_at: Instant) -> NodeClaim:
    """Return the NodeClaim with `event_at` as the time of its last pod event.

    The NodeClaim is unchanged if its last pod event is later than `event_at`, or less than ten
    seconds before `event_at`.
    """
    last = claim.status.last_pod_event_time
    if last and event_at - parse_timestamp(last) < _POD_EVENT_PERIOD_NS:
        return claim
    return replace(
        claim, status=replace(claim.status, last_pod_event_time=format_timestamp(event_at))
    )
