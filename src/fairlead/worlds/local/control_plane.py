"""ControlPlane: the engine, which acts on a store that clients also write to.

    client --request--> store --changes--> engine --commands--> store --changes--> watches

No method blocks. The event loop calls `run_until` with the current time after each change, and at
the time that `next_due` returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec.structs import replace

import fairlead.engine.scheduling.preemption.evaluator  # noqa: F401 - loaded before its first use
from fairlead.api.codec import DecodeError, decode_stored
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject
from fairlead.api.pods.usage import USAGE
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.suspension import WebhookAnswer
from fairlead.engine.batch.configuration_file import RECOMMENDED, shipped_configuration
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.controller import Controller
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.config import KubeletConfig, StopAfter
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import LOAD
from fairlead.worlds.driver import CommandSource, Driver, World
from fairlead.worlds.informer import is_watched
from fairlead.worlds.local.admission_gateway import PendingCommand
from fairlead.worlds.local.controllers.namespace_defaults import NamespaceDefaults
from fairlead.worlds.local.controllers.node_ttl import NodeTtl
from fairlead.worlds.local.controllers.service_cidr import ServiceCidrs
from fairlead.worlds.local.events.writer import HOST
from fairlead.worlds.local.world import LocalWorld, StoreListener
from fairlead.worlds.local.write_audit import WriteAudit
from fairlead.worlds.metrics import SchedulerMetrics

# Containers start this time after the binding of their pod. It is short, because users wait for it.
START_DELAY: Final[DurationNs] = seconds(0.5)
# Containers stop after this time, so users need not wait for grace periods.
STOP_DELAY: Final[DurationNs] = seconds(1)
# A container with `stdinOnce` ends after this time, because attach is not supported.
INPUT_DURATION: Final[DurationNs] = seconds(2)
# Follows upstream's text in the conditions and events of a HorizontalPodAutoscaler.
USAGE_ADVICE: Final = (
    f"; state the usage with the annotation {LOAD} of the workload or {USAGE} of its pods, because "
    "the default usage that kubectl top shows does not count"
)
# The time that passes at most in one call while work is due. It is longer than the real time of a
# slice of work and of the requests before the slice. So at normal speed the clock keeps up with
# real time. Pods then start on time while thousands of other pods are still being scheduled. A
# clock that is set to run faster slows down until these pods are scheduled.
BUSY_MAX: Final[DurationNs] = seconds(0.05)
# Between two starts of a control plane, at most 2**32 serial numbers are used for the names of the
# objects of one owner.
SERIALS_BITS: Final = 32
OBSERVED: Final = EngineConfig(
    kubelet=KubeletConfig(
        start_delay=START_DELAY,
        stop=StopAfter(STOP_DELAY),
        spaces_rejections=False,
        accepts_pods=True,
        applies_readiness_gates=True,
        waits_for_claims=True,
        input_duration=INPUT_DURATION,
    ),
    workloads=WorkloadsConfig(serves_clients=True, follow_up_interval=seconds(0.1)),
    pod_autoscaler=HorizontalPodAutoscalerConfig(refreshes_status=True, usage_advice=USAGE_ADVICE),
    batch=shipped_configuration(RECOMMENDED),
)

# Wraps the engine and its world before the driver connects them, for tests that inject faults.
Interposer = Callable[[Engine, LocalWorld], tuple[CommandSource, World]]


def _directly(engine: Engine, world: LocalWorld) -> tuple[CommandSource, World]:
    return engine, world


class ControlPlane:
    """All controllers of a cluster. Calls of its methods must not overlap."""

    def __init__(  # noqa: PLR0913 - what a cluster is made of
        self,
        store: Store,
        now: Instant,
        *,
        config: EngineConfig = OBSERVED,
        authority: str = "",
        without: Collection[str] = (),
        controllers: Sequence[Controller] = (),
        listeners: Sequence[StoreListener] = (),
        host: str = HOST,
        metrics: SchedulerMetrics | None = None,
        logging: Callable[[Reporter], Reporter] | None = None,
        interpose: Interposer = _directly,
    ) -> None:
        """Start at `now` with the contents of `store`.

        `authority` is the PEM text of the CA that every namespace publishes, "" for none. `without`
        contains the names of engine parts that do not run. `controllers` run in addition to the
        engine's own controllers. `listeners` receive each change before the engine does. `host` is
        the host name that controllers report. `metrics` receives the reports of the engine;
        `logging` wraps `metrics` in a reporter that logs. `interpose` takes the engine and the
        world, and returns the engine and the world to use. For example, `fairlead torture`
        passes a function that returns a world with faults.
        """
        storage = store.storage
        own: tuple[Controller, ...] = (
            NamespaceDefaults(storage, authority),
            NodeTtl(),
            ServiceCidrs(storage),
            *controllers,
        )
        has_kubelets = config.kubelet.manages_pods and "kubelet" not in without
        self._world = LocalWorld(store, listeners, host, has_kubelets=has_kubelets)
        self._world.show_all(now)
        # First run only the controllers `own`: they create the objects that clients rely on, before
        # the first request. These controllers do not read pods.
        self._world.enqueue(ObjectsLoaded(_views(store, excluding=POD)))
        Driver(Engine(Cluster(), own), self._world, now=now).run(now)
        config = _continuing(replace(config, start=now), store.storage.version)
        reporter: Reporter = metrics or SilentReporter()
        if logging is not None:
            reporter = logging(reporter)
        engine = build_engine(config, reporter, without, first=own)
        if metrics is not None and "scheduler" not in without:
            metrics.waiting = engine.find(Scheduler).queue
        self._driver = Driver(
            *interpose(engine, self._world), now=now, handle_overdue=engine.handle_overdue
        )
        self._world.enqueue(ObjectsLoaded(_views(store)))

    @property
    def now(self) -> Instant:
        """The time that the engine has reached, in ns since 1970."""
        return self._driver.now

    @property
    def is_performing(self) -> bool:
        """Whether a controller's command, and not a client, makes the current changes."""
        return self._world.is_performing

    @property
    def pending(self) -> deque[PendingCommand]:
        """The commands that wait for webhooks.

        The caller must call the webhook of each command, and pass the answer to `resume`. If this
        property is never read, commands do not call webhooks.
        """
        self._world.gateway.calls_webhooks = True
        return self._world.gateway.pending

    def resume(self, pending: PendingCommand, answer: WebhookAnswer, now: Instant) -> None:
        """Continue the command `pending` with the `answer` of its webhook."""
        self._world.resume(pending, answer, now)

    def audit_writes(self, audit: WriteAudit) -> None:
        """Call `audit` for each change that a command of a controller makes from now on."""
        self._world.audit_writes(audit)

    def next_due(self) -> Instant | None:
        """Return the next time at which the engine has work.

        Returns None if only a change can cause work.
        """
        return self._driver.next_due()

    @property
    def is_settled(self) -> bool:
        """Whether every change is handled and every command is performed."""
        return self._driver.is_settled

    def run_until(
        self, instant: Instant, *, stop_when: Callable[[], bool] | None = None
    ) -> Instant:
        """Run until `instant`, or until `stop_when` returns True; return the time that was reached.

        If `stop_when` ends the run while work is left, the rest of the work is due immediately:
        `next_due` then returns the time that was reached. Raises LivelockError.
        """
        self._driver.pass_time(instant, busy_max=BUSY_MAX)
        until = max(instant, self._driver.now)
        self._driver.run(until, stop_when=stop_when, pause_when=stop_when)
        return self._driver.now


def _continuing(config: EngineConfig, version: int) -> EngineConfig:
    """Return `config` with serial numbers that no earlier control plane of this store used.

    `version` is the newest resourceVersion in the store. Names of created objects are generated
    from serial numbers, so no name repeats. (Upstream's generated names are random.)
    """
    serial = version << SERIALS_BITS
    karpenter = config.karpenter
    return replace(
        config,
        workloads=replace(config.workloads, first_serial=serial),
        karpenter=karpenter and replace(karpenter, first_serial=serial),
    )


def _views(store: Store, excluding: Kind | None = None) -> list[ApiObject]:
    """Return the typed views of all decodable objects, except objects of kind `excluding`."""
    kinds = (kind for kind in store.storage.kinds() if is_watched(kind) and kind is not excluding)
    objects = [obj for kind in kinds for obj in store.list(kind)]
    return [view for obj in objects if (view := _view(obj)) is not None]


def _view(obj: Json) -> ApiObject | None:
    try:
        return decode_stored(obj)
    except DecodeError:
        return None
