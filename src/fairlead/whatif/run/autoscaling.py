"""autoscaling_outcome: the autoscaler's history as values, starting at the change."""

from __future__ import annotations

from typing import Final

from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler
from fairlead.engine.autoscaling.cluster_autoscaler.history import NodeArrival, NodeDeparture
from fairlead.engine.autoscaling.cluster_autoscaler.simulated_provider import NodeGroupSpec
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.configuration.autoscaling import CLUSTER_AUTOSCALER
from fairlead.whatif.outcome.node_group import AutoscalingOutcome, GroupOutcome, NodeTransition

_SECONDS_PER_HOUR: Final = 3600.0


def autoscaling_outcome(
    autoscaler: ClusterAutoscaler, since: Instant, until: Instant
) -> AutoscalingOutcome:
    """Return what the autoscaler did from `since` to `until`."""
    history = autoscaler.history
    moves: list[NodeArrival | NodeDeparture] = [*history.arrivals, *history.departures]
    transitions = sorted(
        (
            NodeTransition(one.at, one.node, one.group, isinstance(one, NodeArrival))
            for one in moves
        ),
        key=lambda one: (one.at, one.came, one.node),
    )
    counted = tuple(one for one in transitions if since <= one.at <= until)
    nodes = autoscaler.group_sizes()
    groups = tuple(
        _group(spec, nodes.get(spec.id, 0), counted, since, until) for spec in autoscaler.groups
    )
    return AutoscalingOutcome(
        CLUSTER_AUTOSCALER,
        groups,
        counted,
        dict(sorted(history.without_scale_up.items())),
        dict(sorted(history.staying.items())),
    )


def _group(
    spec: NodeGroupSpec,
    after: int,
    transitions: tuple[NodeTransition, ...],
    since: Instant,
    until: Instant,
) -> GroupOutcome:
    own = [one for one in transitions if one.group == spec.id]
    added = sum(one.came for one in own)
    before = after - added + (len(own) - added)
    duration = before * to_seconds(until - since)
    for one in own:
        duration += to_seconds(until - one.at) * (1 if one.came else -1)
    return GroupOutcome(
        group=spec.id,
        minimum=spec.minimum,
        maximum=spec.maximum,
        before=before,
        after=after,
        added=added,
        removed=len(own) - added,
        node_hours=duration / _SECONDS_PER_HOUR,
        price=spec.price,
    )
