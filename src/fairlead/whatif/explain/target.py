"""The object to explain: an object of the cluster, or a pod that does not exist yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import mapping
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import controller_of, is_terminal, is_terminating
from fairlead.api.text.name_list import listed
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    SERVICE,
    STATEFUL_SET,
    Kind,
    find_kind,
)
from fairlead.engine.batch.info.group import group_name
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.engine.workloads.stateful_set.rule import PARALLEL
from fairlead.whatif.change.edit.scale import (
    control_hint,
    owned_hint,
    pod_controller_of,
    scalable_part,
)
from fairlead.whatif.change.owned_object import may_exist, owned_by, without_repeated_services
from fairlead.whatif.change.pod_priority import priorities_in
from fairlead.whatif.change.volcano_job import GROUP as VOLCANO_GROUP
from fairlead.whatif.configuration.batch.options import (
    DEFAULT_BATCH_OPTIONS,
    SINGLE_PODS,
    BatchOptions,
)
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.explain.budget import explain_budget
from fairlead.whatif.explain.every_node import explain_nodes
from fairlead.whatif.explain.every_pod import explain_pods
from fairlead.whatif.explain.group import (
    GROUP_KINDS,
    explain_group_of,
    group_explanation_json,
    is_about_group,
)
from fairlead.whatif.explain.group_cause import group_causes
from fairlead.whatif.explain.group_text import group_sentences
from fairlead.whatif.explain.kueue_queue import KUEUE_KINDS, explain_kueue
from fairlead.whatif.explain.new_claim import with_new_claims
from fairlead.whatif.explain.node import explain_node
from fairlead.whatif.explain.pod import SOURCE
from fairlead.whatif.explain.pod_autoscaler import explain_autoscaler
from fairlead.whatif.explain.priority_class import (
    PriorityClasses,
    explain_priority_class,
    explain_priority_classes,
)
from fairlead.whatif.explain.queue import QUEUE_KINDS, explain_queues, is_about_queue
from fairlead.whatif.explain.resource_quota import explain_quota, explain_quotas
from fairlead.whatif.explain.workload import explain_workload
from fairlead.whatif.input.document import read
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.planner.baseline import activity_note, read_baseline
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.dump_activity import activity_of
from fairlead.whatif.planner.new_pod import (
    NewPods,
    custom_hint,
    new_pods_of,
    new_pods_of_file,
)
from fairlead.whatif.planner.node_drain.drain_planner import DrainPlanner
from fairlead.whatif.planner.plan_note import plan_notes, rules_notes
from fairlead.whatif.result.tabular_answer import TabularAnswer
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.kueue import admission_sentence
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import DEFAULT_NAMESPACE, manifests_to_apply
from fairlead.whatif.snapshot.served_kind import is_custom
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.unsimulated_controller import (
    NO_LOST_PODS,
    LostPods,
    budgets_of,
    lost_with,
)
from fairlead.whatif.snapshot.validation.invalid_object import refuse_invalid_object
from fairlead.whatif.snapshot.validation.namespace import (
    refuse_absent_namespaces,
    refuse_other_namespaces,
)
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

_GROUPS_MAX: Final = 3  # groups of a workload; each needs the simulation of a session
_NAMED_MAX: Final = 3  # workloads that an error message names
_EXPLAINED: Final = (
    POD, *WORKLOADS, NODE, POD_DISRUPTION_BUDGET, HORIZONTAL_POD_AUTOSCALER, PRIORITY_CLASS,
    RESOURCE_QUOTA,
)  # fmt: skip


def target_in_namespace(target: str, namespace: str, snapshot: Snapshot) -> str:
    """Return `target` with `namespace`, the value of --namespace, in its name.

    A kind without a name is returned as it is. Raises InputError if `snapshot` has no object in the
    namespace, if the namespace has no effect on `target`, or if `target` names another namespace.
    """
    inventory = snapshot.inventory()
    if "/" in target or not namespace:
        return inventory.qualified(SOURCE, target, namespace)
    if (kind := _kind_of_all(target)) not in (POD, RESOURCE_QUOTA):
        raise InputError("--namespace", f"has no effect on {target}")
    known = {one.ref.name for one in inventory.of_kind(NAMESPACE)}
    if namespace not in known and not inventory.in_namespace(namespace):
        known |= {one.ref.namespace for one in inventory.of_kind(kind)}
        problem = f"there is no namespace {namespace}; {known_names(namespace, known)}"
        raise InputError("--namespace", problem)
    return target


def explain_object(
    snapshot: Snapshot,
    target: str,
    scheduler: SchedulerConfig,
    release: ReleaseChoice,
    batch: BatchOptions = DEFAULT_BATCH_OPTIONS,
    namespace: str = "",
) -> TabularAnswer | None:
    """Return the explanation of the workload, node, budget or other object `target`.

    A `target` without a name (`pc`, `quota`, `queues`, `pods` or `nodes`) means all objects of the
    kind. A custom resource is explained if it controls pods itself. If a custom resource controls a
    single workload, such as the ReplicaSet of an Argo Rollout, this workload is explained.
    `namespace` limits an explanation of all pods or quotas to a namespace. Return None for one pod
    or a PodGroup, which other functions explain. Raises InputError for an object that does not
    exist or cannot be explained.
    """
    if _kind_of(target) in GROUP_KINDS:
        return None
    inventory = snapshot.inventory()
    if (queues := _explain_queues(snapshot, target, scheduler, batch)) is not None:
        return queues
    if find_kind(target.partition("/")[0]) is PRIORITY_CLASS:
        return _explain_priority(snapshot, target, scheduler, release)
    if (kind := _kind_of_all(target)) is not None:
        return _explain_all(kind, snapshot, scheduler, release, batch, namespace)
    named = inventory.find(SOURCE, target, expected=(*_EXPLAINED, POD_GROUP))
    if named.kind is POD:
        return None
    found = _with_pods(named, inventory)
    jobs = _jobs_of(found, inventory)
    pods = list(inventory.pods_of(found, *jobs))
    if found.kind not in _EXPLAINED and not pods and not jobs:
        raise InputError(SOURCE, _why_unexplained(found, inventory))
    model = ClusterModel(snapshot, scheduler)
    if found.kind is RESOURCE_QUOTA:
        return explain_quota(model, found, snapshot)
    if found.kind is NODE:
        return _explain_node(found.node, model, snapshot, scheduler, release)
    answer = _explain_with_budgets(found, model, snapshot)
    if found.kind not in _EXPLAINED or found.kind in WORKLOADS:
        answer = _with_groups(answer, pods, snapshot, scheduler, batch)
    is_budget = found.kind is POD_DISRUPTION_BUDGET
    budgets = {found.ref.key} if is_budget else budgets_of(pods, snapshot.manifests)
    keys = {pod.key for pod in pods}
    notes = plan_notes(
        snapshot,
        model,
        release,
        lost=LostPods(budgets=frozenset(budgets)),
        about=lambda pod: pod.key in keys and _is_waiting(pod),
    )
    return replace(answer, notes=(*answer.notes, *rules_notes(model), *notes))


def _with_pods(named: Manifest, inventory: Inventory) -> Manifest:
    """Return the object `named`, or the workload through which it runs its pods.

    The result is `named` if it controls pods itself, or if `scalable_part` finds no workload.
    """
    has_pods = any(True for _ in inventory.pods_of(named))
    return named if has_pods else scalable_part(named, inventory) or named


def _jobs_of(found: Manifest, inventory: Inventory) -> list[Manifest]:
    return [one for one in inventory.of_kind(JOB) if one.is_controlled_by(found)]


def _can_be_explained(named: Manifest, inventory: Inventory) -> bool:
    """Return whether `explain_object` explains `named`, a workload or custom resource."""
    found = _with_pods(named, inventory)
    jobs = _jobs_of(found, inventory)
    has_pods = any(True for _ in inventory.pods_of(found))
    return found.kind in _EXPLAINED or bool(jobs) or has_pods


def _explain_queues(
    snapshot: Snapshot, target: str, scheduler: SchedulerConfig, batch: BatchOptions
) -> TabularAnswer | None:
    """Return the explanation of the queues that `target` means; None if it means no queue."""
    answer = explain_kueue(snapshot, target)
    if answer is None and is_about_queue(target, snapshot.inventory()):
        return explain_queues(snapshot, target, scheduler, batch)
    return answer


def _kind_of_all(target: str) -> Kind | None:
    """Return Pod, Node or ResourceQuota if `target` means all objects of this kind, else None."""
    kind = RESOURCE_QUOTA if target.lower() == "quotas" else find_kind(target)
    return kind if kind in (POD, NODE, RESOURCE_QUOTA) else None


def _explain_all(
    kind: Kind,
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    release: ReleaseChoice,
    batch: BatchOptions,
    namespace: str,
) -> TabularAnswer:
    """Return the explanation of all pods, nodes or ResourceQuotas.

    If `namespace` is set, the explanation is about the pods or quotas of this namespace.
    """
    model = ClusterModel(snapshot, scheduler)
    if kind is RESOURCE_QUOTA:
        return explain_quotas(model, snapshot, namespace)
    answer = (
        _explain_pods(model, snapshot, scheduler, batch, namespace)
        if kind is POD
        else explain_nodes(model, snapshot)
    )
    notes = plan_notes(
        snapshot,
        model,
        release,
        lost=NO_LOST_PODS,
        about=lambda pod: _is_waiting(pod) and namespace in ("", pod.pod.metadata.namespace),
    )
    return replace(answer, notes=(*answer.notes, *rules_notes(model), *notes))


def _is_waiting(pod: PodInfo) -> bool:
    """Return whether `pod` has no node.

    An explanation starts no pods. So notes about Kueue, and about schedulers that do not exist, do
    not concern pods with a node.
    """
    return not pod.pod.spec.node_name


def _is_no_pod(_: PodInfo) -> bool:
    """Return False for every pod.

    Explanations of nodes use this function in place of `_is_waiting`, because their pods all have a
    node.
    """
    return False


def _explain_pods(
    model: ClusterModel,
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    batch: BatchOptions,
    namespace: str,
) -> TabularAnswer:
    """Return the explanation of all pods, with the missing queues that groups of pods wait for."""
    waits = any(
        model.is_batch(pod) and not model.cluster.node_of(pod) and not is_terminating(pod.pod)
        for pod in model.pods()
    )
    if not waits or batch.source == SINGLE_PODS:
        return explain_pods(model, snapshot, namespace=namespace)
    causes = group_causes(snapshot, scheduler, batch)
    answer = explain_pods(model, snapshot, causes.by_pod, namespace)
    return replace(answer, findings=(*answer.findings, *causes.missing_queues))


def _explain_with_budgets(
    found: Manifest, model: ClusterModel, snapshot: Snapshot
) -> TabularAnswer:
    """Return the explanation of `found`: a workload, a budget, or a HorizontalPodAutoscaler."""
    planner = DrainPlanner(model, BudgetRoom(model.objects, model.now))
    if found.kind is POD_DISRUPTION_BUDGET:
        return explain_budget(planner, found.ref.key, snapshot)
    if found.kind is HORIZONTAL_POD_AUTOSCALER:
        return explain_autoscaler(model, snapshot, found)
    return explain_workload(planner, snapshot, found)


def _with_groups(
    answer: TabularAnswer,
    pods: Iterable[Pod],
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    batch: BatchOptions,
) -> TabularAnswer:
    """Return `answer`, which explains a workload, with the reasons why groups of its `pods` wait.

    Only the first groups with pending pods are explained (_GROUPS_MAX).
    """
    pending = [
        pod for pod in pods if not (pod.spec.node_name or is_terminal(pod) or is_terminating(pod))
    ]
    first = {group_name(pod) or _owner_name(pod): pod for pod in reversed(pending)}
    groups = [
        explain_group_of(snapshot, target, scheduler, batch)
        for pod in islice(reversed(first.values()), _GROUPS_MAX)
        for target in [f"pod/{pod.key}"]
        if is_about_group(target, snapshot, scheduler, batch)
    ]
    if not groups:
        return answer
    sentences = [text for one in groups for text in group_sentences(one.found)]
    notes = dict.fromkeys(note for one in groups for note in (*one.failures, *one.notes))
    return replace(
        answer,
        findings=(*sentences, *answer.findings),
        facts={**answer.facts, "groups": [group_explanation_json(one) for one in groups]},
        notes=(*answer.notes, *notes),
    )


def _owner_name(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return pod.metadata.name if owner is None else f"{owner.kind}/{owner.name}"


def group_of_owner(target: str, snapshot: Snapshot) -> str:
    """Return the PodGroup of `target` if `target` is a Volcano Job without pods, else `target`.

    The PodGroup is returned as `podgroup/NAMESPACE/NAME`. Volcano creates the pods of a Job only
    after it has admitted the PodGroup. If the Job has no PodGroup, `target` is returned, too.
    """
    inventory = snapshot.inventory()
    found = inventory.look_up(SOURCE, target)
    if found is None or not _is_volcano_job(found) or next(inventory.pods_of(found), None):
        return target
    kinds = (kind for kind in inventory.kinds if kind.kind == POD_GROUP.kind)
    groups = (one for kind in kinds for one in inventory.of_kind(kind))
    own = next((one for one in groups if one.is_controlled_by(found)), None)
    return target if own is None else f"podgroup/{own.ref.key}"


def _is_volcano_job(one: Manifest) -> bool:
    return (one.kind.group, one.kind.kind) == (VOLCANO_GROUP, JOB.kind)


def _explain_node(
    node: Node,
    model: ClusterModel,
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    release: ReleaseChoice,
) -> TabularAnswer:
    """Return the explanation of `node` of `snapshot`; `model` is the ClusterModel of `snapshot`.

    The answer is about the cluster at rest, the state in which plans start (`read_baseline`). If a
    rollout is in progress or pods are starting in `model`, or if the node is being deleted, the
    answer is about `model` instead.
    """
    name = node.metadata.name
    pods = model.node(name).pods.values()
    in_dump = frozenset(pod.key for pod in pods)
    lost = lost_with((one.pod for one in pods), snapshot.manifests)
    preempted = frozenset[str]()
    notes = activity_note(activity_of(model))
    if notes or node.metadata.deletion_timestamp:
        # In the baseline, the node may have other pods, or none.
        notes = (*plan_notes(snapshot, model, release, lost=lost, about=_is_no_pod), *notes)
    else:
        base = read_baseline(
            snapshot, scheduler, release, NoProgress(), model=model, lost=lost, about=_is_no_pod
        )
        model, notes = base.model, base.notes
        preempted = frozenset(one.pod.key for one in base.preempted if one.node == name)
    before = frozenset(pod.key for pod in model.node(name).pods.values())
    planner = DrainPlanner.at_rest(model)
    present = {pod.key for pod in model.node(name).pods.values()}
    left = (before | (preempted & in_dump)) - present
    answer = explain_node(planner, name, snapshot, in_dump, left)
    return replace(answer, notes=(*answer.notes, *rules_notes(model), *notes))


def _explain_priority(
    snapshot: Snapshot, target: str, scheduler: SchedulerConfig, release: ReleaseChoice
) -> TabularAnswer:
    """Return the explanation of a PriorityClass, or of all PriorityClasses.

    `target` is KIND/NAME, or KIND for all PriorityClasses.
    """
    model = ClusterModel(snapshot, scheduler)
    honors_never = scheduler.version.preemption.honors_never
    classes = PriorityClasses(model, snapshot, honors_never=honors_never)
    _, slash, name = target.partition("/")
    if not slash:
        answer = explain_priority_classes(classes)
    elif (found := classes.get(name)) is not None:
        answer = explain_priority_class(classes, found)
    else:
        expected = (*_EXPLAINED, POD_GROUP)
        missing = snapshot.inventory().find(SOURCE, target, expected=expected)
        raise missing.refuse("cannot be explained")
    notes = plan_notes(snapshot, model, release, lost=NO_LOST_PODS, about=_is_waiting)
    return replace(answer, notes=(*answer.notes, *rules_notes(model), *notes))


def _why_unexplained(found: Manifest, inventory: Inventory) -> str:
    """Return why `found`, which controls no pods itself, cannot be explained."""
    if not is_custom(found.kind.api_version):
        if found.kind is SERVICE and (pods := _selected(found, inventory)):
            return (
                f"a Service cannot be explained; its pods are those of {listed(pods, _NAMED_MAX)}"
            )
        known = ", ".join(kind.kind for kind in _EXPLAINED)
        return f"a {found.kind.kind} cannot be explained; only {known}, PodGroup, Queue"
    spec = found.value.get("spec")
    policy = spec.get("runPolicy") if isinstance(spec, dict) else None
    for path, fields in (("spec", spec), ("spec.runPolicy", policy)):
        if isinstance(fields, dict) and fields.get("suspend") is True:
            why = admission_sentence(found, inventory)
            suspended = f"{found.title} has no pods: it is suspended ({path}.suspend)"
            return f"{suspended}. {why}" if why else suspended
    if (controller := pod_controller_of(found, inventory)) is not None:
        return f"a {found.kind.kind} cannot be explained{control_hint(controller)}"
    if hint := owned_hint(found, inventory, lambda one: _can_be_explained(one, inventory)):
        return f"a {found.kind.kind} cannot be explained{hint}"
    return f"{found.title} has no pods to explain"


def _selected(service: Manifest, inventory: Inventory) -> list[str]:
    """Return the workloads, and the pods without workloads, that `service` selects."""
    selector = mapping(service.value, "spec", "selector")
    if not selector:
        return []
    near = [
        one
        for one in chain.from_iterable(map(inventory.of_kind, (POD, *WORKLOADS)))
        if one.ref.namespace == service.ref.namespace
    ]
    pods = (one.pod for one in near if one.kind is POD)
    found = {workload_of(pod) for pod in pods if selector.items() <= pod.metadata.labels.items()}
    for one in near:  # a workload that has no pods yet
        if one.kind is not POD and controller_of(one.metadata) is None:
            labels = mapping({"template": one.pod_template}, "template", "metadata", "labels")
            if selector.items() <= labels.items():
                found.add(WorkloadRef(one.kind.kind, one.ref.namespace, one.ref.name))
    return sorted(map(str, found))


def group_to_explain(
    snapshot: Snapshot,
    files: Sequence[str],
    target: str,
    scheduler: SchedulerConfig,
    batch: BatchOptions,
    namespace: str = "",
) -> tuple[Snapshot, str] | None:
    """Return (snapshot with the objects of `files`, name of the group or pod to explain).

    `namespace` is the value of --namespace, or "".
    `target` names a group, or a pod or workload that the batch scheduler schedules. "" means the
    only pod or workload of the files. The snapshot includes the pods that new workloads would
    create. Return None for any other target. Also return None for "" if the files do not have
    exactly one pod or workload. Raises InputError if `files` or `target` is invalid.
    """
    if find_kind(target) is not None or _kind_of(target) in ("quotas", *QUEUE_KINDS, *KUEUE_KINDS):
        problem = (
            "cannot be combined with --apply, which explains one new pod; fairlead whatif DUMP "
            "--apply FILE says what happens to all pods"
        )
        raise InputError(target, problem)
    inventory = snapshot.inventory()
    written = _written(files, inventory, namespace)
    target = Inventory(written).qualified(SOURCE, target, namespace)
    added = [one for one in written if not inventory.get(one.kind, one.ref.namespace, one.ref.name)]
    members = {one.identity: _first_pods(one) for one in added if one.kind in WORKLOADS}
    added += [pod for pods in members.values() for pod in pods]
    cluster = _with_added(snapshot, added)
    subject = target = _group_of_volcano_job(written, target)
    if _kind_of(target) not in GROUP_KINDS:
        candidates = [one for one in written if one.kind is POD or one.kind in WORKLOADS]
        if not target and len(candidates) != 1:
            return None
        expected = (POD, *WORKLOADS)
        named = (
            cluster.inventory().find(SOURCE, target, expected=expected) if target else candidates[0]
        )
        pods = members.get(named.identity, [named])
        subject = f"pod/{pods[0].ref.key}" if pods and pods[0].kind is POD else ""
    if not subject or not is_about_group(subject, cluster, scheduler, batch):
        return None
    refuse_absent_namespaces(written, inventory)
    return cluster, subject


def _with_added(snapshot: Snapshot, added: Sequence[Manifest]) -> Snapshot:
    """Return `snapshot` with the objects `added`, and with the ResourceClaims of their new pods."""
    templates = replace(snapshot, manifests=(*snapshot.manifests, *added)).inventory()
    rest = (one for one in added if one.kind is not POD)
    pods = with_new_claims((one for one in added if one.kind is POD), templates)
    return replace(snapshot, manifests=(*snapshot.manifests, *rest, *pods))


def _kind_of(target: str) -> str:
    """Return the kind in `target` in lower case, without its group, such as pg for `PG.x/name`."""
    return target.partition("/")[0].partition(".")[0].lower()


def _group_of_volcano_job(written: Sequence[Manifest], target: str) -> str:
    """Return `podgroup/NAMESPACE/NAME` if `target` is a Volcano Job in `written`, else `target`.

    `written` contains the PodGroup that simulates the Job. If `target` is "", and `written` has
    only one pod or workload, which is a Volcano Job, `target` means this Job.
    """
    jobs = [one for one in written if _is_volcano_job(one)]
    if target:
        found = Inventory(written).look_up(SOURCE, target)
        jobs = [one for one in jobs if one is found]
    elif len(jobs) == 1:
        tasks = {part.value["metadata"]["name"] for part in owned_by(jobs[0])}
        pods = [one for one in written if one.kind is POD or one.kind in WORKLOADS]
        jobs = jobs if all(one.ref.name in tasks for one in pods) else []
    return f"podgroup/{jobs[0].ref.key}" if len(jobs) == 1 else target


def refused_pods(
    before: Snapshot, cluster: Snapshot, scheduler: SchedulerConfig
) -> tuple[str, ...]:
    """Return a note if admission, such as a quota, refuses pods that `cluster` adds to `before`.

    `cluster` is a result of `group_to_explain`, which adds the pods without admission. This
    function creates the pods one after another, with admission.
    """
    added = cluster.manifests[len(before.manifests) :]
    new = [one for one in added if one.kind is POD]
    rest = (*before.manifests, *(one for one in added if one.kind is not POD))
    model = ClusterModel(replace(cluster, manifests=rest), scheduler)
    for namespace in sorted({one.ref.namespace for one in new}):
        model.count_quotas(namespace)
    messages = []
    for one in new:
        try:
            model.create(dict(one.value))
        except ApiError as refused:
            messages.append(refused.message)
    if not messages:
        return ()
    pods = "its pod" if len(new) == 1 else f"{len(messages):,} of its {len(new):,} pods"
    return (f"The API server would refuse {pods}: {messages[0]}.",)


def new_pod_to_explain(
    snapshot: Snapshot, files: Sequence[str], target: str, namespace: str = ""
) -> tuple[Snapshot, NewPods]:
    """Return (snapshot, the new pod that `files` describe).

    `namespace` is the value of --namespace, or "".

    The snapshot includes the new objects of `files`, except pods and workloads.

    `target` names a Pod or workload of the files; "" means their only Pod or workload. Raises
    InputError.
    """
    inventory = snapshot.inventory()
    written = _written(files, inventory, namespace)
    target = Inventory(written).qualified(SOURCE, target, namespace)
    candidates = [one for one in written if one.kind is POD or one.kind in WORKLOADS]
    chosen = _chosen(written, candidates, files, target)
    if chosen.kind is POD and inventory.get(POD, chosen.ref.namespace, chosen.ref.name):
        raise chosen.refuse(f"exists already; explain pod/{chosen.ref.key} without --apply")
    refuse_absent_namespaces(written, inventory)
    added = [
        one
        for one in written
        if one not in candidates and not inventory.get(one.kind, one.ref.namespace, one.ref.name)
    ]
    cluster = replace(snapshot, manifests=(*snapshot.manifests, *added))
    return cluster, new_pods_of_file(chosen, inventory, Inventory())


def _first_pods(workload: Manifest) -> list[Manifest]:
    """Return the pods that the controller of a new `workload` creates at first.

    Pods of DaemonSets and CronJobs are left out. A StatefulSet whose podManagementPolicy is not
    Parallel creates one pod at first.
    """
    if workload.kind in (DAEMON_SET, CRON_JOB):
        return []
    new, spec = new_pods_of(workload.source, workload, Inventory()), workload.value["spec"]
    if workload.kind is JOB:
        wanted = spec.get("parallelism", 1)
        wanted = min(wanted, spec.get("completions", wanted))
    else:
        wanted = spec.get("replicas", 1)
        if workload.kind is STATEFUL_SET and spec.get("podManagementPolicy") != PARALLEL:
            wanted = min(wanted, 1)
    names = [f"{workload.ref.name}-{number}" for number in range(wanted)]
    return [
        Manifest(
            workload.source,
            POD,
            ObjectRef(POD.kind, workload.ref.namespace, name),
            {**pod, "metadata": {**pod["metadata"], "name": name}},
        )
        for number, name in enumerate(names)
        for pod in [new.pod(number)]
    ]


def _written(files: Sequence[str], inventory: Inventory, namespace: str) -> list[Manifest]:
    """Return the objects of `files`, and the objects that simulate their Volcano Jobs and JobSets.

    `inventory` are the objects of the cluster. `namespace` is the value of --namespace, or "".
    Raises InputError, also for unknown kinds and fields, and for fields of a wrong type. InputError
    is also raised for pods and workloads that the API server refuses, and for too many pods.
    """
    written = manifests_to_apply(
        (document for path in files for document in read(path)), namespace or DEFAULT_NAMESPACE
    )
    refuse_other_namespaces((one for one, _ in written), namespace)
    refuse_malformed_fields((one for one, _ in written), inventory=inventory)
    classes = priorities_in(inventory.of_kind(PRIORITY_CLASS), (one for one, _ in written))
    parts = (part for one, value in written for part in owned_by(one, value, priorities=classes))
    taken = {one.ref for one, _ in written}
    more = manifests_to_apply(without_repeated_services(parts), namespace or DEFAULT_NAMESPACE)
    refuse_malformed_fields(one for one, _ in more)
    written += [each for each in more if each[0].ref not in taken or not may_exist(each[0])]
    found = [one for one, _ in written]
    refuse_excess(found)
    for one, value in written:
        if one.kind is POD or one.kind in WORKLOADS:
            refuse_invalid_object(one, value)
    return found


def _chosen(
    written: Sequence[Manifest],
    candidates: Sequence[Manifest],
    files: Sequence[str],
    target: str,
) -> Manifest:
    if target:
        inventory = Inventory(written, ", ".join(files))
        found = inventory.find("--apply", target, expected=(POD, *WORKLOADS))
        if found not in candidates:
            raise found.refuse("is neither a Pod nor a workload")
        return found
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        problem = f"contains no Pod and no workload{custom_hint(written)}"
        raise InputError(", ".join(files), problem)
    names = [f"{one.kind.kind.lower()}/{one.ref.key}" for one in candidates]
    problem = f"contains {len(names)} pods and workloads; say which: {known_names('', names)}"
    raise InputError(", ".join(files), problem)
