"""LocalCluster: store, engine and API server put together, and the driver that lets time pass.

    client --request--> store --changes--> engine --commands--> store --changes--> watches

Nothing here waits: whoever runs it calls `run_until` with the time whenever something has changed
and whenever `next_due` has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fairlead import __version__
from fairlead.api.codec import decode, without_nulls
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.served.strategies import ServedStrategies
from fairlead.apiserver.serving.call import Authorize, allow_all
from fairlead.apiserver.serving.complete import complete_server
from fairlead.apiserver.serving.server import ApiServer
from fairlead.apiserver.store import Store
from fairlead.core.instant import Instant
from fairlead.core.reporter import SilentReporter
from fairlead.core.stimulus import ObjectsLoaded
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.workloads.config import WorkloadsConfig
from fairlead.worlds.drive import Driver
from fairlead.worlds.local.attendant.namespace import Namespaces
from fairlead.worlds.local.clock import SteeredClock
from fairlead.worlds.local.identity import RandomIds
from fairlead.worlds.local.nodes import node_manifests
from fairlead.worlds.local.world import LocalWorld

Json = dict[str, Any]

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """What a local cluster is to be like; `address` is the host and port that clients are told.

    `authority` is the PEM text of the CA that clients inside the cluster should trust, `without`
    names parts of the engine to leave out.
    """

    nodes: int = 3
    zones: int = 1
    address: str = "127.0.0.1:0"
    authority: str = ""
    without: tuple[str, ...] = ()
    engine: EngineConfig = field(
        default_factory=lambda: EngineConfig(workloads=WorkloadsConfig(is_observed=True))
    )


class LocalCluster:
    """A cluster in this process. Single writer: one call after the other."""

    def __init__(
        self,
        options: LocalOptions,
        clock: SteeredClock,
        *,
        authorize: Authorize = allow_all,
        manifests: Iterable[Json] = (),
    ) -> None:
        """Start with the nodes asked for and `manifests`, of which an ApiError names a bad one."""
        self.clock = clock
        ids = RandomIds()
        self.store = Store(
            ids, admission=served_admission(ids.new_suffix), strategies=ServedStrategies()
        )
        now = clock.now()
        engine = build_engine(replace(options.engine, start=now), SilentReporter(), options.without)
        self._world = LocalWorld(self.store, (Namespaces(options.authority),))
        self._driver = Driver(engine, self._world, now=now)
        self.server: ApiServer = complete_server(
            self.store,
            clock=clock.now,
            address=options.address,
            version=__version__,
            authorize=authorize,
        )
        self._load(options, manifests, now)

    def _load(self, options: LocalOptions, manifests: Iterable[Json], now: Instant) -> None:
        nodes = node_manifests(options.nodes, options.zones, now)
        loaded = self.store.load([*nodes, *manifests], now)
        views = [decode(without_nulls(obj)) for obj in loaded]
        self._world.tell(ObjectsLoaded(views))
        for name in NAMESPACES:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.store.create(manifest, now)

    def next_due(self) -> Instant | None:
        """When the engine has something to do next, None when only a change can give it work."""
        return self._driver.next_due()

    def run_until(
        self, instant: Instant, *, stop_when: Callable[[], bool] | None = None
    ) -> Instant:
        """Let everything happen that is due by then, or until `stop_when`; what time it is.

        Raises LivelockError.
        """
        self._driver.run(max(instant, self._driver.now), stop_when=stop_when)
        return self._driver.now
