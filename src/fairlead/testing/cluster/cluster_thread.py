"""ClusterThread: runs a local cluster in its own thread, served over HTTPS on a free port.

Clients can connect from any thread. `call` runs test code in the cluster's thread, between two
requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.apiserver.http.listener import Certificate
from fairlead.apiserver.request import ADMIN
from fairlead.testing.refusal import hides_traceback
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.kubeconfig import kubeconfig, write_secret
from fairlead.worlds.local.random_ids import new_token
from fairlead.worlds.local.server.runner import Runner
from fairlead.worlds.local.server.serve import ServeOptions, served

HOST: Final = "127.0.0.1"
STOP_SECONDS_MAX: Final = 10.0

Result = TypeVar("Result")

__tracebackhide__ = hides_traceback


class ClusterAccess(Struct, frozen=True):
    """Address and credentials of the cluster; `authority` is the CA certificate as PEM."""

    url: str
    token: str
    authority: str
    kubeconfig: Path


class ClusterThread:
    """A local cluster and the thread that runs it; created by the function `running`."""

    def __init__(
        self, cluster: LocalCluster, serve_options: ServeOptions, access: ClusterAccess
    ) -> None:
        """Prepare the thread; `start` runs it."""
        self.cluster = cluster
        self.access = access
        self._serve_options = serve_options
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready: Future[Runner] = Future()
        self._thread = Thread(target=self._run, name="fairlead-cluster", daemon=True)

    @property
    def runner(self) -> Runner:
        """The driver of the cluster; use it only in functions that are passed to `call`."""
        return self._ready.result()

    def start(self) -> None:
        """Start the cluster and wait until it accepts clients.

        Raises the exception of the cluster's thread if the start fails.
        """
        self._thread.start()
        self._ready.result()

    def stop(self) -> None:
        """Stop the cluster and close all connections."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(STOP_SECONDS_MAX)

    def call(self, act: Callable[[Runner], Awaitable[Result]]) -> Result:
        """Call `act` in the cluster's thread; return its result or raise its exception."""

        async def acting() -> Result:
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
        async with served(self.cluster, self._serve_options) as runner:
            self._ready.set_result(runner)
            await self._ended.wait()


@contextmanager
def running(options: LocalOptions, clock: LocalClock, folder: Path) -> Iterator[ClusterThread]:
    """Run a new cluster during the `with` block; its kubeconfig and keys are in `folder`."""
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
    # Clients check certificates against their own clocks, not the cluster's.
    real_now = datetime.now(UTC)  # noqa: TID251
    authority, token = new_authority(real_now), new_token()
    server = new_server(authority, (HOST,), real_now)
    options = replace(options, address=address, authority=authority.certificate)
    cluster = LocalCluster(options, clock, {token: ADMIN}, new_authority(real_now).key)
    access = ClusterAccess(
        f"https://{address}", token, authority.certificate, folder / "kubeconfig"
    )
    chain, key = folder / "server.crt", folder / "server.key"
    write_secret(chain, server.certificate)
    write_secret(key, server.key)
    write_secret(access.kubeconfig, kubeconfig(access.url, token, authority.certificate))
    serve_options = ServeOptions(
        listening=listening,
        authenticate=cluster.tokens,
        certificate=Certificate(str(chain), str(key)),
    )
    return ClusterThread(cluster, serve_options, access)
