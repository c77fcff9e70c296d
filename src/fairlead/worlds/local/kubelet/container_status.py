"""Container statuses of a pod: state, image and restart count.

Containers start and stop with their pod. A container whose image changes is restarted. An ephemeral
container starts when it is added; one that waits for input ends at once, because attach is not
supported.

upstream: pkg/kubelet/kubelet_pods.go:convertToAPIContainerStatuses,
pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodActions
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant

_ENDED: Final = ("Succeeded", "Failed")
_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_COMPLETED: Final = "Completed"


def container_statuses(pod: Json, phase: Any, *, is_ready: bool, now: Instant) -> Json:
    """The container status lists of `pod` in `phase`; `is_ready` means its containers are ready."""
    return _Report(pod, phase, is_ready, format_timestamp(now), _known(pod)).lists()


def _known(pod: Json) -> dict[str, Json]:
    rows = (row for field in _LISTS for row in pod["status"].get(field) or ())
    return {row["name"]: row for row in rows}


@dataclass(frozen=True, slots=True)
class _Report:
    """The statuses of `pod` at `timestamp`; `before` has the previous ones by container."""

    pod: Json
    phase: Any
    is_ready: bool
    timestamp: str
    before: Mapping[str, Json]

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
        is_running = self.phase == "Running"
        up = {"ready": self.is_ready and is_running, "started": is_running}
        return self._status(container, self._state(container, waiting)) | up

    def _initial(self, container: Json) -> Json:
        """An init container: completed, or running if it is a sidecar."""
        if container.get("restartPolicy") == "Always":
            is_up = self.phase == "Running"
            state = self._state(container, "PodInitializing")
            return self._status(container, state) | {"ready": is_up, "started": is_up}
        if self.phase == "Pending":
            state = {"waiting": {"reason": "PodInitializing"}}
            return self._status(container, state) | {"ready": False, "started": False}
        known = self.before.get(container["name"])
        if known is not None and "terminated" in known.get("state", {}):
            return known
        state = {"terminated": _ending(self.timestamp, self.timestamp, 0, _COMPLETED)}
        return self._status(container, state) | {"ready": True, "started": False}

    def _ephemeral(self, container: Json) -> Json:
        """An ephemeral container's status, which is never ready."""
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
            return {"running": {"startedAt": started}}
        if self.phase in _ENDED:
            if "terminated" in known:
                return dict(known)
            code, reason = (0, _COMPLETED) if self.phase == "Succeeded" else (137, "Error")
            return {"terminated": _ending(started, self.timestamp, code, reason)}
        return {"waiting": {"reason": waiting}}

    def _status(self, container: Json, state: Json) -> Json:
        name, image = container["name"], container.get("image", "")
        before = self.before.get(name, {})
        restarts, last = before.get("restartCount", 0), before.get("lastState", {})
        if "running" in state and _runs_another(before, image):
            started = before["state"]["running"].get("startedAt", self.timestamp)
            last = {"terminated": _ending(started, self.timestamp, 0, _COMPLETED)}
            restarts, state = restarts + 1, {"running": {"startedAt": self.timestamp}}
        is_made = "waiting" not in state
        return {
            "name": name,
            "image": image,
            "imageID": f"simulated://{image}" if is_made else "",
            **({"containerID": self._id(name, restarts)} if is_made else {}),
            "restartCount": restarts,
            "state": state,
            "lastState": last,
            **self._amounts(container),
        }

    def _id(self, name: str, restarts: int) -> str:
        made = f"simulated://{self.pod['metadata']['uid']}/{name}"
        return f"{made}/{restarts}" if restarts else made

    def _amounts(self, container: Json) -> Json:
        """Resources of a running container, reported once the pod's spec has changed."""
        # upstream: pkg/kubelet/kubelet_pods.go:convertToAPIContainerStatuses
        given = container.get("resources") or {}
        if self.phase != "Running" or self.pod["metadata"].get("generation", 0) <= 1 or not given:
            return {}
        has = {key: given[key] for key in ("limits", "requests") if given.get(key)}
        allocated = given.get("requests")
        return {**({"allocatedResources": allocated} if allocated else {}), "resources": has}


def _runs_another(before: Json, image: str) -> bool:
    """Whether the container runs with another image than `image`."""
    return "running" in before.get("state", {}) and before.get("image") != image


def _ending(started: str, finished: str, code: int, reason: str) -> Json:
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}
