"""LocalCluster: a store, an API server and a control plane in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeGuard

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead import __version__
from fairlead.api.json import Json
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.admission.plugins.pod_count_limit import PodCountLimit
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource
from fairlead.apiserver.apiextensions.definition.status import with_stored_versions
from fairlead.apiserver.auth.authentication.service_account_token import ServiceAccountTokens
from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.auth.bootstrap_policy.objects import bootstrap_objects
from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair
from fairlead.apiserver.conversion.kind_conversion import reread
from fairlead.apiserver.endpoints.bootstrap import (
    control_plane_objects,
    create_as_apiserver,
    reconcile_at_start,
)
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.endpoints.handlers.computed import NOTHING_COMPUTED
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.error import invalid
from fairlead.apiserver.kind import (
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    KINDS,
    LEASE,
    POD,
    REPLICA_SET,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    kind_of,
)
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.registry.store import PodCopying, Store
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import Storage, StoredChange
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.apiserver.validation.meta.field import not_supported
from fairlead.engine.compose import PARTS as ENGINE_PARTS
from fairlead.engine.config import EngineConfig
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.worlds.local.annotation_warning import AnnotationWarnings
from fairlead.worlds.local.bootstrap.batch_definitions import DEFAULT_QUEUE, job_kinds
from fairlead.worlds.local.bootstrap.default_storage_class import DEFAULT_STORAGE_CLASS
from fairlead.worlds.local.bootstrap.karpenter_definitions import (
    DEFAULT_POOL,
    NODE_CLASS,
    karpenter_kinds,
)
from fairlead.worlds.local.bootstrap.nodes import node_manifests
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.control_plane import OBSERVED, ControlPlane
from fairlead.worlds.local.controllers.aggregated_roles import AggregatedRoles
from fairlead.worlds.local.controllers.api_service_registration import ApiServiceRegistration
from fairlead.worlds.local.controllers.apiserver_records import ApiServerRecords
from fairlead.worlds.local.controllers.certificate_signer import CertificateSigner
from fairlead.worlds.local.controllers.kubernetes_service import KubernetesService
from fairlead.worlds.local.controllers.node_address import NodeAddresses
from fairlead.worlds.local.controllers.node_allocatable import NodeAllocatable
from fairlead.worlds.local.controllers.policy_status import PolicyStatus
from fairlead.worlds.local.controllers.token_secret import TokenSecrets
from fairlead.worlds.local.events.writer import HOST
from fairlead.worlds.local.field_manager import registered
from fairlead.worlds.local.random_ids import RandomIds
from fairlead.worlds.local.resource_metrics import MEASUREMENTS, measured
from fairlead.worlds.metrics import SchedulerMetrics

METRICS: Final = "metrics"
_CONTROLLERS: Final = "workloads"
_KUBELET: Final = "kubelet"
_PROVISIONER: Final = "provisioner"
_SCHEDULER: Final = "scheduler"
_STORAGE_CLASS: Final = "storage-class"
# Parts of the control plane that can be left out.
PARTS: Final = (*ENGINE_PARTS, METRICS, _STORAGE_CLASS)
_BUILT_IN: Final = frozenset(kind.resource for kind in KINDS)
_WITH_POD_SPEC: Final = frozenset(
    kind.resource for kind in (POD, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET)
)
# A third more than the 150,000 pods that upstream is tested with; they take about 2 GiB.
PODS_MAX: Final = 200_000


class LocalOptions(Struct, frozen=True, kw_only=True):
    """Options of a local cluster."""

    nodes: int = 3
    zones: int = 1
    address: str = "127.0.0.1:0"  # the host and port that clients connect to
    authority: str = ""  # the PEM text of the CA that clients inside the cluster should trust
    authority_key: str = ""  # the CA's private key, "" if the cluster signs no certificates
    without: tuple[str, ...] = ()  # the names (see `PARTS`) of the parts that do not run
    engine: EngineConfig = field(default_factory=lambda: OBSERVED)
    release: Release = CURRENT  # the Kubernetes version to follow
    # Wraps a reporter in a reporter that logs decisions.
    logging: Callable[[Reporter], Reporter] | None = None
    pods_max: int = PODS_MAX  # limits the number of pods
    # How long pods with restartPolicy Never or OnFailure run, None for forever.
    job_duration: DurationNs | None = seconds(5)
    # Resources that can be used only if a quota covers them.
    limited: Sequence[LimitedResource] = ()
    # The objects of another cluster; if there are any, no new nodes and no default StorageClass are
    # created.
    objects: Sequence[Mapping[str, Any] | DumpedObject] = ()


class LocalCluster:
    """A cluster in this process. Calls must not overlap, because the store has a single writer."""

    def __init__(
        self,
        options: LocalOptions,
        clock: LocalClock,
        users: Mapping[str, User],
        account_key: str,
        journal: WriteAheadLog | None = None,
    ) -> None:
        """Start with the objects in the log `journal`; if it is None or empty, start a new cluster.

        A new cluster contains `options.objects`. If `options.objects` is empty, new nodes are
        created. `users` are keyed by their tokens. `account_key` is the PEM text of the P-256 key
        that signs the tokens of service accounts.
        """
        self.clock = clock
        self.journal = journal
        self._options = options
        self._ids = RandomIds()
        now = clock.now()
        # 1. The store, with the contents of the write-ahead log (`journal`).
        self.store = _store(options, self._ids)
        is_new = journal is None or journal.is_empty
        if journal is not None and not is_new:
            journal.restore(self.store.storage)
            journal.begin(self.store.storage)
        # A load calls no listeners. So what the server observes, such as definitions of custom
        # resources, is loaded before the server subscribes to the store.
        custom = self._load(now) if is_new else ()
        # 2. The API server in front of the store.
        accounts = ServiceAccountTokens(
            account_key,
            self.store.storage,
            clock.now,
            new_id=partial(self._ids.new_uid, SERVICE_ACCOUNT, "", ""),
        )
        self.tokens = TokenAuthenticator(users, accounts.recognize)
        self._accounts = accounts
        self.server = self._api_server(accounts)
        # 3. The objects that every cluster begins with.
        if is_new:
            self._load_custom(custom, now)
            self._create_standing_objects(now)
            if journal is not None:
                journal.begin(self.store.storage)
        else:
            reconcile_at_start(self.store, options.release.gates_of_kinds, now)
            self.server.run_post_start_hooks(now)
        if options.engine.karpenter is not None:
            self._load_karpenter(now)
        # 4. The engine and the controllers, which act on all of it.
        config = config_in(options.release, options.engine)
        config = replace(config, kubelet=replace(config.kubelet, job_duration=options.job_duration))
        self.metrics = _metrics(config)
        self.control_plane = self._control_plane(config, now)

    def now(self) -> Instant:
        """Return the time of a change that is made now.

        The result is the clock's time or the engine's time, whichever is later. While the clock is
        being advanced, the engine is ahead of the clock.
        """
        return max(self.clock.now(), self.control_plane.now)

    def _api_server(self, accounts: ServiceAccountTokens) -> ApiServer:
        storage = self.store.storage
        rights = Rbac(storage, (NodeAuthorizer(storage),))
        has_metrics = METRICS not in self._options.without
        return complete_server(
            self.store,
            clock=self.clock.now,
            address=self._options.address,
            version=__version__,
            authorize=rights,
            identity=Identity(
                rights=rights,
                recognize=self.tokens.user_of,
                issue=accounts.issue,
                keys=accounts.keys,
            ),
            computed=measured(storage) if has_metrics else NOTHING_COMPUTED,
            gates=self._options.release.gates_of_kinds,
        )

    def _control_plane(self, config: EngineConfig, now: Instant) -> ControlPlane:
        options, storage = self._options, self.store.storage
        new_lease_id = partial(self._ids.new_uid, LEASE, "", "")
        return ControlPlane(
            self.store,
            now,
            config=config,
            metrics=self.metrics,
            logging=options.logging,
            authority=options.authority,
            without=options.without,
            controllers=(
                KubernetesService(storage, options.address),
                ApiServerRecords(storage, new_lease_id, HOST, options.address, options.authority),
                ApiServiceRegistration(storage),
                AggregatedRoles(storage),
                TokenSecrets(storage, self._accounts.issue_for_secret, options.authority),
                *_certificate_signer(storage, options),
                *self._kubelet_reports(config),
                *self._policy_status(),
            ),
            listeners=(PostStartHookListener(self.server),),
        )

    def _kubelet_reports(
        self, config: EngineConfig
    ) -> tuple[NodeAddresses, NodeAllocatable] | tuple[()]:
        """Return the controllers that set fields of nodes as kubelets do.

        Returns () if this cluster runs no simulated kubelets.
        """
        if _KUBELET in self._options.without:
            return ()
        nodes = config.kubelet.nodes
        return NodeAddresses(self.store.storage, nodes), NodeAllocatable(nodes)

    def _policy_status(self) -> tuple[PolicyStatus, ...]:
        """Return a tuple with a PolicyStatus; () if the workload controllers are left out."""
        if _CONTROLLERS in self._options.without:
            return ()
        return (PolicyStatus(self.store.storage, self.server.registry),)

    def _load(self, now: Instant) -> list[Mapping[str, Any]]:
        """Load the objects of built-in kinds; return the custom resources.

        The caller loads custom resources later: the API server, which does not exist yet, must
        first read their kinds from the CustomResourceDefinitions.
        """
        options, storage = self._options, self.store.storage
        nodes = registered(node_manifests(options.nodes, options.zones, now), now)
        objects = list(map(_readable, options.objects or nodes))
        custom = [one for one in objects if _is_custom(one)]
        self.store.load((one for one in objects if not _is_custom(one)), now)
        for definition in list(storage.items(CUSTOM_RESOURCE_DEFINITION)):
            _require_known_version(definition)
            complete = with_stored_versions(definition)
            if complete != definition:
                storage.put(CUSTOM_RESOURCE_DEFINITION, complete)
        return custom

    def _load_custom(self, objects: Sequence[Mapping[str, Any]], now: Instant) -> None:
        """Load custom resources with the kinds and the defaults of their definitions."""
        kind_of_object = self.server.registry.kind_of
        self.store.load(objects, now, kind_of_object)
        kinds = {kind.resource: kind for kind in map(kind_of_object, objects) if kind.is_custom}
        for kind in kinds.values():
            self.store.storage.rewrite(kind, partial(reread, kind))

    def _create_standing_objects(self, now: Instant) -> None:
        options = self._options
        more = () if METRICS in options.without else MEASUREMENTS
        gates = options.release.gates_of_kinds
        api_server = (*bootstrap_objects(gates), *control_plane_objects(gates))
        standing = (*api_server, *more, *job_kinds())
        self._create_missing(standing, now)
        self.server.run_post_start_hooks(now)
        if _SCHEDULER not in options.without:
            self._create_missing((DEFAULT_QUEUE,), now)
        # The volumes of the class come from the simulated provisioner.
        if not options.objects and not {_PROVISIONER, _STORAGE_CLASS} & {*options.without}:
            self._create_missing((DEFAULT_STORAGE_CLASS,), now)

    def _load_karpenter(self, now: Instant) -> None:
        """Create Karpenter's CRDs and a NodeClass, and a NodePool if there is no NodePool."""
        self._create_missing(karpenter_kinds(), now)
        self.server.run_post_start_hooks(now)
        has_pools = bool(self.store.list(kind_of(DEFAULT_POOL)))
        self._create_missing((NODE_CLASS, *(() if has_pools else (DEFAULT_POOL,))), now)

    def _create_missing(self, manifests: Iterable[Json], now: Instant) -> None:
        """Create the objects in `manifests` that are not in the store."""
        missing = [one for one in manifests if not self._is_stored(one)]
        create_as_apiserver(self.store, missing, now)

    def _is_stored(self, manifest: Json) -> bool:
        kind, meta = kind_of(manifest), manifest["metadata"]
        return self.store.find(kind, meta.get("namespace", ""), meta["name"]) is not None


