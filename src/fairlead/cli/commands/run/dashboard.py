"""ClusterDashboard: the dashboard of `fairlead run`, which shows a real cluster, read-only.

What-ifs and explanations run `fairlead` in another process, which reads the cluster by itself: this
process knows only what scheduling needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from socket import socket

from fairlead.api.objects import ApiObject
from fairlead.cli.commands.dashboard.dashboard import Dashboard, ShownCluster, Wrapper
from fairlead.cli.commands.dashboard.live_recording import LiveRecording
from fairlead.client.reflector import ObjectUpdate
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.worlds.cluster.runner import ClusterRunner


class ClusterDashboard:
    """Shows what the reflectors of a ClusterRunner know, from their first lists on."""

    def __init__(self, listening: socket, name: str, arguments: Sequence[str]) -> None:
        """Listen on `listening`.

        `name` is that of the cluster. `arguments` name it, and today's configuration, to `fairlead
        whatif` and `fairlead explain`.
        """
        self._dashboard = Dashboard(listening)
        self._name = name
        self._arguments = tuple(arguments)
        self._runner: ClusterRunner | None = None
        self._recording: LiveRecording | None = None
        self._is_complete = False

    def new_link(self) -> str:
        """See Dashboard."""
        return self._dashboard.new_link()

    def logging(self, logging: Wrapper | None) -> Wrapper:
        """See Dashboard."""
        return self._dashboard.logging(logging)

    def observe(self, updates: Sequence[ObjectUpdate]) -> None:
        """Accept the differences that a reflector has found, after it has applied them."""
        if self._recording is None or self._runner is None or not self._runner.has_synced:
            return
        if not self._is_complete:
            self._is_complete = True
            self._recording.restart()
            return
        for update in updates:
            change = ObjectDeleted if update.is_deleted else ObjectChanged
            self._recording.observe(change(update.object))

    @asynccontextmanager
    async def serving(self, runner: ClusterRunner) -> AsyncIterator[None]:
        """Serve during the `with` block, in the running event loop."""
        self._runner = runner
        shown = ShownCluster(
            title=self._name[:1].upper() + self._name[1:],
            clock=runner.clock,
            objects=self._objects,
            arguments=lambda _folder: self._arguments,
        )
        async with self._dashboard.showing(shown) as self._recording:
            yield

    def _objects(self) -> list[ApiObject]:
        if self._runner is None or not self._is_complete:
            return []
        return [view for one in self._runner.reflectors for view in one.objects.values()]
