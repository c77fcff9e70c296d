"""Filters nodes by the required pod affinity and anti-affinity (InterPodAffinity).

A node is rejected in the following cases, which are checked in this order:
1. The pod's required affinity is not met. The node lacks a topology key, or one of the node's
   domains has no pod that matches all terms. Exception: the incoming pod matches its own terms, and
   no domain in the cluster has a pod that matches all terms. The domains are then not checked.
2. A pod in one of the node's domains matches a required anti-affinity term of the incoming pod.
3. A pod in one of the node's domains has a required anti-affinity term that matches the incoming
   pod.
upstream: interpodaffinity/filtering.go: Filter

The result depends only on whether the count of each domain is positive. So most placements do not
change the result. `CachedCodes` caches the results for all nodes, and pods with the same terms
reuse nearly all of these results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SUCCESS, Status, unresolvable, unschedulable
from fairlead.engine.framework.interface import Rows
from fairlead.engine.plugins.inter_pod_affinity.affinity_terms import OwnTerms
from fairlead.engine.state.label_column import ABSENT
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_class import PodClass, PodLocations
from fairlead.engine.state.pod_index.affinity_term import PlacedTerm, TermKind
from fairlead.engine.state.topology_counts import HypotheticalKeyedCounts, KeyedCounts

NAME: Final = "InterPodAffinity"

_ANTI: Final = TermKind.REQUIRED_ANTI_AFFINITY

FITS: Final = 0
NOT_ATTRACTED: Final = 1
REPELLED: Final = 2
REPELLED_BY_EXISTING: Final = 3
STATUSES: Final[tuple[Status, ...]] = (
    SUCCESS,
    # Preemption cannot resolve this rejection, because removing pods does not add matching pods.
    unresolvable("node(s) didn't match pod affinity rules").by(NAME),
    # Preemption can resolve the next two rejections.
    unschedulable("node(s) didn't match pod anti-affinity rules").by(NAME),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules").by(NAME),
)
Codes = npt.NDArray[np.int32]

_CACHED_MAX: Final = 32
# If at least this many domains have changed, recomputing all rows is faster (measured).
_RECOMPUTE_ALL_FROM: Final = 16


class IncomingPodTerms:
    """The incoming pod: its own terms, its PodClass and the labels of its namespace.

    A `PodClass` is the set of pods with the same namespace and labels. A term matches all pods of a
    class or none of them. `matches_own_affinity` is True if the pod matches its own required
    affinity. For one scheduling cycle, `keys_of` caches which of the incoming pod's terms match a
    PodClass.
    """

    __slots__ = ("_known", "matches_own_affinity", "namespace_labels", "own", "pods")

    def __init__(self, own: OwnTerms, pods: PodClass, namespace_labels: Mapping[str, str]) -> None:
        self.own = own
        self.pods = pods
        self.namespace_labels = namespace_labels
        self.matches_own_affinity = bool(own.attracted.by_key) and own.affinity.matches(pods)
        self._known: dict[PodClass, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def keys_of(self, others: PodClass) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the topology keys of the incoming pod's required terms that match `others`.

        The first item of the result contains the keys of the affinity terms if all of them match;
        otherwise it is empty. The second item contains the keys of the matching anti-affinity
        terms.
        """
        known = self._known.get(others)
        if known is None:
            own = self.own
            near = tuple(own.attracted.by_key) if own.affinity.matches(others) else ()
            far = tuple(key for selector, key in own.anti_affinity if selector.matches(others))
            known = self._known[others] = (near, far)
        return known

    def keys_repelling(self, terms: Iterable[PlacedTerm]) -> Iterator[str]:
        """Yield the topology key of each anti-affinity term in `terms` that matches the pod."""
        for placed in terms:
            term = placed.term
            if term.kind is _ANTI and term.matches(self.pods, self.namespace_labels):
                yield term.topology_key