def _is_custom(manifest: Mapping[str, Any] | DumpedObject) -> TypeGuard[Mapping[str, Any]]:
    """Return whether `manifest` has a kind that only a CustomResourceDefinition defines."""
    return isinstance(manifest, Mapping) and kind_of(manifest).resource not in _BUILT_IN


def _require_known_version(definition: Json) -> None:
    """Raise ApiError 422 if `definition`, a CRD, has an apiVersion that is not served (v1beta1)."""
    served = CUSTOM_RESOURCE_DEFINITION.api_version
    if definition["apiVersion"] != served:
        problem = not_supported("apiVersion", definition["apiVersion"], (served,))
        raise invalid(CUSTOM_RESOURCE_DEFINITION, "", definition["metadata"]["name"], (problem,))


def _readable(manifest: Mapping[str, Any] | DumpedObject) -> Mapping[str, Any] | DumpedObject:
    """Return `manifest`; a DumpedObject without the server's defaults is decoded to its `value`.

    The store adds defaults only to decoded objects. The store keeps the text of a DumpedObject
    unchanged. A pod spec without dnsPolicy shows that the defaults are missing, because a server
    always sets dnsPolicy.
    """
    if isinstance(manifest, DumpedObject) and manifest.kind.resource in _WITH_POD_SPEC:
        return manifest if b'"dnsPolicy"' in bytes(manifest.text) else manifest.value
    return manifest


