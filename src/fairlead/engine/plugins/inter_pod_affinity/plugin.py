"""InterPodAffinity: the plugin's arguments, extension points and QueueingHints.

As in upstream, QueueingHints treat namespaces as having no labels. So a pod with a term that
selects namespaces by label is not requeued when a pod in these namespaces changes
(interpodaffinity/plugin.go: isSchedulableAfterPodChange, isSchedulableAfterNodeChange).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from fairlead.api.objects import Node
from fairlead.api.text.field_problem import invalid
from fairlead.engine.core.status import SKIP, Status
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Scores, Verdicts
from fairlead.engine.framework.preemption.removal_effect import RemovalEffect
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.inter_pod_affinity.affinity_terms import (
    ExistingTerms,
    NamespaceLabels,
    OwnTerms,
    OwnTermsCache,
)
from fairlead.engine.plugins.inter_pod_affinity.filter import (
    NAME,
    STATUSES,
    AffinityState,
    CodesCache,
    IncomingPodTerms,
)
from fairlead.engine.plugins.inter_pod_affinity.score import PreferenceState, normalize
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm, TermKind, has_pod_affinity
from fairlead.engine.state.pod_index.pod_index import PodIndex
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.topology_counts import HypotheticalKeyedCounts, KeyedCounts


class InterPodAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin arguments of InterPodAffinity.

    `hard_pod_affinity_weight` (0..100) is the weight of required affinity terms of placed pods.

    upstream: apis/config/types_pluginargs.go
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def __post_init__(self) -> None:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            problem = invalid(weight, "not in valid range [0, 100]")
            raise ValueError(f"hardPodAffinityWeight: {problem}")


_NO_ARGS: Final = InterPodAffinityArgs()
EVENTS: Final = frozenset(
    {
        EventKind.ASSIGNED_POD_ADD,
        EventKind.ASSIGNED_POD_LABEL,
        EventKind.ASSIGNED_POD_DELETE,
        EventKind.POD_LABEL,
        EventKind.NODE_ADD,
        EventKind.NODE_LABEL,
    }
)
Labels = Mapping[str, str]
Terms = Sequence[AffinityTerm]


class InterPodAffinity:
    """Applies affinity and anti-affinity between pods (PreFilter, Filter, PreScore, Score)."""

    name = NAME
    locality = Locality.CLUSTER
    events = EVENTS
    wakes_alike = True

    def __init__(self, handle: Handle, args: InterPodAffinityArgs = _NO_ARGS) -> None:
        self._args = args
        self._table = table = handle.cluster.table
        self._pod_index = table.pod_index
        self._namespaces = NamespaceLabels(handle.cluster.related)
        self._no_terms = OwnTerms(table, (), self._namespaces)
        self._none = KeyedCounts(table, ())
        self._own = OwnTermsCache(table, self._namespaces)
        self._repelling = ExistingTerms(
            table, self._namespaces, lambda _: 1, (TermKind.REQUIRED_ANTI_AFFINITY,)
        )
        self._cache = CodesCache(table)
        self._attracting = ExistingTerms(
            table, self._namespaces, *_scoring(args.hard_pod_affinity_weight)
        )

    def _own_terms(self, pod: PodInfo) -> OwnTerms:
        return self._own.of(pod) if has_pod_affinity(pod.shape.spec) else self._no_terms

    # --- Filter ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod has no required terms and no placed pod's term repels it.

        After SKIP, Filter does not run. So the terms of nominated pods are not evaluated either.
        """
        is_repelled = self._pod_index.repelling > 0
        if not is_repelled and pod.shape.spec.affinity is None:
            return SKIP  # by far the most frequent case
        own, existing = self._own_terms(pod), self._none
        if is_repelled:
            existing = self._repelling.counts_for(self._pod_index.pod_class_of(pod))
        if not own.is_required and not existing.pods():
            return SKIP
        attracted, repelled = own.attracted.refresh(), own.repelled.refresh()
        table = self._table
        labels = self._namespaces.of(pod.namespace)
        found = AffinityState(
            IncomingPodTerms(own, self._pod_index.pod_class_of(pod), labels),
            HypotheticalKeyedCounts(table, attracted),
            HypotheticalKeyedCounts(table, repelled),
            HypotheticalKeyedCounts(table, existing),
        )
        state.write(found)
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `added` were on `node`."""
        pods, terms = self._pod_index.pod_class_of(added), self._pod_index.terms_of(added)
        state.read(AffinityState).move(pods, terms, node.row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `removed` were no longer on `node`."""
        pods, terms = self._pod_index.pod_class_of(removed), self._pod_index.terms_of(removed)
        state.read(AffinityState).move(pods, terms, node.row, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return the rejection by the first violated rule; None if no rule is violated."""
        code = state.read(AffinityState).code(node.row)
        return STATUSES[code] if code else None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        found = state.read(AffinityState)
        sources = found.sources()
        if sources is None or 2 * len(rows) < table.size:
            return Verdicts(found.codes(rows), STATUSES)
        # Rows may come in any order. `wrap` avoids the bounds check: every row is below table.size.
        codes = self._cache.of(found, sources)
        if rows is table.every_row():
            return Verdicts(codes[: table.size], STATUSES)
        return Verdicts(codes.take(rows, mode="wrap"), STATUSES)

    def reach(self, state: CycleState) -> frozenset[str] | None:
        """Return the topology keys that determine which pods can affect the verdict on a node.

        A pod affects the verdict on a node only if the pod and the node are in the same domain of
        one of these keys. Returns None if the incoming pod has required affinity, because then any
        pod in the cluster can affect the verdict. The reason is a rule for an incoming pod that
        matches its own affinity. As long as no topology domain in the cluster has a matching pod,
        such an incoming pod fits every node with the topology keys.
        """
        return state.read(AffinityState).reach()

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return how the removal of pods can change the verdicts.

        A removal can make a node infeasible only if the removed pod met a required affinity of the
        incoming pod.
        """
        found, index = state.read(AffinityState), self._pod_index
        return RemovalEffect(
            lambda pod: found.concerns(index.pod_class_of(pod), index.terms_of(pod)),
            found.locations(),
            may_harm=bool(found.incoming.own.attracted.by_key),
        )

    # --- queueing hint ---------------------------------------------------------------------

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return True if `event` may make the pod schedulable."""
        return is_schedulable_after(pod, self._pod_index, event)

    # --- Score -----------------------------------------------------------------------------

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if no affinity term of `pod` or of placed pods affects scores for `pod`."""
        if pod.shape.spec.affinity is not None and self._own_terms(pod).preferred.by_key:
            return False
        if not self._pod_index.attracting or self._args.ignore_preferred_terms_of_existing_pods:
            return True
        return not self._attracting.counts_for(self._pod_index.pod_class_of(pod)).pods()

    def preferences(self, pod: PodInfo) -> tuple[KeyedCounts, KeyedCounts]:
        """Return two sums of weights per domain.

        The first sum is over the terms of `pod`, the second sum is over the terms of placed pods.
        """
        existing = self._none
        if self._pod_index.attracting:
            existing = self._attracting.counts_for(self._pod_index.pod_class_of(pod))
        return self._own_terms(pod).preferred, existing

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP if no affinity term affects the scores.

        A preferred term of `pod` affects the scores if the term matches a placed pod. A scored term
        of a placed pod affects the scores if the term matches `pod`. Also returns SKIP if `pod` has
        no preferred terms and the argument `ignore_preferred_terms_of_existing_pods` is set.
        """
        wished = self._own_terms(pod).preferred.refresh()
        if not wished.by_key and self._args.ignore_preferred_terms_of_existing_pods:
            return SKIP
        existing = self._none
        if self._pod_index.attracting:
            existing = self._attracting.counts_for(self._pod_index.pod_class_of(pod))
        if not wished.pods() and not existing.pods():
            return SKIP
        state.write(PreferenceState(self._table, (wished, existing)))
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the sum of the weights of the terms that match in the domains of `node`."""
        return state.read(PreferenceState).score(node.row)

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        return state.read(PreferenceState).scores(rows)

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Return the scores scaled to 0..100."""
        return normalize(scores)


def _scoring(hard_weight: int) -> tuple[Callable[[AffinityTerm], int], tuple[TermKind, ...]]:
    """Return a function that weighs terms of placed pods, and the kinds of terms to weigh."""
    if not hard_weight:
        return (lambda term: term.weight), (TermKind.PREFERRED,)
    kinds = (TermKind.REQUIRED_AFFINITY, TermKind.PREFERRED)
    return (lambda term: term.weight or hard_weight), kinds


def is_schedulable_after(pod: PodInfo, pod_index: PodIndex, event: ClusterEvent) -> bool:
    """Return True if `event`, one of EVENTS, may change the verdict for `pod`."""
    near = _terms(pod_index, pod, TermKind.REQUIRED_AFFINITY)
    apart = _terms(pod_index, pod, TermKind.REQUIRED_ANTI_AFFINITY)
    match event:
        case ClusterEvent(kind=EventKind.POD_LABEL):
            return True
        case ClusterEvent(old=PodInfo() as old, new=PodInfo() as new):
            before, after = pod_index.pod_class_of(old), pod_index.pod_class_of(new)
            attracts = _match_all(near, after) and not _match_all(near, before)
            return attracts or (_match_all(apart, before) and not _match_all(apart, after))
        case ClusterEvent(old=None, new=PodInfo() as new):
            return _match_all(near, pod_index.pod_class_of(new))
        case ClusterEvent(old=PodInfo() as gone):
            theirs = _terms(pod_index, gone, TermKind.REQUIRED_ANTI_AFFINITY)
            repelled = _match_all(apart, pod_index.pod_class_of(gone))
            return repelled or _match_all(theirs, pod_index.pod_class_of(pod))
        case ClusterEvent(old=Node() as before_node, new=Node() as after_node):
            return _moves(near, apart, before_node.metadata.labels, after_node.metadata.labels)
        case ClusterEvent(new=Node() as new_node):
            labels = new_node.metadata.labels
            return bool(apart) or any(term.topology_key in labels for term in near)
        case _:
            return True


def _terms(pod_index: PodIndex, pod: PodInfo, kind: TermKind) -> list[AffinityTerm]:
    return [placed.term for placed in pod_index.terms_of(pod) if placed.term.kind is kind]


def _match_all(terms: Terms, pods: PodClass) -> bool:
    return bool(terms) and all(term.matches(pods, {}) for term in terms)


def _moves(near: Terms, apart: Terms, before: Labels, after: Labels) -> bool:
    """Return whether the node entered a domain of `near` or left a domain of `apart`.

    `near` are required affinity terms, and `apart` are required anti-affinity terms. A domain of a
    term is a value of the label that is the term's topology key.
    """
    entered = (term.topology_key for term in near if term.topology_key in after)
    left = (term.topology_key for term in apart if term.topology_key in before)
    return any(before.get(key) != after.get(key) for key in (*entered, *left))
