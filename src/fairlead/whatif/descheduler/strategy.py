"""The strategies for single pods: taints, affinity, anti-affinity, age, restarts, failure.

Each function takes the evictor, which records the evictions, and the arguments of its plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.nodes.node_selector import required_node_affinity_matches, term_matches
from fairlead.api.nodes.taint import NO_SCHEDULE, PREFER_NO_SCHEDULE, is_tolerated
from fairlead.api.objects import ContainerStatus, Node, Pod, Taint
from fairlead.api.pods.qos import QOS_CLASSES, qos_class_of
from fairlead.api.selector import selector_matches
from fairlead.engine.core.instant import to_seconds
from fairlead.whatif.descheduler.evictor import Evictor
from fairlead.whatif.descheduler.policy import (
    FailedArgs,
    LifeTimeArgs,
    RestartsArgs,
    SelectorArgs,
    ViolatingNodeAffinityArgs,
    ViolatingNodeTaintsArgs,
)

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def by_priority(pods: Iterable[Pod]) -> list[Pod]:
    """Return `pods` in upstream's order of eviction: lowest priority first, then by QoS class.

    Pods with equal priority and QoS class keep their order.

    upstream: pkg/descheduler/pod/pods.go:SortPodsBasedOnPriorityLowToHigh
    """

    def key(pod: Pod) -> tuple[bool, int, int]:
        priority = pod.spec.priority
        return priority is not None, priority or 0, QOS_CLASSES.index(qos_class_of(pod))

    return sorted(pods, key=key)


def listed(evictor: Evictor, node: Node, args: SelectorArgs) -> Iterator[Pod]:
    """Yield the pods on `node` that `args` selects and the policy allows evicting.

    Pods that have ended are left out (pods.go: ListPodsOnANode).
    """
    for pod in evictor.view.on(node):
        if _is_selected(pod, args) and evictor.may_evict(pod):
            yield pod


def listed_with_ended(evictor: Evictor, node: Node, args: SelectorArgs) -> Iterator[Pod]:
    """Yield the same pods as `listed`, and then the pods that have ended.

    upstream: pods.go: ListAllPodsOnANode
    """
    yield from listed(evictor, node, args)
    for pod in evictor.view.ended_on(node):
        if _is_selected(pod, args) and evictor.may_evict(pod):
            yield pod


def _is_selected(pod: Pod, args: SelectorArgs) -> bool:
    selector = args.label_selector
    return args.namespaces.has(pod.metadata.namespace) and (
        selector is None or selector_matches(selector, pod.metadata.labels)
    )


def _evict(evictor: Evictor, pods: Iterable[Pod], strategy: str) -> None:
    for pod in pods:
        if evictor.limits.is_total_reached:
            return
        if evictor.fits_elsewhere(pod):
            evictor.evict(pod, strategy)


def remove_violating_node_taints(evictor: Evictor, args: ViolatingNodeTaintsArgs) -> None:
    """Evict pods that do not tolerate a NoSchedule taint of their node.

    `args` can add PreferNoSchedule taints, and include or exclude taints.

    upstream: removepodsviolatingnodetaints/node_taint.go
    """
    soft = (PREFER_NO_SCHEDULE,) if args.include_prefer_no_schedule else ()
    effects = (NO_SCHEDULE, *soft)

    def counts(taint: Taint) -> bool:
        names = {taint.key, f"{taint.key}={taint.value}"}
        return (
            taint.effect in effects
            and not names & set(args.excluded_taints)
            and (not args.included_taints or bool(names & set(args.included_taints)))
        )

    for node in evictor.view.nodes:
        taints = [taint for taint in node.spec.taints if counts(taint)]
        found = [
            pod
            for pod in listed_with_ended(evictor, node, args)
            if not all(is_tolerated(taint, pod.spec.tolerations) for taint in taints)
        ]
        _evict(evictor, found, "RemovePodsViolatingNodeTaints")


def remove_violating_node_affinity(evictor: Evictor, args: ViolatingNodeAffinityArgs) -> None:
    """Evict pods whose node affinity excludes their node, or prefers another node.

    `args` states which affinity counts: required, preferred, or both.

    upstream: removepodsviolatingnodeaffinity/node_affinity.go
    """
    for kind in args.node_affinity_type:
        is_misplaced = _violates if kind == REQUIRED else _could_be_better
        for node in evictor.view.nodes:
            found = [
                pod
                for pod in listed(evictor, node, args)
                if is_misplaced(pod, node, evictor) and evictor.view.fits_any_node(pod)
            ]
            _evict(evictor, found, "RemovePodsViolatingNodeAffinity")


def _violates(pod: Pod, node: Node, _: Evictor) -> bool:
    affinity = pod.spec.affinity
    has_rule = bool(pod.spec.node_selector) or (
        affinity is not None
        and affinity.node_affinity is not None
        and affinity.node_affinity.required_during_scheduling_ignored_during_execution is not None
    )
    labels = node.metadata.labels
    return has_rule and not required_node_affinity_matches(pod.spec, labels, node.metadata.name)


def _could_be_better(pod: Pod, node: Node, evictor: Evictor) -> bool:
    own = _preference(pod, node)
    return any(_preference(pod, other) > own for other in evictor.view.nodes)


def _preference(pod: Pod, node: Node) -> int:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return 0
    terms = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    labels, name = node.metadata.labels, node.metadata.name
    return sum(term.weight for term in terms if term_matches(term.preference, labels, name))


def remove_violating_anti_affinity(evictor: Evictor, args: SelectorArgs) -> None:
    """Evict pods if their anti-affinity excludes a pod that runs in the same domain.

    upstream: removepodsviolatinginterpodantiaffinity/pod_antiaffinity.go
    """
    present = list(evictor.view.pods)
    for node in evictor.view.nodes:
        for pod in by_priority(listed(evictor, node, args)):
            if evictor.limits.is_total_reached:
                return
            if evictor.view.conflicting(pod, present) is None or not evictor.fits_elsewhere(pod):
                continue
            if evictor.evict(pod, "RemovePodsViolatingInterPodAntiAffinity"):
                # Without this pod, the other pods on the node may have no conflict left.
                present = [one for one in present if one is not pod]


def remove_old(evictor: Evictor, args: LifeTimeArgs) -> None:
    """Evict pods that are older than the maximum in `args`, the oldest pods first.

    If `args.states` is not empty, only pods in one of these states are evicted.

    upstream: podlifetime/pod_lifetime.go
    """
    states = set(args.states)

    def is_in_state(pod: Pod) -> bool:
        reasons = {pod.status.phase, pod.status.reason, *_waiting(_statuses(pod, args))}
        return not states or not states.isdisjoint(reasons)

    found = [
        pod
        for node in evictor.view.nodes
        for pod in listed_with_ended(evictor, node, args)
        if is_in_state(pod) and int(to_seconds(evictor.age(pod))) > args.max_pod_life_time_seconds
    ]
    _evict(evictor, sorted(found, key=evictor.age, reverse=True), "PodLifeTime")


def remove_restarting(evictor: Evictor, args: RestartsArgs) -> None:
    """Evict pods whose containers have restarted `args.pod_restart_threshold` times or more in all.

    If `args.states` is not empty, only pods in one of these states are evicted.

    upstream: removepodshavingtoomanyrestarts/toomanyrestarts.go
    """
    states = set(args.states)

    def restarts_often(pod: Pod) -> bool:
        statuses = _statuses(pod, args)
        if states and states.isdisjoint((pod.status.phase, *_waiting(statuses))):
            return False
        return sum(one.restart_count for one in statuses) >= args.pod_restart_threshold

    for node in evictor.view.nodes:
        pods = listed_with_ended(evictor, node, args)
        found = [pod for pod in pods if restarts_often(pod)]
        _evict(evictor, found, "RemovePodsHavingTooManyRestarts")


def remove_failed(evictor: Evictor, args: FailedArgs) -> None:
    """Evict failed pods that have the minimum age and no owner of an excluded kind.

    If `args` states reasons or exit codes, only pods with a stated reason or exit code are evicted.

    upstream: removefailedpods/failedpods.go
    """
    excluded, reasons, codes = (
        set(args.exclude_owner_kinds),
        set(args.reasons),
        set(args.exit_codes),
    )

    def failed_so(pod: Pod) -> bool:
        statuses = _statuses(pod, args)
        ends = [one.state.terminated for one in statuses if one.state.terminated is not None]
        found = {pod.status.reason, *_waiting(statuses), *(end.reason for end in ends)} - {""}
        return not (
            (reasons and reasons.isdisjoint(found))
            or (codes and codes.isdisjoint(end.exit_code for end in ends))
        )

    for node in evictor.view.nodes:
        chosen = [
            pod
            for pod in evictor.view.ended_on(node)
            if pod.status.phase == "Failed"
            and _is_selected(pod, args)
            and evictor.may_evict(pod)
            and not excluded & {owner.kind for owner in pod.metadata.owner_references}
            and to_seconds(evictor.age(pod)) >= (args.min_pod_lifetime_seconds or 0)
            and failed_so(pod)
        ]
        _evict(evictor, chosen, "RemoveFailedPods")


def _statuses(
    pod: Pod, args: LifeTimeArgs | RestartsArgs | FailedArgs
) -> tuple[ContainerStatus, ...]:
    """Return the statuses of the containers, and of the init containers if `args` includes them."""
    init = pod.status.init_container_statuses if args.including_init_containers else ()
    return (*pod.status.container_statuses, *init)


def _waiting(statuses: Iterable[ContainerStatus]) -> Iterator[str]:
    """Yield the reasons for which containers wait, such as CrashLoopBackOff."""
    return (one.state.waiting.reason for one in statuses if one.state.waiting is not None)
