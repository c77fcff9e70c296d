"""Explains a node: its pods, the pods that could run elsewhere, and the obstacles to a drain.

The explanation also lists what keeps an autoscaler from removing the node (`removal_table`).

Each pod is tested alone, while all other pods stay. The node is cordoned, the pod is removed, and
the scheduler places a replacement. If the replacement fits no node, preemption is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from fairlead.api.nodes.autoscaler_taint import DELETION_CANDIDATE, DISRUPTED_TAINT, TO_BE_DELETED
from fairlead.api.nodes.readiness import TRUE, UNKNOWN, is_ready_node, ready_condition, ready_status
from fairlead.api.nodes.taint import OUT_OF_SERVICE, taint_text
from fairlead.api.objects import Node, NodeCondition
from fairlead.api.pods.facts import (
    controller_of,
    is_daemon_pod,
    is_guard,
    is_static,
    is_terminating,
)
from fairlead.api.pods.requests import CPU, MEMORY, pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.plugins.dynamic_resources.device_search import is_repelled
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.devices.device_pools import PoolDevice
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.change.kubectl_drain import needed_flags
from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, unsimulated_in_plan
from fairlead.whatif.explain.node_removal import removal_table
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import is_leaving, moves_with_drain
from fairlead.whatif.planner.node.drain_exemption import drain_exemption
from fairlead.whatif.planner.node_drain.drain_plan import flag_findings
from fairlead.whatif.planner.node_drain.drain_planner import (
    KEPT,
    UNPLACED,
    BlockCause,
    Blocker,
    DrainPlanner,
    PlannedDrain,
    first_in_words,
)
from fairlead.whatif.planner.node_drain.shared_claim import SharedClaims
from fairlead.whatif.planner.node_drain.single_drain import (
    failure_in_words,
    moves_in_words,
    negative_in_words,
    refusal_in_words,
)
from fairlead.whatif.planner.node_drain.unplaced_pod import unplaced_blockers
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.run.capacity.device_use import devices_of
from fairlead.whatif.snapshot.node_lifecycle.leaving_node import STOPPED_BY_PROVIDER
from fairlead.whatif.snapshot.node_pool import awaits_agent, is_lasting_taint, with_all_devices
from fairlead.whatif.snapshot.snapshot import Snapshot

_POD_COLUMNS: Final = (
    ResultColumn("pod", "pod", NAME),
    ResultColumn("priority", "priority", NUMBER, rank=2),
    ResultColumn("cpu", "cpu", rank=1),
    ResultColumn("memory", "memory", rank=1),
    ResultColumn("leaves", "can it move alone?"),
    ResultColumn("drained_to", "goes to in a drain", NAME),
)
_BLOCKER_COLUMNS: Final = (
    ResultColumn("pod", "pod", NAME),
    ResultColumn("pending", "pending", NUMBER),
    ResultColumn("owner", "who decides", NAME, rank=1),
    ResultColumn("why", "why"),
)
_EDIT_COLUMNS: Final = (ResultColumn("edit", "what would help"),)
# upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:
# nodeConditionToTaintKeyStatusMap
_TAINTED_CONDITIONS: Final = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_REMOVED_BY: Final = {
    TO_BE_DELETED: "Cluster Autoscaler is removing it: no new pods are placed on it "
    f"(taint {TO_BE_DELETED}).",
    DELETION_CANDIDATE: f"Cluster Autoscaler may remove it soon (taint {DELETION_CANDIDATE}).",
    DISRUPTED_TAINT: "Karpenter is removing it: no new pods are placed on it "
    f"(taint {DISRUPTED_TAINT}).",
    **{
        key: f"The cloud provider is about to stop its machine (taint {key})."
        for key in sorted(STOPPED_BY_PROVIDER)
    },
}
_GONE: Final = "yes, but it is gone for good: no controller creates it again"
_RETURNS: Final = "no: comes back, may run on cordoned nodes"
_FAILS: Final = "yes, but its Job fails, because the evicted pod counts as a failure"
_BACK: Final = "yes; OpenShift creates it again when the node returns to service"
_LIMITS: Final = (
    "This answer checks only budgets, room and Jobs. fairlead drain-plan {dump} --nodes {name} "
    "also simulates what the controllers do with the evicted pods."
)
_STAYS_SO: Final = (
    "fairlead whatif {dump} --fail-node {name} compares two cases: the node stays so, with the "
    "evictions that follow, or it returns now."
)


def explain_node(
    planner: DrainPlanner,
    name: str,
    snapshot: Snapshot,
    in_dump: AbstractSet[str],
    preempted: AbstractSet[str],
) -> TabularAnswer:
    """Return the explanation of the node `name` of `snapshot`.

    `in_dump` has the keys of the node's pods in the dump. In the planner's cluster model, waiting
    pods are already placed, and the pods that they preempt are removed. `preempted` has the keys of
    the pods that were removed from this node. The model is unchanged afterwards.
    """
    info = planner.model.node(name)
    pods = sorted(info.pods.values(), key=lambda pod: (-pod.priority, pod.key))
    refused = planner.refusals(name)
    with planner.model.hypothesis():
        emptied = planner.empty(name)
    unplaced = unplaced_blockers(planner, emptied) if isinstance(emptied, Blocker) else []
    blockers = [*refused, *unplaced]
    blocked = {one.pod: one for one in reversed(refused)}  # the first blocker of each pod
    pending = _pending(planner, name) if unplaced else {}
    targets = _targets(emptied) if not blockers else {}
    rows = [
        {
            "pod": pod.key,
            "workload": str(workload_of(pod.pod)),
            "priority": pod.priority,
            "cpu": f"{requested.get(CPU, 0):,}m",
            "memory": f"{requested.get(MEMORY, 0) >> 20:,}Mi",
            "leaves": _leaves(planner, name, pod, blocked.get(pod.key)),
            "drained_to": targets.get(pod.key),
        }
        for pod in pods
        for requested in [pod_requests(pod.pod, existing=True)]
    ]
    notes: tuple[str, ...] = ()
    if any(one.cause in UNPLACED for one in blockers):
        notes = unsimulated_in_plan(snapshot.manifests, ADDS_NODES)
    elif not blockers and _has_moves(emptied):
        notes = (_LIMITS.format(name=name, dump=snapshot.words),)
    if not is_ready_node(info.node):
        notes = (*notes, _STAYS_SO.format(name=name, dump=snapshot.words))
    edits = list(dict.fromkeys(one.edit for one in blockers if one.edit))
    # The state of a node that is not Ready is more important than whether it can be drained.
    first = [*_unready(info.node), _verdict(name, emptied, refused, unplaced, pending)]
    return TabularAnswer(
        kind="NodeExplanation",
        source=snapshot.source,
        verdict=first[0],
        findings=(
            *first[1:],
            *_state(info.node),
            *_leaving(info.node, pods),
            _usage(info.node, pods),
            *_placed_first(name, pods, in_dump),
            *_preempted_first(preempted),
            *_device_findings(info.node, planner.model.cluster),
            *flag_findings(needed_flags(pod.pod for pod in pods)),
        ),
        tables=(
            ResultTable("blockers", f"what blocks a drain of {name}", _BLOCKER_COLUMNS,
                      [_blocker_row(one, pending) for one in blockers]),
            ResultTable("edits", "changes that would help", _EDIT_COLUMNS,
                      [{"edit": edit} for edit in edits], shown=3, has_remedies=True),
            removal_table(planner.model, info.node, [pod.pod for pod in pods], snapshot),
            ResultTable("pods", f"pods on {name}", _POD_COLUMNS, rows, shown=25),
        ),
        facts={"node": name, "can_be_drained": not blockers},
        notes=notes,
    )  # fmt: skip


def _targets(emptied: PlannedDrain | Blocker) -> dict[str, str]:
    """Return the node on which the replacement of each pod is placed in the drain `emptied`.

    Pods without a replacement are left out, and also pods whose replacement waits until the drained
    node returns.
    """
    if isinstance(emptied, Blocker):
        return {}
    return {one.pod: one.target for one in emptied.moves if one.pod not in emptied.waits}


def _has_moves(emptied: PlannedDrain | Blocker) -> bool:
    return isinstance(emptied, PlannedDrain) and bool(emptied.moves or emptied.pending)


def _verdict(
    name: str,
    emptied: PlannedDrain | Blocker,
    refused: Sequence[Blocker],
    unplaced: Sequence[Blocker],
    pending: Mapping[str, Sequence[str]],
) -> str:
    if refused and refused[0].cause is BlockCause.SILENT:
        return f"{name} cannot be drained now: {refused[0].why}."
    if refused and refused[0].cause in KEPT:
        return f"{name} cannot be drained now: {refused[0].owner} {refused[0].why}."
    if refused:
        owners = sorted({one.owner for one in refused})
        more = f" and {len(owners) - 1} more" if len(owners) > 1 else ""
        verb = "refuse" if more else "refuses"
        pods = counted(len({one.pod for one in refused}), "pod")
        return f"{name} cannot be drained now: {owners[0]}{more} {verb} the eviction of {pods}."
    if isinstance(emptied, Blocker):
        return _pending_after_drain(name, unplaced, pending)
    if not emptied.leaving:
        return f"{name} can be drained: no pod on it has to move."
    provided = ""
    if emptied.first:
        provided = f" if you evict {first_in_words(emptied.first)}"
    moves = ""
    if emptied.moves:
        # With lost or failing pods, the pods that move are not all pods that leave the node.
        its = "its " if emptied.leaving == len(emptied.moves) else ""
        moves = f": {its}{moves_in_words(emptied.moves)}"
    harm = " and ".join(_harm(emptied))
    return f"{name} can be drained{provided}{moves}{f', but {harm}' if harm else ''}."


def _pending(planner: DrainPlanner, name: str) -> dict[str, list[str]]:
    """Return the pods that fit on no node after a drain of `name`, by workload.

    The pods are placed in the order of the scheduling queue, as in a real drain.
    """
    with planner.model.hypothesis():
        pods = planner.evicted(name)
        planner.clear(name, pods)
        _, left = planner.place(name, planner.replaced(pods))
    found: dict[str, list[str]] = {}
    for one in left:
        found.setdefault(one.workload, []).append(one.pod.key)
    return found


def _pending_after_drain(
    name: str, unplaced: Sequence[Blocker], pending: Mapping[str, Sequence[str]]
) -> str:
    """Return the sentence that the pods of `unplaced` fit on no node after a drain of `name`.

    `pending` has all these pods, by workload (`_pending`). Some workloads in `unplaced` may be
    missing in `pending`. The pods of such a workload fit, but only because the pods of another
    workload in `unplaced` do not fit.
    """
    stuck = [one for one in unplaced if one.workload in pending] or list(unplaced)
    counts = [len(pending.get(one.workload, ())) or 1 for one in stuck]
    names = listed(
        [
            one.pod if count == 1 else f"{count:,} pods of {one.workload}"
            for one, count in zip(stuck, counts, strict=True)
        ]
    )
    preempting = sum(one.preempts for one in stuck)
    if len(stuck) == 1:
        why = stuck[0].why
        if preempting:
            fit = "fits" if counts == [1] else "fit"
            return f"After a drain of {name}, {names} {fit} on no node: {why}."
        return f"A drain of {name} would leave {names} pending: {why}."
    which_pods = f"{sum(counts):,} pods of {len(stuck):,} workloads"
    if not preempting:
        return f"A drain of {name} leaves {which_pods} pending: {names}."
    which = "They" if preempting == len(stuck) else f"Those of {counted(preempting, 'workload')}"
    return (
        f"After a drain of {name}, {which_pods} fit on no node: {names}. "
        f"{which} would preempt pods of lower priority."
    )


def _harm(drain: PlannedDrain) -> Iterator[str]:
    """Yield a clause for each kind of harm that `drain` does."""
    if drain.lost:
        is_ = "is" if len(drain.lost) == 1 else "are"
        yield f"{counted(len(drain.lost), 'pod')} without a controller {is_} gone for good"
    if drain.failing:
        yield failure_in_words(sorted(set(drain.failing.values())))
    if drain.refused:
        yield refusal_in_words(drain)
    yield from negative_in_words(drain)


def _unready(node: Node) -> Iterator[str]:
    """Yield a sentence if the condition Ready of `node` is present and not True."""
    ready = ready_condition(node)
    if ready is not None and not is_ready_node(node):
        why = f": {ready.message.rstrip('.')}" if ready.message else ""
        yield f"{node.metadata.name} is not Ready ({ready.reason or ready.status}){why}."


def _leaving(node: Node, pods: Sequence[PodInfo]) -> Iterator[str]:
    """Yield a sentence about the terminating pods among `pods`, the pods of `node`."""
    leaving = sum(is_terminating(pod.pod) for pod in pods)
    if not leaving:
        return
    is_, stay = ("is", "stays") if leaving == 1 else ("are", "stay")
    until = ""
    is_marked = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    if ready_status(node) == UNKNOWN and not is_marked:
        until = (
            f", and {stay} so until the kubelet answers, or the node is deleted or tainted "
            f"{OUT_OF_SERVICE}"
        )
    yield f"{leaving:,} of its {counted(len(pods), 'pod')} {is_} terminating{until}."


def _state(node: Node) -> Iterator[str]:
    """Yield a sentence for each state of `node` that repels new pods or announces its removal.

    `_unready` says that the node is not Ready.
    """
    for one in node.status.conditions:
        if one.status == TRUE and one.type in _TAINTED_CONDITIONS:
            yield _condition_sentence(one)
    if why := drain_exemption(node):
        yield f"{why[0].upper()}{why[1:]}."
    yield from (words for one in node.spec.taints if (words := _REMOVED_BY.get(one.key)))
    if node.spec.unschedulable:
        yield "It is cordoned: no new pods are placed on it."
    taints = [taint_text(one) for one in node.spec.taints if is_lasting_taint(one.key)]
    if taints:
        yield f"Pods need tolerations for {', '.join(taints)}."
    for taint in node.spec.taints:
        if awaits_agent(taint.key):
            yield f"Until its agent is ready, pods need a toleration for {taint_text(taint)}."


def _condition_sentence(found: NodeCondition) -> str:
    """Return a sentence about a node condition that is True and for which the node is tainted."""
    evicts = "its kubelet may evict pods, and new" if found.type.endswith("Pressure") else "new"
    return (
        f"Its condition {found.type} is True ({found.message or found.reason or 'no message'}): "
        f"{evicts} pods must tolerate the taint {_TAINTED_CONDITIONS[found.type]}:NoSchedule."
    )


def _usage(node: Node, pods: Sequence[PodInfo]) -> str:
    """Return a sentence that compares the pods' requests with the node's allocatable amounts."""
    offered = node.status.allocatable
    requested: Counter[str] = Counter()
    for pod in pods:
        requested.update(pod_requests(pod.pod, existing=True))
    cores = f"{requested[CPU]:,}m of {milli_value(offered.get(CPU, 0)):,}m cpu"
    size = (
        f"{requested[MEMORY] >> 20:,}Mi of {whole_value(offered.get(MEMORY, 0)) >> 20:,}Mi memory"
    )
    slots = f"{len(pods):,} of {whole_value(offered.get('pods', 0)):,} pods"
    extended = [
        f"{requested[name]:,} of {whole_value(offered[name]):,} {name}"
        for name in sorted(offered)
        if "/" in name and (whole_value(offered[name]) or requested[name])
    ]
    return f"Requested: {', '.join((cores, size, *extended, slots))}."


def _placed_first(name: str, pods: Sequence[PodInfo], in_dump: AbstractSet[str]) -> Iterator[str]:
    """Yield a sentence about the pods of the node `name` that have no node in the dump.

    The planner has placed them on the node. `in_dump` are the keys of the node's pods in the dump.
    """
    added = [pod.key for pod in pods if pod.key not in in_dump]
    if added:
        are, they = ("has", "it") if len(added) == 1 else ("have", "them")
        yield (
            f"{len(added):,} of these pods {are} no node in the dump; the scheduler would "
            f"place {they} on {name}: {listed(added)}."
        )


def _preempted_first(preempted: AbstractSet[str]) -> Iterator[str]:
    """Yield a sentence about the `preempted` pods, which the list of pods leaves out."""
    if preempted:
        is_, it = ("is", "it") if len(preempted) == 1 else ("are", "them")
        yield (
            f"{counted(len(preempted), 'pod')} of the node {is_} not listed, because pods without "
            f"a node in the dump would preempt {it}: {listed(sorted(preempted))}."
        )


def _device_findings(node: Node, cluster: Cluster) -> Iterator[str]:
    """Yield sentences about the unhealthy devices of `node`, and about the devices in use.

    The requests on a node show neither the unhealthy devices nor the devices that claims use.
    """
    yield from _unhealthy_devices(node)
    for driver, devices in devices_of(node, cluster).items():
        yield _used_devices(driver, devices, cluster)


def _unhealthy_devices(node: Node) -> Iterator[str]:
    # upstream: pkg/kubelet/cm/devicemanager/manager.go: GetCapacity
    healthy, every = node.status.allocatable, node.status.capacity
    for name in sorted(with_all_devices({}, every)):
        total, left = whole_value(every[name]), whole_value(healthy.get(name, 0))
        if left < total:
            yield (
                f"Only {left:,} of its {total:,} {name} are allocatable: the device plugin has not "
                "reported the others as healthy."
            )


def _used_devices(driver: str, devices: list[PoolDevice], cluster: Cluster) -> str:
    ledger = cluster.devices
    used = sum(ledger.is_taken(one.id) or ledger.consumed(one.id) is not None for one in devices)
    tainted = sum(is_repelled(one.device, ()) for one in devices)
    parts = [f"{tainted:,} with a taint that keeps claims off"] if tainted else []
    if any(one.device.consumes_counters for one in devices):
        parts.append("some share hardware and exclude each other")
    more = f" ({'; '.join(parts)})" if parts else ""
    return f"Claims use {used:,} of its {counted(len(devices), 'device')} of {driver}{more}."


def _leaves(planner: DrainPlanner, node: str, pod: PodInfo, blocker: Blocker | None) -> str:
    """Return a text about whether `pod` can leave `node`, such as `yes, to n2`.

    All other pods are assumed to stay.
    """
    if not moves_with_drain(pod):
        if is_daemon_pod(pod.pod):
            return "stays: DaemonSet"
        return "stays: static pod" if is_static(pod.pod) else "has completed"
    if is_leaving(pod):  # only a finalizer can be the blocker
        return "is being deleted" if blocker is None else blocker.why
    if blocker is not None:
        return f"not now: {blocker.owner}, {blocker.why}"
    if controller_of(pod.pod.metadata) is None:
        return _BACK if is_guard(pod.pod) else _GONE
    if not planner.jobs.replaces(pod.pod):
        return _FAILS
    if refused := planner.refused([pod]):
        return f"no: the API server would refuse the replacement: {refused[pod.key]}"
    return _destination(planner, node, pod)


def _destination(planner: DrainPlanner, node: str, pod: PodInfo) -> str:
    """Return where the replacement of `pod` goes if only `pod` is evicted from `node`, as text."""
    others = (one.pod for one in planner.evicted(node) if one.key != pod.key)
    if claim := SharedClaims(planner.model.cluster).shared_with(pod.pod, others):
        return f"no: other pods of the node use {claim}"
    with planner.model.hypothesis():
        planner.model.cordon(node)
        planner.model.remove(pod)
        new = planner.model.replacement(pod)
        decision = planner.model.schedule(new)
        if isinstance(decision, Placement):
            target = decision.node.name
            return _RETURNS if target == node else f"yes, to {target}"
        room = planner.room_by_preemption(new)
    if room is not None and room.victims:
        victims = listed([victim.key for victim in room.victims])
        return f"only by preemption: to {room.nominated_node}, where it would preempt {victims}"
    return f"no: {short_reason(decision.message)}"


def _blocker_row(one: Blocker, pending: Mapping[str, Sequence[str]]) -> Row:
    """Return the row of a blocker; `pending` has the pods without a node, by workload."""
    is_unplaced = one.cause in UNPLACED
    return {
        "pod": one.pod,
        "pending": len(pending.get(one.workload, ())) if is_unplaced else None,
        "owner": one.owner,
        "cause": one.cause.value,
        "why": one.why,
        "edit": one.edit,
    }
