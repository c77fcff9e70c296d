"""Counts placed pods by the incoming pod's affinity terms and by the placed pods' own terms.

`OwnTerms` counts the placed pods that match the incoming pod's terms. For required affinity, it
counts the pods that match all terms, separately for each topology key. For required anti-affinity
and preferences, it counts the pods that match a term, separately for each term
(interpodaffinity/filtering.go: updateWithAffinityTerms, updateWithAntiAffinityTerms).

`ExistingTerms` finds the placed pods' terms that match the incoming pod, and counts the placed pods
that have these terms. If the same terms match several incoming pods, these pods share the counts.

A namespace without a Namespace object has no labels. The namespace selectors of placed pods can
still match such a namespace, for example with DoesNotExist. The namespace selectors of the incoming
pod match only namespaces with a Namespace object (interpodaffinity/plugin.go:
GetNamespaceLabelsSnapshot, mergeAffinityTermNamespacesIfNotEmpty).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.objects import LabelSelector, Namespace
from fairlead.api.selector import selector_matches
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm, PlacedTerm, TermKind
from fairlead.engine.state.pod_index.pod_index import PodIndex
from fairlead.engine.state.pod_index.pod_selector import Namespaces, PodSelector
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import RelatedObjects
from fairlead.engine.state.topology_counts import CountsCache, KeyedCounts

_NO_LABELS: Final[Mapping[str, str]] = {}
_MATCHES_MAX: Final = 1 << 14


class OwnTerms:
    """The affinity terms that some incoming pods share, with live counts of the matching pods.

    `affinity` selects the pods that match all required affinity terms, and `attracted` counts them.
    `anti_affinity` holds (selector, topology key) of each required anti-affinity term. `repelled`
    counts the pods that match such a term; a pod counts once for each term that it matches.
    `preferred` contains the sums of the weights of the preferred terms that pods match.
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
        """True if there is a required affinity or anti-affinity term."""
        return bool(self.attracted.by_key or self.anti_affinity)

    def drop(self, pod_index: PodIndex) -> None:
        """Unregister the counts from `pod_index`, which then no longer updates them."""
        for counts in (self.attracted, self.repelled, self.preferred):
            counts.drop(pod_index)


def _of_kind(terms: Sequence[AffinityTerm], kind: TermKind) -> list[AffinityTerm]:
    return [term for term in terms if term.kind is kind]


def _selector(terms: Sequence[AffinityTerm], namespaces: NamespaceLabels) -> PodSelector:
    demands = [(namespaces.namespaces_of(term), term.selector) for term in terms]
    return PodSelector(demands, counts_terminating=True)


class OwnTermsCache:
    """Caches the `OwnTerms` of recently scheduled pods; pods with equal terms share an entry."""

    def __init__(self, table: NodeTable, namespaces: NamespaceLabels) -> None:
        self._table = table
        self._namespaces = namespaces
        self._cache: CountsCache[tuple[PlacedTerm, ...], OwnTerms] = CountsCache(table)

    def of(self, pod: PodInfo) -> OwnTerms:
        """Return the `OwnTerms` of `pod`; the caller must refresh the counts in the result."""
        placed = self._table.pod_index.terms_of(pod)
        found = self._cache.get(placed)
        if found is None or found.namespace_version != self._namespaces.refresh():
            terms = [one.term for one in placed]
            found = self._cache.put(placed, OwnTerms(self._table, terms, self._namespaces))
        return found


class NamespaceLabels:
    """The labels of each namespace; call `refresh` before reading.

    `version` is increased when the labels of a namespace change.
    """

    def __init__(self, related: RelatedObjects) -> None:
        self._related = related
        self._read = -1
        self._labels: dict[str, Mapping[str, str]] = {}
        self.version = 0

    def refresh(self) -> int:
        """Read the Namespace objects again if one has changed; return `version`."""
        if self._read != self._related.version:
            self._read = self._related.version
            found: dict[str, Mapping[str, str]] = {
                one.key: one.metadata.labels for one in self._related.all_of(Namespace)
            }
            if found != self._labels:
                self._labels = found
                self.version += 1
        return self.version

    def of(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of `namespace`; {} if there is no Namespace object for it."""
        return self._labels.get(namespace, _NO_LABELS)

    def namespaces_of(self, term: AffinityTerm) -> Namespaces:
        """Return the namespaces to which `term` applies; None means all namespaces."""
        selector = term.namespace_selector
        if selector is None:
            return term.namespaces
        if selector == LabelSelector():
            return None
        matching = (n for n, labels in self._labels.items() if selector_matches(selector, labels))
        return term.namespaces.union(matching)


class _Match(Struct):
    """The placed pods' terms that match one PodClass; `counts` counts the pods with these terms.

    `terms` is valid as long as the terms of the pod index have the version `term_version`, and the
    namespace labels have the version `namespace_version`.
    """

    term_version: int
    namespace_version: int
    terms: tuple[PlacedTerm, ...]
    counts: KeyedCounts


class ExistingTerms:
    """Counts the placed pods whose affinity terms select an incoming pod.

    Only terms of the `kinds` passed to the constructor are considered, such as required
    anti-affinity.
    """

    def __init__(
        self,
        table: NodeTable,
        namespaces: NamespaceLabels,
        weigh: Callable[[AffinityTerm], int],
        kinds: tuple[TermKind, ...],
    ) -> None:
        """`kinds` are the kinds of terms to consider.

        If a term `t` of a placed pod matches the incoming pod, the placed pod adds `weigh(t)` to
        the counts.
        """
        self._table = table
        self._namespaces = namespaces
        self._weigh = weigh
        self._kinds = kinds
        self._matches: dict[PodClass, _Match] = {}
        self._counts: CountsCache[tuple[PlacedTerm, ...], KeyedCounts] = CountsCache(table)

    def counts_for(self, pods: PodClass) -> KeyedCounts:
        """Return the current counts of the placed pods whose terms match the class `pods`."""
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
        """Return the counts of the pods that have `terms`; the result is cached by `terms`."""
        found = self._counts.get(terms)
        if found is None:
            found = KeyedCounts(self._table, [placed.term.topology_key for placed in terms])
            for placed in terms:
                counts = found.by_key[placed.term.topology_key]
                counts.attach(placed.where, self._weigh(placed.term))
            self._counts.put(terms, found)
        return found
