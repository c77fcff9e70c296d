"""NodeAffinity: nodeSelector, required and preferred node affinity (plugins/nodeaffinity).

The plugin argument addedAffinity adds requirements and preferences to every pod of the profile. A
preferred term that cannot be parsed fails the scheduling cycle only if nodes are scored. The reason
is that upstream parses preferences in PreScore.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from fairlead.api import objects
from fairlead.api.nodes.node_selector import (
    is_unmatchable,
    name_restriction,
    node_selector_matches,
    preferred_terms_error,
    required_node_affinity,
    required_node_affinity_matches,
    required_selector_error,
    term_matches,
)
from fairlead.api.objects import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    PreferredSchedulingTerm,
)
from fairlead.api.selector import requirement_matches
from fairlead.engine.core.status import SKIP, Status, error, unresolvable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import (
    Locality,
    Normalization,
    PreFilterResult,
    Rows,
    Scores,
    Verdicts,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

Mask = npt.NDArray[np.bool_]
_ENCODER: Final = msgspec.msgpack.Encoder()
MISMATCH: Final = unresolvable("node(s) didn't match Pod's node affinity/selector").by(
    "NodeAffinity"
)
NOT_ENFORCED: Final = unresolvable("node(s) didn't match scheduler-enforced node affinity").by(
    "NodeAffinity"
)
CONFLICT: Final = unresolvable("pod affinity terms conflict")


def term_mask(term: NodeSelectorTerm, table: NodeTable, rows: Rows) -> Mask:
    """Return, for each of `rows`, whether the node meets all requirements of `term`."""
    if is_unmatchable(term):
        return np.zeros(len(rows), np.bool_)
    if term.match_fields:
        return _by_node(term, table, rows)
    fits = np.ones(len(rows), np.bool_)
    for requirement in term.match_expressions:
        fits &= requirement_mask(requirement, table, rows)
    return fits


def requirement_mask(requirement: NodeSelectorRequirement, table: NodeTable, rows: Rows) -> Mask:
    """Return, for each of `rows`, whether the node's labels meet `requirement`."""
    column = table.label_column(requirement.key)
    key = requirement.key
    by_value = [requirement_matches(requirement, {key: value}) for value in column.values]
    # The last entry is the verdict for nodes without the key: their id is ABSENT = -1.
    verdicts = np.array([*by_value, requirement_matches(requirement, {})], np.bool_)
    found: Mask = verdicts[column.ids[rows]]
    return found


def _by_node(term: NodeSelectorTerm, table: NodeTable, rows: Rows) -> Mask:
    nodes = (table.at(row) for row in rows.tolist())
    return np.array([term_matches(term, node.labels, node.name) for node in nodes], np.bool_)


