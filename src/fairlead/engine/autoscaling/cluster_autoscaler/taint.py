"""Taints that Cluster Autoscaler sets on nodes, and taints that it removes from templates.

upstream: utils/taints/taints.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from fairlead.api.nodes.autoscaler_taint import DELETION_CANDIDATE, STARTUP_PREFIXES, TO_BE_DELETED
from fairlead.api.nodes.taint import CONDITION_TAINTS, NO_SCHEDULE, PREFER_NO_SCHEDULE
from fairlead.api.objects import Node, Taint
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.core.instant import Instant, seconds

_DELETION_MAX: Final = seconds(300)
_STATUS_PREFIX: Final = "status-taint.cluster-autoscaler.kubernetes.io/"


class TaintConfig:
    """The keys of startup taints and status taints, as the taint flags set them.

    A startup taint means that a node is still starting. A status taint only describes the state of
    its node.
    """

    def __init__(self, options: AutoscalingOptions) -> None:
        """Read the taint flags; --ignore-taint is the old name of --startup-taint."""
        self._startup = frozenset((*options.startup_taint, *options.ignore_taint))
        self._startup_prefixes = (*STARTUP_PREFIXES, *options.startup_taint_prefix)
        self._status = frozenset(options.status_taint)

    def is_startup_taint(self, key: str) -> bool:
        """Return whether nodes with a taint of this `key` are still starting."""
        return key in self._startup or key.startswith(self._startup_prefixes)

    def sanitized(self, taints: Iterable[Taint]) -> tuple[Taint, ...]:
        """Return all `taints` except deletion, condition, startup and status taints."""
        return tuple(taint for taint in taints if not self._is_transient(taint.key))

    def _is_transient(self, key: str) -> bool:
        return (
            key in (TO_BE_DELETED, DELETION_CANDIDATE)
            or key in CONDITION_TAINTS
            or self.is_startup_taint(key)
            or key in self._status
            or key.startswith(_STATUS_PREFIX)
        )


def has_taint(node: Node, key: str) -> bool:
    """Return True if the node has a taint with this key."""
    return any(taint.key == key for taint in node.spec.taints)


def to_be_deleted_taint(now: Instant) -> Taint:
    """Return the taint for a node whose deletion starts at `now`."""
    return Taint(key=TO_BE_DELETED, effect=NO_SCHEDULE, value=_unix(now))


def deletion_candidate_taint(now: Instant) -> Taint:
    """Return the taint for a node that is found unneeded at `now`."""
    return Taint(key=DELETION_CANDIDATE, effect=PREFER_NO_SCHEDULE, value=_unix(now))


def deletion_candidate_since(node: Node) -> Instant | None:
    """Return the time since which `node` has been unneeded, according to its soft taint.

    Returns None if the node does not have this taint, or if the value of the taint is not a time.

    upstream: utils/taints/taints.go: GetDeletionCandidateTime
    """
    for taint in node.spec.taints:
        if taint.key == DELETION_CANDIDATE and taint.value.isdecimal():
            return int(taint.value) * NANOSECONDS_PER_SECOND
    return None


def with_taint(node: Node, taint: Taint) -> Node:
    """Return a copy of `node` with `taint` added."""
    return replace(node, spec=replace(node.spec, taints=(*node.spec.taints, taint)))


def is_being_deleted(node: Node, now: Instant) -> bool:
    """Return True if the node was tainted for deletion less than 5 minutes ago.

    upstream: core/scaledown/actuation/delete_in_batch.go: IsNodeBeingDeleted
    """
    for taint in node.spec.taints:
        if taint.key == TO_BE_DELETED and taint.value.lstrip("-").isdigit():
            return now - int(taint.value) * NANOSECONDS_PER_SECOND < _DELETION_MAX
    return False


def _unix(now: Instant) -> str:
    return str(now // NANOSECONDS_PER_SECOND)
