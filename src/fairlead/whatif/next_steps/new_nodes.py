"""NewNodes: how many copies of which existing node would hold the waiting pods.

A node is suitable if each of the waiting pods would fit on a copy that runs only static pods and
pods of DaemonSets. Nodes that run pods of the same workloads are preferred, because their labels
and taints admit these pods. Any other node is suitable only if two conditions hold. First, no rule,
such as affinity, rejected a waiting pod. Second, the node has no taints, or the waiting pods
tolerate its taints. If all schedulable nodes rejected the pods only for lack of room, the pods
tolerate the taints of these nodes. If a rule rejected pods of several workloads, nodes that run
pods of more of these workloads are preferred. The smallest suitable node is copied, from the
preferred nodes if one of them is suitable. If pods wait for devices, and several nodes have this
size, the node with the most pods of the same workloads is copied, because pods of other workloads
use fewer of the node's devices. But waiting pods may have been evicted from larger nodes. The
largest suitable node among these is copied if it is equally preferred, and if fewer copies of it
are enough.

The pods are placed on the copies, largest pods first, each on the first copy that has room for it.
This is an estimate that uses only requests; a what-if with the new nodes is exact.

For pods that wait for devices (DRA), the copied node must run pods of their workloads. Each copy
has the same devices as the node. Each waiting pod needs as many devices as a running pod of its
workload holds. If the running pods hold different numbers, the smallest number counts.

If the pods of a workload repel each other (anti-affinity), the number of these pods on a copy is
the largest number of them that one node runs now. This number is 1 if the rule is about nodes. The
number is found in the same way for pods that use the same host port, and for pods that wait because
nodes can attach no further volume.

    3 pods of 2 CPU wait, and a node of 4 CPU is full               ->   2 nodes like that node
    3 pods wait for a GPU each, and a node with 2 GPUs runs others  ->   2 nodes like that node
    3 pods repel each other, or need the same host port             ->   3 nodes
    6 pods of 2 CPU wait, and the node that they left has 16 CPU    ->   1 node like that node
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from fairlead.api.resource_name import is_extended_resource
from fairlead.api.text.name_list import joined, listed
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import (
    NOT_ENOUGH,
    NOT_ON_THIS_NODE,
)
from fairlead.engine.plugins.inter_pod_affinity.filter import (
    NOT_ATTRACTED,
    REPELLED,
    REPELLED_BY_EXISTING,
)
from fairlead.engine.plugins.inter_pod_affinity.filter import STATUSES as STATUSES_OF_AFFINITY
from fairlead.engine.plugins.node_affinity import MISMATCH
from fairlead.engine.plugins.node_ports import CONFLICT
from fairlead.engine.plugins.node_resources.fit import INSUFFICIENT, TOO_MANY_PODS
from fairlead.engine.plugins.node_unschedulable import UNSCHEDULABLE
from fairlead.engine.plugins.node_volume_limits.plugin import TOO_MANY
from fairlead.engine.plugins.pod_topology_spread.filter import SPREAD_MISMATCH
from fairlead.engine.plugins.volume_binding.node_volumes import NODE_CONFLICT, STATUSES
from fairlead.engine.plugins.volume_restrictions import CLAIM_IN_USE
from fairlead.whatif.change.new_node import models_of
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.scheduling_message import is_about_nodes, reasons_of
from fairlead.whatif.outcome.workload import WorkloadRef

Amounts = Mapping[str, int]
Name = TypeVar("Name")
_LACKS_ROOM: Final = (INSUFFICIENT, TOO_MANY_PODS)
# Anti-affinity of the pending pod itself, and of the pods on a node.
_REPELLED: Final = STATUSES_OF_AFFINITY[REPELLED].message
_REPELLED_BY_EXISTING: Final = STATUSES_OF_AFFINITY[REPELLED_BY_EXISTING].message
# The reasons of nodes whose pods allow only few pods of a workload there, or no further one.
_FEW_PER_NODE: Final = (_REPELLED, CONFLICT.message, TOO_MANY.message)
# A resource of the estimate: a pod that waits for devices needs 1, and only nodes that run pods of
# such workloads have it.
_DEVICES: Final = "devices"
_UNLIMITED: Final = 1 << 62
# The beginning of the reasons that node affinity, pod affinity, topology spread, host ports and
# the node affinity of volumes give.
RULED_OUT: Final = "node(s) didn't "
# Messages that a caller may ignore, see `new_nodes_for`.
SPREAD: Final = SPREAD_MISMATCH
APART: Final = _REPELLED
# The message about required affinity to other pods.
TOGETHER: Final = STATUSES_OF_AFFINITY[NOT_ATTRACTED].message
# Two reasons that depend only on the labels of a node, and the reason for cordoned nodes.
_BY_LABEL: Final = frozenset(
    {MISMATCH.message, STATUSES[NODE_CONFLICT].message, UNSCHEDULABLE.message}
)


class NewNodes(Struct, frozen=True):
    """A number of new nodes: `count` nodes like the node `like`.

    `like` is a value of --like, so it may also name several nodes, which are copied in turn. With
    fewer than `least` nodes, the pods cannot all run.
    """

    count: int
    like: str
    least: int = 1

    @property
    def copies(self) -> dict[str, int]:
        """The number of copies of each node."""
        names = models_of(self.like)
        turns = Counter(names[number % len(names)] for number in range(self.count))
        return {name: turns[name] for name in names}

    @property
    def words(self) -> str:
        """The new nodes as text, such as `2 more nodes like a, b`."""
        copies = self.copies
        if len({*copies.values()}) == 1 and len(copies) == len(models_of(self.like)):
            return f"{_more_nodes(self.count)} like {listed(list(copies))}"
        return words_of_copies(copies)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a what-if that adds these nodes."""
        return "--add-nodes", str(self.count), "--like", self.like


