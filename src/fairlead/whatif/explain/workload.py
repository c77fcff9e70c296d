"""Explains a workload: its pods, why some are pending, its budgets, and room for one more pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, items, mapping, text
from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import CronJob, Job, Pod, StatefulSet
from fairlead.api.pods.facts import (
    controller_of,
    foreign_finalizers,
    is_terminal,
    is_terminating,
)
from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
)
from fairlead.engine.core.cron_schedule import Schedule, ScheduleError, read_schedule
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import NOT_ENOUGH
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.preemption.policy import is_preempted
from fairlead.engine.scheduling.remedy.selector_correction import find_correction
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.cron_job.sync import CronJobState
from fairlead.engine.workloads.daemon_set.rule import nodes_without_pod, target_node
from fairlead.engine.workloads.deletion.pod_finalizers import is_kept_after_end
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.job.rule import is_finished
from fairlead.engine.workloads.pod_control.scale_down import is_ready
from fairlead.engine.workloads.stateful_set.rule import is_ordered, ordinals_of
from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, unsimulated_in_plan
from fairlead.whatif.explain.device_shortage import device_shortages, may_need_devices
from fairlead.whatif.explain.kueue_queue import STARTED_KINDS, start_step
from fairlead.whatif.explain.node_requirement import correction_sentences, unmet_requirements
from fairlead.whatif.explain.pod_cause import (
    cause_rows,
    explain_steps,
    is_up,
    pending_causes,
    quota_steps,
    unready_causes,
)
from fairlead.whatif.explain.rollout import (
    pods_to_replace,
    replaced_set,
    stuck_pod,
    template_changes,
    undo_steps,
)
from fairlead.whatif.explain.unbound_claim import unbound_claims_of
from fairlead.whatif.explain.uncreated_pod import uncreated_rows, without_name
from fairlead.whatif.explain.volume_place import volume_places
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.workload import WorkloadRef, revision_of, workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, in_queue_order
from fairlead.whatif.planner.created_pod import create_pod
from fairlead.whatif.planner.new_pod import NewPods, new_pods_of
from fairlead.whatif.planner.node_drain.drain_planner import DrainPlanner
from fairlead.whatif.planner.refusal import Refusal, refusals_of
from fairlead.whatif.planner.waiting_pods import place, place_waiting_pods
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.capacity.wanted_pods import wanted_by, wanted_pods
from fairlead.whatif.run.kept_revision import kept_revisions
from fairlead.whatif.run.pod_timing.startup_time import startup_times
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.kueue import admission_sentence
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import is_custom
from fairlead.whatif.snapshot.snapshot import Snapshot

_PENDING_COLUMNS: Final = (
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("pod", "pending", NAME),
    ResultColumn("why", "why"),
)
_UNREADY_COLUMNS: Final = (
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("pod", "not ready", NAME),
    ResultColumn("why", "why"),
)
_ZONE_COLUMNS: Final = (
    ResultColumn("zone", "zone", NAME),
    ResultColumn("nodes", "nodes with pods", NUMBER),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("ready", "ready", NUMBER),
)
_NO_PROGRESS: Final = ("Progressing", "False")  # a condition and its status
_CHANGES_MAX: Final = 5  # changes of a template that are named
_NO_NODE: Final = "node is missing"  # in place of the zone
_BUDGET_COLUMNS: Final = (
    ResultColumn("budget", "budget", NAME),
    ResultColumn("rule", "rule"),
    ResultColumn("ready", "ready", NUMBER),
    ResultColumn("needed", "needed", NUMBER),
    ResultColumn("allowed", "evictions allowed", NUMBER),
)
_JOB_COLUMNS: Final = (
    ResultColumn("job", "Job", NAME),
    ResultColumn("wanted", "wanted pods", NUMBER),
    ResultColumn("ready", "ready", NUMBER),
    ResultColumn("pending", "pending", NUMBER),
)
_REFUSAL_COLUMNS: Final = (
    ResultColumn("nodes", "nodes", NUMBER),
    ResultColumn("plugin", "refused by"),
    ResultColumn("reason", "because"),
    ResultColumn("change", "would fit after"),
)


def explain_workload(
    planner: DrainPlanner, snapshot: Snapshot, workload: Manifest
) -> TabularAnswer:
    """Return the explanation of `workload`, an object of `snapshot` that controls pods."""
    model = planner.model
    ref = WorkloadRef(workload.full_kind, workload.ref.namespace, workload.ref.name)
    # Controllers do not count terminating pods (controller_utils.go: FilterActivePods).
    between = _controllers_between(workload, snapshot.inventory())
    controllers = _by_name(between if workload.kind is DEPLOYMENT else (workload, *between))
    own = (pod for pod in model.pods() if _is_of(pod, ref, controllers))
    every = sorted(own, key=lambda pod: pod.key)
    pods = [pod for pod in every if not is_terminating(pod.pod)]
    present = [*every, *(one for one in _ended_pods(model) if _is_of(one, ref, controllers))]
    placed = [pod for pod in pods if model.cluster.node_of(pod)]
    pending = in_queue_order(pod for pod in pods if not model.cluster.node_of(pod))
    causes = pending_causes(model, pending)
    ready = [pod for pod in pods if is_up(model, pod)]
    with_nodes = ((ref, pod.pod, model.cluster.node_of(pod)) for pod in pods)
    lacking = _nodes_without_pod(model, workload, pods)
    wanted = wanted_pods(model.store, with_nodes, [ref])[ref] + len(lacking)
    is_owner = is_custom(workload.kind.api_version)
    jobs = [one for one in between if one.kind is JOB] if is_owner else []
    wanted = max(wanted, sum(wanted_by(one.value) for one in jobs))
    surplus = _surplus(workload, pods)
    kept, kept_ready = _without(pods, surplus), _without(ready, surplus)
    all_surplus = _surplus(workload, present)  # with terminating pods
    missing = _next_missing(workload, pods)
    # The pod of a scale-up could not have its name while a surplus pod of this name exists.
    is_tried = missing is not None or not all_surplus
    one_more = _one_more(planner, snapshot, workload, missing) if is_tried else _OneMore()
    decision = one_more.placement
    limits = {one.key: one for pod in pods for one in planner.budgets.of(pod.pod)}
    cron = _cron_schedule(workload, snapshot) if workload.kind == CRON_JOB else None
    old = pods_to_replace(workload, between, kept, kept_revisions(model.store)) if wanted else []
    stuck = stuck_pod(workload, snapshot.inventory(), old)
    replaced = replaced_set(workload, between, old)
    verdict = f"{ref} has no pods now."
    if wanted:
        blocked = _blocked_names(workload, _without(present, all_surplus))
        waiting, up = len(_without(pending, surplus)), len(kept_ready)
        is_complete = up >= wanted and not (old or waiting)
        rest = "" if is_complete else _lacking(wanted, up, len(kept), waiting, blocked)
        verdict = _verdict(ref, wanted, up, len(old), rest)
    elif cron is None or pods:
        verdict = f"{ref} wants no pods and has {f'{len(pods):,}' if pods else 'none'}."
    return TabularAnswer(
        kind="WorkloadExplanation",
        source=snapshot.source,
        verdict=verdict,
        findings=(
            *(() if cron is None else (cron.sentence,)),
            *(_job_state(workload, snapshot.inventory()) if workload.kind == JOB else ()),
            *(_owner_state(workload, snapshot.inventory()) if is_owner else ()),
            *_deletion(workload),
            *_kept_template(workload, pods),
            *_conditions(workload),
            *(() if replaced is None else _changes(workload, replaced)),
            *_bare_nodes(model, lacking, every),
            *_leaving(model, workload, present),
            *(_surplus_words(workload, surplus, waits=len(kept_ready) < wanted) if surplus
              else _ordered(workload, pods)),
            *unbound_claims_of((pod.pod for pod in pending), snapshot.inventory(), model.now),
            *_unmet(model, pending, snapshot.inventory()),
            *_devices(model, pending),
            *_findings(snapshot, ref, pods, one_more),
            *_batch_scheduler(model, pods),
            *_jobs_without_pods(model, snapshot.inventory(), jobs, pods),
            *_old_pods(workload, pods),
            *(() if stuck is None else (stuck.sentence,)),
        ),
        tables=(
            *((ResultTable("jobs", "its Jobs", _JOB_COLUMNS, _job_rows(model, jobs, pods)),)
              if jobs else ()),
            ResultTable("pending", "pending pods", _PENDING_COLUMNS,
                        cause_rows(causes)),
            ResultTable("unready", "pods on a node that are not ready", _UNREADY_COLUMNS,
                        cause_rows(unready_causes(model, snapshot.inventory(), placed))),
            ResultTable("refusals", one_more.refusals_title, _REFUSAL_COLUMNS, [
                {"nodes": one.nodes, "plugin": one.plugin, "reason": one.reason,
                 "change": one.change}
                for one in one_more.refusals
            ]),
            ResultTable("zones", "where its pods are", _ZONE_COLUMNS, _zone_rows(planner, placed)),
            ResultTable("budgets", "its disruption budgets", _BUDGET_COLUMNS, [
                {"budget": one.key, "rule": one.rule, "ready": one.healthy, "needed": one.desired,
                 "allowed": one.now}
                for one in limits.values()
            ]),
        ),
        facts={
            "workload": str(ref),
            "wanted": wanted,
            "pods": len(pods),
            "ready": len(ready),
            "one_more_goes_to": decision.node.name if decision is not None else "",
            "one_more_equals": decision.equals if decision is not None else 0,
            "one_more_preempts": [victim.key for victim in one_more.victims],
            **({} if cron is None else cron.facts),
        },
        notes=unsimulated_in_plan(snapshot.manifests, ADDS_NODES) if pending else (),
        steps=(
            *(() if stuck is None else stuck.steps(snapshot.question_arguments)),
            *(undo_steps(workload, replaced)
              if replaced is not None and _waits(model, workload, between, kept) else ()),
            *_start_steps(workload, snapshot.question_arguments),
            *quota_steps(one_more.message, ref.namespace, snapshot.question_arguments),
            *explain_steps(causes, snapshot.question_arguments),
        ),
    )  # fmt: skip


class _CronSchedule(Struct, frozen=True):
    """The schedule of a CronJob: a `sentence` about it, and its `facts` for the answer."""

    sentence: str
    facts: Json


def _cron_schedule(workload: Manifest, snapshot: Snapshot) -> _CronSchedule:
    """Return the schedule of a CronJob with the next time at which a Job is due.

    The next time is the next scheduled time after the time of `snapshot`, or an earlier time whose
    Job waits for a running Job.
    """
    now = snapshot.taken_at
    cron = decode_as(CronJob, workload.value)
    spec = cron.spec
    zone = spec.time_zone or "UTC"
    due = ""
    try:
        schedule = read_schedule(spec.schedule, spec.time_zone)
        instant = schedule.after(now)
    except ScheduleError as cause:
        then = f"no Job starts: {cause}"
    else:
        due = "" if instant is None else format_timestamp(instant)
        then = f"the next Job starts at {due}" if due else "no further Job starts"
        running = _running_jobs(workload, snapshot.inventory()) if due else []
        # upstream: pkg/controller/cronjob/cronjob_controllerv2.go: syncCronJob
        if running and spec.concurrency_policy == "Forbid":
            waits = f"waits until {listed(running)} ends (concurrencyPolicy Forbid)"
            then = f"the next Job is due at {due}, but {waits}"
            if (overdue := _overdue(cron, schedule, now)) is not None:
                due = format_timestamp(overdue)
                then = f"the Job that was due at {due} {waits}"
        elif running and spec.concurrency_policy == "Replace":
            then += f" and replaces {listed(running)} (concurrencyPolicy Replace)"
    if spec.suspend:
        due, then = "", "it is suspended, so no Job starts"
    facts: Json = {
        "schedule": spec.schedule,
        "time_zone": zone,
        "suspended": spec.suspend,
        "next_run": due or None,
    }
    return _CronSchedule(f'Its schedule is "{spec.schedule}" ({zone}); {then}.', facts)


def _overdue(cron: CronJob, schedule: Schedule, now: Instant) -> Instant | None:
    """Return the last scheduled time before `now` if its Job may still start; None otherwise.

    The result is also None if `cron` states neither its creation time nor the scheduled time of its
    last Job. In this case, the times for which Jobs were created are unknown.
    """
    if not (cron.metadata.creation_timestamp or cron.status.get("lastScheduleTime")):
        return None
    return CronJobState.of(cron).overdue(schedule, now)


def _running_jobs(workload: Manifest, inventory: Inventory) -> list[str]:
    """Return the names of the Jobs of the CronJob `workload` that have not ended."""
    active = items(workload.value, "status", "active")
    jobs = (inventory.get(JOB, workload.ref.namespace, text(one, "name")) for one in active)
    running = (job for job in jobs if job is not None)
    return [job.ref.name for job in running if not is_finished(decode_as(Job, job.value))]


def _job_state(workload: Manifest, inventory: Inventory) -> Iterator[str]:
    """Yield why a Job gets no pods (it has ended or is suspended), or how many pods have failed.

    upstream: pkg/controller/job/job_controller.go: syncJob, manageJob
    """
    job = decode_as(Job, workload.value)
    for one in job.status.conditions:
        if one.type in ("Complete", "Failed") and one.status == "True":
            verb = "has completed" if one.type == "Complete" else "has failed"
            yield f"It {verb}, so it gets no more pods{f': {one.message}' if one.message else '.'}"
            return
    if job.spec.suspend:
        yield "It is suspended (spec.suspend), so it gets no pods."
        if why := admission_sentence(workload, inventory):
            yield why
    elif job.status.failed:
        yield _failures(job)


def _start_steps(workload: Manifest, arguments: Sequence[str]) -> Iterator[NextStep]:
    """Yield the what-if that starts `workload` if it is a suspended Job or JobSet.

    A finished Job is left out. A Job with a controller is left out, too, because the controller,
    such as a JobSet, would suspend the Job again.
    """
    if workload.kind == JOB and is_finished(decode_as(Job, workload.value)):
        return
    is_started = workload.full_kind in STARTED_KINDS
    is_suspended = mapping(workload.value, "spec").get("suspend") is True
    if is_started and is_suspended and controller_of(workload.metadata) is None:
        yield start_step(workload.full_kind, workload.ref.key, arguments)


def _owner_state(owner: Manifest, inventory: Inventory) -> Iterator[str]:
    """Yield why the Jobs of a suspended custom resource, such as a JobSet, get no pods."""
    if mapping(owner.value, "spec").get("suspend") is True:
        yield "It is suspended (spec.suspend), so its Jobs get no pods."
        if why := admission_sentence(owner, inventory):
            yield why


def _failures(job: Job) -> str:
    """Return a sentence about the failed pods of the running `job`."""
    failed, limit = job.status.failed, job.spec.backoff_limit
    has = "has" if failed == 1 else "have"
    fails = waits = ""
    if limit is not None and job.spec.backoff_limit_per_index is None:
        fails = f"; the Job fails when more than {limit:,} have failed (backoffLimit)"
    if not job.status.active:
        # upstream: pkg/controller/job/backoff_utils.go: getRemainingTime
        waits = " Its next pod is created after a delay, which doubles with each failure."
    return f"{failed:,} of its pods {has} failed{fails}.{waits}"


def _controllers_between(workload: Manifest, inventory: Inventory) -> list[Manifest]:
    """Return the ReplicaSets and Jobs that `workload` controls.

    The names of these objects need not have the form that controllers give: `kubectl create job
    --from=cronjob/backup` takes any name, and a ReplicaSet that was written by hand may lack the
    pod-template-hash.
    """
    found = (one for kind in (REPLICA_SET, JOB) for one in inventory.of_kind(kind))
    return [one for one in found if one.is_controlled_by(workload)]


def _by_name(controllers: Iterable[Manifest]) -> dict[str, list[Manifest]]:
    found: dict[str, list[Manifest]] = defaultdict(list)
    for one in controllers:
        found[one.ref.name].append(one)
    return found


def _is_of(pod: PodInfo, ref: WorkloadRef, controllers: Mapping[str, Sequence[Manifest]]) -> bool:
    """Return whether a workload controls `pod`, directly or through a ReplicaSet or Job.

    `ref` identifies the pods of the workload. `controllers` are the workload and the ReplicaSets
    and Jobs that it controls, by name.

    A Deployment controls pods only through ReplicaSets. Pods that name a Deployment itself as their
    controller, as Flink's do, are a separate workload. So a Deployment is not in `controllers`.
    """
    if workload_of(pod.pod) == ref:
        return True
    owner = controller_of(pod.pod.metadata)
    if owner is None or pod.namespace != ref.namespace:
        return False
    named = controllers.get(owner.name, ())
    return any(one.is_named_by(owner.kind, owner.api_version, owner.name) for one in named)


def _kept_template(workload: Manifest, pods: Iterable[PodInfo]) -> Iterator[str]:
    """Yield a sentence if a setting of `workload` keeps pods of an old template running.

    A StatefulSet or DaemonSet gets a sentence only if `pods` are of several revisions. A paused
    Deployment always gets a sentence: it may have a new template although its pods are of one
    revision.

    upstream: pkg/controller/deployment/deployment_controller.go: syncDeployment,
    pkg/controller/statefulset/stateful_set_control.go: updateStatefulSetAfterInvariantEstablished
    """
    spec = mapping(workload.value, "spec")
    if workload.kind is DEPLOYMENT:
        if spec.get("paused") is True:
            yield "It is paused (spec.paused), so a new template replaces no pods."
        return
    if workload.kind not in (STATEFUL_SET, DAEMON_SET):
        return
    if len({revision_of(pod.pod) for pod in pods}) < 2:
        return
    strategy = mapping(spec, "updateStrategy")
    partition = mapping(strategy, "rollingUpdate").get("partition")
    if strategy.get("type") == "OnDelete":
        yield "Its update strategy is OnDelete, so it replaces only deleted pods."
    elif isinstance(partition, int) and partition:
        first = "first pod keeps" if partition == 1 else f"first {partition:,} pods keep"
        yield f"Its update strategy has a partition, so its {first} the old template."


def _deletion(workload: Manifest) -> Iterator[str]:
    """Yield a sentence if `workload` is being deleted: then its controller creates no pods.

    upstream: pkg/controller/daemon/daemon_controller.go: syncDaemonSet;
    replicaset/replica_set.go: syncReplicaSet; statefulset/stateful_set_control.go:
    updateStatefulSet; job/job_controller.go: syncJob; cronjob/cronjob_controllerv2.go: syncCronJob
    """
    if workload.metadata.deletion_timestamp:
        yield "It is being deleted, so its controller creates no pods."


def _conditions(workload: Manifest) -> Iterator[str]:
    """Yield a sentence if the rollout of `workload` is stuck, or if its pods cannot be created.

    upstream: pkg/controller/deployment/util/deployment_util.go: TimedOutReason,
    FailedRSCreateReason
    """
    for one in items(workload.value, "status", "conditions"):
        kind, status = text(one, "type"), text(one, "status")
        message = text(one, "message").rstrip(".")
        because = f"({text(one, 'reason')}){f': {message}' if message else ''}."
        if (kind, status) == _NO_PROGRESS:
            yield f"Its rollout makes no progress {because}"
        elif (kind, status) == ("ReplicaFailure", "True"):
            yield f"Its pods could not be created when the dump was taken {because}"


def _changes(workload: Manifest, replaced: Manifest) -> Iterator[str]:
    """Yield a sentence about what the rollout of `workload` changes, compared with `replaced`."""
    if changes := template_changes(workload, replaced):
        yield f"Its rollout changes: {listed(changes, _CHANGES_MAX)}."


def _waits(
    model: ClusterModel,
    workload: Manifest,
    controllers: Sequence[Manifest],
    pods: Sequence[PodInfo],
) -> bool:
    """Return whether the rollout of the Deployment `workload` has new pods that are not ready.

    The result is also True if the controller reports that the rollout makes no progress.
    """
    if workload.kind is not DEPLOYMENT:
        return False
    conditions = items(workload.value, "status", "conditions")
    if any((text(one, "type"), text(one, "status")) == _NO_PROGRESS for one in conditions):
        return True
    old = {pod.key for pod in pods_to_replace(workload, controllers, pods, {})}
    return any(pod.key not in old and not is_up(model, pod) for pod in pods)


def _nodes_without_pod(
    model: ClusterModel, workload: Manifest, pods: Iterable[PodInfo]
) -> list[str]:
    """Return the nodes on which a DaemonSet should have a pod, but has no pod of `pods`.

    Return [] if `workload` is not a DaemonSet.
    """
    if workload.kind is not DAEMON_SET:
        return []
    occupied = {model.cluster.node_of(pod) or target_node(pod.pod) for pod in pods}
    nodes = (one.node for one in model.table.nodes())
    return list(nodes_without_pod(workload.value, nodes, occupied))


def _bare_nodes(
    model: ClusterModel, lacking: Sequence[str], every: Iterable[PodInfo]
) -> Iterator[str]:
    """Yield a sentence about the nodes in `lacking` that have none of the pods in `every`.

    `every` includes terminating pods, so the sentence leaves out nodes on which a pod is being
    replaced.
    """
    hosts = {model.cluster.node_of(pod) for pod in every}
    if bare := [name for name in lacking if name not in hosts]:
        yield f"It has no pod on {listed(bare)}."


def _blocked_names(workload: Manifest, pods: Iterable[PodInfo]) -> int:
    """Return the number of terminating `pods` with names that `workload` needs for new pods.

    Return 0 if `workload` is not a StatefulSet.
    """
    if workload.kind is not STATEFUL_SET:
        return 0
    return sum(is_terminating(pod.pod) for pod in pods)


def _is_unready(pod: PodInfo) -> bool:
    return not is_ready(pod.pod) and not is_terminal(pod.pod)


def _ordered(workload: Manifest, pods: Sequence[PodInfo]) -> Iterator[str]:
    """Yield a sentence if a StatefulSet waits for one of its pods before it creates the next pod.

    If the StatefulSet has all its pods, the next pod is the pod that a scale-up would create.

    upstream: pkg/controller/statefulset/stateful_set_control.go: processReplica
    """
    if workload.kind is not STATEFUL_SET or not is_ordered(decode_as(StatefulSet, workload.value)):
        return
    ordinals = {
        ordinal: pod
        for pod in pods
        if (ordinal := ordinal_of(workload.ref.name, pod.pod.metadata.name)) is not None
    }
    first = next((pod for _, pod in sorted(ordinals.items()) if _is_unready(pod)), None)
    if first is not None:
        yield f"It creates no further pod until {first.key} is ready (podManagementPolicy)."


def _next_missing(workload: Manifest, pods: Iterable[PodInfo]) -> int | None:
    """Return the ordinal of the pod that the StatefulSet `workload` creates next.

    `pods` are the pods of `workload` that are neither finished nor terminating. The StatefulSet
    creates a pod for each wanted ordinal that none of `pods` has, the lowest ordinal first. A
    finished or terminating pod is replaced by a pod of the same name once it is deleted. Return
    None if no pod is missing, and for workloads of other kinds.

    upstream: pkg/controller/statefulset/stateful_set_control.go: updateStatefulSet, processReplica
    """
    if workload.kind is not STATEFUL_SET:
        return None
    present = {ordinal_of(workload.ref.name, pod.pod.metadata.name) for pod in pods}
    wanted = ordinals_of(decode_as(StatefulSet, workload.value))
    return next((ordinal for ordinal in wanted if ordinal not in present), None)


def _surplus(workload: Manifest, pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return those of `pods` whose ordinals the StatefulSet `workload` does not want.

    Return [] for workloads of other kinds. For some time, such as during a rollout, these can have
    more pods than they want.
    """
    if workload.kind is not STATEFUL_SET:
        return []
    wanted = ordinals_of(decode_as(StatefulSet, workload.value))
    ordinals = ((pod, ordinal_of(workload.ref.name, pod.pod.metadata.name)) for pod in pods)
    return [pod for pod, ordinal in ordinals if ordinal is not None and ordinal not in wanted]


