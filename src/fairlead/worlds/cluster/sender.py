"""Sender: sends requests to the API server, while this replica may act.

Commands about one object are performed one after another. Bindings and deletions are sent before
patches, and patches before events. The sender calls `may_send` before each request. If `may_send`
returns False, the command is dropped without an outcome, because the process is about to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.objects import Node, Pod
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.client.request_queue import RequestLimits, RequestQueue
from fairlead.client.rest_client import ApiAnswer, ApiRequest, RestClient
from fairlead.client.retry_backoff import Jitter
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    DeleteObject,
    EvictPod,
    Issued,
    ObjectRef,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.worlds.cluster.event_recorder import EventRecorder, EventRequest
from fairlead.worlds.cluster.extender_thread import ExtenderThread
from fairlead.worlds.cluster.perform import Performed, Resources, perform
from fairlead.worlds.cluster.world import ClusterWorld

REQUEST_SECONDS_MAX: Final = 30.0
EVENTS_MAX: Final = 1_000  # upstream: tools/record: maxQueuedEvents
EVENT_TRIES_MAX: Final = 3
_URGENT, _PATCHES, _EVENTS = range(3)
_TOO_LARGE: Final = 413


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderOptions:
    """Options of a Sender.

    `may_send` is called before each request, `recorder` makes event requests.
    """

    limits: RequestLimits
    clock: Callable[[], Instant]
    jitter: Jitter
    may_send: Callable[[], bool]
    recorder: EventRecorder | None = None
    extenders: ExtenderThread | None = None
    request_seconds: float = REQUEST_SECONDS_MAX


class Sender:
    """Performs the commands of a ClusterWorld, as its `Outbox`."""

    def __init__(self, client: RestClient, resources: Resources, options: SenderOptions) -> None:
        """`resources` are keyed by kind; set `world` before the first command.

        `on_task_end` is called with each task that ended, also with a task that failed.
        """
        self.world: ClusterWorld | None = None
        self.on_outcome: Callable[[], None] = lambda: None
        self.on_task_end: Callable[[asyncio.Task[None]], None] = lambda _: None
        self.requests = 0
        self.events_dropped = 0
        self._client = client
        self._resources = resources
        self._options = options
        self._queue: RequestQueue[Issued | EventRequest] = RequestQueue(
            options.limits, options.clock()
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.Handle | None = None
        self._events_waiting = 0

    @property
    def is_idle(self) -> bool:
        """Whether every command has been performed and every event written."""
        return len(self._queue) == 0

    def stop(self) -> None:
        """Stop sending; requests in flight are abandoned."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    # --- Outbox ----------------------------------------------------------------------------

    def submit(self, issued: Issued, now: Instant) -> None:
        """Queue a command to be performed."""
        target = _target(issued.command)
        priority = _URGENT if isinstance(issued.command, _FIRST) else _PATCHES
        self._queue.add(issued, priority, f"{target.kind} {target.key}")
        self._schedule()

    def record(self, event: RecordEvent, now: Instant) -> None:
        """Queue an event to be written; drop it if EVENTS_MAX events are waiting."""
        if self._options.recorder is None:
            return
        if self._events_waiting >= EVENTS_MAX:
            self.events_dropped += 1
            return
        written = self._options.recorder.request(event, now)
        if written is not None:
            self._events_waiting += 1
            self._queue.add(written, _EVENTS, written.path)
            self._schedule()

    def call_extender(self, call: CallExtender) -> None:
        """Call an extender in its thread."""
        self._start(self._call_extender(call))

    # --- sending ---------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Send the queued requests that the limits allow now."""
        self._timer = None
        now = self._options.clock()
        for item, target in self._queue.take(now):
            self._start(self._perform(item, target))
        due = self._queue.next_due()
        if due is not None:
            wait = max(0, due - now) / NANOSECONDS_PER_SECOND
            self._timer = asyncio.get_running_loop().call_later(wait, self._pump)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self.on_task_end)

    async def _perform(self, item: Issued | EventRequest, target: str) -> None:
        if isinstance(item, EventRequest):
            await self._write_event(item)
            self._events_waiting -= 1
        else:
            performed = await self._performed(item.command)
            if performed is None:
                return  # leadership is lost
            assert self.world is not None
            self.world.finish(performed, self._options.clock())
            self.on_outcome()
        self._queue.finish(target)
        self._schedule()

    async def _performed(self, command: Command) -> Performed | None:
        """Perform a command, however long that takes; return None if this replica may not act."""
        options = self._options
        steps = perform(
            command, self._resources, options.clock(), options.jitter, self._statuses(command)
        )
        answer: ApiAnswer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                performed: Performed = end.value
                return performed
            if isinstance(step, ApiRequest):
                if not options.may_send():
                    return None
                self.requests += 1
                answer = await self._client.exchange(step, options.request_seconds)
            else:
                answer = None
                await asyncio.sleep(step)

    async def _write_event(self, event: EventRequest) -> None:
        """Write an event; if the server refuses it, the event is lost.

        The recorder forgets an event that the server does not have, so that the next equal event
        is created instead of patched.
        """
        assert self._options.recorder is not None
        for number in range(1, EVENT_TRIES_MAX + 1):
            if not self._options.may_send():
                return
            self.requests += 1
            answer = await self._client.exchange(event.request, self._options.request_seconds)
            if answer.is_success:
                return
            if 400 <= answer.status < _TOO_LARGE:
                break
            await asyncio.sleep(max(answer.retry_after_s, number * (1 + self._options.jitter())))
        self.events_dropped += 1
        self._options.recorder.forget(event.path)

    async def _call_extender(self, call: CallExtender) -> None:
        assert self._options.extenders is not None, "there are no extenders"
        assert self.world is not None
        if self._options.may_send():
            self.world.enqueue(await self._options.extenders.call(call, self._client))
            self.on_outcome()

    def _statuses(self, command: Command) -> dict[str, str]:
        """Return the current status of each condition of a patch's target, by condition type."""
        if not isinstance(command, PatchStatus) or not command.conditions or self.world is None:
            return {}
        found = self.world.find(command.target)
        if not isinstance(found, Pod | Node):
            return {}
        return {one.type: one.status for one in found.status.conditions}


# Commands that free or take space on a node are sent before all other commands.
_FIRST: Final = (Bind, DeleteObject, EvictPod)


def _target(command: Command) -> ObjectRef:
    match command:
        case Bind(pod, _) | EvictPod(pod, _):
            return pod
        case RecordEvent(regarding):
            return regarding
        case CallExtender():
            return command.pod
        case _:
            target: ObjectRef = getattr(command, "target", ObjectRef("", "", ""))
            return target
