"""DeviceTaintEviction: evicts pods whose devices have untolerated NoExecute taints.

    a driver or a DeviceTaintRule taints a device
        ──▶ claims to which the device is allocated ──▶ pods for which the claims are reserved

The eviction of a pod is due when the taint is added. A toleration in the claim's device request
delays the eviction by its tolerationSeconds. If several tolerations match, the shortest delay
counts. A toleration without tolerationSeconds prevents the eviction. If a pod has several tainted
devices, the earliest eviction time counts.

Differs from upstream: a taint without timeAdded counts from the time at which it is first
observed. Upstream's API server sets timeAdded on every taint.

upstream: pkg/controller/devicetainteviction/device_taint_eviction.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.taint import tolerates
from fairlead.api.objects import ApiObject, DeviceTaintRule, Pod, ResourceClaim, ResourceSlice
from fairlead.api.pods.facts import is_terminating
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
    pod_ref,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.interest import Interest
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
from fairlead.engine.state.devices.device_pools import DeviceId, PoolId, rule_selects
from fairlead.engine.workloads.devices.device_taint_rule_status import (
    STATUS_PERIOD,
    RuleEffect,
    status_due,
    status_update,
)
from fairlead.engine.workloads.devices.device_taints import NO_EXECUTE, DeviceTaints, pool_of

NAME: Final = "device-taint-eviction-controller"
EVENT_REASON: Final = "DeviceTaintManagerEviction"
DISRUPTED: Final = Condition(
    "DisruptionTarget",
    "True",
    "DeletionByDeviceTaintManager",
    "Device Taint manager: deleting due to NoExecute taint",
)
RETRY_AFTER: Final[DurationNs] = seconds(1)
_GONE: Final = (FailureReason.NOT_FOUND, FailureReason.CONFLICT)
_READ: Final = (Pod, ResourceClaim, ResourceSlice, DeviceTaintRule)


class _Eviction(Struct, frozen=True):
    """The time of a pod's eviction, and the uids of the DeviceTaintRules that cause it."""

    due: Instant
    rules: tuple[str, ...]


