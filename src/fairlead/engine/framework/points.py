"""FilterPoint and ScorePoint: call a plugin for one node, or once for many nodes.

A plugin may implement only the method for one node, or only the method for many nodes. Its
FilterPoint or ScorePoint then derives the other method. A plugin may also implement a method that
evaluates one node for many shapes. A shape (`Shape`) stands for all pods with the same
scheduling-relevant spec. The method for many shapes is never derived. It is None if the plugin does
not implement it. The methods of a plugin are looked up once, because looking them up costs more
than calling them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, runtime_checkable

import numpy as np
from msgspec import Struct

from fairlead.engine.core.status import SUCCESS, Code, Status, error
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.fault import PluginFault, describe
from fairlead.engine.framework.interface import (
    SCORE_MAX,
    Locality,
    Mask,
    Normalization,
    Plugin,
    Rows,
    Scores,
    Verdicts,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape
from fairlead.engine.state.shape_columns import ShapeColumns

FilterOne = Callable[[CycleState, PodInfo, NodeInfo], Status | None]
FilterMany = Callable[[CycleState, PodInfo, NodeTable, Rows], Verdicts]
ScoreOne = Callable[[CycleState, PodInfo, NodeInfo], int]
ScoreMany = Callable[[CycleState, PodInfo, NodeTable, Rows], Scores]
FilterShapes = Callable[[ShapeColumns, NodeTable, int], Mask | None]
ScoreShapes = Callable[[ShapeColumns, NodeTable, int], Scores | None]


@runtime_checkable
class ShapeFilterPlugin(Plugin, Protocol):
    """A built-in Filter of Locality ROW that can also evaluate one node for many `Shape`s."""

    def filter_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> Mask | None:
        """Return, for each of `shapes`, whether it fits the node at `row`; None if all fit.

        The result must agree with `filter`.
        """
        ...


@runtime_checkable
class ShapeScorePlugin(Plugin, Protocol):
    """A built-in Score plugin that can also score one node for many `Shape`s at once.

    Its `locality` is `Locality.ROW`: the score of a node depends only on this node and the pod.
    """

    def score_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> Scores | None:
        """Return the node's score for each of `shapes`; None if `score` must be called instead."""
        ...


@runtime_checkable
class ShapeKeyed(Plugin, Protocol):
    """A built-in plugin of Locality NODE that names the part of a `Shape` that it reads."""

    def shape_key(self, shape: Shape) -> Hashable:
        """Return the part of `shape` that the plugin reads.

        If this part is equal for two shapes, the plugin's results are equal too.
        """
        ...


def locality_of(plugin: object) -> Locality:
    """Return the plugin's `locality`, CLUSTER if it has no such attribute."""
    found = getattr(plugin, "locality", Locality.CLUSTER)
    assert isinstance(found, Locality)
    return found


class FilterPoint(Struct, frozen=True, eq=False):
    """The Filter of one plugin, callable for one node (`one`) and over columns (`many`).

    `one` does not catch exceptions of the plugin. If `many` is derived from `one`, `many` catches
    the exceptions and returns an ERROR status for each node on which the plugin fails. Otherwise,
    `many` does not catch exceptions either.
    """

    name: str
    plugin: Plugin
    locality: Locality
    one: FilterOne
    many: FilterMany
    shapes: FilterShapes | None


class ScorePoint(Struct, frozen=True, eq=False):
    """The Score of one plugin, callable for one node (`one`) and over columns (`many`).

    `normalize` scales raw scores to 0..100. `normalization` names the built-in method that
    `normalize` uses. `normalization` is None if the plugin has its own method `normalize_scores`.
    """

    name: str
    plugin: Plugin
    locality: Locality
    weight: int
    normalization: Normalization | None
    one: ScoreOne
    many: ScoreMany
    shapes: ScoreShapes | None
    normalize: Callable[[CycleState, PodInfo, Scores], Scores]
    scores_alike: Callable[[PodInfo], bool]


def filter_point(plugin: Plugin, table: NodeTable) -> FilterPoint:
    """Return a FilterPoint for `plugin`, which must define `filter` or `filter_columns`."""
    many: FilterMany | None = getattr(plugin, "filter_columns", None)
    one: FilterOne | None = getattr(plugin, "filter", None)
    if one is None:
        assert many is not None
        one = _one_verdict(many, table)
    return FilterPoint(
        name=plugin.name,
        plugin=plugin,
        locality=locality_of(plugin),
        one=one,
        many=many or _many_verdicts(plugin, one),
        shapes=getattr(plugin, "filter_shapes", None),
    )


