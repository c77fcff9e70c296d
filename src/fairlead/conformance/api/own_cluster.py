"""Our own API server with the engine behind it, for what was recorded with controllers running."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from fairlead.api.timestamp import format_micro_time
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, NODE, kind_of
from fairlead.apiserver.storage import Change
from fairlead.apiserver.store import Store
from fairlead.conformance.api.own_server import START, OwnServer
from fairlead.conformance.api.recorded_kubelet import RecordedKubelet
from fairlead.conformance.api.recorded_nodes import recorded_nodes
from fairlead.core.instant import seconds
from fairlead.engine.config import EngineConfig
from fairlead.kubelet.config import KubeletConfig, StopAfter
from fairlead.workloads.config import WorkloadsConfig
from fairlead.worlds.local.life import Life

# The kubelets of the recordings were scripts, and quick; ours only see to nodes and to endings.
_NEVER: Final = seconds(10**6)
CONFIG: Final = EngineConfig(
    kubelet=KubeletConfig(start_delay=_NEVER, stop=StopAfter(seconds(0.3))),
    workloads=WorkloadsConfig(is_observed=True),
)
_CONFIG_MAP: Final = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
_SERVICE_AUTHORITY: Final = "openshift-service-ca.crt"
_INJECT: Final = "service.beta.openshift.io/inject-cabundle"


class OwnCluster(OwnServer):
    """A fresh cluster with three nodes; whatever is due happens when `settle` is called."""

    has_controllers = True

    def __init__(self, start: int = START) -> None:
        """Begin at `start` with what every cluster has."""
        super().__init__(start)
        for manifest in recorded_nodes(self.now):
            stored = self.store.put_as_is(manifest, self.now)
            # As a kubelet that never said when: null, which nobody but a server would store.
            status = {**stored["status"], "conditions": manifest["status"]["conditions"]}
            self.store.storage.put(NODE, {**stored, "status": status})
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.store.create(_lease(name, self.now), self.now)
        self._kubelet = RecordedKubelet()
        self._life = Life(
            self.store,
            self.now,
            config=CONFIG,
            authority="authority\n",
            more=(_Distribution(), self._kubelet),
        )
        self.settle()

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        self._life.run_until(self.now)
        self._kubelet.run(self.store, self.now)
        self._life.run_until(self.now)


def _lease(name: str, now: int) -> dict[str, Any]:
    """What a component holds to be the one that acts."""
    renewed = format_micro_time(now)
    spec = {
        "holderIdentity": f"golden_{name}",
        "leaseDurationSeconds": 15,
        "acquireTime": renewed,
        "renewTime": renewed,
        "leaseTransitions": 2,
    }
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


class _Distribution:
    """An Attendant: each namespace has a ConfigMap that the recorded build publishes."""

    def attend(self, change: Change, store: Store, now: int) -> None:
        """See Attendant."""
        meta = change.object["metadata"]
        if change.kind is not NAMESPACE or meta.get("deletionTimestamp"):
            return
        if store.find(_CONFIG_MAP, meta["name"], _SERVICE_AUTHORITY) is None:
            place = {"name": _SERVICE_AUTHORITY, "namespace": meta["name"]}
            manifest = {
                "apiVersion": "v1",
                "kind": _CONFIG_MAP.kind,
                "metadata": {**place, "annotations": {_INJECT: "true"}},
                "data": {"service-ca.crt": ""},
            }
            with suppress(ApiError):  # a quota may be in the way
                store.create(manifest, now)
