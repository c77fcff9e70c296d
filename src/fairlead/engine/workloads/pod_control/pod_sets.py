"""PodSets: the pods of all owners, the rule of each owner, and the resulting commands.

A change of a pod affects only the pod set of its owner. An owner first creates a single pod. Once
this creation has succeeded, the owner creates all other missing pods. Upstream's slow start instead
doubles the number of pods step by step. After a failed creation, the owner waits (exponential
backoff), and then begins with a single pod again. `changed` lists the owners that need other work,
such as status writes and rollout steps. This work waits until all changes of the same instant are
handled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import controller_of, is_static, is_terminal
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, pod_ref
from fairlead.engine.core.instant import Instant, earliest
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import (
    JOB_BATCH_PERIOD,
    JOB_RETRY_INITIAL,
    JOB_RETRY_MAX,
    WorkloadsConfig,
)
from fairlead.engine.workloads.event_sink import EventSink
from fairlead.engine.workloads.identity import (
    claim_created,
    generated_name,
    is_namespace_terminating,
    owner_key,
    owner_kind,
    pod_created,
    pod_deleted,
    pod_refused,
)
from fairlead.engine.workloads.pod_control.held_pods import HeldPods
from fairlead.engine.workloads.pod_control.pod_set import (
    ExpectedCreation,
    PodSet,
    PodState,
    pod_state,
)
from fairlead.engine.workloads.pod_control.pod_template import PodFactory
from fairlead.engine.workloads.pod_control.rule import DesiredPod, OwnerRule, Plan
from fairlead.engine.workloads.pod_control.unknown_owner import NoOpRule, UnknownOwnerRule
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff
from fairlead.engine.workloads.work_queue import BURST_DELAY, BURST_MAX, BurstLimiter

if TYPE_CHECKING:
    from fairlead.engine.workloads.selection import Adopter, ChildIndex


class PodSets(Struct):
    """The pod sets of all owners and the rules of these owners, by owner key.

    A change of a pod marks its owner as changed if `follows_all` is set, or if the owner is in
    `watched`.

    `adopters` contains the owners that adopt pods; it is empty in a simulation without CronJobs. A
    pod that its owner will adopt already belongs to the owner's pod set. So a new owner creates no
    pod in place of an orphan, and a pod that has lost its controller is not replaced.
    """

    config: WorkloadsConfig
    events: EventSink
    factory: PodFactory
    rule_for_unknown: Callable[[str], OwnerRule]
    follows_all: bool
    adopts: Callable[[Any, Pod], bool] | None  # (owner, orphan); None if no owner adopts pods
    sets: dict[str, PodSet] = field(default_factory=dict)
    rules: dict[str, OwnerRule] = field(default_factory=dict)
    keys_by_path: dict[str, str] = field(default_factory=dict)  # for references without a uid
    held: HeldPods = field(default_factory=HeldPods)
    watched: dict[str, None] = field(
        default_factory=dict
    )  # owners to follow up even if `follows_all` is not set
    changed: dict[str, None] = field(default_factory=dict)  # owners to follow up
    adopters: dict[str, Adopter] = field(default_factory=dict)
    _orphans: dict[str, ChildIndex[str, Pod]] = field(default_factory=dict)  # by namespace
    _set_keys: dict[str, str] = field(default_factory=dict)  # pod key -> key of its set
    _creating: dict[tuple[str, str], str] = field(default_factory=dict)  # (namespace, name) -> key
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)
    _runs: TimerQueue[str] = field(default_factory=TimerQueue)
    _awaited: dict[str, Instant] = field(default_factory=dict)  # key -> its next run
    _burst_limiter: BurstLimiter = field(default_factory=BurstLimiter)
    # by uid of a pod whose finalizer was not removed, which only Jobs do
    _release_backoff: RefusalBackoff[str] = field(
        default_factory=lambda: RefusalBackoff(JOB_RETRY_INITIAL, JOB_RETRY_MAX)
    )

    # --- owners --------------------------------------------------------------------------------

    def pod_set(self, owner: OwnerReference, namespace: str) -> PodSet:
        """Return the pod set of `owner`, created if missing."""
        key = self._key_of(owner, namespace)
        if key not in self.sets:
            serial = self.config.first_serial
            self.sets[key] = PodSet(key=key, namespace=namespace, owner=owner, serial=serial)
            self.rules[key] = self.rule_for_unknown(owner.kind)
        return self.sets[key]

    def _key_of(self, owner: OwnerReference, namespace: str) -> str:
        if owner.uid:
            return owner.uid
        path = owner_key(owner_kind(owner), namespace, owner.name, "")
        return self.keys_by_path.get(path, path)

    def set_rule(self, key: str, rule: OwnerRule) -> bool:
        """Set the rule of the owner `key`; return whether the rule has changed."""
        if self.rules[key] == rule:
            return False
        self.rules[key] = rule
        if rule.reads_readiness:
            self.watched[key] = None
        self.sets[key].update_slots(rule)
        return True

    def replace_terminating_pods(self, key: str) -> None:
        """Request replacements for pods of the owner `key` that were terminating in the snapshot.

        A pod of an unknown owner is skipped if the owner gives replacements new names. The snapshot
        already contains the replacement of such a pod.
        """
        pods, rule = self.sets[key], self.rules[key]
        for pod in pods.pods.values() if pods.terminating else ():
            if isinstance(rule, UnknownOwnerRule) and not rule.keeps_name(pod):
                continue
            if pod_state(pod) is PodState.TERMINATING and rule.needs_replacement(
                pod, PodState.TERMINATING
            ):
                pods.request_replacement(pod, rule.slot_of(pod))

    def set_adopter(self, key: str, owner: Adopter) -> bool:
        """Store the newest version of an owner; return whether it got orphans.

        A new owner gets the orphans that it will adopt, except finished pods. A Job counts finished
        pods when it has adopted them.
        """
        adopts = self.adopts
        if adopts is None:
            return False
        is_new = key not in self.adopters
        self.adopters[key] = owner
        orphans = self._orphans.get(owner.metadata.namespace) if is_new else None
        if orphans is None:
            return False
        found = [
            one for one in orphans.selectable(owner) if adopts(owner, one) and not is_terminal(one)
        ]
        for pod in found:
            orphans.pop(pod.key)
            self._set_keys[pod.key] = key
            self.sets[key].put(pod, self.rules[key].slot_of(pod))
        return bool(found)

    def mark_changed(self, key: str) -> None:
        """Mark the owner `key` as changed if `follows_all` is set or `watched` contains `key`."""
        if self.follows_all or key in self.watched:
            self.changed[key] = None

    def run_at(self, key: str, due: Instant) -> None:
        """Schedule a run of the rule of the owner `key` at `due`, even if no object changes."""
        if self._awaited.get(key) != due:
            self._awaited[key] = due
            self._runs.add(due, key)

    # --- pods ----------------------------------------------------------------------------------

    def load_pods(self, loaded: Iterable[Replicas]) -> None:
        """Store pods without running a rule."""
        for replicas in loaded:
            found = self._set_of(replicas[0])
            if found is None:
                self._store_orphans(replicas)
            else:
                self._set_keys |= dict.fromkeys(replicas.keys, found.key)
                found.load(replicas, self.rules[found.key])

    def observe(self, pod: Pod, now: Instant) -> list[Command]:
        """Store the newest version of `pod`; run its owner's rule if necessary.

        The rule runs if the pod's `PodState` has changed. A rule that counts container restarts
        also runs if their number has changed.
        """
        set_key = self._set_keys.get(pod.key)
        if set_key is not None and self.sets[set_key].refresh(pod):
            self.mark_changed(set_key)
            return []
        if not pod.metadata.finalizers:
            self._release_backoff.reset(pod.metadata.uid)
        commands = self._leave_former_owner(pod, now)
        pods = self._set_of(pod)
        if pods is None:
            self._store_orphans((pod,))
            return commands
        slot, after = self.rules[pods.key].slot_of(pod), pod_state(pod)
        is_ours = pods.deletions_expected.get(pod.metadata.name) == pod.metadata.uid
        restarts = pods.restarts_counted
        before = pods.put(pod, slot)
        self.mark_changed(pods.key)
        if before is after and pods.restarts_counted == restarts:
            return commands
        if before is PodState.ACTIVE and after is not before:
            self._retry_soon(pods, now)
            if not is_ours:
                self._request_replacement(pods, pod, after)
        return commands + self.reconcile(pods.key, slot, now)

    def forget(self, pod: Pod, now: Instant) -> list[Command]:
        """Remove a deleted pod and run its owner's rule."""
        self._forget_orphan(pod)
        return self._remove(pod, now)

    def _remove(self, pod: Pod, now: Instant, *, has_left: bool = False) -> list[Command]:
        """Remove `pod` from its pod set and run its former owner's rule.

        If `has_left` is set, the pod still exists, so the owner does not count it as ended.
        """
        key = self._set_keys.get(pod.key)
        if key is None:
            return []
        pods, slot = self.sets[key], self.rules[key].slot_of(pod)
        is_ours = pod.metadata.name in pods.deletions_expected
        before = pods.remove(pod, slot, has_left=has_left)
        if before is None:
            return []
        del self._set_keys[pod.key]
        self._release_backoff.reset(pod.metadata.uid)
        self.mark_changed(key)
        self._retry_soon(pods, now)
        if before is PodState.ACTIVE and not is_ours:
            self._request_replacement(pods, pod, None)
        return self.reconcile(key, slot, now)

    def is_replaced(self, pod: Pod) -> bool:
        """Return whether `pod` has a controller that replaces it after a deletion."""
        rule = self.rules.get(self._set_keys.get(pod.key, ""))
        return rule is not None and not isinstance(rule, NoOpRule)

    def _leave_former_owner(self, pod: Pod, now: Instant) -> list[Command]:
        """Remove `pod` from the pod set of its previous owner if its owner has changed."""
        set_key = self._set_keys.get(pod.key)
        owner = controller_of(pod.metadata)
        if (
            set_key is None
            or self._awaits_adoption(pod)
            or (owner is not None and set_key == self._key_of(owner, pod.metadata.namespace))
        ):
            return []
        return self._remove(pod, now, has_left=True)

    def _awaits_adoption(self, pod: Pod) -> bool:
        """Return whether `pod` has no controller, but its former owner adopts it again."""
        if self.adopts is None or controller_of(pod.metadata) is not None:
            return False
        adopter = self.adopters.get(self._set_keys.get(pod.key, ""))
        return adopter is not None and self.adopts(adopter, pod)

    def _set_of(self, pod: Pod) -> PodSet | None:
        """Return the pod set of `pod`; create the pod set if it is missing.

        Returns None for static pods. A pod without a controller has a pod set only if the pod
        awaits adoption; otherwise, returns None.
        """
        if self._awaits_adoption(pod):
            return self.sets[self._set_keys[pod.key]]
        owner = controller_of(pod.metadata)
        if owner is None or is_static(pod):
            return None
        self._forget_orphan(pod)
        pods = self.pod_set(owner, pod.metadata.namespace)
        self._set_keys[pod.key] = pods.key
        return pods

    def _store_orphans(self, pods: Iterable[Pod]) -> None:
        """Store pods without a controller; do nothing if no owner adopts pods."""
        if self.adopts is None:
            return
        from fairlead.engine.workloads.selection import ChildIndex  # noqa: PLC0415 - not for simulations

        for pod in pods:
            orphans = self._orphans.setdefault(pod.metadata.namespace, ChildIndex())
            orphans.put(pod.key, pod)

    def _forget_orphan(self, pod: Pod) -> None:
        if (orphans := self._orphans.get(pod.metadata.namespace)) is not None:
            orphans.pop(pod.key)

    def _request_replacement(self, pods: PodSet, pod: Pod, after: PodState | None) -> None:
        rule = self.rules[pods.key]
        if rule.needs_replacement(pod, after):
            pods.request_replacement(pod, rule.slot_of(pod))

    # --- decisions -----------------------------------------------------------------------------

    def follow_up(self, key: str, now: Instant) -> list[Command]:
        """Return the commands for the owner `key` after the readiness of its pods has changed.

        Returns [] if the OwnerRule of the owner does not read readiness.
        """
        if key not in self.sets or not self.rules[key].reads_readiness:
            return []
        pods = self.sets[key]
        return self._carry_out(pods, self.rules[key].follow(pods, now), now)

    def reconcile(self, key: str, slot: str | None, now: Instant) -> list[Command]:
        """Apply the OwnerRule of the owner `key` to the pods in `slot`; return the commands.

        If `slot` is None, the rule is applied to all pods of the owner. For a DaemonSet, the slot
        of a pod is the pod's node. The module `pod_set` explains the slots of other owners.
        """
        pods = self.sets[key]
        plan = self.rules[key].plan(pods, slot, now)
        commands = self._carry_out(pods, plan, now)
        if pods.refusal and not slot and not plan.create and not pods.creations_expected:
            pods.refusal = ""  # the pod that was refused is no longer wanted
            self.mark_changed(key)
        return commands

    def _carry_out(self, pods: PodSet, plan: Plan, now: Instant) -> list[Command]:
        if plan.again_at is not None:
            self.run_at(pods.key, plan.again_at)
        commands = self._deletions(pods, plan) if plan.delete else []
        if plan.create:
            commands += self._creations(pods, plan, now)
        elif not pods.creations_expected and not plan.awaits_creation:
            # no pod is missing, so pods that were lost earlier need no replacement
            pods.replacements.pop("", None)
        return commands

    def _deletions(self, pods: PodSet, plan: Plan) -> list[Command]:
        commands: list[Command] = []
        for pod in plan.delete:
            pods.expect_deletion(pod)
            commands.append(DeleteObject(pod_ref(pod), why=plan.why))
            commands += self.events.record(*pod_deleted(pods.ref, pod))
        self.mark_changed(pods.key)
        return commands

    def _creations(self, pods: PodSet, plan: Plan, now: Instant) -> list[Command]:
        if pods.retry_at is not None:
            return []
        # At one instant, an owner needs at most `kept` creations. It needs them for the pods that
        # it wants, has or is creating, and for those that succeeded. If there are many more
        # creations, something deletes or orphans the pods immediately.
        kept = len(plan.create) + len(pods.active) + len(pods.creations_expected) + pods.succeeded
        if self._burst_limiter.is_exceeded(pods.key, now, kept + BURST_MAX):
            pods.retry_at = now + BURST_DELAY
            self._retries.add(pods.retry_at, pods.key)
            return []
        allowed = len(plan.create) if pods.proven else max(0, 1 - len(pods.creations_expected))
        created = plan.create[:allowed]
        self._burst_limiter.record(pods.key, now, len(created))
        return [one for desired in created for one in self._create(pods, desired, now)]

    def _create(self, pods: PodSet, desired: DesiredPod, now: Instant) -> list[Command]:
        """Return the command that creates the pod, or commands that create its missing claims."""
        replacement = pods.next_replacement(desired.slot)
        name = desired.name or _free_name(pods, desired.prefix or pods.owner.name)
        pods.expect_creation(name, ExpectedCreation(desired.slot, replacement))
        self._creating[pods.namespace, name] = pods.key
        creation = CreateObject(self.factory.manifest(pods, desired, name, replacement))
        if not desired.claims:
            return [creation]
        missing = self.held.hold(creation, desired.claims)
        return [*missing, *self._release(creation.target, now)]

    def _release(self, pod: ObjectRef, now: Instant) -> list[Command]:
        """Return the creation of `pod` if the creations of all its claims have been answered.

        Returns [] if an answer is missing. If the creation of a claim was refused, or a claim is
        being deleted, `pod` is not created, and the commands of `not_created` are returned.
        """
        held = self.held.release(pod.key)
        if held is None:
            return []
        if held.error:
            return self.not_created(pod, FailureReason.FORBIDDEN, held.error, now)
        return [held.creation]

    # --- outcomes ------------------------------------------------------------------------------

    def created(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Handle a successful pod creation.

        If this is the owner's first successful creation, or the first after a backoff, the returned
        commands create all missing pods. Before that, pods are created one at a time.
        """
        key = self._creating.pop((target.namespace, target.name), None)
        if key is None:
            return []
        pods = self.sets[key]
        events = self.events.record(pod_created(pods.ref, target.name))
        if pods.proven:
            return events
        pods.proven, pods.failures, pods.refusal = True, 0, ""
        self.mark_changed(key)
        return events + self.reconcile(key, None, now)

    def handle_claim_outcome(
        self, claim: ObjectRef, reason: FailureReason | None, message: str, now: Instant
    ) -> list[Command]:
        """Handle the answer to the creation of a pod's claim; `reason` is None for a success.

        `message` is the API server's error message.
        """
        error = f"failed to create PVC {claim.name}: {message}" if reason else ""
        commands: list[Command] = []
        for held in self.held.handle_claim_outcome(claim.key, error):
            pod = held.creation.target
            if reason is not FailureReason.ALREADY_EXISTS:
                owner = self.sets[self._creating[pod.namespace, pod.name]].ref
                commands += self.events.record(claim_created(owner, claim.name, pod.name, message))
            commands += self._release(pod, now)
        return commands

    def not_created(
        self, target: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> list[Command]:
        """Handle a refused creation: start a backoff, or choose another name if the name is taken.

        If the pod has a slot, the owner goes into backoff even if the name is taken, because a
        StatefulSet's pod cannot have another name. `message` is the API server's error message.
        """
        key = self._creating.pop((target.namespace, target.name), None)
        creating = None if key is None else self.sets[key].creation_observed(target.name)
        if key is None or creating is None:
            return []
        pods = self.sets[key]
        if creating.replacement is not None:
            pods.restore_replacement(creating.slot, creating.replacement)
        # A pod without a slot gets another name. A StatefulSet's pod, whose slot is its name,
        # cannot.
        if reason is FailureReason.ALREADY_EXISTS and not creating.slot:
            return self.reconcile(key, None, now)
        self._wait(pods, now)
        pods.refusal = message
        self.mark_changed(key)
        # upstream: CreateStatefulPod in stateful_pod_control.go, createPods in controller_utils.go
        if reason is FailureReason.ALREADY_EXISTS or is_namespace_terminating(message):
            return []
        return [pod_refused(pods.ref, target.name, message)]

    def not_deleted(self, target: ObjectRef, reason: FailureReason, now: Instant) -> None:
        """Handle a refused pod deletion: start a backoff, if the pod still exists."""
        key = self._set_keys.get(target.key)
        if key is None or reason is FailureReason.NOT_FOUND:
            return
        pods = self.sets[key]
        if pods.deletions_expected.get(target.name) == target.uid:
            pods.deletion_failed(target.name)
            self._wait(pods, now)

    def not_released(self, target: ObjectRef, now: Instant) -> None:
        """Handle a failed patch of the pod `target`; schedule its owner's rule with backoff.

        The patch should have removed a finalizer of the pod.

        upstream: job_controller.go: queue, DefaultJobApiBackOff, MaxJobApiBackOff
        """
        key = self._set_keys.get(target.key)
        if key is not None:
            self.run_at(key, self._release_backoff.next_try(target.uid, now))

    def next_retry(self) -> Instant | None:
        """Return the time at which the next retry of an owner or run of an OwnerRule is due.

        Returns None if nothing is scheduled.
        """
        return earliest(self._retries.next_due(), self._runs.next_due())

    def retry(self, now: Instant) -> list[Command]:
        """Apply the OwnerRules that are due, and retry the owners whose backoff has expired."""
        commands: list[Command] = []
        for key in self._runs.pop_due(now):
            self._awaited.pop(key, None)
            self.mark_changed(key)
            commands += self.follow_up(key, now) or self.reconcile(key, None, now)
        for key in self._retries.pop_due(now):
            self.sets[key].retry_at = None
            commands += self.reconcile(key, None, now)
        return commands

    def _wait(self, pods: PodSet, now: Instant) -> None:
        pods.proven = False
        if pods.retry_at is None:
            pods.failures += 1
            pods.retry_at = now + self.config.pod_retry_after(pods.owner.kind, pods.failures)
            self._retries.add(pods.retry_at, pods.key)

    def _retry_soon(self, pods: PodSet, now: Instant) -> None:
        """Shorten the backoff of the Job of `pods` after one of its pods has ended or was deleted.

        Quotas no longer count this pod, so a creation that a quota refused may succeed now.
        """
        # upstream: job_controller.go:updatePod, enqueueSyncJobBatched
        due = now + JOB_BATCH_PERIOD
        if pods.owner.kind == "Job" and pods.retry_at is not None and due < pods.retry_at:
            pods.retry_at = due
            self._retries.add(due, pods.key)


def _free_name(pods: PodSet, prefix: str) -> str:
    """Return the next generated name that no pod of the owner has."""
    while True:  # bounded, because serials differ and the number of taken names is finite
        pods.serial += 1
        name = generated_name(prefix, pods.key, pods.serial)
        if not pods.holds(name):
            return name
