"""Dashboard: a web page about a running cluster, served on its own loopback port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import socket

from fairlead.apiserver.http.listener import Listener
from fairlead.cli.commands.dashboard.app import DashboardApp, Handler
from fairlead.cli.commands.dashboard.live_recording import CopiedReports, LiveRecording, Objects
from fairlead.cli.commands.dashboard.question import ClusterArguments, Questions
from fairlead.cli.commands.dashboard.sessions import Sessions
from fairlead.engine.core.reporter import Reporter
from fairlead.whatif.report.write import render_dashboard
from fairlead.whatif.snapshot.snapshot import PLACEHOLDER
from fairlead.worlds.local.clock import LocalClock

Wrapper = Callable[[Reporter], Reporter]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCluster:
    """The cluster that a dashboard shows: its title, clock and objects."""

    title: str
    clock: LocalClock
    objects: Objects
    # Returns the options with which `fairlead whatif` and `fairlead explain` read the cluster.
    arguments: ClusterArguments
    whatif_options: Sequence[str] = ()  # further options of what-ifs
    # Names the cluster in printed commands (see `Questions`).
    source: Sequence[str] = (PLACEHOLDER,)
    # Handlers of the POST requests that change the cluster, keyed by path. If there are none, the
    # page has no controls.
    actions: Mapping[str, Handler] = field(default_factory=dict)


class Dashboard:
    """Serves a dashboard on the socket `listening`."""

    def __init__(self, listening: socket) -> None:
        """`listening` is an open socket on a loopback address."""
        self._listening = listening
        self._port: int = listening.getsockname()[1]
        # Browsers send a cookie to every port of a host, so each dashboard has its own cookie name.
        self._sessions = Sessions(f"fairlead-{self._port}")
        self._reports: CopiedReports | None = None

    def new_link(self) -> str:
        """Return a URL that opens the dashboard, and that works once."""
        return f"http://127.0.0.1:{self._port}/login?code={self._sessions.new_code()}"

    def logging(self, logging: Wrapper | None) -> Wrapper:
        """Return a function that wraps a Reporter; the wrapper copies records to the dashboard.

        If `logging` is not None, the function first wraps the Reporter with `logging`.
        """

        def wrap(reporter: Reporter) -> Reporter:
            self._reports = CopiedReports(reporter if logging is None else logging(reporter))
            return self._reports

        return wrap

    @asynccontextmanager
    async def showing(self, cluster: ShownCluster) -> AsyncIterator[LiveRecording]:
        """Serve the dashboard during the `with` block; yield its recording.

        The caller passes the changes of the cluster to the recording.
        """
        recording = LiveRecording(cluster.title, cluster.clock, cluster.objects, self._reports)
        app = DashboardApp(
            render_dashboard(cluster.title, has_controls=bool(cluster.actions)),
            recording=recording,
            clock=cluster.clock,
            sessions=self._sessions,
            actions=cluster.actions,
            questions=Questions(cluster.arguments, cluster.whatif_options, cluster.source),
            port=self._port,
        )
        listener = Listener(app, self._listening, None)
        await listener.start()
        try:
            yield recording
        finally:
            await listener.stop()
            recording.close()
