"""Waits for a condition in a cluster by advancing its clock from one due event to the next.

If clients watch the cluster, they get a moment of real time before each step to react to what has
happened, and more before a long step: minutes must not pass while an operator computes. They get
most when nothing is due any more, because then only they can make progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from fairlead.apiserver.kind import Kind
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.testing.cluster.cluster_thread import ClusterThread
from fairlead.worlds.local.server.runner import Runner

REACTION_S: Final = 0.02
PATIENCE_S: Final = 3.0
LAST_PATIENCE_S: Final = 10.0
LONG: Final[DurationNs] = seconds(10)
_POLL_S: Final = 0.01

Found = TypeVar("Found")


class ConditionWaiter:
    """Waits for conditions in the cluster of `thread`."""

    def __init__(self, thread: ClusterThread) -> None:
        """Use the cluster of `thread`."""
        self._thread = thread
        self._cluster = thread.cluster

    def wait(self, check: Callable[[], Found], limit: Instant) -> Found:
        """Advance the clock until `check` is true or `limit` is reached; return its last value."""
        while True:
            found = check()
            if found or self._cluster.clock.now() >= limit:
                return found
            self._thread.call(lambda runner: self._step(runner, limit))

    async def _step(self, runner: Runner, limit: Instant) -> None:
        """Advance the clock to the next due event, unless a client changes something first."""
        due = runner.next_due()
        then = limit if due is None else min(due, limit)
        if not await self._change(_patience_s(runner, due, limit)):
            await runner.advance(max(0, then - runner.clock.now()))

    def until_watched(self, kind: Kind, patience_s: float) -> bool:
        """Wait up to `patience_s` real seconds for a watch of `kind`; False if there is none."""
        return self._thread.call(lambda _: self._watched(kind, patience_s))

    async def _watched(self, kind: Kind, patience_s: float) -> bool:
        loop, watches = asyncio.get_running_loop(), self._cluster.server.watches
        end = loop.time() + patience_s
        while loop.time() < end:
            if watches.count(kind):
                return True
            await asyncio.sleep(_POLL_S)
        return False

    async def _change(self, patience_s: float) -> bool:
        """Wait up to `patience_s` real seconds for a change of the store; False if none came."""
        if not self._cluster.server.watches.count():
            return False
        loop, before = asyncio.get_running_loop(), self._cluster.store.version
        end = loop.time() + patience_s
        while loop.time() < end:
            await asyncio.sleep(_POLL_S)
            if self._cluster.store.version != before:
                return True
        return False


def _patience_s(runner: Runner, due: Instant | None, limit: Instant) -> float:
    if due is None or due > limit:
        return LAST_PATIENCE_S
    return PATIENCE_S if due - runner.clock.now() >= LONG else REACTION_S
