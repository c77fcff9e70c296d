"""DeviceTaintEviction: evicts pods whose devices have NoExecute taints that they do not tolerate.

    a driver taints a device ──▶ claims that are allocated it ──▶ the pods they are reserved for

A pod is evicted when the taint was added. Tolerations of the request count from that time: one
without tolerationSeconds means for ever, of several the shortest counts. A pod with several tainted
devices is evicted at the earliest of their times. Only the newest generation of a pool counts.

Example: `gpu-0` was tainted at 10:00. A pod whose claim tolerates the taint for 300 s is evicted at
10:05, one without toleration at once. If the taint goes at 10:03, the first eviction is cancelled.

Differs from upstream: a taint without timeAdded counts from when it is first seen, because only
upstream's API server sets it. DeviceTaintRules are not read.

upstream: pkg/controller/devicetainteviction/device_taint_eviction.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from fairlead.api.objects import (
    AllocatedDevice,
    ApiObject,
    Device,
    DeviceTaint,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from fairlead.api.pods.facts import is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.reporter import PodEvicted, Reporter
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
from fairlead.engine.plugins.dynamic_resources.device_search import tolerates_taint

NAME: Final = "device-taint-eviction-controller"
EVENT_REASON: Final = "DeviceTaintManagerEviction"
DISRUPTED: Final = Condition(
    "DisruptionTarget",
    "True",
    "DeletionByDeviceTaintManager",
    "Device Taint manager: deleting due to NoExecute taint",
)
NO_EXECUTE: Final = "NoExecute"
RETRY_AFTER: Final[DurationNs] = seconds(1)
_GONE: Final = (FailureReason.NOT_FOUND, FailureReason.CONFLICT)

PoolId = tuple[str, str]  # driver, pool
DeviceId = tuple[str, str, str]  # driver, pool, device


class DeviceTaintEviction:
    """The device taint eviction controller."""

    issuer: ClassVar[Issuer] = controller_account(NAME)

    def __init__(self, reporter: Reporter) -> None:
        """Start empty; evictions go to `reporter`."""
        self._reporter = reporter
        self._pods: dict[str, Pod] = {}  # pods with claims, by uid
        self._claims: dict[str, ResourceClaim] = {}  # allocated claims
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._claims_of: dict[PoolId, dict[str, None]] = {}
        self._seen: dict[tuple[DeviceId, DeviceTaint], Instant] = {}  # taints without timeAdded
        self._due_at: dict[str, Instant] = {}  # by uid of the pod
        self._timers: TimerQueue[str] = TimerQueue()
        self._evicted: dict[str, None] = {}
        self._retries: dict[str, None] = {}

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for the pods that `stimulus` concerns."""
        match stimulus:
            case ObjectChanged(one):
                return self._evaluate(self._see(one, now), now)
            case ObjectDeleted(one):
                return self._evaluate(self._forget(one), now)
            case ObjectsLoaded(objects):
                uids = {uid: None for one in objects for uid in self._see(one, now)}
                return self._evaluate(uids, now)
            case CommandSucceeded(DeleteObject(target)) if target.uid in self._evicted:
                self._report(target, now)
            case CommandFailed(DeleteObject(target), reason, _) if target.uid in self._evicted:
                self._retry(target.uid, reason, now)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time of the next eviction."""
        return self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Evict the pods that are due, and those whose deletion failed."""
        due = dict.fromkeys(self._timers.pop_due(now))
        for uid in due:
            if uid in self._retries:
                del self._retries[uid], self._evicted[uid]
        return self._evaluate(due, now)

    # --- known objects -------------------------------------------------------------------------

    def _see(self, one: ApiObject, now: Instant) -> Iterable[str]:
        """Store an object; return the uids of the pods to evaluate."""
        match one:
            case Pod() if one.spec.resource_claims:
                before = self._pods.get(one.metadata.uid)
                self._pods[one.metadata.uid] = one
                return () if before is not None and _is_alike(before, one) else (one.metadata.uid,)
            case ResourceClaim():
                return [*self._forget(one), *self._see_claim(one)]
            case ResourceSlice():
                return self._see_slice(one, now)
            case _:
                return ()

    def _see_claim(self, claim: ResourceClaim) -> Iterable[str]:
        allocation = claim.status.allocation
        if allocation is None:
            return ()
        self._claims[claim.key] = claim
        for result in allocation.devices.results:
            self._claims_of.setdefault((result.driver, result.pool), {})[claim.key] = None
        return _consumers(claim)

    def _see_slice(self, changed: ResourceSlice, now: Instant) -> Iterable[str]:
        pool = _pool_of(changed)
        slices = self._slices.setdefault(pool, {})
        before = slices.get(changed.key)
        slices[changed.key] = changed
        for device in changed.spec.devices:
            for taint in device.taints:
                if taint.effect == NO_EXECUTE and not taint.time_added:
                    self._seen.setdefault(((*pool, device.name), taint), now)
        is_tainted = _has_taints(changed) or (before is not None and _has_taints(before))
        return self._consumers_of(pool) if is_tainted or len(slices) > 1 else ()

    def _forget(self, gone: ApiObject) -> Iterable[str]:
        """Remove an object; return the uids of the pods to evaluate."""
        match gone:
            case Pod():
                for known in (self._pods, self._due_at, self._evicted, self._retries):
                    known.pop(gone.metadata.uid, None)
            case ResourceClaim():
                before = self._claims.pop(gone.key, None)
                return () if before is None else self._release(before)
            case ResourceSlice():
                self._slices.get(_pool_of(gone), {}).pop(gone.key, None)
                return self._consumers_of(_pool_of(gone))
            case _:
                pass
        return ()

    def _release(self, claim: ResourceClaim) -> Iterable[str]:
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            self._claims_of.get((result.driver, result.pool), {}).pop(claim.key, None)
        return _consumers(claim)

    def _consumers_of(self, pool: PoolId) -> Iterable[str]:
        claims = [self._claims[key] for key in self._claims_of.get(pool, ())]
        return [uid for claim in claims for uid in _consumers(claim)]

    # --- evictions -----------------------------------------------------------------------------

    def _evaluate(self, uids: Iterable[str], now: Instant) -> list[Command]:
        """Evict, schedule or cancel the eviction of each pod."""
        commands: list[Command] = []
        for uid in dict.fromkeys(uids):
            pod = self._pods.get(uid)
            if pod is None or uid in self._evicted:
                continue
            due = self._eviction_of(pod)
            if due is None:
                if self._due_at.pop(uid, None) is not None:
                    commands.append(_event(pod, "Cancelling deletion"))
            elif due <= now:
                commands += self._evict(pod)
            elif self._due_at.get(uid) != due:
                self._due_at[uid] = due
                self._timers.add(due, uid)
        return commands

    def _eviction_of(self, pod: Pod) -> Instant | None:
        """Return when to evict `pod`, None if never (upstream: podEvictionTime)."""
        if not pod.spec.node_name:
            return None
        made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
        times: list[Instant] = []
        for wanted in pod.spec.resource_claims:
            name = wanted.resource_claim_name or made.get(wanted.name, "")
            claim = self._claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is not None and pod.metadata.uid in _consumers(claim):
                times += self._times_of(claim)
        return min(times, default=None)

    def _times_of(self, claim: ResourceClaim) -> Iterator[Instant]:
        """Yield when each taint of the claim's devices evicts (upstream: claimEvictionTime)."""
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            device = self._device(result)
            for taint in () if device is None else device.taints:
                if taint.effect != NO_EXECUTE:
                    continue
                limits = [
                    one.toleration_seconds
                    for one in result.tolerations
                    if one.effect == NO_EXECUTE and tolerates_taint(one, taint)
                ]
                if None not in limits:
                    limit = min((max(0, one) for one in limits if one is not None), default=0)
                    yield self._since(result, taint) + seconds(limit)

    def _device(self, result: AllocatedDevice) -> Device | None:
        slices = self._slices.get((result.driver, result.pool), {})
        newest = max((one.spec.pool.generation for one in slices.values()), default=0)
        return next(
            (
                device
                for key in sorted(slices)
                if slices[key].spec.pool.generation == newest
                for device in slices[key].spec.devices
                if device.name == result.device
            ),
            None,
        )

    def _since(self, result: AllocatedDevice, taint: DeviceTaint) -> Instant:
        if taint.time_added:
            return parse_timestamp(taint.time_added)
        return self._seen[(result.driver, result.pool, result.device), taint]

    def _evict(self, pod: Pod) -> Iterator[Command]:
        """Upstream: addConditionAndDeletePod."""
        self._due_at.pop(pod.metadata.uid, None)
        if is_terminating(pod):
            return
        self._evicted[pod.metadata.uid] = None
        yield _event(pod, "Marking for deletion")
        yield PatchStatus(_ref(pod), conditions=(DISRUPTED,))
        yield DeleteObject(_ref(pod), why="device taint")

    def _report(self, target: ObjectRef, now: Instant) -> None:
        pod = self._pods.get(target.uid)
        node = "" if pod is None else pod.spec.node_name
        self._reporter.report(PodEvicted(target, node, "device taint", now))

    def _retry(self, uid: str, reason: FailureReason, now: Instant) -> None:
        if reason not in _GONE:
            self._retries[uid] = None
            self._timers.add(now + RETRY_AFTER, uid)


def _is_alike(before: Pod, after: Pod) -> bool:
    """Return whether all that the eviction of a pod depends on is unchanged."""
    statuses = before.status.resource_claim_statuses, after.status.resource_claim_statuses
    return before.spec.node_name == after.spec.node_name and statuses[0] == statuses[1]


def _consumers(claim: ResourceClaim) -> list[str]:
    return [one.uid for one in claim.status.reserved_for if one.resource == "pods"]


def _has_taints(one: ResourceSlice) -> bool:
    return any(device.taints for device in one.spec.devices)


def _pool_of(one: ResourceSlice) -> PoolId:
    return (one.spec.driver, one.spec.pool.name)


def _ref(pod: Pod) -> ObjectRef:
    meta = pod.metadata
    return ObjectRef("Pod", meta.namespace, meta.name, meta.uid)


def _event(pod: Pod, note: str) -> RecordEvent:
    return RecordEvent(_ref(pod), "Normal", EVENT_REASON, "", note, NAME)
