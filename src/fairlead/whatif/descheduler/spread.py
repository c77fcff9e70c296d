"""The strategies that spread pods: RemoveDuplicates and topology spread constraints.

upstream: removeduplicates/removeduplicates.go,
removepodsviolatingtopologyspreadconstraint/topologyspreadconstraint.go
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Final

from fairlead.api.objects import LabelSelector, Node, Pod, TopologySpreadConstraint
from fairlead.api.pods.facts import is_terminating
from fairlead.api.selector import selector_matches
from fairlead.whatif.descheduler.cluster_view import may_run_on
from fairlead.whatif.descheduler.evictor import Evictor
from fairlead.whatif.descheduler.policy import DuplicatesArgs, SpreadArgs

DUPLICATES: Final = "RemoveDuplicates"
SPREAD: Final = "RemovePodsViolatingTopologySpreadConstraint"
_Owner = tuple[str, str, str, str]  # (namespace, kind, name, images)


def remove_duplicates(evictor: Evictor, args: DuplicatesArgs) -> None:
    """Evict pods from nodes that have too many pods with the same owner and the same images.

    If P such pods can run on N nodes, each node may keep P / N such pods, rounded up. Example: all
    five replicas of an owner run on one node, and three nodes can run them. Two replicas stay, and
    three are evicted.
    """
    total, others = _duplicates(evictor, args)
    for owner, by_node in sorted(others.items()):
        targets = _targets(by_node, evictor.view.nodes)
        if len(targets) < 2:
            continue
        average = ceil(total[owner] / len(targets))
        for name, pods in by_node.items():
            for pod in pods[average - 1 :]:
                evictor.evict(pod, DUPLICATES)
                if evictor.limits.is_node_reached(name):
                    break


def _duplicates(
    evictor: Evictor, args: DuplicatesArgs
) -> tuple[Counter[_Owner], dict[_Owner, dict[str, list[Pod]]]]:
    """Return (number of evictable pods by owner, duplicate pods by owner and node).

    If a node has several evictable pods with the same owners and images, all except the first are
    duplicates.
    """
    total: Counter[_Owner] = Counter()
    others: dict[_Owner, dict[str, list[Pod]]] = defaultdict(dict)
    for node in evictor.view.nodes:
        seen: set[tuple[_Owner, ...]] = set()
        for pod in evictor.view.on(node):
            owners = _owners(pod, args)
            if not owners or not evictor.may_evict(pod) or not evictor.fits_elsewhere(pod):
                continue
            total.update(owners)
            if owners in seen:
                for owner in owners:
                    others[owner].setdefault(node.metadata.name, []).append(pod)
            seen.add(owners)
    return total, others


def _owners(pod: Pod, args: DuplicatesArgs) -> tuple[_Owner, ...]:
    """Return the pod's owners, each with the pod's images; () if the strategy skips the pod."""
    meta = pod.metadata
    kinds = {owner.kind for owner in meta.owner_references}
    if not args.namespaces.has(meta.namespace) or kinds & set(args.exclude_owner_kinds):
        return ()
    images = "#".join(sorted(container.image for container in pod.spec.containers))
    return tuple(
        sorted((meta.namespace, owner.kind, owner.name, images) for owner in meta.owner_references)
    )


def _targets(by_node: dict[str, list[Pod]], nodes: Sequence[Node]) -> set[str]:
    """Return the names of the nodes on which at least one pod of `by_node` may run.

    Pods that may run on only one node are ignored.
    """
    found: set[str] = set()
    for pod in (pod for pods in by_node.values() for pod in pods):
        names = {node.metadata.name for node in nodes if may_run_on(pod, node)}
        if len(names) > 1:
            found |= names
    return found


def remove_violating_spread(evictor: Evictor, args: SpreadArgs) -> None:
    """Evict pods from domains that have more pods than a topology spread constraint allows.

    A pod is evicted only if `args` selects it, the policy permits its eviction, and it fits on
    another node.
    """
    for pod in _above_average(evictor, args):
        selector = args.label_selector
        if selector is not None and not selector_matches(selector, pod.metadata.labels):
            continue
        if evictor.limits.is_node_reached(pod.spec.node_name) or not evictor.may_evict(pod):
            continue
        if evictor.fits_elsewhere(pod):
            evictor.evict(pod, SPREAD)


def _above_average(evictor: Evictor, args: SpreadArgs) -> Iterable[Pod]:
    """Return the pods to evict; a pod is listed once, even if several constraints require it."""
    found: dict[int, Pod] = {}
    namespaces: dict[str, list[Pod]] = defaultdict(list)
    for pod in evictor.view.pods:
        namespaces[pod.metadata.namespace].append(pod)
    for namespace, pods in sorted(namespaces.items()):
        if not args.namespaces.has(namespace):
            continue
        for constraint, selector in _constraints(pods, args.constraints):
            domains = _domains(evictor, constraint, selector, pods)
            if not domains:
                continue
            counts = [len(one) for one in domains.values()]
            if max(counts) - min(counts) > constraint.max_skew:
                for pod in _surplus(evictor, constraint, domains, args):
                    found[id(pod)] = pod
    return found.values()


def _constraints(
    pods: Iterable[Pod], kinds: Sequence[str]
) -> list[tuple[TopologySpreadConstraint, LabelSelector]]:
    """Return the pairs (topology spread constraint of `pods`, its selector), without duplicates.

    Only constraints whose whenUnsatisfiable is in `kinds` are included. The selector also requires
    the pod's values of the labels in matchLabelKeys.
    """
    found: list[tuple[TopologySpreadConstraint, LabelSelector]] = []
    for pod in pods:
        for constraint in pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable not in kinds:
                continue
            pair = constraint, _selector(constraint, pod)
            if pair not in found:
                found.append(pair)
    return found


def _selector(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector:
    selector = constraint.label_selector or LabelSelector()
    labels = pod.metadata.labels
    extra = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    if not extra:
        return selector
    return LabelSelector(
        match_labels={**selector.match_labels, **extra},
        match_expressions=selector.match_expressions,
    )


def _domains(
    evictor: Evictor,
    constraint: TopologySpreadConstraint,
    selector: LabelSelector,
    pods: Iterable[Pod],
) -> dict[str, list[Pod]]:
    """Return the pods that `selector` matches, by domain; domains without pods are included."""
    key = constraint.topology_key
    nodes = {node.metadata.name: node.metadata.labels.get(key) for node in evictor.view.nodes}
    domains: dict[str, list[Pod]] = {value: [] for value in nodes.values() if value is not None}
    for pod in pods:
        value = nodes.get(pod.spec.node_name)
        if (
            value is not None
            and not is_terminating(pod)
            and selector_matches(selector, pod.metadata.labels)
        ):
            domains[value].append(pod)
    return domains


def _surplus(
    evictor: Evictor,
    constraint: TopologySpreadConstraint,
    domains: dict[str, list[Pod]],
    args: SpreadArgs,
) -> Iterable[Pod]:
    """Yield the pods to evict so that the scheduler can even out the domains.

    The domains are sorted by size. Pods move from a large domain (index `high`) to a small domain
    (index `low`). The number of pods that move is the smallest of three numbers, each rounded up:
    (large size - small size - maxSkew) / 2, large size - average size, and average size - small
    size. Example: with sizes 2, 5, 8, maxSkew 1 and average 5, three pods move from the domain of
    8 to the domain of 2.

    upstream: topologyspreadconstraint.go:balanceDomains
    """
    average = sum(map(len, domains.values())) / len(domains)
    ordered = sorted((_by_mobility(evictor, pods) for pods in domains.values()), key=len)
    below = {value for value, pods in domains.items() if len(pods) < average}
    key = constraint.topology_key
    nodes = [node for node in evictor.view.nodes if node.metadata.labels.get(key) in below]
    low, high = 0, len(ordered) - 1
    while low < high:
        if len(ordered[high]) <= average:
            high -= 1
        skew = len(ordered[high]) - len(ordered[low])
        if skew <= constraint.max_skew:
            low += 1
            continue
        above = ceil(len(ordered[high]) - average)
        missing = ceil(average - len(ordered[low]))
        moved = min(above, missing, ceil((skew - constraint.max_skew) / 2))
        if moved <= 0:
            low += 1
            continue
        given = ordered[high][-moved:]
        for pod in given:
            if not args.topology_balance_node_fit or evictor.view.fits_another_node(pod, nodes):
                yield pod
        ordered[high] = ordered[high][:-moved]
        ordered[low] = [*ordered[low], *given]


def _by_mobility(evictor: Evictor, pods: Iterable[Pod]) -> list[Pod]:
    """Return `pods` in reverse order of eviction: the last pod is evicted first.

    Pods that may not be evicted come first, then pods with a node selector or node affinity, then
    all other pods. The pods of each group are ordered by falling priority.

    upstream: topologyspreadconstraint.go:sortDomains
    """

    def key(pod: Pod) -> tuple[bool, bool, int]:
        affinity = pod.spec.affinity
        is_bound = bool(pod.spec.node_selector) or (
            affinity is not None and affinity.node_affinity is not None
        )
        return evictor.may_evict(pod), not is_bound, -(pod.spec.priority or 0)

    return sorted(pods, key=key)