def words_of_copies(copies: Mapping[str, int]) -> str:
    """Return text such as `2 more nodes like a and one more node like b`."""
    return joined(f"{_more_nodes(count)} like {name}" for name, count in copies.items())


def _more_nodes(count: int) -> str:
    return "one more node" if count == 1 else f"{count:,} more nodes"


def new_nodes_for(  # noqa: PLR0913 - the pods, the nodes, and what is known about them
    pending: Iterable[PodEnd],
    nodes: Iterable[NodeEnd],
    known: Iterable[NodeEnd] = (),
    *,
    left: Collection[str] = (),
    ignored: Collection[str] = (),
    admits: bool = False,
    suit: bool = False,
) -> NewNodes | None:
    """Return the new nodes that would hold the `pending` pods; None if no node is suitable.

    The new nodes are copies of one of `nodes`. Nodes that run pods of the same workloads are
    preferred. Any other node is suitable only if the `pending` pods are known to tolerate its
    taints, and if no `pending` pod waits because of a rule, such as affinity. `known` are the nodes
    at the end of another run. A node is preferred if it runs such pods in either run. `left`
    contains the names of nodes that `pending` pods had to leave. A rule whose message is in
    `ignored` does not exclude nodes. For example, callers that try a zone without pods of these
    workloads pass the messages SPREAD and APART. `admits` is set if the caller knows that labels
    and taints of `nodes` admit the pods. `suit` is set if the caller knows that no rule and no
    taint keeps the pods off copies of `nodes`.
    """
    nodes, pending = list(nodes), list(pending)
    if not pending:
        return None
    waiting = {pod.workload for pod in pending if _waits_for_devices(pod)}
    held = _devices_held(waiting, (*nodes, *known))
    needs = sorted((_needs(pod, held) for pod in pending), key=_size, reverse=True)
    known_to_fit = _pods_by_node({pod.workload for pod in pending}, (*nodes, *known))
    with_devices = _pods_by_node(waiting, (*nodes, *known))
    kept_apart = {pod.workload for pod in pending if _is_kept_apart(pod)}
    apart = _most_together(kept_apart, (*nodes, *known))
    largest = _largest(needs)
    met = (*ignored, MISMATCH.message) if admits else ignored
    ruled_out = {pod.workload for pod in pending if _is_ruled_out(pod, met)}
    admitted = Counter[str]()  # the number of these workloads of which each node runs pods
    for node in (*nodes, *known) if ruled_out else ():
        count = len(ruled_out.intersection(pod.workload for pod in node.pods))
        admitted[node.name] = max(admitted[node.name], count)
    runs: dict[str, list[NodeEnd]] = {}
    for node in (*nodes, *known):
        runs.setdefault(node.name, []).append(node)
    lack_only_room = all(map(_lacks_only_room, pending))

    def is_open(node: NodeEnd) -> bool:
        return not node.is_tainted or admits or (lack_only_room and node.is_schedulable)

    rooms = [
        (node.name, {**node.empty_room, **_device_room(runs[node.name], held), **apart})
        for node in nodes
        if suit or node.name in known_to_fit or (is_open(node) and not ruled_out)
    ]
    suitable = [(name, room) for name, room in rooms if fits(largest, room)]
    if not suitable:
        return None

    def rank(name: str) -> tuple[int, bool]:
        return -admitted[name], name not in known_to_fit

    suitable.sort(key=lambda one: (rank(one[0]), _size(one[1]), -with_devices[one[0]], one[0]))
    smallest = suitable[0]
    equal = [one for one in suitable if one[0] in left and rank(one[0]) == rank(smallest[0])]
    largest_left = max(equal, key=lambda one: _size(one[1]), default=smallest)
    found = [NewNodes(_copies(needs, room), name) for name, room in (smallest, largest_left)]
    return min(found, key=lambda one: one.count)


