"""Why nodes are not removed, in upstream's terms, and nodes not examined for a while.

upstream: simulator/cluster.go: UnremovableReason, core/scaledown/unremovable/nodes.go
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant


class UnremovableReason(StrEnum):
    """The reason why scale-down keeps a node, named as in upstream."""

    SCALE_DOWN_DISABLED_ANNOTATION = "ScaleDownDisabledAnnotation"
    SCALE_DOWN_UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    NODE_GROUP_MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    ATOMIC_SCALE_DOWN_FAILED = "AtomicScaleDownFailed"
    MINIMAL_RESOURCE_LIMIT_EXCEEDED = "MinimalResourceLimitExceeded"
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    RECENTLY_UNREMOVABLE = "RecentlyUnremovable"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    BLOCKED_BY_POD = "BlockedByPod"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"
    UNEXPECTED_ERROR = "UnexpectedError"


class BlockingReason(StrEnum):
    """The reason why a pod cannot be moved (utils/drain/drain.go: BlockingPodReason)."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT_ANNOTATION = "NotSafeToEvictAnnotation"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"


@dataclass(frozen=True, slots=True)
class BlockingPod:
    """A pod that prevents the removal of its node, and the reason."""

    pod: Pod
    reason: BlockingReason


@dataclass(frozen=True, slots=True)
class Unremovable:
    """A node that is not removed in this loop, and the reason."""

    reason: UnremovableReason
    blocking: BlockingPod | None = None


_BY_REASON: Final = {reason: Unremovable(reason) for reason in UnremovableReason}


class UnremovableNodes:
    """The nodes that cannot be removed, with the `reasons` found in this loop.

    Failed simulations are not repeated for a while.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.reasons: dict[str, Unremovable] = {}
        self._until: dict[str, Instant] = {}

    def update(self, present: Collection[str], now: Instant) -> None:
        """Start a loop: drop all reasons, and failed simulations that are too old.

        Simulations of nodes that are not `present` are dropped, too.
        """
        self.reasons = {}
        self._until = {
            name: until for name, until in self._until.items() if until > now and name in present
        }

    def add(
        self, name: str, reason: UnremovableReason, blocking: BlockingPod | None = None
    ) -> None:
        """Record why a node is not removed."""
        self.reasons[name] = (
            _BY_REASON[reason] if blocking is None else Unremovable(reason, blocking)
        )

    def remember(self, name: str, until: Instant) -> None:
        """Do not simulate the removal of the node again before `until`."""
        self._until[name] = until

    def is_recent(self, name: str) -> bool:
        """Return True if a recent simulation of the node's removal failed."""
        return name in self._until

    def next_expiry(self) -> Instant | None:
        """Return when the first recorded simulation expires."""
        return min(self._until.values(), default=None)