def _without(pods: Iterable[PodInfo], others: Iterable[PodInfo]) -> list[PodInfo]:
    """Return `pods` without `others`."""
    keys = {pod.key for pod in others}
    return [pod for pod in pods if pod.key not in keys]


def _surplus_words(workload: Manifest, surplus: Sequence[PodInfo], *, waits: bool) -> Iterator[str]:
    """Yield sentences about the pods in `surplus`, which the StatefulSet `workload` does not want.

    `waits` is whether a pod that the StatefulSet wants is missing or not ready. While a StatefulSet
    is being deleted, its controller deletes no pods.

    upstream: pkg/controller/statefulset/stateful_set_control.go: updateStatefulSet
    """
    names = listed([pod.key for pod in surplus])
    them = "it" if len(surplus) == 1 else "them"
    yield f"It has {counted(len(surplus), 'pod')} that it does not want: {names}."
    if workload.metadata.deletion_timestamp:
        return
    when = ""
    if waits and is_ordered(decode_as(StatefulSet, workload.value)):
        when = " only when all pods that it wants are ready (podManagementPolicy)"
    yield f"Its controller deletes {them}{when}."


def _ended_pods(model: ClusterModel) -> list[PodInfo]:
    """Return the finished pods that foreign finalizers keep, which `model.pods()` leaves out."""
    pods = (one for one in model.objects if isinstance(one, Pod) and is_terminal(one))
    return [model.pod_info(pod) for pod in pods if is_kept_after_end(pod, None, model.now)]