class NodeAffinity:
    """Applies nodeSelector and node affinity (PreFilter, Filter, PreScore, Score)."""

    name = "NodeAffinity"
    locality = Locality.NODE
    events = frozenset({EventKind.NODE_ADD, EventKind.NODE_LABEL})
    wakes_alike = True
    normalization = Normalization.SCALED

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        args = args or NodeAffinityArgs()
        self._enforced = args.required
        self._preferred = args.preferred

    @property
    def enforced_terms(self) -> tuple[NodeSelectorTerm, ...]:
        """The required terms of addedAffinity; a node must match at least one of them."""
        return () if self._enforced is None else self._enforced.node_selector_terms

    def shape_key(self, shape: Shape) -> Hashable:
        """Return nodeSelector and node affinity as bytes; None if the pod has neither."""
        spec = shape.spec
        nodes = spec.affinity.node_affinity if spec.affinity is not None else None
        if not spec.node_selector and nodes is None:
            return None
        return _ENCODER.encode((sorted(spec.node_selector.items()), nodes))

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        """Return the node names that required affinity allows; None if names are not limited.

        Returns SKIP if no node can be rejected, and CONFLICT if no name is allowed.
        """
        spec = pod.shape.spec
        has_required = required_node_affinity(spec) is not None
        if self._enforced is None and not spec.node_selector and not has_required:
            return SKIP
        names = name_restriction(spec)
        if names is None:
            return None
        return PreFilterResult(names) if names else CONFLICT

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject nodes that do not match addedAffinity, nodeSelector or required affinity."""
        if not self._is_enforced_on(node.labels, node.name):
            return NOT_ENFORCED
        if required_node_affinity_matches(pod.shape.spec, node.labels, node.name):
            return None
        return MISMATCH

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        spec = pod.shape.spec
        fits = np.ones(len(rows), np.bool_)
        for key, value in spec.node_selector.items():
            column = table.label_column(key)
            fits &= column.ids[rows] == column.id_of(value)
        required = required_node_affinity(spec)
        if required is not None:
            fits &= _selector_mask(required, table, rows)
        codes = (~fits).astype(np.int32)
        if self._enforced is not None:
            codes[~_selector_mask(self._enforced, table, rows)] = 2
        return Verdicts(codes, (MISMATCH, MISMATCH, NOT_ENFORCED))

    def _is_enforced_on(self, labels: Mapping[str, str], name: str) -> bool:
        return self._enforced is None or node_selector_matches(self._enforced, labels, name)

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` adds a matching node, or changes a node so that it matches.

        After the change, the node must match both the pod's own affinity and addedAffinity. As in
        upstream, the state before the change is compared only with the pod's own affinity: if the
        node matched this affinity before the change, the result is False.
        """
        old, new = event.old, event.new
        spec = pod.shape.spec
        if not isinstance(new, Node) or not _matches(spec, new):
            return False
        if not self._is_enforced_on(new.metadata.labels, new.metadata.name):
            return False
        return not (isinstance(old, Node) and _matches(spec, old))

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP if there are no preferences, and an error if a preferred term is invalid."""
        preferred = _preferred(pod.shape.spec)
        if not preferred and not self._preferred:
            return SKIP
        problem = preferred_terms_error(preferred)
        return None if problem is None else error(problem)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the sum of the weights of the preferred terms that match the node."""
        return sum(
            term.weight
            for term in (*self._preferred, *_preferred(pod.shape.spec))
            if term_matches(term.preference, node.labels, node.name)
        )

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        scores = np.zeros(len(rows), np.int64)
        for term in (*self._preferred, *_preferred(pod.shape.spec)):
            scores += term.weight * term_mask(term.preference, table, rows)
        return scores


def _matches(spec: PodSpec, node: Node) -> bool:
    return required_node_affinity_matches(spec, node.metadata.labels, node.metadata.name)


def _preferred(spec: PodSpec) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def _selector_mask(selector: NodeSelector, table: NodeTable, rows: Rows) -> Mask:
    fits = np.zeros(len(rows), np.bool_)
    for term in selector.node_selector_terms:
        fits |= term_mask(term, table, rows)
    return fits


# Like the types of a pod's spec, but strict: a misspelt field must not be ignored.
class _Requirement(NodeSelectorRequirement, frozen=True, forbid_unknown_fields=True):
    """A validated requirement on a node's label or field."""


class _Term(NodeSelectorTerm, frozen=True, forbid_unknown_fields=True):
    """A term whose requirements must all be met."""

    match_expressions: tuple[_Requirement, ...] = ()
    match_fields: tuple[_Requirement, ...] = ()


class _Selector(NodeSelector, frozen=True, forbid_unknown_fields=True):
    """A selector that matches a node if at least one of its terms matches."""

    node_selector_terms: tuple[_Term, ...] = ()


class _Preferred(PreferredSchedulingTerm, frozen=True, forbid_unknown_fields=True):
    """A preferred term with its weight."""

    weight: int
    preference: _Term


class AddedAffinity(objects.NodeAffinity, frozen=True, forbid_unknown_fields=True):
    """The plugin argument addedAffinity."""

    required_during_scheduling_ignored_during_execution: _Selector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[_Preferred, ...] = ()


class NodeAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin arguments; `added_affinity` applies in addition to the pod's own affinity."""

    added_affinity: AddedAffinity | None = None

    def __post_init__(self) -> None:
        required, preferred = self.required, self.preferred
        problem = None if required is None else required_selector_error(required)
        if problem is not None:
            field = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            raise ValueError(f"{field}.{problem}")
        problem = preferred_terms_error(preferred)
        if problem is not None:
            field = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
            raise ValueError(f"{field}{problem}")

    @property
    def required(self) -> NodeSelector | None:
        """The selector in addedAffinity that every node must match; None if there is none."""
        added = self.added_affinity
        return None if added is None else added.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...]:
        """The preferred terms in addedAffinity, by which nodes are scored for every pod."""
        added = self.added_affinity
        return () if added is None else added.preferred_during_scheduling_ignored_during_execution
