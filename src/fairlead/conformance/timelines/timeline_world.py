"""TimelineWorld: the scripted cluster of the recorded timelines; times are whole milliseconds.

The scheduler's requests follow the store's rules, after a latency that depends on the kind of
request. The script and the kubelets write directly, as in the recorder. A pod that is created on a
node runs immediately. A bound pod runs after `kubelet_start_ms`. A deleted pod that is bound is
removed after its grace period plus `kubelet_stop_ms`. If the scenario sets `terminate_ms` for the
pod or for its deletion, the pod is removed after this time instead.

All consequences of an event, including scheduling cycles, are complete before the next event at the
same instant. At one instant, requests come first, then the script and the kubelets. The scheduler's
timers, such as the end of a cycle that takes time, come last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Pod
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND, format_timestamp, parse_timestamp
from fairlead.apiserver.kind import POD, Kind, find_kind
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.id_source import IdSource
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.conformance.timelines.write_log import Writes
from fairlead.engine.core.command import (
    Bind,
    Command,
    DeleteObject,
    IssuedCommand,
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
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.engine import Engine
from fairlead.worlds.driver import Driver
from fairlead.worlds.perform import Outcome, perform

Act = Callable[[Instant], None]

# The zero of the recorder's time. The scheduler starts earlier, at the `start_ms` of the scenario.
EPOCH: Final[Instant] = parse_timestamp("2030-01-01T00:00:00Z")
_GRACE_DEFAULT_S: Final = 30
_CODES: Final = {
    FailureReason.NOT_FOUND: 404,
    FailureReason.CONFLICT: 409,
    FailureReason.INTERNAL_ERROR: 500,
}
_REASONS: Final = {code: reason for reason, code in _CODES.items()}
_OTHER_UID: Final = (
    'Operation cannot be fulfilled on pods/binding "{name}": Precondition failed: '
    "UID in precondition: {wanted}, UID in object meta: {found}"
)
_INTERNAL: Final = "Internal error occurred: injected failure"
_CONFLICT: Final = 'Operation cannot be fulfilled on pods "{key}": injected conflict'


def instant(t_ms: float) -> Instant:
    """Return the instant that is `t_ms` ms after EPOCH, the recorder's time 0."""
    return EPOCH + round(t_ms * NANOSECONDS_PER_MILLISECOND)


def to_ms(now: Instant) -> int:
    """Return `now` as the recorder's time: ms after EPOCH, rounded down."""
    return (now - EPOCH) // NANOSECONDS_PER_MILLISECOND


class _NumberedIds(IdSource):
    """An id source with numbered uids like those of the recorder."""

    def __init__(self) -> None:
        self._created = 0

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """Return a uid made of `name` and a serial number."""
        self._created += 1
        return f"uid-{name}-{self._created}"

    def new_suffix(self) -> str:
        """Raise NotImplementedError, because no recorded object has a generated name."""
        raise NotImplementedError


class _Fault(Struct):
    """A fault: the next `count` calls of type `call` fail with the HTTP status `code`.

    If `key` is not empty, only calls about the pod `key` fail.
    """

    call: str
    key: str
    code: int
    count: int


class _WholeMilliseconds(Struct):
    """Wraps `engine` and rounds its deadlines up to whole milliseconds."""

    engine: Engine

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[IssuedCommand]:
        return self.engine.handle(stimulus, now)

    def next_deadline(self) -> Instant | None:
        due = self.engine.next_deadline()
        return None if due is None else due + (EPOCH - due) % NANOSECONDS_PER_MILLISECOND

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        return self.engine.handle_deadline(now)

    def is_late(self, now: Instant) -> bool:
        """Return whether the exact (not rounded) deadline of a controller is before `now`."""
        deadlines = (one.next_deadline() for one in self.engine.controllers)
        return any(due is not None and due < now for due in deadlines)


