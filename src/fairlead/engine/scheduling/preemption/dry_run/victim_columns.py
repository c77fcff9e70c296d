"""VictimColumns: the costs of preemption on many nodes together, if only resources matter.

The pods of a node are stored in slots, sorted by importance. The remaining slots are empty. The
index `row` stands for the node:

    priority[slot, row]   of the pod; NO_POD if the slot is empty
    kind[slot, row]       index of the pod's spec (`Shape`) in `_kinds`; any index if the slot is
                          empty
    start[slot, row]      of the pod; undefined if the slot is empty

A dry run reads the slots of all nodes that must be evaluated. First it adds up the requests of the
pods of lower priority, to find the nodes that the preemptor fits without these pods. Then it
reprieves pods slot by slot, on all nodes together, beginning with the most important pods. Only
costs are computed here. The victims are determined later, for the chosen node only.

Example: the preemptor needs 3 cores, and all pods have lower priority. Node 0 has 4 cores and pods
of 1, 1 and 2 cores in descending importance. Node 1 has 4 cores and pods of 2 and 2 cores. Without
these pods, each node would have 1 core left beside the preemptor. Slot 0: the pod of 1 core stays
on node 0, which has 0 cores left. The pod of 2 cores on node 1 is a victim. Slot 1: the pods on
both nodes are victims. Slot 2: the pod of 2 cores on node 0 is a victim.

Invariant after `refresh`: the columns contain exactly the pods that are on the nodes. `refresh`
rewrites the rows that the change logs of the node table name. Pods that were loaded in bulk
(`LoadedPods`) are not read node by node. Each group of replicas is read as a whole, and the pods of
all groups are sorted together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.status import Status
from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.interface import Mask, Rows
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.preemption.policy import RULES, PreemptionPolicy
from fairlead.engine.state.disruption_budgets import DisruptionBudgets
from fairlead.engine.state.loaded_pods import LoadedGroup, PlacedPod
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import NEVER_STARTED, PodInfo
from fairlead.engine.state.shape import Shape

Ints = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int32]
Number = TypeVar("Number", np.int64, np.int32)
NO_POD: Final = 1 << 62  # higher than every priority
_ENTRIES_MAX: Final = 8_000_000  # slots × rows, 20 bytes each
_KINDS_SPARE: Final = 1024
_NODES_PER_BLOCK: Final = 50
_LOWEST: Final = -(1 << 62)
# the offset that `Candidate.priority_sum` adds for each victim
_PER_VICTIM: Final = 1 << 31


class VictimCosts(Struct, frozen=True):
    """The results of dry runs on some nodes.

    `is_candidate` and `codes` have one entry per node. `costs[i]` are the costs of the nodes under
    the i-th of `PreemptionPolicy.rules`. The costs are valid only for candidates. If the code of a
    node is not 0, the preemptor would not fit even without the pods of lower priority, and
    `statuses[code]` is the reason. If the code is 0 and the node is no candidate, the node must be
    evaluated separately.
    """

    is_candidate: Mask
    costs: Ints
    codes: npt.NDArray[np.int64]
    statuses: Sequence[Status]


class VictimColumns:
    """The pods of all nodes as columns; see the module's docstring."""

    def __init__(self, table: NodeTable) -> None:
        """Start without columns; `refresh` reads `table`."""
        self._table = table
        self._nodes = self._pods = 0
        self._kinds_written = 0
        self._allocate(0, 0)

    def _allocate(self, slots: int, capacity: int) -> None:
        self._priority: Ints = np.full((slots, capacity), NO_POD, np.int64)
        self._start: Ints = np.zeros((slots, capacity), np.int64)
        self._kind: Kinds = np.zeros((slots, capacity), np.int32)
        self._kinds: list[Shape] = []
        self._kind_of: dict[Shape, int] = {}

    # --- the columns -----------------------------------------------------------------------

    def refresh(self) -> bool:
        """Update the columns; return False if they would take too much memory."""
        table = self._table
        nodes, pods = table.node_log.since(self._nodes), table.pod_log.since(self._pods)
        is_new = nodes is None or pods is None or self._priority.shape[1] != table.capacity
        # Writing all columns again drops the shapes of pods that are gone.
        is_new |= len(self._kinds) > 2 * self._kinds_written + _KINDS_SPARE
        changed = range(table.size) if is_new else {*(nodes or ()), *(pods or ())}
        rows = np.array(sorted(changed), np.int64)
        alive = rows[table.alive[rows]]
        slots = int(table.pod_count[alive].max(initial=0))
        if slots * table.capacity > _ENTRIES_MAX:
            self._allocate(0, 0)  # frees the memory
            return False
        if is_new:
            self._allocate(slots, table.capacity)
            alive = self._fill_loaded(alive)
        else:
            if slots > len(self._priority):
                self._widen(slots)
            self._priority[:, rows] = NO_POD
        self._fill(alive)
        if is_new:
            self._kinds_written = len(self._kinds)
        self._nodes, self._pods = table.node_log.position, table.pod_log.position
        return True

    def lowest_priorities(self) -> Ints:
        """Return the lowest priority of the pods on the node at each row; NO_POD if it has no pods.

        Call `refresh` first.
        """
        lowest: Ints = self._priority.min(axis=0, initial=NO_POD)
        return lowest

    def _widen(self, slots: int) -> None:
        more = (0, slots - len(self._priority)), (0, 0)
        self._priority = np.pad(self._priority, more, constant_values=NO_POD)
        self._start, self._kind = np.pad(self._start, more), np.pad(self._kind, more)

    def _fill(self, rows: Rows) -> None:
        """Write the pods on the nodes at `rows` into the columns. These rows must be empty."""
        nodes = [self._table.at(row) for row in rows.tolist()]
        counts = np.array([len(node.pods) for node in nodes], np.int64)
        slots = int(counts.max(initial=0))
        if not slots:
            return
        is_pod: Mask = np.arange(slots) < counts[:, np.newaxis]
        priorities, starts, kinds = self._facts(nodes)
        priority, start = _by_node(priorities, is_pod), _by_node(starts, is_pod)
        priority[~is_pod] = -NO_POD  # sorted behind the pods
        order = _by_importance(priority, start)
        priority = np.take_along_axis(priority, order, axis=1)
        priority[~is_pod] = NO_POD
        start = np.take_along_axis(start, order, axis=1)
        kind = np.take_along_axis(_by_node(kinds, is_pod), order, axis=1)
        self._priority[:slots, rows] = priority.T
        self._start[:slots, rows] = start.T
        self._kind[:slots, rows] = kind.T
        ties = (priority[:, 1:] == priority[:, :-1]) & (start[:, 1:] == start[:, :-1])
        ties &= kind[:, 1:] != kind[:, :-1]
        self._order_by_name(rows[ties.any(axis=1)])

    def _order_by_name(self, rows: Rows) -> None:
        """Sort the pods on each node at `rows` by the key `importance`.

        This key also compares the names of pods.
        """
        for row in rows.tolist():
            facts = self._table.representatives.facts_of(self._table.at(row).stored_pods)
            by_name = sorted(facts, key=importance)
            self._kind[: len(by_name), row] = self._numbers([pod.shape for pod in by_name])

    def _fill_loaded(self, rows: Rows) -> Rows:
        """Fill the columns for those `rows` whose nodes have not changed since the bulk load.

        Returns the other rows. The bulk load is the call that loaded many pods together
        (`LoadedPods`).
        """
        loaded, capacity = self._table.loaded, self._table.capacity
        changed = loaded.changed_rows()
        if changed is None or not loaded.groups:
            return rows
        is_known = np.zeros(capacity, np.bool_)
        is_known[rows] = True
        is_known[list(changed)] = False
        row, priority, start, kind = self._group_facts(loaded.groups)

        def by_row(order: Ints) -> Ints:
            """Sort the pods in `order` by row, then by importance; ties keep their order."""
            order = order[np.lexsort((start[order], -priority[order]))]
            rows = row[order].astype(np.min_scalar_type(capacity))  # small integers sort fastest
            return order[np.argsort(rows, kind="stable")]

        order = by_row(np.arange(len(row)))
        one, other = order[:-1], order[1:]
        ties = (row[one] == row[other]) & (priority[one] == priority[other])
        ties &= (start[one] == start[other]) & (kind[one] != kind[other])
        if ties.any():  # else the names make no difference to the columns
            keys = [key for group in loaded.groups for key in group.replicas.keys]
            by_name = sorted(range(len(keys)), key=keys.__getitem__)
            order = by_row(np.array(by_name, np.int64))
        order = order[is_known[row[order]]]
        row = row[order]
        counts = np.bincount(row, minlength=capacity)
        slot = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        self._priority[slot, row] = priority[order]
        self._start[slot, row] = start[order]
        self._kind[slot, row] = kind[order]
        return rows[~is_known[rows]]

    def _group_facts(self, groups: Sequence[LoadedGroup]) -> tuple[Rows, Ints, Ints, Kinds]:
        """Return (rows, priorities, starts, kinds) of the pods of `groups`, group by group."""
        sizes = [len(group.rows) for group in groups]
        pods = [group.replica for group in groups]
        starts = np.array([pod.start for pod in pods], np.int64).repeat(sizes)
        last = 0
        for group, size in zip(groups, sizes, strict=True):
            first, last = last, last + size
            if group.replica.start != NEVER_STARTED:  # else none of these pods has started
                starts[first:last] = list(map(parse_timestamp, group.replicas.start_times))
        return (
            np.concatenate([group.rows for group in groups]),
            np.array([pod.priority for pod in pods], np.int64).repeat(sizes),
            starts,
            np.array(self._numbers([pod.shape for pod in pods]), np.int32).repeat(sizes),
        )

    def _facts(self, nodes: Sequence[NodeInfo]) -> tuple[Ints, Ints, Kinds]:
        """Return (priorities, starts, kinds) of the pods on `nodes`, one node after the other.

        A kind is the index of the pod's spec (`Shape`) in `_kinds`. The nodes are read in blocks
        whose pods fit into the processor's cache, which halves the time.
        """
        priorities, starts, kinds = [], [], []
        for first in range(0, len(nodes), _NODES_PER_BLOCK):
            pods: list[PlacedPod] = []
            for node in nodes[first : first + _NODES_PER_BLOCK]:
                pods.extend(self._table.representatives.facts_of(node.stored_pods))
            priorities.append(np.array([pod.priority for pod in pods], np.int64))
            starts.append(np.array([pod.start for pod in pods], np.int64))
            kinds.append(np.array(self._numbers([pod.shape for pod in pods]), np.int32))
        return np.concatenate(priorities), np.concatenate(starts), np.concatenate(kinds)

    def _numbers(self, shapes: Sequence[Shape]) -> list[int]:
        numbers = self._kind_of
        try:
            return [numbers[shape] for shape in shapes]
        except KeyError:
            for shape in shapes:
                if shape not in numbers:
                    numbers[shape] = len(self._kinds)
                    self._kinds.append(shape)
        return [numbers[shape] for shape in shapes]

    # --- dry runs --------------------------------------------------------------------------

    def costs(
        self, fit: NodeResourcesFit, pod: PodInfo, rows: Rows, rules: Sequence[CandidateRule]
    ) -> VictimCosts | None:
        """Return the results of the dry runs for `pod` on the nodes at `rows`.

        Call `refresh` first. Every node at `rows` must have a pod of lower priority. For these
        nodes, NodeResourcesFit (`fit`) must be the only Filter that depends on pods. The nodes must
        have no nominated pods, and removing their pods must not violate a disruption budget (see
        `guarded_rows`). Returns None if `fit` must evaluate each node separately.
        """
        wanted = fit.counted_requests(pod)
        if wanted is None:
            return None
        table = self._table
        priority = self._priority[:, rows]
        is_lower = priority < pod.priority
        used = int(np.flatnonzero(is_lower.any(axis=1)).max(initial=-1)) + 1
        priority, is_lower = priority[:used], is_lower[:used]
        loads = self._loads([column for column, _ in wanted], self._kind[:used, rows])
        spare = [
            table.allocatable[column, rows] - table.requested[column, rows] - amount
            for column, amount in wanted
        ]
        for i, load in enumerate(loads):
            spare[i] += (load * is_lower).sum(axis=0)
        places = table.allowed_pods[rows] - table.pod_count[rows] + is_lower.sum(axis=0) - 1
        codes, statuses = fit.rejections_after(wanted, spare, places < 0, rows)
        lost = _lost(is_lower, loads, spare, places)
        costs = self._rated(rows, priority, lost)
        by_rule = np.array([costs[rule] for rule in rules])
        return VictimCosts((codes == 0) & lost.any(axis=0), by_rule, codes, statuses)

    def _loads(self, columns: Sequence[int], kind: Kinds) -> list[Ints]:
        """Return, for each resource in `columns`, an array of the requests of the pods.

        The array is indexed by [slot of the pod, row of the node].
        """
        wanted = tuple(columns)
        amounts = [one.amounts_of(wanted) for one in self._kinds]
        table = np.array(amounts, np.int64).reshape(len(amounts), len(wanted))
        return [table[:, i].take(kind) for i in range(len(wanted))]

    def _rated(self, rows: Rows, priority: Ints, lost: Mask) -> Mapping[CandidateRule, Ints]:
        """Return the costs of the nodes at `rows` under each rule; `lost` marks the victims."""
        highest: Ints = np.where(lost, priority, _LOWEST).max(axis=0, initial=_LOWEST)
        number: Ints = lost.sum(axis=0)
        total: Ints = np.where(lost, priority, 0).sum(axis=0) + number * _PER_VICTIM
        of_highest = lost & (priority == highest)
        starts: Ints = np.where(of_highest, self._start[: len(lost), rows], NO_POD)
        earliest: Ints = starts.min(axis=0, initial=NO_POD)
        by_rule = (np.zeros(len(rows), np.int64), highest, total, number, -earliest)
        return dict(zip(RULES, by_rule, strict=True))