def _lacks_only_room(pod: PodEnd) -> bool:
    """Return whether every schedulable node rejected `pod` only for lack of resources."""
    return all(
        reason.startswith(_LACKS_ROOM) or reason == UNSCHEDULABLE.message
        for reason in reasons_of(pod.reason)
    )


def _is_ruled_out(pod: PodEnd, ignored: Iterable[str]) -> bool:
    """Return whether a rule keeps `pod` off a node; `ignored` are messages that do not count."""
    reason = pod.reason
    for message in ignored:
        reason = reason.replace(message, "")
    return RULED_OUT in reason


def least_copies(pending: Iterable[PodEnd], like: NodeEnd, nodes: Iterable[NodeEnd]) -> int:
    """Return a lower bound of the number of copies of `like` that let all `pending` pods run.

    `nodes` are the present nodes. The pods must fit into the free room of the schedulable nodes and
    the copies, in two respects: the sum of their requests, and their number. For the check of the
    number, each pod is assumed to request only the smallest amount of each resource that any of the
    pods requests. The bound ignores that rules may keep pods off nodes. The bound is at least 1.

    For example, 3 pods with 2 cores each need 3 copies with 3 cores, because each copy holds only
    one of them. The sum of their requests would fit into 2 copies.
    """
    pending, nodes = list(pending), list(nodes)
    requests, room = [_with_pod(pod.requests) for pod in pending], like.empty_room
    offered = _offered(requests, room)
    smallest = {name: min(one.get(name, 0) for one in requests) for name in offered}
    waiting = len(requests)
    for node in nodes:
        if node.is_schedulable:
            waiting -= _times(smallest, free_room(node))
    by_number = -(-waiting // max(_times(smallest, room), 1))
    return max(by_number, least_by_sum(pending, like, nodes))


def least_by_sum(pending: Iterable[PodEnd], like: NodeEnd, nodes: Iterable[NodeEnd]) -> int:
    """Return the lower bound that follows from the sum of the requests; see `least_copies`.

    The bound is 1 if `pending` is empty. The bound also holds for a run in which the present pods
    are on other nodes, because the sum of the free room is then the same. Only the number of whole
    pods that fit may differ.
    """
    requests, room = [_with_pod(pod.requests) for pod in pending], like.empty_room
    offered = _offered(requests, room)
    lacking = {name: sum(one.get(name, 0) for one in requests) for name in offered}
    for node in nodes:
        if node.is_schedulable:
            free = free_room(node)
            for name in offered:
                lacking[name] -= max(free[name], 0)
    return max([1, *(-(-lacking[name] // room[name]) for name in offered)])


def _offered(requests: Iterable[Amounts], room: Amounts) -> list[str]:
    """Return the requested resources of which a copy with `room` has a positive amount.

    A copy may offer other resources as devices. Such resources have no allocatable amount.
    """
    names = dict.fromkeys(name for one in requests for name in one)
    return [name for name in names if room.get(name, 0) > 0]


def _times(need: Amounts, room: Amounts) -> int:
    """Return how often `need`, which has a positive amount, fits into `room`."""
    return max(0, min(room.get(name, 0) // amount for name, amount in need.items() if amount))


def lacks_room(pod: PodEnd) -> bool:
    """Return whether a node rejected `pod` for lack of resources or devices.

    The result is False if a new node cannot help, as for a pod of a DaemonSet.
    """
    return _accepts_new_node(pod) and (_lacks_resources(pod) or _waits_for_devices(pod))


def lacks_place(pod: PodEnd) -> bool:
    """Return whether the pods of a node keep `pod` off the node, so that a new node may help.

    Such pods repel `pod` (anti-affinity), use its host ports, or use all volumes that the node can
    attach.
    """
    by_existing = _REPELLED_BY_EXISTING in pod.reason
    return _accepts_new_node(pod) and (by_existing or _is_kept_apart(pod))


def may_use_new_node(pod: PodEnd) -> bool:
    """Return whether the reasons why nodes reject `pod` show that a new node may help."""
    return lacks_room(pod) or lacks_place(pod)


def lacks_labels(pod: PodEnd) -> bool:
    """Return whether only labels, volumes and cordons keep `pod` off the nodes.

    A copy of a cordoned node may then take the pod.
    """
    return _accepts_new_node(pod) and _BY_LABEL.issuperset(reasons_of(pod.reason))


def repels_pods_itself(pod: PodEnd) -> bool:
    """Return whether the pod's own anti-affinity is the only cause why `pod` lacks a place."""
    others = (_REPELLED_BY_EXISTING, CONFLICT.message, TOO_MANY.message)
    return _REPELLED in pod.reason and not any(one in pod.reason for one in others)


def _lacks_resources(pod: PodEnd) -> bool:
    return any(one in pod.reason for one in _LACKS_ROOM)


def _waits_for_devices(pod: PodEnd) -> bool:
    return NOT_ENOUGH in pod.reason


def _is_kept_apart(pod: PodEnd) -> bool:
    return any(one in pod.reason for one in _FEW_PER_NODE)


def _accepts_new_node(pod: PodEnd) -> bool:
    """Return whether a new node may be a place for the pending `pod`.

    A new node helps no static pod, and no pod of a DaemonSet. A new node helps no pod that waits
    for a ReadWriteOncePod claim in use, or whose ResourceClaim has devices of another node. A new
    node also helps no pod that waits for something else than a node, such as a missing claim or
    room in a queue.
    """
    is_held = any(one in pod.reason for one in (CLAIM_IN_USE.message, NOT_ON_THIS_NODE))
    return is_about_nodes(pod.reason) and not (pod.belongs_to_node or is_held)


def node_to_copy(
    pending: Iterable[PodEnd], left: Mapping[str, str], nodes: Iterable[NodeEnd]
) -> NodeEnd | None:
    """Return the node to copy for `pending` pods that fit only the node that they left.

    `left` maps the key (`namespace/name`) of each pod to the node that the pod left. A copy of that
    node may help the pod if both of the following are true:

    - More room on other nodes would not be enough. Either a rule, such as affinity or topology
      spread, keeps the pod off other nodes, or no node rejects the pod for lack of room.
    - The present nodes with the same labels as that node do not help. Either no other schedulable
      node has these labels, or a node rejects the pod for a reason other than labels, volumes or a
      cordon.

    If copies of several of `nodes` may help, the node whose copy may help the most pods is
    returned. Return None if no copy helps.
    """
    by_name = {node.name: node for node in nodes}
    alike = Counter(_labels(node) for node in by_name.values() if _takes_pods(node))
    found: Counter[str] = Counter()
    for pod in pending:
        old_node = by_name.get(left.get(pod.key, ""))
        if old_node is None or not _accepts_new_node(pod):
            continue
        if _lacks_resources(pod) and RULED_OUT not in pod.reason:
            continue
        others = alike[_labels(old_node)] - _takes_pods(old_node)
        if not others or not _BY_LABEL.issuperset(reasons_of(pod.reason)):
            found[old_node.name] += 1
    name = min(found, key=lambda one: (-found[one], one), default=None)
    return None if name is None else by_name[name]


def _takes_pods(node: NodeEnd) -> bool:
    return node.is_ready and not node.unschedulable


def are_alike(one: NodeEnd, other: NodeEnd) -> bool:
    """Return whether copies of `one` have the same labels as copies of `other`."""
    return _labels(one) == _labels(other)


def _labels(node: NodeEnd) -> frozenset[tuple[str, str]]:
    """Return the labels that copies of `node` also have: all except the hostname."""
    return frozenset(one for one in node.labels.items() if one[0] != HOSTNAME)


def _pods_by_node(workloads: Collection[WorkloadRef], nodes: Iterable[NodeEnd]) -> Counter[str]:
    """Return how many pods of `workloads` each node runs; nodes without such pods are left out.

    `nodes` can contain a node several times, once for each run. The largest number then counts.
    """
    found: Counter[str] = Counter()
    # A node without changes in both runs is one object in both outcomes.
    for node in {id(node): node for node in nodes}.values() if workloads else ():
        if count := sum(pod.workload in workloads for pod in node.pods):
            found[node.name] = max(found[node.name], count)
    return found


def _most_together(workloads: Collection[WorkloadRef], nodes: Iterable[NodeEnd]) -> dict[str, int]:
    """Return, for each workload, the largest number of its pods on one node, but at least 1."""
    counts = (Counter(pod.workload for pod in node.pods) for node in nodes if workloads)
    most = _largest(counts)
    return {str(workload): max(1, most.get(workload, 0)) for workload in workloads}


def _largest(needs: Iterable[Mapping[Name, int]]) -> Mapping[Name, int]:
    """Return the highest amount of each resource."""
    largest: Counter[Name] = Counter()
    for need in needs:
        largest |= Counter(need)
    return largest


def _devices_held(
    workloads: Collection[WorkloadRef], nodes: Iterable[NodeEnd]
) -> dict[WorkloadRef, Amounts]:
    """Return, for each of `workloads`, the smallest number of devices that one of its pods holds.

    Devices of each kind are counted separately. Only pods on `nodes` that hold devices count. The
    value is {} for a workload without such pods.
    """
    found: dict[WorkloadRef, Counter[str]] = {}
    for node in nodes if workloads else ():
        for pod in node.pods:
            if pod.devices and pod.workload in workloads:
                own = Counter(pod.devices)
                found[pod.workload] = own & found.get(pod.workload, own)
    return {workload: found.get(workload, {}) for workload in workloads}


def _device_room(runs: Sequence[NodeEnd], held: Mapping[WorkloadRef, Amounts]) -> Amounts:
    """Return how many devices a copy of a node has for the pods of the workloads in `held`.

    `runs` contains the node as it is at the end of each run. The result is {} if no pods of these
    workloads use devices or extended resources of the node. A device that several pods share counts
    once for each of them. A node can offer an extended resource in two ways: as devices, or as an
    allocatable amount. If the pods of the workloads use the resource in only one of these ways, the
    amount that the node offers in the other way does not limit them.
    """
    if not held:  # the usual case
        return {}
    offered = runs[0].allocatable
    own = [pod for node in runs for pod in node.pods if pod.workload in held]
    if not any(pod.devices or _uses_listed_devices(pod, offered) for pod in own):
        return {}
    room: dict[str, int] = {_DEVICES: _UNLIMITED}
    for node in runs:
        in_use, kept = Counter[str](), Counter[str]()
        for pod in node.pods:
            in_use.update(pod.devices)
            kept.update(pod.devices if pod.belongs_to_node else ())
        for name, count in in_use.items():
            free = max(count, node.allocatable.get(name, 0)) - kept[name]
            room[name] = max(room.get(name, 0), free)
    for name in {name for amounts in held.values() for name in amounts}:
        room.setdefault(name, _UNLIMITED)
    provided = (name for pod in own if pod.devices for name in pod.requests)
    return {**room, **{name: _UNLIMITED for name in provided if not offered.get(name)}}


def _uses_listed_devices(pod: PodEnd, offered: Amounts) -> bool:
    return any(is_extended_resource(name) and offered.get(name) for name in pod.requests)


def _needs(pod: PodEnd, held: Mapping[WorkloadRef, Amounts]) -> Amounts:
    """Return the amounts that `pod` needs of a node.

    If `pod` waits for devices, it needs the devices that `held` contains for its workload. Each
    running pod of the workload holds at least these devices.
    """
    own = {str(pod.workload): 1} if _is_kept_apart(pod) else {}
    devices = {_DEVICES: 1, **held[pod.workload]} if _waits_for_devices(pod) else {}
    return {**_with_pod(pod.requests), **devices, **own}


def _with_pod(requests: Amounts) -> Amounts:
    return {**requests, "pods": 1}


def free_room(node: NodeEnd) -> Counter[str]:
    """Return the allocatable amounts of `node` minus the requests of all its pods."""
    free = Counter(node.allocatable)
    free.subtract({**node.requested, "pods": len(node.pods)})
    return free


def fits(need: Amounts, room: Amounts) -> bool:
    """Return whether a pod that needs the amounts `need` fits into `room`."""
    return all(amount <= room.get(name, 0) for name, amount in need.items() if amount)


def _size(amounts: Amounts) -> tuple[int, int]:
    return amounts.get("cpu", 0), amounts.get("memory", 0)


def _copies(needs: Sequence[Amounts], room: Amounts) -> int:
    """Return how many nodes with `room` the first-fit rule uses for pods with `needs`."""
    nodes: list[Counter[str]] = []
    for need in needs:
        node = next((one for one in nodes if fits(need, one)), None)
        if node is None:
            nodes.append(node := Counter(room))
        node.subtract(need)
    return len(nodes)
