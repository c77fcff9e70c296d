"""PlanMatrix: updates the plans of many shapes in one pass when the pods of a node change.

A shape is the part of a pod's spec that scheduling reads. A row is the index of a node. The plan of
a shape caches the results of plugins for each row. ROW plugins read only the node and its pods.

A placement makes the results for one row stale in the plan of every shape. The members of a matrix
are plans with the same ROW plugins. Each plugin evaluates the row for all members in one call
(`filter_shapes`, `score_shapes`). This takes about 20 µs for up to a hundred members. Evaluating
them one by one takes 5 µs for each member.

    total[m, row]   the total of member m for the node at `row`; total[m] is the member's `total`
    static          the static scores of the members (`StaticScores`)
    is_refused[row] whether any member may have NOT_FEASIBLE as its static score or its total

Invariants: The pod log of the table lists the rows whose pods changed. Every member includes the
changes up to the log position `position`. `static` has the scores of every member's StaticResults.
Entry m of `shapes` is the shape of `plans[m]`. Each member applies changes of Node objects in its
own `refresh`.

Example: a pod is bound to row 7, and there are 64 members. `refresh` evaluates the node at row 7
for the 64 shapes and writes total[:, 7]. Three of the shapes no longer fit, and their plans mark
row 7 as rejected. A plan finds the reasons when it is next used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from fairlead.engine.framework.interface import Mask, Scores
from fairlead.engine.framework.plan.static_results import StaticResults
from fairlead.engine.framework.plan.static_scores import NOT_FEASIBLE, StaticScores
from fairlead.engine.framework.plan.sums_cache import SumsCache, read_only_sums
from fairlead.engine.framework.points import FilterPoint, ScorePoint
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.shape import Shape
from fairlead.engine.state.shape_columns import ShapeColumns

Codes = npt.NDArray[np.int32]
# The result of evaluating one node for all members. It consists of the weighted sum of the scores
# for each member, and a mask of the members whose shape fits the node. The mask is None if all
# shapes fit.
_Evaluated = tuple[Scores, Mask | None]

# With fewer members than this, evaluating them one by one is as fast.
_MEMBERS_FEW: Final = 4
_MEMBERS_MAX: Final = 512
_ENTRIES_MAX: Final = 5_000_000  # members × nodes, 8 bytes each
_SUMS_ENTRIES_MAX: Final = 500_000  # members × different sums of nodes, 8 bytes each
# A member leaves when this many changes have passed without a pod of its shape.
_UNUSED_MAX: Final = 4_096
_SWEEP_EVERY: Final = 1_024


class MatrixMember(Protocol):
    """Protocol for the plans in a PlanMatrix, implemented by `ShapePlan`.

    `static` has the results of the plugins that read only the Node object (`Locality.NODE`).
    """

    shape: Shape
    matrix: PlanMatrix | None
    total: Scores
    codes: Codes
    static: StaticResults

    def detach(self, position: int) -> None:
        """Record that this plan is no longer in the matrix.

        `codes` and `total` include the changes in the pod log up to `position`. The matrix does not
        update them any more, so the plan must apply later changes itself.
        """
        ...

    def redo_row(self, row: int) -> None:
        """Recompute `row` after the pods on its node changed."""
        ...

    def open_row(self, row: int) -> None:
        """Set the code of `row` to feasible. The PlanMatrix that calls this writes `total[row]`."""
        ...

    def reject_row(self, row: int) -> None:
        """Mark `row` as rejected by a ROW plugin.

        The method does not change `total[row]`: the PlanMatrix that calls the method does this.
        """
        ...


class PlanMatrix:
    """The total scores of all nodes in each of `plans`, as an array total[plan, node].

    All plans have the same ROW plugins: `filters` and `scorers`.
    """

    def __init__(
        self, table: NodeTable, filters: Sequence[FilterPoint], scorers: Sequence[ScorePoint]
    ) -> None:
        """Start without plans; every plugin must be able to evaluate many shapes in one call."""
        self._table = table
        self._filters = [point.shapes for point in filters if point.shapes is not None]
        self._scorers = [
            (point.weight, point.shapes) for point in scorers if point.shapes is not None
        ]
        self._reads_only_sums = read_only_sums(*filters, *scorers)
        self.position = table.pod_log.position
        self._changes = 0
        self._swept_at = 0
        self._start(table.size)

    def _start(self, width: int) -> None:
        self.plans: list[MatrixMember] = []
        self._index: dict[int, int] = {}
        self._used: list[int] = []
        self._shapes = ShapeColumns(self._table.resources)
        self._width = width
        self._static = StaticScores(width)
        self._total: Scores = np.empty((0, width), np.int64)
        self._is_refused: Mask = np.zeros(width, np.bool_)
        self._by_sums: SumsCache[_Evaluated] | None = None
        self._forget_sums()

    def _forget_sums(self) -> None:
        if self._reads_only_sums:
            size_max = _SUMS_ENTRIES_MAX // (len(self.plans) + 1)
            self._by_sums = SumsCache(self._table, size_max)

    # --- members ---------------------------------------------------------------------------

    def add(self, plan: MatrixMember) -> None:
        """Add `plan`, which must be up to date.

        Does nothing if the matrix is full, or if `plan` has results only for some of the nodes.
        """
        self.refresh()
        if not self.plans:
            self._start(self._table.size)
            self.position = self._table.pod_log.position
        at = len(self.plans)
        room = min(_MEMBERS_MAX, _ENTRIES_MAX // max(self._width, 1))
        if at >= room or len(plan.codes) != self._width:
            return
        if not at:
            self._total = np.empty((room, self._width), np.int64)  # unused rows take no memory
        self.plans.append(plan)
        self._index[id(plan)] = at
        self._used.append(self._changes)
        self._shapes.add(plan.shape)
        self._static.append(plan.static)
        self._total[at] = plan.total
        plan.matrix = self
        plan.total = self._total[at]
        self._note_refused(plan, at)
        self._forget_sums()

    def _note_refused(self, plan: MatrixMember, at: int) -> None:
        self._is_refused |= self._static.rejected(at)
        self._is_refused |= plan.codes != 0

    def remove(self, plan: MatrixMember) -> None:
        """Remove `plan`. From now on, the plan itself applies changes of pods to its results.

        The results already include the changes in `NodeTable.pod_log` up to `self.position`.
        """
        at = self._index.pop(id(plan))
        plan.detach(self.position)
        last = len(self.plans) - 1
        if at != last:
            moved = self.plans[at] = self.plans[last]
            self._index[id(moved)] = at
            self._used[at] = self._used[last]
            self._total[at] = self._total[last]
            moved.total = self._total[at]
        self._static.remove(at)
        self.plans.pop()
        self._used.pop()
        self._shapes.remove(at)
        self._forget_sums()

    def rebase(self, plan: MatrixMember) -> None:
        """Copy the changed static results of the member `plan` into the matrix."""
        at = self._index[id(plan)]
        self._static.update(at)
        self._note_refused(plan, at)

    def use(self, plan: MatrixMember) -> None:
        """Record that `plan` was used, because a pod of its shape is being scheduled."""
        self._used[self._index[id(plan)]] = self._changes

    def _dissolve(self) -> None:
        for plan in self.plans:
            plan.detach(self.position)
        self._start(self._table.size)

    # --- changes ---------------------------------------------------------------------------

    def refresh(self) -> None:
        """Update the results of all plans in the matrix for the nodes whose pods have changed.

        If the pods of too many nodes changed, or if there are new nodes, all plans leave the matrix
        instead.
        """
        log = self._table.pod_log
        if log.position == self.position:
            return
        rows = log.since(self.position)
        changed = dict.fromkeys(rows or ())
        too_many = len(changed) > _MEMBERS_FEW + 4 * len(self.plans)
        if rows is None or too_many or self._table.size != self._width:
            self._dissolve()
            self.position = log.position
            return
        for row in changed:
            self._redo(row)
        self.position = log.position
        self._changes += len(changed)
        if self._changes - self._swept_at > _SWEEP_EVERY:
            self._swept_at = self._changes
            self._sweep()

    def _sweep(self) -> None:
        oldest = self._changes - _UNUSED_MAX
        for plan in [p for p, used in zip(self.plans, self._used, strict=True) if used < oldest]:
            self.remove(plan)

    def _redo(self, row: int) -> None:
        if not self._table.alive[row]:
            return  # the node log also names this row
        if len(self.plans) < _MEMBERS_FEW or not self._redo_shapes(row):
            self._is_refused[row] = True  # a member may reject the node
            for plan in self.plans:
                plan.redo_row(row)

    def _redo_shapes(self, row: int) -> bool:
        """Evaluate the node at `row` for all `plans`; return False if a plugin cannot do that."""
        by_sums = self._by_sums
        known = by_sums.find(self._table.at(row)) if by_sums is not None else None
        if known is None:
            known = self._evaluate(row)
            if known is None:
                return False
            if by_sums is not None:
                by_sums.keep(known)
        scores, fits = known
        static = self._static.at(row)
        totals = static + scores
        if fits is None and not self._is_refused[row]:
            self._total[: len(self.plans), row] = totals
        else:
            fits = np.ones(len(scores), np.bool_) if fits is None else fits
            self._write(row, totals, fits, static >= 0)
        return True

    def _evaluate(self, row: int) -> _Evaluated | None:
        """Return the results of the ROW plugins on the node at `row` for all plans in the matrix.

        Returns None if a plugin cannot score the shapes of all plans together.
        """
        sums: Scores = np.zeros(len(self.plans), np.int64)
        for weight, score in self._scorers:
            scores = score(self._shapes, self._table, row)
            if scores is None:
                return None
            if weight != 1:
                scores *= weight
            sums = np.add(sums, scores, out=scores)
        fits: Mask | None = None  # for each plan, whether its shape fits; None if all fit
        for judge in self._filters:
            verdicts = judge(self._shapes, self._table, row)
            if verdicts is not None:
                fits = verdicts if fits is None else fits & verdicts
        return sums, fits

    def _write(self, row: int, totals: Scores, fits: Mask, is_open: Mask | np.bool_) -> None:
        """Write the totals of the node at `row` to all plans.

        Also mark the node in each plan as feasible or rejected. Callers may skip this method if no
        plan rejects the node now and no plan rejected it before. `fits` is False for the plans
        whose ROW plugins reject the node. `is_open` is False for the plans whose NODE plugins
        reject the node. If the NODE plugins have the same verdict for all plans, `is_open` may be
        one value instead of an array.
        """
        members = slice(len(self.plans))
        column = self._total[members, row]
        for at in (is_open & ~fits).nonzero()[0].tolist():
            self.plans[at].reject_row(row)
        fits = fits & is_open
        for at in (fits & (column < 0)).nonzero()[0].tolist():
            self.plans[at].open_row(row)
        column[:] = np.where(fits, totals, NOT_FEASIBLE)
        self._is_refused[row] = not fits.all()
