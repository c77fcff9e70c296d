"""Runner: runs a local cluster's control plane in an event loop, between requests.

The engine runs after a request has changed objects, and when work is due. Its work is split into
slices, so that requests are answered between slices. The loop runs several iterations before each
slice, because a request needs several iterations: reading, handling, answering, watch events. While
the disk is full, the control plane is paused. If the clock runs faster than real time and work is
late, the clock is held back until the work is done.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

from fairlead.apiserver.error import no_space
from fairlead.apiserver.http.webhook_client import call_webhook
from fairlead.apiserver.suspension import WebhookAnswer
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.worlds.local.admission_gateway import PendingCommand
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster

SLICE_S: Final = 0.02
# Iterations of the event loop before a slice: enough to answer what has arrived.
ITERATIONS_BEFORE_SLICE: Final = 5
# The real time by which a fast clock may be ahead of the work that is due. Without this limit, a
# clock that runs faster than the controllers can work would show times days after the last change.
LEAD_S: Final = 0.1
AFTER_DEFECT_S: Final = 1.0
LOOK_FOR_ROOM_S: Final = 1.0


class Runner:
    """Runs `cluster` by the cluster's clock, in the running event loop."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._responses: deque[tuple[PendingCommand, WebhookAnswer]] = deque()
        self._is_woken = False
        self._is_stepping = False
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def clock(self) -> LocalClock:
        """The cluster's clock. To change it, use `control`, so that timers are computed again."""
        return self._cluster.clock

    def control(self, *, speed: float | None = None, paused: bool | None = None) -> None:
        """Change the clock, and compute timers again; see `LocalClock.control`."""
        self._cluster.clock.control(speed=speed, paused=paused)
        self.wake()

    def next_due(self) -> Instant | None:
        """Return the next time at which the cluster has work; None if no work is scheduled."""
        return self._cluster.control_plane.next_due()

    def start(self) -> None:
        """Start running the control plane in the running event loop."""
        self._unsubscribe = self._cluster.store.subscribe(lambda _: self.wake())
        self.wake()

    def stop(self) -> None:
        """Stop running the control plane; work that is due is not done."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._calls:
            task.cancel()

    def wake(self) -> None:
        """Schedule a step of the control plane in the event loop."""
        if not self._is_woken and not self._is_stepping:
            self._is_woken = True
            self._loop.call_soon(self._pass_iteration, ITERATIONS_BEFORE_SLICE)

    def _pass_iteration(self, left: int) -> None:
        """Run a step of the control plane after `left` further iterations of the event loop."""
        if left > 0:
            self._loop.call_soon(self._pass_iteration, left - 1)
        else:
            self._step()

    async def advance(self, duration: DurationNs) -> Instant:
        """Advance the clock by `duration`, do the work that is due, and return the new time.

        Raises ApiError if the disk is full.
        """
        clock = self._cluster.clock
        target = clock.now() + duration
        control_plane = self._cluster.control_plane
        while True:
            # Work that a slice did not finish must not run later than it was due.
            due = self.next_due()
            is_idle = control_plane.is_settled and (due is None or due > clock.now())
            now = self._slice(target if is_idle else clock.now(), waits=True)
            clock.jump_to(now)
            if self._calls:
                await asyncio.wait(self._calls)
                self._slice(now)  # the effects of the answers come before time advances
                continue
            due = self.next_due()
            if now >= target and (due is None or due > target):
                self.wake()
                return now
            await asyncio.sleep(0)

    def _slice(self, until: Instant, *, waits: bool = False) -> Instant:
        """Run the control plane to the cluster's time `until`, for at most one slice of real time.

        Returns the cluster's time that was reached. If `waits` is True, the slice also ends as soon
        as a command waits for a webhook. The caller can then wait for the answer of the webhook
        before the cluster's time continues. Raises ApiError if the disk is full.
        """
        if not self._has_room():
            raise no_space()
        end = perf_counter() + SLICE_S
        control_plane = self._cluster.control_plane
        waiting = control_plane.pending
        self._is_stepping = True
        try:
            while self._responses:
                control_plane.resume(*self._responses.popleft(), self._cluster.clock.now())
            return control_plane.run_until(
                until, stop_when=lambda: perf_counter() > end or (waits and bool(waiting))
            )
        finally:
            self._is_stepping = False
            while waiting:
                task = self._loop.create_task(self._call_webhook(waiting.popleft()))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)

    async def _call_webhook(self, waiting: PendingCommand) -> None:
        """Call the webhook of the command `waiting`, and continue the command."""
        self._responses.append((waiting, await call_webhook(waiting.call)))
        self.wake()

    def _has_room(self) -> bool:
        return self._cluster.store.storage.look_for_room()

    def _step(self) -> None:
        self._is_woken = False
        clock = self._cluster.clock
        now = clock.now()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._has_room():
            self._timer = self._loop.call_later(LOOK_FOR_ROOM_S, self.wake)
            return
        try:
            reached = self._slice(now)
        except Exception:
            # The event loop reports the exception; the remaining work is still done.
            self._timer = self._loop.call_later(AFTER_DEFECT_S, self.wake)
            raise
        due = self._cluster.control_plane.next_due()
        is_late = reached < now or (due is not None and due <= now)
        lead = int(seconds(LEAD_S) * clock.speed)
        clock.hold(reached + lead if is_late and clock.speed > 1 else None)
        if is_late:
            self.wake()
            return
        wait_s = None if due is None else clock.seconds_until(due)
        if wait_s is not None:
            self._timer = self._loop.call_later(wait_s, self.wake)
