"""Filters nodes by the required pod affinity and anti-affinity (InterPodAffinity).

A node is rejected, in this order, if
1. the pod's required affinity is not met: a topology key is absent, or the domain has no pod that
   matches all terms - unless no such pod exists anywhere and the pod matches its own terms;
2. a pod in one of its domains matches a required anti-affinity term of the pod;
3. a pod in one of its domains has a required anti-affinity term that matches the pod.
upstream: interpodaffinity/filtering.go: Filter

The result depends only on whether each domain's count is positive. Most placements do not change
that, and if the topology key is the hostname they change it for one node only. So `CachedCodes`
caches the results for all rows, and pods with the same terms reuse nearly all of them.
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
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import PlacedTerm, TermKind
from fairlead.engine.state.topology_counts import KeyedCounts, SupposedKeyedCounts

NAME: Final = "InterPodAffinity"

_ANTI: Final = TermKind.REQUIRED_ANTI_AFFINITY

FITS: Final = 0
NOT_ATTRACTED: Final = 1
REPELLED: Final = 2
REPELLED_BY_EXISTING: Final = 3
STATUSES: Final[tuple[Status, ...]] = (
    SUCCESS,
    # Removing pods does not add matching pods, so preemption cannot help here,
    unresolvable("node(s) didn't match pod affinity rules").by(NAME),
    # but here it can.
    unschedulable("node(s) didn't match pod anti-affinity rules").by(NAME),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules").by(NAME),
)
Codes = npt.NDArray[np.int32]

_CACHED_MAX: Final = 32
# From this many changed rows on, recomputing all rows is cheaper (measured).
_RECOMPUTE_ALL_FROM: Final = 16


class IncomingPodTerms:
    """The incoming pod: its own terms, its pod_class and the labels of its namespace.

    `is_first_of_its_kind` is True if the pod matches its own required affinity. Caches the matches
    with other pods during one cycle.
    """

    __slots__ = ("_known", "is_first_of_its_kind", "namespace_labels", "own", "pods")

    def __init__(self, own: OwnTerms, pods: PodClass, namespace_labels: Mapping[str, str]) -> None:
        """Store `own`, the terms of the incoming pod, which is one of `pods`."""
        self.own = own
        self.pods = pods
        self.namespace_labels = namespace_labels
        self.is_first_of_its_kind = bool(own.attracted.by_key) and own.affinity.matches(pods)
        self._known: dict[PodClass, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def keys_of(self, others: PodClass) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the topology keys of the affinity and anti-affinity terms that match `others`."""
        known = self._known.get(others)
        if known is None:
            own = self.own
            near = tuple(own.attracted.by_key) if own.affinity.matches(others) else ()
            far = tuple(key for selector, key in own.anti_affinity if selector.matches(others))
            known = self._known[others] = (near, far)
        return known

    def keys_repelling(self, terms: Iterable[PlacedTerm]) -> Iterator[str]:
        """Yield the topology keys of those anti-affinity terms among `terms` that match the pod."""
        for placed in terms:
            term = placed.term
            if term.kind is _ANTI and term.matches(self.pods, self.namespace_labels):
                yield term.topology_key