def _kept(leaving: Iterable[PodInfo], model: ClusterModel) -> Iterator[Pod]:
    """Yield the terminating pods in `leaving` that only foreign finalizers keep."""
    for one in leaving:
        info = model.find_node(model.cluster.node_of(one))
        if is_kept_after_end(one.pod, None if info is None else info.node, model.now):
            yield one.pod


def _leaving(model: ClusterModel, workload: Manifest, every: Sequence[PodInfo]) -> Iterator[str]:
    """Yield sentences about the terminating pods among `every`, the pods of `workload`."""
    leaving = [pod for pod in every if is_terminating(pod.pod)]
    if not leaving:
        return
    count = len(leaving)
    its, are = ("pod", "is") if count == 1 else ("pods", "are")
    preempted = sum(is_preempted(pod) for pod in leaving)
    of_them = f"{preempted:,} of them " if preempted < count else ""
    by = f", {of_them}preempted by the scheduler" if preempted else ""
    yield f"{count:,} more {its} of the workload {are} terminating{by}."
    held = ""
    if workload.kind is STATEFUL_SET:
        held = " A StatefulSet creates no pod of the same name before that."
    if kept := list(_kept(leaving, model)):
        names = listed(sorted({name for pod in kept for name in foreign_finalizers(pod)}))
        it = "it" if count == 1 else f"{len(kept):,} of them"
        yield f"Finalizers keep {it} until another program removes them: {names}.{held}"
    nodes = (model.find_node(model.cluster.node_of(pod)) for pod in leaving)
    silent = sum(node is not None and ready_status(node.node) == UNKNOWN for node in nodes)
    if silent:
        until = "the kubelet answers, or the node is deleted or tainted"
        if silent > 1:
            until = "the kubelets answer, or the nodes are deleted or tainted"
        of_them = f"{silent:,} of them {'is' if silent == 1 else 'are'}"
        of_them = "It is" if count == 1 else of_them
        where = "a node" if silent == 1 else "nodes"
        yield (
            f"{of_them} on {where} whose kubelet does not answer, and will stay until {until} "
            f"{OUT_OF_SERVICE}.{held}"
        )


