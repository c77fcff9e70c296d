"""ClusterDashboard: the read-only dashboard of `fairlead run`, which shows a real cluster.

What-ifs and explanations run `fairlead` in another process, which reads the cluster again. This is
necessary because `fairlead run` itself reads only those objects that scheduling needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from socket import socket

from fairlead.api.objects import ApiObject
from fairlead.cli.commands.dashboard.dashboard import Dashboard, ShownCluster, Wrapper
from fairlead.cli.commands.dashboard.live_recording import LiveRecording
from fairlead.client.cache.reflector import ObjectUpdate
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.worlds.cluster.runner import ClusterRunner


class ClusterDashboard:
    """Shows a cluster as soon as the reflectors of its ClusterRunner have synced."""

    def __init__(
        self,
        listening: socket,
        name: str,
        arguments: Sequence[str],
        whatif_options: Sequence[str],
    ) -> None:
        """Serve on the socket `listening`.

        `arguments` are the options with which `fairlead whatif` and `fairlead explain` read the
        cluster and its current configuration. `fairlead whatif` also gets `whatif_options`.
        """
        self._dashboard = Dashboard(listening)
        self._name = name
        self._arguments = tuple(arguments)
        self._whatif_options = tuple(whatif_options)
        self._runner: ClusterRunner | None = None
        self._recording: LiveRecording | None = None
        self._is_complete = False

    def new_link(self) -> str:
        """Return a URL that opens the dashboard, and that works once."""
        return self._dashboard.new_link()

    def logging(self, logging: Wrapper | None) -> Wrapper:
        """Return a function that wraps a Reporter; see `Dashboard.logging`."""
        return self._dashboard.logging(logging)

    def observe(self, updates: Sequence[ObjectUpdate]) -> None:
        """Record the updates of a reflector; called after the reflector has applied them."""
        if self._recording is None or self._runner is None or not self._runner.has_synced:
            return
        now = self._runner.clock.now()
        if not self._is_complete:
            self._is_complete = True
            self._recording.restart(now)
            return
        for update in updates:
            change = ObjectDeleted if update.is_deleted else ObjectChanged
            self._recording.observe(change(update.object), now)

    @asynccontextmanager
    async def serving(self, runner: ClusterRunner) -> AsyncIterator[None]:
        """Serve the dashboard of `runner` during the `with` block, in the running event loop."""
        self._runner = runner
        shown = ShownCluster(
            title=self._name[:1].upper() + self._name[1:],
            clock=runner.clock,
            objects=self._objects,
            arguments=lambda _folder: self._arguments,
            whatif_options=self._whatif_options,
        )
        async with self._dashboard.showing(shown) as self._recording:
            yield

    def _objects(self) -> list[ApiObject]:
        if self._runner is None or not self._is_complete:
            return []
        return [view for one in self._runner.reflectors for view in one.objects.values()]
