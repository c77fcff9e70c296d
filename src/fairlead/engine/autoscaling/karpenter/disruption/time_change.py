"""Computes when the mere passing of time next allows or forbids a disruption.

    budget            its schedule starts or its duration ends
    do-not-disrupt    the duration in the annotation of a pod ends

Upstream's loops run every ten seconds and detect these changes. Here, loops run only if they could
have a new result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.timestamp import parse_duration
from fairlead.engine.autoscaling.karpenter.apis import NodePool, NodePoolBudget
from fairlead.engine.autoscaling.karpenter.pod import do_not_disrupt_ends
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.core.cron_schedule import ScheduleError, read_schedule
from fairlead.engine.core.instant import Instant


def next_time_change(cluster: KarpenterCluster, now: Instant) -> Instant | None:
    """Return the first time after `now` at which a budget or a do-not-disrupt protection changes.

    Returns None if there is no such time.
    """
    change = next_budget_change(cluster.node_pools.values(), now)
    times = [] if change is None else [change]
    for name, claim in cluster.node_claims.items():
        for pod in cluster.pods_on(claim.status.node_name or name).annotated:
            ends = do_not_disrupt_ends(pod)
            if ends is not None and ends > now:
                times.append(ends)
    return min(times, default=None)


def next_budget_change(pools: Iterable[NodePool], now: Instant) -> Instant | None:
    """Return the first time after `now` at which a budget of `pools` starts or ends.

    Returns None if there is no such time.
    """
    budgets = (budget for pool in pools for budget in pool.spec.disruption.budgets)
    return min((time for one in budgets for time in _budget_times(one, now)), default=None)


def _budget_times(budget: NodePoolBudget, now: Instant) -> Iterator[Instant]:
    """Yield the next start of the budget and, if it is active, its end."""
    if budget.schedule is None or budget.duration is None:
        return
    try:
        schedule = read_schedule(budget.schedule)
        duration = parse_duration(budget.duration)
    except (ScheduleError, ValueError):  # an invalid budget never changes
        return
    start = schedule.after(now)
    if start is not None:
        yield start
    running = schedule.after(now - duration)
    if running is not None and running <= now:
        yield running + duration
