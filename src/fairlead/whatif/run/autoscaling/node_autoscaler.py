"""Builds the AutoscalingOutcome of a run: its node groups, and the nodes added and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler
from fairlead.engine.autoscaling.cluster_autoscaler.history import NodeArrival, NodeDeparture
from fairlead.engine.autoscaling.karpenter.controller import Karpenter
from fairlead.engine.autoscaling.karpenter.history import KarpenterNodeChange
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.configuration.autoscaling.autoscaler import CLUSTER_AUTOSCALER, KARPENTER
from fairlead.whatif.outcome.autoscaling.node_group import (
    AutoscalingOutcome,
    GroupOutcome,
    NodeTransition,
)

_SECONDS_PER_HOUR: Final = 3600.0
# the reasons of a node change by a user, in the words of Karpenter's history
_CREATED: Final = "Created by a user"
_DELETED: Final = "Deleted"


def autoscaling_outcome(
    autoscaler: ClusterAutoscaler, since: Instant, until: Instant
) -> AutoscalingOutcome:
    """Return the groups of Cluster Autoscaler, and its node changes between `since` and `until`."""
    history = autoscaler.history
    moves = [
        *map(_arrival, history.arrivals),
        *map(_departure, history.departures),
    ]
    transitions = sorted(moves, key=lambda one: (one.at, one.came, one.node))
    counted = tuple(one for one in transitions if since <= one.at <= until)
    nodes = autoscaler.group_sizes()
    groups = tuple(
        _group(spec, nodes.get(spec.id, 0), counted, since, until) for spec in autoscaler.groups
    )
    return AutoscalingOutcome(
        CLUSTER_AUTOSCALER,
        groups,
        counted,
        dict(sorted(autoscaler.pods_without_scale_up().items())),
        dict(sorted(autoscaler.nodes_without_scale_down().items())),
        dict(sorted(autoscaler.undelivered.items())),
        tuple(one for one in transitions if one.at < since),
    )


def _arrival(one: NodeArrival) -> NodeTransition:
    reason = "" if one.is_own else _CREATED
    return NodeTransition(one.at, one.node, one.group, came=True, reason=reason)


def _departure(one: NodeDeparture) -> NodeTransition:
    reason = "" if one.is_own else _DELETED
    return NodeTransition(one.at, one.node, one.group, came=False, reason=reason)


def karpenter_outcome(karpenter: Karpenter, since: Instant, until: Instant) -> AutoscalingOutcome:
    """Return Karpenter's groups, and the nodes that it added and removed from `since` to `until`.

    A group consists of the nodes with the same NodePool, instance type and capacity type.
    """
    history = karpenter.history
    counted = [one for one in history.changes if since <= one.at <= until]
    earlier = [one for one in history.changes if one.at < since]
    prices: dict[tuple[str, str], list[float]] = {}
    after: Counter[tuple[str, str]] = Counter()
    for claim in karpenter.cluster.node_claims.values():
        labels = claim.metadata.labels
        kind = labels.get(INSTANCE_TYPE, "")
        key = _group_name(claim.node_pool, kind, labels.get(CAPACITY_TYPE, "")), kind
        after[key] += 1
        prices.setdefault(key, []).append(karpenter.price_of(claim))
    for one in counted:
        key = _group_name(one.pool, one.instance_type, one.capacity_type), one.instance_type
        prices.setdefault(key, []).append(one.price)
    transitions = tuple(map(_transition, counted))
    groups = tuple(
        _group_of(
            GroupOutcome(
                group=key[0],
                minimum=0,
                maximum=None,
                before=0,
                after=after[key],
                added=0,
                removed=0,
                node_hours=0.0,
                price=float_sum(prices[key]) / len(prices[key]) if all(prices[key]) else None,
                instance_type=key[1],
            ),
            transitions,
            since,
            until,
        )
        for key in sorted(prices)
    )
    return AutoscalingOutcome(
        KARPENTER,
        groups,
        transitions,
        dict(sorted(karpenter.pods_without_node().items())),
        dict(sorted(karpenter.kept_nodes(until).items())),
        dict(sorted(history.undelivered.items())),
        tuple(map(_transition, earlier)),
    )


def awaited_budget_notes(karpenter: Karpenter, now: Instant) -> Iterator[str]:
    """Yield a note about the nodes that Karpenter's budgets protect at `now`, the run's end."""
    awaited = karpenter.awaited_budgets(now)
    if awaited is None:
        return
    names, change = awaited
    yield (
        f"Karpenter's disruption budgets allow no disruption of {listed(names)} "
        f"at the end. They change next at {format_timestamp(change)}; what Karpenter does "
        f"then is not part of this answer."
    )


def _transition(one: KarpenterNodeChange) -> NodeTransition:
    group = _group_name(one.pool, one.instance_type, one.capacity_type)
    return NodeTransition(one.at, one.node, group, one.added, one.reason)


def _group_name(pool: str, instance_type: str, capacity_type: str) -> str:
    return " ".join(part for part in (pool, instance_type, capacity_type) if part)


def _group(
    spec: NodeGroupSpec,
    after: int,
    transitions: tuple[NodeTransition, ...],
    since: Instant,
    until: Instant,
) -> GroupOutcome:
    empty = GroupOutcome(
        group=spec.id,
        minimum=spec.minimum,
        maximum=spec.maximum,
        before=0,
        after=after,
        added=0,
        removed=0,
        node_hours=0.0,
        price=spec.price,
        instance_type=_type_of(spec),
    )
    return _group_of(empty, transitions, since, until)


def _type_of(spec: NodeGroupSpec) -> str:
    metadata = (spec.template or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(INSTANCE_TYPE, ""))


def _group_of(
    group: GroupOutcome, transitions: Sequence[NodeTransition], since: Instant, until: Instant
) -> GroupOutcome:
    """Return `group` with the node counts and node hours that follow from `transitions`."""
    own = [one for one in transitions if one.group == group.group]
    added = sum(one.came for one in own)
    removed = len(own) - added
    before = group.after - added + removed
    duration = before * to_seconds(until - since)
    for one in own:
        duration += to_seconds(until - one.at) * (1 if one.came else -1)
    return replace(
        group,
        before=before,
        added=added,
        removed=removed,
        node_hours=duration / _SECONDS_PER_HOUR,
    )
