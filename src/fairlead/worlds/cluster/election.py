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

LEASES: Final = ApiResource("coordination.k8s.io/v1", "Lease", "leases", is_namespaced=True)
RELEASE_SECONDS_MAX: Final = 3.0
_NOT_FOUND: Final = 404


class Election:
    """Takes part in a leader election for one replica, until the replica loses leadership."""

    def __init__(
        self,
        state: LeaderElection,
        client: RestClient,
        clock: Callable[[], Instant],
        on_change: Callable[[], None],
    ) -> None:
        """`on_change` is called after each attempt, and when leadership ends."""
        self.state = state
        self._client = client
        self._clock = clock
        self._on_change = on_change
        config = state.config
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
        """Give up leadership, so that another replica can take over immediately."""
        write = self.state.release(self._clock())
        if write is not None:
            await self._write(write, RELEASE_SECONDS_MAX)

    def _until_next(self) -> float:
        """Return the seconds until the next attempt, but at most until leadership ends."""
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
                state.failed()
                return
            found = state.read(answer.body if answer.is_success else None, clock())
            if found is None:
                return
            step = found
        answer = await self._write(step, self._seconds_max())
        if answer.is_success:
            state.written(answer.body, clock())
        else:
            state.failed()

    async def _write(self, write: WriteLease, seconds_max: float) -> ApiAnswer:
        method, path = ("POST", self._collection) if write.creates else ("PUT", self._path)
        return await self._client.exchange(ApiRequest(method, path, write.body), seconds_max)

    def _seconds_max(self) -> float:
        """Return the timeout of one request in seconds.

        It is half of `renew_deadline`, or the time until leadership ends if that is shorter.
        """
        deadline = self.state.deadline()
        left = None if deadline is None else (deadline - self._clock()) / NANOSECONDS_PER_SECOND
        period = self.state.config.renew_deadline / 2 / NANOSECONDS_PER_SECOND
        return max(0.01, period if left is None else min(period, left))
