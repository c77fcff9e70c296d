"""UnremovableNodes: the nodes that scale-down keeps, with upstream's reasons.

upstream: simulator/cluster.go: UnremovableReason, core/scaledown/unremovable/nodes.go
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant


class UnremovableReason(StrEnum):
    """The reason why scale-down keeps a node, named as in upstream."""

    SCALE_DOWN_DISABLED_ANNOTATION = "ScaleDownDisabledAnnotation"
    NOT_AUTOSCALED = "NotAutoscaled"
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


class BlockingPod(Struct, frozen=True):
    """A pod that prevents the removal of its node, with the reason."""

    pod: Pod
    reason: BlockingReason


class Unremovable(Struct, frozen=True):
    """The reason why a loop does not remove a node, with the blocking pod if there is one."""

    reason: UnremovableReason
    blocking: BlockingPod | None = None


_BY_REASON: Final = {reason: Unremovable(reason) for reason in UnremovableReason}


class UnremovableNodes:
    """The nodes that cannot be removed, with the `reasons` found in this loop."""

    def __init__(self) -> None:
        self.reasons: dict[str, Unremovable] = {}
        self._until: dict[str, Instant] = {}

    def update(self, present: Collection[str], now: Instant) -> None:
        """Prepare for the next loop: drop all reasons and outdated failed simulations.

        A failed simulation is outdated if it has expired at `now`, or if its node is not in
        `present`.
        """
        self.reasons = {}
        self._until = {
            name: until for name, until in self._until.items() if until > now and name in present
        }

    def add(
        self, name: str, reason: UnremovableReason, blocking: BlockingPod | None = None
    ) -> None:
        """Record the reason for keeping the node `name`, and the blocking pod if there is one."""
        self.reasons[name] = (
            _BY_REASON[reason] if blocking is None else Unremovable(reason, blocking)
        )

    def remember(self, name: str, until: Instant) -> None:
        """Exclude the node `name` from removal simulations until the time `until`."""
        self._until[name] = until

    def is_recent(self, name: str) -> bool:
        """Return whether a failed removal simulation of the node `name` is still recorded."""
        return name in self._until

    def next_expiry(self) -> Instant | None:
        """Return the earliest time at which a recorded failed simulation expires.

        Returns None if no failed simulation is recorded.
        """
        return min(self._until.values(), default=None)
