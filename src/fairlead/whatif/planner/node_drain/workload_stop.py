"""WorkloadStop: a workload that has no ready pod for some time during drains, and a remedy.

    cause                                       remedy
    several pods, each on its own node, that    a budget that allows one unavailable pod
    fit on no other node
    other pods that fit on no other node        a change that drain-plan finds
    one replica of a Deployment, ReplicaSet     a second replica, and a budget that keeps one
    or ReplicationController                    of the two ready; if no node has room for the
                                                second replica, the remedy says so
    one replica of a workload of another kind,  none that Fairlead knows; the node should be
    or one with a PersistentVolumeClaim or a    drained at a time when the workload may stop
    named ResourceClaim
    replicas share a volume or devices that     none that Fairlead knows (the same as in the row
    only one node can use at a time             above); if a budget allowed one unavailable pod, the
                                                drain would never end
    evicted pods are not created again, for     a higher quota; none that Fairlead knows for other
    example because of a quota                  refusals
    all replicas are evicted together           a budget that allows one unavailable pod

A budget with maxUnavailable 1 is enough for several replicas. The eviction API refuses the second
eviction until the replacement of the first pod is ready. A second replica that stays pending would
make things worse: the budget would then refuse every eviction. Therefore the scheduler tries to
place the second replica, together with the second replicas of the previous remedies. No other part
of the remedies is simulated.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import (
    Deployment,
    LabelSelector,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import format_selector
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.drain_plan import DrainPlan
from fairlead.whatif.planner.node_drain.drain_planner import RELAXED_RULE, DrainPlanner, relaxed
from fairlead.whatif.planner.node_drain.drain_run import StoppedWorkload, pace_seconds
from fairlead.whatif.planner.node_drain.replacement_admission import edit_of_refusal
from fairlead.whatif.planner.node_drain.second_replica import SecondReplicas
from fairlead.whatif.planner.node_drain.shared_claim import SharedClaims, named_devices
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
)

_WITH_SELECTOR: Final = (Deployment, StatefulSet, ReplicaSet, ReplicationController)
_REPEATABLE: Final = ("Deployment", "ReplicaSet", "ReplicationController")
_NAMED_MAX: Final = 3  # maximum number of nodes that a text names


class WorkloadStop(Struct, frozen=True):
    """A `workload` that has no ready pod for the time `stopped_for` (None: to the end)."""

    workload: WorkloadRef
    wanted: int  # the number of pods that the workload should have
    stopped_for: DurationNs | None
    nodes: tuple[str, ...]  # the drained nodes on which its pods were
    why: str  # the cause
    edit: str = ""  # a command or an action that prevents the stop, "" if none is known


class _Member(Struct):
    """The pods of a workload that move because of drains, and the nodes on which they run.

    The pods and the nodes are in the order in which the plan drains the nodes.
    """

    pods: list[Pod] = field(default_factory=list)
    nodes: dict[str, None] = field(default_factory=dict)

    @property
    def is_one_per_node(self) -> bool:
        """Whether there are several pods, each on its own node."""
        return len(self.pods) == len(self.nodes) > 1


def workload_stops(planner: DrainPlanner, plan: DrainPlan) -> list[WorkloadStop]:
    """Return the workloads that stop in the best run of `plan`.

    If `plan` has no best run, its first run is used. The workloads with the most replicas come
    first. The model of `planner` must be in the state before the drains.
    """
    run = plan.best or next(iter(plan.runs), None)
    if run is None:
        return []
    members = _members(planner, plan, {one.workload for one in run.stopped})
    waits = {
        move.workload: (drain.node, drain.down[move.pod])
        for drain in plan.drains
        for move in drain.moves
        if move.pod in drain.down
    }
    uncreated = {one.workload: one for one in run.uncreated}
    found = []
    with planner.model.hypothesis():  # reverts the second replicas that `changes` places
        changes = _Changes(planner)
        for one in sorted(run.stopped, key=lambda one: (-one.wanted, str(one.workload))):
            member = members.get(one.workload, _Member())
            waiting = waits.get(str(one.workload))
            missing = uncreated.get(one.workload)
            if missing is not None and one.stopped_for is not None and not missing.is_refused:
                missing = None
            nodes = tuple(member.nodes)
            # A refused pod cannot wait for a node, even if the plan places it on the returned node.
            if missing is not None and (missing.is_refused or waiting is None):
                why = f"its pods are not created again: {missing.reason}"
                edit = edit_of_refusal(one.workload.namespace, missing.reason)
            elif waiting is None:
                why, edit = _cause(one, member, run.pace.max_unavailable), changes.of(one, member)
            else:
                node, reasons = waiting
                why = f"it waits for {node}: {reasons}"
                edit = changes.of(one, member) if member.is_one_per_node else ""
                if not edit:
                    search = f"fairlead drain-plan {planner.model.snapshot_words} --nodes {node}"
                    edit = f"find a change that lets it move: {search}"
            found.append(WorkloadStop(one.workload, one.wanted, one.stopped_for, nodes, why, edit))
    return found


def stop_table(stops: Iterable[WorkloadStop]) -> ResultTable:
    """Return a table of the workloads that stop, with causes and remedies."""
    rows = [
        {
            "workload": str(one.workload),
            "wanted": one.wanted,
            "stopped_s": pace_seconds(one.stopped_for),
            "on": list(one.nodes),
            "why": one.why,
            "edit": one.edit,
        }
        for one in stops
    ]
    columns = (
        ResultColumn("workload", "workload", NAME),
        ResultColumn("wanted", "wanted", NUMBER, 1),
        ResultColumn("stopped_s", "none ready for", SECONDS),
        ResultColumn("why", "why"),
        ResultColumn("edit", "what would help"),
    )
    return ResultTable("stopped", "workloads that stop", columns, rows, 6)


def _members(
    planner: DrainPlanner, plan: DrainPlan, workloads: set[WorkloadRef]
) -> Mapping[WorkloadRef, _Member]:
    found: dict[WorkloadRef, _Member] = {}
    for drain in plan.drains:
        for info in planner.evicted(drain.node):
            ref = workload_of(info.pod)
            if ref in workloads:
                member = found.setdefault(ref, _Member())
                member.pods.append(info.pod)
                member.nodes[drain.node] = None
    return found


def _cause(one: StoppedWorkload, member: _Member, at_once: int) -> str:
    if one.wanted == 1:
        return "its only pod is evicted"
    if len(member.nodes) == 1:
        return f"all its pods are on {next(iter(member.nodes))}"
    if at_once > 1:
        return f"its pods are on nodes that are drained together ({at_once} at a time)"
    return "its pods move to the same node, which is drained later"


class _Changes:
    """Finds a change that keeps a workload running; reads the objects of the snapshot once."""

    def __init__(self, planner: DrainPlanner) -> None:
        self._model = planner.model
        self._budgets = planner.budgets
        self._selectors = _selectors(planner.model)
        self._shared = SharedClaims(planner.model.cluster)
        self._replicas = SecondReplicas(planner.model, planner.admission)
        # (namespace, name) of the budgets that exist or that a returned command creates
        self._budget_names = {
            (one.metadata.namespace, one.metadata.name)
            for one in planner.model.objects
            if isinstance(one, PodDisruptionBudget)
        }

    def of(self, one: StoppedWorkload, member: _Member) -> str:
        """Return commands or an action that prevent the stop of `one.workload`; "" if unknown."""
        if not member.pods:
            return ""
        ref = one.workload
        is_bound = bool(self._shared.users(member.pods))
        if one.wanted > 1 and not is_bound:
            return self._budget(ref, member.pods[0])
        if is_bound or ref.kind not in _REPEATABLE or _has_claim(member.pods[0]):
            nodes = listed(list(member.nodes), _NAMED_MAX)
            return f"drain {nodes} when {ref} may stop"
        changes = (
            *self._replicas.obstacles(self._model.pod_info(member.pods[0])),
            self._replicas.command(ref),
            self._budget(ref, member.pods[0]),
        )
        return "; ".join(filter(None, changes))

    def _budget(self, ref: WorkloadRef, pod: Pod) -> str:
        """Return an edit of a budget, as text, after which pods of `ref` are evicted one at a time.

        `pod` is one of the pods of `ref`. Return "" if the pod's budget already has this limit.
        Also return "" if the pod has no budget, and no selector of the workload is known.
        """
        limits = self._budgets.of(pod)
        if limits:
            return "" if limits[0].rule == RELAXED_RULE else relaxed(limits[0], 1)
        selector = self._selectors.get((ref.kind, ref.namespace, ref.name), "")
        if not selector:
            return ""
        name = self._new_budget_name(ref)
        words = ("kubectl", "-n", ref.namespace, "create", "pdb", name, "--selector", selector)
        return shlex.join((*words, "--max-unavailable", "1"))

    def _new_budget_name(self, ref: WorkloadRef) -> str:
        """Return a name for a new budget: the name of `ref`, plus a number if it is taken."""
        names = chain([ref.name], (f"{ref.name}-{number}" for number in count(2)))
        name = next(one for one in names if (ref.namespace, one) not in self._budget_names)
        self._budget_names.add((ref.namespace, name))
        return name


def _has_claim(pod: Pod) -> bool:
    """Return whether `pod` uses a volume or devices that a second replica might not get."""
    has_volume = any(one.persistent_volume_claim is not None for one in pod.spec.volumes)
    return has_volume or bool(named_devices(pod))


def _selectors(model: ClusterModel) -> dict[tuple[str, str, str], str]:
    """Return the selector of each workload in kubectl's notation, by kind, namespace and name."""
    found = {}
    for one in model.objects:
        if isinstance(one, _WITH_SELECTOR):
            selector = one.spec.selector
            if isinstance(selector, dict):
                selector = LabelSelector(match_labels=selector)
            if selector is not None:
                path = (type(one).__name__, one.metadata.namespace, one.metadata.name)
                found[path] = format_selector(selector)
    return found
