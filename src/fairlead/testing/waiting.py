"""Waiting for something in a cluster: its time passes, from one thing that is due to the next.

Where clients watch the cluster, they are given a moment of real time before each step, to react to
what has happened; and once nothing happens by itself any more, a little longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from fairlead.core.instant import DurationNs, Instant
from fairlead.testing.cluster_thread import ClusterThread
from fairlead.worlds.local.runner import Runner

REACTION_S: Final = 0.02
PATIENCE_S: Final = 2.0
_POLL_S: Final = 0.01

Found = TypeVar("Found")


class Waiting:
    """Waits in the cluster that lives in `thread`."""

    def __init__(self, thread: ClusterThread) -> None:
        """Nothing is waited for yet."""
        self._thread = thread
        self._cluster = thread.cluster

    def wait(self, check: Callable[[], Found], limit: Instant) -> Found:
        """Let time pass until `check` is met or it is `limit`; what `check` gave last."""
        while True:
            found = check()
            if found or self._cluster.clock.now() >= limit:
                return found
            if self._clients_acted(REACTION_S):
                continue
            if not self._thread.call(lambda runner: _step(runner, limit)):
                # Nothing happens by itself any more: what is left is what clients do.
                if self._clients_acted(PATIENCE_S):
                    continue
                self._thread.call(lambda runner: runner.advance(_left(runner, limit)))

    def _clients_acted(self, patience_s: float) -> bool:
        """Whether anything changes within that real time, which is not waited out then."""
        return self._thread.call(lambda _: self._change(patience_s))

    async def _change(self, patience_s: float) -> bool:
        if not self._cluster.server.watches.count():
            return False
        loop, before = asyncio.get_running_loop(), self._cluster.store.version
        end = loop.time() + patience_s
        while loop.time() < end:
            await asyncio.sleep(_POLL_S)
            if self._cluster.store.version != before:
                return True
        return False


async def _step(runner: Runner, limit: Instant) -> bool:
    """Let time pass until the next thing that is due; False when that is after `limit`."""
    due = runner.next_due()
    if due is None or due > limit:
        return False
    await runner.advance(max(0, due - runner.clock.now()))
    return True


def _left(runner: Runner, limit: Instant) -> DurationNs:
    return max(0, limit - runner.clock.now())