class DeviceTaintEviction:
    """The device taint eviction controller: evicts pods whose devices have NoExecute taints."""

    issuer: ClassVar[Issuer] = controller_account(NAME)
    interest: ClassVar[Interest] = Interest(
        changed=_READ,
        deleted=_READ,
        succeeded=(DeleteObject,),
        failed=(DeleteObject,),
        readiness=False,
    )

    def __init__(self, reporter: Reporter, *, has_rules: bool = False) -> None:
        """Start empty; evictions are reported to `reporter`.

        DeviceTaintRules are ignored if `has_rules` is False.
        """
        self._reporter = reporter
        self._has_rules = has_rules
        self._taints = DeviceTaints()
        self._pods: dict[str, Pod] = {}  # pods with claims, by uid
        self._claims: dict[str, ResourceClaim] = {}  # allocated claims
        self._claims_of: dict[PoolId, dict[str, None]] = {}
        self._due_at: dict[str, Instant] = {}  # by uid of the pod
        self._timers: TimerQueue[str] = TimerQueue()
        self._evicting: dict[str, tuple[Pod, _Eviction]] = {}  # deletions without an outcome
        self._evicted: dict[str, None] = {}  # uids of deleted pods that are still there
        self._retries: dict[str, None] = {}
        self._evictions_by: dict[str, int] = {}  # by uid of the rule
        self._status_at: dict[str, Instant] = {}  # by name of the rule

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for the pods and rules that `stimulus` affects."""
        match stimulus:
            case ObjectChanged(one):
                return self._evaluate(self._observe(one, now), now)
            case ObjectDeleted(one):
                return self._evaluate(self._forget(one), now)
            case ObjectsLoaded():
                uids: dict[str, None] = {}
                for some in stimulus.grouped:
                    if not isinstance(some, Replicas):
                        uids |= dict.fromkeys(self._observe(some, now))
                    elif some[0].spec.resource_claims:
                        uids |= {uid: None for pod in some for uid in self._observe(pod, now)}
                return self._evaluate(uids, now)
            case CommandSucceeded(DeleteObject(target)) if target.uid in self._evicting:
                self._succeed(target, now)
            case CommandFailed(DeleteObject(target), reason, _) if target.uid in self._evicting:
                self._fail(target.uid, reason, now)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        if not pod.spec.resource_claims and not self._status_at:
            return ()
        return self._evaluate(self._observe(pod, now), now)

    def next_deadline(self) -> Instant | None:
        """Return the time of the next eviction, retry or status update of a rule, or None."""
        due = self._timers.next_due()
        if not self._status_at:
            return due
        first = min(self._status_at.values())
        return first if due is None else min(first, due)

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the status writes, evictions and retries of deletions that are due."""
        due = dict.fromkeys(self._timers.pop_due(now))
        for uid in due:
            if uid in self._retries:
                del self._retries[uid], self._evicting[uid]
        return self._evaluate(due, now)

    # --- known objects -------------------------------------------------------------------------

    def _observe(self, one: ApiObject, now: Instant) -> Iterable[str]:
        """Store an object; return the uids of the pods to evaluate."""
        if type(one) is Pod and one.spec.resource_claims:
            before = self._pods.get(one.metadata.uid)
            self._pods[one.metadata.uid] = one
            return () if before is not None and _is_alike(before, one) else (one.metadata.uid,)
        if type(one) is ResourceClaim:
            return [*self._forget(one), *self._observe_claim(one)]
        if type(one) is ResourceSlice:
            is_changed = self._taints.put_slice(one, now)
            return self._consumers_of(pool_of(one)) if is_changed else ()
        if type(one) is DeviceTaintRule and self._has_rules:
            return self._observe_rule(one, now)
        return ()

    def _observe_claim(self, claim: ResourceClaim) -> Iterable[str]:
        allocation = claim.status.allocation
        if allocation is None:
            return ()
        self._claims[claim.key] = claim
        for result in allocation.devices.results:
            self._claims_of.setdefault((result.driver, result.pool), {})[claim.key] = None
        return _consumers(claim)

    def _observe_rule(self, rule: DeviceTaintRule, now: Instant) -> Iterable[str]:
        """Store `rule`; return the uids of the pods to evaluate (upstream: handleRuleChange)."""
        before = self._taints.rules.get(rule.key)
        if before is not None and before.metadata.uid != rule.metadata.uid:
            return [*self._forget_rule(before), *self._observe_rule(rule, now)]
        self._taints.put_rule(rule, now)
        if before is not None and before.spec == rule.spec:
            return ()
        self._status_at[rule.key] = now
        return self._consumers_under(rule if before is None else before, rule)

    def _forget(self, gone: ApiObject) -> Iterable[str]:
        """Remove an object; return the uids of the pods to evaluate."""
        match gone:
            case Pod():
                self._forget_pod(gone.metadata.uid)
            case ResourceClaim():
                before = self._claims.pop(gone.key, None)
                return () if before is None else self._release(before)
            case ResourceSlice():
                self._taints.remove_slice(gone)
                return self._consumers_of(pool_of(gone))
            case DeviceTaintRule() if gone.key in self._taints.rules:
                return self._forget_rule(gone)
            case _:
                pass
        return ()

    def _forget_rule(self, rule: DeviceTaintRule) -> list[str]:
        self._taints.remove_rule(rule.key)
        self._status_at.pop(rule.key, None)
        self._evictions_by.pop(rule.metadata.uid, None)
        return self._consumers_under(rule)

    def _forget_pod(self, uid: str) -> None:
        for known in (self._pods, self._due_at, self._evicted):
            known.pop(uid, None)
        if uid in self._retries:
            del self._retries[uid], self._evicting[uid]

    def _release(self, claim: ResourceClaim) -> Iterable[str]:
        for driver, pool, _ in _devices_of(claim):
            claims = self._claims_of.get((driver, pool), {})
            claims.pop(claim.key, None)
            if not claims:
                self._claims_of.pop((driver, pool), None)
        return _consumers(claim)

    def _consumers_of(self, pool: PoolId) -> Iterable[str]:
        claims = [self._claims[key] for key in self._claims_of.get(pool, ())]
        return [uid for claim in claims for uid in _consumers(claim)]

    def _consumers_under(self, *rules: DeviceTaintRule) -> list[str]:
        """Return the uids of the pods with a device that one of `rules` selects."""
        return [
            uid
            for claim in self._claims.values()
            if any(rule_selects(rule, device) for rule in rules for device in _devices_of(claim))
            for uid in _consumers(claim)
        ]

    # --- evictions -----------------------------------------------------------------------------

    def _evaluate(self, uids: Iterable[str], now: Instant) -> list[Command]:
        """Return the status writes that are due, then the evictions of the pods with `uids`.

        Evictions that are not due yet are scheduled instead. A scheduled eviction that no taint
        causes any more is cancelled. The status writes come first. So the status of a new rule
        counts the pods that are about to be evicted.
        """
        commands = self._write_statuses(now)
        for uid in dict.fromkeys(uids):
            pod = self._pods.get(uid)
            if pod is None or uid in self._evicted or uid in self._evicting:
                continue
            found = self._eviction_of(pod, self._taints.rules.values())
            if found is None:
                if self._due_at.pop(uid, None) is not None:
                    commands.append(_event(pod, "Cancelling deletion"))
                continue
            self._update_later(found.rules, now)
            if found.due <= now:
                commands += self._evict(pod, found, now)
            elif self._due_at.get(uid) != found.due:
                self._due_at[uid] = found.due
                self._timers.add(found.due, uid)
        return commands

    def _eviction_of(self, pod: Pod, rules: Iterable[DeviceTaintRule]) -> _Eviction | None:
        """Return the eviction of `pod`; None if no taint causes it (upstream: podEvictionTime)."""
        if not pod.spec.node_name:
            return None
        evicting = [rule for rule in rules if rule.spec.taint.effect == NO_EXECUTE]
        made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
        found: list[_Eviction] = []
        for wanted in pod.spec.resource_claims:
            name = wanted.resource_claim_name or made.get(wanted.name, "")
            claim = self._claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is not None and pod.metadata.uid in _consumers(claim):
                found += self._evictions_of(claim, evicting)
        if not found:
            return None
        reasons = dict.fromkeys(rule for one in found for rule in one.rules)
        return _Eviction(min(one.due for one in found), tuple(reasons))

    def _evictions_of(
        self, claim: ResourceClaim, rules: Iterable[DeviceTaintRule]
    ) -> Iterator[_Eviction]:
        """Yield an eviction for each taint that `claim` tolerates for a limited time or not at all.

        `rules` are the DeviceTaintRules to apply; all must have the effect NoExecute.

        upstream: claimEvictionTime
        """
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            for one in self._taints.of((result.driver, result.pool, result.device), rules):
                limits = [
                    toleration.toleration_seconds
                    for toleration in result.tolerations
                    if toleration.effect == NO_EXECUTE and tolerates(toleration, one.taint)
                ]
                if None not in limits:
                    limit = min((max(0, each) for each in limits if each is not None), default=0)
                    yield _Eviction(one.since + seconds(limit), (one.rule,) if one.rule else ())

    def _evict(self, pod: Pod, found: _Eviction, now: Instant) -> Iterator[Command]:
        """Yield the commands that evict `pod` (upstream: addConditionAndDeletePod).

        A terminating pod needs no commands. As in upstream, the statuses of the DeviceTaintRules
        nevertheless count the pod as evicted.
        """
        self._due_at.pop(pod.metadata.uid, None)
        if is_terminating(pod):
            self._evicted[pod.metadata.uid] = None
            self._count(found.rules, now)
            return
        self._evicting[pod.metadata.uid] = (pod, found)
        yield _event(pod, "Marking for deletion")
        yield PatchStatus(pod_ref(pod), conditions=(DISRUPTED,))
        yield DeleteObject(pod_ref(pod), why="device taint")

    def _succeed(self, target: ObjectRef, now: Instant) -> None:
        pod, found = self._evicting.pop(target.uid)
        if target.uid in self._pods:
            self._evicted[target.uid] = None
        self._count(found.rules, now)
        self._reporter.report(PodEvicted(target, pod.spec.node_name, "device taint", now))

    def _fail(self, uid: str, reason: FailureReason, now: Instant) -> None:
        if reason in _GONE or uid not in self._pods:
            del self._evicting[uid]
            if uid in self._pods:
                self._evicted[uid] = None
            return
        self._retries[uid] = None
        self._timers.add(now + RETRY_AFTER, uid)

    # --- statuses of rules ---------------------------------------------------------------------

    def _count(self, rules: Iterable[str], now: Instant) -> None:
        """Add one eviction to the counts of the rules with the uids `rules`."""
        for uid in rules:
            self._evictions_by[uid] = self._evictions_by.get(uid, 0) + 1
        self._update_later(rules, now)

    def _update_later(self, rules: Iterable[str], now: Instant) -> None:
        """Schedule status updates of the rules with the uids `rules` at `now` + STATUS_PERIOD."""
        for name, rule in self._taints.rules.items() if rules else ():
            if rule.metadata.uid in rules:
                self._status_at.setdefault(name, now + STATUS_PERIOD)

    def _write_statuses(self, now: Instant) -> list[Command]:
        """Return the status updates that are due (upstream: maybeUpdateRuleStatus)."""
        commands: list[Command] = []
        for name in [name for name, due in self._status_at.items() if due <= now]:
            rule = self._taints.rules[name]
            later = status_due(rule, now)
            if later is not None:
                self._status_at[name] = later
                continue
            del self._status_at[name]
            commands += status_update(rule, self._effect_of(rule), NAME, now)
        return commands

    def _effect_of(self, rule: DeviceTaintRule) -> RuleEffect:
        """Return the numbers of pods and devices that `rule` affects.

        A taint with the effect "None" is evaluated as if its effect were NoExecute.
        """
        tested, uid = [rule], rule.metadata.uid
        if rule.spec.taint.effect == "None":
            taint = replace(rule.spec.taint, effect=NO_EXECUTE)
            tested = [replace(rule, spec=replace(rule.spec, taint=taint))]
        namespaces = [
            pod.metadata.namespace
            for pod in self._pods.values()
            if not is_terminating(pod)
            and (found := self._eviction_of(pod, tested)) is not None
            and uid in found.rules
        ]
        allocated = [device for claim in self._claims.values() for device in _devices_of(claim)]
        return RuleEffect(
            pending_pods=len(namespaces),
            pending_namespaces=len(set(namespaces)),
            published_devices=sum(rule_selects(rule, one) for one in self._taints.published()),
            allocated_devices=sum(rule_selects(rule, one) for one in allocated),
            evicted_pods=self._evictions_by.get(uid, 0),
        )


def _is_alike(before: Pod, after: Pod) -> bool:
    """Return whether a pod's node and the names of its generated claims are unchanged."""
    statuses = before.status.resource_claim_statuses, after.status.resource_claim_statuses
    return before.spec.node_name == after.spec.node_name and statuses[0] == statuses[1]


def _consumers(claim: ResourceClaim) -> list[str]:
    return [one.uid for one in claim.status.reserved_for if one.resource == "pods"]


def _devices_of(claim: ResourceClaim) -> list[DeviceId]:
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return [(one.driver, one.pool, one.device) for one in results]


def _event(pod: Pod, note: str) -> RecordEvent:
    return RecordEvent(pod_ref(pod), "Normal", EVENT_REASON, "", note, NAME)
