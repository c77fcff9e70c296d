"""Notes about unsimulated controllers and programs that would react to the loss of pods.

These are the controllers of custom resources, and programs that create pods themselves, such as the
driver of a Spark application. The answer replaces their lost pods in a simple way, or not at all,
and the notes say where the cluster may differ. If it is known which pods an answer loses, the notes
are about these pods only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import items, mapping, text
from fairlead.api.objects import (
    ApiObject,
    Job,
    LabelSelector,
    OwnerReference,
    Pod,
    PodDisruptionBudget,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of, is_terminal
from fairlead.api.selector import selector_matches
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import (
    DEPLOYMENT,
    JOB,
    POD,
    POD_DISRUPTION_BUDGET,
    STATEFUL_SET,
)
from fairlead.engine.workloads.job.rule import is_finished
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples, valid_view, valid_views
from fairlead.whatif.snapshot.served_kind import full_kind, is_custom

_NAMED_MAX: Final = 3
_VOLCANO_JOB: Final = "Job.batch.volcano.sh"
_LEADER_WORKER_SET: Final = "LeaderWorkerSet"
# The label of the pods of a LeaderWorkerSet, and its default restartPolicy.
# upstream: sigs.k8s.io/lws api/leaderworkerset/v1/leaderworkerset_types.go
_LEADER_WORKER_SET_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
_RECREATE_GROUP: Final = "RecreateGroupOnPodRestart"
_EVICTED_EVENTS: Final = frozenset({"PodEvicted", "*"})
_WIDE_ACTIONS: Final = frozenset(
    {"RestartJob", "RestartTask", "AbortJob", "TerminateJob", "CompleteJob"}
)


class LostPods(Struct, frozen=True):
    """The pods that leave their nodes in an answer.

    `workloads` are the controllers of these pods, and the pods without a controller, each as (kind,
    namespace, name). The kinds are results of `full_kind`. `budgets` are the keys
    (`namespace/name`) of the disruption budgets that cover these pods.
    """

    workloads: frozenset[tuple[str, str, str]] = frozenset()
    budgets: frozenset[str] = frozenset()


NO_LOST_PODS: Final = LostPods()


def lost_with(pods: Iterable[Pod], manifests: Iterable[Manifest]) -> LostPods:
    """Return `pods`, some pods of the dump `manifests`, as lost pods."""
    lost = list(pods)
    return LostPods(frozenset(map(workload_key, lost)), budgets_of(lost, manifests))


def budgets_of(pods: Iterable[Pod], manifests: Iterable[Manifest]) -> frozenset[str]:
    """Return the disruption budgets of the dump `manifests` that cover `pods`."""
    metas = [one.metadata for one in pods]
    return frozenset(
        _key_of(budget)
        for budget in valid_views(PodDisruptionBudget, POD_DISRUPTION_BUDGET, manifests)
        if any(
            meta.namespace == budget.metadata.namespace
            and selector_matches(budget.spec.selector, meta.labels)
            for meta in metas
        )
    )


def workload_key(pod: Pod) -> tuple[str, str, str]:
    """Return the controller of `pod`, or the pod itself, as in `LostPods`."""
    owner, meta = controller_of(pod.metadata), pod.metadata
    if owner is None:
        return POD.kind, meta.namespace, meta.name
    return full_kind(owner.kind, owner.api_version), meta.namespace, owner.name


def unsimulated_controllers(
    manifests: Iterable[Manifest], lost: LostPods | None = None
) -> Iterator[str]:
    """Yield the notes about the controllers of the dump `manifests` that are not simulated.

    `lost` are the pods that the answer is about; None if it may be about any pod. If all objects
    are hand-written (without uids), there are no notes.
    """
    objects = samples(manifests)
    if lost == NO_LOST_PODS or not any(one.ref.uid for one in objects):
        return
    yield from _custom_owners(objects, lost)
    yield from _owners_without_control(objects, lost)
    yield from _programs(objects, lost)
    yield from _custom_owners_of_budgets(objects, lost)
    yield from _custom_owners_of_jobs(objects, lost)
    yield from _owned_by_pods(objects, lost)
    yield from _restarted_groups(objects, lost)


def _loses(lost: LostPods | None, kind: str, namespace: str, name: str) -> bool:
    """Return whether a workload is in `lost`; True if `lost` is None."""
    return lost is None or (kind, namespace, name) in lost.workloads


def _custom_owners(manifests: Sequence[Manifest], lost: LostPods | None) -> Iterator[str]:
    """Yield notes if custom resources control unfinished pods in `lost`.

    upstream: argo-workflows workflow/controller/operator.go: podReconciliation ("pod deleted")
    """
    pods = [
        one
        for one in valid_views(Pod, POD, manifests)
        if not is_terminal(one) and _is_lost_with_controller(one, lost)
    ]
    kinds = _custom_controllers(pods)
    if kinds:
        yield (
            f"Controllers of custom resources are not simulated ({listed(sorted(kinds))}). An "
            "equal pod replaces each of their deleted pods, unless its owner or its namespace is "
            "deleted."
        )
    yield from _eviction_policies(pods, manifests)
    owners = (controller_of(one.metadata) for one in pods)
    if any(one is not None and _is_argo_workflow(one) for one in owners):
        yield (
            "Argo Workflows replaces a deleted pod only if its step has a retryStrategy. A step "
            "without one fails, although this answer replaces its pod."
        )


def _is_lost_with_controller(pod: Pod, lost: LostPods | None) -> bool:
    """Return whether the controller of `pod` is in `lost`; False if `pod` has no controller."""
    return controller_of(pod.metadata) is not None and _loses(lost, *workload_key(pod))


def _eviction_policies(pods: Iterable[Pod], manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note if the eviction of one of `pods` also affects other pods of its Volcano Job.

    upstream: volcano: pkg/controllers/job/job_controller_handler.go: deletePod,
    job_controller_util.go: applyPolicies
    """
    owners = (
        (one.metadata.namespace, owner.name)
        for one in pods
        if one.spec.node_name
        and (owner := controller_of(one.metadata)) is not None
        and full_kind(owner.kind, owner.api_version) == _VOLCANO_JOB
    )
    with_pods = set(owners)
    if not with_pods:
        return
    found = {
        one.title: action
        for one in manifests
        if one.full_kind == _VOLCANO_JOB and (one.ref.namespace, one.ref.name) in with_pods
        for action in [_eviction_action(one)]
        if action
    }
    if found:
        jobs = sorted(found)
        yield (
            f"If a pod of {listed(jobs, _NAMED_MAX)} is evicted or deleted, Volcano also restarts "
            f"or ends other pods of the Job (policy {found[jobs[0]]} for PodEvicted). This answer "
            "replaces only the pod itself."
        )