def _verdict(ref: WorkloadRef, wanted: int, ready: int, old: int, lacking: str) -> str:
    """Return a sentence about the pods of `ref`.

    `old` is the number of pods that an unfinished rollout has yet to replace. `lacking` is the
    result of `_lacking`.
    """
    pods_are = counted_of(ready, wanted, f"wanted pod of {ref}", plural=f"wanted pods of {ref}")
    if ready >= wanted and (old or not lacking):
        all_pods = "The wanted pod" if wanted == 1 else f"All {wanted:,} wanted pods"
        pods_are = f"{all_pods} of {ref} {'is' if wanted == 1 else 'are'}"
    if old:
        link = "but" if ready >= wanted else "and"
        rest = ", ".join(filter(None, (f"{old:,} with an old template", lacking)))
        return f"{pods_are} ready, {link} its rollout is not finished: {rest}."
    return f"{pods_are} ready: {lacking}." if lacking else f"{pods_are} ready."


def _lacking(wanted: int, ready: int, pods: int, pending: int, blocked: int) -> str:
    """Return why fewer pods are ready than `wanted`, as numbers of pods, such as `1 pending`.

    `pods` is the number of all pods, of which `pending` have no node. `blocked` terminating pods
    have names that new pods need.
    """
    missing = wanted - pods
    blocked = max(0, min(blocked, missing))
    missing -= blocked
    counts = {
        "pending": pending,
        "not created before the end of the old pod": blocked,
        "not created": missing,
        "not ready": pods - pending - ready,
    }
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count > 0)


