"""Sender: sends requests to the API server, while this replica may act.

Commands about one object are performed one after another. Queued bindings, deletions and evictions
are sent before queued patches, and patches before events. A generator (see `perform`) yields the
requests of a command. Each response resumes the generator.

The sender calls `may_send` before each request. If `may_send` returns False, the command is dropped
without an outcome, because the process is about to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final

from msgspec import Struct

from fairlead.api.objects import Node, Pod
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.client.request_queue import RequestLimits, RequestQueue
from fairlead.client.rest_client import ApiAnswer, ApiRequest, RestClient
from fairlead.client.retry_backoff import Jitter
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    CreateObject,
    DeleteObject,
    EvictPod,
    IssuedCommand,
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
_FORBIDDEN, _TOO_LARGE = 403, 413
# Refusals that need no attention: the object is gone or has changed, or the request is repeated.
_USUAL_REFUSALS: Final = (404, 408, 409, 429)
# Separate the name of the object in a refusal from the reason. upstream: NewForbidden, NewInvalid
_SEPARATORS: Final = (" is forbidden: ", " is invalid: ")
REFUSALS_NAMED: Final = 100
# A command that the API server has not performed for this long is logged.
STUCK_NS: Final = 10 * NANOSECONDS_PER_SECOND
# The cause in a refusal of new objects in a namespace that is being deleted. Such refusals are
# usual.
# upstream: client-go/tools/events/event_broadcaster.go: recordEvent does not log it either
_ENDING_NAMESPACE: Final = b'"NamespaceTerminating"'


class SenderOptions(Struct, frozen=True, kw_only=True):
    """Options of a Sender.

    `recorder` makes event requests; if it is None, no events are written. `request_seconds` is the
    timeout of a request. `log` is called with a line for each reason for which the API server
    refuses requests. `log` is also called with a line when requests have failed for a while.
    """

    limits: RequestLimits
    clock: Callable[[], Instant]
    jitter: Jitter
    may_send: Callable[[], bool]
    recorder: EventRecorder | None = None
    extenders: ExtenderThread | None = None
    request_seconds: float = REQUEST_SECONDS_MAX
    log: Callable[[str], None] = lambda _: None


# Yields requests, and pauses in seconds; returns the outcome of a command, or None for an event.
_Steps = Generator[ApiRequest | float, ApiAnswer | None, Performed | None]


class _Running(Struct, frozen=True):
    """A command that is being performed, or an Event that is being written.

    `name` is the verb, kind and key of the request, such as `create Binding shop/web-1`. `began` is
    the time at which the first request of a command was sent. `began` is None for an event, which
    is dropped after EVENT_TRIES_MAX tries.
    """

    steps: _Steps
    name: str
    target: str
    began: Instant | None


class Sender:
    """The `Outbox` of a ClusterWorld: sends the engine's commands to the API server."""

    def __init__(self, client: RestClient, resources: Resources, options: SenderOptions) -> None:
        """`resources` are keyed by kind.

        The owner of the sender assigns the attribute `world` before the first command, and may
        assign three functions. The sender calls `on_outcome` when an outcome is ready for the
        engine. The sender calls `on_hold` with the latest time until which an outcome is held back,
        and `on_failure` with an exception that ends the run.
        """
        self.world: ClusterWorld | None = None
        self.on_outcome: Callable[[], None] = lambda: None
        self.on_hold: Callable[[Instant], None] = lambda _: None
        self.on_failure: Callable[[BaseException], None] = lambda _: None
        self.requests = 0
        self.events_dropped = 0
        self._client = client
        self._resources = resources
        self._options = options
        self._queue: RequestQueue[IssuedCommand | EventRequest] = RequestQueue(
            options.limits, options.clock()
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.Handle | None = None
        self._events_waiting = 0
        self._refusals: set[str] = set()  # the reasons that have been logged
        self._stuck: set[str] = set()  # the targets of the commands that have failed for STUCK_NS
        self._is_stopped = False

    @property
    def is_idle(self) -> bool:
        """Whether every command has been performed and every event written or dropped.

        Calls of extenders are not counted.
        """
        return len(self._queue) == 0

    def stop(self) -> None:
        """Stop sending; requests in flight are abandoned."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    # --- Outbox ----------------------------------------------------------------------------

    def submit(self, issued: IssuedCommand, now: Instant) -> None:
        """Queue a command; its requests are sent as soon as the rate limits allow."""
        target = _target(issued.command)
        priority = _URGENT if isinstance(issued.command, _FIRST) else _PATCHES
        self._queue.add(issued, priority, f"{target.kind} {target.key}")
        self._schedule()

    def record(self, event: RecordEvent, now: Instant) -> None:
        """Queue an event to be written.

        Drop it if there is no recorder, or if EVENTS_MAX events are waiting. An event that the
        recorder only counts is not queued.
        """
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
        """Start to call an extender; its response becomes a stimulus of `world`."""
        self._start(self._call_extender(call))

    # --- sending ---------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Send the queued requests that the limits allow now."""
        self._timer = None
        now = self._options.clock()
        for item, target in self._queue.pop_ready(now):
            if isinstance(item, EventRequest):
                running = _Running(self._event_steps(item), "create Event", target, None)
            else:
                name = _request_name(item.command)
                running = _Running(self._steps(item), name, target, now)
            self._resume(running, None)
        due = self._queue.next_due()
        if due is not None:
            wait = max(0, due - now) / NANOSECONDS_PER_SECOND
            self._timer = asyncio.get_running_loop().call_later(wait, self._pump)

    def _steps(self, issued: IssuedCommand) -> _Steps:
        """Return the generator of the requests that perform a command."""
        options, command = self._options, issued.command
        known = self._statuses(command)
        return perform(command, self._resources, options.clock(), options.jitter, known)

    def _resume(self, running: _Running, answer: ApiAnswer | None) -> None:
        """Pass `answer` to the generator in `running`, and send the request that it yields.

        If the generator yields a number of seconds instead, resume the generator after this time.
        """
        if self._is_stopped:
            return
        if answer is not None and 400 <= answer.status < 500:
            self._name_refusal(answer)
        try:
            step = self._next_step(running, answer)
            if isinstance(step, ApiRequest):
                if self._options.may_send():
                    self.requests += 1
                    self._send(running, step)
            elif step is not None:
                if answer is not None:
                    self._log_stuck(running, answer)
                asyncio.get_running_loop().call_later(step, self._resume, running, None)
        except Exception as failure:  # noqa: BLE001 - asyncio would log it and go on
            self.on_failure(failure)

    def _next_step(self, running: _Running, answer: ApiAnswer | None) -> ApiRequest | float | None:
        """Return the next request to send, or a number of seconds to wait before continuing.

        Returns None if `running` has ended.
        """
        try:
            return running.steps.send(answer)
        except StopIteration as end:
            self._finish(running, end.value)
            return None

    def _name_refusal(self, answer: ApiAnswer) -> None:
        """Log why a request was refused, unless such refusals occur in normal operation.

        Each reason is logged once. At most REFUSALS_NAMED reasons are logged.
        """
        if answer.status in _USUAL_REFUSALS or _ENDING_NAMESPACE in answer.body:
            return
        reasons = (answer.message.partition(one)[2] for one in _SEPARATORS)
        reason = next(filter(None, reasons), answer.message)
        if reason not in self._refusals and len(self._refusals) < REFUSALS_NAMED:
            self._refusals.add(reason)
            verb = "forbids" if answer.status == _FORBIDDEN else "refuses"
            self._options.log(f"the API server {verb} a request: {answer.message}")

    def _log_stuck(self, running: _Running, answer: ApiAnswer) -> None:
        """Log that a command has failed for STUCK_NS and will be tried again.

        Such a command is repeated until it succeeds. While such commands exist, only the first of
        them is logged.
        """
        if running.began is None or self._options.clock() < running.began + STUCK_NS:
            return
        if not self._stuck:
            reason = answer.message or "the answer is not a Kubernetes object"
            seconds = (self._options.clock() - running.began) // NANOSECONDS_PER_SECOND
            self._options.log(
                f"{running.name} has failed for {seconds} seconds ({reason}); trying again"
            )
        self._stuck.add(running.target)

    def _send(self, running: _Running, request: ApiRequest) -> None:
        def resume(answer: ApiAnswer | None) -> None:
            if answer is not None:
                self._resume(running, answer)
            elif not self._is_stopped and self._options.may_send():
                self._start(self._exchange(running, request))

        if not self._client.begin(request, self._options.request_seconds, resume):
            self._start(self._exchange(running, request))

    async def _exchange(self, running: _Running, request: ApiRequest) -> None:
        answer = await self._client.exchange(request, self._options.request_seconds)
        self._resume(running, answer)

    def _finish(self, running: _Running, performed: Performed | None) -> None:
        """Report `performed`, and let the next request for the same object be sent.

        `performed` is None if `running` is an event, which has no outcome to report.
        """
        if performed is None:
            self._events_waiting -= 1
        else:
            assert self.world is not None
            held_until = self.world.finish(performed, self._options.clock())
            if held_until is None:
                self.on_outcome()
            else:
                self.on_hold(held_until)
        self._stuck.discard(running.target)
        self._queue.finish(running.target)
        self._schedule()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self.on_failure(failure)

    def _event_steps(self, event: EventRequest) -> _Steps:
        """Write an event in at most EVENT_TRIES_MAX tries; drop it if no try succeeds.

        A response with a code from 400 to 412 ends the tries. The recorder forgets a dropped event,
        and records the next equal event as a new object. The recorder cannot patch the dropped
        event, because the server may not have it.
        """
        assert self._options.recorder is not None
        for number in range(1, EVENT_TRIES_MAX + 1):
            answer = yield event.request
            assert answer is not None
            if answer.is_success:
                return None
            if 400 <= answer.status < _TOO_LARGE:
                break
            yield max(answer.retry_after_s, number * (1 + self._options.jitter()))
        self.events_dropped += 1
        self._options.recorder.forget(event.path)
        return None

    async def _call_extender(self, call: CallExtender) -> None:
        assert self._options.extenders is not None, "there are no extenders"
        assert self.world is not None
        if self._options.may_send():
            self.world.enqueue(await self._options.extenders.call(call, self._client))
            self.on_outcome()

    def _statuses(self, command: Command) -> dict[str, str]:
        """Return the known statuses of the target's conditions, keyed by condition type.

        Returns {} if `command` patches no conditions, or if its target is not a known pod or node.
        """
        if not isinstance(command, PatchStatus) or not command.conditions or self.world is None:
            return {}
        found = self.world.find(command.target)
        if not isinstance(found, Pod | Node):
            return {}
        return {one.type: one.status for one in found.status.conditions}


# Commands that free or take space on a node are sent before all other commands.
_FIRST: Final = (Bind, DeleteObject, EvictPod)


def _request_name(command: Command) -> str:
    """Return the verb, kind and key of the API request that performs `command`."""
    target = _target(command)
    match command:
        case Bind():
            return f"create Binding {target.key}"
        case EvictPod():
            return f"create Eviction {target.key}"
        case PatchStatus():
            return f"patch {target.kind} {target.key} (status)"
        case CreateObject():
            verb = "create"
        case DeleteObject():
            verb = "delete"
        case _:
            verb = "patch"
    return f"{verb} {target.kind} {target.key}"


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
