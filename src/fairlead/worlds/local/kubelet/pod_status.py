"""PodDetails: the parts of a pod's status that affect no decision.

The simulated kubelets decide when pods run, are ready, and end. kubectl's READY and IP columns, and
clients that wait for containers, read containerStatuses and addresses, which are filled in here and
in `container_status`.

upstream: pkg/kubelet/kubelet_pods.go:convertStatusToAPIStatus, generateAPIPodStatus
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import Condition, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.worlds.local.kubelet.container_status import container_statuses
from fairlead.worlds.perform import condition_json

_ANYWHERE: Final = "10.200.0.0/16"
_KUBELETS_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
_SCHEDULED: Final = Condition("PodScheduled", "True")
_CONTAINERS_READY: Final = "ContainersReady"


class PodDetails:
    """Assigns pod IPs and completes status updates; frees the IPs of deleted pods."""

    def __init__(self) -> None:
        """No IP is taken."""
        self._taken: dict[str, str] = {}  # by pod's uid
        self._uids: dict[str, str] = {}  # by address

    def see(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See StoreListener."""
        if change.kind is not POD:
            return
        uid = change.object["metadata"]["uid"]
        if change.type is ChangeType.DELETED:
            self._free(uid)
        else:  # restores the assigned IPs after a restart
            address = change.object.get("status", {}).get("podIP")
            if address and uid not in self._taken:
                self._take(uid, address)

    def detailed(
        self, command: PatchStatus, issuer: Issuer, store: Store, now: Instant
    ) -> PatchStatus:
        """Add observedGeneration to a pod's status, and a kubelet's details if it is the issuer.

        upstream: pkg/api/v1/pod/util.go:CalculatePodConditionObservedGeneration
        """
        pod = store.find(POD, command.target.namespace, command.target.name)
        phase = command.fields.get("phase")
        if pod is None:
            return command
        generation = pod["metadata"].get("generation", 0)
        rows = command.conditions
        if issuer.component is not Component.KUBELET:
            details = {"conditions": _conditions(pod, rows, now)} if rows else {}
            return replace(command, fields={**details, **command.fields}, conditions=())
        details = {
            "observedGeneration": generation,
            "conditions": _of_kubelet(_conditions(pod, (*rows, _SCHEDULED), now)),
        }
        phase = phase or pod["status"].get("phase")
        if phase in ("Pending", "Running"):
            details |= self._addresses(pod, store, phase)
        if command.fields.get("reason") != "Evicted":
            details |= container_statuses(pod, phase, is_ready=_is_ready(command, pod), now=now)
        return replace(command, fields={**details, **command.fields}, conditions=())

    def _addresses(self, pod: Json, store: Store, phase: str) -> Json:
        if pod["status"].get("podIP"):
            return {}
        node = store.find(NODE, "", pod["spec"].get("nodeName", "")) or {}
        host = _internal_address(node)
        if pod["spec"].get("hostNetwork"):
            address = host
        elif phase == "Running":
            address = self._next(pod["metadata"]["uid"], node)
        else:
            address = ""
        made: Json = {}
        if host:
            made |= {"hostIP": host, "hostIPs": [{"ip": host}]}
        if address:
            made |= {"podIP": address, "podIPs": [{"ip": address}]}
        return made

    def _next(self, uid: str, node: Json) -> str:
        network = IPv4Network(node.get("spec", {}).get("podCIDR") or _ANYWHERE)
        for host in network.hosts():
            address = str(host)
            if address not in self._uids:
                self._take(uid, address)
                return address
        return ""

    def _take(self, uid: str, address: str) -> None:
        self._taken[uid] = address
        self._uids[address] = uid

    def _free(self, uid: str) -> None:
        address = self._taken.pop(uid, None)
        if address is not None and self._uids.get(address) == uid:
            del self._uids[address]


def with_generate_name(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """A controller's new pod with the generateName that its name begins with."""
    # upstream: pkg/controller/controller_utils.go:GetPodFromTemplate
    meta = manifest.get("metadata", {})
    owner = next((ref for ref in meta.get("ownerReferences", ()) if ref.get("controller")), None)
    if manifest.get("kind") != POD.kind or owner is None or "generateName" in meta:
        return manifest
    return {**manifest, "metadata": {**meta, "generateName": f"{owner['name']}-"}}


def _conditions(pod: Json, rows: Iterable[Condition], now: Instant) -> list[Json]:
    """The conditions of `pod` updated by `rows`, which get its current generation."""
    seen = {"observedGeneration": pod["metadata"].get("generation", 0)}
    changes = ({**condition_json(row), **seen} for row in rows)
    before = pod["status"].get("conditions", ())
    return with_conditions(before, changes, format_timestamp(now))


def _of_kubelet(conditions: list[Json]) -> list[Json]:
    """`conditions` in a kubelet's order, the kubelet's own first."""
    # upstream: pkg/kubelet/kubelet_pods.go:generateAPIPodStatus
    order = {name: place for place, name in enumerate(_KUBELETS_CONDITIONS)}
    return sorted(conditions, key=lambda row: order.get(row["type"], len(order)))


def _is_ready(command: PatchStatus, pod: Json) -> bool:
    """Whether the containers are ready, whether or not readiness gates are."""
    for condition in command.conditions:
        if condition.type == _CONTAINERS_READY:
            return condition.status == "True"
    return any(
        row["type"] == _CONTAINERS_READY and row["status"] == "True"
        for row in pod["status"].get("conditions", ())
    )


def _internal_address(node: Json) -> str:
    for row in node.get("status", {}).get("addresses", ()):
        if row.get("type") == "InternalIP":
            return str(row.get("address", ""))
    return ""
