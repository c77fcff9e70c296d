"""OnSocket: serves Fairlead's cluster on a TLS socket, in a thread, for external programs.

TLS is necessary because kubectl sends tokens only over TLS. `Pace` controls the clock.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic_ns
from typing import Final, Self

from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.http.listener import Certificate, Listener
from fairlead.apiserver.request import User
from fairlead.conformance.api.server.clock_pace import (
    PAUSE_AFTER_CHANGE,
    PAUSE_AFTER_READ,
    STARTUP_TIME,
    Pace,
)
from fairlead.conformance.api.server.own_cluster import OwnCluster
from fairlead.engine.core.instant import Instant

HOST: Final = "127.0.0.1"
BACKLOG: Final = 128
_TICK_S: Final = 0.01


class OnSocket:
    """A context manager that serves a cluster at `url` for one command at a time."""

    def __init__(self, cluster: OwnCluster, directory: Path) -> None:
        """Write certificates to `directory`; `__enter__` starts serving."""
        self._cluster = cluster
        self._pace = Pace(cluster.now)
        self._is_without_controllers = False
        self._seen = 0
        self.authority_file, self._certificate = _certified(directory)
        self._listening = socket.create_server((HOST, 0), backlog=BACKLOG)
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="own cluster", daemon=True)

    @property
    def url(self) -> str:
        """The URL at which clients reach the server."""
        return f"https://{HOST}:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        """Start serving; return when clients can connect."""
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def begin(
        self,
        *,
        immediately: bool = False,
        without_controllers: bool = False,
        between: tuple[Instant, Instant | None] = (0, None),
    ) -> Instant:
        """Start another command and return its start time.

        If `immediately` is set, the command starts after STARTUP_TIME. Otherwise the command starts
        after a pause in which controllers react to earlier changes. If `without_controllers` is
        set, controllers do nothing until a client starts a watch. `between` is (earliest start
        time, latest time of the clock during the command); None means no limit.
        """

        def begin() -> None:
            self._is_without_controllers = without_controllers
            version = self._cluster.store.storage.version
            rest = PAUSE_AFTER_READ if version == self._seen else PAUSE_AFTER_CHANGE
            self._seen = version
            earliest, self._pace.latest = between
            self._pace.begin(STARTUP_TIME if immediately else rest)
            self._pace.reach(earliest)

        return self._move(begin)

    def reach(self, instant: Instant) -> None:
        """Advance the clock to `instant`, but not beyond the limit that `begin` set."""
        self._move(lambda: self._pace.reach(instant))

    def _move(self, move: Callable[[], None]) -> Instant:
        async def moving() -> Instant:
            move()
            return self._advance()

        return asyncio.run_coroutine_threadsafe(moving(), self._loop).result()

    def _advance(self) -> Instant:
        self._cluster.now = self._pace.now
        if not self._is_without_controllers:
            self._cluster.settle()
        return self._pace.now

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        cluster = self._cluster
        app = ApiApp(
            cluster.server, self._authenticated, lambda: cluster.now, self._advance_after_write
        )
        listener = Listener(app, self._listening, self._certificate)
        await listener.start()
        ticking = asyncio.create_task(self._tick())
        self._ready.set()
        await self._ended.wait()
        ticking.cancel()
        await listener.stop()

    def _authenticated(self, headers: Mapping[str, str]) -> User:
        """Advance the clock for a new request, and return the user of the request."""
        self._pace.ask(monotonic_ns())
        self._advance()
        return self._cluster.tokens(headers)

    async def _advance_after_write(self, _version: int = 0) -> None:
        self._advance()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            if self._cluster.server.watches.count():
                self._is_without_controllers = False
                self._pace.wait(monotonic_ns())
                self._advance()


def _certified(directory: Path) -> tuple[Path, Certificate]:
    """Create a certificate authority and a server certificate that it signed.

    Returns (file of the authority's certificate, server certificate).
    """
    # Clients check certificates with the machine's clock.
    now = datetime.now(UTC)  # noqa: TID251
    authority = new_authority(now)
    server = new_server(authority, (HOST,), now)
    texts = {"ca.crt": authority.certificate, "server.crt": server.certificate}
    texts["server.key"] = server.key
    for name, text in texts.items():
        (directory / name).write_text(text)
    certificate = Certificate(str(directory / "server.crt"), str(directory / "server.key"))
    return directory / "ca.crt", certificate
