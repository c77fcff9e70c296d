"""Topology: the topology groups of a provisioning pass, which restrict the nodes for each pod.

A pod is restricted by the groups of its own terms and by inverse groups. An inverse group belongs
to a required anti-affinity term of other pods. The inverse group counts the pods that have the
term, and restricts the pods that the term selects. All other groups count the pods that their term
selects.

upstream: pkg/controllers/provisioning/scheduling/topology.go
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Taint,
    TopologySpreadConstraint,
)
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.initialtopology import (
    InitialTopology,
    MovedPods,
    PodTerms,
    anti_affinity_groups,
    term_group,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologygroup import (
    AFFINITY,
    ANTI_AFFINITY,
    SPREAD,
    TopologyGroup,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologynodefilter import (
    node_filter,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode


class UnsatisfiableTopology(Struct, frozen=True):
    """The error if `group` allows no domain in which both the pod and the node may be.

    `pod_domains` and `node_domains` are their requirements on the topology key of `group`.
    """

    group: TopologyGroup
    pod_domains: LabelRequirement
    node_domains: LabelRequirement

    def text(self) -> str:
        """Return upstream's text, which contains the current number of pods per domain."""
        return self.group.error(self.pod_domains, self.node_domains)


class Topology:
    """The topology groups of a provisioning pass.

    `groups` contains the groups of the pods' own terms. `inverse` contains the inverse groups.
    """

    def __init__(
        self,
        cluster: KarpenterCluster,
        initial: InitialTopology,
        leaving: Sequence[StateNode],
        moved: Collection[str],
        *,
        respects_preferences: bool,
    ) -> None:
        """Start with the inverse groups of the running pods of `cluster`.

        The module docstring explains inverse groups. `initial` contains the counts of all running
        pods and nodes. The topology groups count neither the pods with keys in `moved` nor the
        nodes in `leaving`. Preferences form groups only if `respects_preferences` is set.
        """
        self._cluster = cluster
        self._initial = initial
        self._leaving = leaving
        self._moved = MovedPods(cluster, moved)
        self._respects_preferences = respects_preferences
        self.groups: dict[Hashable, TopologyGroup] = {}
        self.inverse = initial.inverse_groups(moved)
        self._inverse_owned: dict[str, dict[Hashable, TopologyGroup]] = {}
        self._about: dict[Hashable, list[TopologyGroup]] = {}
        self._repelling: dict[Hashable, list[TopologyGroup]] = {}

    # --- groups of pods ----------------------------------------------------------------------

    def update(self, pending: PendingPod) -> None:
        """Set `pending.groups` to one topology group for each term of the pod.

        The terms are the topology spread constraints, the affinity terms and the anti-affinity
        terms of `pending.pod`. Call this again after a term was removed. Also resolves
        `matchLabelKeys` in `pending.pod`.
        """
        pod = pending.pod = self._with_match_label_keys(pending.pod)
        if not pod.spec.topology_spread_constraints and pod.spec.affinity is None:
            pending.groups = []
            return
        terms = self._initial.terms.get(pod.key)
        if terms is None or terms.spec is not pod.spec:
            inverse = anti_affinity_groups(self._cluster, pod)
            terms = PodTerms(pod.spec, tuple(self._groups_of(pod)), tuple(inverse))
            self._initial.terms[pod.key] = terms
        owned = self._inverse_owned.setdefault(pod.key, {})
        owned.update((one.identity, one) for one in self._inverse_groups(pod, terms))
        found: dict[Hashable, TopologyGroup] = {}
        for group in terms.groups:
            existing = self.groups.get(group.identity)
            if existing is None:
                existing = self.groups[group.identity] = group.copied()
                self._initial.count(existing, pod.spec.tolerations, self._leaving, self._moved)
                self._about.clear()
            found[existing.identity] = existing
        pending.groups = sorted(found.values(), key=lambda one: one.sort_key)

    def _respects(self, constraint: TopologySpreadConstraint) -> bool:
        return self._respects_preferences or constraint.when_unsatisfiable == "DoNotSchedule"

    def _with_match_label_keys(self, pod: Pod) -> Pod:
        """Return the pod with `matchLabelKeys` resolved in its topology spread constraints.

        The selector of a constraint then also requires the pod's own values of the labels in
        `matchLabelKeys`. Constraints that are preferences (ScheduleAnyway) are not changed if the
        provisioning pass ignores preferences.
        """
        # upstream: topology.go:newForTopologies
        constraints = pod.spec.topology_spread_constraints
        if not any(one.match_label_keys for one in constraints):
            return pod
        labels = pod.metadata.labels
        merged = tuple(
            _constraint_with_labels(one, labels) if self._respects(one) else one
            for one in constraints
        )
        return replace(pod, spec=replace(pod.spec, topology_spread_constraints=merged))

    def _groups_of(self, pod: Pod) -> Iterable[TopologyGroup]:
        for constraint in pod.spec.topology_spread_constraints:
            if self._respects(constraint):
                yield self._spread_group(pod, constraint)
        affinity = pod.spec.affinity
        if affinity is None:
            return
        pairs = ((AFFINITY, affinity.pod_affinity), (ANTI_AFFINITY, affinity.pod_anti_affinity))
        for kind, terms in pairs:
            if terms is not None:
                for term in self._terms(terms):
                    yield term_group(self._cluster, kind, pod, term)

    def _terms(self, affinity: PodAffinity) -> Iterable[PodAffinityTerm]:
        yield from affinity.required_during_scheduling_ignored_during_execution
        if self._respects_preferences:
            for one in affinity.preferred_during_scheduling_ignored_during_execution:
                yield one.pod_affinity_term

    def _spread_group(self, pod: Pod, constraint: TopologySpreadConstraint) -> TopologyGroup:
        return TopologyGroup(
            SPREAD,
            constraint.topology_key,
            frozenset((pod.metadata.namespace,)),
            constraint.label_selector,
            constraint.max_skew,
            constraint.min_domains,
            node_filter(pod, constraint),
        )

    def _inverse_groups(self, pod: Pod, terms: PodTerms) -> Iterator[TopologyGroup]:
        """Yield the inverse group of each required anti-affinity term of the pod.

        The module docstring explains inverse groups.
        """
        for group in terms.inverse:
            existing = self.inverse.get(group.identity)
            if existing is None:
                existing = group.copied()
                self._initial.register_possible(existing, pod.spec.tolerations)
                self.inverse[group.identity] = existing
                self._repelling.clear()
            yield existing

    # --- placing ---------------------------------------------------------------------------------

    def register_host(self, host: str) -> None:
        """Register the new node `host` with all groups whose topology key is the hostname."""
        for group in self._groups_of_hosts():
            group.register(host)

    def register_hosts(self, hosts: Iterable[str]) -> None:
        """Do the same as `register_host` for each of `hosts`."""
        if groups := self._groups_of_hosts():
            empty = dict.fromkeys(hosts, 0)
            for group in groups:
                group.counts = empty | group.counts

    def _groups_of_hosts(self) -> list[TopologyGroup]:
        return [
            group
            for groups in (self.groups, self.inverse)
            for group in groups.values()
            if group.key == HOSTNAME
        ]

    def about(self, pending: PendingPod) -> list[TopologyGroup]:
        """Return the groups in `groups` whose term selects the pod.

        The pod need not have this term itself.
        """
        shape = pending.labels_shape
        found = self._about.get(shape)
        if found is None:
            found = [g for g in self.groups.values() if g.selects(pending.pod, shape)]
            self._about[shape] = found
        return found

    def repelling(self, pending: PendingPod) -> list[TopologyGroup]:
        """Return the inverse groups whose selector matches the pod."""
        shape = pending.labels_shape
        found = self._repelling.get(shape)
        if found is None:
            found = [g for g in self.inverse.values() if g.selects(pending.pod, shape)]
            found.sort(key=lambda one: one.sort_key)
            self._repelling[shape] = found
        return found

    def added_requirements(
        self, pending: PendingPod, node: Requirements, host: LabelRequirement
    ) -> list[LabelRequirement] | UnsatisfiableTopology:
        """Return the requirements that the pod's topology groups add for a node.

        If a group allows none of the node's domains, the result is an UnsatisfiableTopology. `node`
        describes the node without its hostname, and `host` is the requirement on the hostname. Each
        group is evaluated separately; the caller intersects the results.
        """
        # upstream: topology.go:AddRequirements
        shape, strict = pending.labels_shape, pending.facts.strict
        demanded: list[LabelRequirement] = []
        for groups in (pending.groups, self.repelling(pending)):
            for group in groups:
                pod_domains = strict.get(group.key)
                node_domains = host if group.key == HOSTNAME else node.get(group.key)
                selects = group.selects(pending.pod, shape)
                domains = group.next_domains(pod_domains, node_domains, selects=selects)
                if not domains.values:
                    return UnsatisfiableTopology(group, pod_domains, node_domains)
                demanded.append(domains)
        return demanded

    def closed_domains(self, pending: PendingPod) -> list[tuple[str, Collection[str]]]:
        """Return pairs (label, values); a node with one of these label values cannot get the pod.

        The pairs do not exclude every unsuitable node. A search over many nodes uses them to skip
        nodes quickly, because `added_requirements` is slower.
        """
        shape, strict = pending.labels_shape, pending.facts.strict
        return [
            (
                group.key,
                group.closed_domains(
                    strict.get(group.key), selects=group.selects(pending.pod, shape)
                ),
            )
            for groups in (pending.groups, self.repelling(pending))
            for group in groups
        ]

    def record(
        self,
        pending: PendingPod,
        taints: Sequence[Taint],
        node: Requirements,
        host: LabelRequirement,
    ) -> None:
        """Count a placed pod in the groups that select it, and in the inverse groups of its terms.

        Spread and affinity groups count the pod only if the node has a single possible domain.
        Anti-affinity groups count the pod in every domain that is still possible for the node.
        """
        for group in self.about(pending):
            if not group.node_filter.matches_all and not group.node_filter.matches(taints, node):
                continue
            domains = host if group.key == HOSTNAME else node.get(group.key)
            if group.kind == ANTI_AFFINITY or domains.single is not None:
                group.record(domains.values)
        for group in self._inverse_owned.get(pending.key, {}).values():
            group.record((host if group.key == HOSTNAME else node.get(group.key)).values)


def _constraint_with_labels(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str]
) -> TopologySpreadConstraint:
    more = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )
    selector = constraint.label_selector or LabelSelector()
    return replace(
        constraint,
        label_selector=replace(selector, match_expressions=(*selector.match_expressions, *more)),
    )
