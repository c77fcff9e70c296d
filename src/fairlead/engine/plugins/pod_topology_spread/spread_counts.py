"""SpreadCounts: live counts of pods per domain for a set of constraints.

A node counts for a constraint if it passes the constraint's node inclusion policies. The node must
also have the topology keys of all constraints in the set. The system's default constraints do not
require these keys. The set of nodes that count is recomputed only when Node objects change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Rows
from fairlead.engine.plugins.node_affinity import NodeAffinity
from fairlead.engine.plugins.pod_topology_spread.constraint import Constraint
from fairlead.engine.plugins.taint_toleration import TaintToleration
from fairlead.engine.state.label_column import ABSENT, Domains, Ids
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.domain_counts import DomainCounts
from fairlead.engine.state.pod_index.pod_index import PodIndex
from fairlead.engine.state.pod_index.pod_selector import PodSelector
from fairlead.engine.state.pod_info import PodInfo

Mask = npt.NDArray[np.bool_]


class ConstraintCounts:
    """One constraint and its pod counts by domain; valid after `SpreadCounts.refresh`.

    The arrays `labels`, `ids` and `included` hold a domain, or ABSENT, for the node at each row of
    the node table. `present` lists the domains that occur in `included`, in ascending order.

    - `labels`: the domain that the node's label names; ABSENT if the node lacks the label.
    - `ids`: the same as `labels`. But if `requires_all_keys` of `SpreadCounts` is False, nodes
      without the label are in the domain of the label value "".
    - `included`: the same as `ids` for nodes that count; ABSENT for all other nodes.

    If the topology key is the `node_key` of `SpreadCounts`, the domain of each row is the number of
    the row. `ids` and `included` then hold a domain for every row, even if its node does not count.
    """

    __slots__ = (
        "_labels",
        "_number",
        "constraint",
        "counts",
        "ids",
        "included",
        "labels",
        "present",
    )

    def __init__(self, constraint: Constraint, counts: DomainCounts) -> None:
        """Start with empty arrays; `set_domains` fills them with the domains of the nodes."""
        self.constraint = constraint
        self.counts = counts
        nothing: Ids = np.zeros(0, np.int64)
        self.labels = self.ids = self.included = self.present = nothing
        self._labels: tuple[Rows, Ids, bool] | None = None
        self._number: tuple[Rows, int] | None = None

    def set_domains(self, labels: Ids, ids: Ids, included: Ids, size: int) -> Domains:
        """Store the arrays `labels`, `ids` and `included`, which the class docstring describes.

        `size` is the number of domains. Returns `Domains(included, size)`: the domains for which
        the field `counts` counts pods.
        """
        self.labels, self.ids, self.included = labels, ids, included
        self._labels = self._number = None
        self.present = np.flatnonzero(np.bincount(included[included >= 0], minlength=size))
        return Domains(included, size)

    def labels_of(self, rows: Rows) -> tuple[Ids, bool]:
        """Return the domains of the nodes at `rows`, and whether any of the nodes has no domain.

        The result is cached if `rows` is a read-only array.
        """
        if self._labels is not None and self._labels[0] is rows:
            return self._labels[1:]
        labels = self.labels.take(rows)
        lacks = bool(np.minimum.reduce(labels, initial=0) < 0)
        if not rows.flags.writeable:
            self._labels = rows, labels, lacks
        return labels, lacks

    def number_of_domains(self, rows: Rows) -> int:
        """Return how many distinct domains `ids` holds for the nodes at `rows`.

        The result is cached if `rows` is a read-only array.
        """
        if self._number is not None and self._number[0] is rows:
            return self._number[1]
        number = int(np.count_nonzero(np.bincount(self.ids.take(rows))))
        if not rows.flags.writeable:
            self._number = rows, number
        return number


class SpreadCounts:
    """The counts for a set of constraints that have the same whenUnsatisfiable.

    Incoming pods share an instance if their namespace, constraints and eligible nodes are the same.
    """

    def __init__(
        self,
        table: NodeTable,
        pod: PodInfo,
        constraints: Sequence[Constraint],
        *,
        requires_all_keys: bool,
        node_key: str = "",
    ) -> None:
        """Set up the counts of the pods that `constraints` select in the namespace of `pod`.

        The node affinity and tolerations of `pod` determine which nodes count. If
        `requires_all_keys` is set, a node counts only if it has the topology keys of all
        `constraints`. If the topology key of a constraint is `node_key`, each node is a separate
        domain.
        """
        self._table = table
        self._pod = pod
        self.requires_all_keys = requires_all_keys
        self._node_key = node_key
        self.keys = tuple(dict.fromkeys(one.topology_key for one in constraints))
        self.constraints = [self._start(index, one) for index, one in enumerate(constraints)]

    def _start(self, index: int, constraint: Constraint) -> ConstraintCounts:
        pod_index = self._table.pod_index
        # Taints determine which nodes count only if nodeTaintsPolicy is Honor.
        epoch = pod_index.nodes if constraint.honors_taints else pod_index.labels
        counts = DomainCounts(epoch, partial(self._domains, index))
        if constraint.counts_existing:
            demand = (frozenset((self._pod.namespace,)), constraint.selector)
            pod_index.watch(PodSelector((demand,), counts_terminating=False), counts, 1)
        return ConstraintCounts(constraint, counts)

    def refresh(self) -> SpreadCounts:
        """Bring all counts up to date; return self."""
        for one in self.constraints:
            one.counts.refresh()
        return self

    def drop(self, pod_index: PodIndex) -> None:
        """Unregister the counts from `pod_index`, which then no longer updates them."""
        for one in self.constraints:
            pod_index.unwatch(one.counts)

    # --- node inclusion --------------------------------------------------------------------

    def _domains(self, index: int) -> Domains:
        one = self.constraints[index]
        key = one.constraint.topology_key
        column = self._table.label_column(key)
        if key == self._node_key:
            rows = np.arange(self._table.capacity)
            labels: Ids = np.where(column.ids == ABSENT, ABSENT, rows)
            return one.set_domains(labels, rows, rows, len(rows))
        ids = column.ids
        if not self.requires_all_keys:
            # Nodes without the key are in the domain "", together with nodes whose value is "".
            ids = np.where(ids == ABSENT, column.id_of(""), ids)
        included: Ids = np.where(self._inclusion(one.constraint), ids, ABSENT)
        return one.set_domains(column.ids, ids, included, len(column.values))

    def _inclusion(self, constraint: Constraint) -> Mask:
        """Return, for the node at each row, whether it counts for `constraint`.

        upstream: common.go: matchNodeInclusionPolicies
        """
        table, pod = self._table, self._pod
        rows = np.flatnonzero(table.alive)
        fits = np.ones(len(rows), np.bool_)
        if self.requires_all_keys:
            for key in self.keys:
                # Stops early if the pod has thousands of keys that no node has.
                if not fits.any():
                    break
                fits &= table.label_column(key).ids[rows] != ABSENT
        state = CycleState()
        if constraint.honors_affinity:
            fits &= NodeAffinity().filter_columns(state, pod, table, rows).codes == 0
        if constraint.honors_taints:
            fits &= TaintToleration().filter_columns(state, pod, table, rows).codes == 0
        included = np.zeros(table.capacity, np.bool_)
        included[rows[fits]] = True
        return included