class AffinityState:
    """The data of PreFilter, and the changes of a hypothesis.

    `attracted` counts pods that match all required affinity terms, `repelled` those that match an
    anti-affinity term, `existing` anti-affinity terms of placed pods that match the incoming one;
    each by topology key and domain.
    """

    __slots__ = ("asker", "attracted", "existing", "repelled")

    def __init__(
        self,
        asker: IncomingPodTerms,
        attracted: SupposedKeyedCounts,
        repelled: SupposedKeyedCounts,
        existing: SupposedKeyedCounts,
    ) -> None:
        """Take ownership of the counts."""
        self.asker = asker
        self.attracted = attracted
        self.repelled = repelled
        self.existing = existing

    def clone(self) -> AffinityState:
        """Return an independent copy."""
        return AffinityState(
            self.asker, self.attracted.clone(), self.repelled.clone(), self.existing.clone()
        )

    def reach(self) -> frozenset[str] | None:
        """Return the topology keys whose domains contain all pods that can affect a node's verdict.

        Returns None if pods on all nodes can; see `InterPodAffinity.reach`.
        """
        if self.asker.own.attracted.by_key:
            return None
        return frozenset((*self.repelled.keys, *self.existing.keys))

    def sources(self) -> tuple[KeyedCounts, ...] | None:
        """Return the counts that this state was copied from.

        Returns None once a hypothesis has changed the state.
        """
        attracted, repelled = self.attracted.source, self.repelled.source
        existing = self.existing.source
        if attracted is None or repelled is None or existing is None:
            return None
        return attracted, repelled, existing

    def move(self, pods: PodClass, terms: Iterable[PlacedTerm], row: int, by: int) -> None:
        """Assume that a pod of `pods` with `terms` was added to (1) or removed from (-1) `row`."""
        near, far = self.asker.keys_of(pods)
        for key in near:
            self.attracted.change(key, row, by)
        for key in far:
            self.repelled.change(key, row, by)
        for key in self.asker.keys_repelling(terms):
            self.existing.change(key, row, by)

    def code(self, row: int) -> int:
        """Return the verdict for one row, an index into STATUSES."""
        if not self._is_attracted(row):
            return NOT_ATTRACTED
        if _is_met(self.repelled, row):
            return REPELLED
        return REPELLED_BY_EXISTING if _is_met(self.existing, row) else FITS

    def codes(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the result of `code` for all `rows`.

        The rule with the highest precedence is written last.
        """
        codes = np.zeros(len(rows), np.int32)
        _mark(codes, self.existing, rows, REPELLED_BY_EXISTING)
        _mark(codes, self.repelled, rows, REPELLED)
        if self.asker.own.attracted.by_key:
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
        """Return whether the pod is the first one of a group (satisfyPodAffinity)."""
        return self.asker.is_first_of_its_kind and self.attracted.total() == 0


def _is_met(counts: SupposedKeyedCounts, row: int) -> bool:
    return any(one.of(int(ids[row])) > 0 for ids, one in counts.items())


def _mark(codes: npt.NDArray[np.int32], counts: SupposedKeyedCounts, rows: Rows, code: int) -> None:
    for ids, one in counts.items():
        met = one.by_domain() > 0
        if met.any():
            np.putmask(codes, met.take(ids.take(rows)), code)


class CachedCodes:
    """The verdicts for all rows, for pods whose counts are `sources`."""

    def __init__(self, table: NodeTable, sources: tuple[KeyedCounts, ...]) -> None:
        """Start without verdicts."""
        self._table = table
        self._sources = sources
        self._counted = [item for source in sources for item in source.by_key.items()]
        self._codes: Codes = np.zeros(0, np.int32)
        self._seen: list[tuple[int, int]] = []
        self._basis: tuple[int, int, bool] | None = None

    @property
    def is_usable(self) -> bool:
        """False once one of the counts is no longer maintained."""
        return not any(source.dropped for source in self._sources)

    def codes(self, state: AffinityState) -> Codes:
        """Return the verdict on every row of the node table, as an index into STATUSES.

        The array is never changed afterwards.

        `state` must hold the current counts of `sources`.
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
        self._seen = [counts.seen() for _, counts in self._counted]
        return self._codes

    def _changed_rows(self) -> dict[int, None] | None:
        """Return the rows whose domains changed since the last call; None if they are unknown."""
        rows: dict[int, None] = {}
        for (key, counts), seen in zip(self._counted, self._seen, strict=True):
            domains = counts.turned_since(seen)
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
    """Keeps the most recently used `CachedCodes`."""

    def __init__(self, table: NodeTable) -> None:
        """Start without entries, for the nodes of `table`."""
        self._table = table
        self._cache: dict[tuple[object, ...], CachedCodes] = {}

    def of(self, state: AffinityState, sources: tuple[KeyedCounts, ...]) -> Codes:
        """Return the codes of all rows for the pod whose `state` was built from `sources`."""
        key = (*sources, state.asker.is_first_of_its_kind)
        cached = self._cache.pop(key, None)
        if cached is None or not cached.is_usable:
            cached = CachedCodes(self._table, sources)
        self._cache[key] = cached
        while len(self._cache) > _CACHED_MAX:
            del self._cache[next(iter(self._cache))]
        return cached.codes(state)
