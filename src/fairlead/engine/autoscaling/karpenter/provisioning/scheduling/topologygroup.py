"""TopologyGroup: one spread, affinity or anti-affinity term, with its number of pods per domain.

Pods with the same term share a group. `next_domains` returns the domains that both the term and the
node allow for a pod. Ties are broken by the domain's name; upstream breaks them at random.

upstream: pkg/controllers/provisioning/scheduling/topologygroup.go
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from copy import copy
from typing import Final

from fairlead.api.objects import LabelSelector, Pod
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologynodefilter import (
    EVERY_NODE,
    TopologyNodeFilter,
    elements_of_odd_count,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement

SPREAD: Final = 0
AFFINITY: Final = 1
ANTI_AFFINITY: Final = 2
_NAMES: Final = ("topology spread", "pod affinity", "pod anti-affinity")

NO_SKEW: Final = 2**31 - 1
_SHOWN_DOMAINS: Final = 25


class TopologyGroup:
    """One spread, affinity or anti-affinity term over the domains of the label `key`.

    `counts` maps domains to the number of pods that the term selects. In an inverse group, `counts`
    maps domains to the number of pods that have the term. In the methods, the parameter `selects`
    tells whether the term selects the pod to place.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the identity of a term
        self,
        kind: int,
        key: str,
        namespaces: frozenset[str],
        selector: LabelSelector | None,
        max_skew: int = NO_SKEW,
        min_domains: int | None = None,
        node_filter: TopologyNodeFilter = EVERY_NODE,
    ) -> None:
        """Start without pods; `kind` is SPREAD, AFFINITY or ANTI_AFFINITY.

        `max_skew` and `min_domains` are fields of a spread constraint, and `node_filter` decides
        which nodes this constraint counts.
        """
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.selector = selector
        self.max_skew = max_skew
        self.min_domains = min_domains
        self.node_filter = node_filter
        # groups that select the same pods have equal values
        self.selection: Hashable = (namespaces, _selector_identity(selector))
        self.identity: Hashable = (kind, key, max_skew, node_filter.identity, self.selection)
        self.counts: dict[str, int] = {}
        self.occupied: dict[str, None] = {}
        self._selected: dict[Hashable, bool] = {}

    def copied(self) -> TopologyGroup:
        """Return a copy whose counts can change independently."""
        found = copy(self)
        found.counts, found.occupied = dict(self.counts), dict(self.occupied)
        return found

    @property
    def sort_key(self) -> tuple[int, str]:
        """The sort key of the group. A fixed order of groups makes errors reproducible."""
        return self.kind, self.key

    def selects(self, pod: Pod, shape: Hashable) -> bool:
        """Return whether the term of this group selects `pod`.

        `shape` identifies the pod's namespace and labels. `shape` is not an
        `engine.state.shape.Shape`.
        """
        found = self._selected.get(shape)
        if found is None:
            found = self._selected[shape] = pod.metadata.namespace in self.namespaces and (
                selector_matches(self.selector, pod.metadata.labels)
            )
        return found

    def register(self, domain: str) -> None:
        """Add `domain` with a count of 0 if `counts` does not contain it yet."""
        self.counts.setdefault(domain, 0)

    def record(self, domains: Iterable[str], number: int = 1) -> None:
        """Add `number` to the pod count of each domain in `domains`."""
        counts = self.counts
        for domain in domains:
            before = counts.get(domain, 0)
            counts[domain] = before + number
            if not before:
                self.occupied[domain] = None

    def next_domains(
        self, pod_domains: LabelRequirement, node_domains: LabelRequirement, *, selects: bool
    ) -> LabelRequirement:
        """Return the domains in which the term allows a pod; DoesNotExist if there are none.

        `pod_domains` and `node_domains` are the domains that the pod and the node allow. `selects`
        tells whether the group's term selects the pod.
        """
        if self.key == HOSTNAME and len(node_domains.values) == 1:
            return self._on_host(pod_domains, next(iter(node_domains.values)), selects=selects)
        match self.kind:
            case 0:
                return self._spread(pod_domains, node_domains, selects=selects)
            case 1:
                return self._affinity(pod_domains, node_domains, selects=selects)
            case _:
                return self._domains(
                    domain
                    for domain, count in self.counts.items()
                    if not count and node_domains.has(domain) and pod_domains.has(domain)
                )

    def closed_domains(self, pod_domains: LabelRequirement, *, selects: bool) -> Collection[str]:
        """Return domains in which the group's term certainly forbids a pod.

        The term may forbid further domains; `next_domains` decides exactly. `pod_domains` are the
        domains that the pod allows. `selects` is True if the term's selector matches the pod.
        """
        if self.kind == ANTI_AFFINITY:
            return self.occupied
        if self.kind == AFFINITY:
            if selects and self.may_start(pod_domains):
                return ()
            return self.counts.keys() - self.occupied.keys()
        most = self._lowest_count(pod_domains) + self.max_skew - selects
        return {domain for domain, count in self.counts.items() if count > most}

    def _on_host(
        self, pod_domains: LabelRequirement, host: str, *, selects: bool
    ) -> LabelRequirement:
        """Return the domains in which a term over hosts allows a pod on the node `host`.

        The result is `host`, or no domain if the term forbids `host`.
        """
        count = self.counts.get(host, 0)
        if self.kind == SPREAD:
            return self._domains((host,) if count + selects <= self.max_skew else ())
        if self.kind == ANTI_AFFINITY:
            return self._domains(() if count else (host,))
        allowed = pod_domains.has(host) and (count > 0 or (selects and self.may_start(pod_domains)))
        return self._domains((host,) if allowed else ())

    def _spread(
        self, pod_domains: LabelRequirement, node_domains: LabelRequirement, *, selects: bool
    ) -> LabelRequirement:
        """Return the node's domain that has the fewest pods and satisfies maxSkew.

        Returns no domain if no domain of the node satisfies maxSkew.
        """
        lowest = self._lowest_count(pod_domains)
        best: tuple[int, str] | None = None
        for domain, existing in self.counts.items():
            count = existing + selects
            if count - lowest <= self.max_skew and node_domains.has(domain):
                best = (count, domain) if best is None else min(best, (count, domain))
        return self._domains(() if best is None else (best[1],))

    def _lowest_count(self, pod_domains: LabelRequirement) -> int:
        """Return the lowest pod count among the domains that the pod allows.

        Returns 0 if the label is the hostname, because a new node would be an empty domain. Also
        returns 0 if the pod allows fewer than `min_domains` of the domains in `counts`.
        """
        if self.key == HOSTNAME:
            return 0
        supported = [n for domain, n in self.counts.items() if pod_domains.has(domain)]
        if self.min_domains is not None and len(supported) < self.min_domains:
            return 0
        return min(supported, default=NO_SKEW)

    def _affinity(
        self, pod_domains: LabelRequirement, node_domains: LabelRequirement, *, selects: bool
    ) -> LabelRequirement:
        """Return the occupied domains that both the pod to place and the node allow.

        A domain is occupied if it contains a pod that the term selects. `selects` tells whether the
        term selects the pod itself. If it does, and the pod allows no occupied domain, the result
        contains unoccupied domains that the pod allows.
        """
        found = [
            domain
            for domain in self.occupied
            if pod_domains.has(domain) and node_domains.has(domain)
        ]
        if found or not (selects and self.may_start(pod_domains)):
            return self._domains(found)
        # The first domain that pod and node share, and the first that the pod allows.
        both = pod_domains.intersection(node_domains)
        first_of_both = min(filter(both.has, self.counts), default=None)
        first_of_pod = min(filter(pod_domains.has, self.counts), default=None)
        return self._domains(one for one in (first_of_both, first_of_pod) if one is not None)

    def may_start(self, pod_domains: LabelRequirement) -> bool:
        """Return whether none of `pod_domains` contains a pod that the group's term selects.

        If the result is True, and the term selects the pod to place, this pod may be the first pod
        in a domain.
        """
        return not any(pod_domains.has(domain) for domain in self.occupied)

    def _domains(self, domains: Iterable[str]) -> LabelRequirement:
        return LabelRequirement(self.key, values=frozenset(domains))

    def error(self, pod_domains: LabelRequirement, node_domains: LabelRequirement) -> str:
        """Return upstream's text for a pod that fits no domain.

        As in upstream, the closing parenthesis is missing.
        """
        shown = sorted(self.counts.items())
        counts = ", ".join(f"{domain}: {n}" for domain, n in shown[:_SHOWN_DOMAINS])
        if len(shown) > _SHOWN_DOMAINS:
            counts += f" and {len(shown) - _SHOWN_DOMAINS} other(s)"
        return (
            f"unsatisfiable topology constraint for {_NAMES[self.kind]}, key={self.key} "
            f"(counts = {counts}, podDomains = {pod_domains}, nodeDomains = {node_domains}"
        )


def _selector_identity(selector: LabelSelector | None) -> Hashable:
    if selector is None:
        return None
    expressions = frozenset(
        (one.key, one.operator, elements_of_odd_count(one.values))
        for one in selector.match_expressions
    )
    return expressions, frozenset(selector.match_labels.items())
