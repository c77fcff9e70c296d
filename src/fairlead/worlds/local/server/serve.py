"""serve_cluster: serves a local cluster on a socket until a termination signal."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from socket import socket
from typing import Final, Protocol

import uvloop
from msgspec import Struct

from fairlead.apiserver.endpoints.audit import AuditBackend, AuditLevel
from fairlead.apiserver.http.app import NO_HANDLERS, ApiApp, Authenticate, PathHandler
from fairlead.apiserver.http.listener import Certificate, Listener
from fairlead.worlds.gc_thresholds import collect_briefly
from fairlead.worlds.local.cluster import LocalCluster
from fairlead.worlds.local.server import backup_endpoint, clock_control, metrics_endpoint
from fairlead.worlds.local.server.backup_endpoint import BackupEndpoint
from fairlead.worlds.local.server.clock_control import ClockControl
from fairlead.worlds.local.server.metrics_endpoint import MetricsEndpoint
from fairlead.worlds.local.server.runner import Runner
from fairlead.worlds.local.write_audit import WriteAudit

MEMORY_RETURN_INTERVAL_S: Final = 20.0
# Less than the 256 KiB that uvloop allocates for each TLS connection, and mostly leaves untouched.
MAPPED_BLOCK_BYTES_MIN: Final = 192 << 10
_M_MMAP_THRESHOLD: Final = -3  # malloc.h
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Companion(Protocol):
    """An additional service that runs beside the API of a local cluster, such as the dashboard."""

    @property
    def handlers(self) -> Mapping[str, PathHandler]:
        """The handlers of this service, keyed by path, for requests of authorized users."""
        ...

    def serving(self, cluster: LocalCluster, app: ApiApp) -> AbstractAsyncContextManager[object]:
        """Return a context manager that runs this companion in the running event loop."""
        ...


class ServeOptions(Struct, frozen=True, kw_only=True):
    """The socket to listen on, the authentication of clients, and the data directory.

    The writes of the cluster's controllers are audited only if the level of `audit` is not
    Metadata. `data_dir` is None for a cluster in memory. `companion` is another service beside the
    API, such as the dashboard.
    """

    listening: socket
    authenticate: Authenticate
    certificate: Certificate | None = None
    audit: AuditBackend | None = None
    data_dir: Path | None = None
    companion: Companion | None = None


def serve_cluster(
    cluster: LocalCluster, options: ServeOptions, on_ready: Callable[[], None]
) -> None:
    """Serve `cluster` until a signal in ENDING; call `on_ready` once connections are accepted."""
    collect_briefly()
    map_large_blocks()
    # uvloop warns of every write to a connection that a client has closed.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    uvloop.run(_serve(cluster, options, on_ready))


async def _serve(
    cluster: LocalCluster, options: ServeOptions, on_ready: Callable[[], None]
) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in ENDING:
        # Under nohup, SIGHUP is ignored and must stay ignored.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, ended.set)
    async with served(cluster, options):
        on_ready()
        await ended.wait()


@asynccontextmanager
async def served(cluster: LocalCluster, options: ServeOptions) -> AsyncIterator[Runner]:
    """Run `cluster` and accept connections, in the running event loop, during the `with` block."""
    runner = Runner(cluster)
    app = ApiApp(
        cluster.server,
        options.authenticate,
        cluster.clock.now,
        None if cluster.journal is None else cluster.journal.wait_until_durable,
        handlers={
            backup_endpoint.PATH: BackupEndpoint(options.data_dir, cluster.journal),
            clock_control.PATH: ClockControl(runner),
            metrics_endpoint.PATH: MetricsEndpoint(
                cluster.server, cluster.store, cluster.metrics.exposition
            ),
            **(NO_HANDLERS if options.companion is None else options.companion.handlers),
        },
        audit=options.audit,
    )
    if options.audit is not None and options.audit.level is not AuditLevel.METADATA:
        cluster.control_plane.audit_writes(WriteAudit(options.audit, cluster.clock.now))
    listener = Listener(app, options.listening, options.certificate)
    await listener.start()
    runner.start()
    memory = asyncio.create_task(_return_memory())
    companion = (
        nullcontext() if options.companion is None else options.companion.serving(cluster, app)
    )
    try:
        async with companion:
            yield runner
    finally:
        memory.cancel()
        runner.stop()
        await listener.stop()
        if cluster.journal is not None:
            cluster.journal.close()


def map_large_blocks() -> None:
    """Make glibc allocate memory blocks of MAPPED_BLOCK_BYTES_MIN bytes or more with mmap.

    The system provides the pages of a mapped block when they are first written to, and gets them
    back when the block is freed. By default, glibc maps only blocks above a threshold, and raises
    the threshold to the size of each mapped block that is freed. Later blocks would then not be
    mapped, and the buffers of many connections would stay in memory.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BLOCK_BYTES_MIN)


async def _return_memory() -> None:
    """Release freed memory to the system every 20 seconds, if the C library is glibc.

    After many slow clients at the same time, glibc would otherwise keep freed memory that lies
    below a block in use.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(MEMORY_RETURN_INTERVAL_S)
        trim(0)
