"""Explains a PodDisruptionBudget: the disruptions that it allows now and with all pods ready.

For each node with pods of the budget, the explanation says what a drain of the node would do. To
find out, the node is cordoned in the model, and the budget's pods are removed from the node. Then
the scheduler places replacements of these pods. A replacement that fits no node does not become
ready. So the budget may stop the drain later, even if it allows an eviction now.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.pods.facts import is_terminating
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.command import pod_ref
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.disruption.budget_room import BudgetLimit
from fairlead.engine.workloads.pod_control.scale_down import is_ready
from fairlead.whatif.explain.readiness import why_unready
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.planner.baseline import activity_note
from fairlead.whatif.planner.cluster_model import (
    ClusterModel,
    in_queue_order,
    moves_with_drain,
)
from fairlead.whatif.planner.dump_activity import activity_of
from fairlead.whatif.planner.node_drain.drain_planner import (
    KEPT,
    BlockCause,
    Blocker,
    DrainPlanner,
    Unplaced,
)
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.snapshot import Snapshot

_WORKLOAD_COLUMNS: Final = (
    ResultColumn("workload", "workload", NAME),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("ready", "ready", NUMBER),
    ResultColumn("nodes", "nodes", NUMBER),
)
_UNREADY_COLUMNS: Final = (
    ResultColumn("pod", "pod", NAME),
    ResultColumn("node", "node", NAME),
    ResultColumn("why", "why"),
)
_NODE_COLUMNS: Final = (
    ResultColumn("node", "node", NAME),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("drain", "drain of the node"),
)
_NEVER_ENDS: Final = "never ends: the kubelet does not answer"
_EDIT_COLUMNS: Final = (ResultColumn("edit", "what would help"),)
_OF_NO_BUDGET: Final = (BlockCause.SILENT, *KEPT)


def explain_budget(planner: DrainPlanner, key: str, snapshot: Snapshot) -> TabularAnswer:
    """Return the explanation of the budget of `snapshot` whose `namespace/name` is `key`."""
    limit = next(one for one in planner.budgets.limits() if one.key == key)
    pods = [
        pod
        for pod in planner.model.pods()
        if any(one.key == key for one in planner.budgets.of(pod.pod))
    ]
    pods.sort(key=lambda pod: pod.key)
    every = pods
    # The disruption controller does not count terminating pods (disruption.go: countHealthyPods).
    pods = [pod for pod in every if not is_terminating(pod.pod)]
    on_node: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in every:
        info = planner.model.find_node(planner.model.cluster.node_of(pod))
        if info is None:  # a deleted node cannot be drained
            continue
        if not is_terminating(pod.pod) or ready_status(info.node) == UNKNOWN:
            on_node[info.name].append(pod)
    nodes = Counter({node: len(found) for node, found in on_node.items()})
    unready = [pod for pod in pods if not is_ready(pod.pod)]
    refusals = {node: planner.refusals(node) for node in nodes}
    silent = {
        node for node, found in refusals.items() if found and found[0].cause is BlockCause.SILENT
    }
    blocked = {
        node: [one for one in found if one.cause not in _OF_NO_BUDGET]
        for node, found in refusals.items()
    }
    unplaced = {node: _unplaced(planner, node, on_node[node]) for node in nodes}
    edits = dict.fromkeys(
        one.edit for found in blocked.values() for one in found if f"pdb/{key}" == one.owner
    )
    return TabularAnswer(
        kind="BudgetExplanation",
        source=snapshot.source,
        verdict=_verdict(limit, len(every)),
        findings=(*_findings(planner, limit, every), *_leaving(len(every) - len(pods))),
        tables=(
            ResultTable("edits", "changes that would help", _EDIT_COLUMNS,
                      [{"edit": edit} for edit in edits if edit], shown=3, has_remedies=True),
            ResultTable("workloads", "whose pods it selects", _WORKLOAD_COLUMNS,
                      _workload_rows(planner, pods)),
            ResultTable("unready", "pods that are not ready", _UNREADY_COLUMNS,
                        _unready_rows(planner.model, snapshot.inventory(), unready)),
            ResultTable("nodes", "nodes with its pods", _NODE_COLUMNS, [
                {"node": node, "pods": count, "unplaced": len(unplaced[node]),
                 "drain": _NEVER_ENDS if node in silent
                 else _refusal(limit, blocked[node]) or _drain(limit, count, unplaced[node])}
                for node, count in sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
            ]),
        ),
        facts={
            "budget": key,
            "rule": limit.rule,
            "allowed": limit.now,
            "allowed_at_best": limit.at_best,
            "ready": limit.healthy,
            "needed": limit.desired,
            "wanted": limit.wanted,
        },
        notes=activity_note(activity_of(planner.model).of({workload_of(one.pod) for one in pods})),
    )  # fmt: skip


def _unready_rows(
    model: ClusterModel, inventory: Inventory, unready: Sequence[PodInfo]
) -> list[dict[str, object]]:
    return [
        {
            "pod": pod.key,
            "node": name,
            "why": why_unready(inventory, pod_ref(pod.pod), None if info is None else info.node),
        }
        for pod in unready
        for name in [model.cluster.node_of(pod)]
        for info in [model.find_node(name)]
    ]


def _verdict(limit: BudgetLimit, pods: int) -> str:
    name = f"pdb/{limit.key} ({limit.rule})"
    if limit.problem:
        return f"{name} allows no disruption: {limit.problem}."
    if not pods:
        return f"{name} selects no pod, so it protects nothing and blocks nothing."
    if limit.lacks_scale:
        return (
            f"{name} never allows a disruption: it counts the replicas of controllers, and its "
            "pods have no controller."
        )
    figures = f"{limit.healthy:,} ready, {limit.desired:,} needed"
    if limit.is_permanent:
        return (
            f"{name} never allows a disruption: it needs {limit.desired:,} ready of "
            f"{counted(limit.wanted, 'wanted pod')}."
        )
    if limit.now < 1:
        at_best = counted(limit.at_best, "disruption")
        return f"{name} allows no disruption now: {figures}; with all ready it allows {at_best}."
    return f"{name} allows {counted(limit.now, 'disruption')} now: {figures}."


def _findings(planner: DrainPlanner, limit: BudgetLimit, pods: Sequence[PodInfo]) -> Iterator[str]:
    others: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        for one in planner.budgets.of(pod.pod):
            if one.key != limit.key:
                others[one.key].append(pod.key)
    for key, names in sorted(others.items()):
        pods_too = f"{counted(len(names), 'pod')} ({listed(names, 1)})"
        yield (
            f"pdb/{key} selects {pods_too} too: the eviction API refuses pods with several budgets."
        )
    if pods and limit.wanted > len(pods):
        missing = counted(limit.wanted - len(pods), "wanted pod does", "wanted pods do")
        yield f"{missing} not exist."


def _leaving(count: int) -> Iterator[str]:
    """Yield a sentence about the `count` terminating pods that the budget selects."""
    if count:
        pods_do = ("selected pod is terminating and does", "selected pods are terminating and do")
        yield f"{counted(count, *pods_do)} not count as ready."


def _workload_rows(planner: DrainPlanner, pods: Sequence[PodInfo]) -> list[dict[str, object]]:
    by_workload: dict[WorkloadRef, list[PodInfo]] = defaultdict(list)
    for pod in pods:
        by_workload[workload_of(pod.pod)].append(pod)
    return [
        {
            "workload": str(ref),
            "pods": len(found),
            "ready": sum(is_ready(pod.pod) for pod in found),
            "nodes": len({planner.model.cluster.node_of(pod) for pod in found} - {""}),
        }
        for ref, found in sorted(by_workload.items())
    ]


def _unplaced(planner: DrainPlanner, node: str, pods: Sequence[PodInfo]) -> list[Unplaced]:
    """Return the pods on `node` whose replacements fit no other node, with reasons."""
    with planner.model.hypothesis():
        planner.clear(node, [pod for pod in pods if moves_with_drain(pod)])
        return planner.place(node, planner.replaced(in_queue_order(pods)))[1]


def _refusal(limit: BudgetLimit, blockers: Sequence[Blocker]) -> str:
    """Return why the drain of a node with these `blockers` is refused; "" if it is not refused."""
    if not blockers:
        return ""
    if any(one.cause is BlockCause.SEVERAL_BUDGETS for one in blockers):
        return "is refused: several budgets select a pod"
    owners = dict.fromkeys(one.owner for one in blockers)
    if f"pdb/{limit.key}" not in owners:
        return f"is refused now by {listed([*owners], 1)}"
    if limit.now > 0:
        allowed = counted(limit.losses_max, "pod")
        return f"stops after {allowed}: nothing replaces its pods without a controller"
    return "is refused" if limit.is_permanent else "is refused now"


def _drain(limit: BudgetLimit, pods: int, unplaced: Sequence[Unplaced]) -> str:
    """Return the effect of draining a node that has `pods` pods that the budget covers."""
    if unplaced:
        missing = len(unplaced)
        why = f"fits no node ({short_reason(unplaced[0].message)})"
        if missing > limit.now > 0:
            done = counted(pods - missing + limit.now, "pod")
            return f"stops after {done}: a replacement {why}"
        which = "its replacement" if pods == 1 else "a replacement"
        if missing > 1:
            which, why = f"{missing:,} replacements", why.replace("fits", "fit", 1)
        return f"is allowed, but {which} {why}"
    if pods > limit.now > 0:
        return "evicts the pods one after another, when replacements are ready"
    return "is allowed"
