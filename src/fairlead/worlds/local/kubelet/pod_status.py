"""PodDetails: the parts of a pod's status that affect no decision.

The simulated kubelets decide when pods run, become ready, and end. This module adds the container
statuses and addresses, which clients read and kubectl shows in the columns READY and IP.

upstream: pkg/kubelet/kubelet_pods.go:convertStatusToAPIStatus, generateAPIPodStatus
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Network
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.pods.requests import RESIZE_PENDING
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import Command, Condition, CreateObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.pod_status import LOST_EXIT_CODE, LOST_REASON, STARTING
from fairlead.worlds.perform import condition_json

_ANYWHERE: Final = "10.200.0.0/16"
NETWORKS_KEPT: Final = 8_192
_KUBELETS_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
_SCHEDULED: Final = Condition("PodScheduled", "True")
_CONTAINERS_READY: Final = "ContainersReady"


class ReportInputs(Struct, frozen=True):
    """The inputs of a kubelet's status write, besides the old status and the command.

    `addresses` contains the status fields with addresses (hostIP, podIP and others) that the write
    sets; {} while the pod does not run. `spec` has all parts of the pod's spec that affect the
    container statuses.
    """

    addresses: Json
    spec: Json


class PodDetails:
    """Assigns pod IPs, completes status updates, and frees the IPs of deleted pods."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}  # by the pod's uid
        self._uids: dict[str, str] = {}  # by address
        # Keyed by network: all addresses of the network below this number are taken.
        self._lowest: dict[str, int] = {}

    def observe(self, change: StoredChange, store: Store, now: Instant) -> None:
        """Free the IP of a pod that was deleted; otherwise record the pod's IP as taken.

        When the cluster starts again, this method is called with every pod. These calls restore the
        assigned IPs.
        """
        if change.kind is not POD:
            return
        uid = change.object["metadata"]["uid"]
        if change.type is ChangeType.DELETED:
            self._free(uid)
        else:  # after a restart, restores the assigned IPs
            address = change.object.get("status", {}).get("podIP")
            if address and uid not in self._taken:
                self._take(uid, address)

    def inputs(self, command: PatchStatus, store: Store) -> ReportInputs | None:
        """Return the argument `inputs` of `detailed` for `command`, a kubelet's status write.

        If the pod runs and has no IP yet, this method assigns one. Returns None if the pod does not
        exist.
        """
        pod = store.find(POD, command.target.namespace, command.target.name)
        if pod is None:
            return None
        phase = command.fields.get("phase") or pod["status"].get("phase")
        is_up = phase in ("Pending", "Running")
        return ReportInputs(self._addresses(pod, store, phase) if is_up else {}, _reported(pod))

    def detailed(
        self, command: PatchStatus, inputs: ReportInputs | None, store: Store, now: Instant
    ) -> PatchStatus:
        """Return `command` with the details that clients expect.

        If the pod does not exist, `command` is returned unchanged. A kubelet's write (`inputs` is
        not None) that rejects the pod gets only `status.observedGeneration`. In any other write,
        each condition gets an observedGeneration, and the conditions are merged into those of the
        pod. If the write is by a kubelet, `status.observedGeneration`, the addresses and the
        container statuses are added too.

        upstream: pkg/api/v1/pod/util.go:CalculatePodConditionObservedGeneration
        """
        pod = store.find(POD, command.target.namespace, command.target.name)
        if pod is None:
            return command
        generation = pod["metadata"].get("generation", 0)
        rows = command.conditions
        if inputs is not None and _is_rejection(command):
            return replace(command, fields={"observedGeneration": generation, **command.fields})
        if inputs is None:
            details = {"conditions": _conditions(pod, rows, now)} if rows else {}
            return replace(command, fields={**details, **command.fields}, conditions=())
        is_deferred = any(row.type == RESIZE_PENDING for row in rows)
        details = {
            "observedGeneration": generation,
            "conditions": [
                row
                for row in _of_kubelet(_conditions(pod, (*rows, _SCHEDULED), now))
                if is_deferred or row["type"] != RESIZE_PENDING
            ],
        }
        details |= inputs.addresses
        phase = command.fields.get("phase") or pod["status"].get("phase")
        read = {**pod, "spec": inputs.spec}
        is_ready = _is_ready(command, pod)
        details |= container_statuses(
            read,
            phase,
            _rows_of(command.fields),
            is_ready=is_ready,
            is_resize_deferred=is_deferred,
            now=now,
        )
        return replace(command, fields={**command.fields, **details}, conditions=())

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
        """Assign the lowest free pod IP of the node to the pod `uid`, and return it.

        Returns "" if no IP is free.
        """
        network = node.get("spec", {}).get("podCIDR") or _ANYWHERE
        first, last = _hosts(network)
        for number in range(self._lowest.get(network, first), last + 1):
            address = ".".join(map(str, number.to_bytes(4)))
            if address not in self._uids:
                self._lowest[network] = number + 1
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
            self._lowest.clear()


