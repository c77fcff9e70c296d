"""LocalCluster: a store, an API server and a control plane in one process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from fairlead import __version__
from fairlead.api.json import Json
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.admission.plugins.pod_count_limit import PodCountLimit
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource
from fairlead.apiserver.auth.authentication.service_account_token import ServiceAccountTokens
from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.auth.bootstrap_policy.objects import bootstrap_objects
from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair
from fairlead.apiserver.endpoints.bootstrap import control_plane_objects, create_as_apiserver
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.endpoints.handlers.computed import NOTHING_COMPUTED
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.kind import LEASE, SERVICE, SERVICE_ACCOUNT, find_kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.registry import Registry
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.strategies.table import STRATEGIES
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import Storage, StoredChange
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.engine.compose import PARTS as ENGINE_PARTS
from fairlead.engine.config import EngineConfig
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.configuration.translation import default_config
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.reporter import SilentReporter
from fairlead.worlds.decision_log import Logging
from fairlead.worlds.local.bootstrap.batch_definitions import DEFAULT_QUEUE, job_kinds
from fairlead.worlds.local.bootstrap.nodes import node_manifests
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.control_plane import OBSERVED, ControlPlane
from fairlead.worlds.local.controllers.api_service_registration import ApiServiceRegistration
from fairlead.worlds.local.controllers.apiserver_records import ApiServerRecords
from fairlead.worlds.local.controllers.certificate_signer import CertificateSigner
from fairlead.worlds.local.controllers.kubernetes_service import KubernetesService
from fairlead.worlds.local.events.writer import HOST
from fairlead.worlds.local.field_manager import registered
from fairlead.worlds.local.random_ids import RandomIds
from fairlead.worlds.local.resource_metrics import MEASUREMENTS, measured
from fairlead.worlds.metrics import SchedulerMetrics

# --- strategies ----------------------------------------------------------------------------------

_AUTOSCALERS: Final = "horizontalpodautoscalers.autoscaling"


def _registry(storage: Storage, without: Collection[str]) -> Registry:
    """API_SERVER, with a warning about HorizontalPodAutoscalers that nothing acts on."""

    def warnings(old: Json | None, _: Json) -> Iterator[str]:
        if old is None and not _is_scaled(storage):
            yield "HorizontalPodAutoscalers are stored, but nothing here acts on them"

    if _CONTROLLERS in without:
        return API_SERVER
    autoscaling = replace(STRATEGIES[_AUTOSCALERS], warnings=warnings)
    return replace(API_SERVER, strategies={**STRATEGIES, _AUTOSCALERS: autoscaling})


def _is_scaled(storage: Storage) -> bool:
    """Whether a stock kube-controller-manager has ever led here, or one has set a status."""
    lease = storage.find(LEASE, "kube-system", "kube-controller-manager")
    kind = find_kind(_AUTOSCALERS)
    stored = () if kind is None else storage.unsorted(kind)
    return lease is not None or any((one.get("status") or {}).get("conditions") for one in stored)


METRICS: Final = "metrics"
_CONTROLLERS: Final = "workloads"
# Parts of the control plane that can be left out.
PARTS: Final = (*ENGINE_PARTS, METRICS)
# A third more than the 150,000 pods that upstream is tested with; they take some 2 GiB.
PODS_MAX: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """Options of a local cluster; `address` is the host and port that clients connect to.

    `authority` is the PEM text of the CA that clients inside the cluster should trust;
    `authority_key` is its key, "" if nothing is signed with it. `without` names those of PARTS to
    leave out. `pods_max` limits the number of pods. `release` is the Kubernetes version to follow.
    `logging` puts a log of decisions before a reporter.
    `job_duration` is how long pods run that end by themselves, None for ever.
    `limited` resources cannot be used without a quota that covers them.
    """

    nodes: int = 3
    zones: int = 1
    address: str = "127.0.0.1:0"
    authority: str = ""
    authority_key: str = ""
    without: tuple[str, ...] = ()
    engine: EngineConfig = field(default_factory=lambda: OBSERVED)
    release: Release = CURRENT
    logging: Logging | None = None
    pods_max: int = PODS_MAX
    job_duration: DurationNs | None = None
    limited: Sequence[LimitedResource] = ()


class LocalCluster:
    """A cluster in this process. Single writer: calls must not overlap."""

    def __init__(
        self,
        options: LocalOptions,
        clock: LocalClock,
        users: Mapping[str, User],
        account_key: str,
        journal: WriteAheadLog | None = None,
    ) -> None:
        """Start with the contents of `journal`, or with new nodes if it is empty.

        `users` are keyed by their tokens; `account_key` is the PEM text of the P-256 key that signs
        the tokens of service accounts.
        """
        self.clock = clock
        ids = RandomIds()
        storage: Storage = CompactStorage()
        self.store = Store(
            ids,
            admission=(
                *served_admission(
                    ids.new_suffix,
                    limited=options.limited,
                    preemption_policies=options.release.preemption_policies,
                ),
                PodCountLimit(options.pods_max),
            ),
            registry=_registry(storage, options.without),
            storage=storage,
        )
        is_new = journal is None or journal.is_empty
        if journal is not None and not is_new:
            journal.restore(self.store.storage)
            journal.begin(self.store.storage)
        rights = Rbac(self.store.storage, (NodeAuthorizer(self.store.storage),))
        accounts = ServiceAccountTokens(
            account_key,
            self.store.storage,
            clock.now,
            new_id=partial(ids.new_uid, SERVICE_ACCOUNT, "", ""),
        )
        self.tokens = TokenAuthenticator(users, accounts.recognize)
        has_metrics = METRICS not in options.without
        self.server: ApiServer = complete_server(
            self.store,
            clock=clock.now,
            address=options.address,
            version=__version__,
            authorize=rights,
            identity=Identity(
                rights=rights,
                recognize=self.tokens.user_of,
                issue=accounts.issue,
                keys=accounts.keys,
            ),
            computed=measured(self.store.storage) if has_metrics else NOTHING_COMPUTED,
        )
        now = clock.now()
        if is_new:
            self._load(options, now)
            if journal is not None:
                journal.begin(self.store.storage)
        self.journal = journal
        storage, new_id = self.store.storage, partial(ids.new_uid, LEASE, "", "")
        config = config_in(options.release, options.engine)
        config = replace(config, kubelet=replace(config.kubelet, job_duration=options.job_duration))
        self.metrics = _metrics(config)
        self.control_plane = ControlPlane(
            self.store,
            now,
            config=config,
            metrics=self.metrics,
            logging=options.logging,
            authority=options.authority,
            without=options.without,
            controllers=(
                KubernetesService(storage, options.address),
                ApiServerRecords(storage, new_id, HOST, options.address, options.authority),
                ApiServiceRegistration(storage),
                *_certificate_signer(storage, options),
            ),
            listeners=(ReconcileListener(self.server.reconcile),),
        )

    def _load(self, options: LocalOptions, now: Instant) -> None:
        nodes = node_manifests(options.nodes, options.zones, now)
        self.store.load(registered(nodes, now), now)
        standing = (*bootstrap_objects(), *control_plane_objects())
        more = () if METRICS in options.without else MEASUREMENTS
        create_as_apiserver(self.store, (*standing, *more, *job_kinds()), now)
        self.server.reconcile(now)
        create_as_apiserver(self.store, (DEFAULT_QUEUE,), now)


def _metrics(config: EngineConfig) -> SchedulerMetrics:
    jobs = () if config.batch is None else config.batch.ownership.scheduler_names
    scheduler, nodes = config.scheduler.version, config.node_lifecycle.profile
    return SchedulerMetrics(SilentReporter(), list, scheduler.version, nodes.version, jobs)


def config_in(release: Release, config: EngineConfig) -> EngineConfig:
    """Returns `config` with the rules of `release`."""
    if release == CURRENT:
        return config
    lifecycle = replace(
        config.node_lifecycle,
        profile=release.node_lifecycle,
        taint_based_evictions=release.taint_based_evictions,
    )
    return replace(
        config,
        scheduler=default_config(release, config.scheduler.out_of_tree),
        node_lifecycle=lifecycle,
        kubelet=replace(config.kubelet, renews_leases=release.node_leases),
    )


def _certificate_signer(storage: Storage, options: LocalOptions) -> tuple[CertificateSigner, ...]:
    """The signer, unless the controllers are left out."""
    if not options.authority_key or _CONTROLLERS in options.without:
        return ()
    authority = CertificateKeyPair(options.authority, options.authority_key)
    return (CertificateSigner(storage, authority),)


# --- reconcilers of the API server ---------------------------------------------------------------

# The server runs them after each request, but controllers' changes come without a request.


class ReconcileListener:
    """Calls `reconcile` after each change of a Service."""

    def __init__(self, reconcile: Callable[[Instant], None]) -> None:
        """`reconcile` performs the writes that are due."""
        self._reconcile = reconcile

    def see(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See StoreListener."""
        if change.kind is SERVICE:
            self._reconcile(now)
