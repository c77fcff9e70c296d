"""Node health: the last heartbeat of a node, and the consequences of an overdue heartbeat.

A heartbeat is a new `lastHeartbeatTime` in the Ready condition, or a renewal of the node's lease.
The grace period runs from the *probe*: the time of the monitor pass that observed the heartbeat.
The timestamp that the node wrote is not used. So clock skew of nodes does not matter.

    probe + grace period < now   ⇒   Ready and the three pressure conditions become Unknown

Example: the grace period is 50 s, and there is a pass exactly every 5 s. The pass at 15 s notices
that a lease was renewed at 12 s (probe = 15 s). If the lease is not renewed again, the conditions
become Unknown in the first pass after 65 s, which is the pass at 70 s.

If a node has no Ready condition, the startup grace period applies. The saved health of a node
(`NodeHealth`) outlives the Node object.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:tryUpdateNodeHealth
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.lease import Renewals
from fairlead.api.nodes.readiness import READY, UNKNOWN, ready_condition
from fairlead.api.objects import Node, NodeCondition
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Condition
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.well_known import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE

STOPPED: Final = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER_STARTED: Final = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
# The conditions that the kubelet owns; NetworkUnavailable belongs to the network provider.
KUBELET_CONDITIONS: Final = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)


class NodeHealth(Struct, frozen=True):
    """The saved health of a node (upstream: nodeHealthData).

    The fields `ready`, `heartbeat` and `transition` are `status`, `lastHeartbeatTime` and
    `lastTransitionTime` of the saved Ready condition ("" if there was none).
    """

    probe: Instant  # the time of the pass that noticed the last heartbeat
    ready_since: Instant  # the time of the pass that noticed the last change of Ready
    ready: str = ""
    heartbeat: str = ""
    transition: str = ""
    # The time of the last known renewal of the node's lease. If it is None, the next pass treats
    # any renewal as a new heartbeat.
    lease: Instant | None = None


class Examination(Struct, frozen=True):
    """The result of examining a node.

    A Ready status of None means that there is no Ready condition.
    """

    health: NodeHealth  # the new saved health
    observed: str | None  # the Ready status before the pass
    current: str | None  # the Ready status after the pass
    unknown_conditions: tuple[Condition, ...] = ()  # the conditions to set to Unknown
    # The saved health after `unknown_conditions` have been written.
    health_if_unknown: NodeHealth | None = None


def examine(
    health: NodeHealth | None,
    node: Node,
    renewals: Renewals | None,
    now: Instant,
    config: NodeLifecycleConfig,
) -> Examination:
    """Examine `node` in the pass at `now`.

    `health` is the saved health after all earlier passes.
    """
    ready = ready_condition(node)
    noticed = _with_status(health, node, ready, now)
    renewed = None if renewals is None else renewals.last(now)
    saved_lease = None if health is None else health.lease
    if renewed is not None and (saved_lease is None or renewed > saved_lease):
        noticed = replace(noticed, lease=renewed, probe=now)
    observed = None if ready is None else ready.status
    if observed == UNKNOWN or now <= noticed.probe + _grace(ready, config):
        return Examination(noticed, observed, observed)
    gone = replace(noticed, ready=UNKNOWN, ready_since=now, lease=renewed)
    if ready is None:
        gone = replace(gone, heartbeat=node.metadata.creation_timestamp)
    return Examination(noticed, observed, UNKNOWN, tuple(_unknown_conditions(node)), gone)


def _with_status(
    health: NodeHealth | None, node: Node, ready: NodeCondition | None, now: Instant
) -> NodeHealth:
    """Return `health` updated from the status of `node`.

    If the saved Ready condition is replaced, `lease` of the result is None, as in upstream. As a
    consequence, the next pass can treat an old renewal as a new heartbeat.
    """
    if ready is None:
        if health is None:
            text = node.metadata.creation_timestamp
            created = parse_timestamp(text) if text else 0
            return NodeHealth(created, created)
        # A node that loses the condition has sent no heartbeat. So the probe stays, even if it is
        # from an earlier Node object of the same name.
        return replace(health, ready="", heartbeat="", transition="")
    fresh = NodeHealth(
        now, now, ready.status, ready.last_heartbeat_time, ready.last_transition_time
    )
    if health is None or not health.ready:
        return fresh
    if health.heartbeat == ready.last_heartbeat_time:
        return health
    if health.transition == ready.last_transition_time:
        return replace(fresh, ready_since=health.ready_since)
    return fresh


def _grace(ready: NodeCondition | None, config: NodeLifecycleConfig) -> int:
    return config.node_startup_grace_period if ready is None else config.monitor_grace


def _unknown_conditions(node: Node) -> list[Condition]:
    changes = []
    for kind in KUBELET_CONDITIONS:
        found = condition(node, kind)
        if found is None:
            heartbeat = node.metadata.creation_timestamp
            changes.append(Condition(kind, UNKNOWN, *NEVER_STARTED, last_heartbeat_time=heartbeat))
        elif found.status != UNKNOWN:
            changes.append(Condition(kind, UNKNOWN, *STOPPED))
    return changes


def caught_up(
    health: NodeHealth | None, renewals: Renewals | None, last_pass: Instant, passes: Period
) -> NodeHealth | None:
    """Return `health` as updated by the passes up to `last_pass`; None if `health` is None.

    Call this function only if these passes found no change except renewals of the node's lease.
    `renewals` are the times of these renewals.
    """
    if health is None or health.lease is None or renewals is None:
        return health
    renewed = renewals.last(last_pass)
    if renewed <= health.lease:
        return health
    return replace(health, lease=renewed, probe=max(health.probe, passes.at_or_after(renewed)))


def next_examination(
    health: NodeHealth,
    node: Node,
    renewals: Renewals | None,
    passes: Period,
    config: NodeLifecycleConfig,
) -> Instant | None:
    """Return the time of the first pass that could find the heartbeat of `node` overdue.

    `health` is the saved health after the last pass. Returns None if the node is already Unknown.
    Also returns None if the node's lease is renewed regularly, and the renewal interval plus the
    period of the passes is at most the grace period.
    """
    ready = ready_condition(node)
    if ready is not None and ready.status == UNKNOWN:
        return None
    grace = _grace(ready, config)
    is_regular = renewals is not None and renewals.every and renewals.first <= health.probe
    if renewals is not None and is_regular and renewals.every + passes.period <= grace:
        return None
    return passes.after(health.probe + grace)