def _eviction_action(job: Manifest) -> str:
    """Return what the Volcano Job `job` does to other pods if a pod is evicted; "" if nothing."""
    spec = mapping(job.value, "spec")
    for part in (spec, *items(spec, "tasks")):
        for policy in items(part, "policies"):
            events = {text(policy, "event"), *map(str, items(policy, "events"))}
            action = text(policy, "action")
            if not events.isdisjoint(_EVICTED_EVENTS) and action in _WIDE_ACTIONS:
                return action
    return ""


def _is_argo_workflow(owner: OwnerReference) -> bool:
    return owner.kind == "Workflow" and owner.api_version.startswith("argoproj.io/")


def _owners_without_control(manifests: Iterable[Manifest], lost: LostPods | None) -> Iterator[str]:
    """Yield a note if custom resources own unfinished pods that have no controller.

    If `lost` is given, the pods must be in namespaces in which pods without a controller are lost.

    upstream: sigs.k8s.io/controller-runtime pkg/controller/controllerutil/controllerutil.go:
    SetOwnerReference, which some operators call instead of SetControllerReference
    """
    spaces = None if lost is None else {one[1] for one in lost.workloads if one[0] == POD.kind}
    pods = (
        one
        for one in valid_views(Pod, POD, manifests)
        if not is_terminal(one) and (spaces is None or one.metadata.namespace in spaces)
    )
    kinds = {
        full_kind(owner.kind, owner.api_version)
        for meta in (one.metadata for one in pods)
        if meta.owner_references and controller_of(meta) is None
        for owner in meta.owner_references
        if is_custom(owner.api_version)
    }
    if kinds:
        yield (
            f"Custom resources own pods without being their controllers ({listed(sorted(kinds))}): "
            "nothing replaces these pods in this answer, but their operators may create them again."
        )