class AffinityState:
    """The data that PreFilter computes, updated for pods that a dry run adds or removes.

    Each field except `incoming` counts pods by topology key and domain. `attracted` counts the pods
    that match all required affinity terms of the incoming pod. `repelled` counts the pods that
    match a required anti-affinity term of the incoming pod. `existing` counts the placed pods with
    a required anti-affinity term that matches the incoming pod.
    """

    __slots__ = ("incoming", "attracted", "existing", "repelled")

    def __init__(
        self,
        incoming: IncomingPodTerms,
        attracted: HypotheticalKeyedCounts,
        repelled: HypotheticalKeyedCounts,
        existing: HypotheticalKeyedCounts,
    ) -> None:
        self.incoming = incoming
        self.attracted = attracted
        self.repelled = repelled
        self.existing = existing

    def clone(self) -> AffinityState:
        """Return an independent copy."""
        return AffinityState(
            self.incoming, self.attracted.clone(), self.repelled.clone(), self.existing.clone()
        )

    def reach(self) -> frozenset[str] | None:
        """Return the topology keys that determine which pods can affect the verdict on a node.

        A pod affects the verdict on a node only if the pod and the node are in the same domain of
        one of these keys. Returns None if any pod may affect any node.
        """
        if self.incoming.own.attracted.by_key:
            return None
        return frozenset((*self.repelled.keys, *self.existing.keys))

    def sources(self) -> tuple[KeyedCounts, ...] | None:
        """Return the live counts that this state reads; None if the state has its own copies.

        A clone has its own copies from the start. Any other state makes its copies when `move`
        changes a count for the first time.
        """
        attracted, repelled = self.attracted.source, self.repelled.source
        existing = self.existing.source
        if attracted is None or repelled is None or existing is None:
            return None
        return attracted, repelled, existing

    def move(self, pods: PodClass, terms: Iterable[PlacedTerm], row: int, by: int) -> None:
        """Update the counts as if a pod were added to the node at `row`, or removed from it.

        `by` is 1 for an added pod and -1 for a removed pod. The pod has the class `pods` and the
        affinity terms `terms`.
        """
        near, far = self.incoming.keys_of(pods)
        for key in near:
            self.attracted.change(key, row, by)
        for key in far:
            self.repelled.change(key, row, by)
        for key in self.incoming.keys_repelling(terms):
            self.existing.change(key, row, by)

    def concerns(self, pods: PodClass, terms: Iterable[PlacedTerm]) -> bool:
        """Return whether adding or removing a pod changes the counts.

        The pod has the class `pods` and the affinity terms `terms`.
        """
        near, far = self.incoming.keys_of(pods)
        return bool(near or far) or any(True for _ in self.incoming.keys_repelling(terms))

    def locations(self) -> tuple[PodLocations, ...] | None:
        """Return the locations of all counted pods; None if this state was cloned or changed."""
        sources = self.sources()
        if sources is None:
            return None
        counted = (counts for source in sources for counts in source.by_key.values())
        return tuple(location for counts in counted for location in counts.sources())

    def code(self, row: int) -> int:
        """Return the verdict on the node at `row`, as an index into STATUSES."""
        if not self._is_attracted(row):
            return NOT_ATTRACTED
        if _is_met(self.repelled, row):
            return REPELLED
        return REPELLED_BY_EXISTING if _is_met(self.existing, row) else FITS

    def codes(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the verdict on the node at each of `rows`, as an index into STATUSES."""
        codes = np.zeros(len(rows), np.int32)
        _mark(codes, self.existing, rows, REPELLED_BY_EXISTING)
        _mark(codes, self.repelled, rows, REPELLED)
        if self.incoming.own.attracted.by_key:
            welcome = self.may_be_first()
            for ids, counts in self.attracted.items():
                suits = counts.by_domain() > 0
                if welcome:
                    suits[:-1] = True
                codes[~suits.take(ids.take(rows))] = NOT_ATTRACTED
        return codes

    def _is_attracted(self, row: int) -> bool:
        met = True
        for ids, counts in self.attracted.items():
            domain = int(ids[row])
            if domain < 0:
                return False
            met = met and counts.of(domain) > 0
        return met or self.may_be_first()

    def may_be_first(self) -> bool:
        """Return whether the pod matches its own affinity terms, but no counted pod matches them.

        As in upstream (satisfyPodAffinity), pods on nodes without the topology key are not counted.
        """
        return self.incoming.matches_own_affinity and self.attracted.total() == 0


def _is_met(counts: HypotheticalKeyedCounts, row: int) -> bool:
    return any(one.of(int(ids[row])) > 0 for ids, one in counts.items())


def _mark(
    codes: npt.NDArray[np.int32], counts: HypotheticalKeyedCounts, rows: Rows, code: int
) -> None:
    for ids, one in counts.items():
        met = one.by_domain() > 0
        if met.any():
            np.putmask(codes, met.take(ids.take(rows)), code)


class CachedCodes:
    """The cached verdicts on all nodes, shared by all pods whose verdicts use the same counts."""

    def __init__(self, table: NodeTable, sources: tuple[KeyedCounts, ...]) -> None:
        """`sources` are the counts that determine the verdicts."""
        self._table = table
        self._sources = sources
        self._counted = [item for source in sources for item in source.by_key.items()]
        self._codes: Codes = np.zeros(0, np.int32)
        self._seen: list[tuple[int, int]] = []
        self._basis: tuple[int, int, bool] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether all counts in `sources` are still kept up to date."""
        return not any(source.dropped for source in self._sources)

    def codes(self, state: AffinityState) -> Codes:
        """Return the verdict on the node at every row of the node table, as an index into STATUSES.

        `state` must use the counts that were passed to the constructor as `sources`, and these
        counts must be up to date. Later calls do not change the returned array.
        """
        table = self._table
        basis = (table.pod_index.nodes.value, table.size, state.may_be_first())
        rows = self._changed_rows() if basis == self._basis else None
        if rows is None or len(rows) >= _RECOMPUTE_ALL_FROM:
            self._codes = state.codes(np.arange(table.size))
            self._basis = basis
        elif rows:
            self._codes = self._codes.copy()
            for row in rows:
                self._codes[row] = state.code(row)
        self._seen = [counts.log_position() for _, counts in self._counted]
        return self._codes

    def _changed_rows(self) -> dict[int, None] | None:
        """Return the rows of the nodes that must be judged again, as the keys of a dict.

        A node must be judged again if one of its domains has changed since the last call of
        `codes`.

        Returns None if judging all nodes is faster, or if a change log has dropped changes.
        """
        rows: dict[int, None] = {}
        for (key, counts), seen in zip(self._counted, self._seen, strict=True):
            domains = counts.sign_changes_since(seen)
            if domains is None or len(domains) >= _RECOMPUTE_ALL_FROM:
                return None
            for domain in domains:
                rows |= dict.fromkeys(self._rows_in(key, domain))
        return rows

    def _rows_in(self, key: str, domain: int) -> list[int]:
        assert domain != ABSENT
        ids = self._table.label_column(key).ids
        return np.flatnonzero(ids[: self._table.size] == domain).tolist()


class CodesCache:
    """A cache of the most recently used `CachedCodes`."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._cache: dict[tuple[object, ...], CachedCodes] = {}

    def of(self, state: AffinityState, sources: tuple[KeyedCounts, ...]) -> Codes:
        """Return the verdicts on all nodes for the pod of `state`, as indexes into STATUSES.

        `sources` is the result of `state.sources()`.
        """
        key = (*sources, state.incoming.matches_own_affinity)
        cached = self._cache.pop(key, None)
        if cached is None or not cached.is_usable:
            cached = CachedCodes(self._table, sources)
        self._cache[key] = cached
        while len(self._cache) > _CACHED_MAX:
            del self._cache[next(iter(self._cache))]
        return cached.codes(state)
