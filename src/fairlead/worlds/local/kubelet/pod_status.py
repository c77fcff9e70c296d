"""PodDetails: what a kubelet reports of pods besides what decides anything.

The simulated kubelets say when pods run, are ready, and end. kubectl's READY and IP columns, and
whoever waits for containers, look at containerStatuses and addresses, which are made up here and
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
    """Gives out addresses and fills in reports; frees addresses when pods are deleted."""

    def __init__(self) -> None:
        """No address is taken."""
        self._taken: dict[str, str] = {}  # by pod's uid
        self._uids: dict[str, str] = {}  # by address

    def see(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See StoreListener."""
        if change.kind is not POD:
            return
        uid = change.object["metadata"]["uid"]
        if change.type is ChangeType.DELETED:
            self._free(uid)
        else:  # after a restart the addresses are found again
            address = change.object.get("status", {}).get("podIP")
            if address and uid not in self._taken:
                self._take(uid, address)

    def detailed(
        self, command: PatchStatus, issuer: Issuer, store: Store, now: Instant
    ) -> PatchStatus:
        """Add observedGeneration to a pod's status; if the issuer is a kubelet, all it reports.

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
    """A pod that a controller makes, saying from what its name was generated."""
    # upstream: pkg/controller/controller_utils.go:GetPodFromTemplate
    meta = manifest.get("metadata", {})
    owner = next((ref for ref in meta.get("ownerReferences", ()) if ref.get("controller")), None)
    if manifest.get("kind") != POD.kind or owner is None or "generateName" in meta:
        return manifest
    return {**manifest, "metadata": {**meta, "generateName": f"{owner['name']}-"}}


def _conditions(pod: Json, rows: Iterable[Condition], now: Instant) -> list[Json]:
    """The conditions of `pod` with `rows` among them, which are about its newest generation."""
    seen = {"observedGeneration": pod["metadata"].get("generation", 0)}
    changes = ({**condition_json(row), **seen} for row in rows)
    before = pod["status"].get("conditions", ())
    return with_conditions(before, changes, format_timestamp(now))


def _of_kubelet(conditions: list[Json]) -> list[Json]:
    """Those that kubelets see to first, and in their order."""
    # upstream: pkg/kubelet/kubelet_pods.go:generateAPIPodStatus
    order = {name: place for place, name in enumerate(_KUBELETS_CONDITIONS)}
    return sorted(conditions, key=lambda row: order.get(row["type"], len(order)))


def _is_ready(command: PatchStatus, pod: Json) -> bool:
    """Whether the containers are ready, whatever else keeps the pod from being so."""
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
