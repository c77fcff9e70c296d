"""Election: sends the Lease requests that a LeaderElection returns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.client.api_resource import ApiResource
from fairlead.client.leader_election import LeaderElection, WriteLease
from fairlead.client.rest_client import ApiAnswer, ApiRequest, RestClient
from fairlead.engine.core.instant import Instant
from fairlead.worlds.cluster.telemetry.run_log import SILENT, RunLog

LEASES: Final = ApiResource("coordination.k8s.io/v1", "Lease", "leases", is_namespaced=True)
NOT_A_LEASE: Final = ApiAnswer(200, message="the answer is not a Lease")
RELEASE_SECONDS_MAX: Final = 3.0  # for each request
_RELEASE_ATTEMPTS_MAX: Final = 3
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class Election:
    """Lets one replica take part in a leader election, until the replica loses leadership."""

    def __init__(
        self,
        state: LeaderElection,
        client: RestClient,
        clock: Callable[[], Instant],
        on_change: Callable[[], None],
        log: RunLog = SILENT,
    ) -> None:
        """`state` decides which requests are sent; `clock` returns the time in ns.

        `on_change` is called after each attempt, and when leadership ends. `log` receives one line
        for each other replica that is found to hold the Lease. If two attempts in a row fail, `log`
        receives the reason.
        """
        self.state = state
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._log = log
        self._logged_holder = ""
        self._has_written = False  # whether this replica has tried to write the Lease
        self._problem = ""  # of the last attempt
        self._logged: set[str] = set()  # problems since the last success
        config = state.config
        self._name = f"the Lease {config.namespace}/{config.name}"
        self._path = LEASES.path(config.namespace, config.name)
        self._collection = LEASES.collection(config.namespace)

    async def run(self) -> None:
        """Acquire and renew the Lease until leadership is lost. Raises ConnectionConfigError."""
        while not self.state.has_lost(self._clock()):
            await self._attempt()
            self._on_change()
            await asyncio.sleep(max(0.0, self._until_next()))
        self._on_change()

    async def release(self) -> None:
        """Give up leadership, so that another replica can take over immediately.

        The caller must cancel `run` first. The server may still process a cancelled write at any
        time. Therefore this method reads the Lease before it frees the Lease. If the Lease changes
        in between, this method reads it again.
        """
        if not self._has_written:
            return
        # upstream: client-go/tools/leaderelection/leaderelection.go: release. It makes one attempt.
        for _ in range(_RELEASE_ATTEMPTS_MAX):
            read = ApiRequest("GET", self._path)
            answer = await self._client.exchange(read, RELEASE_SECONDS_MAX)
            write = self.state.release(answer.body if answer.is_success else None, self._clock())
            if write is None:
                return
            answer = await self._write(write, RELEASE_SECONDS_MAX)
            if answer.status != _CONFLICT:
                return

    def _until_next(self) -> float:
        """Return the seconds until the next attempt, or until leadership ends if that is sooner."""
        due = self.state.next_attempt()
        deadline = self.state.deadline()
        due = due if deadline is None else min(due, deadline)
        return (due - self._clock()) / NANOSECONDS_PER_SECOND

    async def _attempt(self) -> None:
        state, clock = self.state, self._clock
        step = state.begin(clock())
        if not isinstance(step, WriteLease):
            answer = await self._client.exchange(ApiRequest("GET", self._path), self._seconds_max())
            if not answer.is_success and answer.status != _NOT_FOUND:
                self._fail("read", answer)
                return
            found = state.read(answer.body if answer.is_success else None, clock())
            if found is None:
                self._wait_for_holder()
                return
            step = found
        self._has_written = True
        answer = await self._write(step, self._seconds_max())
        if not answer.is_success:
            self._fail("written", answer)
        elif state.written(answer.body, clock()):
            self._succeed()
        else:
            self._fail("written", NOT_A_LEASE)

    def _fail(self, verb: str, answer: ApiAnswer) -> None:
        """Record that an attempt failed.

        The reason is logged only if the previous attempt also failed. A single failure may be a
        conflict with another replica.
        """
        self.state.failed()
        before, self._problem = self._problem, f"{self._name} cannot be {verb}: {answer.message}"
        if before and self._problem not in self._logged:
            self._log.problem(f"{self._problem}; trying again")
            self._logged.add(self._problem)

    def _succeed(self) -> None:
        self._problem = ""
        self._logged.clear()

    def _wait_for_holder(self) -> None:
        """Log, once for each holder of the Lease, that this replica waits for the holder.

        Call this method after a read of the Lease. If no holder is known, because the response was
        not a Lease, record a failed read (`_fail`) instead.
        """
        holder = self.state.holder
        if not holder:
            self._fail("read", NOT_A_LEASE)
            return
        self._succeed()
        if holder != self._logged_holder and not self.state.has_lost(self._clock()):
            shown = holder if holder.isprintable() else repr(holder)
            self._log.note(f"{self._name} is held by {shown}; waiting for it")
            self._logged_holder = holder

    async def _write(self, write: WriteLease, seconds_max: float) -> ApiAnswer:
        method, path = ("POST", self._collection) if write.creates else ("PUT", self._path)
        return await self._client.exchange(ApiRequest(method, path, write.body), seconds_max)

    def _seconds_max(self) -> float:
        """Return the timeout of one request in seconds.

        The timeout is half of `renew_deadline`, or the time until leadership ends if that time is
        shorter.
        """
        deadline = self.state.deadline()
        left = None if deadline is None else (deadline - self._clock()) / NANOSECONDS_PER_SECOND
        period = self.state.config.renew_deadline / 2 / NANOSECONDS_PER_SECOND
        return max(0.01, period if left is None else min(period, left))
