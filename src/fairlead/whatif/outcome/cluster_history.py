"""ClusterHistory: how the nodes of a run, and the pods on them, changed over time.

Together with the nodes at the end it gives the state at any instant: reverting the changes after an
instant, latest first, leads back to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """A pod began to occupy `node` (`is_arrival`), or ceased to: it completed or was deleted."""

    at: Instant
    node: str
    pod: PodEnd
    is_arrival: bool


@dataclass(frozen=True, slots=True)
class NodeStatusChange:
    """The state of `node` from an instant on.

    `exists`: it is in the cluster. `is_serving`: its kubelet runs and its condition Ready is True.
    """

    at: Instant
    node: str
    exists: bool
    is_serving: bool
    unschedulable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHistory:
    """The changes of a run, in the order of their times.

    `statuses` are those of nodes that changed, each beginning with its state at the start of the
    run. `deleted` are the nodes that existed during the run but not at its end, without pods;
    `out_of_service` are the names of the nodes that do not serve at the end.
    """

    placements: tuple[PlacementChange, ...]
    statuses: tuple[NodeStatusChange, ...]
    deleted: tuple[NodeEnd, ...]
    out_of_service: tuple[str, ...]
