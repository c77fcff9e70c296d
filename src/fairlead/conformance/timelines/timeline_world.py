"""The scripted world of the recorded timelines: API rules, kubelets and latencies, in milliseconds.

Objects are JSON values under the simplest rules that the recorder's world had: nothing is
validated, a merge patch touches spec and status alike, a pod created on a node runs at once, a
bound one after `kubelet_start_ms`, a deleted one is removed after its grace period plus
`kubelet_stop_ms`. Requests of the scheduler are applied after the latency of their kind, and what
they change is emitted before they are answered.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from fairlead.api.codec import decode
from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.conformance.timelines.write_log import Writes
from fairlead.engine.core.command import (
    Bind,
    Command,
    Condition,
    DeleteObject,
    Issued,
    ObjectRef,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    Stimulus,
)
from fairlead.worlds.driver import CommandSource

Act = Callable[[], None]

NS_PER_MS: Final = 1_000_000
EPOCH: Final[Instant] = parse_timestamp("2030-01-01T00:00:00Z")
_GRACE_DEFAULT_S: Final = 30
_API_VERSIONS: Final = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "namespaces": ("v1", "Namespace"),
    "services": ("v1", "Service"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "storageclasses": ("storage.k8s.io/v1", "StorageClass"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
}
_REASONS: Final = {
    404: FailureReason.NOT_FOUND,
    409: FailureReason.CONFLICT,
    500: FailureReason.INTERNAL_ERROR,
}


def instant(t_ms: float) -> Instant:
    """The instant that the recorder calls `t_ms`."""
    return EPOCH + round(t_ms * NS_PER_MS)


def to_ms(now: Instant) -> int:
    """The recorder's name for `now`."""
    return (now - EPOCH) // NS_PER_MS


@dataclass(slots=True)
class _Fault:
    """The next `count` matching calls fail with HTTP `code`."""

    call: str
    key: str
    code: int
    count: int


