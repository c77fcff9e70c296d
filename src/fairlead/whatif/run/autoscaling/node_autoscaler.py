"""Builds the AutoscalingOutcome of a run: its node groups, and the nodes added and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.original import original_key
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
from fairlead.whatif.configuration.autoscaling.node_price import price_in_group
from fairlead.whatif.outcome.autoscaling.node_group import (
    AutoscalingOutcome,
    GroupOutcome,
    NodeTransition,
)
from fairlead.whatif.outcome.autoscaling.pause import Pause
from fairlead.whatif.outcome.autoscaling.refused_pod import refused_pods
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait

Value = TypeVar("Value")
_SECONDS_PER_HOUR: Final = 3600.0
# the reasons of a node change by a user, in the words of Karpenter's history
_CREATED: Final = "Created by a user"
_DELETED: Final = "Deleted"


def autoscaling_outcome(
    autoscaler: ClusterAutoscaler, since: Instant, until: Instant, waits: Iterable[PodWait]
) -> AutoscalingOutcome:
    """Return the groups of Cluster Autoscaler and their node changes from `since` to `until`.

    `waits` are the times that pods waited for a node.
    """
    history, listers = autoscaler.history, autoscaler.autoscaler.context.listers
    pods = {pod.key: pod for pod in (*listers.unschedulable_pods(), *listers.other_pods.values())}
    specs = {spec.id: spec for spec in autoscaler.groups}
    moves = [
        *(_arrival(one, specs[one.group]) for one in history.arrivals),
        *(_departure(one, specs[one.group]) for one in history.departures),
    ]
    transitions = sorted(moves, key=lambda one: (one.at, one.came, one.node))
    counted = tuple(one for one in transitions if since <= one.at <= until)
    nodes = autoscaler.nodes_by_group()
    prices = {
        spec.id: [price_in_group(spec, node.metadata.labels) for node in nodes.get(spec.id, ())]
        for spec in autoscaler.groups
    }
    groups = tuple(
        _with_nodes(_group(spec), prices[spec.id], counted, since, until)
        for spec in autoscaler.groups
    )
    return AutoscalingOutcome(
        CLUSTER_AUTOSCALER,
        groups,
        counted,
        _by_original(autoscaler.pods_without_scale_up(), pods),
        dict(sorted(autoscaler.nodes_without_scale_down().items())),
        dict(sorted(autoscaler.undelivered.items())),
        tuple(one for one in transitions if one.at < since),
        tuple(_pauses(autoscaler, since, until)),
        refused_pods(history.refusals, waits),
        limits=_by_original(autoscaler.reached_limits(until), pods),
        ignored=_by_original(autoscaler.ignored_pods(), pods),
        members={
            group: frozenset(node.metadata.name for node in found) for group, found in nodes.items()
        },
        nodes_max=autoscaler.nodes_max,
        totals=autoscaler.total_limits,
    )


def _by_original(found: Mapping[str, Value], pods: Mapping[str, Pod]) -> dict[str, Value]:
    """Return `found` with the keys of original pods instead of the keys of replacements, sorted.

    The keys of `found` are keys of pods, and `pods` maps these keys to the pods. An outcome lists
    each replacement under the key of the original pod.
    """
    keys = {key: original_key(pods[key]) if key in pods else key for key in found}
    return {keys[key]: found[key] for key in sorted(found, key=lambda key: (keys[key], key))}


def _arrival(one: NodeArrival, spec: NodeGroupSpec) -> NodeTransition:
    reason = "" if one.is_own else _CREATED
    price = price_in_group(spec, one.labels)
    return NodeTransition(one.at, one.node, one.group, came=True, reason=reason, price=price)


def _departure(one: NodeDeparture, spec: NodeGroupSpec) -> NodeTransition:
    reason = "" if one.is_own else _DELETED
    price = price_in_group(spec, one.labels)
    return NodeTransition(one.at, one.node, one.group, came=False, reason=reason, price=price)


def karpenter_outcome(
    karpenter: Karpenter, since: Instant, until: Instant, waits: Iterable[PodWait]
) -> AutoscalingOutcome:
    """Return Karpenter's groups, and the nodes that they gained and lost from `since` to `until`.

    Nodes that users added or removed are included. A group consists of the nodes with the same
    NodePool, instance type and capacity type. `waits` are the times that pods waited for a node.
    """
    history, pods = karpenter.history, karpenter.cluster.pods
    counted = [one for one in history.changes if since <= one.at <= until]
    earlier = [one for one in history.changes if one.at < since]
    present: dict[tuple[str, str], list[float | None]] = {
        (_group_of_change(one), one.instance_type): [] for one in counted
    }
    # A price can change during a run. The last price of a node counts for the whole run.
    prices = {one.node: one.price or None for one in history.changes}
    for claim in karpenter.cluster.node_claims.values():
        labels = claim.metadata.labels
        kind = labels.get(INSTANCE_TYPE, "")
        key = _group_name(claim.node_pool, kind, labels.get(CAPACITY_TYPE, "")), kind
        price = karpenter.price_of(claim) or None
        present.setdefault(key, []).append(price)
        prices[claim.status.node_name or claim.name] = price
    transitions = tuple(_transition(one, prices[one.node]) for one in counted)
    groups = tuple(
        _with_nodes(
            _empty_group(name, kind, has_price=False),
            present[name, kind],
            transitions,
            since,
            until,
        )
        for name, kind in sorted(present)
    )
    return AutoscalingOutcome(
        KARPENTER,
        groups,
        transitions,
        _by_original(karpenter.pods_without_node(), pods),
        _kept_nodes(karpenter, until),
        dict(sorted(history.undelivered.items())),
        tuple(_transition(one, prices[one.node]) for one in earlier),
        refused=refused_pods(history.refusals, waits),
        drifted=karpenter.drifted_nodes(until),
        limits=_by_original(karpenter.reached_limits(until), pods),
        ignored=_by_original(karpenter.ignored_pods(), pods),
        limited_use=karpenter.limited_use(since, until),
        awaited_budget_notes=awaited_budget_notes(karpenter, until),
        pools_without_types=karpenter.pools_without_types(),
    )


def _kept_nodes(karpenter: Karpenter, now: Instant) -> dict[str, str]:
    """Return {node: why Karpenter does not remove it}, sorted by name.

    Karpenter states some reasons for a node, and others for the NodeClaim of the node. If a
    NodeClaim has no node yet, the name of the NodeClaim is used instead.
    """
    claims = karpenter.cluster.node_claims
    found: dict[str, str] = {}
    for name, reason in karpenter.kept_nodes(now).items():
        claim = claims.get(name)
        found.setdefault(claim.status.node_name or name if claim else name, reason)
    return dict(sorted(found.items()))


def awaited_budget_notes(karpenter: Karpenter, now: Instant) -> tuple[str, ...]:
    """Return a note about the nodes that Karpenter's budgets protect at `now`, the run's end.

    Return () if the budgets protect no node.
    """
    awaited = karpenter.awaited_budgets(now)
    if awaited is None:
        return ()
    names, change = awaited
    note = (
        f"Karpenter's disruption budgets allow no disruption of {listed(names)} "
        f"at the end. They change next at {format_timestamp(change)}; what Karpenter does "
        "then is not part of this answer. A scenario with a longer duration (fairlead simulate) "
        "shows it."
    )
    return (note,)


def _pauses(autoscaler: ClusterAutoscaler, since: Instant, until: Instant) -> Iterator[Pause]:
    """Yield the times between `since` and `until` in which unready nodes stop the autoscaler."""
    options = autoscaler.options
    for one in autoscaler.history.unhealthy:
        if one.since <= until and (one.until is None or one.until > since):
            yield Pause(
                since=max(one.since, since),
                until=None if one.until is None else min(one.until, until),
                unready=one.unready,
                nodes=one.nodes,
                tolerated=options.ok_total_unready_count,
                percentage=options.max_total_unready_percentage,
            )


def _transition(one: KarpenterNodeChange, price: float | None) -> NodeTransition:
    return NodeTransition(one.at, one.node, _group_of_change(one), one.added, one.reason, price)


def _group_of_change(one: KarpenterNodeChange) -> str:
    return _group_name(one.pool, one.instance_type, one.capacity_type)


def _group_name(pool: str, instance_type: str, capacity_type: str) -> str:
    return " ".join(part for part in (pool, instance_type, capacity_type) if part)


def _group(spec: NodeGroupSpec) -> GroupOutcome:
    limits = spec.minimum, spec.maximum
    return _empty_group(spec.id, _type_of(spec), limits, has_price=spec.price is not None)


def _type_of(spec: NodeGroupSpec) -> str:
    metadata = (spec.template or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(INSTANCE_TYPE, ""))


def _empty_group(
    name: str,
    instance_type: str,
    limits: tuple[int, int | None] = (0, None),
    *,
    has_price: bool,
) -> GroupOutcome:
    minimum, maximum = limits
    return GroupOutcome(
        group=name,
        minimum=minimum,
        maximum=maximum,
        before=0,
        after=0,
        added=0,
        removed=0,
        node_hours=0.0,
        has_price=has_price,
        cost_per_hour=0.0,
        cost=0.0,
        instance_type=instance_type,
    )


def _with_nodes(
    empty: GroupOutcome,
    prices: Sequence[float | None],
    transitions: Iterable[NodeTransition],
    since: Instant,
    until: Instant,
) -> GroupOutcome:
    """Return the group `empty` with its nodes and their costs from `since` to `until`.

    `prices` has the hourly price of each node at the end, None if it is unknown. The node counts,
    node hours and costs follow from these nodes and from `transitions`. If there are no nodes and
    no `transitions`, the group keeps the `has_price` of `empty`.
    """
    own = [one for one in transitions if one.group == empty.group]
    added = sum(one.came for one in own)
    removed = len(own) - added
    # The number of nodes at the end, and the hours of all nodes, by the price of a node.
    counts = Counter(prices)
    seconds = {price: count * to_seconds(until - since) for price, count in counts.items()}
    for one in own:
        time = to_seconds(one.at - since)
        seconds[one.price] = seconds.get(one.price, 0.0) + (-time if one.came else time)
    has_price = None not in seconds if seconds else empty.has_price
    hours = {price: time / _SECONDS_PER_HOUR for price, time in seconds.items()}
    node_hours = float_sum(hours.values())
    rate = float_sum((price or 0.0) * count for price, count in counts.items())
    cost = float_sum((price or 0.0) * time for price, time in hours.items())
    return replace(
        empty,
        before=len(prices) - added + removed,
        after=len(prices),
        added=added,
        removed=removed,
        node_hours=float(node_hours),
        has_price=has_price,
        cost_per_hour=float(rate) if has_price or not prices else None,
        cost=float(cost) if has_price or not node_hours else None,
    )