def _by_node(facts: npt.NDArray[Number], is_pod: Mask) -> npt.NDArray[Number]:
    """Return `facts` of all pods as a [node, slot] array, which is 0 where `is_pod` is False."""
    found = np.zeros(is_pod.shape, facts.dtype)
    found[is_pod] = facts
    return found


def _by_importance(priority: Ints, start: Ints) -> Ints:
    """Return, for each node, the indexes of its pods, the most important pod first."""
    by_start: Ints = np.argsort(start, axis=1, kind="stable")
    lowered = np.take_along_axis(-priority, by_start, axis=1)
    by_priority: Ints = np.argsort(lowered, axis=1, kind="stable")
    return np.take_along_axis(by_start, by_priority, axis=1)


def _lost(is_lower: Mask, loads: Sequence[Ints], spare: list[Ints], places: Ints) -> Mask:
    """Return which pods must be victims, as an array [slot of the pod, row of the node].

    The pods of lower priority that need not be victims are reprieved; the most important pods are
    tried first. `spare` and `places` describe the nodes after all pods of lower priority are
    removed and the preemptor is placed. `spare` are the free resources. `places` are the numbers of
    pods that the nodes still accept. `spare` and `places` are overwritten.
    """
    lost = is_lower.copy()
    for slot in range(len(lost)):
        stays = is_lower[slot] & (places > 0)
        for free, load in zip(spare, loads, strict=True):
            stays &= load[slot] <= free
        places -= stays
        for i, load in enumerate(loads):
            spare[i] -= load[slot] * stays
        lost[slot] &= ~stays
    return lost


def can_rate(policy: PreemptionPolicy) -> bool:
    """Return whether `VictimColumns` can order victims and rate candidates as `policy` requires."""
    return (
        policy.order is importance
        and not policy.eligibility
        and all(rule in RULES for rule in policy.rules)
    )


def guarded_rows(table: NodeTable, budgets: DisruptionBudgets, rows: Rows) -> Mask:
    """Return, for the node at each of `rows`, whether removing its pods may violate a budget.

    A budget that selects n pods on the node cannot be violated if it allows at least n disruptions.
    """
    if not budgets:
        return np.zeros(len(rows), np.bool_)
    listed = {*rows.tolist()}
    selected: dict[tuple[str, int], int] = {}  # {(budget, row): the number of selected pods}
    guarded: set[int] = set()
    for pods in table.pod_index.classes():
        for budget in budgets.selecting_class(pods):
            key, allowed = budget.key, max(budget.status.disruptions_allowed, 0)
            present = pods.where.rows
            for row in present.keys() & listed:
                count = selected[key, row] = selected.get((key, row), 0) + present[row]
                if count > allowed:
                    guarded.add(row)
    return np.array([row in guarded for row in rows.tolist()], np.bool_)
