"""Counts of the placed pods that match the incoming pod's own terms.

Required affinity counts the pods that match all terms at once, per distinct topology key; required
anti-affinity and preferences count per term (interpodaffinity/filtering.go:
updateWithAffinityTerms, updateWithAntiAffinityTerms).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.plugins.inter_pod_affinity.namespace_labels import NamespaceLabels
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm, PlacedTerm, TermKind
from fairlead.engine.state.pod_index.pod_index import PodIndex
from fairlead.engine.state.pod_index.pod_selector import PodSelector
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.topology_counts.counts_cache import CountsCache
from fairlead.engine.state.topology_counts.keyed_counts import KeyedCounts


class OwnTerms:
    """The terms shared by some incoming pods, with live counts.

    `affinity` selects the pods that match all required affinity terms and `attracted` counts them;
    `anti_affinity` holds selector and topology key of each required anti-affinity term and
    `repelled` counts its matches; `preferred` sums weights.
    """

    __slots__ = (
        "affinity",
        "anti_affinity",
        "attracted",
        "namespace_version",
        "preferred",
        "repelled",
    )

    def __init__(
        self, table: NodeTable, terms: Sequence[AffinityTerm], namespaces: NamespaceLabels
    ) -> None:
        """Start to count the pods that match `terms`."""
        self.namespace_version = namespaces.refresh()
        required = _of_kind(terms, TermKind.REQUIRED_AFFINITY)
        apart = _of_kind(terms, TermKind.REQUIRED_ANTI_AFFINITY)
        wished = _of_kind(terms, TermKind.PREFERRED)
        self.affinity = _selector(required, namespaces)
        self.anti_affinity = [(_selector([term], namespaces), term.topology_key) for term in apart]
        self.attracted = KeyedCounts(table, [term.topology_key for term in required])
        self.repelled = KeyedCounts(table, [term.topology_key for term in apart])
        self.preferred = KeyedCounts(table, [term.topology_key for term in wished])
        for counts in self.attracted.by_key.values():
            table.pod_index.watch(self.affinity, counts, 1)
        for selector, key in self.anti_affinity:
            table.pod_index.watch(selector, self.repelled.by_key[key], 1)
        for term in wished:
            counts = self.preferred.by_key[term.topology_key]
            table.pod_index.watch(_selector([term], namespaces), counts, term.weight)

    @property
    def is_required(self) -> bool:
        """True if there is a required term."""
        return bool(self.attracted.by_key or self.anti_affinity)

    def drop(self, pod_index: PodIndex) -> None:
        """Stop counting."""
        for counts in (self.attracted, self.repelled, self.preferred):
            counts.drop(pod_index)


def _of_kind(terms: Sequence[AffinityTerm], kind: TermKind) -> list[AffinityTerm]:
    return [term for term in terms if term.kind is kind]


def _selector(terms: Sequence[AffinityTerm], namespaces: NamespaceLabels) -> PodSelector:
    demands = [(namespaces.meant_by(term), term.selector) for term in terms]
    return PodSelector(demands, counts_terminating=True)


class OwnTermsCache:
    """The `OwnTerms` of recently used pods; pods with equal terms share them."""

    def __init__(self, table: NodeTable, namespaces: NamespaceLabels) -> None:
        """For the nodes of `table`."""
        self._table = table
        self._namespaces = namespaces
        self._cache: CountsCache[tuple[PlacedTerm, ...], OwnTerms] = CountsCache(table)

    def of(self, pod: PodInfo) -> OwnTerms:
        """The terms of `pod`; their counts still need `refresh`."""
        placed = self._table.pod_index.terms_of(pod)
        found = self._cache.get(placed)
        if found is None or found.namespace_version != self._namespaces.refresh():
            terms = [one.term for one in placed]
            found = self._cache.put(placed, OwnTerms(self._table, terms, self._namespaces))
        return found
