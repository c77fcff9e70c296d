"""ScaleDownStatus: the result of scale-down in a loop.

upstream: core/scaledown/status/status.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    NodeDeleteResult,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.planner import NodesToDelete


class ScaleDownResult(StrEnum):
    """The possible outcomes of scale-down in one loop; the values are upstream's."""

    ERROR = "ScaleDownError"
    NO_CANDIDATES = "ScaleDownNoCandidates"
    NO_NODE_DELETED = "ScaleDownNoNodeDeleted"
    NODE_DELETE_STARTED = "ScaleDownNodeDeleteStarted"
    NOT_TRIED = "ScaleDownNotTried"
    IN_COOLDOWN = "ScaleDownInCooldown"


class ScaleDownNode(Struct, frozen=True):
    """A node whose deletion started, with the pods that are evicted."""

    name: str
    evicted: tuple[Pod, ...] = ()


class ScaleDownStatus(Struct):
    """The result of scale-down in one loop.

    `candidates` and `to_delete` are None if scale-down ended before it determined them.
    """

    result: ScaleDownResult = ScaleDownResult.NOT_TRIED
    candidates: Sequence[str] | None = None
    to_delete: NodesToDelete | None = None
    deleting: Sequence[ScaleDownNode] = ()
    delete_results: Mapping[str, NodeDeleteResult] = field(default_factory=dict)