def _programs(manifests: Iterable[Manifest], lost: LostPods | None) -> Iterator[str]:
    """Yield a note if a Pod or Deployment directly controls unfinished pods in `lost`.

    For example, the driver pod of a Spark application controls the executor pods.
    """
    owners = (
        (one.metadata.namespace, controller_of(one.metadata))
        for one in valid_views(Pod, POD, manifests)
        if not is_terminal(one) and _is_lost_with_controller(one, lost)
    )
    found = {
        f"{owner.kind} {namespace}/{owner.name}"
        for namespace, owner in owners
        if owner is not None
        and owner.kind in (POD.kind, DEPLOYMENT.kind)
        and not is_custom(owner.api_version)
    }
    if found:
        yield (
            "Programs that create pods, such as Spark and Flink, are not simulated "
            f"({listed(sorted(found), _NAMED_MAX)}). An equal pod replaces each of their deleted "
            "pods, as long as the program itself can run again."
        )


def _custom_owners_of_budgets(
    manifests: Iterable[Manifest], lost: LostPods | None
) -> Iterator[str]:
    """Yield notes about custom resources with budgets in `lost` that allow no eviction now.

    The custom resources own the budgets, or control the pods that the budgets cover.

    upstream: cloudnative-pg internal/controller/replicas.go: reconcileTargetPrimaryFromPods,
    kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go: Admit,
    longhorn-manager controller/instance_manager_controller.go: syncInstanceManagerPDB
    """
    strict = [
        one
        for one in valid_views(PodDisruptionBudget, POD_DISRUPTION_BUDGET, manifests)
        if not one.status.disruptions_allowed and (lost is None or _key_of(one) in lost.budgets)
    ]
    owners = (owner for one in strict for owner in one.metadata.owner_references)
    kinds = {owner.kind for owner in owners if is_custom(owner.api_version)}
    reaction = (
        "Their controllers are not simulated. On the cluster, they may act on a cordon or a "
        "refused eviction, so that a drain completes (as in CloudNativePG, KubeVirt and Longhorn)."
    )
    whats = (
        ("own budgets that allow no eviction now", kinds),
        (
            "control pods whose budget allows no eviction now",
            _controllers_of_covered_pods(strict, manifests) - kinds,
        ),
    )
    for what, found in whats:
        if found:
            yield f"Custom resources {what} ({listed(sorted(found))}). {reaction}"


