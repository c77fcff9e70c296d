"""Node health: when a node was heard of last, and what follows when that is too long ago.

A heartbeat is a changed Ready heartbeat time or a later lease renewal. What counts is not its own
time but the *probe*: the monitor pass that noticed it, so clocks of nodes do not matter.

    probe + grace period < now   ⇒   Ready and the three pressures become Unknown

The grace period is the startup one while nobody ever posted a Ready condition. Every function here
is pure; `health` is what a controller remembers of a node, also after the node is gone.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:tryUpdateNodeHealth
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from fairlead.api.lease import Renewals
from fairlead.api.objects import Node, NodeCondition
from fairlead.api.pod import condition
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Condition
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.beat import Beat
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.well_known import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    PID_PRESSURE,
    READY,
    UNKNOWN,
    ready_condition,
)

STOPPED: Final = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER_STARTED: Final = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
# NetworkUnavailable is not among them: it is not the kubelet's.
SILENCED: Final = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """What is remembered of a node.

    `probe` is the pass that noticed its last heartbeat, `ready_since` the one that noticed the
    last change of Ready. `ready`, `heartbeat` and `transition` are the Ready condition as saved
    ("" where there was none), `lease` the last renewal known, None when it is to be noticed anew.
    """

    probe: Instant
    ready_since: Instant
    ready: str = ""
    heartbeat: str = ""
    transition: str = ""
    lease: Instant | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """What a pass finds: the health to remember, and Ready before and after (None: absent).

    `silenced` are the conditions to write, none unless Ready changes; once they are written,
    `health_silenced` is to be remembered instead.
    """

    health: NodeHealth
    observed: str | None
    current: str | None
    silenced: tuple[Condition, ...] = ()
    health_silenced: NodeHealth | None = None


def examine(
    health: NodeHealth | None,
    node: Node,
    renewals: Renewals | None,
    now: Instant,
    config: NodeLifecycleConfig,
) -> Examination:
    """What the pass at `now` finds about `node`; the passes before it have been taken in."""
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
    return Examination(noticed, observed, UNKNOWN, tuple(_silenced(node)), gone)


def _with_status(
    health: NodeHealth | None, node: Node, ready: NodeCondition | None, now: Instant
) -> NodeHealth:
    """`health` after a look at the status of `node`.

    Whenever the saved condition is exchanged the lease is forgotten, so that the next pass takes
    an old renewal for news: upstream's way, and visible where leases stop.
    """
    if ready is None:
        if health is None:
            created = _creation(node)
            return NodeHealth(created, created)
        # That a condition went away is no news, and its probe stays, even that of an earlier node.
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


def _creation(node: Node) -> Instant:
    text = node.metadata.creation_timestamp
    return parse_timestamp(text) if text else 0


def _silenced(node: Node) -> list[Condition]:
    changes = []
    for kind in SILENCED:
        found = condition(node, kind)
        if found is None:
            heartbeat = node.metadata.creation_timestamp
            changes.append(Condition(kind, UNKNOWN, *NEVER_STARTED, last_heartbeat_time=heartbeat))
        elif found.status != UNKNOWN:
            changes.append(Condition(kind, UNKNOWN, *STOPPED))
    return changes


def caught_up(
    health: NodeHealth | None, renewals: Renewals | None, last_pass: Instant, passes: Beat
) -> NodeHealth | None:
    """`health` after the passes up to `last_pass`, in which only regular renewals were noticed."""
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
    passes: Beat,
    config: NodeLifecycleConfig,
) -> Instant | None:
    """The first pass that could find something about `node` if nobody writes anything.

    `health` is as of the last pass. A node that is Unknown stays so; one whose lease is renewed
    often enough is never quiet, and one whose lease is not may turn out to have been heard of.
    """
    ready = ready_condition(node)
    if ready is not None and ready.status == UNKNOWN:
        return None
    grace = _grace(ready, config)
    is_regular = renewals is not None and renewals.every and renewals.first <= health.probe
    if renewals is not None and is_regular and renewals.every + passes.period <= grace:
        return None
    return passes.after(health.probe + grace)
