"""PodTopologySpread: the plugin's extension points and QueueingHints.

upstream: podtopologyspread/plugin.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.core.status import SKIP, Status
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Scores, Verdicts
from fairlead.engine.framework.preemption.removal_effect import RemovalEffect
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.pod_topology_spread.constraint import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM,
    Constraint,
    PodTopologySpreadArgs,
    compile_constraint,
    own_constraints,
)
from fairlead.engine.plugins.pod_topology_spread.default_selector import (
    DefaultSelector,
    DefaultSelectors,
)
from fairlead.engine.plugins.pod_topology_spread.filter import (
    NAME,
    STATUSES,
    SpreadState,
    spread_state,
)
from fairlead.engine.plugins.pod_topology_spread.score import SpreadScoreState
from fairlead.engine.plugins.pod_topology_spread.spread_counts import SpreadCounts
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape
from fairlead.engine.state.topology_counts import CountsCache

_NO_ARGS: Final = PodTopologySpreadArgs()
_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_SCOPES_MAX: Final = 1 << 14
# A part of the cache key that distinguishes pods with equal specs. It contains the values of the
# pod's matchLabelKeys labels, or the key of its default selector.
Variant = tuple[str | None, ...] | bytes
EVENTS: Final = frozenset(
    {
        EventKind.ASSIGNED_POD_ADD,
        EventKind.ASSIGNED_POD_LABEL,
        EventKind.ASSIGNED_POD_DELETE,
        EventKind.POD_LABEL,
        EventKind.POD_TOLERATION,
        EventKind.NODE_ADD,
        EventKind.NODE_DELETE,
        EventKind.NODE_LABEL,
        EventKind.NODE_TAINT,
    }
)


class _Scope(Struct, frozen=True):
    """The parts of a pod spec (`Shape`) that determine which counts its pods use.

    `key` encodes the constraints, nodeSelector, node affinity and tolerations. `actions` are the
    whenUnsatisfiable values of the constraints. `match_label_keys` are the matchLabelKeys of all
    constraints.
    """

    key: bytes
    actions: frozenset[str]
    match_label_keys: tuple[str, ...]


class PodTopologySpread:
    """Spreads pods over topology domains (PreFilter, Filter, PreScore, Score)."""

    name = NAME
    locality = Locality.CLUSTER
    events = EVENTS
    wakes_alike = True

    def __init__(self, handle: Handle, args: PodTopologySpreadArgs = _NO_ARGS) -> None:
        self._table = handle.cluster.table
        self._defaults = {
            action: tuple(c for c in args.constraints if c.when_unsatisfiable == action)
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        self._is_system_default = args.defaulting_type == SYSTEM
        self._selectors = DefaultSelectors(handle.cluster.related)
        self._scopes: dict[int, _Scope] = {}
        self._cache: CountsCache[tuple[bytes, str, str, Variant], SpreadCounts] = CountsCache(
            self._table
        )

    # --- constraints -----------------------------------------------------------------------

    @property
    def enforced_default_keys(self) -> tuple[str, ...]:
        """The topology keys of the default constraints with whenUnsatisfiable DoNotSchedule."""
        return tuple(one.topology_key for one in self._defaults[DO_NOT_SCHEDULE])

    def _counts(self, pod: PodInfo, action: str) -> SpreadCounts | None:
        """Return refreshed counts for the pod's constraints with whenUnsatisfiable `action`.

        Returns None if the pod has no such constraints.
        """
        default = None
        if pod.shape.spec.topology_spread_constraints:
            scope = self._scope(pod.shape)
            if action not in scope.actions:
                return None
            variant: Variant = tuple([pod.labels.get(key) for key in scope.match_label_keys])
        else:
            default = self._selectors.of(pod) if self._defaults[action] else None
            if default is None:
                return None
            scope, variant = self._scope(pod.shape), default.key
        key = (scope.key, pod.namespace, action, variant)
        found = self._cache.get(key) or self._cache.put(key, self._start(pod, action, default))
        return found.refresh()

    def _scope(self, shape: Shape) -> _Scope:
        found = self._scopes.get(shape.id)
        if found is None:
            # Shapes are dropped and created again, so the cache could grow without limit.
            if len(self._scopes) >= _SCOPES_MAX:
                self._scopes.clear()
            spec = shape.spec
            nodes = spec.affinity.node_affinity if spec.affinity is not None else None
            own = spec.topology_spread_constraints
            found = self._scopes[shape.id] = _Scope(
                _ENCODER.encode((own, spec.node_selector, nodes, spec.tolerations)),
                frozenset([one.when_unsatisfiable for one in own]),
                tuple([key for one in own for key in one.match_label_keys]),
            )
        return found

    def _start(self, pod: PodInfo, action: str, default: DefaultSelector | None) -> SpreadCounts:
        return SpreadCounts(
            self._table,
            pod,
            self._constraints(pod, action, default),
            requires_all_keys=default is None or not self._is_system_default,
            node_key=HOSTNAME if action == SCHEDULE_ANYWAY else "",
        )

    def _constraints(
        self, pod: PodInfo, action: str, default: DefaultSelector | None
    ) -> tuple[Constraint, ...]:
        if default is None:
            own = pod.shape.spec.topology_spread_constraints
            return own_constraints(own, action, pod.labels)
        return tuple(compile_constraint(c, default.selector) for c in self._defaults[action])

    # --- Filter ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod has no hard constraints."""
        live = self._counts(pod, DO_NOT_SCHEDULE)
        if live is None:
            return SKIP
        state.write(spread_state(live, pod.namespace, pod.labels))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `added` were on `node`."""
        pods = self._table.pod_index.pod_class_of(added)
        state.read(SpreadState).move(pods, node.row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `removed` were no longer on `node`."""
        pods = self._table.pod_index.pod_class_of(removed)
        state.read(SpreadState).move(pods, node.row, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return the rejection by the first constraint that the pod would violate on the node."""
        code = state.read(SpreadState).code(node.row)
        return STATUSES[code] if code else None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        return Verdicts(state.read(SpreadState).codes(rows), STATUSES)

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return how the removal of pods can change the verdicts.

        If no constraint selects a removed pod, the removal does not change the verdict on the pod's
        node. If a constraint selects the pod, the removal can change this verdict from rejection to
        acceptance, but not the other way round. The reason is that maxSkew limits the difference
        between the count of the node's domain and the lowest count. The removal lowers the first of
        these counts, and it lowers the lowest count by at most the same amount. So the difference
        never grows.
        """
        found, index = state.read(SpreadState), self._table.pod_index
        locations = [pods.where for pods in found.concerned(index)]
        return RemovalEffect(lambda pod: found.concerns(index.pod_class_of(pod)), locations)

    # --- queueing hint ---------------------------------------------------------------------

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return True if `event` may make the pod schedulable."""
        live = self._counts(pod, DO_NOT_SCHEDULE)
        constraints = [one.constraint for one in live.constraints] if live is not None else []
        return is_schedulable_after(pod, constraints, event)

    # --- Score -----------------------------------------------------------------------------

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return whether `pod` has no soft constraints, so that all nodes score alike."""
        if pod.shape.spec.topology_spread_constraints:
            return SCHEDULE_ANYWAY not in self._scope(pod.shape).actions
        return not self._defaults[SCHEDULE_ANYWAY] or self._selectors.of(pod) is None

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP if the pod has no soft constraints."""
        live = self._counts(pod, SCHEDULE_ANYWAY)
        if live is None:
            return SKIP
        state.write(SpreadScoreState(live, rows))
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the raw score; before normalisation, lower is better."""
        return state.read(SpreadScoreState).score(node.row)

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        return state.read(SpreadScoreState).scores(rows)

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Return scores from 0 to 100; the lowest raw score becomes the highest score."""
        return state.read(SpreadScoreState).normalize(scores)


def is_schedulable_after(
    pod: PodInfo, constraints: Sequence[Constraint], event: ClusterEvent
) -> bool:
    """Return True if `event`, one of EVENTS, may change the verdict for `pod`."""
    match event:
        case ClusterEvent(kind=EventKind.POD_TOLERATION):
            return any(one.honors_taints for one in constraints)
        case ClusterEvent(old=PodInfo() as old, new=PodInfo() as new):
            flips = _selecting(constraints, old) != _selecting(constraints, new)
            return new.namespace == pod.namespace and flips
        case ClusterEvent(old=PodInfo() as moved) | ClusterEvent(new=PodInfo() as moved):
            return moved.namespace == pod.namespace and any(_selecting(constraints, moved))
        case ClusterEvent(old=Node() as before, new=Node() as after):
            return _changes_counting(constraints, before, after)
        case ClusterEvent(old=Node() as node) | ClusterEvent(new=Node() as node):
            return _has_all_keys(constraints, node)
        case _:
            return True


def _selecting(constraints: Sequence[Constraint], pod: PodInfo) -> list[bool]:
    """Return, for each of `constraints`, whether its selector matches the labels of `pod`.

    Whether `pod` is terminating does not matter.
    """
    return [selector_matches(one.selector, pod.labels) for one in constraints]


def _has_all_keys(constraints: Sequence[Constraint], node: Node) -> bool:
    return all(one.topology_key in node.metadata.labels for one in constraints)


def _changes_counting(constraints: Sequence[Constraint], before: Node, after: Node) -> bool:
    """Return whether the change of a node from `before` to `after` may change a verdict.

    A verdict may change if only one of `before` and `after` has the topology keys of all
    constraints. If both have all these keys, a verdict may change if the taints or the value of one
    of the keys have changed.
    """
    if _has_all_keys(constraints, before) != _has_all_keys(constraints, after):
        return True
    old, new = before.metadata.labels, after.metadata.labels
    moved = any(old.get(one.topology_key) != new.get(one.topology_key) for one in constraints)
    retainted = before.spec.taints != after.spec.taints
    return _has_all_keys(constraints, after) and (moved or retainted)
