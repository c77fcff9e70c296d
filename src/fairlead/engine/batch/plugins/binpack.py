"""binpack: prefers the nodes whose resources are used most.

    score = weight × best × Σ (weight(r) × (used + requested) ÷ offered)  ÷  Σ weight(r)

The sums are over the resources r that the task requests and that have a weight, weight(r). `used`
is the amount that the pods on the node request, and `requested` is the amount that the task
requests. `offered` is the node's allocatable amount. If too little of a resource is free for the
task, this resource adds 0 to the first sum. `weight` is the weight of the plugin. `best` is the
highest score that a plugin can give (`BatchRules.best_score`).

upstream: volcano: pkg/scheduler/plugins/binpack/binpack.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fairlead.engine.batch.plugins.argument import ANY_TEXT, WEIGHT, ArgumentReader
from fairlead.engine.batch.rules import BatchRules
from fairlead.engine.batch.session.plugin import BatchHandle
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Scores
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

_ALWAYS: Final = ("cpu", "memory")
_WEIGHT: Final = "binpack.weight"
_RESOURCES: Final = "binpack.resources"
_DEFAULT: Final = 1


class Binpack:
    """Prefers nodes with high usage."""

    name = "binpack"

    def __init__(self, rules: BatchRules, arguments: Mapping[str, str]) -> None:
        """Read the weights from the arguments whose names start with `binpack.`.

        After this prefix comes `weight`, `cpu`, `memory`, `resources` (a list of names) or
        `resources.NAME`.
        """
        self._best = rules.best_score
        self._weight = WEIGHT.read(arguments, _WEIGHT, _DEFAULT)
        self._weights = {
            name: WEIGHT.read(arguments, key, _DEFAULT)
            for name, key in _keys_of_resources(arguments).items()
        }

    def node_prioritizers(self, handle: BatchHandle) -> list[tuple[SchedulerPlugin, int]]:
        """Return the scorer, or nothing if its weight is 0."""
        scorer = PackedScore(handle.cluster.table, self._weights, self._best)
        return [(scorer, self._weight)] if self._weight else []


def binpack_readers(arguments: Mapping[str, str]) -> dict[str, ArgumentReader[Any]]:
    """Return {key of an argument that the plugin reads from `arguments`: its reader}."""
    weights = (_WEIGHT, *_keys_of_resources(arguments).values())
    return {_RESOURCES: ANY_TEXT, **dict.fromkeys(weights, WEIGHT)}


def _keys_of_resources(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return {resource name: key of the argument that states the weight of the resource}."""
    named = [part.strip() for part in arguments.get(_RESOURCES, "").split(",")]
    return {
        **{name: f"binpack.{name}" for name in _ALWAYS},
        **{name: f"{_RESOURCES}.{name}" for name in named if name},
    }


class PackedScore:
    """Scores a node by its weighted usage after placing the pod."""

    name = "Binpack"
    locality = Locality.ROW

    def __init__(self, table: NodeTable, weights: Mapping[str, int], best: int) -> None:
        """`best` is the highest possible score; the keys of `weights` are resource names."""
        self._names = table.resources.names
        self._weights = weights
        self._best = best

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the score of `node`, from 0 to `best`."""
        score, weights = 0.0, 0
        for column, amount in pod.shape.wanted:
            weight = self._weights.get(self._names[column], 0)
            offered = node.allocatable_of(column)
            used = node.requested_of(column) + amount
            if offered >= used:
                score += used * weight / offered
            weights += weight
        return int(score / weights * self._best) if weights else 0

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the scores of the nodes at `rows` for `pod`, shape (len(rows),).

        The scores are equal to the results of `score`.
        """
        scores, weights = np.zeros(len(rows)), 0
        for column, amount in pod.shape.wanted:
            weight = self._weights.get(self._names[column], 0)
            offered = table.allocatable[column, rows]
            used = table.requested[column, rows] + amount
            scores += np.where(offered >= used, used * weight / np.maximum(offered, 1), 0.0)
            weights += weight
        found: Scores = (scores / max(weights, 1) * self._best).astype(np.int64)
        return found