def _store(options: LocalOptions, ids: RandomIds) -> Store:
    """Return an empty store with the admission plugins of a served cluster."""
    storage = CompactStorage()
    plugins = served_admission(
        ids.new_suffix,
        limited=options.limited,
        preemption_policies=options.release.preemption_policies,
        gates=options.release.switched_on,
    )
    return Store(
        ids,
        admission=(*plugins, AnnotationWarnings(), PodCountLimit(options.pods_max)),
        registry=API_SERVER,
        storage=storage,
        copying=PodCopying(),
    )


def _metrics(config: EngineConfig) -> SchedulerMetrics:
    jobs = () if config.batch is None else config.batch.ownership.scheduler_names
    scheduler, nodes = config.scheduler.version, config.node_lifecycle.profile
    return SchedulerMetrics(SilentReporter(), list, scheduler.version, nodes.version, jobs)


def config_in(release: Release, config: EngineConfig) -> EngineConfig:
    """Return `config` with the rules of the Kubernetes version `release`."""
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
        workloads=replace(
            config.workloads, max_unavailable_stateful_set=release.max_unavailable_stateful_set
        ),
    )


def _certificate_signer(storage: Storage, options: LocalOptions) -> tuple[CertificateSigner, ...]:
    """Return a tuple with the certificate signer.

    Returns () if there is no CA key, or if the workload controllers are left out.
    """
    if not options.authority_key or _CONTROLLERS in options.without:
        return ()
    authority = CertificateKeyPair(options.authority, options.authority_key)
    return (CertificateSigner(storage, authority),)


class PostStartHookListener:
    """Runs the API server's post-start hooks after each change of an object.

    The API server itself runs the hooks only when it handles a request. Controllers write to the
    store without requests.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def observe(self, change: StoredChange, store: Store, now: Instant) -> None:
        """Run the post-start hooks after a change; see `StoreListener.observe`."""
        self._server.run_post_start_hooks(now)
