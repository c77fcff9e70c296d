"""DisruptionQueue: commands whose candidates are deleted once their replacements are ready.

upstream: pkg/controllers/disruption/queue.go
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.autoscaling.karpenter.apis import INITIALIZED_CONDITION
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.core.instant import DurationNs, Instant

RETRY_NS: Final[DurationNs] = NANOSECONDS_PER_SECOND
_NS_PER_CANDIDATE: Final[DurationNs] = 80_000_000
_TIMEOUT_MIN_NS: Final[DurationNs] = 600 * NANOSECONDS_PER_SECOND
_TIMEOUT_MAX_NS: Final[DurationNs] = 3_600 * NANOSECONDS_PER_SECOND


class CommandProgress(StrEnum):
    """The progress of a command: it waits for its replacements, is completed, or has failed."""

    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class QueuedCommand(Struct, frozen=True):
    """A command in progress. `replacements` are the names of the NodeClaims that it launched."""

    command: DisruptionCommand
    replacements: tuple[str, ...]
    started: Instant

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the candidates' nodes."""
        return tuple(one.node.key for one in self.command.candidates)


class DisruptionQueue:
    """The commands in progress, in the order of their start."""

    def __init__(self, cluster: KarpenterCluster) -> None:
        self._cluster = cluster
        self._commands: list[QueuedCommand] = []
        self.keys: set[str] = set()

    def __len__(self) -> int:
        """Return the number of commands in progress."""
        return len(self._commands)

    @property
    def commands(self) -> Sequence[QueuedCommand]:
        """The commands in progress."""
        return tuple(self._commands)

    def replaced_claims(self) -> frozenset[str]:
        """Return the names of all candidates' NodeClaims that belong to a static NodePool."""
        return frozenset(
            one.claim.name
            for queued in self._commands
            for one in queued.command.candidates
            if one.pool.is_static
        )

    def add(self, command: DisruptionCommand, replacements: Sequence[str], now: Instant) -> None:
        """Add a command that waits for `replacements`.

        Marks the candidates of the command for deletion, and nominates the existing nodes that will
        take pods.
        """
        queued = QueuedCommand(command, tuple(replacements), now)
        self._commands.append(queued)
        self.keys.update(queued.keys)
        self._cluster.mark(queued.keys)
        for node in command.placed:
            self._cluster.nominate(node.state.key, now)

    def progress(self, queued: QueuedCommand, now: Instant) -> CommandProgress:
        """Return the progress of the command `queued`.

        The command is completed when all its replacements are ready. The command has failed if a
        replacement no longer exists. It has also failed if it takes too long, even if all
        replacements have become ready meanwhile.
        """
        # upstream: queue.go:Reconcile, waitOrTerminate
        claims = self._cluster.node_claims
        if any(name not in claims for name in queued.replacements):
            return CommandProgress.FAILED
        if now - queued.started > self._timeout():
            return CommandProgress.FAILED
        ready = (claims[name].is_true(INITIALIZED_CONDITION) for name in queued.replacements)
        return CommandProgress.COMPLETED if all(ready) else CommandProgress.WAITING

    def is_ready(self, queued: QueuedCommand) -> bool:
        """Return whether all replacements exist and are initialized."""
        claims = self._cluster.node_claims
        return all(
            name in claims and claims[name].is_true(INITIALIZED_CONDITION)
            for name in queued.replacements
        )

    def times_out_at(self, queued: QueuedCommand) -> Instant:
        """Return the time at which the command fails if its replacements are not ready by then."""
        return queued.started + self._timeout() + 1

    def _timeout(self) -> DurationNs:
        waiting = sum(len(one.command.candidates) for one in self._commands)
        return min(max(waiting * _NS_PER_CANDIDATE, _TIMEOUT_MIN_NS), _TIMEOUT_MAX_NS)

    def remove(self, queued: QueuedCommand, *, failed: bool) -> None:
        """Remove `queued` from the queue; if `failed` is True, unmark its candidates."""
        self._commands.remove(queued)
        self.keys.difference_update(queued.keys)
        if failed:
            self._cluster.unmark(queued.keys)
