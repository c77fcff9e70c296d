"""OwnCluster: Fairlead's API server with controllers, for cases recorded in a complete cluster."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from fairlead.api.objects import Namespace
from fairlead.api.timestamp import format_micro_time
from fairlead.apiserver.kind import CONFIG_MAP, LEASE, NODE
from fairlead.apiserver.storage.storage import Storage, StoredChange
from fairlead.conformance.api.server.own_server import ADDRESS, START, OwnServer
from fairlead.conformance.api.server.recorded_kubelet import RecordedKubelet
from fairlead.conformance.api.server.recorded_nodes import ZONES, recorded_nodes
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import Command, CreateObject
from fairlead.engine.core.controller import NoDeadlines
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.worlds.local.control_plane import ControlPlane
from fairlead.worlds.local.controllers.api_service_registration import ApiServiceRegistration
from fairlead.worlds.local.controllers.apiserver_records import ApiServerRecords
from fairlead.worlds.local.controllers.kubernetes_service import KubernetesService
from fairlead.worlds.local.controllers.reactive_controller import changes

# In the recordings, a script replaced the kubelets. RecordedKubelet repeats the work of the script,
# so Fairlead's own kubelets manage only the nodes.
CONFIG: Final = EngineConfig(
    kubelet=KubeletConfig(manages_pods=False, nodes=tuple(ZONES)),
    workloads=WorkloadsConfig(serves_clients=True),
    pod_autoscaler=HorizontalPodAutoscalerConfig(refreshes_status=True),
)
DEFAULT_SCHEDULER: Final = SchedulerConfig()
_HOST: Final = "vm"
_HOLDER: Final = "00000000-0000-4000-8000-000000000000"
_AUTHORITY: Final = "authority\n"
# Changes of these kinds cause no reaction of controllers.
_IGNORED_KINDS: Final = ("APIService", "FlowSchema", "PriorityLevelConfiguration")
# The recorded delays between a change and the reaction of controllers. _ON_DELETION applies to
# objects that are being deleted. _REACTION applies to the kinds that are not in _REACTIONS.
_ON_DELETION: Final = seconds(0.0055)
_REACTIONS: Final = {
    "Node": seconds(0.0025),
    "DaemonSet": seconds(0.01),
    "PersistentVolume": seconds(0.0015),
    "PersistentVolumeClaim": seconds(0.0015),
    "ResourceQuota": seconds(0.0015),
    "Pod": seconds(0.0045),
}
_REACTION: Final = seconds(0.0035)
_SERVICE_AUTHORITY: Final = "openshift-service-ca.crt"
_INJECT: Final = "service.beta.openshift.io/inject-cabundle"


class OwnCluster(OwnServer):
    """A new cluster with three nodes; `settle` performs all due work of the controllers."""

    has_controllers = True
    delays: ClassVar = replace(OwnServer.delays, flow_status=seconds(0.0045))
    versions_before: ClassVar = 3_000

    def __init__(
        self,
        start: int = START,
        *,
        slowness: int = 1,
        scheduler: SchedulerConfig = DEFAULT_SCHEDULER,
    ) -> None:
        """Start at the time `start`, in ns since 1970, with three nodes.

        `slowness` multiplies the recorded delays of the server and of the controllers.
        """
        super().__init__(start, slowness=slowness)
        self._slowness = slowness
        for manifest in recorded_nodes(self.now):
            stored = self.store.put_as_is(manifest, self.now)
            # The recorded conditions have null times, which `put_as_is` would remove.
            status = {**stored["status"], "conditions": manifest["status"]["conditions"]}
            self.store.storage.put(NODE, {**stored, "status": status})
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.store.create(_lease(name, self.now), self.now)
        self._kubelet = RecordedKubelet()
        storage, new_id = self.store.storage, partial(self.store.ids.new_uid, LEASE, "", "")
        self._control_plane = ControlPlane(
            self.store,
            self.now,
            config=replace(CONFIG, scheduler=scheduler),
            authority=_AUTHORITY,
            controllers=(
                _Distribution(storage),
                KubernetesService(storage, ADDRESS),
                ApiServerRecords(storage, new_id, _HOST, ADDRESS, _AUTHORITY),
                ApiServiceRegistration(storage),
            ),
            listeners=(self._kubelet,),
            host=_HOST,
        )
        self._notified_at: int | None = None
        self._acts_at: int | None = None
        self._is_reacting = False
        self.store.subscribe(self._observe)
        self.settle()

    def settle(self) -> None:
        """Perform the work of the controllers that is due by now, in the order of due times."""
        while (due := self._next_due()) is not None and due <= self.now:
            self._acts_at, self._notified_at = max(due, self._acts_at or due), None
            self._is_reacting = True
            self._control_plane.run_until(self._acts_at)
            self._is_reacting = False
            self._kubelet.run(self.store, self._acts_at)
        self._acts_at = None

    def _next_due(self) -> int | None:
        dues = (self._notified_at, self._control_plane.next_due(), self._kubelet.next_due())
        return min((due for due in dues if due is not None), default=None)

    def _observe(self, change: StoredChange) -> None:
        """Schedule the reaction of controllers to `change`.

        If a reaction to an earlier change is scheduled, the controllers react to both changes at
        the earlier of the two times.
        """
        if self._is_reacting or change.kind.kind in _IGNORED_KINDS:
            return
        now = self.now if self._acts_at is None else self._acts_at
        reaction = _REACTIONS.get(change.kind.kind, _REACTION)
        if change.object["metadata"].get("deletionTimestamp"):
            reaction = _ON_DELETION
        notified_at = now + self._slowness * reaction
        self._notified_at = min(notified_at, self._notified_at or notified_at)


def _lease(name: str, now: int) -> dict[str, Any]:
    """Return the leader election Lease of the component `name`."""
    renewed = format_micro_time(now)
    spec = {
        "holderIdentity": f"{_HOST}_{_HOLDER}",
        "leaseDurationSeconds": 15,
        "acquireTime": renewed,
        "renewTime": renewed,
        "leaseTransitions": 2,
    }
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


class _Distribution(NoDeadlines):
    """A controller of the recorded Kubernetes distribution: adds a ConfigMap to each namespace."""

    issuer: ClassVar[Issuer] = controller_account("service-ca")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def handle(self, stimulus: Stimulus, now: int) -> list[Command]:
        """Return commands to create the CA ConfigMap in new and changed namespaces without one."""
        return [
            CreateObject(_service_authority(one.metadata.name))
            for one, is_deleted in changes(stimulus)
            if isinstance(one, Namespace) and not is_deleted and not one.metadata.deletion_timestamp
            if self._storage.find(CONFIG_MAP, one.metadata.name, _SERVICE_AUTHORITY) is None
        ]


def _service_authority(namespace: str) -> dict[str, Any]:
    place = {"name": _SERVICE_AUTHORITY, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": CONFIG_MAP.kind,
        "metadata": {**place, "annotations": {_INJECT: "true"}},
        "data": {"service-ca.crt": ""},
    }