class TimelineWorld:
    """The scripted cluster; its `writes` are in the form of the recordings.

    Call `operate` for the initial objects, then `begin`, then `run`. `config` contains the start
    time, the latencies of requests, and the delays of kubelets. `terminate_ms` maps the keys of
    some pods to the time from deletion to removal, in ms. `noop_ops` are the operations that
    changed nothing, because their object did not exist or already existed.
    """

    def __init__(self, config: Json, terminate_ms: Json, engine: Engine) -> None:
        """Start without objects, at the `start_ms` of `config`."""
        self.store = Store(_NumberedIds(), admission=())
        self.writes = Writes()
        self.noop_ops: list[Json] = []
        self._config = config
        self._terminate_ms = terminate_ms
        self._engine = _WholeMilliseconds(engine)
        self._driver = Driver(self._engine, self, now=instant(config.get("start_ms", 0)))
        self._script: TimerQueue[Act] = TimerQueue()
        self._requests: TimerQueue[Act] = TimerQueue()
        self._due: deque[Act] = deque()
        self._pending: list[Stimulus] = []
        self._faults: list[_Fault] = []
        self.store.subscribe(self._observe)

    def at(self, t_ms: int, act: Act) -> None:
        """Schedule `act` at the recorder's time `t_ms`; calls with equal times keep their order."""
        self._script.add(instant(t_ms), act)

    def begin(self) -> None:
        """Deliver the existing objects to the engine, as one stimulus.

        Unbound pods are queued in order of namespace and name.
        """
        newest = {
            (type(one.object), one.object.key): one.object
            for one in self._pending
            if isinstance(one, ObjectChanged)
        }
        self._pending = [ObjectsLoaded(sorted(newest.values(), key=_queueing_order))]

    def run(self, until_ms: int) -> None:
        """Run everything that is due up to and including `until_ms`."""
        self._driver.run(instant(until_ms))

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Apply a request of the scheduler when the latency of the request has passed; return None.

        A request without latency is applied immediately. `poll` returns the outcome of the request.
        """
        command = issued.command
        if isinstance(command, RecordEvent):
            self.writes.event(to_ms(now), command)
            return None
        delay = self._latency_ms(command) * NANOSECONDS_PER_MILLISECOND
        if delay:
            self._requests.add(now + delay, partial(self._apply, command))
        else:
            self._apply(command, now)
        return None

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the stimuli that have not been returned yet.

        If there are none, first perform the events that are due, until one causes a stimulus.
        """
        while not self._pending and not self._engine.is_late(now) and self._is_due(now):
            self._due.popleft()(now)
        pending, self._pending = self._pending, []
        return pending

    def next_event(self) -> Instant | None:
        """Return the time of the next request or script line; None if neither exists."""
        if self._due:
            return self._driver.now
        dues = (self._requests.next_due(), self._script.next_due())
        return min((due for due in dues if due is not None), default=None)

    def _is_due(self, now: Instant) -> bool:
        requests = self._requests.pop_due(now)
        self._due.extendleft(reversed(requests))
        if not self._due:
            self._due.extend(self._script.pop_due(now))
        return bool(self._due)

    def _observe(self, change: StoredChange) -> None:
        view, is_pod, now_ms = decode(change.object), change.kind is POD, to_ms(self._driver.now)
        if change.type is ChangeType.DELETED:
            if is_pod:
                self.writes.removed(now_ms, view.key)
            self._pending.append(ObjectDeleted(view))
            return
        if is_pod:
            self.writes.pod_changed(now_ms, change.previous, change.object)
        self._pending.append(ObjectChanged(view))

    # --- the scheduler's requests ----------------------------------------------------------

    def _latency_ms(self, command: Command) -> int:
        match command:
            case Bind():
                name = "bind_ms"
            case PatchStatus(why=""):
                name = "patch_ms"
            case _:
                name = "preempt_call_ms"
        found: int = self._config.get(name, 0)
        return found

    def _apply(self, command: Command, now: Instant) -> None:
        match command:
            case Bind():
                outcome = self._bind(command, now)
            case DeleteObject(target=target) if target.kind == POD.kind:
                outcome = self._delete_victim(command, now)
            case _:
                outcome = perform(self.store, command, now)
        self._pending.append(outcome)

    def _bind(self, bind: Bind, now: Instant) -> Outcome:
        key = bind.pod.key
        outcome: Outcome | None = self._fault("bind", key, bind) or self._other_pod(bind)
        outcome = outcome or perform(self.store, bind, now)
        if isinstance(outcome, CommandFailed):
            code = _CODES[outcome.reason]
            self.writes.bind_error(to_ms(now), key, bind.node, code, outcome.message)
            return outcome
        self.writes.bind(to_ms(now), key, bind.node)
        uid = self.store.get(POD, bind.pod.namespace, bind.pod.name)["metadata"]["uid"]
        starts = to_ms(now) + self._config["kubelet_start_ms"]
        self.at(starts, partial(self._start, bind.pod.namespace, bind.pod.name, uid))
        return outcome

    def _other_pod(self, bind: Bind) -> CommandFailed | None:
        """Return a failure of `bind` if a pod with another uid has replaced its pod, else None."""
        pod = self.store.find(POD, bind.pod.namespace, bind.pod.name)
        if pod is None or pod["metadata"]["uid"] == bind.pod.uid:
            return None
        message = _OTHER_UID.format(
            name=bind.pod.name, wanted=bind.pod.uid, found=pod["metadata"]["uid"]
        )
        return CommandFailed(bind, FailureReason.CONFLICT, message)

    def _delete_victim(self, delete: DeleteObject, now: Instant) -> Outcome:
        target = delete.target
        failure = self._fault("delete", target.key, delete)
        if failure is not None:
            self.writes.delete_error(to_ms(now), target.key, failure.message)
            return failure
        pod = self.store.find(POD, target.namespace, target.name)
        if pod is None or (target.uid and pod["metadata"]["uid"] != target.uid):
            return perform(self.store, delete, now)
        is_terminating = bool(pod["metadata"].get("deletionTimestamp"))
        node = pod["spec"].get("nodeName", "")
        self.writes.delete(to_ms(now), target.key, node, already_terminating=is_terminating)
        self._delete_pod(pod, delete.grace_period_s, None, now)
        return CommandSucceeded(delete)

    def _fault(self, call: str, key: str, command: Command) -> CommandFailed | None:
        """Return the failure that the script injects into the request of `command`, or None."""
        for fault in self._faults:
            if fault.call == call and fault.key in ("", key) and fault.count:
                fault.count -= 1
                message = _CONFLICT.format(key=key) if fault.code == 409 else _INTERNAL
                return CommandFailed(command, _REASONS[fault.code], message)
        return None

    # --- kubelets --------------------------------------------------------------------------

    def _delete_pod(
        self, pod: Json, grace_s: int | None, terminate_ms: int | None, now: Instant
    ) -> None:
        """Delete `pod`: the store removes it now, or its kubelet removes it later.

        If the pod is already terminating and `grace_s` is not 0, nothing happens. The store removes
        the pod now if `grace_s` is 0, or if the pod is not bound or has finished. Otherwise the
        kubelet removes the pod after `terminate_ms`. If `terminate_ms` is None, the time that the
        scenario sets for this pod applies. If the scenario sets no time, the time is the grace
        period plus `kubelet_stop_ms`.
        """
        meta = pod["metadata"]
        if meta.get("deletionTimestamp") and grace_s != 0:
            return
        deletion = Deletion(grace_period_s=grace_s)
        marked = self.store.delete(POD, meta["namespace"], meta["name"], now, deletion)
        if self._pod(meta["namespace"], meta["name"], meta["uid"]) is None:
            return
        grace_s = marked["metadata"]["deletionGracePeriodSeconds"]
        after = self._terminate_ms.get(f"{meta['namespace']}/{meta['name']}")
        if after is None:
            after = grace_s * 1000 + self._config["kubelet_stop_ms"]
        after = after if terminate_ms is None else terminate_ms
        remove = partial(self._remove, meta["namespace"], meta["name"], meta["uid"])
        self.at(to_ms(now) + after, remove)

    def _remove(self, namespace: str, name: str, uid: str, now: Instant) -> None:
        del now
        if self._pod(namespace, name, uid) is not None:
            self.store.storage.remove(POD, namespace, name)

    def _start(self, namespace: str, name: str, uid: str, now: Instant) -> None:
        pod = self._pod(namespace, name, uid)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        if pod["status"]["phase"] != "Pending":
            return
        status = {**pod["status"], "phase": "Running", "startTime": format_timestamp(now)}
        self.writes.running(to_ms(now), f"{namespace}/{name}")
        self.store.storage.put(POD, {**pod, "status": status})

    def _pod(self, namespace: str, name: str, uid: str) -> Json | None:
        pod = self.store.find(POD, namespace, name)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    # --- operations of the script ----------------------------------------------------------

    def operate(self, operation: Json, now: Instant = EPOCH) -> None:
        """Perform one operation from the list `initial` or `script` of a recorded timeline.

        An operation that changes nothing is added to `noop_ops`. Raises ValueError if the operation
        is unknown.
        """
        match operation["op"]:
            case "create":
                done = self._create(_kind(operation["kind"]), operation["obj"], now)
            case "patch":
                done = self._patch(operation["kind"], operation["key"], operation["patch"])
            case "delete":
                done = self._delete(operation, now)
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

    def _create(self, kind: Kind, obj: Json, now: Instant) -> bool:
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if self.store.find(kind, namespace, name) is not None:
            return False
        metadata = {"uid": self.store.ids.new_uid(kind, namespace, name), **meta}
        new = {"apiVersion": kind.api_version, "kind": kind.kind, **obj, "metadata": metadata}
        self.store.storage.put(kind, _with_pod_defaults(new, now) if kind is POD else new)
        return True

    def _patch(self, resource: str, key: str, patch: Json) -> bool:
        kind = _kind(resource)
        stored = self.store.find(kind, *_split(key))
        if stored is None:
            return False
        self.store.storage.put(kind, merge_patch(stored, patch))
        return True

    def _delete(self, operation: Json, now: Instant) -> bool:
        kind, (namespace, name) = _kind(operation["kind"]), _split(operation["key"])
        stored = self.store.find(kind, namespace, name)
        if stored is None:
            return False
        if kind is POD:
            terminate_ms = operation.get("terminate_ms")
            self._delete_pod(stored, operation.get("grace_s"), terminate_ms, now)
        else:
            self.store.storage.remove(kind, namespace, name)
        return True


def _with_pod_defaults(pod: Json, now: Instant) -> Json:
    spec = {
        "schedulerName": "default-scheduler",
        "priority": 0,
        "terminationGracePeriodSeconds": _GRACE_DEFAULT_S,
        **pod["spec"],
    }
    status: Json = {"phase": "Pending"}
    if spec.get("nodeName"):
        status = {"phase": "Running", "startTime": format_timestamp(now)}
    status |= pod.get("status", {})
    if spec.get("schedulingGates") and not spec.get("nodeName"):
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        status["conditions"] = [gated]
    return {**pod, "spec": spec, "status": status}


def _kind(resource: str) -> Kind:
    found = find_kind(resource)
    assert found is not None, resource
    return found


def _split(key: str) -> tuple[str, str]:
    """Return (namespace or "", name) of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def _queueing_order(one: ApiObject) -> tuple[bool, str]:
    is_queued = isinstance(one, Pod) and not one.spec.node_name
    return is_queued, one.key if is_queued else ""


def operations(scenario: Json) -> Iterator[Json]:
    """Yield the operations in the scenario's `script`, sorted by time."""
    yield from sorted(scenario["script"], key=lambda operation: operation["t_ms"])