def _unmet(model: ClusterModel, pending: Iterable[PodInfo], inventory: Inventory) -> Iterator[str]:
    """Yield sentences about the first of the `pending` pods that fits no node.

    The first sentences name the required labels that no node has, or the taints that the pod does
    not tolerate (`unmet_requirements`). The next sentences name probable typing errors
    (`correction_sentences`) and the nodes that can use the pod's volumes (`volume_places`).
    """
    for pod in pending:
        if model.kept_out(pod) is not None:
            continue
        built = model.profile_of(pod)
        if not find_nodes_that_fit(built.plans, pod).count():
            yield from unmet_requirements(built, pod)
            nodes = (one.node for one in model.table.nodes())
            selector = model.runtime_class_selector(pod.pod)
            yield from correction_sentences(find_correction(pod.pod, nodes, selector))
            yield from volume_places(pod.pod, inventory)
            return


def _devices(model: ClusterModel, pending: Iterable[PodInfo]) -> Iterator[str]:
    """Yield sentences about the devices that a pod lacks.

    The pod is the first of `pending` that may need devices and fits no node.
    """
    for pod in pending:
        if not may_need_devices(pod, model.cluster) or model.kept_out(pod) is not None:
            continue
        diagnosis = find_nodes_that_fit(model.profile_of(pod).plans, pod).diagnosis()
        if sum(nodes for _, nodes in diagnosis.counts()) < model.table.count:
            continue
        lacking = {
            node.name
            for node in model.table.nodes()
            if NOT_ENOUGH in diagnosis.status_of(node.row).reasons
        }
        if lacking:
            yield from device_shortages(pod, model.cluster, lacking)
            return


