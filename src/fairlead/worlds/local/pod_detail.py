"""PodDetails: what a kubelet reports of pods besides what decides anything.

The simulated kubelets say when pods run, are ready, and end. kubectl's READY and IP columns, and
whoever waits for containers, look at containerStatuses and addresses, which are made up here.

upstream: pkg/kubelet/kubelet_pods.go:convertStatusToAPIStatus, generateAPIPodStatus
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.storage import Change, ChangeType
from fairlead.apiserver.store import Store
from fairlead.core.command import Condition, PatchStatus
from fairlead.core.instant import Instant
from fairlead.worlds.simulation.performing import condition_json

Json = dict[str, Any]

_ANYWHERE: Final = "10.200.0.0/16"
_KUBELETS_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
_SCHEDULED: Final = Condition("PodScheduled", "True")
_ENDED: Final = ("Succeeded", "Failed")


class PodDetails:
    """Gives out addresses and fills in reports; frees addresses as an Attendant."""

    def __init__(self) -> None:
        """No address is taken."""
        self._taken: dict[str, str] = {}  # by pod's uid
        self._uids: dict[str, str] = {}  # by address

    def attend(self, change: Change, store: Store, now: Instant) -> None:
        """See Attendant."""
        if change.kind is not POD:
            return
        uid = change.object["metadata"]["uid"]
        if change.type is ChangeType.DELETED:
            self._free(uid)
        else:  # after a restart the addresses are found again
            address = change.object.get("status", {}).get("podIP")
            if address and uid not in self._taken:
                self._take(uid, address)

    def detailed(self, command: PatchStatus, store: Store, now: Instant) -> PatchStatus:
        """A `command` about a pod, saying of which generation; a kubelet's with what else it tells.

        upstream: pkg/api/v1/pod/util.go:CalculatePodConditionObservedGeneration
        """
        pod = store.find(POD, command.target.namespace, command.target.name)
        phase = command.fields.get("phase")
        if pod is None:
            return command
        generation = pod["metadata"].get("generation", 0)
        rows = command.conditions
        if not _is_kubelets(command, phase):
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
            details |= _containers(pod, phase, is_ready=_is_ready(command, pod), now=now)
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


def _is_kubelets(command: PatchStatus, phase: Any) -> bool:
    """Whether a kubelet speaks: of a phase, or of readiness."""
    return phase is not None or any(row.type == "Ready" for row in command.conditions)


def _is_ready(command: PatchStatus, pod: Json) -> bool:
    for condition in command.conditions:
        if condition.type == "Ready":
            return condition.status == "True"
    return any(
        row["type"] == "Ready" and row["status"] == "True"
        for row in pod["status"].get("conditions", ())
    )


def _internal_address(node: Json) -> str:
    for row in node.get("status", {}).get("addresses", ()):
        if row.get("type") == "InternalIP":
            return str(row.get("address", ""))
    return ""


def _containers(pod: Json, phase: Any, *, is_ready: bool, now: Instant) -> Json:
    timestamp, is_running = format_timestamp(now), phase == "Running"
    before = {
        row["name"]: row
        for field in ("containerStatuses", "initContainerStatuses")
        for row in pod["status"].get(field, ())
    }
    initial = pod["spec"].get("initContainers") or ()
    waiting = "PodInitializing" if initial else "ContainerCreating"
    made: Json = {
        "containerStatuses": [
            _status(pod, one, before, _state(one, before, phase, timestamp, waiting))
            | {"ready": is_ready and is_running, "started": is_running}
            for one in pod["spec"].get("containers", ())
        ]
    }
    if initial:
        made["initContainerStatuses"] = [
            _initial(pod, one, before, phase, timestamp) for one in initial
        ]
    return made


def _initial(
    pod: Json, container: Json, before: Mapping[str, Json], phase: Any, timestamp: str
) -> Json:
    """An init container's status: it has done its work, or goes on beside the others."""
    if container.get("restartPolicy") == "Always":
        state = _state(container, before, phase, timestamp, "PodInitializing")
        is_up = phase == "Running"
        return _status(pod, container, before, state) | {"ready": is_up, "started": is_up}
    if phase == "Pending":
        state = {"waiting": {"reason": "PodInitializing"}}
        return _status(pod, container, before, state) | {"ready": False, "started": False}
    known = before.get(container["name"])
    if known is not None and "terminated" in known.get("state", {}):
        return known
    state = {"terminated": _ending(timestamp, timestamp, 0, "Completed")}
    return _status(pod, container, before, state) | {"ready": True, "started": False}


def _state(
    container: Json, before: Mapping[str, Json], phase: Any, timestamp: str, waiting: str
) -> Json:
    known = before.get(container["name"], {}).get("state", {})
    started = known.get("running", {}).get("startedAt", timestamp)
    if phase == "Running":
        return {"running": {"startedAt": started}}
    if phase in _ENDED:
        if "terminated" in known:
            return dict(known)
        code, reason = (0, "Completed") if phase == "Succeeded" else (137, "Error")
        return {"terminated": _ending(started, timestamp, code, reason)}
    return {"waiting": {"reason": waiting}}


def _ending(started: str, finished: str, code: int, reason: str) -> Json:
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}


def _status(pod: Json, container: Json, before: Mapping[str, Json], state: Json) -> Json:
    uid, name = pod["metadata"]["uid"], container["name"]
    image, is_made = container.get("image", ""), "waiting" not in state
    return {
        "name": name,
        "image": image,
        "imageID": f"simulated://{image}" if is_made else "",
        **({"containerID": f"simulated://{uid}/{name}"} if is_made else {}),
        "restartCount": before.get(name, {}).get("restartCount", 0),
        "state": state,
        "lastState": before.get(name, {}).get("lastState", {}),
    }