def score_point(plugin: Plugin, weight: int, table: NodeTable) -> ScorePoint:
    """Return a ScorePoint for `plugin`, which must define `score` or `score_columns`."""
    many: ScoreMany | None = getattr(plugin, "score_columns", None)
    one: ScoreOne | None = getattr(plugin, "score", None)
    if one is None:
        assert many is not None
        one = _one_score(many, table)
    own = getattr(plugin, "normalize_scores", None)
    kind = None if own is not None else getattr(plugin, "normalization", Normalization.NONE)
    alike = getattr(plugin, "scores_alike", None)
    return ScorePoint(
        name=plugin.name,
        plugin=plugin,
        locality=locality_of(plugin),
        weight=weight,
        normalization=kind,
        one=one,
        many=many or _many_scores(one),
        shapes=getattr(plugin, "score_shapes", None),
        normalize=own or _default_normalize(kind or Normalization.NONE),
        scores_alike=alike or _never_alike,
    )


def _never_alike(_pod: PodInfo) -> bool:
    return False


def _one_verdict(many: FilterMany, table: NodeTable) -> FilterOne:
    def one(state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        verdicts = many(state, pod, table, np.array([node.row]))
        code = int(verdicts.codes[0])
        return verdicts.statuses[code] if code else None

    return one


def _many_verdicts(plugin: Plugin, one: FilterOne) -> FilterMany:
    def many(state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdicts:
        statuses: list[Status] = [SUCCESS]
        index: dict[Status, int] = {}
        codes = np.zeros(len(rows), np.int32)
        for i, row in enumerate(rows.tolist()):
            try:
                status = one(state, pod, table.at(row))
            except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                status = crashed(plugin, cause)
            if status is not None and not status.is_success:
                codes[i] = index.setdefault(status, len(statuses))
                if codes[i] == len(statuses):
                    statuses.append(status)
        return Verdicts(codes, statuses)

    return many


def _one_score(many: ScoreMany, table: NodeTable) -> ScoreOne:
    def one(state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return int(many(state, pod, table, np.array([node.row]))[0])

    return one


def _many_scores(one: ScoreOne) -> ScoreMany:
    def many(state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Scores:
        return np.array([one(state, pod, table.at(row)) for row in rows.tolist()], np.int64)

    return many


def _default_normalize(
    kind: Normalization,
) -> Callable[[CycleState, PodInfo, Scores], Scores]:
    def normalize(_state: CycleState, _pod: PodInfo, raw: Scores) -> Scores:
        return normalized(kind, raw)

    return normalize


def normalized(kind: Normalization, raw: Scores) -> Scores:
    """Return the raw scores of the feasible nodes, scaled to 0..100 by the rule `kind`.

    upstream: plugins/helper/normalize_score.go: DefaultNormalizeScore
    """
    if kind is Normalization.NONE:
        return raw
    highest = int(raw.max()) if len(raw) else 0
    scaled = raw * 100 // highest if highest else np.zeros_like(raw)
    return 100 - scaled if kind is Normalization.REVERSED else scaled


def is_in_range(scores: Scores) -> bool:
    """Return whether all normalised scores are within 0..100."""
    if not len(scores):
        return True
    # As unsigned integers, negative scores are above every valid score.
    return bool(np.maximum.reduce(scores.view(np.uint64)) <= SCORE_MAX)


def invalid_score(plugin: Plugin, score: int) -> Status:
    """Return the ERROR status for a score outside 0..100 (framework.go: RunScorePlugins)."""
    reason = (
        f'plugin "{plugin.name}" returns an invalid score {score}, '
        f"it should in the range of [0, {SCORE_MAX}] after normalizing"
    )
    return error(reason).by(plugin.name)


def out_of_range(plugin: Plugin, scores: Scores) -> Status | None:
    """Return the ERROR status for the first score outside 0..100; None if all are inside."""
    if is_in_range(scores):
        return None
    wrong = (scores < 0) | (scores > SCORE_MAX)
    return invalid_score(plugin, int(scores[wrong][0]))


def first_rejection(
    points: Iterable[FilterPoint], state: CycleState, pod: PodInfo, node: NodeInfo
) -> Status | None:
    """Return the first rejection of `pod` on `node` by the Filters `points`; None if `pod` fits.

    If a Filter raises an exception, the result is an ERROR status.
    """
    for point in points:
        try:
            status = point.one(state, pod, node)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            return crashed(point.plugin, cause)
        if status is not None and status.code is not Code.SUCCESS:
            return status if status.plugin else status.by(point.name)
    return None


def crashed(plugin: Plugin, cause: Exception) -> Status:
    """Return an ERROR status that names `plugin`, which raised the exception `cause`."""
    if isinstance(cause, PluginFault):
        return error(str(cause)).by(cause.plugin)
    return error(f"plugin {plugin.name!r} failed: {describe(cause)}").by(plugin.name)