def _findings(
    snapshot: Snapshot,
    ref: WorkloadRef,
    pods: Sequence[PodInfo],
    one_more: _OneMore,
) -> Iterator[str]:
    decision, message = one_more.placement, one_more.message
    if decision is not None and one_more.victims:
        victims = counted(len(one_more.victims), "pod")
        names = listed([victim.key for victim in one_more.victims])
        against = f", against pdb/{listed(one_more.breached)}" if one_more.breached else ""
        yield (
            f"{one_more.subject} would preempt {victims} of lower priority and go to "
            f"{decision.node.name}: {names}{against}. Without preemption, it would have no node: "
            f"{message}"
        )
    elif decision is not None:
        among = ""
        if decision.equals > 1:
            among = f", a random choice among {decision.equals:,} equal nodes"
        yield f"{one_more.subject} would go to {decision.node.name}{among}."
    elif message:
        outcome = "not be created" if one_more.is_refused else "have no node"
        yield f"{one_more.subject} would {outcome}: {message}"
    if one_more.revision:
        yield one_more.revision
    yield from one_more.volumes
    revisions = Counter(revision_of(pod.pod) for pod in pods)
    if len(revisions) > 1:
        parts = [f"{count:,} of {revision}" for revision, count in revisions.most_common()]
        yield f"Its pods are of {len(revisions)} revisions: {listed(parts)}."
    took = startup_times(snapshot.manifests).by_workload.get(ref)
    if took is not None and to_seconds(took) > 1:
        yield f"Its pods took {for_readers(took)} from being scheduled until they were ready."
    priorities = sorted({pod.priority for pod in pods})
    if priorities and priorities != [0]:
        yield f"Its pods have priority {', '.join(f'{one:,}' for one in priorities)}."


