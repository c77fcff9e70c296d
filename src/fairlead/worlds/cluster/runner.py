"""ClusterRunner: runs controllers against a real cluster, in an asyncio event loop.

    1. list and watch the controllers' resources, even before leading, so that failover is fast
    2. when every resource has been listed, wait until this replica leads. So a replica that cannot
       list the resources never takes the Lease from a replica that can
    3. build the engine; run it after each update and each outcome, and at each deadline
    4. stop on a signal (release the Lease, exit 0) or when leadership is lost (exit 1)

The runner reads the machine's clock once, at the start, and adds the elapsed time. Therefore a
change of the machine's clock does not make nodes look unresponsive.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from random import Random  # noqa: TID251 - jitter is not replayed
from time import perf_counter, perf_counter_ns
from typing import Any, Final, Protocol

from msgspec import Struct, field

import fairlead.engine.scheduling.preemption.evaluator  # noqa: F401 - loaded before its first use
from fairlead.client.api_resource import ApiResource
from fairlead.client.cache.list_watch import ListWatch
from fairlead.client.cache.recovery import Recovery
from fairlead.client.cache.reflector import WATCH_SECONDS, ObjectUpdate, Reflector
from fairlead.client.connection import ConnectionConfig
from fairlead.client.credentials import Credentials
from fairlead.client.error import ConnectionConfigError
from fairlead.client.leader_election import ElectionConfig, LeaderElection
from fairlead.client.request_queue import RequestLimits
from fairlead.client.rest_client import RestClient
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.framework.profile import DEFAULT_SCHEDULER
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.cluster.election import LEASES, Election
from fairlead.worlds.cluster.event_recorder import EventRecorder
from fairlead.worlds.cluster.extender_thread import ExtenderThread
from fairlead.worlds.cluster.overcommitted_nodes import OvercommittedNodes
from fairlead.worlds.cluster.resource import REQUIRED, is_built_in, resources_by_kind
from fairlead.worlds.cluster.sender import REQUEST_SECONDS_MAX, Sender, SenderOptions
from fairlead.worlds.cluster.telemetry.refused_resource_log import QUIET_S, RefusedResourceLog
from fairlead.worlds.cluster.telemetry.run_log import SILENT, RunLog
from fairlead.worlds.cluster.telemetry.slow_cycles import SlowCycles
from fairlead.worlds.cluster.telemetry.tracer import Tracer
from fairlead.worlds.cluster.world import ClusterWorld
from fairlead.worlds.driver import CommandSource, Driver
from fairlead.worlds.extender.extender_caller import ExtenderCaller
from fairlead.worlds.local.clock import LocalClock

_ROLES: Final = (
    "fairlead run --rbac, with the other options of this command, prints the roles that it needs"
)
SLICE_S: Final = 0.02
# Minimum time between two steps of the engine, if updates or responses cause the steps. One step
# handles all updates and responses since the last step. This costs less CPU time than a step for
# each of them.
STEP_GAP_S: Final = 0.002
STOP_SECONDS_MAX: Final = 5.0
LOST_LEADERSHIP: Final = "leaderelection lost"
# The maximum number of undecodable objects that are logged for a resource.
UNDECODABLE_NAMED: Final = 10
_TEXT_MAX: Final = 200
_POLL_S: Final = 0.02
# The maximum size of a response. A page of a list has at most 500 objects.
_RESPONSE_BYTES_MAX: Final = 256 << 20


def _since_boot() -> int:
    """Return the nanoseconds since the machine was started, including times of suspension.

    Times of suspension count, because another replica may have become leader during a suspension.
    A leader that was suspended until its Lease expired must not act when the machine resumes.
    """
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)


class RunningEngine(CommandSource, Protocol):
    """The interface of an Engine or a Shadow: a CommandSource with the state of the cluster."""

    cluster: Cluster


class RunnerOptions(Struct, frozen=True, kw_only=True):
    """Options of a ClusterRunner."""

    config: ConnectionConfig
    credentials: Credentials | None = None  # shared by all clients
    resources: Sequence[ApiResource]
    build: Callable[[Instant], RunningEngine]  # makes the engine when this replica becomes leader
    election: ElectionConfig | None = None  # if None, the runner acts without a Lease
    limits: RequestLimits = field(default_factory=RequestLimits)
    host: str = ""  # this machine's name in events; if it is empty, no events are written
    component: str = DEFAULT_SCHEDULER  # the source of events about the Lease
    extenders: ExtenderCaller | None = None
    log: RunLog = SILENT  # receives one line per incident
    meter: Meter | None = None  # the times of the engine's plugins, for the log of slow cycles
    # Makes spans of requests and of the engine's units of work, such as scheduling cycles, but not
    # of watches, or of the lists of nodes for extenders.
    tracer: Tracer | None = None
    watch_seconds: int = WATCH_SECONDS
    request_seconds: float = REQUEST_SECONDS_MAX
    # Resources that become unreadable, or become readable again, are logged after this time without
    # a further change.
    quiet_seconds: float = QUIET_S
    on_start: Callable[[RunningEngine], None] = lambda _: None  # called with the new engine
    # Receives the object changes of all lists and watches, even before this replica leads.
    on_updates: Callable[[Sequence[ObjectUpdate]], None] = lambda _: None


class ClusterRunner:
    """Runs the controllers of one replica; `run` starts them, and `stop` ends them."""

    def __init__(self, options: RunnerOptions) -> None:
        self.clock = LocalClock()
        self._lease_clock = LocalClock(monotonic=_since_boot)
        self.election: Election | None = None
        self.engine: RunningEngine | None = None
        random = Random()  # noqa: S311 - jitter
        self._jitter = random.random
        self._options = options
        self.reflectors = tuple(
            Reflector(
                one,
                self._jitter,
                watch_seconds=options.watch_seconds,
                is_always_served=one.name in REQUIRED,
            )
            for one in options.resources
        )
        self._driver: Driver | None = None
        self._world: ClusterWorld | None = None
        self._sender: Sender | None = None
        self._recovery = Recovery()
        self._synced = asyncio.Event()
        self._ended = asyncio.Event()
        self._problem = ""
        self._timer: asyncio.Handle | None = None
        self._timer_due: Instant = 0
        self._is_woken = False
        self._stepped_at = 0.0
        self._named: set[str] = set()
        # The keys of undecodable objects that have been logged, by resource.
        self._named_objects: dict[str, set[str]] = {}
        self._has_led = False
        self._refused = RefusedResourceLog(
            options.log,
            lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
            perf_counter,
            options.quiet_seconds,
        )
        self._overcommitted = OvercommittedNodes()
        self.overcommitments = 0

    # --- state for callers -----------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether this replica may act now."""
        return self.election is None or self.election.state.is_leader(self._lease_clock.now())

    @property
    def has_synced(self) -> bool:
        """Whether each resource has been listed, is not served, or is forbidden."""
        return all(one.has_synced for one in self.reflectors)

    @property
    def is_settled(self) -> bool:
        """Whether no work is due, waiting or in flight; used by tests."""
        world, sender, driver = self._world, self._sender, self._driver
        if world is None or sender is None or driver is None:
            return False
        return world.is_quiet and sender.is_idle and driver.is_settled and not self._is_woken

    @property
    def requests(self) -> int:
        """The number of requests sent for commands and events."""
        return 0 if self._sender is None else self._sender.requests

    @property
    def events_dropped(self) -> int:
        """The number of events that were not written."""
        return 0 if self._sender is None else self._sender.events_dropped

    def stop(self) -> None:
        """End the run: send the queued commands and events, and release the Lease."""
        self._ended.set()

    # --- the run ---------------------------------------------------------------------------

    async def run(self) -> str:
        """Run until `stop` is called; return the problem that ended the run early, or ""."""
        options = self._options
        async with AsyncExitStack() as stack:
            observe = None if options.tracer is None else options.tracer.observe

            def new_client(connections_max: int) -> RestClient:
                return RestClient(
                    options.config,
                    connections_max=connections_max,
                    bytes_max=_RESPONSE_BYTES_MAX,
                    credentials=options.credentials,
                    observe=observe,
                )

            watches = new_client(len(self.reflectors) + 1)
            api = new_client(options.limits.in_flight_max + 1)
            lease = new_client(1)
            for client in (watches, api, lease):
                await stack.enter_async_context(client)
            tasks = [self._task(self._list_watch(one, watches)) for one in self.reflectors]
            self._compose(api, stack)
            if options.election is not None:
                state = LeaderElection(options.election, self._jitter)
                self.election = Election(
                    state, lease, self._lease_clock.now, self._on_election, options.log
                )
                tasks.append(self._task(self._elect(self.election)))
            try:
                await self._ended.wait()
                if self._has_led and not self._problem:
                    self._record_election("stopped leading")
                await self._finish()
            finally:
                self._refused.flush()
                self._close(tasks)
                await asyncio.gather(*tasks, return_exceptions=True)
            if self.election is not None and not self._problem:
                await self.election.release()
        return self._problem

    def _compose(self, api: RestClient, stack: AsyncExitStack) -> None:
        options = self._options
        named = resources_by_kind((*options.resources, LEASES))
        thread = None
        if options.extenders is not None:
            thread = ExtenderThread(options.extenders, named)
            stack.callback(thread.close)
        sender_options = SenderOptions(
            limits=options.limits,
            clock=self.clock.now,
            jitter=self._jitter,
            may_send=lambda: self.is_leader,
            recorder=EventRecorder(options.host, named) if options.host else None,
            extenders=thread,
            request_seconds=options.request_seconds,
            log=options.log.problem,
        )
        self._sender = Sender(api, named, sender_options)
        self._sender.on_outcome = self.wake
        self._sender.on_hold = self._wake_at
        self._sender.on_failure = self._on_failure
        self._world = ClusterWorld(self.reflectors, self._sender)
        self._sender.world = self._world

    async def _elect(self, election: Election) -> None:
        """Take part in the election. upstream: cmd/kube-scheduler/app/server.go: Run."""
        await self._synced.wait()
        await election.run()

    async def _list_watch(self, reflector: Reflector, client: RestClient) -> None:
        def on_updates(updates: list[ObjectUpdate]) -> None:
            self._notice(reflector)
            self._options.on_updates(updates)
            if self._driver is None:
                self._begin_if_ready()
            elif updates:
                assert self._world is not None
                self._world.observe(updates)
                self.wake()

        clock, recovery = self.clock.now, self._recovery
        await ListWatch(reflector, client, on_updates, clock, recovery=recovery).run()

    def _notice(self, reflector: Reflector) -> None:
        """Log the change if the reflector's resource has become unreadable, or readable again.

        Objects that cannot be decoded are logged too. If this replica has no permission to read a
        resource in REQUIRED, the run ends. For any other resource, the missing permission is logged
        once. When the first missing permission is logged, the command that prints the necessary
        roles is logged, too.
        """
        name, log = reflector.resource.name, self._options.log.problem
        problem = f"status {reflector.refusal}" if reflector.refusal else reflector.problem
        self._refused.notice(name, problem, is_known=reflector.has_listed)
        if reflector.undecodable:
            self._name_undecodable(reflector)
        if not reflector.is_forbidden or name in self._named:
            return
        self._named.add(name)
        if name in REQUIRED:
            self._fail(f"no permission to read {name}; {_ROLES}")
            return
        log(f"no permission to read {name}, so decisions do not take them into account")
        if len(self._named) == 1:
            log(_ROLES)

    def _name_undecodable(self, reflector: Reflector) -> None:
        """Log objects that cannot be decoded, each once, at most UNDECODABLE_NAMED per resource."""
        name, log = reflector.resource.name, self._options.log.problem
        named = self._named_objects.setdefault(name, set())
        for key, problem in reflector.undecodable.items():
            if len(named) > UNDECODABLE_NAMED or key in named:
                continue
            named.add(key)
            if len(named) > UNDECODABLE_NAMED:
                log(f"{name}: more objects cannot be decoded")
                return
            known = "the last known version is used" if key in reflector.objects else "left out"
            log(f"{name} {key or '(unnamed)'} cannot be decoded ({problem[:_TEXT_MAX]}): {known}")

    def _name_absent(self) -> None:
        """Log the built-in resources that the server does not serve."""
        resources = [one.resource for one in self.reflectors if not one.is_served]
        names = sorted(f"{one.plural} ({one.api_version})" for one in resources if is_built_in(one))
        if names:
            absent = ", ".join(names)
            self._options.log.problem(
                f"the server does not serve {absent}, so decisions do not take them into account"
            )

    def _on_election(self) -> None:
        assert self.election is not None
        if self.election.state.has_lost(self._lease_clock.now()):
            self._fail(LOST_LEADERSHIP)
            return
        if self.is_leader and not self._has_led:
            self._has_led = True
            self._record_election("became leader")
        if self._driver is None:
            self._begin_if_ready()

    def _record_election(self, change: str) -> None:
        """Record an Event about the Lease; `change` says what happened, such as `became leader`.

        upstream: resourcelock/leaselock.go: RecordEvent
        """
        assert self.election is not None
        assert self._sender is not None
        config, uid = self.election.state.config, self.election.state.uid
        event = RecordEvent(
            regarding=ObjectRef(LEASES.kind, config.namespace, config.name, uid),
            type="Normal",
            reason="LeaderElection",
            action="",
            note=f"{config.identity} {change}",
            reporting_controller=self._options.component,
        )
        self._sender.record(event, self.clock.now())

    def _begin_if_ready(self) -> None:
        """Build the engine if every resource has been listed and this replica leads.

        An existing engine is kept.
        """
        if not self.has_synced:
            return
        self._synced.set()
        if self._driver is not None or not self.is_leader:
            return
        assert self._world is not None
        self._name_absent()
        now = self.clock.now()
        self.engine = self._options.build(now)
        options = self._options
        timed = SlowCycles(
            self.engine, options.meter, perf_counter_ns, options.log.note, options.tracer
        )
        self._driver = Driver(timed, self._world, now=now)
        self._world.start()
        self._options.on_start(self.engine)
        self.wake()

    def wake(self) -> None:
        """Schedule a step of the engine, at least STEP_GAP_S after the previous step."""
        self._schedule_step(self._stepped_at + STEP_GAP_S - perf_counter())

    def _schedule_step(self, wait_s: float) -> None:
        if self._is_woken:
            return
        self._is_woken = True
        loop = asyncio.get_running_loop()
        if wait_s > 0:
            loop.call_later(wait_s, self._step)
        else:
            loop.call_soon(self._step)

    def _wake_at(self, due: Instant) -> None:
        """Set the timer for a step of the engine to `due`.

        Does nothing if the timer is already set to `due` or to an earlier time.
        """
        if self._timer is not None and self._timer_due <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        wait = self.clock.seconds_until(due) or 0.0
        self._timer = asyncio.get_running_loop().call_later(wait, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()

    def _step(self) -> None:
        """Run the engine once; an exception ends the run, because the state may be half changed."""
        self._is_woken = False
        try:
            self._advance()
        except Exception as failure:  # noqa: BLE001 - asyncio would log it and go on
            self._fail_of_defect(failure)
        self._stepped_at = perf_counter()

    def _advance(self) -> None:
        """Run the engine for at most SLICE_S seconds."""
        driver = self._driver
        if driver is None or self._ended.is_set() or not self.is_leader:
            return
        end = perf_counter() + SLICE_S
        now = max(self.clock.now(), driver.now)

        def is_over() -> bool:
            return perf_counter() > end

        driver.pass_time(now)
        driver.run(max(now, driver.now), stop_when=is_over, pause_when=is_over)
        due = driver.next_due()
        self._check_room()
        if due is not None and due > self.clock.now():
            self._wake_at(due)
        elif due is not None or not driver.is_settled:
            self._schedule_step(0)

    def _check_room(self) -> None:
        """Log and count the nodes that have become overcommitted since the last call."""
        assert self.engine is not None
        for name, resources in self._overcommitted.check(self.engine.cluster):
            self.overcommitments += 1
            lacking = ", ".join(resources)
            self._options.log.problem(
                f"node {name} has less allocatable than its pods request ({lacking})"
            )

    # --- the end ---------------------------------------------------------------------------

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._on_task_end)
        return task

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self._on_failure(failure)

    def _on_failure(self, failure: BaseException) -> None:
        if isinstance(failure, ConnectionConfigError):
            self._fail(str(failure))
        else:
            self._fail_of_defect(failure)

    def _fail_of_defect(self, failure: BaseException) -> None:
        self._options.log.failure("".join(traceback.format_exception(failure)).rstrip())
        self._fail(f"internal error: {type(failure).__name__}: {failure}")

    def _fail(self, problem: str) -> None:
        """End the run immediately because of `problem`; no more requests are sent."""
        if not self._ended.is_set():
            self._problem = problem
            self._ended.set()
            if self._sender is not None:
                self._sender.stop()

    async def _finish(self) -> None:
        """Wait until the queued commands and events are sent, for at most STOP_SECONDS_MAX."""
        end = perf_counter() + STOP_SECONDS_MAX
        sender = self._sender
        while not self._problem and sender is not None and not sender.is_idle:
            if perf_counter() > end:
                return
            await asyncio.sleep(_POLL_S)

    def _close(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._sender is not None:
            self._sender.stop()
