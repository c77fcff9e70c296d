"""ClusterThread: a local cluster that lives in a thread of its own, served on a free port.

Clients come by HTTPS from anywhere, also from the thread that holds this object. What that thread
itself wants of the cluster it has done over there, between two requests (`call`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Final, TypeVar

from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.apiserver.http.listener import Certificate
from fairlead.apiserver.request import ADMIN
from fairlead.testing.refusal import speaks_for_itself
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.kubeconfig import kubeconfig, write_secret
from fairlead.worlds.local.random_ids import new_token
from fairlead.worlds.local.server.runner import Runner
from fairlead.worlds.local.server.serve import ServeOptions, served

HOST: Final = "127.0.0.1"
STOP_SECONDS_MAX: Final = 10.0

Answer = TypeVar("Answer")

__tracebackhide__ = speaks_for_itself


@dataclass(frozen=True, slots=True)
class Place:
    """Where clients find the cluster, and how they come in; `authority` is its CA, as PEM."""

    url: str
    token: str
    authority: str
    kubeconfig: Path


class ClusterThread:
    """A running cluster; made by `running`."""

    def __init__(self, cluster: LocalCluster, door: ServeOptions, place: Place) -> None:
        """Nothing happens before `start`."""
        self.cluster = cluster
        self.place = place
        self._door = door
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready: Future[Runner] = Future()
        self._thread = Thread(target=self._run, name="fairlead-cluster", daemon=True)

    @property
    def runner(self) -> Runner:
        """What drives the cluster; to be touched inside `call` only."""
        return self._ready.result()

    def start(self) -> None:
        """Come back when clients may come. Raises what kept the cluster from it."""
        self._thread.start()
        self._ready.result()

    def stop(self) -> None:
        """End it, and all connections with it."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(STOP_SECONDS_MAX)

    def call(self, act: Callable[[Runner], Awaitable[Answer]]) -> Answer:
        """Have `act` done where the cluster lives; what it gives or raises."""

        async def acting() -> Answer:
            return await act(self.runner)

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as cause:
            if self._ready.done():
                raise
            self._ready.set_exception(cause)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        async with served(self.cluster, self._door) as runner:
            self._ready.set_result(runner)
            await self._ended.wait()


@contextmanager
def running(options: LocalOptions, clock: LocalClock, folder: Path) -> Iterator[ClusterThread]:
    """A fresh cluster while the block lasts; its kubeconfig and keys are in `folder`."""
    with socket() as listening:
        listening.bind((HOST, 0))
        listening.listen()
        thread = _prepared(options, clock, folder, listening)
        thread.start()
        try:
            yield thread
        finally:
            thread.stop()


def _prepared(
    options: LocalOptions, clock: LocalClock, folder: Path, listening: socket
) -> ClusterThread:
    address = f"{HOST}:{listening.getsockname()[1]}"
    # Whether a certificate is good is judged by the clocks of clients, not by the cluster's.
    real_now = datetime.now(UTC)  # noqa: TID251
    authority, token = new_authority(real_now), new_token()
    server = new_server(authority, (HOST,), real_now)
    options = replace(options, address=address, authority=authority.certificate)
    cluster = LocalCluster(options, clock, {token: ADMIN}, new_authority(real_now).key)
    place = Place(f"https://{address}", token, authority.certificate, folder / "kubeconfig")
    chain, key = folder / "server.crt", folder / "server.key"
    write_secret(chain, server.certificate)
    write_secret(key, server.key)
    write_secret(place.kubeconfig, kubeconfig(place.url, token, authority.certificate))
    door = ServeOptions(
        listening=listening,
        authenticate=cluster.tokens,
        certificate=Certificate(str(chain), str(key)),
    )
    return ClusterThread(cluster, door, place)