def _batch_scheduler(model: ClusterModel, pods: Iterable[PodInfo]) -> Iterator[str]:
    """Yield a sentence if a batch scheduler places `pods`, rather than kube-scheduler."""
    found = next((pod for pod in pods if model.is_batch(pod)), None)
    if found is not None:
        yield (
            f"{found.pod.spec.scheduler_name} schedules its pods, with their groups; here, one "
            f"more pod follows kube-scheduler's rules. Explain pod/{found.key} for the batch "
            "scheduler's rules."
        )


def _job_rows(
    model: ClusterModel, jobs: Sequence[Manifest], pods: Iterable[PodInfo]
) -> list[dict[str, object]]:
    """Return a row for each of `jobs`; the Jobs that lack the most ready pods come first."""
    rows = []
    for job, own in _pods_by_job(jobs, pods):
        ready, wanted = sum(is_up(model, pod) for pod in own), wanted_by(job.value)
        pending = sum(not model.cluster.node_of(pod) for pod in own)
        row = {"job": job.ref.key, "wanted": wanted, "ready": ready, "pending": pending}
        rows.append((ready - wanted, job.ref.key, row))
    return [row for _, _, row in sorted(rows, key=lambda one: one[:2])]


def _pods_by_job(
    jobs: Sequence[Manifest], pods: Iterable[PodInfo]
) -> Iterator[tuple[Manifest, list[PodInfo]]]:
    """Yield (job, the pods in `pods` that it controls) for each of `jobs`."""
    by_name: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in pods:
        if (found := controller_of(pod.pod.metadata)) is not None:
            by_name[found.name].append(pod)
    for job in jobs:
        yield job, [pod for pod in by_name[job.ref.name] if _is_controlled_by(pod, job)]


def _is_controlled_by(pod: PodInfo, owner: Manifest) -> bool:
    found = controller_of(pod.pod.metadata)
    return (
        found is not None
        and pod.namespace == owner.ref.namespace
        and owner.is_named_by(found.kind, found.api_version, found.name)
    )


def _jobs_without_pods(
    model: ClusterModel,
    inventory: Inventory,
    jobs: Sequence[Manifest],
    pods: Iterable[PodInfo],
) -> Iterator[str]:
    """Yield a sentence about the pods that `jobs` lack; it names the reason of one of the Jobs.

    `pods` may contain pods that were created after the statuses of the Jobs were written.
    """
    lacking = [job for job, own in _pods_by_job(jobs, pods) if len(own) < wanted_by(job.value)]
    if not lacking:
        return
    names = {str(WorkloadRef(JOB.kind, one.ref.namespace, one.ref.name)) for one in lacking}
    # Only StatefulSets wait for the end of pods, so no held pods are needed.
    rows = [row for row in uncreated_rows(model, inventory, ()) if row["workload"] in names]
    if rows:
        missing = counted(sum(row["pods"] for row in rows), "pod")
        lack = counted(len(rows), "of its Jobs lacks", "of its Jobs lack")
        yield f"{lack} {missing}: {rows[0]['why']} ({rows[0]['workload']})."


def _old_pods(workload: Manifest, pods: Sequence[PodInfo]) -> Iterator[str]:
    """Yield a sentence if a StatefulSet keeps pods of an old revision until they are deleted.

    If a drain evicts one of these pods, the pod that replaces it has the new template.

    upstream: pkg/controller/statefulset/stateful_set_control.go: updateStatefulSet
    """
    if workload.kind is not STATEFUL_SET:
        return
    current = text(workload.value, "status", "updateRevision")
    is_on_delete = text(workload.value, "spec", "updateStrategy", "type") == "OnDelete"
    old = [pod for pod in pods if revision_of(pod.pod) not in ("", current)]
    if is_on_delete and current and old:
        have, they = ("has", "it is") if len(old) == 1 else ("have", "they are")
        yield (
            f"{counted(len(old), 'pod')} {have} an old template until {they} deleted, for example "
            "by a drain (updateStrategy OnDelete)."
        )