def with_generate_name(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a controller's new pod with generateName set to the controller's name and "-"."""
    # upstream: pkg/controller/controller_utils.go:GetPodFromTemplate
    meta = manifest.get("metadata", {})
    owner = next((ref for ref in meta.get("ownerReferences", ()) if ref.get("controller")), None)
    if manifest.get("kind") != POD.kind or owner is None or "generateName" in meta:
        return manifest
    return {**manifest, "metadata": {**meta, "generateName": f"{owner['name']}-"}}


def generated_name(command: Command) -> str:
    """Return the name of the object that `command` creates, if upstream's API server generates it.

    Returns "" for other commands. Fairlead's controllers name all their objects themselves. Where
    upstream's controllers leave the name to the API server, the object has a generateName. Pods of
    StatefulSets have a generateName, too, but upstream's controller names them.
    """
    if not isinstance(command, CreateObject):
        return ""
    meta = command.manifest["metadata"]
    is_named = any(ref["kind"] == "StatefulSet" for ref in meta.get("ownerReferences", ()))
    return "" if is_named or not meta.get("generateName") else str(meta.get("name", ""))


@lru_cache(maxsize=NETWORKS_KEPT)
def _hosts(network: str) -> tuple[int, int]:
    """Return (first, last) address that pods of `network` can have, as integers.

    If `network` is not a range of IPv4 addresses, the range `_ANYWHERE` replaces it. Nodes of a
    dump can have a range of IPv6 addresses, or a malformed one.
    """
    try:
        hosts = IPv4Network(network, strict=False)
    except ValueError:
        hosts = IPv4Network(_ANYWHERE)
    is_tiny = hosts.num_addresses <= 2  # all addresses of such networks belong to hosts
    first, last = int(hosts.network_address), int(hosts.broadcast_address)
    return (first, last) if is_tiny else (first + 1, last - 1)


def _conditions(pod: Json, rows: Iterable[Condition], now: Instant) -> list[Json]:
    """Return all conditions of `pod` after the changes `rows`.

    The changed conditions get the pod's current generation as their observedGeneration.
    """
    seen = {"observedGeneration": pod["metadata"].get("generation", 0)}
    changes = ({**condition_json(row), **seen} for row in rows)
    before = pod["status"].get("conditions", ())
    return with_conditions(before, changes, format_timestamp(now))


def _of_kubelet(conditions: list[Json]) -> list[Json]:
    """Return `conditions` in the order of a kubelet, with the kubelet's own conditions first."""
    # upstream: pkg/kubelet/kubelet_pods.go:generateAPIPodStatus
    order = {name: place for place, name in enumerate(_KUBELETS_CONDITIONS)}
    return sorted(conditions, key=lambda row: order.get(row["type"], len(order)))


def _is_rejection(command: PatchStatus) -> bool:
    """Return whether `command` rejects the pod, whose containers are then never created."""
    return command.fields.get("phase") == "Failed" and not command.conditions


def _is_ready(command: PatchStatus, pod: Json) -> bool:
    """Return whether the pod's containers are ready after `command`.

    Readiness gates are ignored.
    """
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


# --- containers ----------------------------------------------------------------------------------

# Containers start and stop with their pod. A container is restarted if its image changes, or an
# amount for which its resizePolicy requires a restart. An ephemeral container starts when it is
# added; one that waits for input ends immediately, because attach is not supported.
#
# upstream: pkg/kubelet/kubelet_pods.go:convertToAPIContainerStatuses,
# pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodActions

_ENDED: Final = ("Succeeded", "Failed")
_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_COMPLETED: Final = "Completed"
_AMOUNTS: Final = ("allocatedResources", "resources")
# The amounts that a kubelet sets in cgroups; it sets no memory request there.
_ACTUATED: Final = (("requests", "cpu"), ("limits", "cpu"), ("limits", "memory"))


# The members of the spec, and of its containers, that `_Report` reads. Status writes of two pods
# share a result only if these members are equal.
_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
_READ: Final = ("name", "image", "resizePolicy", "resources", "restartPolicy", "stdin")


def _reported(pod: Json) -> Json:
    """Return the parts of the pod's spec that `container_statuses` reads."""
    spec = pod["spec"]
    return {
        key: [{part: one[part] for part in _READ if part in one} for one in spec[key]]
        for key in _CONTAINER_LISTS
        if spec.get(key)
    }


def container_statuses(
    pod: Json,
    phase: Any,
    stated: Mapping[str, Json],
    *,
    is_ready: bool,
    is_resize_deferred: bool,
    now: Instant,
) -> Json:
    """Return the container status lists of `pod` in `phase`.

    `stated` contains the container statuses in the kubelet's write, keyed by container name. The
    kubelet writes them for containers that were stopped, or were lost with their machine.
    `is_ready` means that the containers are ready. `is_resize_deferred` means that a resize is
    deferred, so that the containers keep their present amounts.
    """
    timestamp = format_timestamp(now)
    before = _rows_of(pod["status"])
    return _Report(pod, phase, is_ready, is_resize_deferred, timestamp, before, stated).lists()


def _rows_of(status: Mapping[str, Any]) -> dict[str, Json]:
    """Return the container statuses in `status`, keyed by container name."""
    rows = (row for field in _LISTS for row in status.get(field) or ())
    return {row.get("name", ""): row for row in rows}  # a hand-written name can be empty


class _Report(Struct, frozen=True):
    """Builds the container statuses of `pod` at `timestamp`.

    `before` contains the container statuses that are stored. `stated` contains the container
    statuses that the kubelet sends in the current write. `before` and `stated` are keyed by
    container name.
    """

    pod: Json
    phase: Any
    is_ready: bool
    is_resize_deferred: bool
    timestamp: str
    before: Mapping[str, Json]
    stated: Mapping[str, Json]

    def lists(self) -> Json:
        spec = self.pod["spec"]
        initial, added = spec.get("initContainers"), spec.get("ephemeralContainers")
        waiting = "PodInitializing" if initial else "ContainerCreating"
        containers = spec.get("containers", ())
        made: Json = {"containerStatuses": [self._container(one, waiting) for one in containers]}
        if initial:
            made["initContainerStatuses"] = [self._initial(one) for one in initial]
        if added:
            made["ephemeralContainerStatuses"] = [self._ephemeral(one) for one in added]
        return made

    def _container(self, container: Json, waiting: str) -> Json:
        state = self._state(container, waiting)
        is_running = "running" in state
        was_ready = self.before.get(container["name"], {}).get("ready", False)
        is_ready = self.is_ready or (self._has_stopped_containers() and was_ready)
        up = {"ready": is_ready and is_running, "started": is_running}
        return self._status(container, state) | up

    def _initial(self, container: Json) -> Json:
        """Return the status of an init container: completed, or waiting while the pod is pending.

        A sidecar (restartPolicy Always) instead gets the state that a main container would get.
        """
        if container.get("restartPolicy") == "Always":
            state = self._state(container, "PodInitializing")
            is_up = "running" in state
            return self._status(container, state) | {"ready": is_up, "started": is_up}
        if self.phase == "Pending":
            state = {"waiting": {"reason": "PodInitializing"}}
            return self._status(container, state) | {"ready": False, "started": False}
        known = self.before.get(container["name"])
        if known is not None and "terminated" in known.get("state", {}):
            restarts = self.stated.get(container["name"], known).get("restartCount", 0)
            return {**known, "restartCount": restarts}
        code, reason = self._stated_end(container) or (0, _COMPLETED)
        state = {"terminated": _ending(self.timestamp, self.timestamp, code, reason)}
        return self._status(container, state) | {"ready": code == 0, "started": False}

    def _ephemeral(self, container: Json) -> Json:
        """Return an ephemeral container's status, which is never ready."""
        known = self.before.get(container["name"], {}).get("state", {})
        if "terminated" in known:
            state: Json = dict(known)
        elif container.get("stdin"):
            state = {"terminated": _ending(self.timestamp, self.timestamp, 0, _COMPLETED)}
        else:
            state = self._state(container, "ContainerCreating")
        return self._status(container, state) | {"ready": False}

    def _state(self, container: Json, waiting: str) -> Json:
        known = self.before.get(container["name"], {}).get("state", {})
        started = known.get("running", {}).get("startedAt", self.timestamp)
        if self.phase == "Running":
            return self._stopped(container) or {"running": {"startedAt": started}}
        if self.phase in _ENDED:
            if "terminated" in known:
                return dict(known)
            otherwise = (0, _COMPLETED) if self.phase == "Succeeded" else (137, "Error")
            code, reason = self._stated_end(container) or otherwise
            return {"terminated": _ending(started, self.timestamp, code, reason)}
        return {"waiting": {"reason": waiting}}

    def _stopped(self, container: Json) -> Json | None:
        """Return the state of `container` if a client has written that it stopped, else None.

        The container keeps this state until a client writes that it runs, or its node restarts.
        """
        name = container["name"]
        if self.pod["status"].get("phase") != "Running" or name in self.stated:
            return None
        state = self.before.get(name, {}).get("state") or {}
        if state.get("terminated"):
            return {"terminated": state["terminated"]}
        waiting = state.get("waiting") or {}
        return None if waiting.get("reason", "") in STARTING else {"waiting": waiting}

    def _has_stopped_containers(self) -> bool:
        return any(self._stopped(one) for one in self.pod["spec"].get("containers", ()))

    def _stated_end(self, container: Json) -> tuple[int, str] | None:
        """Return (exit code, reason) of `container` from the kubelet's status write.

        Returns None if that write does not say that `container` has ended.
        """
        state = self.stated.get(container["name"], {}).get("state") or {}
        ended = state.get("terminated")
        return None if ended is None else (ended["exitCode"], ended["reason"])

    def _status(self, container: Json, state: Json) -> Json:
        name, image = container["name"], container.get("image", "")
        before = self.before.get(name, {})
        restarts, last = before.get("restartCount", 0), before.get("lastState", {})
        amounts = self._amounts(container, before)
        is_changed = before.get("image") != image or _is_resize_by_restart(
            container, before.get("resources"), amounts.get("resources", {})
        )
        if "running" in state and "running" in before.get("state", {}) and is_changed:
            started = before["state"]["running"].get("startedAt", self.timestamp)
            last = {"terminated": _ending(started, self.timestamp, 0, _COMPLETED)}
            restarts, state = restarts + 1, {"running": {"startedAt": self.timestamp}}
        counted = self.stated.get(name, {}).get("restartCount", 0)
        if counted > restarts and "running" in state:
            started = before.get("state", {}).get("running", {}).get("startedAt", self.timestamp)
            ended = _ending(started, self.timestamp, LOST_EXIT_CODE, LOST_REASON)
            restarts, last = counted, {"terminated": ended}
            state = {"running": {"startedAt": self.timestamp}}
        is_made = "waiting" not in state
        return {
            "name": name,
            "image": image,
            "imageID": f"simulated://{image}" if is_made else "",
            **({"containerID": self._id(name, restarts)} if is_made else {}),
            "restartCount": restarts,
            "state": state,
            "lastState": last,
            **amounts,
        }

    def _id(self, name: str, restarts: int) -> str:
        made = f"simulated://{self.pod['metadata']['uid']}/{name}"
        return f"{made}/{restarts}" if restarts else made

    def _amounts(self, container: Json, before: Json) -> Json:
        """Return the resource fields of the status of `container`; `before` is its old status."""
        # upstream: pkg/kubelet/kubelet_pods.go:convertToAPIContainerStatuses
        if self.phase != "Running":
            return {}
        if self.is_resize_deferred and "resources" in before:
            return {key: before[key] for key in _AMOUNTS if key in before}
        given = container.get("resources") or {}
        has = {key: given[key] for key in ("limits", "requests") if given.get(key)}
        allocated = given.get("requests")
        return {**({"allocatedResources": allocated} if allocated else {}), "resources": has}


def _is_resize_by_restart(container: Json, before: Json | None, after: Json) -> bool:
    """Return whether `container` must restart because of the change of its resources.

    `before` and `after` are the old and the new resources. If the old resources are not known,
    `before` is None, and the result is False.
    """
    # upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodResizeAction
    if before is None:
        return False
    by_restart = {
        policy["resourceName"]
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
    }
    return any(
        before.get(part, {}).get(name) != after.get(part, {}).get(name)
        for part, name in _ACTUATED
        if name in by_restart
    )


def _ending(started: str, finished: str, code: int, reason: str) -> Json:
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}