def _key_of(budget: PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"


def _controllers_of_covered_pods(
    budgets: Iterable[PodDisruptionBudget], manifests: Iterable[Manifest]
) -> set[str]:
    """Return the kinds of the custom resources that control pods of `budgets`."""
    selectors: dict[str, list[LabelSelector | None]] = {}
    for budget in budgets:
        selectors.setdefault(budget.metadata.namespace, []).append(budget.spec.selector)
    kinds = set()
    for pod in valid_views(Pod, POD, manifests) if selectors else ():
        owner, meta = controller_of(pod.metadata), pod.metadata
        if owner is None or not is_custom(owner.api_version) or is_terminal(pod):
            continue
        if any(selector_matches(one, meta.labels) for one in selectors.get(meta.namespace, ())):
            kinds.add(owner.kind)
    return kinds


def _custom_owners_of_jobs(manifests: Iterable[Manifest], lost: LostPods | None) -> Iterator[str]:
    """Yield a note if custom resources, such as JobSets, control unfinished Jobs in `lost`.

    upstream: sigs.k8s.io/jobset pkg/controllers/failure_policy.go: executeFailurePolicy
    """
    jobs = (
        one
        for one in valid_views(Job, JOB, manifests)
        if not is_finished(one)
        and _loses(lost, JOB.kind, one.metadata.namespace, one.metadata.name)
    )
    kinds = _custom_controllers(jobs)
    if kinds:
        yield (
            f"Controllers of custom resources that control Jobs are not simulated "
            f"({listed(sorted(kinds))}). On the cluster, they may create a Job again that fails in "
            "this answer, with all its pods."
        )


def _custom_controllers(objects: Iterable[ApiObject]) -> set[str]:
    """Return the kinds of the custom resources that control one of `objects`."""
    owners = (controller_of(one.metadata) for one in objects)
    return {
        full_kind(one.kind, one.api_version)
        for one in owners
        if one is not None and is_custom(one.api_version)
    }


def _owned_by_pods(manifests: Sequence[Manifest], lost: LostPods | None) -> Iterator[str]:
    """Yield a note if pods in `lost` own StatefulSets, as the leaders of a LeaderWorkerSet do.

    upstream: sigs.k8s.io/lws pkg/controllers/pod_controller.go: Reconcile
    """
    controllers = (
        (one, controller_of(view.metadata))
        for one in manifests
        if (view := valid_view(StatefulSet, STATEFUL_SET, one)) is not None
    )
    owned = {
        (one.ref.namespace, owner.name): one.title
        for one, owner in controllers
        if owner is not None and owner.kind == POD.kind
    }
    if owned:
        pods = {(one.ref.namespace, one.ref.name): one for one in manifests if one.kind is POD}
        views = {key: valid_view(Pod, POD, pods[key]) for key in owned if key in pods}
        owned = {
            key: title
            for key, title in owned.items()
            if (leader := views.get(key)) is None or _loses(lost, *workload_key(leader))
        }
    if owned:
        more = f" and {len(owned) - 1:,} more" if len(owned) > 1 else ""
        verb = "are deleted with the pods that own them" if more else "is deleted with its pod"
        yield (
            f"{min(owned.values())}{more} {verb}. The controller that would create the StatefulSet "
            "again for the new pod, such as that of LeaderWorkerSets, is not simulated."
        )


def _restarted_groups(manifests: Sequence[Manifest], lost: LostPods | None) -> Iterator[str]:
    """Yield a note if LeaderWorkerSets with pods in `lost` restart whole groups of pods.

    upstream: sigs.k8s.io/lws pkg/controllers/pod_controller.go: handleRestartPolicy (the leader is
    deleted, and the garbage collector then deletes the StatefulSet of the workers)
    """
    policies = {
        (one.ref.namespace, one.ref.name): text(
            mapping(mapping(one.value, "spec"), "leaderWorkerTemplate"), "restartPolicy"
        )
        or _RECREATE_GROUP
        for one in manifests
        if one.full_kind == _LEADER_WORKER_SET
    }
    restarting = {key for key, policy in policies.items() if policy.startswith("RecreateGroup")}
    if not restarting:
        return
    keys = (
        (one.metadata.namespace, one.metadata.labels.get(_LEADER_WORKER_SET_NAME, ""))
        for one in valid_views(Pod, POD, manifests)
        if one.spec.node_name and not is_terminal(one) and _loses(lost, *workload_key(one))
    )
    found = sorted(restarting.intersection(keys))
    if found:
        names = [f"LeaderWorkerSet {namespace}/{name}" for namespace, name in found]
        yield (
            f"If a pod of {listed(names, _NAMED_MAX)} is evicted or deleted, all pods of its group "
            f"are deleted and created again (restartPolicy {policies[found[0]]}). This answer "
            "replaces only the pod itself."
        )
