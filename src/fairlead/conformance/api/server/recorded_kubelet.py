"""RecordedKubelet: writes pod statuses like the script that replaced kubelets in the recordings.

A bound pod is ContainerCreating almost immediately. After another 0.2 s, the pod enters the state
that its annotation `golden/behavior` names. A pod without this annotation runs. If its
restartPolicy is not Always, this pod succeeds a second later. A deleted pod is removed after 0.4 s.
Some values of the annotation have other effects:

    complete    the pod runs for a second before it succeeds
    creating    the pod stays ContainerCreating
    init        the pod stays in the state in which its init containers run
    manual      nothing is written until the pod is deleted
    stuck       the pod runs, and is not removed when it is deleted
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.timer_queue import TimerQueue

BEHAVIOR: Final = "golden/behavior"
# The script noticed a bound pod after OBSERVATION_DELAY, and started pods one by one,
# START_INTERVAL apart.
OBSERVATION_DELAY: Final = seconds(0.005)
START_INTERVAL: Final = seconds(0.006)
STEP: Final = seconds(0.2)  # from ContainerCreating to the next state
WORKING: Final = seconds(1.0)  # from running to success
STOPPING: Final = seconds(0.4)  # from deletion to removal
_RUNNING: Final = ""
_STOPPED: Final = "stopped"
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


class _Step:
    """The next state of a pod (`becomes`), and the pod's identity."""

    def __init__(self, pod: Json, becomes: str) -> None:
        meta = pod["metadata"]
        self.namespace, self.name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self.becomes = becomes


class RecordedKubelet:
    """A store listener that plans the states of pods; `run` writes the states that are due."""

    def __init__(self) -> None:
        """Start without pods."""
        self._due: TimerQueue[_Step] = TimerQueue()
        self._addresses = 0
        self._free_at = 0

    def observe(self, change: StoredChange, store: Store, now: int) -> None:
        """Plan the next state of a newly bound or deleted pod."""
        pod = change.object
        if change.kind is not POD or change.type is ChangeType.DELETED:
            return
        meta, behavior = pod["metadata"], behavior_of(pod)
        if meta.get("deletionTimestamp"):
            if behavior != "stuck" and meta.get("deletionGracePeriodSeconds"):
                self._due.add(now + STOPPING, _Step(pod, _STOPPED))
        elif _is_new(pod) and behavior != "manual":
            first = behavior if behavior in ("init", "creating") else "creating"
            self._free_at = max(self._free_at + START_INTERVAL, now + OBSERVATION_DELAY)
            self._due.add(self._free_at, _Step(pod, first))

    def next_due(self) -> int | None:
        """Return the time in ns of the next planned state; None if no state is planned."""
        return self._due.next_due()

    def run(self, store: Store, now: int) -> None:
        """Write the pod states that were planned for `now` or an earlier time."""
        for step in self._due.pop_due(now):
            pod = store.find(POD, step.namespace, step.name)
            if pod is None or pod["metadata"]["uid"] != step.uid:
                continue
            if step.becomes == _STOPPED:
                store.delete(POD, step.namespace, step.name, now, Deletion(grace_period_s=0))
            elif step.becomes == "init":
                store.write(POD, pod, {**pod, "status": _initializing(pod, now)})
            elif not pod["metadata"].get("deletionTimestamp"):
                self._advance_pod(pod, step.becomes, store, now)

    def _advance_pod(self, pod: Json, becomes: str, store: Store, now: int) -> None:
        wanted, address = behavior_of(pod), pod["status"].get("podIP", "")
        if becomes == "creating":
            self._addresses += 1
            address = f"10.244.{self._addresses // 250}.{self._addresses % 250 + 1}"
            if wanted != "creating":
                first = _RUNNING if wanted == "complete" else wanted
                self._due.add(now + STEP, _Step(pod, first))
        elif becomes == _RUNNING and wanted == "complete":
            self._due.add(now + WORKING, _Step(pod, wanted))
        _write(store, pod, becomes, now, address)


def behavior_of(pod: Json) -> str:
    """Return the behavior that a pod's annotation BEHAVIOR sets, or the default behavior.

    "" means that the pod keeps running.
    """
    behavior: str = (pod["metadata"].get("annotations") or {}).get(BEHAVIOR, "")
    if behavior:
        return behavior
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
    status = {
        "phase": phase,
        "conditions": _conditions(timestamp, is_ready=is_ready),
        "hostIP": _HOST,
        "hostIPs": [{"ip": _HOST}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": timestamp,
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
    store.write(POD, pod, {**pod, "status": {**kept, **status}})


def _outcome(behavior: str, timestamp: str) -> tuple[str, Json, Mapping[str, Any]]:
    """Return (phase, container state, additional status fields) for a behavior."""
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
    """Return the pod conditions that the kubelet script of the recordings wrote.

    The condition Ready has the reason ContainersNotReady even if `is_ready` is set, because the
    script always wrote this reason.
    """
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
