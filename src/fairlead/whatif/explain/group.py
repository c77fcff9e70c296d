"""Explains a PodGroup of a snapshot: the reasons that block it, and changes that would start it.

The explanation simulates the next session of the batch scheduler (see `engine.batch.explanation`).
If the user asks about a pod of the batch scheduler, the group of that pod is explained. A pod
without a group is treated as a group of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.api.quantity import amount_text
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import POD, POD_GROUP
from fairlead.apiserver.registry.store import Store
from fairlead.engine.batch.compose import Composition, compose
from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.batch.explanation.explanation import (
    GroupExplanation,
    explain_group,
    is_uncreated,
)
from fairlead.engine.batch.explanation.next_session import with_next_session
from fairlead.engine.batch.info.group import group_name, labelled_group
from fairlead.engine.batch.plugin_guard import PluginFailures
from fairlead.engine.batch.queue_usage import QueueUsage
from fairlead.engine.batch.scheduler_name import FAIRLEAD
from fairlead.engine.batch.shares.share import needs_of
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.configuration.batch.batch_config import batch_config, batch_notes
from fairlead.whatif.configuration.batch.batch_file import override_notes, read_batch_config
from fairlead.whatif.configuration.batch.options import SINGLE_PODS, BatchOptions
from fairlead.whatif.configuration.other_scheduler import other_schedulers
from fairlead.whatif.explain.pod import SOURCE
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.outcome.deserved_amount import deserved_amounts
from fairlead.whatif.result.result_json import API_VERSION
from fairlead.whatif.snapshot.dump_note import IGNORED_GROUPS
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import Snapshot, load_objects
from fairlead.worlds.seeded_ids import SeededIds

GROUP_KINDS: Final = ("podgroup", "podgroups", "pg")


class ExplainedGroup(Struct, frozen=True):
    """The explanation of a group: `found` describes the group at the instant `at`.

    `failures` describes failures of the batch scheduler's plugins. `notes` are the assumptions.
    """

    found: GroupExplanation
    at: Instant
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def is_about_group(
    target: str, snapshot: Snapshot, scheduler: SchedulerConfig, options: BatchOptions
) -> bool:
    """Return whether `target` names a group, or a pod that is explained with its group.

    A pod of the batch scheduler is explained with its group. A pod that names a group in a label is
    also explained with the group, if the pod's schedulerName is unknown. A schedulerName is known
    if a scheduler profile has this name, or if a pod with this schedulerName is bound to a node.
    The name `fairlead` is always known.
    """
    if target.partition("/")[0].partition(".")[0].lower() in GROUP_KINDS:
        return True
    if options.source == SINGLE_PODS:
        return False
    manifest = snapshot.inventory().find(SOURCE, target, expected=(POD,))
    if manifest.kind is not POD:
        return False
    pod = manifest.pod
    if labelled_group(pod) and _is_of_unknown_scheduler(pod, snapshot, scheduler):
        return True
    config = batch_config(options, scheduler, snapshot.manifests)
    return config is not None and pod.spec.scheduler_name in config.ownership.scheduler_names


def waiting_member(snapshot: Snapshot, target: str, scheduler: SchedulerConfig) -> str:
    """Return a waiting pod of `target`, a PodGroup of the default scheduler; "" if none waits.

    The explanation of this pod also says whether its group can start. Return "", too, if `target`
    is not a PodGroup that only the default scheduler schedules.
    """
    name = target.partition("/")[2]
    if not (scheduler.version.pod_groups and _is_of_default_scheduler(snapshot, target)):
        return ""
    waiting = (
        one.pod.key
        for one in snapshot.manifests
        if one.kind is POD and not one.pod.spec.node_name and not is_terminal(one.pod)
        if name in (group := group_name(one.pod), f"{one.ref.namespace}/{group}")
    )
    first = min(waiting, default="")
    return first and f"pod/{first}"


def explain_group_of(
    snapshot: Snapshot, target: str, scheduler: SchedulerConfig, options: BatchOptions
) -> ExplainedGroup:
    """Return the explanation of a group in `snapshot`.

    `target` names the group, or a pod of it. `scheduler` and `options` configure the scheduler and
    the batch scheduler. Pods whose labels name the group belong to it even if another scheduler
    schedules them, such as a kube-scheduler with the plugin Coscheduling.

    Raises InputError if there is no such group. Raises InputError if `options` select SINGLE_PODS,
    because with this option, groups are ignored. Also raises InputError if the group is a PodGroup
    of scheduling.k8s.io that the default scheduler schedules, or that has no effect.
    """
    if options.source == SINGLE_PODS:
        problem = f"{SINGLE_PODS} ignores pod groups; explain one of the pods instead"
        raise InputError("--batch-config", problem)
    config = explained_config(options, scheduler, snapshot)
    _refuse_group_of_default_scheduler(snapshot, target, scheduler, config)
    others = _other_schedulers_of(snapshot, target, config)
    names = (*config.ownership.scheduler_names, *others)
    config = replace(config, ownership=replace(config.ownership, scheduler_names=names))
    failures = PluginFailures()
    cluster, composition = batch_state(snapshot, config, failures)
    job = _job_of(snapshot, target, composition)
    now = snapshot.taken_at
    uncreated = tuple(_uncreated_pods(composition, cluster, job))
    alone = explain_group(composition, cluster, job, now)
    found = with_next_session(alone, composition, cluster, now)
    notes = [*override_notes(config), *batch_notes(options, config, snapshot.manifests, scheduler)]
    if uncreated:
        found = replace(found, remedies=())  # only Volcano can create the pods
    notes += uncreated
    if found.starting and found.remedies:
        notes.append(
            "The changes that would let the group start count on the resources that are free now. "
            f"The next session gives some of them to {listed(found.starting)}, and fairlead whatif "
            "makes its changes after that session. Then the group may need more."
        )
    if others:
        found = replace(found, queue=None, queue_name="")  # these schedulers have no queues
        notes.append(
            f"Pods with schedulerName {' and '.join(others)} follow Fairlead's own batch "
            "configuration here, not the rules of their scheduler."
        )
    return ExplainedGroup(found, now, tuple(failures.messages), tuple(notes))


def explained_config(
    options: BatchOptions, scheduler: SchedulerConfig, snapshot: Snapshot
) -> BatchConfig:
    """Return the configuration of the batch scheduler in explanations of `snapshot`.

    `options` must not select SINGLE_PODS. Raises InputError.
    """
    config = batch_config(options, scheduler, snapshot.manifests) or read_batch_config("fairlead")
    if scheduler.version.pod_groups:
        config = replace(config, ownership=replace(config.ownership, own_groups_only=True))
    return config


def _uncreated_pods(composition: Composition, cluster: Cluster, job: str) -> Iterator[str]:
    """Yield sentences on why Volcano has not created the pods of the group `job`.

    Yield nothing if the group has pods or does not await admission by Volcano.

    upstream: volcano: docs/design/delay-pod-creation.md;
    pkg/controllers/job/job_controller_actions.go: syncJob
    """
    found = composition.jobs.jobs[job]
    group = found.group
    if group is None or not is_uncreated(found):
        return
    yield (
        "Volcano creates the pods of a Job only after its action enqueue has admitted the PodGroup "
        f"(phase Inqueue). This PodGroup has the phase {group.status.phase or 'Pending'}."
    )
    queue, columns = composition.jobs.queues.get(found.queue), cluster.table.resources
    needs = dict(needs_of(found, columns))
    excess = [
        f"{amount_text(name, needs[column])} {name} (at most {amount_text(name, most)})"
        for column, most in (() if queue is None else queue.capability)
        if needs.get(column, 0) > most and (name := columns.names[column])
    ]
    if excess:
        yield (
            f"It is never admitted, because its minResources exceed the capability of queue "
            f"{found.queue}: {', '.join(excess)}."
        )


def _is_of_unknown_scheduler(pod: Pod, snapshot: Snapshot, scheduler: SchedulerConfig) -> bool:
    """Return whether the schedulerName of `pod` is unknown, as defined in `is_about_group`."""
    known = {profile.scheduler_name for profile in scheduler.profiles}
    known.update((FAIRLEAD, *other_schedulers(scheduler, snapshot.manifests)))
    return pod.spec.scheduler_name not in known


def _other_schedulers_of(snapshot: Snapshot, target: str, config: BatchConfig) -> tuple[str, ...]:
    """Return the schedulerNames that pods of a group have and `config` lacks.

    `target` is the group or one of its pods. Only pods that name the group in a label count.
    """
    kind, _, name = target.partition("/")
    if kind.partition(".")[0].lower() not in GROUP_KINDS:
        pod = snapshot.inventory().find(SOURCE, target, expected=(POD,)).pod
        name = f"{pod.metadata.namespace}/{labelled_group(pod)}"
    names = {
        pod.spec.scheduler_name
        for pod in _pods_of(snapshot, name)
        if labelled_group(pod) and not is_terminal(pod)
    }
    return tuple(sorted(names.difference(config.ownership.scheduler_names)))


def _pods_of(snapshot: Snapshot, group: str) -> Iterator[Pod]:
    """Yield the pods of `group` (NAMESPACE/NAME or NAME).

    If pods are replicas of one another, only one of them may be yielded.
    """
    for one in samples(snapshot.manifests):
        name = group_name(one.pod) if one.kind is POD else ""
        if name and group in (name, f"{one.ref.namespace}/{name}"):
            yield one.pod


def _is_of_default_scheduler(snapshot: Snapshot, target: str) -> bool:
    """Return whether `target` names PodGroups of scheduling.k8s.io, and no other PodGroup."""
    kind, _, name = target.partition("/")
    if kind.partition(".")[0].lower() not in GROUP_KINDS:
        return False
    groups = (one for one in snapshot.manifests if one.kind.kind == POD_GROUP.kind)
    return {one.kind for one in groups if name in (one.ref.key, one.ref.name)} == {POD_GROUP}


def _refuse_group_of_default_scheduler(
    snapshot: Snapshot, target: str, scheduler: SchedulerConfig, config: BatchConfig
) -> None:
    """Raise InputError if `target` is a PodGroup that only kube-scheduler schedules.

    The error names a pod of the group, or the feature gates without which the group has no effect.
    """
    if not _is_of_default_scheduler(snapshot, target):
        return
    pods = list(_pods_of(snapshot, target.partition("/")[2]))
    if scheduler.version.pod_groups:
        such_as = f", such as pod/{pods[0].key}" if pods else ""
        problem = (
            f"{target} is scheduled by the default scheduler (feature gate GenericWorkload); "
            f"explain one of its pods{such_as}"
        )
        raise InputError(SOURCE, problem)
    owned = config.ownership.scheduler_names
    if pods and not any(pod.spec.scheduler_name in owned for pod in pods):
        raise InputError(SOURCE, f"{target} holds no pods back: {IGNORED_GROUPS}")


def batch_state(
    snapshot: Snapshot, config: BatchConfig, reporter: Reporter
) -> tuple[Cluster, Composition]:
    """Return the state of `snapshot`, and the batch scheduler that `config` configures for it."""
    cluster = Cluster()
    composition = compose(config, cluster, reporter=reporter)
    everything = ObjectsLoaded(load_objects(snapshot, Store(SeededIds(0))))
    cluster.apply(everything)
    composition.jobs.apply(everything)
    return cluster, composition


def _job_of(snapshot: Snapshot, target: str, composition: Composition) -> str:
    kind, _, name = target.partition("/")
    if kind.partition(".")[0].lower() not in GROUP_KINDS:
        pod = snapshot.inventory().find(SOURCE, target, expected=(POD,))
        tasks = composition.jobs.tasks.values()
        return next(task.job.id for task in tasks if task.key == pod.ref.key)
    jobs = composition.jobs.jobs.values()
    groups = [job.id for job in jobs if job.group is not None and job.group.ref]
    absent = [job.id for job in jobs if job.group is None]  # pods name them
    found = [job for job in (*groups, *absent) if name in (job, job.partition("/")[2])]
    if len(found) == 1:
        return found[0]
    if found:
        where = ", ".join(sorted(job.partition("/")[0] for job in found))
        raise InputError(SOURCE, f"{target} is in several namespaces ({where}); name one of them")
    known = f"; {known_names(name, groups)}" if groups else ""
    raise InputError(SOURCE, f"there is no PodGroup {name}{known}")


def group_explanation_json(explained: ExplainedGroup) -> Json:
    """Return `explained` as JSON; amounts are keyed by resource, CPU in millicores."""
    found, begins = explained.found, explained.found.starts_at
    return {
        "apiVersion": API_VERSION,
        "kind": "GroupExplanation",
        "group": found.title,
        "at": format_timestamp(explained.at),
        "obstacle": found.obstacle.name,
        "why": found.summary or str(found.obstacle),
        "has_minimum": found.has_minimum,
        "min_member": found.min_member,
        "members": found.members,
        "ready": found.ready,
        "promised": found.promised,
        "placeable": found.placeable,
        "queue": None if found.queue is None else _queue(found.queue),
        "member": found.member,
        "nodes": [
            {
                "node": fact.node,
                "reason": fact.reason,
                "lacking": dict(fact.lacking),
                "members": fact.members,
            }
            for fact in found.nodes
        ],
        "nodes_left_out": found.nodes_left_out,
        "starts_after_s": None if begins is None else round(to_seconds(begins - explained.at), 3),
        "is_too_large": found.is_too_large,
        "victims": list(found.victims),
        "rule": found.rule or None,
        "no_evictions": list(found.no_evictions),
        "remedies": list(found.remedies),
        "plugin_failures": list(explained.failures),
        "notes": list(explained.notes),
    }


def _queue(queue: QueueUsage) -> Json:
    return {
        "queue": queue.name,
        "weight": queue.weight,
        "deserved": deserved_amounts(queue.deserved),
        "allocated": dict(queue.allocated),
        "requested": dict(queue.request),
        "share": round(queue.share, 6),
        "overused": queue.is_overused,
    }
