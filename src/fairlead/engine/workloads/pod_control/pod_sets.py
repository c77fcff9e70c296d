"""PodSets: the pods of all owners, each owner's rule, and the commands that follow from them.

Every change of a pod touches its owner's set alone, and only a change of what it counts as
(`PodState`) asks the rule again. An owner whose pods are refused tries one again after doubling
waits, and all the others once that one was taken (upstream's slow start). What else follows from
a change, such as status and the next step of a rollout, waits in `changed` until everything of
that instant has settled.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import controller_of, is_static
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.identity import (
    failed_create,
    owner_key,
    pod_created,
    pod_deleted,
    pod_ref,
)
from fairlead.engine.workloads.pod_control.burst_limiter import REST, TIMES_MAX, Restraint
from fairlead.engine.workloads.pod_control.generated_name import generated_name
from fairlead.engine.workloads.pod_control.pod_set import Birth, PodSet, PodState, pod_state
from fairlead.engine.workloads.pod_control.pod_template import pod_manifest
from fairlead.engine.workloads.pod_control.rule import Plan, Rule, Wish
from fairlead.engine.workloads.pod_control.unknown_owner import HandsOff, StandIn, rule_for_unknown


@dataclass(slots=True)
class PodSets:
    """All pods that have a controller; in a simulation, unknown owners are stood in for."""

    config: WorkloadsConfig
    sets: dict[str, PodSet] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    keys_by_path: dict[str, str] = field(default_factory=dict)  # for references without a uid
    watched: dict[str, None] = field(default_factory=dict)  # sets whose every change counts
    changed: dict[str, None] = field(default_factory=dict)  # those that did change
    _homes: dict[str, str] = field(default_factory=dict)  # pod key -> key of its set
    _births: dict[tuple[str, str], str] = field(default_factory=dict)  # (namespace, name) -> key
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)
    _wakes: TimerQueue[str] = field(default_factory=TimerQueue)
    _awaited: dict[str, Instant] = field(default_factory=dict)  # key -> its next wake
    _restraint: Restraint = field(default_factory=Restraint)

    # --- owners --------------------------------------------------------------------------------

    def introduce(self, owner: OwnerReference, namespace: str) -> PodSet:
        """The set of `owner`, which is made when it is first heard of."""
        key = self._key_of(owner, namespace)
        if key not in self.sets:
            self.sets[key] = PodSet(
                key=key,
                namespace=namespace,
                owner=owner,
                is_observed=self.config.is_observed,
            )
            self.rules[key] = self._rule_for_unknown(owner.kind)
        return self.sets[key]

    def _rule_for_unknown(self, kind: str) -> Rule:
        """Where everything is there that exists, an owner that is not is somebody else's affair."""
        return HandsOff() if self.config.is_observed else rule_for_unknown(kind)

    def _key_of(self, owner: OwnerReference, namespace: str) -> str:
        if owner.uid:
            return owner.uid
        path = owner_key(owner.kind, namespace, owner.name, "")
        return self.keys_by_path.get(path, path)

    def set_rule(self, key: str, rule: Rule) -> bool:
        """Let `rule` speak for the owner from now on; whether that is news."""
        if self.rules[key] == rule:
            return False
        self.rules[key] = rule
        if rule.is_watchful:
            self.watched[key] = None
        self.sets[key].reslot(rule.slot_of)
        return True

    def count_leaving_as_lost(self, key: str) -> None:
        """Pods that are already terminating in a snapshot are what its owner is missing.

        An unknown owner has replaced them by now, unless it must wait for their names.
        """
        pods, rule = self.sets[key], self.rules[key]
        if isinstance(rule, StandIn) and not rule.keeps_names:
            return
        for pod in pods.pods.values():
            if pod_state(pod) is PodState.LEAVING and rule.is_loss(pod, PodState.LEAVING):
                pods.lose(pod, rule.slot_of(pod))

    def note(self, key: str) -> None:
        """Something about the pods of `key` has changed."""
        if self.config.is_observed or key in self.watched:
            self.changed[key] = None

    def wake(self, key: str, due: Instant) -> None:
        """Look at the pods of `key` again at `due`, although nothing may have changed."""
        if self._awaited.get(key) != due:
            self._awaited[key] = due
            self._wakes.add(due, key)

    # --- pods ----------------------------------------------------------------------------------

    def take_in(self, pod: Pod) -> PodState | None:
        """Note `pod` without deciding anything; what it counted as before."""
        pods = self._home_of(pod)
        return pods.put(pod, self.rules[pods.key].slot_of(pod)) if pods is not None else None

    def see(self, pod: Pod, now: Instant) -> list[Command]:
        """Note the newest version of `pod`, and let its owner react."""
        commands = self._move_out(pod, now)
        pods = self._home_of(pod)
        if pods is None:
            return commands
        slot, after = self.rules[pods.key].slot_of(pod), pod_state(pod)
        is_ours = pods.deaths.get(pod.metadata.name) == pod.metadata.uid
        before = pods.put(pod, slot)
        self.note(pods.key)
        if before is after:
            return commands
        if before is PodState.ACTIVE and not is_ours:
            self._lose(pods, pod, after)
        return commands + self.reconcile(pods.key, slot, now)

    def forget(self, pod: Pod, now: Instant) -> list[Command]:
        """`pod` is gone; let its owner react."""
        key = self._homes.get(pod.key)
        if key is None:
            return []
        pods, slot = self.sets[key], self.rules[key].slot_of(pod)
        is_ours = pod.metadata.name in pods.deaths
        before = pods.remove(pod, slot)
        if before is None:
            return []
        del self._homes[pod.key]
        self.note(key)
        if before is PodState.ACTIVE and not is_ours:
            self._lose(pods, pod, None)
        return self.reconcile(key, slot, now)

    def _move_out(self, pod: Pod, now: Instant) -> list[Command]:
        """For its former owner, a pod that changed hands is as good as gone."""
        home = self._homes.get(pod.key)
        owner = controller_of(pod.metadata)
        if home is None or (
            owner is not None and home == self._key_of(owner, pod.metadata.namespace)
        ):
            return []
        return self.forget(pod, now)

    def _home_of(self, pod: Pod) -> PodSet | None:
        """The set `pod` belongs to; None for pods nobody makes again."""
        owner = controller_of(pod.metadata)
        if owner is None or is_static(pod):
            return None
        pods = self.introduce(owner, pod.metadata.namespace)
        self._homes[pod.key] = pods.key
        return pods

    def _lose(self, pods: PodSet, pod: Pod, after: PodState | None) -> None:
        rule = self.rules[pods.key]
        if rule.is_loss(pod, after):
            pods.lose(pod, rule.slot_of(pod))

    # --- deciding ------------------------------------------------------------------------------

    def follow_up(self, key: str, now: Instant) -> list[Command]:
        """What follows from how the pods of `key` fare, if its owner looks at that."""
        if key not in self.sets or not self.rules[key].is_watchful:
            return []
        pods = self.sets[key]
        return self._carry_out(pods, self.rules[key].follow(pods, now), now)

    def reconcile(self, key: str, slot: str | None, now: Instant) -> list[Command]:
        """What the owner wants done about `slot`, or about all of its pods when it is None."""
        pods = self.sets[key]
        return self._carry_out(pods, self.rules[key].plan(pods, slot, now), now)

    def _carry_out(self, pods: PodSet, plan: Plan, now: Instant) -> list[Command]:
        if plan.again_at is not None:
            self.wake(pods.key, plan.again_at)
        commands = self._deletions(pods, plan)
        commands += self._creations(pods, plan, now)
        if not plan.create and not pods.births and not plan.is_waiting:
            pods.losses.pop("", None)  # nothing is missing: those lost before have no successor
        return commands

    def _deletions(self, pods: PodSet, plan: Plan) -> list[Command]:
        commands: list[Command] = []
        for pod in plan.delete:
            pods.begin_death(pod)
            commands.append(DeleteObject(pod_ref(pod), why=plan.why))
            if self.config.is_observed:
                commands.append(pod_deleted(pods.ref, pod.metadata.name))
        if plan.delete:
            self.note(pods.key)
        return commands

    def _creations(self, pods: PodSet, plan: Plan, now: Instant) -> list[Command]:
        if pods.retry_at is not None or not plan.create:
            return []
        wanted = len(plan.create) + len(pods.active) + len(pods.births)
        is_held = self._restraint.holds(pods.key, now, wanted + TIMES_MAX)
        if is_held and self.config.is_observed:
            self._rest(pods, now)  # somebody takes away what was made
            return []
        allowed = len(plan.create) if pods.proven else max(0, 1 - len(pods.births))
        made = [self._create(pods, wish) for wish in plan.create[:allowed]]
        self._restraint.note(pods.key, now, len(made))
        return made

    def _rest(self, pods: PodSet, now: Instant) -> None:
        pods.retry_at = now + REST
        self._retries.add(pods.retry_at, pods.key)

    def _create(self, pods: PodSet, wish: Wish) -> Command:
        loss = pods.next_loss(wish.slot)
        base = wish.prefix or pods.owner.name
        name = wish.name or _free_name(pods, base)
        pods.begin_birth(name, Birth(wish.slot, loss))
        self._births[pods.namespace, name] = pods.key
        manifest = pod_manifest(
            wish.template,
            name=name,
            namespace=pods.namespace,
            owner=pods.owner,
            replaces=loss.original if loss is not None and not self.config.is_observed else "",
            prefix=f"{base}-" if self.config.is_observed and not wish.name else "",
        )
        return CreateObject(manifest)

    # --- outcomes ------------------------------------------------------------------------------

    def created(self, target: ObjectRef, now: Instant) -> list[Command]:
        """A pod was taken; after the first one the others follow."""
        key = self._births.pop((target.namespace, target.name), None)
        if key is None:
            return []
        pods = self.sets[key]
        told: list[Command] = []
        if self.config.is_observed:
            told.append(pod_created(pods.ref, target.name))
        if pods.proven:
            return told
        pods.proven, pods.failures, pods.refusal = True, 0, ""
        self.note(key)
        return told + self.reconcile(key, None, now)

    def not_created(
        self, target: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> list[Command]:
        """A pod was refused: under another name if it is only that, else later."""
        key = self._births.pop((target.namespace, target.name), None)
        birth = None if key is None else self.sets[key].end_birth(target.name)
        if key is None or birth is None:
            return []
        pods = self.sets[key]
        if birth.loss is not None:
            pods.restore_loss(birth.slot, birth.loss)
        # A StandIn's wish is its loss, whatever the slot; the names of slots are not negotiable.
        if reason is FailureReason.ALREADY_EXISTS and not birth.slot:
            return self.reconcile(key, None, now)
        self._wait(pods, now)
        pods.refusal = message
        self.note(key)
        return [failed_create(pods.ref, message)]

    def not_deleted(self, target: ObjectRef, reason: FailureReason, now: Instant) -> None:
        """A pod of ours could not be deleted: later, unless it is gone anyway."""
        key = self._homes.get(target.key)
        if key is None or reason is FailureReason.NOT_FOUND:
            return
        pods = self.sets[key]
        if pods.deaths.get(target.name) == target.uid:
            pods.end_death(target.name)
            self._wait(pods, now)

    def next_retry(self) -> Instant | None:
        """When the first waiting owner tries again, or is to be looked at."""
        dues = (self._retries.next_due(), self._wakes.next_due())
        return min((due for due in dues if due is not None), default=None)

    def retry(self, now: Instant) -> list[Command]:
        """Let the owners whose wait is over try again."""
        commands: list[Command] = []
        for key in self._wakes.pop_due(now):
            self._awaited.pop(key, None)
            self.note(key)
            commands += self.follow_up(key, now) or self.reconcile(key, None, now)
        for key in self._retries.pop_due(now):
            self.sets[key].retry_at = None
            commands += self.reconcile(key, None, now)
        return commands

    def _wait(self, pods: PodSet, now: Instant) -> None:
        pods.proven = False
        if pods.retry_at is None:
            pods.failures += 1
            pods.retry_at = now + self.config.retry_after(pods.failures)
            self._retries.add(pods.retry_at, pods.key)


def _free_name(pods: PodSet, prefix: str) -> str:
    """The next generated name that no pod of the owner has."""
    while True:  # bounded: each turn takes another serial, and finitely many names are taken
        pods.serial += 1
        name = generated_name(prefix, pods.key, pods.serial)
        if not pods.holds(name):
            return name


def is_stand_in(rule: Rule) -> bool:
    """Whether nobody has introduced the owner."""
    return isinstance(rule, StandIn)
