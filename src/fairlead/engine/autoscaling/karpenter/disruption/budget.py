"""The number of nodes of each NodePool that may be disrupted now for a given reason.

upstream: pkg/apis/v1/nodepool.go:GetAllowedDisruptionsByReason,
pkg/controllers/disruption/helpers.go:BuildDisruptionBudgetMapping
"""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import parse_duration
from fairlead.engine.autoscaling.karpenter.apis import (
    INSTANCE_TERMINATING,
    NodePool,
    NodePoolBudget,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.core.cron_schedule import NoSuchDateError, ScheduleError, read_schedule
from fairlead.engine.core.instant import Instant

EMPTY: Final = "Empty"
DRIFTED: Final = "Drifted"
UNDERUTILIZED: Final = "Underutilized"

UNLIMITED: Final = 2**31 - 1


def allowed_disruptions(cluster: KarpenterCluster, reason: str, now: Instant) -> dict[str, int]:
    """Return {NodePool: number of its nodes that may still be disrupted for `reason`}.

    A node counts as already disrupted if it is not ready or is being removed. The following nodes
    do not count at all: nodes without a NodeClaim, uninitialized nodes, and nodes whose instance is
    terminating.
    """
    nodes: dict[str, int] = {}
    disrupting: dict[str, int] = {}
    for node in cluster.nodes(now):
        if node.claim is None or not node.initialized or node.claim.is_true(INSTANCE_TERMINATING):
            continue
        pool = node.node_pool
        nodes[pool] = nodes.get(pool, 0) + 1
        if not node.ready or node.marked_for_deletion:
            disrupting[pool] = disrupting.get(pool, 0) + 1
    return {
        name: max(0, allowed(pool, nodes.get(name, 0), reason, now) - disrupting.get(name, 0))
        for name, pool in cluster.node_pools.items()
    }


def allowed(pool: NodePool, nodes: int, reason: str, now: Instant) -> int:
    """Return how many nodes of `pool` may be disrupted for `reason` under its active budgets.

    `nodes` is the number of nodes of the pool. Returns UNLIMITED if no active budget applies to
    `reason`. Returns 0 if any budget, even one for other reasons, has an invalid schedule or
    duration.
    """
    # upstream: nodepool.go:GetAllowedDisruptionsByReason
    found = UNLIMITED
    for one in pool.spec.disruption.budgets:
        try:
            is_active = _is_active(one, now)
        except (ScheduleError, ValueError):
            return 0
        if is_active and (one.reasons is None or reason in one.reasons):
            found = min(found, _count(one.nodes, nodes))
    return found


def _is_active(budget: NodePoolBudget, now: Instant) -> bool:
    """Return whether the budget is active at `now`.

    A budget whose schedule never occurs (30 February) is always active. Raises ScheduleError or
    ValueError if the schedule or the duration is invalid. A duration without a schedule is also
    invalid.
    """
    # upstream: nodepool.go:Budget.IsActive; for such dates cron's Next returns the zero time
    if budget.schedule is None and budget.duration is None:
        return True
    duration = parse_duration(budget.duration or "0s")
    try:
        schedule = read_schedule(budget.schedule or "")
    except NoSuchDateError:
        return True
    hit = schedule.after(now - duration)
    return hit is not None and hit <= now


def _count(text: str, nodes: int) -> int:
    if text.endswith("%"):
        return -(-nodes * int(text[:-1]) // 100)
    return int(text)
