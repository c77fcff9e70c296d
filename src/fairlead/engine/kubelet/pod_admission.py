"""Decides whether a kubelet admits a pod that was bound to its node.

    pressure       a node with disk or pid pressure admits only critical pods; a node that has only
                   memory pressure also admits pods that have requests or tolerate the
                   memory-pressure taint
    predicates     requests, node affinity, host ports and NoExecute taints are checked again

A pod can fail these checks if it was created with spec.nodeName, or bound by a scheduler with other
rules. The kubelet then sets the pod to Failed, with the first failure as the reason. Of the other
pods on the node, these checks count only those that the kubelet has already admitted.

If a critical pod fails the check of the requests but passes all other checks, the kubelet frees
resources by ending less important pods (`find_victims`). The kubelet prefers BestEffort pods, then
Burstable pods, then Guaranteed pods. In each class, it prefers the pods that free most of the
lacking amounts (`_closest`). Then it admits the critical pod.

upstream: pkg/kubelet/eviction/eviction_manager.go:Admit, pkg/kubelet/lifecycle/predicate.go:Admit,
generalFilter, removeMissingExtendedResources; pkg/scheduler/eventhandlers.go:AdmissionCheck;
pkg/kubelet/preemption/preemption.go; pkg/kubelet/types/pod_update.go:Preemptable. Operating systems
and the health of devices are not simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.node_selector import required_node_affinity_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated, is_tolerated
from fairlead.api.objects import Node, Pod, Taint
from fairlead.api.pods.facts import condition, is_static, pod_priority
from fairlead.api.pods.host_port import ports_conflict
from fairlead.api.pods.qos import QOS_CLASSES, qos_class_of
from fairlead.api.resource_name import is_extended_resource
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY, PODS

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000

EVICTED: Final = "Evicted"
UNEXPECTED: Final = "UnexpectedAdmissionError"
_MEMORY_PRESSURE: Final = "MemoryPressure"
_PRESSURES: Final = (_MEMORY_PRESSURE, "DiskPressure", "PIDPressure")
_MEMORY_TAINT: Final = Taint(key="node.kubernetes.io/memory-pressure", effect=NO_SCHEDULE)
_OUT_OF: Final = "OutOf"
_POD_COUNT: Final = -1  # the column of the resource "pods", which ResourceColumns lacks

# Name and reason of the scheduler's plugins, which the kubelet calls.
AFFINITY: Final = ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
PORTS: Final = ("NodePorts", "node(s) didn't have free ports for the requested pod ports")
TAINTS: Final = ("TaintToleration", "node(s) had taints that the pod didn't tolerate")


_OF_PREDICATES: Final = frozenset(name for name, _ in (AFFINITY, PORTS, TAINTS))


def is_rejection(reason: str) -> bool:
    """Return whether the `status.reason` of a failed pod says that its kubelet rejected it.

    Returns False if the node was under pressure: an evicted pod has the same `status.reason`.
    """
    return reason.startswith(_OUT_OF) or reason == UNEXPECTED or reason in _OF_PREDICATES


class PodRejection(Struct, frozen=True):
    """Why a kubelet does not admit a pod. `message` is the message of the pod's event."""

    reason: str
    message: str