class _OneMore(Struct, frozen=True):
    """The result of a trial in which one more pod of a workload is scheduled."""

    placement: Placement | None = None
    # Says why the pod is not placed, or why it is placed only by preemption of `victims`.
    message: str = ""
    # Whether admission refuses the pod, for example because of a ResourceQuota.
    is_refused: bool = False
    refusals: Sequence[Refusal] = ()  # the reasons of the nodes that do not admit the pod
    victims: Sequence[PodInfo] = ()
    # The keys of the budgets that do not allow the disruption of all `victims` that they cover.
    breached: Sequence[str] = ()
    missing: str = ""  # the key of the pod if it is a missing pod of a StatefulSet, otherwise ""
    # Sentences about the nodes on which the volumes of `missing` can be used.
    volumes: Sequence[str] = ()
    # A sentence about the template of the pod if this is not the newest template of its
    # StatefulSet.
    revision: str = ""

    @property
    def subject(self) -> str:
        """The pod of the trial, as the subject of a sentence."""
        return f"Its next pod, {self.missing}," if self.missing else "One more pod"

    @property
    def refusals_title(self) -> str:
        """The title of a table of `refusals`."""
        return f"nodes on which {self.missing or 'one more pod'} does not fit"


def _one_more(
    planner: DrainPlanner, snapshot: Snapshot, workload: Manifest, missing: int | None
) -> _OneMore:
    """Schedule one more pod as a trial, after the waiting pods.

    `missing` is the result of `_next_missing`: the ordinal of the pod, or None for the pod of a
    scale-up. The pods of a DaemonSet are not tried, because a DaemonSet has one pod on each node. A
    Job that has ended gets no more pods.
    """
    model = planner.model
    if workload.kind is JOB and is_finished(decode_as(Job, workload.value)):
        return _OneMore()
    try:
        new = new_pods_of("explain", workload, snapshot.inventory())
    except InputError:
        return _OneMore()
    if missing is None:
        with model.hypothesis():
            return replace(_tried(planner, new), revision=_revision_words(new))
    new = replace(new, first=missing)
    key = f"{new.namespace}/{new.name_of(0)}"
    with model.hypothesis():
        # The controller creates the pod once an old pod of the same name is deleted.
        if (old := model.cluster.pods.get(key)) is not None:
            model.remove(old)
        model.free_pod_name(new.namespace, new.name_of(0))  # also that of a pod that has ended
        found = _tried(planner, new)
        places = volume_places(decode_as(Pod, new.pod(0)), snapshot.inventory())
    words = _revision_words(new)
    return replace(found, missing=key, volumes=tuple(places), revision=words)


def _revision_words(new: NewPods) -> str:
    """Return a sentence about the older template that the first pod of `new` gets, or ""."""
    kept = new.kept_by(0)
    if kept is None:
        return ""
    words = f"{new.namespace}/{new.name_of(0)} gets the template of its revision {kept.name}"
    if kept.template is not None:
        return f"{words}, because its number is below the partition (updateStrategy)."
    return (
        f"{words} (partition of the updateStrategy). The dump lacks this ControllerRevision, so "
        "the answer about this pod assumes the newest template."
    )


def _tried(planner: DrainPlanner, new: NewPods) -> _OneMore:
    """Create the first pod of `new` and schedule it, after the waiting pods."""
    model = planner.model
    place_waiting_pods(model)
    model.count_quotas(new.namespace)
    try:
        pod = model.pod_info(create_pod(model, new, 0).pod)
    except ApiError as refused:
        return _OneMore(message=without_name(refused.message), is_refused=True)
    if (why := model.kept_out(pod)) is not None:
        return _OneMore(message=why)
    refusals = refusals_of(model, pod)
    decision = model.schedule(pod)
    if isinstance(decision, Placement):
        return _OneMore(decision, refusals=refusals)
    victims: list[PodInfo] = []
    with model.preempting():
        after = place(model, pod, victims)
    if isinstance(after, Placement):
        breached = planner.budgets.breached(victim.pod for victim in victims)
        keys = [limit.key for limit, _ in breached]
        return _OneMore(after, decision.message, refusals=refusals, victims=victims, breached=keys)
    return _OneMore(message=after.message, refusals=refusals)


def _zone_rows(planner: DrainPlanner, placed: Sequence[PodInfo]) -> list[dict[str, object]]:
    by_zone: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in placed:
        node = planner.model.find_node(planner.model.cluster.node_of(pod))
        by_zone[_NO_NODE if node is None else node.labels.get(ZONE, "")].append(pod)
    return [
        {
            "zone": zone or "no zone",
            "nodes": len({planner.model.cluster.node_of(pod) for pod in found}),
            "pods": len(found),
            "ready": sum(is_up(planner.model, pod) for pod in found),
        }
        for zone, found in sorted(by_zone.items())
    ]
