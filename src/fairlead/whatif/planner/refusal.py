"""Refusal: a reason why nodes refuse a pod, and the smallest change that would help."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import Final

from msgspec import Struct

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of, is_daemon_pod, is_static
from fairlead.api.quantity import whole_value
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.well_known_label import ZONE, is_virtual
from fairlead.apiserver.admission.plugins.limit_ranger import range_problems, without_own_amounts
from fairlead.apiserver.kind import HORIZONTAL_POD_AUTOSCALER, LIMIT_RANGE, POD
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.remedy.change import RemedyChange, deleting
from fairlead.engine.scheduling.remedy.resources import amounts_text, is_provided_by_devices
from fairlead.engine.scheduling.remedy.search import find_remedy
from fairlead.engine.scheduling.remedy.selector_correction import find_correction
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.planner.cluster_model import KUBELET, ClusterModel
from fairlead.whatif.planner.node.device_kind import DeviceKinds
from fairlead.whatif.planner.node.node_copy import copy_node, node_to_copy
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.snapshot.node_pool import node_traits

# The maximum number of nodes for which a change is searched; each search takes milliseconds.
REMEDIES_MAX: Final = 200
_BYTES_PER_GIB: Final = 1 << 30
# By (plugin, reason): (number of changes, shortage, text of the changes) of each remedy.
_Remedies = dict[tuple[str, str], list[tuple[int, float, str]]]
_COPIES_MAX: Final = 200  # maximum number of kinds of nodes of which a copy is tried


class Refusal(Struct, frozen=True):
    """A reason why some nodes refuse a pod."""

    # The plugin that gave the reason. "" if PreFilter plugins exclude the nodes (the reason names
    # these plugins), or if an extender refuses the nodes. "kubelet" if the scheduler lets the nodes
    # pass, but their kubelets refuse the pod.
    plugin: str
    reason: str
    nodes: int  # the number of nodes that refuse the pod for this reason
    # Describes the smallest change with which the pod would fit one of these nodes, or advises to
    # add a node like one of them, or says that no node is large enough. "" if no change was found,
    # or if no search was made.
    change: str


class NewNode(Struct, frozen=True):
    """The result of adding copies of the nodes `likes` for a pod that fits no existing node.

    The nodes are copied in turn.
    """

    likes: tuple[str, ...]  # () if no node is large enough for the pod
    # Why the copy of the first node refuses the pod; "" if the copy takes the pod.
    refusal: str = ""
    # The zone of the first node if no existing node in this zone takes pods, otherwise "".
    failed_zone: str = ""
    # How many copies are needed so that the pod gets a node even if other pending pods are placed
    # on the copies first (`explain.rival`).
    count: int = 1

    @property
    def like(self) -> str:
        """The name of the first node to copy; "" if no node is large enough."""
        return self.likes[0] if self.likes else ""

    def to_json(self) -> Json:
        """Return the new nodes as an object in the JSON of an explanation."""
        return {
            "like": self.like,
            "likes": list(self.likes),
            "refusal": self.refusal,
            "failed_zone": self.failed_zone,
            "count": self.count,
        }


def kept_pods_of(pod: PodInfo) -> Callable[[PodInfo], bool]:
    """Return a function that returns True for pods whose deletion would not help `pod`.

    Such pods are static pods, pods of DaemonSets, and pods of the same workload as `pod`. Pods that
    have a controller and a higher priority than `pod` are a fourth kind. After the deletion, a pod
    of any of these kinds would be created again, and take the same room.
    """
    workload = workload_of(pod.pod)

    def is_kept(other: PodInfo) -> bool:
        is_first = other.priority > pod.priority and controller_of(other.pod.metadata) is not None
        stays = is_daemon_pod(other.pod) or is_static(other.pod)
        return stays or is_first or workload_of(other.pod) == workload

    return is_kept


def within_limit_ranges(model: ClusterModel, pod: Pod) -> Callable[[Pod], bool]:
    """Return a function that returns whether the LimitRanges admit a changed copy of `pod`.

    A change that lowers a request can violate a minimum, or a ratio of limit to request. Violations
    that `pod` itself has do not count, because the change does not cause them.
    """
    ranges = list(model.store.storage.items(LIMIT_RANGE, pod.metadata.namespace))

    def violations(one: Pod) -> set[str]:
        value = as_json(one)
        found = (why for limits in ranges for why in range_problems(POD, value, limits))
        return set(map(without_own_amounts, found))

    own = violations(pod) if ranges else set()
    return lambda changed: not ranges or violations(changed) <= own


def find_new_node(model: ClusterModel, pod: PodInfo) -> NewNode | None:
    """Return which node to copy so that `pod` fits: the smallest node whose copy accepts the pod.

    The pod fits no existing node of `model`. Copies are in the zone of the original and run the
    pods of DaemonSets. Zones in which no node takes pods are tried last. If there are more than
    _COPIES_MAX kinds of nodes, only the largest are tried. If no copy accepts the pod either, the
    result is the last node that was tried, usually the largest. In this case, `refusal` is the
    reason why the copy of this last node refuses the pod. If all nodes are too small even without
    pods, no copy is tried, and the result names no node. Returns None for a cluster without nodes.
    """
    too_small = size_problem(model, pod)
    if too_small:
        return NewNode((), too_small)
    copied, working = _nodes_of_each_kind(model)
    copied.sort(key=lambda node: node.labels.get(ZONE, "") not in working)
    found = None
    for node in copied:
        zone = node.labels.get(ZONE, "")
        failed_zone = "" if zone in working else zone
        found = NewNode((node.name,), _refusal_of_copy(model, pod, node), failed_zone)
        if not found.refusal:
            break
    return found


def find_larger_node(model: ClusterModel, pod: PodInfo, name: str) -> str:
    """Return the largest node whose copy accepts `pod`, if it is larger than the node `name`.

    Two kinds of nodes do not count: those with more or fewer kinds of devices than `name`, and
    those in a zone in which no node takes pods. If there are more than _COPIES_MAX kinds of nodes,
    only the largest are tried. Returns "" if no larger node accepts `pod`.
    """
    copied, working = _nodes_of_each_kind(model)
    devices, *amounts, _ = _size(model.node(name))
    for node in sorted(copied, key=lambda one: _size(one)[:-1], reverse=True):
        devices_here, *amounts_here, _ = _size(node)
        is_larger = devices_here == devices and amounts_here > amounts
        is_tried = is_larger and node.labels.get(ZONE, "") in working
        if is_tried and not _refusal_of_copy(model, pod, node):
            return node.name
    return ""


def nodes_of_each_zone(model: ClusterModel, name: str) -> list[str]:
    """Return `name`, and from each other zone a node that differs from `name` only in the zone.

    Zones in which no node takes pods are left out, except the zone of `name`.
    """
    devices = DeviceKinds(model)
    original = model.node(name)
    kind = _kind_of(original, devices, has_zone=False)
    by_zone: dict[str, list[NodeInfo]] = defaultdict(list)
    for info in model.table.nodes():
        if takes_pods(info.node) and _kind_of(info, devices, has_zone=False) == kind:
            by_zone[info.labels.get(ZONE, "")].append(info)
    by_zone.pop(original.labels.get(ZONE, ""), None)
    return [name, *(node_to_copy(by_zone[zone]).name for zone in sorted(by_zone))]


def _nodes_of_each_kind(model: ClusterModel) -> tuple[list[NodeInfo], set[str]]:
    """Return one node to copy for each kind, smallest first, and the zones that take pods.

    The result contains only the _COPIES_MAX largest nodes. Virtual nodes are left out, because
    nobody adds a copy of them.
    """
    kinds: dict[Hashable, list[NodeInfo]] = defaultdict(list)
    working: set[str] = set()  # zones
    devices = DeviceKinds(model)
    for info in model.table.nodes():
        if is_virtual(info.labels):
            continue
        kinds[_kind_of(info, devices)].append(info)
        if takes_pods(info.node):
            working.add(info.labels.get(ZONE, ""))
    return sorted(map(node_to_copy, kinds.values()), key=_size)[-_COPIES_MAX:], working


def size_problem(model: ClusterModel, pod: PodInfo) -> str:
    """Return which requests of `pod` exceed the size of every node, as text; "" if no request does.

    The size of a node includes devices that cannot be allocated now, for example because the device
    plugin has stopped. A virtual node counts only if the pod tolerates its taints.
    """
    names = model.table.resources.names
    nodes = [
        one
        for one in model.table.nodes()
        if not is_virtual(one.labels) or _tolerates_taints(pod, one)
    ]
    if not nodes:
        return ""
    short = {
        names[c]: max(_size_of(one, c, names[c]) for one in nodes)
        for c, amount in pod.shape.wanted
        # In the usual case, one of the first nodes is large enough.
        if not any(_size_of(one, c, names[c]) >= amount for one in nodes)
        and not any(is_provided_by_devices(model.cluster, one, c) for one in nodes)
    }
    missing = [name for name, amount in short.items() if not amount]
    if missing:
        return f"no node has {' or '.join(missing)}"
    return f"no node is large enough; the largest has {amounts_text(short)}" if short else ""


def _tolerates_taints(pod: PodInfo, info: NodeInfo) -> bool:
    taints, tolerations = info.node.spec.taints, pod.pod.spec.tolerations
    return find_untolerated(taints, tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None


def _size_of(info: NodeInfo, column: int, resource: str) -> int:
    """Return how much of `resource` pods could use on an empty node."""
    capacity = info.node.status.capacity.get(resource)
    if capacity is None or not is_extended_resource(resource):
        return info.allocatable_of(column)
    return max(info.allocatable_of(column), whole_value(capacity))


def _kind_of(info: NodeInfo, devices: DeviceKinds, *, has_zone: bool = True) -> Hashable:
    """Return a key: copies of two nodes with the same key accept the same pods.

    If `has_zone` is False, this holds only for pods without rules about zones.
    """
    cpu, memory, _, *extended = info.allocatable
    # The memory of nodes of one instance type differs slightly.
    amounts = (cpu, memory // _BYTES_PER_GIB, tuple(extended), info.allowed_pods)
    zone = info.labels.get(ZONE, "") if has_zone else ""
    return node_traits(info.node), zone, amounts, devices.of(info.name)


def _size(info: NodeInfo) -> tuple[int, int, int, str]:
    """Return the sort key of a node: (number of kinds of devices, cpu, memory, name)."""
    cpu, memory, _, *devices = info.allocatable
    return sum(amount > 0 for amount in devices), cpu, memory, info.name


def _refusal_of_copy(model: ClusterModel, pod: PodInfo, node: NodeInfo) -> str:
    """Return the reason why a copy of `node` refuses `pod`; "" if the copy takes the pod."""
    with model.hypothesis():
        copy = copy_node(model, node, f"{node.name}-copy")
        copy.add_to(model)
        decision = model.schedule(pod)
        if isinstance(decision, Placement):
            return ""
        diagnosis = find_nodes_that_fit(model.profile_of(pod).plans, pod).diagnosis()
        row = model.node(copy.node.metadata.name).row
        return ", ".join(diagnosis.status_of(row).reasons) or decision.message


def shortage(pod: PodInfo, node: NodeInfo) -> float:
    """Return how much `node` lacks for `pod`, as the sum of the lacking fractions of the requests.

    The sum is 0 if the node has enough of all resources. The sum is 1 if the node lacks, for
    example, the whole cpu request, or half of the cpu and half of the memory request.
    """
    return float_sum(
        max(0, node.requested_of(column) + amount - node.allocatable_of(column)) / amount
        for column, amount in pod.shape.wanted
    )


def refusals_of(model: ClusterModel, pod: PodInfo, *, changes: bool = True) -> list[Refusal]:
    """Return the reasons why nodes refuse `pod` now, the reason of the most nodes first.

    If no node takes the pod and `changes` is set, the function also searches for changes that help.
    The `change` of a reason is then the smallest change that lets a node with this reason take the
    pod. The search covers at most REMEDIES_MAX of the nodes that can start pods: the nodes with the
    smallest `shortage` for the pod. If no change is found for any of the reasons, or only drastic
    changes (`RemedyChange`), a new node is tried (`find_new_node`). A drastic change is in the
    result only if nothing else helps. Controllers might create deleted pods again before `pod`
    could take their place. A deletion of such pods, too, is in the result only if nothing else
    helps. The text then says to scale down the workload of the deleted pods. If all nodes are too
    small for the pod, each `change` says so.
    """
    built = model.profile_of(pod)
    diagnosis = find_nodes_that_fit(built.plans, pod).diagnosis()
    counts = _refusals_by_kubelets(model, pod, diagnosis)
    for status, nodes in diagnosis.counts():
        for reason in status.reasons:
            counts[status.plugin, reason] += nodes
    remedies: _Remedies = defaultdict(list)
    drastic: _Remedies = defaultdict(list)
    fits_nowhere = sum(nodes for _, nodes in diagnosis.counts()) == model.table.count
    if changes and fits_nowhere:
        searched = [one for one in model.table.nodes() if takes_pods(one.node)]
        searched = sorted(searched, key=lambda one: shortage(pod, one))[:REMEDIES_MAX]
        is_kept, selector = kept_pods_of(pod), model.runtime_class_selector(pod.pod)
        admits = within_limit_ranges(model, pod.pod)
        correction = find_correction(pod.pod, (one.node for one in model.table.nodes()), selector)
        statuses = {node.name: diagnosis.status_of(node.row) for node in searched}
        for node in searched:
            status = statuses[node.name]
            remedy = find_remedy(
                built.framework, pod, node, status,
                keeps=is_kept, kept_selector=selector, correction=correction, admits=admits,
            )  # fmt: skip
            if remedy is not None:
                change = (
                    f"{node.name}: {', then '.join(_lasting(one, model) for one in remedy.changes)}"
                )
                found = len(remedy.changes), shortage(pod, node), change
                for reason in status.reasons:
                    is_last = remedy.is_drastic or any(map(_created_again, remedy.changes))
                    kind = drastic if is_last else remedies
                    kind[status.plugin, reason].append(found)
        new = None if remedies else find_new_node(model, pod)
        if new is not None and not new.refusal:
            status = diagnosis.status_of(model.node(new.like).row)
            for reason in status.reasons:
                remedies[status.plugin, reason].append((1, 0, f"add a node like {new.like}"))
        elif new is not None and not new.like:
            return [Refusal(*key, nodes, new.refusal) for key, nodes in _most_first(counts)]
        remedies = remedies or drastic
    return [
        Refusal(*key, nodes, min(remedies.get(key, ()), default=(0, 0, ""))[2])
        for key, nodes in _most_first(counts)
    ]


def _created_again(change: RemedyChange) -> list[PodInfo]:
    """Return the pods that `change` deletes, and that their controllers would create again."""
    return [
        pod
        for pod in change.without
        if not pod.terminating and controller_of(pod.pod.metadata) is not None
    ]


def _lasting(change: RemedyChange, model: ClusterModel) -> str:
    """Return the text of `change`; for pods that would be created again, say what ends them.

    A HorizontalPodAutoscaler may create such pods even after a scale-down; the text then names it.
    """
    again = _created_again(change)
    if not again:
        return change.what
    rest = tuple(pod for pod in change.without if pod not in again)
    parts = [deleting(rest).what] if rest else []
    owners: dict[WorkloadRef, list[str]] = defaultdict(list)
    for pod in again:
        owners[workload_of(pod.pod)].append(pod.key)
    for owner, keys in owners.items():
        pods, are = ("pod", "is") if len(keys) == 1 else ("pods", "are")
        until = f"until {pods} {', '.join(keys)} {are} gone"
        if not owner.is_permanent:
            parts.append(f"wait {until}")
            continue
        scaler = _autoscaler_of(owner, model)
        rest_of = f" (HorizontalPodAutoscaler {scaler} may scale it up again)" if scaler else ""
        parts.append(f"scale down {owner} {until}{rest_of}")
    return " and ".join(parts)


def _autoscaler_of(owner: WorkloadRef, model: ClusterModel) -> str:
    """Return the `namespace/name` of the HorizontalPodAutoscaler of `owner`; "" if it has none."""
    for one in model.store.storage.items(HORIZONTAL_POD_AUTOSCALER, owner.namespace):
        target = (one.get("spec") or {}).get("scaleTargetRef") or {}
        if (target.get("kind"), target.get("name")) == (owner.kind, owner.name):
            return f"{owner.namespace}/{one['metadata']['name']}"
    return ""


def _refusals_by_kubelets(
    model: ClusterModel, pod: PodInfo, diagnosis: Diagnosis
) -> Counter[tuple[str, str]]:
    """Count, by reason, the nodes that pass the filters, but whose kubelets refuse `pod`."""
    passed = (one.name for one in model.table.nodes() if diagnosis.status_of(one.row).is_success)
    reasons = (model.kubelet_refusal(pod, name) for name in passed)
    return Counter((KUBELET, reason) for reason in reasons if reason)


def _most_first(counts: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