@dataclass(slots=True)
class TimelineWorld:
    """Drive with `run`; `writes` fills up as the recorder's list does."""

    config: Json
    terminate_ms: Json
    controller: CommandSource
    writes: Writes = field(default_factory=Writes)
    noop_ops: list[Json] = field(default_factory=list)
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)
    _agenda: list[tuple[int, int, Act]] = field(default_factory=list)
    _requests: list[tuple[int, int, Act]] = field(default_factory=list)
    _sequence: int = 0
    _created: int = 0
    _faults: list[_Fault] = field(default_factory=list)
    _stimuli: list[Stimulus] = field(default_factory=list)
    _now_ms: int = 0

    # --- time ------------------------------------------------------------------------------

    def at(self, t_ms: int, act: Act) -> None:
        """Let `act` happen at `t_ms`; in order of insertion within one instant."""
        self._sequence += 1
        heapq.heappush(self._agenda, (t_ms, self._sequence, act))

    def run(self, until_ms: int) -> None:
        """Let time pass up to and including `until_ms`.

        At one instant whatever a request or an operation causes, turns of pods included, is over
        before the next happens; requests come before operations; and what the scheduler waited
        for (the end of a cycle that takes time) comes after both.
        """
        while (due := self._next_ms()) is not None and due <= until_ms:
            self._now_ms = max(self._now_ms, due)
            wanted = self.controller.next_deadline()
            if wanted is not None and wanted < self._now:
                self._perform_all(self.controller.handle_deadline(self._now))
            elif self._requests and self._requests[0][0] <= self._now_ms:
                heapq.heappop(self._requests)[2]()
            elif self._agenda and self._agenda[0][0] <= self._now_ms:
                heapq.heappop(self._agenda)[2]()
            else:
                self._perform_all(self.controller.handle_deadline(self._now))
            self._settle()

    def begin(self, start_ms: int) -> None:
        """Everything so far existed before the scheduler's start.

        Unbound pods are queued in order of namespace and name.
        """
        self._now_ms = start_ms
        self._stimuli.sort(key=_queueing_order)
        self._settle()

    @property
    def _now(self) -> Instant:
        return instant(self._now_ms)

    def _next_ms(self) -> int | None:
        due = self.controller.next_deadline()
        times = [heap[0][0] for heap in (self._agenda, self._requests) if heap]
        if due is not None:
            times.append(max(self._now_ms, -((EPOCH - due) // NS_PER_MS)))
        return min(times, default=None)

    def _settle(self) -> None:
        while self._stimuli:
            self._perform_all(self.controller.handle(self._stimuli.pop(0), self._now))

    # --- operations of the script ----------------------------------------------------------

    def operate(self, operation: Json) -> None:
        """One operation of `initial` or `script`."""
        match operation["op"]:
            case "create":
                done = self._create(operation["kind"], operation["obj"])
            case "patch":
                done = self._patch(operation["kind"], operation["key"], operation["patch"])
            case "delete":
                done = self._delete_by_script(operation)
            case "finish":
                done = self._patch("pods", operation["key"], {"status": {"phase": "Succeeded"}})
            case "fail_next":
                key = operation.get("key", "")
                fault = _Fault(operation["call"], key, operation["code"], operation["count"])
                self._faults.append(fault)
                done = True
            case unknown:
                raise ValueError(f"unknown op {unknown!r}")
        if not done:
            self.noop_ops.append(operation)

    def _create(self, kind: str, obj: Json) -> bool:
        key = _key(obj["metadata"])
        if (kind, key) in self.objects:
            return False
        self._created += 1
        uid = f"uid-{obj['metadata']['name']}-{self._created}"
        api_version, kind_name = _API_VERSIONS[kind]
        metadata = {"uid": uid, **obj["metadata"]}
        stored = {"apiVersion": api_version, "kind": kind_name, **obj, "metadata": metadata}
        if kind == "pods":
            stored = self._defaulted(stored)
        self._put(kind, key, stored)
        return True

    def _defaulted(self, pod: Json) -> Json:
        spec = {"schedulerName": "default-scheduler", "priority": 0, **pod["spec"]}
        status = dict(pod.get("status", {}))
        if spec.get("nodeName"):
            status = {"phase": "Running", "startTime": self._timestamp(), **status}
        elif spec.get("schedulingGates"):
            gated = Condition("PodScheduled", "False", "SchedulingGated", "")
            status = {"phase": "Pending", **status, "conditions": [_as_json(gated)]}
        else:
            status = {"phase": "Pending", **status}
        return {**pod, "spec": spec, "status": status}

    def _timestamp(self) -> str:
        return format_timestamp(self._now)

    def _patch(self, kind: str, key: str, patch: Json) -> bool:
        stored = self.objects.get((kind, key))
        if stored is None:
            return False
        self._put(kind, key, _merged(stored, patch))
        return True

    def _delete_by_script(self, operation: Json) -> bool:
        kind, key = operation["kind"], operation["key"]
        stored = self.objects.get((kind, key))
        if stored is None:
            return False
        if kind != "pods":
            self._remove(kind, key)
            return True
        self._delete_pod(stored, operation.get("grace_s"), operation.get("terminate_ms"))
        return True

    # --- objects ---------------------------------------------------------------------------

    def _put(self, kind: str, key: str, obj: Json) -> None:
        before = self.objects.get((kind, key))
        self.objects[kind, key] = obj
        if kind == "pods":
            self.writes.pod_changed(self._now_ms, before, obj)
        self._stimuli.append(ObjectChanged(decode(obj)))

    def _remove(self, kind: str, key: str) -> None:
        gone = self.objects.pop((kind, key))
        if kind == "pods":
            self.writes.removed(self._now_ms, key)
        self._stimuli.append(ObjectDeleted(decode(gone)))

    def _delete_pod(self, pod: Json, grace_s: int | None, terminate_ms: int | None) -> None:
        """Graceful deletion; a second one changes nothing."""
        key, metadata = _key(pod["metadata"]), pod["metadata"]
        grace = pod["spec"].get("terminationGracePeriodSeconds", _GRACE_DEFAULT_S)
        grace = grace if grace_s is None else grace_s
        finished = pod["status"]["phase"] in ("Succeeded", "Failed")
        if not pod["spec"].get("nodeName") or finished or grace == 0:
            self._remove("pods", key)
            return
        if metadata.get("deletionTimestamp"):
            return
        marked = {
            **metadata,
            "deletionTimestamp": format_timestamp(instant(self._now_ms + grace * 1000)),
            "deletionGracePeriodSeconds": grace,
        }
        self._put("pods", key, {**pod, "metadata": marked})
        after = self.terminate_ms.get(key, grace * 1000 + self.config["kubelet_stop_ms"])
        after = after if terminate_ms is None else terminate_ms
        uid = metadata["uid"]
        self.at(self._now_ms + after, partial(self._kubelet_removes, key, uid))

    def _kubelet_removes(self, key: str, uid: str) -> None:
        if self._pod(key, uid) is not None:
            self._remove("pods", key)

    def _kubelet_starts(self, key: str, uid: str) -> None:
        pod = self._pod(key, uid)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        if pod["status"]["phase"] != "Pending":
            return
        status = {**pod["status"], "phase": "Running", "startTime": self._timestamp()}
        self.writes.running(self._now_ms, key)
        self._put("pods", key, {**pod, "status": status})

    def _pod(self, key: str, uid: str) -> Json | None:
        pod = self.objects.get(("pods", key))
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    # --- the scheduler's requests ----------------------------------------------------------

    def _perform_all(self, issued: Sequence[Issued]) -> None:
        for command in (one.command for one in issued):
            if isinstance(command, RecordEvent):
                self.writes.event(self._now_ms, command)
                continue
            delay = self._latency(command)
            if delay:
                self._sequence += 1
                act: Act = partial(self._perform, command)
                request = (self._now_ms + delay, self._sequence, act)
                heapq.heappush(self._requests, request)
            else:
                self._perform(command)

    def _latency(self, command: Command) -> int:
        match command:
            case Bind():
                name = "bind_ms"
            case PatchStatus(why=""):
                name = "patch_ms"
            case _:
                name = "preempt_call_ms"
        found: int = self.config.get(name, 0)
        return found

    def _perform(self, command: Command) -> None:
        match command:
            case Bind():
                failure = self._bind(command)
            case PatchStatus(target=target):
                failure = self._patch_status(command, target)
            case DeleteObject(target=target):
                failure = self._delete_victim(target)
            case _:
                raise TypeError(type(command).__name__)
        if failure is None:
            self._stimuli.append(CommandSucceeded(command))
        else:
            code, message = failure
            self._stimuli.append(CommandFailed(command, _REASONS[code], message))

    def _fault(self, call: str, key: str) -> int | None:
        for fault in self._faults:
            if fault.call == call and fault.key in ("", key) and fault.count:
                fault.count -= 1
                return fault.code
        return None

    def _bind(self, bind: Bind) -> tuple[int, str] | None:
        key = bind.pod.key
        failure = self._bind_failure(bind)
        if failure is not None:
            self.writes.bind_error(self._now_ms, key, bind.node, *failure)
            return failure
        pod = self.objects["pods", key]
        self.writes.bind(self._now_ms, key, bind.node)
        scheduled = Condition("PodScheduled", "True")
        status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
        status["conditions"] = _with_condition(status.get("conditions", []), scheduled)
        spec = {**pod["spec"], "nodeName": bind.node}
        self._put("pods", key, {**pod, "spec": spec, "status": status})
        uid = pod["metadata"]["uid"]
        starts_ms = self._now_ms + self.config["kubelet_start_ms"]
        self.at(starts_ms, partial(self._kubelet_starts, key, uid))
        return None

    def _bind_failure(self, bind: Bind) -> tuple[int, str] | None:
        """The API's refusals, in the recorder's words."""
        key, name = bind.pod.key, bind.pod.name
        code = self._fault("bind", key)
        if code == 500:
            return 500, "Internal error occurred: injected failure"
        conflict = f'Operation cannot be fulfilled on pods "{key}": injected conflict'
        if code == 409:
            return 409, conflict
        pod = self.objects.get(("pods", key))
        if pod is None:
            return 404, f'pods "{name}" not found'
        prefix = f'Operation cannot be fulfilled on pods/binding "{name}": '
        uid = pod["metadata"]["uid"]
        if uid != bind.pod.uid:
            return 409, (
                f"{prefix}Precondition failed: UID in precondition: {bind.pod.uid}, "
                f"UID in object meta: {uid}"
            )
        if pod["metadata"].get("deletionTimestamp"):
            return 409, f"{prefix}pod {name} is being deleted, cannot be assigned to a host"
        if pod["spec"].get("nodeName"):
            node = pod["spec"]["nodeName"]
            return 409, f'{prefix}pod {name} is already assigned to node "{node}"'
        return None

    def _patch_status(self, patch: PatchStatus, target: ObjectRef) -> tuple[int, str] | None:
        pod = self._pod(target.key, target.uid)
        if pod is None:
            return 404, f'pods "{target.name}" not found'
        status = _merged(pod["status"], dict(patch.fields))
        for condition in patch.conditions:
            conditions = status.get("conditions", [])
            status = {**status, "conditions": _with_condition(conditions, condition)}
        self._put("pods", target.key, {**pod, "status": status})
        return None

    def _delete_victim(self, target: ObjectRef) -> tuple[int, str] | None:
        code = self._fault("delete", target.key)
        if code is not None:
            message = "Internal error occurred: injected failure"
            self.writes.delete_error(self._now_ms, target.key, message)
            return code, message
        pod = self._pod(target.key, target.uid)
        if pod is None:
            return 404, f'pods "{target.name}" not found'
        terminating = bool(pod["metadata"].get("deletionTimestamp"))
        node = pod["spec"].get("nodeName", "")
        self.writes.delete(self._now_ms, target.key, node, already_terminating=terminating)
        self._delete_pod(pod, None, None)
        return None


def _queueing_order(stimulus: Stimulus) -> tuple[bool, str]:
    assert isinstance(stimulus, ObjectChanged)
    found = stimulus.object
    if isinstance(found, Pod) and not found.spec.node_name:
        return True, found.key
    return False, ""


def _key(metadata: Json) -> str:
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


def _merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), item)
    return result


def _as_json(condition: Condition) -> Json:
    fields = ("type", "status", "reason", "message")
    return {name: getattr(condition, name) for name in fields if getattr(condition, name)}


def _with_condition(conditions: list[Json], condition: Condition) -> list[Json]:
    others = [found for found in conditions if found["type"] != condition.type]
    return [*others, _as_json(condition)]


def operations(scenario: Json) -> Iterator[Json]:
    """`script`, in order of time."""
    yield from sorted(scenario["script"], key=lambda operation: operation["t_ms"])