class InsufficientResource(Struct, frozen=True):
    """A resource that a node lacks for a pod. Amounts are in base units."""

    column: int
    name: str
    requested: int
    used: int
    capacity: int

    @property
    def lacking(self) -> int:
        """The missing amount in base units."""
        return self.requested - (self.capacity - self.used)

    def rejection(self) -> PodRejection:
        """Return the rejection of a pod for lack of this resource."""
        message = (
            f"Node didn't have enough resource: {self.name}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )
        return PodRejection(_OUT_OF + self.name, message)


class Admission(Struct, frozen=True):
    """A kubelet's decision about a pod.

    The pod is admitted if `rejection` is None, but only after the kubelet has ended `victims`.
    """

    rejection: PodRejection | None = None
    victims: tuple[Pod, ...] = ()


ADMITTED: Final = Admission()


def is_critical(pod: Pod) -> bool:
    """Return whether `pod` is static or has at least the priority of system-critical pods."""
    return is_static(pod) or pod_priority(pod) >= SYSTEM_CRITICAL_PRIORITY


def admit(
    pod: PodInfo,
    node: NodeInfo,
    find_others: Callable[[], Sequence[PodInfo]],
    resources: Sequence[str],
) -> Admission:
    """Return whether the kubelet of `node` admits `pod`, and which pods it must end first.

    The usage of `node` already includes `pod`. During a resize, the included amounts may differ
    from the requests in the pod's spec. `find_others` returns the unfinished pods that the kubelet
    has admitted; it is called only if needed. `resources[column]` is the name of the resource in
    `column`.
    """
    rejection = _pressure_rejection(pod.pod, node.node)
    if rejection is not None:
        return Admission(rejection)
    # Pods that the kubelet has not admitted yet are counted too, so `has_room` may be False
    # although `pod` fits.
    has_room = len(node.pods) <= node.allowed_pods and all(
        node.requested_of(column) - _amount(pod, column) + requested <= node.allocatable_of(column)
        for column, requested in pod.shape.wanted
    )
    others = () if has_room and not pod.shape.host_ports else find_others()
    short = [] if has_room else list(_insufficient(pod, node, others, resources))
    failed = list(_failed_predicates(pod, node, others))
    if not is_critical(pod.pod):
        reasons = [*(one.rejection() for one in short), *failed]
        return Admission(reasons[0]) if reasons else ADMITTED
    if failed:
        return Admission(failed[0])
    return _preempt(pod, others, short) if short else ADMITTED


def _pressure_rejection(pod: Pod, node: Node) -> PodRejection | None:
    found = (condition(node, kind) for kind in _PRESSURES)
    pressures = [one.type for one in found if one is not None and one.status == "True"]
    if not pressures or is_critical(pod):
        return None
    if pressures == [_MEMORY_PRESSURE] and (
        qos_class_of(pod) != QOS_CLASSES[0] or is_tolerated(_MEMORY_TAINT, pod.spec.tolerations)
    ):
        return None
    return PodRejection(EVICTED, f"The node had condition: [{' '.join(pressures)}]. ")


def _insufficient(
    pod: PodInfo, node: NodeInfo, others: Sequence[PodInfo], resources: Sequence[str]
) -> Iterator[InsufficientResource]:
    """Yield each resource of `node` that does not suffice for `pod` and `others` together.

    An extended resource that the node does not list is ignored.
    """
    if len(others) + 1 > node.allowed_pods:
        yield InsufficientResource(_POD_COUNT, PODS, 1, len(others), node.allowed_pods)
    for column, requested in pod.shape.wanted:
        name, capacity = resources[column], node.allocatable_of(column)
        if is_extended_resource(name) and name not in node.node.status.allocatable:
            continue
        used = sum(_amount(other, column) for other in others)
        if requested > capacity - used:
            yield InsufficientResource(column, name, requested, used, capacity)


def _amount(pod: PodInfo, column: int) -> int:
    """Return how much of the resource in `column` the placed `pod` occupies."""
    if column == _POD_COUNT:
        return 1
    return next((amount for taken, amount in pod.shape.load if taken == column), 0)


def _failed_predicates(
    pod: PodInfo, node: NodeInfo, others: Iterable[PodInfo]
) -> Iterator[PodRejection]:
    spec = pod.pod.spec
    if not required_node_affinity_matches(spec, node.labels, node.name):
        yield _rejected_by(AFFINITY)
    ports = pod.shape.host_ports
    if ports and any(
        ports_conflict(port, used)
        for other in others
        for used in other.shape.host_ports
        for port in ports
    ):
        yield _rejected_by(PORTS)
    if find_untolerated(node.node.spec.taints, spec.tolerations, (NO_EXECUTE,)) is not None:
        yield _rejected_by(TAINTS)


def _rejected_by(predicate: tuple[str, str]) -> PodRejection:
    name, why = predicate
    return PodRejection(name, f"Predicate {name} failed: {why}")


# --- critical pods -------------------------------------------------------------------------------

Lacking = dict[int, int]
"""The amounts that a pod lacks, by resource column."""


def _preempt(
    pod: PodInfo, others: Sequence[PodInfo], short: Sequence[InsufficientResource]
) -> Admission:
    victims = find_victims(pod, others, {one.column: one.lacking for one in short})
    if victims is not None:
        return Admission(victims=tuple(one.pod for one in victims))
    found = "".join(f"(res: {one.name}, q: {one.lacking}), " for one in short)
    problem = f"no set of running pods found to reclaim resources: [{found}]"
    message = (
        "Unexpected error while attempting to recover from admission failure: preemption: error "
        f"finding a set of pods to preempt: {problem}"
    )
    return Admission(PodRejection(UNEXPECTED, message))


def find_victims(pod: PodInfo, others: Sequence[PodInfo], lacking: Lacking) -> list[PodInfo] | None:
    """Return the pods among `others` that must end so that the critical pod `pod` fits.

    `lacking` contains the missing amounts. Returns None if even the end of all less important pods
    would not free these amounts.
    """
    by_class: dict[str, list[PodInfo]] = {name: [] for name in QOS_CLASSES}
    for other in others:
        if _is_preemptable(pod.pod, other.pod):
            by_class[qos_class_of(other.pod)].append(other)
    best_effort, burstable, guaranteed = (by_class[name] for name in QOS_CLASSES)
    if _without(lacking, (*best_effort, *burstable, *guaranteed)):
        return None
    # First Guaranteed pods are chosen, to free only what all other pods cannot free. Then
    # Burstable pods are chosen, to free only what BestEffort pods and the chosen pods cannot free.
    last = _closest(guaranteed, _without(lacking, (*best_effort, *burstable)))
    middle = _closest(burstable, _without(lacking, (*best_effort, *last)))
    first = _closest(best_effort, _without(lacking, (*middle, *last)))
    return [*first, *middle, *last]


def _is_preemptable(pod: Pod, other: Pod) -> bool:
    return not is_critical(other) or (
        pod.spec.priority is not None
        and other.spec.priority is not None
        and pod.spec.priority > other.spec.priority
    )


def _without(lacking: Lacking, pods: Sequence[PodInfo]) -> Lacking:
    left = {
        column: amount - sum(_amount(pod, column) for pod in pods)
        for column, amount in lacking.items()
    }
    return {column: amount for column, amount in left.items() if amount > 0}


def _closest(pods: Sequence[PodInfo], lacking: Lacking) -> list[PodInfo]:
    """Return some of `pods` that together free `lacking`, chosen one after the other.

    All `pods` have the same QoS class. Each step chooses the pod with the smallest distance. If a
    pod ended, a share (0 to 1) of each amount in `lacking` would still be lacking. The distance of
    the pod is the sum of the squares of these shares. Among pods with equal distance, the pod with
    the smaller memory request is chosen, then the pod with the smaller cpu request.
    """
    left, chosen = list(pods), list[PodInfo]()
    while lacking:
        at = 0
        for i in range(1, len(left)):
            distance, best = _distance(left[i], lacking), _distance(left[at], lacking)
            if distance < best or (distance == best and _size(left[i]) <= _size(left[at])):
                at = i
        chosen.append(left[at])
        lacking = _without(lacking, (left[at],))
        # The last pod takes the place of the chosen pod, as in upstream. This affects later ties.
        left[at] = left[-1]
        left.pop()
    return chosen


def _distance(pod: PodInfo, lacking: Lacking) -> float:
    shares = ((amount - _amount(pod, column)) / amount for column, amount in lacking.items())
    return float_sum(share**2 for share in shares if share > 0)


def _size(pod: PodInfo) -> tuple[int, int]:
    return _amount(pod, MEMORY), _amount(pod, CPU)
