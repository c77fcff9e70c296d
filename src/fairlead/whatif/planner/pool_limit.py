"""Finds limits that the nodes of a plan violate: limits of NodePools and of node groups.

    NodePool      spec.limits: the largest total capacity of its nodes (`nodes`: their number)
    node group    the minimum and maximum size, if the dump has a Cluster Autoscaler

upstream: karpenter pkg/apis/v1/nodepool.go: Limits
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.objects import Node, ResourceList
from fairlead.api.quantity import amount_text
from fairlead.api.text.count import counted
from fairlead.engine.autoscaling.cluster_autoscaler.command_line import flags_of_command_line
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts
from fairlead.whatif.configuration.autoscaling.autoscaler import cluster_autoscaler_flags
from fairlead.whatif.configuration.autoscaling.group_limit import GroupLimits, group_of
from fairlead.whatif.snapshot.manifest import Manifest

_NODES: Final = "nodes"


def limit_lines(
    planned: Sequence[tuple[Node, ResourceList]],
    today: Sequence[Node],
    pools: Iterable[NodePool],
    manifests: Sequence[Manifest],
) -> tuple[str, ...]:
    """Return a sentence for each limit that the nodes of a plan violate.

    `planned` are the nodes of the plan, each with its capacity. `today` are the nodes before the
    plan. `pools` are the NodePools. `manifests` contain the limits of node groups.
    """
    nodes = [node for node, _ in planned]
    return *_node_pool_lines(planned, pools), *group_size_lines(nodes, today, manifests)


def _node_pool_lines(
    planned: Iterable[tuple[Node, ResourceList]], pools: Iterable[NodePool]
) -> Iterator[str]:
    """Yield a sentence for each limit of a NodePool in `pools` that `planned` exceeds."""
    used: dict[str, Counter[str]] = {}
    for node, capacity in planned:
        of_pool = used.setdefault(node.metadata.labels.get(NODE_POOL, ""), Counter())
        of_pool.update({**amounts(capacity), _NODES: 1})
    for pool in pools:
        name = pool.metadata.name
        for resource, limit in amounts(pool.spec.limits).items():
            amount = used.get(name, Counter())[resource]
            if amount > limit:
                has, allowed = amount_text(resource, amount), amount_text(resource, limit)
                yield (
                    f"NodePool {name} has {has} {resource} in this answer, but its limit is "
                    f"{allowed}: raise the limit first."
                )


def group_size_lines(
    planned: Sequence[Node], today: Sequence[Node], manifests: Sequence[Manifest]
) -> Iterator[str]:
    """Yield a sentence for each node group whose number of nodes is outside its limits.

    `planned` are the nodes of the plan, and `today` are the nodes before the plan. A group is left
    out if the plan does not change the number of its nodes. `manifests` contain the limits.
    """
    limits = _limits(manifests)
    before, after = _groups(today, limits), _groups(planned, limits)
    for full, name in sorted(before.keys() | after.keys()):
        low, high = limits.by_name[full]
        count = after[full, name]
        if count == before[full, name] or low <= count <= high:
            continue
        kind, limit, verb = ("minimum", low, "lower") if count < low else ("maximum", high, "raise")
        yield (
            f"Node group {name} has {counted(count, 'node')} in this answer, but its {kind} is "
            f"{limit:,}: {verb} the {kind} first."
        )


def minimum_of_group(
    node: Node, nodes: Iterable[Node], manifests: Sequence[Manifest]
) -> tuple[str, int] | None:
    """Return (name, minimum size) of the group of `node` if the group cannot spare this node.

    `nodes` are all nodes of the cluster. Return None if the group has more nodes than its minimum
    size, or if `manifests` do not state the limits of the group.
    """
    limits = _limits(manifests)
    group = _group(node, limits)
    if group is None:
        return None
    full, name = group
    low, _ = limits.by_name[full]
    return (name, low) if _groups(nodes, limits)[group] <= low else None


def _limits(manifests: Sequence[Manifest]) -> GroupLimits:
    """Return the limits of node groups; no limits if the cluster has no Cluster Autoscaler."""
    flags = cluster_autoscaler_flags(manifests)
    if flags is None:
        return GroupLimits()
    return GroupLimits.of(list(flags_of_command_line(flags)), manifests)


def _groups(nodes: Iterable[Node], limits: GroupLimits) -> Counter[tuple[str, str]]:
    """Return the number of `nodes` in each group of `limits`, keyed by the result of `_group`."""
    sizes: Counter[tuple[str, str]] = Counter()
    members: dict[tuple[str, str], Node] = {}
    for node in nodes:
        meta = node.metadata
        found = group_of(meta.labels, meta.annotations, limits.standalone)
        if found is not None:
            sizes[found[:2]] += 1
            members[found[:2]] = node
    groups: Counter[tuple[str, str]] = Counter()
    for key, node in members.items():  # one node of each group, because `_group` is slow
        if (group := _group(node, limits)) is not None:
            groups[group] += sizes[key]
    return groups


def _group(node: Node, limits: GroupLimits) -> tuple[str, str] | None:
    """Return the names of the group of `node`; None if `limits` do not contain the group.

    The names are (the provider's name of the group, its name in the labels of the nodes).
    """
    group = group_of(node.metadata.labels, node.metadata.annotations, limits.standalone)
    if group is None:
        return None
    provider, name, labels, _ = group
    known = limits.find(provider, labels, name)
    return None if known is None else (known[0], name)
