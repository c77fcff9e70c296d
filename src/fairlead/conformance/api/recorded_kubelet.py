"""RecordedKubelet: what the script in a kubelet's place wrote while exchanges were recorded.

A pod on a node is being created at once, and 0.2 s later has become what its annotation
`golden/behavior` asks for; without one it runs, or ends well if it is not to be started again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage import Change, ChangeType
from fairlead.apiserver.store import Store
from fairlead.core.instant import seconds
from fairlead.core.timer_queue import TimerQueue

Json = dict[str, Any]

BEHAVIOR: Final = "golden/behavior"
STEP: Final = seconds(0.2)
_HOST: Final = "127.0.0.1"
_CREATING: Final[Json] = {"waiting": {"reason": "ContainerCreating"}}
_PULLING: Final[Json] = {
    "waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
}
_BACKING_OFF: Final[Json] = {
    "waiting": {
        "reason": "CrashLoopBackOff",
        "message": "back-off 40s restarting failed container",
    }
}
_EVICTED: Final = {"reason": "Evicted", "message": "The node was low on resource: memory."}


class RecordedKubelet:
    """An Attendant that writes the status of pods; `run` does what is due."""

    def __init__(self) -> None:
        """No pod is known."""
        self._due: TimerQueue[tuple[str, str, str]] = TimerQueue()
        self._addresses = 0

    def attend(self, change: Change, store: Store, now: int) -> None:
        """Begin with a pod that has just got its node."""
        pod = change.object
        if change.kind is not POD or change.type is ChangeType.DELETED or not _is_new(pod):
            return
        meta, behavior = pod["metadata"], behavior_of(pod)
        if behavior == "manual":
            return
        if behavior == "init":
            store.write(POD, {**pod, "status": _initializing(pod, now)})
            return
        self._addresses += 1
        address = f"10.244.{self._addresses // 250}.{self._addresses % 250 + 1}"
        _write(store, pod, "creating", now, address)
        if behavior != "creating":
            self._due.add(now + STEP, (meta["namespace"], meta["name"], meta["uid"]))

    def run(self, store: Store, now: int) -> None:
        """Let pods become what they are to become by now."""
        for namespace, name, uid in self._due.pop_due(now):
            pod = store.find(POD, namespace, name)
            if pod is not None and pod["metadata"]["uid"] == uid:
                _write(store, pod, behavior_of(pod), now, pod["status"].get("podIP", ""))


def behavior_of(pod: Json) -> str:
    """What a pod is to become."""
    asked: str = (pod["metadata"].get("annotations") or {}).get(BEHAVIOR, "")
    if asked:
        return asked
    return "" if pod["spec"].get("restartPolicy") == "Always" else "complete"


def _is_new(pod: Json) -> bool:
    meta, status = pod["metadata"], pod.get("status", {})
    return (
        bool(pod["spec"].get("nodeName"))
        and not meta.get("deletionTimestamp")
        and status.get("phase", "Pending") == "Pending"
        and "startTime" not in status
    )


def _write(store: Store, pod: Json, behavior: str, now: int, address: str) -> None:
    timestamp = format_timestamp(now)
    phase, state, more = _outcome(behavior, timestamp)
    is_ready = behavior in ("", "stuck")
    started = pod["status"].get("startTime", timestamp)
    status = {
        "phase": phase,
        "conditions": _conditions(timestamp, is_ready=is_ready),
        "hostIP": _HOST,
        "hostIPs": [{"ip": _HOST}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": started,
        "containerStatuses": [
            {
                "name": container["name"],
                "state": state,
                "lastState": more.get("lastState", {}),
                "ready": is_ready,
                "restartCount": more.get("restartCount", 0),
                "image": container.get("image", ""),
                "imageID": "",
                "started": is_ready,
            }
            for container in pod["spec"]["containers"]
        ],
        **(_EVICTED if behavior == "evicted" else {}),
    }
    kept = {key: pod["status"][key] for key in ("qosClass",) if key in pod["status"]}
    store.write(POD, {**pod, "status": {**kept, **status}})


def _outcome(behavior: str, timestamp: str) -> tuple[str, Json, Mapping[str, Any]]:
    """Phase, state of every container, and what else stands beside the state."""
    running = {"running": {"startedAt": timestamp}}
    match behavior:
        case "creating":
            return "Pending", _CREATING, {}
        case "complete":
            return "Succeeded", _terminated(0, "Completed", timestamp), {}
        case "error":
            return "Failed", _terminated(3, "Error", timestamp), {}
        case "evicted":
            return "Failed", _CREATING, {}
        case "imagepull":
            return "Pending", _PULLING, {}
        case "notready":
            return "Running", running, {"restartCount": 1}
        case "crash":
            last = _terminated(1, "Error", timestamp)
            return "Running", _BACKING_OFF, {"lastState": last, "restartCount": 4}
        case _:
            return "Running", running, {}


def _terminated(code: int, reason: str, timestamp: str) -> Json:
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": timestamp,
            "finishedAt": timestamp,
            "containerID": "containerd://x",
        }
    }


def _conditions(timestamp: str, *, is_ready: bool) -> list[Json]:
    """The script gave its reason for not being ready even where pods were."""
    ready = "True" if is_ready else "False"
    at = {"lastProbeTime": None, "lastTransitionTime": timestamp}
    return [
        {"type": "Initialized", "status": "True", **at},
        {
            "type": "Ready",
            "status": ready,
            **at,
            "reason": "ContainersNotReady",
            "message": "containers with unready status: [c]",
        },
        {"type": "ContainersReady", "status": ready, **at},
        {"type": "PodScheduled", "status": "True", **at},
    ]


def _initializing(pod: Json, now: int) -> Json:
    timestamp = format_timestamp(now)
    bare = {"lastState": {}, "ready": False, "restartCount": 0, "imageID": ""}

    def row(container: Json, state: Json) -> Json:
        return {"name": container["name"], "state": state, **bare, "image": container["image"]}

    running, waiting = {"running": {"startedAt": timestamp}}, {"reason": "PodInitializing"}
    return {
        **pod["status"],
        "startTime": timestamp,
        "initContainerStatuses": [
            row(container, running) for container in pod["spec"].get("initContainers", ())
        ],
        "containerStatuses": [
            row(container, {"waiting": waiting}) for container in pod["spec"]["containers"]
        ],
    }
