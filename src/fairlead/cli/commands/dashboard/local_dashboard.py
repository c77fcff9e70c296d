"""LocalDashboard: the dashboard of a local cluster, served beside its API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Final

from fairlead.api.codec import DecodeError, decode_stored
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject
from fairlead.apiserver.http.app import ApiApp, PathHandler
from fairlead.apiserver.negotiation.request_error import no_method
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.cli.commands.dashboard.action import Actions
from fairlead.cli.commands.dashboard.command import PATH
from fairlead.cli.commands.dashboard.dashboard import Dashboard, ShownCluster, Wrapper
from fairlead.cli.commands.dashboard.live_recording import LiveRecording
from fairlead.cli.commands.dashboard.question import SNAPSHOT
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES
from fairlead.whatif.snapshot.snapshot import encode_snapshot
from fairlead.worlds.informer import is_watched, stimulus_if_decodable
from fairlead.worlds.local.cluster import LocalCluster

TITLE: Final = "Local cluster"


class LocalDashboard:
    """Serves the dashboard of a local cluster on a loopback socket; implements Companion."""

    def __init__(self, listening: socket, kubeconfig: Path) -> None:
        """`listening` is an open socket on a loopback address.

        `kubeconfig` is the path of the cluster's kubeconfig. Printed commands contain this path.
        """
        self._dashboard = Dashboard(listening)
        self._kubeconfig = kubeconfig

    @property
    def handlers(self) -> Mapping[str, PathHandler]:
        """The handler of requests for a link to the dashboard, keyed by the requests' path."""
        return {PATH: self._answer_link}

    def new_link(self) -> str:
        """Return a URL that opens the dashboard, and that works once."""
        return self._dashboard.new_link()

    def logging(self, logging: Wrapper | None) -> Wrapper:
        """Return a function that wraps a Reporter; see `Dashboard.logging`."""
        return self._dashboard.logging(logging)

    @asynccontextmanager
    async def serving(self, cluster: LocalCluster, app: ApiApp) -> AsyncIterator[None]:
        """Serve the dashboard during the `with` block; see `Companion.serving`."""
        actions = Actions(app.handle, cluster.store)
        shown = ShownCluster(
            title=TITLE,
            clock=cluster.clock,
            objects=lambda: objects_of(cluster),
            arguments=lambda folder: _written_snapshot(cluster, folder),
            source=("--kubeconfig", str(self._kubeconfig)),
            actions={"/clock": actions.control_clock, "/node": actions.change_node},
        )
        async with self._dashboard.showing(shown) as recording:
            unsubscribe = cluster.store.subscribe(
                lambda change: observe(
                    recording,
                    change,
                    cluster.now(),
                    by_client=not cluster.control_plane.is_performing,
                )
            )
            try:
                yield
            finally:
                unsubscribe()

    async def _answer_link(self, request: Request) -> Response:
        """Return a new link to the dashboard as JSON; raise ApiError if `request` is not a POST."""
        if request.method != "POST":
            raise no_method()
        return Response(200, (encode({"url": self.new_link()}),))


def objects_of(cluster: LocalCluster) -> list[ApiObject]:
    """Return all objects of `cluster` that its controllers receive."""
    kinds = [kind for kind in cluster.store.storage.kinds() if is_watched(kind)]
    views = (_view(obj) for kind in kinds for obj in cluster.store.list(kind))
    return [view for view in views if view is not None]


def observe(
    recording: LiveRecording, change: StoredChange, now: Instant, *, by_client: bool = True
) -> None:
    """Pass to `recording` a change that was made at `now` in the store of a local cluster.

    `by_client` is False if a controller of the cluster made the change.
    """
    if not is_watched(change.kind):
        return
    stimulus = stimulus_if_decodable(change)
    if isinstance(stimulus, ObjectChanged | ObjectDeleted):
        recording.observe(stimulus, now, by_client=by_client)


def _view(obj: Json) -> ApiObject | None:
    try:
        return decode_stored(obj)
    except DecodeError:
        return None


def _written_snapshot(cluster: LocalCluster, folder: Path) -> Sequence[str]:
    objects = [
        obj for one in LIVE_RESOURCES for obj in cluster.store.list(one.kind) if one.includes(obj)
    ]
    path = folder / SNAPSHOT
    path.write_bytes(encode_snapshot(objects, cluster.clock.now()))
    return [str(path)]
