"""PodIndex: the nodes of placed pods, indexed for affinity and topology spread rules.

Every placed pod is indexed under its `PodClass` (namespace, labels, terminating) and under each of
its `PlacedTerm`s (its affinity terms). Equal classes and equal terms are stored once. Label
selectors are evaluated once per class, not once per pod. Placed terms are evaluated for the classes
of incoming pods. Classes and terms notify their counters (`DomainCounts`) when a pod is added or
removed.

    pod ── pod class ── selectors passed to `watch` ────▶ DomainCounts
      └─── placed terms ── incoming pods that match ────▶ DomainCounts

`NodeTable` is the only writer. Forks (`engine.state.fork`) also change pods through `NodeTable`. So
the hypothetical changes of a fork are counted too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from fairlead.api.objects import LabelSelector
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import (
    AffinityTerm,
    PlacedTerm,
    TermKind,
    affinity_terms,
    has_pod_affinity,
)
from fairlead.engine.state.pod_index.domain_counts import DomainCounts, NodeEpoch
from fairlead.engine.state.pod_index.pod_selector import Anchor, AnchorIndex, PodSelector, anchor_of
from fairlead.engine.state.pod_info import PodInfo

_SWEEP_MIN: Final = 4096
_TERMS_OF_MAX: Final = 1 << 14

PodClassKey = tuple[str, frozenset[tuple[str, str]], bool]
_Key = TypeVar("_Key")
_REPELLING: Final = TermKind.REQUIRED_ANTI_AFFINITY


class _Watch(Struct, frozen=True, eq=False):
    """A selector; the pods that it selects are counted in `counts`, each with `weight`."""

    selector: PodSelector
    counts: DomainCounts
    weight: int


class PodIndex:
    """The nodes of placed pods, indexed by pod class and by affinity term.

    `repelling` is the number of required anti-affinity terms of placed pods. `attracting` is the
    number of all other terms of placed pods; these terms affect scores. Pods with equal terms share
    one PlacedTerm. `term_version` increases when a PlacedTerm is created or dropped. `term_changes`
    increases whenever a placed pod with terms is added or removed.
    """

    def __init__(self) -> None:
        """Start without pods."""
        self.nodes = NodeEpoch()
        self.labels = NodeEpoch()  # does not advance when only taints change
        self.term_version = 0
        self.term_changes = 0
        self.repelling = 0
        self.attracting = 0
        self._pod_class: dict[PodClassKey, PodClass] = {}
        self._latest_class: PodClass | None = None
        self._by_label: dict[tuple[str, str], dict[PodClass, None]] = {}
        self._terms: dict[bytes, PlacedTerm] = {}
        self._terms_by_kind: dict[TermKind, AnchorIndex[PlacedTerm]] = {
            kind: AnchorIndex() for kind in TermKind
        }
        self._terms_of: dict[tuple[int, str], tuple[PlacedTerm, ...]] = {}
        self._watches: AnchorIndex[_Watch] = AnchorIndex()
        self._watches_of: dict[DomainCounts, list[_Watch]] = {}
        self._sweep_at = _SWEEP_MIN

    # --- pods ------------------------------------------------------------------------------

    def add(self, row: int, pod: PodInfo) -> None:
        """Add `pod` on the node at `row`; `remove` undoes this."""
        found = pod.pod_class
        if found is None or found.is_removed:
            found = self.pod_class_of(pod)
        found.where.add(row, pod.priority)
        if pod.shape.spec.affinity is not None:
            for placed in self.terms_of(pod):
                placed.where.add(row, pod.priority)
                self._tally(placed, 1)

    def add_replicas(self, rows: Sequence[int], replica: PodInfo) -> None:
        """Add a pod on the node at each of `rows`, with the PodClass and terms of `replica`.

        The terms are affinity terms.
        """
        self.pod_class_of(replica).where.add_all(rows, replica.priority)
        for placed in self.terms_of(replica):
            placed.where.add_all(rows, replica.priority)
            self._tally(placed, len(rows))

    def remove(self, row: int, pod: PodInfo) -> None:
        """Remove `pod` from the node at `row`."""
        self.pod_class_of(pod).where.remove(row)
        if pod.shape.spec.affinity is not None:
            for placed in self.terms_of(pod):
                placed.where.remove(row)
                self._tally(placed, -1)

    def replace(self, row: int, old: PodInfo, new: PodInfo) -> None:
        """Replace `old` on the node at `row` with `new`, which has the same `Shape`."""
        if new.priority != old.priority:
            self.remove(row, old)
            self.add(row, new)
            return
        before = self.pod_class_of(old)
        if new.labels is old.labels and new.terminating == old.terminating:
            new.pod_class = before
            return
        after = self.pod_class_of(new)
        if before is not after:
            before.where.remove(row)
            after.where.add(row, new.priority)

    def _tally(self, placed: PlacedTerm, pods: int) -> None:
        self.term_changes += 1
        if placed.term.kind is _REPELLING:
            self.repelling += pods
        else:
            self.attracting += pods

    # --- classes of pods -------------------------------------------------------------------

    def pod_class_of(self, pod: PodInfo) -> PodClass:
        """Return the class of `pod`; the pod need not be placed."""
        found = pod.pod_class
        if found is not None and not found.is_removed:
            return found
        # Most pods are loaded next to a pod of the same workload, which has the same labels.
        found = self._latest_class
        if (
            found is None
            or found.is_removed
            or found.labels != pod.labels
            or found.namespace != pod.namespace
            or found.terminating != pod.terminating
        ):
            key = _key_of(pod)
            found = self._pod_class.get(key)
            if found is None:
                found = self._add_pod_class(key, pod)
            self._latest_class = found
        pod.pod_class = found
        return found

    def classes(self) -> Iterable[PodClass]:
        """Return all indexed classes, including classes that have no pods any more."""
        return self._pod_class.values()

    def candidates(self, selector: LabelSelector | None) -> Iterable[PodClass]:
        """Return a superset of the classes whose labels `selector` matches.

        If `selector` requires a certain label, the result contains the classes with that label.
        Otherwise, it contains all classes.
        """
        return self._with_label(anchor_of(selector))

    def _with_label(self, label: Anchor) -> Iterable[PodClass]:
        return self._pod_class.values() if label is None else self._by_label.get(label, ())

    def _add_pod_class(self, key: PodClassKey, pod: PodInfo) -> PodClass:
        if len(self._pod_class) >= self._sweep_at:
            self._sweep()
        new = PodClass(pod.namespace, pod.labels, terminating=pod.terminating)
        self._pod_class[key] = new
        for label in new.labels.items():
            self._by_label.setdefault(label, {})[new] = None
        for watch in self._watches.candidates(new.labels):
            if watch.selector.matches(new):
                watch.counts.attach(new.where, watch.weight)
        return new

    def watch(self, selector: PodSelector, counts: DomainCounts, weight: int) -> None:
        """Count in `counts` all pods that `selector` matches, now and later, until `unwatch`.

        Each pod adds `weight` to the sum of its domain.
        """
        watch = _Watch(selector, counts, weight)
        self._watches.add(selector.anchor, watch)
        self._watches_of.setdefault(counts, []).append(watch)
        for known in self._with_label(selector.anchor):
            if selector.matches(known):
                counts.attach(known.where, weight)

    def unwatch(self, counts: DomainCounts) -> None:
        """Stop counting pods in `counts`."""
        for watch in self._watches_of.pop(counts, ()):
            self._watches.remove(watch.selector.anchor, watch)
        counts.detach()

    # --- affinity terms --------------------------------------------------------------------

    def terms_of(self, pod: PodInfo) -> tuple[PlacedTerm, ...]:
        """Return the affinity terms of `pod`; the pod need not be placed."""
        if not has_pod_affinity(pod.shape.spec):
            return ()
        key = (pod.shape.id, pod.namespace)
        found = self._terms_of.get(key)
        if found is None:
            if len(self._terms_of) >= _TERMS_OF_MAX:  # because shapes are dropped and created again
                self._terms_of.clear()
            found = self._terms_of[key] = self._intern_terms(pod)
        return found

    def _intern_terms(self, pod: PodInfo) -> tuple[PlacedTerm, ...]:
        placed = []
        for term in affinity_terms(pod.shape.spec, pod.namespace):
            key = term.key()
            found = self._terms.get(key)
            if found is None:
                found = self._terms[key] = PlacedTerm(term)
                self._terms_by_kind[term.kind].add(anchor_of(term.selector), found)
                self.term_version += 1
            placed.append(found)
        return tuple(placed)

    def terms_matching(
        self, pods: PodClass, kinds: Iterable[TermKind], namespace_labels: Mapping[str, str]
    ) -> tuple[PlacedTerm, ...]:
        """Return the stored affinity terms of `kinds` that match the pods of class `pods`.

        `namespace_labels` are the labels of the namespace of these pods.
        """
        return tuple(
            placed
            for kind in kinds
            for placed in self._terms_by_kind[kind].candidates(pods.labels)
            if placed.term.matches(pods, namespace_labels)
        )

    def classes_matching(
        self, term: AffinityTerm, labels_of: Callable[[str], Mapping[str, str]]
    ) -> Iterator[PodClass]:
        """Yield the classes that `term` matches; `labels_of` returns the labels of a namespace."""
        candidates = self.candidates(term.selector)
        return (one for one in candidates if term.matches(one, labels_of(one.namespace)))

    # --- cleanup ---------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Remove classes and terms that have no pods, to limit memory use."""
        for key, pods in list(self._pod_class.items()):
            if not pods.where.rows:
                self._remove_pod_class(key, pods)
        for name, placed in list(self._terms.items()):
            if not placed.where.rows:
                del self._terms[name]
                term = placed.term
                self._terms_by_kind[term.kind].remove(anchor_of(term.selector), placed)
                self.term_version += 1
        self._terms_of.clear()
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._pod_class))

    def _remove_pod_class(self, key: PodClassKey, pods: PodClass) -> None:
        pods.is_removed = True
        del self._pod_class[key]
        for label in pods.labels.items():
            filed = self._by_label[label]
            del filed[pods]
            if not filed:
                del self._by_label[label]
        for counter, _ in pods.where.counters:
            counter.release(pods.where)

    def validate(self, nodes: Iterable[NodeInfo]) -> None:
        """Rebuild the index from `nodes`; raises AssertionError if the new index differs."""
        by_pod_class: dict[PodClassKey, dict[int, int]] = {}
        by_term: dict[bytes, dict[int, int]] = {}
        for node in nodes:
            for pod in node.pods.values():
                _add_to_row(by_pod_class, _key_of(pod), node.row)
                assert self.pod_class_of(pod).where.lowest_priority <= pod.priority
                for placed in self.terms_of(pod):
                    _add_to_row(by_term, placed.term.key(), node.row)
                    assert placed.where.lowest_priority <= pod.priority
        placed_alike = {key: pods.where.rows for key, pods in self._pod_class.items()}
        placed_terms = {key: term.where.rows for key, term in self._terms.items()}
        assert by_pod_class == {key: rows for key, rows in placed_alike.items() if rows}
        assert by_term == {key: rows for key, rows in placed_terms.items() if rows}
        repelling = [t for t in self._terms.values() if t.term.kind is _REPELLING]
        assert self.repelling == sum(sum(term.where.rows.values()) for term in repelling)
        total = sum(sum(term.where.rows.values()) for term in self._terms.values())
        assert self.attracting == total - self.repelling
        for counts in self._watches_of:
            counts.validate()


def _key_of(pod: PodInfo) -> PodClassKey:
    return pod.namespace, frozenset(pod.labels.items()), pod.terminating


def _add_to_row(book: dict[_Key, dict[int, int]], key: _Key, row: int) -> None:
    rows = book.setdefault(key, {})
    rows[row] = rows.get(row, 0) + 1
