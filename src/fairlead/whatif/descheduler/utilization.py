"""LowNodeUtilization and HighNodeUtilization: evict pods depending on the requests on each node.

The usage of a resource on a node is the requested share of the node's allocatable amount. Resources
have thresholds and targets; the default target is the whole allocatable amount. A node is
overutilized if the usage of at least one resource exceeds the target of that resource. A node is
underutilized if every resource with a threshold has a usage of at most that threshold.

LowNodeUtilization evicts pods from overutilized nodes while the underutilized nodes together have
room up to the targets. HighNodeUtilization evicts pods from underutilized nodes while the other
nodes together have room. An autoscaler can then remove the empty nodes.

upstream: nodeutilization/nodeutilization.go, lownodeutilization.go, highnodeutilization.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import Node, Pod
from fairlead.api.text.count import counted, counted_of
from fairlead.engine.core.float_sum import float_sum
from fairlead.whatif.descheduler.cluster_view import PODS, allocatable_amount
from fairlead.whatif.descheduler.evictor import Evictor
from fairlead.whatif.descheduler.policy import Percentages, UtilizationArgs
from fairlead.whatif.descheduler.strategy import by_priority

LOW: Final = "LowNodeUtilization"
HIGH: Final = "HighNodeUtilization"
ONLY_THRESHOLDING: Final = "OnlyThresholdingResources"
EVICTION_MODES: Final = (ONLY_THRESHOLDING,)
_BASIC: Final = ("cpu", "memory", PODS)
_BLOCKING: Final = (NO_SCHEDULE, NO_EXECUTE)
_WHOLE: Final = 100.0


class _Usage(Struct):
    """A node with its requested amounts (`used`), by resource.

    `lower` and `upper` are the amounts at the lower and the upper threshold.
    """

    node: Node
    used: dict[str, int]
    lower: Mapping[str, int]
    upper: Mapping[str, int]

    @property
    def is_below(self) -> bool:
        """Whether no resource exceeds its lower threshold."""
        return all(self.used[name] <= amount for name, amount in self.lower.items())

    @property
    def is_above(self) -> bool:
        """Whether a resource exceeds its upper threshold."""
        return any(self.used[name] > amount for name, amount in self.upper.items())

    @property
    def total(self) -> int:
        """The sum by which upstream sorts nodes: bytes of memory + millicores + pods."""
        return sum(self.used.values())


def balance_low(evictor: Evictor, args: UtilizationArgs) -> None:
    """Evict pods from overutilized nodes while underutilized nodes have room.

    Cordoned nodes do not count as underutilized. Pods are evicted only if some node is overutilized
    and more than `args.number_of_nodes` nodes are underutilized.
    """
    names = list(dict.fromkeys([*args.thresholds, *_BASIC]))
    usages = _usages(evictor, args.thresholds, args.target_thresholds, names, args)
    low = [one for one in usages if one.is_below and not one.node.spec.unschedulable]
    under = {one.node.metadata.name for one in low}
    high = [one for one in usages if one.is_above and one.node.metadata.name not in under]
    if not _may_balance(low, high, usages, args):
        evictor.remarks.append(
            f"{LOW}: {counted_of(len(low), len(usages), 'node')} below its thresholds, and "
            f"{len(high):,} above its target thresholds."
        )
        return
    room = _room(low, names)

    def continue_eviction(usage: _Usage) -> bool:
        return usage.is_above and all(amount > 0 for amount in room.values())

    fullest_first = sorted(high, key=lambda one: -one.total)
    _evict(evictor, fullest_first, _Targets(LOW, low, room, continue_eviction, args))


def balance_high(evictor: Evictor, args: UtilizationArgs) -> None:
    """Evict the pods of underutilized nodes while the other nodes have room.

    Pods are evicted only if more than `args.number_of_nodes` nodes are underutilized, and at least
    one of the other nodes is not cordoned.
    """
    thresholds = {**dict.fromkeys(_BASIC, _WHOLE), **args.thresholds}
    names = list(thresholds)
    targets = dict.fromkeys(names, _WHOLE)
    usages = _usages(evictor, thresholds, targets, names, args)
    source = [one for one in usages if one.is_below]
    target = [one for one in usages if not one.is_below and not one.node.spec.unschedulable]
    if not _may_balance(source, target, usages, args):
        evictor.remarks.append(
            f"{HIGH}: {counted_of(len(source), len(usages), 'node')} below its thresholds, and "
            f"{counted(len(target), 'other')} could take pods."
        )
        return
    room = _room(target, names)

    def continue_eviction(_: _Usage) -> bool:
        return all(amount > 0 for amount in room.values())

    emptiest_first = sorted(source, key=lambda one: one.total)
    _evict(evictor, emptiest_first, _Targets(HIGH, target, room, continue_eviction, args))


def _may_balance(
    under: Sequence[_Usage], other: Sequence[_Usage], every: Sequence[_Usage], args: UtilizationArgs
) -> bool:
    return bool(other) and len(under) > args.number_of_nodes and len(under) < len(every)


def _usages(
    evictor: Evictor,
    lower: Percentages,
    upper: Percentages,
    names: Sequence[str],
    args: UtilizationArgs,
) -> list[_Usage]:
    view = evictor.view
    average = _average(evictor, args) if args.use_deviation_thresholds else {}
    found = []
    for node in view.nodes:
        sums = view.requested(node)
        used = {name: sums.get(name, 0) for name in names}
        lows = {
            name: _part(node, name, average[name] - share if average else share)
            for name, share in lower.items()
        }
        highs = {
            name: _part(node, name, average[name] + share if average else share)
            for name, share in upper.items()
        }
        # A resource without a threshold is limited only by the allocatable amount of the node.
        highs = {name: highs.get(name, allocatable_amount(node, name)) for name in names}
        found.append(_Usage(node, used, lows, highs))
    return found


def _part(node: Node, name: str, share: float) -> int:
    """Return `share` percent of the node's allocatable amount of `name`.

    A `share` below 0 counts as 0, and a `share` above 100 counts as 100.
    """
    return int(min(max(share, 0.0), _WHOLE) * 0.01 * allocatable_amount(node, name))


def _average(evictor: Evictor, args: UtilizationArgs) -> dict[str, float]:
    """Return the average usage of the nodes in percent, for each resource with a threshold.

    upstream: nodeutilization.go:averageNodeBasicresources
    """
    nodes = evictor.view.nodes
    found = {}
    for name in args.thresholds:
        shares = [
            _WHOLE * evictor.view.requested(node).get(name, 0) / whole
            for node in nodes
            if (whole := allocatable_amount(node, name))
        ]
        found[name] = float_sum(shares) / len(nodes)
    return found


def _room(targets: Sequence[_Usage], names: Sequence[str]) -> dict[str, int]:
    """Return the amounts that the `targets` can take in total up to their upper thresholds."""
    return {name: sum(one.upper[name] - one.used[name] for one in targets) for name in names}


class _Targets(Struct, frozen=True):
    """The `nodes` that should receive evicted pods, and the `room` left on them, by resource.

    Pods are evicted from a source node only while `continue_eviction` returns True for that node.
    """

    strategy: str
    nodes: Sequence[_Usage]
    room: dict[str, int]
    continue_eviction: Callable[[_Usage], bool]
    args: UtilizationArgs


def _evict(evictor: Evictor, sources: Sequence[_Usage], targets: _Targets) -> None:
    """Evict pods of `sources`, node by node, while the targets can take them.

    upstream: nodeutilization.go:evictPodsFromSourceNodes, evictPods
    """
    args, room = targets.args, targets.room
    excluded, most = set(args.evictable_namespaces.exclude), args.eviction_limits.node

    def is_removable(pod: Pod) -> bool:
        requests = evictor.view.requests(pod)
        asks = ONLY_THRESHOLDING not in args.eviction_modes or any(
            requests.get(name, 0) for name in args.thresholds
        )
        return asks and evictor.may_evict(pod)

    for usage in sources:
        name, evicted = usage.node.metadata.name, 0
        for pod in by_priority(filter(is_removable, evictor.view.on(usage.node))):
            if evictor.limits.is_total_reached:
                return
            if evictor.limits.is_node_reached(name) or not targets.continue_eviction(usage):
                break
            if most is not None and evicted >= most:
                break
            if pod.metadata.namespace in excluded or not _tolerates_one(pod, targets.nodes):
                continue
            if evictor.fits_elsewhere(pod) and evictor.evict(pod, targets.strategy):
                evicted += 1
                requests = {**evictor.view.requests(pod), PODS: 1}
                for resource in room:
                    usage.used[resource] -= requests.get(resource, 0)
                    room[resource] -= requests.get(resource, 0)


def _tolerates_one(pod: Pod, targets: Sequence[_Usage]) -> bool:
    return any(
        find_untolerated(one.node.spec.taints, pod.spec.tolerations, _BLOCKING) is None
        for one in targets
    )
