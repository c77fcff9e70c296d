"""SelectorSpread of 1.19: spreads the pods of a Service, ReplicaSet or StatefulSet.

A node's count is the number of pods on it that match the default selector of the incoming pod
(`DefaultSelectors`). Fewer is better. If a node has a zone, its own count makes up one third of its
score, and the zone's count two thirds. If the incoming pod has topology spread constraints of its
own, all nodes score 0.
upstream: v1.19 selectorspread/selector_spread.go: Score, NormalizeScore
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import region_and_zone
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import SCORE_MAX, Locality, Rows, Scores
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.pod_topology_spread.default_selector import DefaultSelectors
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

_ZONE_WEIGHT: Final = 2.0 / 3.0
Floats = npt.NDArray[np.float64]


class SelectorSpread:
    """Prefers nodes and zones with fewer pods of the same Service or controller (Score)."""

    name = "SelectorSpread"
    locality = Locality.CLUSTER

    def __init__(self, handle: Handle) -> None:
        self._selectors = DefaultSelectors(handle.cluster.related)

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return whether all nodes are sure to get the same score for `pod`.

        The result is True if the pod has no default selector, or has topology spread constraints.
        """
        return bool(pod.shape.spec.topology_spread_constraints) or self._selectors.of(pod) is None

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each of the feasible nodes at `rows`, from 0 to 100."""
        found = self._selectors.of(pod)
        if found is None or pod.shape.spec.topology_spread_constraints:
            return np.zeros(len(rows), np.int64)
        nodes = [table.at(row) for row in rows.tolist()]
        counts = [
            sum(
                other.namespace == pod.namespace
                and not other.terminating
                and selector_matches(found.selector, other.labels)
                for other in node.pods.values()
            )
            for node in nodes
        ]
        scores = _reversed(counts)
        zones = [_zone(node) for node in nodes]
        by_zone: dict[str, int] = {}
        for zone, count in zip(zones, counts, strict=True):
            if zone:
                by_zone[zone] = by_zone.get(zone, 0) + count
        zone_scores = dict(zip(by_zone, _reversed(by_zone.values()).tolist(), strict=True))
        for position, zone in enumerate(zones):
            if zone:
                own = scores[position] * (1.0 - _ZONE_WEIGHT)
                scores[position] = own + _ZONE_WEIGHT * zone_scores[zone]
        return scores.astype(np.int64)


def _reversed(counts: Iterable[int]) -> Floats:
    """Return 100 × (max - count) ÷ max for each of `counts`, or 100 for each if max is 0."""
    values = np.array(list(counts), np.float64)
    highest = values.max(initial=0.0)
    if not highest:
        return np.full(len(values), float(SCORE_MAX))
    result: Floats = float(SCORE_MAX) * ((highest - values) / highest)
    return result


def _zone(node: NodeInfo) -> str:
    """Return a key of the node's region and zone; "" if the node has neither label."""
    region, zone = region_and_zone(node.node.metadata.labels)
    return f"{region}:\0:{zone}" if region or zone else ""
