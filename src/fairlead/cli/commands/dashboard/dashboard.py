"""Dashboard: a page about a local cluster, served beside its API on a loopback port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from socket import socket

from fairlead.apiserver.http.app import ApiApp, PathHandler
from fairlead.apiserver.http.listener import Listener
from fairlead.apiserver.negotiation.request_error import no_method
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.request import Request, Response
from fairlead.cli.commands.dashboard.action import Actions
from fairlead.cli.commands.dashboard.app import DashboardApp
from fairlead.cli.commands.dashboard.command import PATH
from fairlead.cli.commands.dashboard.live_recording import CopiedReports, LiveRecording
from fairlead.cli.commands.dashboard.question import Questions
from fairlead.cli.commands.dashboard.sessions import Sessions
from fairlead.engine.core.reporter import Reporter
from fairlead.whatif.report.write import render_dashboard
from fairlead.worlds.local.cluster import LocalCluster

Wrapper = Callable[[Reporter], Reporter]


class Dashboard:
    """Serves the dashboard on the socket `listening`; a Companion."""

    def __init__(self, listening: socket) -> None:
        """Listen on `listening`, an open socket on a loopback address."""
        self._listening = listening
        self._port: int = listening.getsockname()[1]
        # Cookies do not distinguish ports, so the name does.
        self._sessions = Sessions(f"fairlead-{self._port}")
        self._reports: CopiedReports | None = None

    @property
    def handlers(self) -> Mapping[str, PathHandler]:
        """See Companion."""
        return {PATH: self._answer_link}

    def new_link(self) -> str:
        """Return a URL that opens the dashboard once."""
        return f"http://127.0.0.1:{self._port}/login?code={self._sessions.new_code()}"

    def logging(self, logging: Wrapper | None) -> Wrapper:
        """Return `logging` such that the dashboard gets a copy of every record."""

        def wrap(reporter: Reporter) -> Reporter:
            self._reports = CopiedReports(reporter if logging is None else logging(reporter))
            return self._reports

        return wrap

    @asynccontextmanager
    async def serving(self, cluster: LocalCluster, app: ApiApp) -> AsyncIterator[None]:
        """See Companion."""
        recording = LiveRecording(cluster, self._reports)
        served = DashboardApp(
            render_dashboard(),
            recording=recording,
            clock=cluster.clock,
            sessions=self._sessions,
            actions=Actions(app.handle, cluster.store),
            questions=Questions(cluster),
            port=self._port,
        )
        listener = Listener(served, self._listening, None)
        await listener.start()
        try:
            yield
        finally:
            await listener.stop()
            recording.close()

    async def _answer_link(self, request: Request) -> Response:
        """Return a new link, as JSON. Raises ApiError 405."""
        if request.method != "POST":
            raise no_method()
        return Response(200, (encode({"url": self.new_link()}),))
