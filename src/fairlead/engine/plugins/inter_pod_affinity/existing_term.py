"""Terms of placed pods that match the incoming pod, and the number of their pods per domain.

The set of matching terms is computed once per distinct namespace and labels; pods with the same set
share the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead.engine.plugins.inter_pod_affinity.namespace_labels import NamespaceLabels
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm, PlacedTerm, TermKind
from fairlead.engine.state.topology_counts.counts_cache import CountsCache
from fairlead.engine.state.topology_counts.keyed_counts import KeyedCounts

_MATCHES_MAX: Final = 1 << 14


@dataclass(slots=True)
class _Match:
    """The terms that match a pod_class, valid for two versions, and their counts."""

    term_version: int
    namespace_version: int
    terms: tuple[PlacedTerm, ...]
    counts: KeyedCounts


class ExistingTerms:
    """Some kinds of terms of the placed pods, matched against incoming pods."""

    def __init__(
        self,
        table: NodeTable,
        namespaces: NamespaceLabels,
        weigh: Callable[[AffinityTerm], int],
        kinds: tuple[TermKind, ...],
    ) -> None:
        """`weigh` returns what each pod with a term adds to the sums."""
        self._table = table
        self._namespaces = namespaces
        self._weigh = weigh
        self._kinds = kinds
        self._matches: dict[PodClass, _Match] = {}
        self._counts: CountsCache[tuple[PlacedTerm, ...], KeyedCounts] = CountsCache(table)

    def meaning(self, pods: PodClass) -> KeyedCounts:
        """Up-to-date counts of the terms that match `pods`, by the terms' topology keys."""
        match = self._match(pods)
        if match.counts.dropped:
            match.counts = self._count(match.terms)
        return match.counts.refresh()

    def _match(self, pods: PodClass) -> _Match:
        pod_index = self._table.pod_index
        known = self._matches.get(pods)
        version = self._namespaces.refresh()
        if (
            known is not None
            and known.term_version == pod_index.term_version
            and known.namespace_version == version
        ):
            return known
        labels = self._namespaces.of(pods.namespace)
        terms = pod_index.terms_matching(pods, self._kinds, labels)
        if len(self._matches) >= _MATCHES_MAX:
            self._matches.clear()
        found = _Match(pod_index.term_version, version, terms, self._count(terms))
        self._matches[pods] = found
        return found

    def _count(self, terms: tuple[PlacedTerm, ...]) -> KeyedCounts:
        """The counts of exactly these terms, shared by all pods that match them."""
        found = self._counts.get(terms)
        if found is None:
            found = KeyedCounts(self._table, [placed.term.topology_key for placed in terms])
            for placed in terms:
                counts = found.by_key[placed.term.topology_key]
                counts.attach(placed.where, self._weigh(placed.term))
            self._counts.put(terms, found)
        return found
