"""Workloads: the controllers of Deployments and of all kinds that control pods.

These kinds are ReplicaSet, ReplicationController, StatefulSet, DaemonSet and Job. An object of
these kinds is an *owner*. Each owner has an `OwnerRule` that decides about its pods, and each
Deployment has a `Rollout`. This controller finds the owners that a change affects, and runs their
rules. The objects that exist at the start are a *snapshot*. All objects of the snapshot are stored
before any rule runs. So a rule also counts pods that come after their owner in the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from fairlead.api.objects import (
    ApiObject,
    ControllerRevision,
    DaemonSet,
    Deployment,
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    ReplicaSet,
)
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import Instant, earliest
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.deployment.controller import Rollouts
from fairlead.engine.workloads.deployment.sync import RolloutSync
from fairlead.engine.workloads.environment import ControllerEnvironment, simulated_environment
from fairlead.engine.workloads.follow_up_pace import FollowUpPace
from fairlead.engine.workloads.identity import object_ref, owner_key
from fairlead.engine.workloads.job.finished_condition import can_only_fail
from fairlead.engine.workloads.job.progress import FinishedCondition
from fairlead.engine.workloads.job.rule import JobRule
from fairlead.engine.workloads.owner import (
    API_VERSIONS,
    Owner,
    OwnerRules,
    is_owner,
    reference_to,
    unusable_template_events,
)
from fairlead.engine.workloads.pod_control.controller_history import CONTROLLER_REVISION, Histories
from fairlead.engine.workloads.pod_control.pod_set import PodSet
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.pod_control.pod_template import missing_classes
from fairlead.engine.workloads.pod_control.unknown_owner import NoOpRule, is_unknown_owner
from fairlead.engine.workloads.status_writer import StatusWriter

IMMEDIATELY: Final[Instant] = 0
# An owner with at least this many pods is large (see `FollowUpPace`).
LARGE: Final = 100
# the kinds whose status is written
_WITH_STATUS: Final = ("Deployment", *(owner.__name__ for owner in API_VERSIONS))


class Workloads:
    """The controllers of all kinds of owners."""

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(
        succeeded=(
            WritesTo(CreateObject, ("Pod", "ReplicaSet", "PersistentVolumeClaim")),
            WritesTo(PatchStatus, _WITH_STATUS),
            WritesTo(PatchObject, ("ReplicaSet",)),
        )
    )

    def __init__(
        self,
        config: WorkloadsConfig | None = None,
        environment: ControllerEnvironment | None = None,
    ) -> None:
        """Start empty; `environment` defaults to the environment of a simulation."""
        config, environment = config or WorkloadsConfig(), environment or simulated_environment()
        writer = StatusWriter()
        self._config = config
        self._writer = writer
        self._pod_sets = PodSets(
            config,
            events=environment.events,
            factory=environment.pod_factory,
            rule_for_unknown=environment.rule_for_unknown,
            follows_all=environment.follows_all_pods,
            adopts=environment.adopts,
        )
        sync = RolloutSync(
            view=environment.replica_set_view(self._pod_sets),
            output=environment.rollout_output(self._pod_sets, writer),
            events=environment.events,
        )
        self._rollouts = Rollouts(config, self._pod_sets, sync)
        self._pace = FollowUpPace(config.follow_up_interval, self._is_large)
        self._histories = Histories()
        self._status = environment.owner_status(self._pod_sets, self._histories, writer)
        self._nodes: dict[str, Node] = {}
        self._rules = OwnerRules(
            self._nodes,
            self._histories,
            environment.tracks_jobs,
            config.seed,
            config.max_unavailable_stateful_set,
        )
        self._daemon_sets: dict[str, None] = {}  # keys of DaemonSets

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for the owners that `stimulus` affects."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            return self._observe(stimulus.object, now)
        if type(stimulus) is ObjectDeleted:
            return self._forget(stimulus.object, now)
        match stimulus:
            case ObjectsLoaded():
                return self._load(stimulus, now)
            case CommandSucceeded(CreateObject() as command):
                return self._observe_creation(command.target, now)
            case CommandSucceeded(PatchStatus(target)):
                self._observe_status_written(target)
                return []
            case CommandSucceeded(PatchObject(target)) if target.kind == "ReplicaSet":
                self._rollouts.scaled(target)
                return []
            case CommandFailed():
                return self._observe_failure(stimulus, now)
            case _:
                return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Store a changed pod; return the resulting commands."""
        return self._pod_sets.observe(pod, now)

    def next_deadline(self) -> Instant | None:
        """Return the time of the next retry or follow-up (see `FollowUpPace`).

        Returns 0 (immediately) if there are unprocessed changes. Changes to the pods of an owner
        whose follow-up is already scheduled do not count. Returns None if there is nothing to do.
        """
        if self._rollouts.changed or not self._pace.are_waiting(self._pod_sets.changed):
            return IMMEDIATELY
        return earliest(
            self._pod_sets.next_retry(), self._rollouts.next_retry(), self._pace.next_due()
        )

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Process recorded changes; if there are none, retry owners whose backoff has expired."""
        recorded, self._pod_sets.changed = self._pod_sets.changed, {}
        changed = self._pace.due(recorded, now)
        if not recorded and not changed and not self._rollouts.changed:
            self._rollouts.retry(now)
            return self._pod_sets.retry(now)
        commands: list[Command] = []
        for key in changed:
            commands += self._pod_sets.follow_up(key, now)
            self._rollouts.mark_pods_changed(key)
        # Rollouts first: an event about a new ReplicaSet must precede the status of its pods.
        commands += self._rollouts.sync_changed(now)
        for key in changed:
            commands += self._status.write(key, now)
        return commands

    def failed_jobs(self) -> Iterator[tuple[ObjectRef, FinishedCondition]]:
        """Yield (reference, condition) of each Job that has failed, sorted by key.

        Jobs that had failed before they were first observed are left out.
        """
        rules, sets = self._pod_sets.rules, self._pod_sets.sets
        jobs = [(key, rule) for key, rule in rules.items() if isinstance(rule, JobRule)]
        for key, rule in sorted(jobs, key=lambda one: sets[one[0]].ref.key):
            finished = rule.progress.finished
            if finished is not None and not finished.is_success and not rule.progress.was_over:
                yield sets[key].ref, finished

    def failing_jobs(self) -> Iterator[tuple[ObjectRef, frozenset[int]]]:
        """Yield (reference, failed indexes) of unfinished Jobs for which `can_only_fail` holds."""
        for key, rule in self._pod_sets.rules.items():
            if not isinstance(rule, JobRule) or rule.progress.finished is not None:
                continue
            if not rule.is_over and can_only_fail(rule.job, rule.progress):
                yield self._pod_sets.sets[key].ref, frozenset(rule.progress.failed_indexes)

    def failed_indexes(self) -> Iterator[tuple[ObjectRef, frozenset[int]]]:
        """Yield (reference, indexes) of each Job with failed indexes that are not tried again."""
        for key, rule in self._pod_sets.rules.items():
            if isinstance(rule, JobRule) and rule.progress.failed_indexes:
                yield self._pod_sets.sets[key].ref, frozenset(rule.progress.failed_indexes)

    def wanted_job_pods(self) -> Iterator[tuple[ObjectRef, int]]:
        """Yield (reference, number of pods that should run now) of each Job."""
        for key, rule in self._pod_sets.rules.items():
            if isinstance(rule, JobRule):
                pods = self._pod_sets.sets[key]
                yield pods.ref, rule.wanted(len(pods.active))

    def unreplaced_pods(self) -> Iterator[tuple[ObjectRef, list[Pod]]]:
        """Yield (reference, pods without a replacement) of each owner with an UnknownOwnerRule.

        Such a rule replaces the pods of an owner that no simulated controller manages, for example
        because the cluster dump lacks the owner. The list of pods may be empty.
        """
        for key, rule in self._pod_sets.rules.items():
            if is_unknown_owner(rule):
                pods = self._pod_sets.sets[key]
                yield pods.ref, pods.unreplaced()

    def paused_deployments(self) -> Iterator[ObjectRef]:
        """Yield the reference of each paused Deployment."""
        return map(object_ref, self._rollouts.paused())

    def update_revision(self, key: str) -> str:
        """Return the revision label of new pods of the StatefulSet or DaemonSet `key`, or ""."""
        history = self._histories.find(key)
        return "" if history is None else history.label_of(history.update)

    def next_job_deadline(self) -> Instant | None:
        """Return the next time at which an unfinished Job exceeds its deadline, or None."""
        rules = (rule for rule in self._pod_sets.rules.values() if isinstance(rule, JobRule))
        return earliest(*(rule.deadline for rule in rules if rule.progress.finished is None))

    def _is_large(self, key: str) -> bool:
        """Return whether the owner `key` has many pods and a rule that does not read readiness."""
        pods = self._pod_sets.sets.get(key)
        is_large = pods is not None and len(pods.pods) >= LARGE
        return is_large and not self._pod_sets.rules[key].reads_readiness

    # --- changes -------------------------------------------------------------------------------

    def _observe(self, one: ApiObject, now: Instant) -> list[Command]:
        if type(one) is Node:
            return self._observe_node(one, now)
        if type(one) is Pod:
            return self._pod_sets.observe(one, now)
        match one:
            case Deployment():
                self._writer.observe(object_ref(one))
                self._rollouts.observe(one)
                if one.metadata.deletion_timestamp:
                    self._stop_replacing(one)
                return []
            case ControllerRevision():
                key = self._histories.observe(one)
                if key:
                    self._pod_sets.mark_changed(key)
                return []
            case PersistentVolumeClaim():
                self._pod_sets.held.observe(one)
                return []
            case _ if is_owner(one):
                return self._observe_owner(one, now)
            case _:
                if one.metadata.deletion_timestamp:
                    self._stop_replacing(one)
                return []

    def _forget(self, one: ApiObject, now: Instant) -> list[Command]:
        match one:
            case Pod():
                if not self._pod_sets.is_replaced(one):
                    self._stop_replacing(one)
                return self._pod_sets.forget(one, now)
            case Node():
                self._nodes.pop(one.metadata.name, None)
                return self._reconcile_daemon_sets(one.metadata.name, now)
            case Deployment():
                self._writer.forget(object_ref(one))
                self._stop_replacing(one)
                return self._rollouts.forget(one, now)
            case ControllerRevision():
                self._histories.forget(one)
                return []
            case PersistentVolumeClaim():
                self._pod_sets.held.forget(one)
                return []
            case _ if is_owner(one):
                self._forget_owner(one)
                return []
            case _:
                self._stop_replacing(one)
                return []

    def _observe_node(self, node: Node, now: Instant) -> list[Command]:
        name = node.metadata.name
        before, self._nodes[name] = self._nodes.get(name), node
        if before is not None and _concerns_daemons(before) == _concerns_daemons(node):
            return []
        return self._reconcile_daemon_sets(name, now)

    def _reconcile_daemon_sets(self, node: str, now: Instant) -> list[Command]:
        commands: list[Command] = []
        for key in self._daemon_sets:
            self._pod_sets.mark_changed(key)
            commands += self._pod_sets.reconcile(key, node, now)
        return commands

    def _observe_owner(self, owner: Owner, now: Instant) -> list[Command]:
        key, is_news = self._learn_owner(owner)
        self._writer.observe(object_ref(owner))
        commands: list[Command] = []
        if is_news:
            commands += unusable_template_events(owner, self._pod_sets.rules[key])
            commands += self._pod_sets.reconcile(key, None, now)
        if isinstance(owner, ReplicaSet):
            rollout = self._rollouts.learn_replica_set(key, owner)
            if rollout is not None:
                self._rollouts.mark_changed(rollout)
        return commands

    def _learn_owner(self, owner: Owner) -> tuple[str, bool]:
        """Store the newest version of `owner`; return its key, and whether its rule changed."""
        pods = self._pod_set_of(owner)
        if isinstance(owner, DaemonSet):
            self._daemon_sets[pods.key] = None
        self._status.learn(pods.key, owner)
        before = self._pod_sets.rules[pods.key]
        rule = self._rules.rule_of(owner, pods, before)
        if self._pod_sets.set_adopter(pods.key, owner):
            # Made again, because a DaemonSet's rule depends on the pods. The first rule was made
            # without the orphans, so their labels do not decide which revision is current.
            rule = self._rules.rule_of(owner, pods, before)
        return pods.key, self._pod_sets.set_rule(pods.key, rule)

    def _pod_set_of(self, owner: Owner) -> PodSet:
        """Return the pod set of `owner`, created if missing."""
        meta = owner.metadata
        if meta.uid:
            path = owner_key(type(owner).__name__, meta.namespace, meta.name, "")
            self._pod_sets.keys_by_path[path] = meta.uid
        return self._pod_sets.pod_set(reference_to(owner), meta.namespace)

    def _forget_owner(self, owner: Owner) -> None:
        meta = owner.metadata
        key = owner_key(type(owner).__name__, meta.namespace, meta.name, meta.uid)
        if key not in self._pod_sets.sets:
            return
        self._daemon_sets.pop(key, None)
        self._writer.forget(object_ref(owner))
        self._pod_sets.adopters.pop(key, None)
        self._status.forget(key)
        self._pace.forget(key)
        self._histories.forget_owner(key)
        self._pod_sets.set_rule(key, NoOpRule())
        self._rollouts.forget_replica_set(key)

    def _stop_replacing(self, one: ApiObject) -> None:
        """Stop replacing the pods of owners that have an UnknownOwnerRule.

        An UnknownOwnerRule replaces the pods of an owner that no simulated controller manages.
        `one` is deleted or being deleted. If `one` is a Namespace, the method acts on all such
        owners in the Namespace. If `one` is not a Namespace, it is itself the owner: a custom
        resource, a Deployment, or a pod that no controller replaces. Programs such as Flink and
        Spark make a Deployment or pod the owner of the pods that they create. In a Namespace that
        is being deleted, the API server refuses new pods. When an owner is deleted, the garbage
        collector deletes the owner's pods. If this controller replaced these pods, the garbage
        collector would also delete the replacements, and so on forever.
        """
        sets = self._pod_sets
        if isinstance(one, Namespace):
            # upstream: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: Admit
            within = one.metadata.name
            keys = [key for key, pods in sets.sets.items() if pods.ref.namespace == within]
        else:
            keys = [one.metadata.uid]
        for key in keys:
            rule = sets.rules.get(key)
            if rule is not None and is_unknown_owner(rule):
                sets.set_rule(key, NoOpRule())

    # --- a snapshot ----------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> list[Command]:
        """Store all objects, then run all rules in the order in which owners were first seen."""
        others = loaded.others
        self._load_pods(others, loaded.replicas)
        known = (one for one in others if isinstance(one, PriorityClass))
        missing = missing_classes(loaded.replicas, known)
        commands: list[Command] = [CreateObject(manifest) for manifest in missing]
        commands += self._learn_owners(others)
        commands += self._rollouts.load(now)
        for key in list(self._pod_sets.sets):
            self._pod_sets.replace_terminating_pods(key)
            commands += self._pod_sets.reconcile(key, None, now)
        return commands

    def _load_pods(self, others: Sequence[ApiObject], pods: Sequence[Replicas]) -> None:
        """Store nodes, claims, pods and revisions; index the pods by their owner references."""
        for one in others:
            if is_owner(one):
                self._pod_set_of(one)
        for one in others:
            if isinstance(one, Node):
                self._nodes[one.metadata.name] = one
            elif isinstance(one, ControllerRevision):
                self._histories.observe(one)
            elif isinstance(one, PersistentVolumeClaim):
                self._pod_sets.held.observe(one)
        self._pod_sets.load_pods(pods)

    def _learn_owners(self, objects: Sequence[ApiObject]) -> list[Command]:
        """Store the owners, Deployments first; return events about unusable templates."""
        commands: list[Command] = []
        for one in objects:
            if isinstance(one, Deployment):
                self._rollouts.learn(one)
        for one in objects:
            if is_owner(one):
                key, _ = self._learn_owner(one)
                commands += unusable_template_events(one, self._pod_sets.rules[key])
                if isinstance(one, ReplicaSet):
                    self._rollouts.learn_replica_set(key, one)
        return commands

    # --- outcomes ------------------------------------------------------------------------------

    def _observe_creation(self, target: ObjectRef, now: Instant) -> list[Command]:
        match target.kind:
            case "Pod":
                return self._pod_sets.created(target, now)
            case "ReplicaSet":
                return self._rollouts.created(target, now)
            case "PersistentVolumeClaim":
                return self._pod_sets.handle_claim_outcome(target, None, "", now)
        return []

    def _observe_status_written(self, target: ObjectRef) -> None:
        """Queue `target` for another status check after a successful write of its status."""
        if self._writer.write_succeeded(target):
            key = owner_key(target.kind, target.namespace, target.name, target.uid)
            changed = self._rollouts if target.kind == "Deployment" else self._pod_sets
            changed.changed[key] = None

    def _observe_status_refused(
        self, target: ObjectRef, reason: FailureReason, now: Instant
    ) -> None:
        """Handle a rejected status write: retry it if the object still exists."""
        if reason is FailureReason.NOT_FOUND:
            self._writer.forget(target)
            return
        failures = self._writer.refused(target)
        if failures:
            key = owner_key(target.kind, target.namespace, target.name, target.uid)
            waiting = self._rollouts if target.kind == "Deployment" else self._pod_sets
            waiting.run_at(key, now + self._config.retry_after(failures))

    def _observe_creation_refused(
        self, command: CreateObject, failure: CommandFailed, now: Instant
    ) -> list[Command]:
        """Handle a refused creation; `command` is the command of `failure`."""
        target, reason, message = command.target, failure.reason, failure.message
        match target.kind:
            case "Pod":
                return self._pod_sets.not_created(target, reason, message, now)
            case "PersistentVolumeClaim":
                return self._pod_sets.handle_claim_outcome(target, reason, message, now)
            case "ReplicaSet":
                return self._rollouts.not_created(target, reason, message, now)
            case _ if target.kind == CONTROLLER_REVISION:
                is_taken = reason is FailureReason.ALREADY_EXISTS
                key, failures = self._histories.not_created(command.manifest, is_taken=is_taken)
                if failures:
                    self._pod_sets.run_at(key, now + self._config.retry_after(failures))
                else:
                    self._pod_sets.mark_changed(key)
        return []

    def _observe_failure(self, failure: CommandFailed, now: Instant) -> list[Command]:
        reason = failure.reason
        match failure.command:
            case CreateObject() as command:
                return self._observe_creation_refused(command, failure, now)
            case DeleteObject(target):
                self._pod_sets.not_deleted(target, reason, now)
            case PatchObject(target) if target.kind in ("ReplicaSet", "Deployment"):
                self._rollouts.not_written(target, now)
            case PatchObject(target) if target.kind == "Pod":
                self._pod_sets.not_released(target, now)
            case PatchStatus(target):
                self._observe_status_refused(target, reason, now)
            case _:
                pass
        return []


def _concerns_daemons(node: Node) -> tuple[object, ...]:
    """Return the fields of a node that determine whether daemon pods run there."""
    return (node.metadata.labels, node.spec.taints)
