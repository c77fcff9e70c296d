"""The baseline of a plan: the snapshot at rest, before any change.

A file of manifests usually contains no pods, and a dump may have been taken during a rollout, or
while a workload was scaled down. A plan must not use the resources that the missing pods need. A
plan must not move a pod that its controller is about to delete. If a budget refuses evictions only
during a rollout, the plan must not report this budget. So the planners first let the simulated
controllers act, and start when the cluster is at rest. If there is nothing to wait for, the
baseline is the snapshot itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Job,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT, JOB, NODE, POD
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.configuration.autoscaling.autoscaler import NO_AUTOSCALING, AutoscaleOptions
from fairlead.whatif.configuration.batch.options import DEFAULT_BATCH_OPTIONS
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.configuration.other_scheduler import other_schedulers
from fairlead.whatif.configuration.release import ReleaseChoice, Releases, read_release
from fairlead.whatif.input.document import parse_listings
from fairlead.whatif.outcome.run_outcome import ObjectError, Preempted
from fairlead.whatif.outcome.workload import (
    WorkloadRef,
    revision_of,
    workload_of,
    workload_of_replica_set,
)
from fairlead.whatif.planner.cluster_model import ClusterModel, ending_namespaces
from fairlead.whatif.planner.dump_activity import (
    DumpActivity,
    activity_of,
    due_evictions,
    rollouts_in_progress,
)
from fairlead.whatif.planner.plan_note import plan_notes
from fairlead.whatif.planner.waiting_pods import preemption_words
from fairlead.whatif.run.experiment import Experiment, with_batch
from fairlead.whatif.run.experiment_run import FinishedRun, run_experiment
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.run.simulated_kubelet import simulated_kubelets
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.node_lifecycle.starting_node import nodes_of
from fairlead.whatif.snapshot.snapshot import Snapshot, encode_snapshot
from fairlead.whatif.snapshot.unsimulated_controller import LostPods


class Baseline(Struct, frozen=True):
    """The cluster in which a plan begins: a snapshot and its model.

    `created` is the note about created and deleted pods and about the activity that the plan waits
    for, or "" if there is none. `notes` are all notes for the answer. `preempted` are the pods that
    were preempted while the planner let the controllers act.
    """

    snapshot: Snapshot
    model: ClusterModel
    notes: tuple[str, ...]
    created: str = ""
    preempted: tuple[Preempted, ...] = ()


def read_baseline(  # noqa: PLR0913 - a caller that has the model need not make it twice
    snapshot: Snapshot, scheduler: SchedulerConfig, choice: ReleaseChoice, progress: Progress, *,
    seed: int = 0, autoscale: AutoscaleOptions = NO_AUTOSCALING, model: ClusterModel | None = None,
    places_gangs: bool = False, lost: LostPods | None = None,
    about: Callable[[PodInfo], bool] = lambda _: True,
) -> Baseline:  # fmt: skip
    """Return the baseline for plans about `snapshot`. Raises InputError.

    The snapshot is simulated if, in the snapshot, workloads have too few or too many pods, rollouts
    are in progress, or pods are starting (`dump_activity`). The baseline is the end of this
    simulation if pods were starting, or if the simulation creates missing pods, deletes surplus
    pods or ends a rollout. In all other cases, the baseline is the unchanged snapshot.

    `autoscale`, `places_gangs`, `lost` and `about` are used only for the notes (`plan_notes`).
    `model` is the ClusterModel of `snapshot` with `scheduler` and `seed`; if it is None, it is made
    here.
    """
    if model is None:
        model = ClusterModel(snapshot, scheduler, seed=seed)
    notes = plan_notes(
        snapshot, model, choice, autoscale, places_gangs=places_gangs, lost=lost, about=about
    )
    before, activity = _pods_by_workload(model), activity_of(model)
    lacking, surplus = _lacking(model, before), _with_surplus(model, before)
    if not (lacking or surplus or activity):
        return Baseline(snapshot, model, (*notes, *_due_words(due_evictions(model))))
    experiment = baseline_experiment(snapshot, scheduler, choice, seed)
    finished = _run_to_rest(experiment, progress)
    complete = replace(
        snapshot,
        manifests=tuple(
            _with_failure(one, finished.outcome.errors) if one.kind is JOB else one
            for one in _manifests_after(snapshot, finished.store.storage)
        ),
        taken_at=finished.outcome.ended_at,
    )
    completed = ClusterModel(complete, scheduler, seed=seed)
    after = _pods_by_workload(completed)
    created = {ref: after[ref] - before[ref] for ref in lacking if after[ref] > before[ref]}
    deleted = {ref: before[ref] - after[ref] for ref in surplus if after[ref] < before[ref]}
    still_rolling = set(rollouts_in_progress(completed))
    endless = [ref for ref in activity.rollouts if ref in still_rolling]
    ended = [ref for ref in activity.rollouts if ref not in still_rolling]
    words = (
        *([_created_words(created)] if created else []),
        *([_deleted_words(deleted)] if deleted else []),
        *([_ended_words(ended)] if ended else []),
        *([_started_words(activity.starting)] if activity.starting else []),
    )
    notes += (*words, *([_endless_words(endless)] if endless else []))
    completed.guessed_schedulers |= _guessed_schedulers(model, completed)
    if words and (placed := _placed(model, completed)):
        notes += (f"{counted(placed, 'pending pod')} got a node first.",)
    preempted = finished.preempted
    if words:
        notes += _preempted_words(finished)
    if not words:  # for example, because a quota allows no further pods
        complete, completed, preempted = snapshot, model, ()
    notes += _due_words(due_evictions(completed))
    return Baseline(complete, completed, notes, " ".join(words), preempted)


def _preempted_words(finished: FinishedRun) -> tuple[str, ...]:
    """Return the note about the pods that were preempted in `finished`; () if there are none."""
    preempted = {one.pod.key for one in finished.preempted}
    ends = finished.outcome.pods
    lost = sum(key not in ends or not ends[key].is_placed for key in preempted)
    return (preemption_words(len(preempted), lost),) if preempted else ()


def _placed(model: ClusterModel, completed: ClusterModel) -> int:
    """Return the number of the waiting pods of `model` that have a node in `completed`."""
    waiting = {pod.id for pod in model.waiting_pods()}
    return sum(pod.id in waiting for info in completed.table.nodes() for pod in info.pods.values())


def _guessed_schedulers(model: ClusterModel, completed: ClusterModel) -> set[str]:
    """Return the schedulerNames of pods that have a node only in `completed`.

    Only schedulerNames that have no profile are returned.
    """
    bound = {pod.id for info in model.table.nodes() for pod in info.pods.values()}
    return {
        pod.pod.spec.scheduler_name
        for info in completed.table.nodes()
        for pod in info.pods.values()
        if pod.id not in bound and not completed.has_profile(pod) and not completed.is_batch(pod)
    }


def activity_note(activity: DumpActivity) -> tuple[str, ...]:
    """Return a note that the `activity` is in progress; () if there is none.

    The note is for an answer that does not wait for the end of the activity.
    """
    found = [f"the rollout of {ref}" for ref in activity.rollouts]
    if activity.starting:
        found.append(f"the start of {counted(len(activity.starting), 'pod')}")
    if not found:
        return ()
    what = f"This answer is about the time of the dump; more may be possible after {listed(found)}"
    return (f"{what}. fairlead drain-plan waits for this.",)


def _run_to_rest(experiment: Experiment, progress: Progress) -> FinishedRun:
    """Run `experiment` until the cluster is at rest.

    The first run ends when nothing changes any more, or at its time limit. The first run can reach
    this limit although the cluster came to rest earlier, for example because a pod never stops
    terminating. A second run then ends at the time at which the cluster came to rest. There is no
    second run if the cluster was at rest from the start.
    """
    until_rest = replace(experiment, steps_begin=None)
    finished = run_experiment(until_rest, "waiting until the cluster is at rest", progress)
    after = finished.outcome.rest.after
    if finished.outcome.settled or not after:
        return finished
    return run_experiment(replace(experiment, duration=after), "once more", progress)


def baseline_experiment(
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    choice: ReleaseChoice,
    seed: int,
    startup: DurationNs | None = None,
    more_stages: Iterable[Manifest] = (),
) -> Experiment:
    """Return the simulation of `snapshot` without a change. Raises InputError.

    `startup` and `more_stages` are arguments of `simulated_kubelets`.
    """
    release = read_release(choice)
    kubelets = simulated_kubelets(
        snapshot.manifests,
        renews_leases=release.node_leases,
        taken_at=snapshot.taken_at,
        startup=startup,
        more_stages=more_stages,
        seed=seed,
    )
    experiment = Experiment(
        title=snapshot.source,
        source=snapshot.source,
        initial=snapshot.manifests,
        start=snapshot.taken_at,
        seed=seed,
        quiet=kubelets.quiet,
        kubelet=kubelets.config,
        scheduler=scheduler,
        node_lifecycle=controller_manager(release, {}),
        releases=Releases(release, release),
        other_schedulers=other_schedulers(scheduler, snapshot.manifests),
        notes=(*([words] if (words := kubelets.times.words) else []), *kubelets.notes),
    )
    return with_batch(experiment, DEFAULT_BATCH_OPTIONS, ())


def _manifests_after(snapshot: Snapshot, storage: Storage) -> tuple[Manifest, ...]:
    """Return the manifests of the objects in `storage`, into which `snapshot` was loaded.

    An object that was not changed keeps its manifest from `snapshot`, which saves parsing it again.
    A node that was being deleted stays, as the notes of a plan say (`leaving_note`).
    """
    assert isinstance(storage, DeferredStorage)
    known = {id(manifest.content): manifest for manifest in snapshot.manifests}
    pods = {(one.ref.namespace, one.ref.name): one for one in snapshot.manifests if one.kind is POD}
    kept, changed = [], []
    leaving = {
        one.ref.name: one
        for one in nodes_of(snapshot.manifests)
        if one.node.metadata.deletion_timestamp
    }
    for kind in storage.kinds():
        for key, found in storage.unread(kind):
            if kind is NODE:
                leaving.pop(key[1], None)
            manifest = pods[key] if found is None else known.get(id(found))  # None: a pod
            if manifest is not None:
                kept.append(manifest)
            elif found is not None:
                changed.append(found if isinstance(found, dict) else found.value)
    data = encode_snapshot(changed, snapshot.taken_at)
    return (*kept, *leaving.values(), *manifests(parse_listings(snapshot.source, data)))


def _with_failure(job: Manifest, errors: Iterable[ObjectError]) -> Manifest:
    """Return `job` with the condition Failed if it failed in the simulation.

    Without the condition, which simulations do not write, the Job would create its pods again.
    """
    subject = f"{JOB.kind} {job.ref.key}"
    if not any(one.is_failed_job and one.subject == subject for one in errors):
        return job
    status = job.value.get("status") or {}
    conditions = [*(status.get("conditions") or ()), {"type": "Failed", "status": "True"}]
    return replace(job, content={**job.value, "status": {**status, "conditions": conditions}})


def _pods_by_workload(model: ClusterModel) -> Counter[WorkloadRef]:
    """Return the number of pods of each workload, without finished and terminating pods."""
    return Counter(workload_of(pod.pod) for pod in model.pods() if not pod.terminating)


def _lacking(model: ClusterModel, existing: Counter[WorkloadRef]) -> list[WorkloadRef]:
    """Return the workloads that want more pods (`_wanted`) than the number in `existing`.

    For a DaemonSet, the wanted number comes from its status, because only the controller knows this
    number. If the status lacks the number, the DaemonSet is included only if it has no pods. A Job
    that has already started is left out, because it may wait before a retry.
    """
    wanted = _wanted(model)
    for found in model.objects:
        match found:
            case DaemonSet():
                wanted[_ref(found)] = found.status.get("desiredNumberScheduled") or 1
            case Job() if found.status.start_time:
                wanted.pop(_ref(found), None)
            case _:
                pass
    return sorted(ref for ref, count in wanted.items() if existing[ref] < count)


def _with_surplus(model: ClusterModel, existing: Counter[WorkloadRef]) -> list[WorkloadRef]:
    """Return the workloads that have more `existing` pods than they want (`_wanted`).

    A Deployment with pods of several revisions is left out, because a rollout may add pods.
    """
    revisions: dict[WorkloadRef, set[str]] = defaultdict(set)
    for pod in model.pods():
        if not pod.terminating:
            revisions[workload_of(pod.pod)].add(revision_of(pod.pod))
    return sorted(
        ref
        for ref, count in _wanted(model).items()
        if existing[ref] > count and not (ref.kind == DEPLOYMENT.kind and len(revisions[ref]) > 1)
    )


def _wanted(model: ClusterModel) -> dict[WorkloadRef, int]:
    """Return the number of pods that each workload wants.

    The number is `spec.replicas`, or `spec.parallelism` of a Job that is not suspended. DaemonSets
    and workloads in namespaces that are being deleted are left out. A ReplicaSet creates its pods
    even if the model lacks its Deployment or Rollout. The pods then count for that Deployment or
    Rollout.
    """
    wanted = dict[WorkloadRef, int]()
    of_replica_sets: Counter[WorkloadRef] = Counter()
    ending = ending_namespaces(model.objects)
    for found in model.objects:
        if found.metadata.namespace in ending:
            continue
        match found:
            case ReplicaSet():
                of_replica_sets[workload_of_replica_set(found)] += found.spec.replicas
            case Deployment() | StatefulSet() | ReplicationController():
                wanted[_ref(found)] = found.spec.replicas
            case Job():
                wanted[_ref(found)] = 0 if found.spec.suspend else found.spec.parallelism
            case _:
                pass
    # A Deployment in the model decides how many pods its ReplicaSets have.
    return {**of_replica_sets, **wanted}


def _ref(workload: ApiObject) -> WorkloadRef:
    meta = workload.metadata
    return WorkloadRef(type(workload).__name__, meta.namespace, meta.name)


def _created_words(created: Mapping[WorkloadRef, int]) -> str:
    """Return the note about the pods that were `created` for each workload."""
    number = sum(created.values())
    named = listed([f"{count:,} of {ref}" for ref, count in created.items()], 5)
    verb = "is" if number == 1 else "are"
    return f"{counted(number, 'pod')} that workloads lack {verb} created first: {named}."


def _deleted_words(deleted: Mapping[WorkloadRef, int]) -> str:
    """Return the note about the surplus pods that were `deleted` of each workload."""
    number = sum(deleted.values())
    named = listed([f"{count:,} of {ref}" for ref, count in deleted.items()], 5)
    are = "is" if number == 1 else "are"
    return f"{counted(number, 'pod')} that workloads no longer want {are} deleted first: {named}."


def _ended_words(rollouts: Sequence[WorkloadRef]) -> str:
    """Return the note about `rollouts` that end before the plan begins."""
    names = listed([str(ref) for ref in rollouts])
    was, after = ("was", "its rollout") if len(rollouts) == 1 else ("were", "their rollouts")
    return (
        f"{names} {was} being rolled out when the dump was taken; this answer begins after {after}."
    )


def _endless_words(rollouts: Sequence[WorkloadRef]) -> str:
    """Return the note about `rollouts` that do not end."""
    names = listed([str(ref) for ref in rollouts])
    return f"A rollout of {names} was in progress when the dump was taken, and does not finish."


def _due_words(pods: Sequence[Pod]) -> tuple[str, ...]:
    """Return the note about `pods`, which are evicted later from failed nodes.

    Return () if `pods` is empty.
    """
    if not pods:
        return ()
    nodes = listed(sorted({pod.spec.node_name for pod in pods}))
    are, they = ("is", "it has") if len(pods) == 1 else ("are", "they have")
    what = f"{counted(len(pods), 'pod')} of nodes out of service ({nodes}) {are} evicted later"
    return (f"{what}; fairlead whatif waits until {they} moved, but this answer does not.",)


def _started_words(starting: Sequence[Pod]) -> str:
    """Return the note about `starting`: pods that become ready before the plan begins."""
    was = "was" if len(starting) == 1 else "were"
    return (
        f"{counted(len(starting), 'pod')} {was} starting when the dump was taken "
        f"({listed([pod.key for pod in starting])}); this answer begins afterwards."
    )
