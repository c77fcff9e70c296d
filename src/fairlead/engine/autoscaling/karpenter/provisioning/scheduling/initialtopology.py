"""InitialTopology: the counts of topology groups before a provisioning pass has placed any pod.

A search for a disruption simulates one pass for each candidate. The passes differ only in the pods
that they move and the nodes that they remove. So the counts of all pods and nodes are computed
once. Each pass subtracts the pods that it moves and the nodes that it removes.

    all pods of `web` by zone      a: 3, b: 1
    pass that moves the pod in b   a: 3, b: 0

A domain whose count becomes 0 is removed if no NodePool and no remaining node has it.

upstream: pkg/controllers/provisioning/scheduling/topology.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from fairlead.api.objects import Node, Pod, PodAffinityTerm, PodSpec, Toleration
from fairlead.api.pods.facts import is_terminal
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologydomaingroup import (
    TopologyDomains,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologygroup import (
    ANTI_AFFINITY,
    SPREAD,
    TopologyGroup,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode


class MovedPods:
    """The pods of a provisioning pass that already run on a node; the pass moves these pods.

    `keys` contains the keys of all pods of the pass, including the pending pods.
    """

    def __init__(self, cluster: KarpenterCluster, keys: Collection[str]) -> None:
        """Find the pods among `keys` that are running on nodes of `cluster`."""
        self.keys = keys
        self._running: dict[str, list[Pod]] = {}  # by namespace
        for pod in cluster.running_pods.find(keys):
            self._running.setdefault(pod.metadata.namespace, []).append(pod)

    def selected(self, group: TopologyGroup) -> list[Pod]:
        """Return the moved pods that are in a namespace of `group` and match its selector.

        A group without a selector selects all moved pods in its namespaces.
        """
        selector = group.selector
        return [
            pod
            for namespace in group.namespaces
            for pod in self._running.get(namespace, ())
            if selector is None or selector_matches(selector, pod.metadata.labels)
        ]


class PodTerms(Struct, frozen=True):
    """The topology groups of a pod's terms, without counts.

    `inverse` are the inverse groups of the pod's required anti-affinity terms.
    """

    spec: PodSpec
    groups: tuple[TopologyGroup, ...]
    inverse: tuple[TopologyGroup, ...]


class _Start(Struct, frozen=True):
    """The counts of one topology group before a provisioning pass moves any pod.

    The keys of all four fields are domains.
    """

    possible: Mapping[str, int]  # the domains that NodePools provide
    registered: Counter[str]  # the number of nodes in each domain
    counts: dict[str, int]  # the number of matching pods in each domain
    occupied: dict[str, None]  # the domains with pods


class _Member(Struct, frozen=True):
    """One required anti-affinity term of a running pod.

    `key` is the key of the pod. `number` is the position of the term in the pod's list of terms.
    `domain` is None if the pod's node has no domain.
    """

    key: str
    number: int
    domain: str | None
    tolerations: tuple[Toleration, ...]


class _Inverse(Struct, frozen=True):
    """One inverse group, without counts; `members` are the terms of running pods in the group."""

    group: TopologyGroup
    members: list[_Member]


class InitialTopology:
    """The counts of topology groups before a provisioning pass.

    The cluster must not change while this object is in use.
    """

    def __init__(
        self,
        cluster: KarpenterCluster,
        nodes: Sequence[StateNode],
        domains: TopologyDomains,
    ) -> None:
        """Count the running pods of `cluster` and the label values of `nodes`.

        `domains` are the label values of the nodes that NodePools can create.
        """
        self._cluster = cluster
        # By pod key. Kept here, because the passes of one search read the terms of the same pods.
        self.terms: dict[str, PodTerms] = {}
        self._nodes = nodes
        self._domains = domains
        self._possible: dict[Hashable, Mapping[str, int]] = {}
        self._starts: dict[Hashable, _Start] = {}
        self._inverse = self._running_anti_affinity()

    # --- groups of pods' own terms -----------------------------------------------------------

    def count(
        self,
        group: TopologyGroup,
        tolerations: tuple[Toleration, ...],
        leaving: Iterable[StateNode],
        moved: MovedPods,
    ) -> None:
        """Set the counts of a new group, without the nodes in `leaving` and the pods in `moved`.

        `tolerations` are those of the pod whose term forms the group. The group contains the
        domains of the counted nodes and of the NodePools whose taints are tolerated. If `group` is
        a spread group that does not honor taints, the taints of the NodePools do not matter.
        """
        # upstream: topology.go:countDomains
        start = self._start(group, tolerations)
        counts = group.counts = dict(start.counts)
        occupied = group.occupied = dict(start.occupied)
        lost = Counter(
            domain for one in leaving if (domain := self._domain_of_state(group, one)) is not None
        )
        touched = dict.fromkeys(lost)
        for pod in moved.selected(group):
            domain = self._domain_of_pod(group, pod.spec.node_name)
            if domain is not None:
                counts[domain] -= 1
                touched[domain] = None
        for domain in touched:
            if not counts[domain]:
                occupied.pop(domain, None)
                if domain not in start.possible and start.registered[domain] <= lost[domain]:
                    del counts[domain]

    def _start(self, group: TopologyGroup, tolerations: tuple[Toleration, ...]) -> _Start:
        if group.kind == SPREAD and not group.node_filter.honors_taints:
            possible, tolerations = self._possible_domains(group.key, None), ()
        else:
            possible = self._possible_domains(group.key, tolerations)
        # The identity of a group is incomplete, so the filter is compared, too.
        key = group.identity, group.node_filter.alternatives, tolerations
        found = self._starts.get(key)
        if found is None:
            found = self._starts[key] = self._counted(group, possible)
        return found

    def _counted(self, group: TopologyGroup, possible: Mapping[str, int]) -> _Start:
        domains = (self._domain_of_state(group, one) for one in self._nodes)
        registered = Counter(one for one in domains if one is not None)
        counts = dict(possible) | dict.fromkeys(registered, 0)
        occupied: dict[str, None] = {}
        running = self._cluster.running_pods.counts(
            group.namespaces, group.selector, group.selection
        )
        for name, number in running.items():
            domain = self._domain_of_pod(group, name)
            if domain is not None:
                counts[domain] = counts.get(domain, 0) + number
                occupied[domain] = None
        return _Start(possible, registered, counts, occupied)

    def _domain_of_state(self, group: TopologyGroup, state: StateNode) -> str | None:
        """Return the node's value of the group's label; None if `group` does not count the node.

        Also returns None if the node has no Node object or lacks the label.
        """
        domain = state.labels.get(group.key)
        if state.node is None or domain is None or not self._counts(group, state.node):
            return None
        return domain

    def _domain_of_pod(self, group: TopologyGroup, name: str) -> str | None:
        """Return the domain of the pods on node `name`; None if `group` does not count them."""
        node = self._cluster.node_objects.get(name)
        if node is None:
            return None
        domain = node.metadata.labels.get(group.key, name if group.key == HOSTNAME else None)
        return domain if domain is not None and self._counts(group, node) else None

    def _counts(self, group: TopologyGroup, node: Node) -> bool:
        """Return whether `group` counts pods on `node`, according to its node filter."""
        if group.node_filter.matches_all:
            return True
        labels = self._cluster.label_requirements(node)
        return group.node_filter.matches(node.spec.taints, labels)

    def _possible_domains(
        self, key: str, tolerations: tuple[Toleration, ...] | None
    ) -> Mapping[str, int]:
        """Return {domain: 0} for the domains of `key` in NodePools whose taints are tolerated.

        If `tolerations` is None, taints do not matter.
        """
        found = self._possible.get((key, tolerations))
        if found is None:
            domains = (
                self._domains.of(key)
                if tolerations is None
                else self._domains.tolerated(key, tolerations)
            )
            found = self._possible[key, tolerations] = dict.fromkeys(domains, 0)
        return found

    # --- inverse groups ----------------------------------------------------------------------

    def register_possible(self, group: TopologyGroup, tolerations: tuple[Toleration, ...]) -> None:
        """Set the domains of `group` to those of NodePools whose taints are tolerated."""
        group.counts = dict(self._possible_domains(group.key, tolerations))

    def inverse_groups(self, moved: Collection[str]) -> dict[Hashable, TopologyGroup]:
        """Return the inverse groups of running pods, keyed by `TopologyGroup.identity`.

        The module `topology` explains inverse groups. Pods whose keys are in `moved` are left out.
        The groups are sorted by the key of their first pod. Each group contains the domains of its
        pods. A group also contains the domains of the NodePools whose taints its first pod
        tolerates.
        """
        found: list[tuple[str, int, TopologyGroup]] = []
        for one in self._inverse:
            staying = [member for member in one.members if member.key not in moved]
            if staying:
                first = staying[0]
                group = one.group.copied()
                self.register_possible(group, first.tolerations)
                for member in staying:
                    if member.domain is not None:
                        group.record((member.domain,))
                found.append((first.key, first.number, group))
        found.sort(key=itemgetter(0, 1))
        return {group.identity: group for _, _, group in found}

    def _running_anti_affinity(self) -> list[_Inverse]:
        """Return the inverse groups of the required anti-affinity terms of running pods.

        The module `topology` explains inverse groups.
        """
        found: dict[Hashable, _Inverse] = {}
        for key, pod in sorted(self._cluster.anti_affinity_pods.items()):
            node = self._cluster.node_objects.get(pod.spec.node_name)
            if node is None or is_terminal(pod):
                continue
            labels = node.metadata.labels
            for number, group in enumerate(anti_affinity_groups(self._cluster, pod)):
                one = found.setdefault(group.identity, _Inverse(group, []))
                member = _Member(key, number, labels.get(group.key), pod.spec.tolerations)
                one.members.append(member)
        return list(found.values())


def anti_affinity_groups(cluster: KarpenterCluster, pod: Pod) -> list[TopologyGroup]:
    """Return the groups of `pod`, one for each term of its required anti-affinity.

    The groups have not counted any pods yet.
    """
    affinity = pod.spec.affinity
    terms = None if affinity is None else affinity.pod_anti_affinity
    if terms is None:
        return []
    return [
        term_group(cluster, ANTI_AFFINITY, pod, one)
        for one in terms.required_during_scheduling_ignored_during_execution
    ]


def term_group(
    cluster: KarpenterCluster, kind: int, pod: Pod, term: PodAffinityTerm
) -> TopologyGroup:
    """Return a new group for `term`, an affinity term of `pod`; no pods are counted yet."""
    return TopologyGroup(
        kind, term.topology_key, _namespaces(cluster, pod, term), term.label_selector
    )


def _namespaces(cluster: KarpenterCluster, pod: Pod, term: PodAffinityTerm) -> frozenset[str]:
    """Return the namespaces in which `term`, an affinity term of `pod`, selects pods.

    The result contains the namespaces that the term lists or selects. If the term has neither a
    list nor a selector of namespaces, the result is the namespace of `pod`.
    """
    if term.namespace_selector is None:
        return frozenset(term.namespaces or (pod.metadata.namespace,))
    return frozenset(term.namespaces) | {
        name
        for name, namespace in cluster.namespaces.items()
        if selector_matches(term.namespace_selector, namespace.metadata.labels)
    }
