"""DrainPlanner: finds whether nodes can be emptied, what blocks them, and where their pods go.

A node is checked in up to three steps (`refusals`, `lacking_elsewhere`, `empty`):

    1  rules      does a budget refuse an eviction, now or always? Does the kubelet answer? Does a
                  terminating pod stay forever?
    2  room       do the other nodes have enough free resources in total for the node's pods?
    3  placement  the scheduler places a replacement of each pod, in the order of its queue. If a
                  replacement fits no node, the pods of its workload are placed first in another try

Step 2 can only exclude a node. A node can be emptied if step 3 finds a node for every pod. Moved
pods stay on their new nodes. If several nodes are emptied one after another, all of them are empty
at the end.

Pods with a negative priority exist to give way to other pods. They keep no node from being emptied:
other replacements preempt them, and they stay pending if no node takes them (`ignores_negative`).

The order matters: if a pod fits only a few nodes, pods that are placed before this pod can fill
these nodes. In a real drain, budgets and the speed of controllers decide the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import Node, Pod, PodSpec
from fairlead.api.pods.facts import (
    controller_of,
    foreign_finalizers,
    is_daemon_pod,
    is_guard,
    is_static,
    is_terminal,
    is_terminating,
)
from fairlead.api.selector import selector_matches
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.plugins.node_resources.fit import TOO_MANY_PODS
from fairlead.engine.plugins.node_unschedulable import UNSCHEDULABLE, tolerates_cordon
from fairlead.engine.plugins.pod_topology_spread.constraint import DO_NOT_SCHEDULE
from fairlead.engine.scheduling.decision import Decision, Failure, Placement
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import PODS
from fairlead.engine.workloads.deletion.pod_finalizers import is_kept_after_end
from fairlead.engine.workloads.disruption.budget_room import BudgetLimit, BudgetRoom
from fairlead.engine.workloads.pod_control.scale_down import is_ready as is_ready_pod
from fairlead.whatif.change.kubectl_drain import needed_flags
from fairlead.whatif.outcome.scheduling_message import short_reason, with_explanation
from fairlead.whatif.outcome.workload import ROLLOUT, workload_of
from fairlead.whatif.planner.cluster_model import (
    ClusterModel,
    in_queue_order,
    is_leaving,
    is_placed_anew,
    moves_with_drain,
)
from fairlead.whatif.planner.node_drain.job_room import JobRoom
from fairlead.whatif.planner.node_drain.replacement_admission import ReplacementAdmission
from fairlead.whatif.planner.node_drain.second_replica import SecondReplicas
from fairlead.whatif.planner.node_drain.shared_claim import SharedClaims
from fairlead.whatif.planner.waiting_pods import (
    WaitingGang,
    WaitingPodCounts,
    place_waiting_gangs,
    place_waiting_pods,
)
from fairlead.whatif.run.pod_timing.stuck_pod import is_stuck, stuck_words
from fairlead.whatif.snapshot.served_kind import is_custom

_ORDERS_MAX: Final = 16  # number of orders in which the pods of a node are placed
# Labels that controllers add to the labels of a pod template.
_ADDED_LABELS: Final = frozenset({"pod-template-hash", "controller-revision-hash"})
_CLOUD_NATIVE_PG: Final = "postgresql.cnpg.io"
# How operators act on a cordon or a refused eviction, by the API group of the pod's controller.
# upstream: longhorn-manager controller/instance_manager_controller.go: syncInstanceManagerPDB,
# canDeleteInstanceManagerPDB; cloudnative-pg internal/controller/replicas.go:
# reconcileTargetPrimaryFromPods; kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/
# pod-eviction-admitter.go: Admit
_REACTIONS: Final = {
    "longhorn.io": (
        "cordon {node}: Longhorn then deletes the budget when the volumes are detached from the "
        "node and the setting node-drain-policy allows it"
    ),
    _CLOUD_NATIVE_PG: (
        "cordon {node}: CloudNativePG then makes an instance on another node the primary, if there "
        "is one"
    ),
    "kubevirt.io": (
        "drain {node}: KubeVirt then moves the virtual machine, if its evictionStrategy allows it "
        "and it can be migrated live"
    ),
}
RELAXED_RULE: Final = "maxUnavailable 1"  # the rule that the command of `relaxed` sets


class BlockCause(StrEnum):
    """The reason why a pod prevents its node from being emptied; the value is its text."""

    SILENT = "its kubelet does not answer"
    FINALIZER = "a finalizer keeps the pod"
    STUCK = "the pod does not stop"
    SEVERAL_BUDGETS = "several budgets select the pod"
    BUDGET_NEVER = "its budget never allows an eviction"
    BUDGET_NOW = "its budget allows no eviction now"
    NO_PLACE = "no other node takes the pod"
    NO_ROOM = "the pods of the node do not all fit elsewhere"
    ORDER = "the pods of the node fit elsewhere only in another order"
    JOB = "its Job would not replace the pod"
    REFUSED = "the API server would refuse the new pod"
    CONTROL_PLANE = "the node runs the control plane"
    DELETED = "the node is being deleted"
    ANNOTATION = "an annotation forbids it"
    LOCAL_STORAGE = "the pod has local storage"
    NOT_REPLICATED = "no controller would replace the pod"
    CUSTOM_CONTROLLER = "a custom resource controls the pod"
    SYSTEM_POD = "a pod of kube-system without a budget"
    WAITING_GANG = "a waiting gang needs its room"
    OTHER_RULE = "a rule of the autoscaler"


UNPLACED: Final = (BlockCause.NO_PLACE, BlockCause.NO_ROOM)
# With these causes, the pod is already being deleted, but never disappears. No budget is involved.
KEPT: Final = (BlockCause.FINALIZER, BlockCause.STUCK)


class Blocker(Struct, frozen=True):
    """An obstacle to emptying `node`: the pod, the cause, and the object to change.

    The fields `pod` and `workload` are "" if the node itself is the obstacle.
    """

    node: str
    pod: str
    cause: BlockCause
    owner: str  # the object to change, such as `pdb/shop/web`
    why: str  # explains the cause
    edit: str = ""  # a command or change that removes the cause, "" if none is known
    preempts: bool = False  # whether the scheduler would make room for the pod by preemption
    workload: str = ""


class PodMove(Struct, frozen=True):
    """A pod that is evicted from `origin`; its replacement goes to `target`."""

    pod: str
    workload: str
    origin: str
    target: str

    @property
    def returns(self) -> bool:
        """Whether the replacement goes to the node from which the pod is evicted."""
        return self.target == self.origin


class PlannedDrain(Struct, frozen=True):
    """A node that can be emptied, with the moves of its pods."""

    node: str
    moves: tuple[PodMove, ...]  # also the placements of the pods in `waits`
    lost: tuple[str, ...] = ()  # the pods that nothing replaces, because they have no controller
    # The number of evictions that count against each budget.
    charged: dict[str, int] = field(default_factory=dict)
    # The workloads whose pods must be placed before the other pods, in this order.
    first: tuple[str, ...] = ()
    # The kubectl commands that evict the pods of `first`, one for each workload. () if no label
    # selector selects only the pods of one of these workloads.
    first_commands: tuple[str, ...] = ()
    # Maps the pods that fit no other node to the scheduler's reasons. The replacements of these
    # pods are placed only when the node has returned.
    waits: dict[str, str] = field(default_factory=dict)
    # The pods in `waits` that could preempt other pods instead of waiting.
    preempts: tuple[str, ...] = ()
    # Maps pods to their Jobs, which fail because of the evictions on this node, so nothing replaces
    # the pods.
    failing: dict[str, str] = field(default_factory=dict)
    # Maps pods to the reasons for which the API server refuses their replacements.
    refused: dict[str, str] = field(default_factory=dict)
    # The pods with a negative priority that fit no other node. If the node returns, they can run
    # again, as can the pods of `preempted`.
    pending: tuple[str, ...] = ()
    # The pods with a negative priority on other nodes that the replacements preempt, and that then
    # fit no other node.
    preempted: tuple[str, ...] = ()

    @property
    def leaving(self) -> int:
        """The number of pods that leave the node."""
        without_node = len(self.lost) + len(self.failing) + len(self.refused) + len(self.pending)
        return len(self.moves) + without_node

    @property
    def down(self) -> dict[str, str]:
        """The pods that do not run until the node returns, with the scheduler's reasons.

        These are the pods in `waits`, without the pods that get another node by preemption.
        """
        return {pod: why for pod, why in self.waits.items() if pod not in self.preempts}

    @property
    def returning(self) -> list[PodMove]:
        """The moves that end on the drained node although it is still cordoned.

        The pods tolerate the taint of cordoned nodes, or the scheduler's configuration disables the
        filters that keep pods off these nodes.
        """
        return [one for one in self.moves if one.returns and one.pod not in self.waits]


class Unplaced(Struct, frozen=True):
    """A `pod` to evict whose `replacement` fits no node, with the scheduler's `message`."""

    pod: PodInfo
    replacement: PodInfo
    message: str

    @property
    def workload(self) -> str:
        """The workload of the pod."""
        return str(workload_of(self.pod.pod))


class DrainPlanner:
    """Empties nodes of `model`, and finds the evictions that the `budgets` refuse.

    If `reorders` is set, the pods of a node may be placed in another order than the order of the
    scheduling queue. If `deletes_nodes` is set, drained nodes are deleted. Therefore, no pod can
    move to a drained node, even if the pod tolerates the taint of cordoned nodes. If
    `ignores_negative` is set, pods with a negative priority may be preempted or stay pending.
    `waiting` counts the pods that waited in the snapshot. `at_rest` places them before any node is
    emptied. `gangs` have members for which room is kept (`keep_room_for_gangs`).
    """

    def __init__(self, model: ClusterModel, budgets: BudgetRoom) -> None:
        """Make a planner whose drains change `model`; emptied nodes stay empty until a revert."""
        self.model = model
        self.budgets = budgets
        self.reorders = True
        self.deletes_nodes = False
        self.ignores_negative = True
        self.waiting = WaitingPodCounts()
        self.gangs: list[WaitingGang] = []
        # The keys of the members of `gangs` that have a node only in the model.
        self.reserved: frozenset[str] = frozenset()
        # The failures that each Job of the model can still have before any pod is evicted.
        self.jobs = JobRoom(model.current_objects(), model.now, model.stop_exit_code)
        self.admission = ReplacementAdmission(model)
        # Without such pods, a replacement that fits no node need not try preemption.
        self._has_negative = any(pod.priority < 0 for pod in model.pods())

    @classmethod
    def at_rest(cls, model: ClusterModel) -> Self:
        """Place the waiting pods, let them become ready, and return a planner for `model`."""
        waiting = place_waiting_pods(model)
        planner = cls(model, BudgetRoom(model.current_objects(), model.now))
        planner.waiting = waiting
        return planner

    def keep_room_for_gangs(self) -> None:
        """Keep room for the waiting members of gangs, as far as they fit now.

        The members get a node in the model, so nodes can be emptied only if the other nodes have
        room for the members. But the members are not on their nodes yet, so no drain evicts them.
        """
        self.gangs = place_waiting_gangs(self.model)
        self.reserved = frozenset(key for gang in self.gangs for key in gang.fitting)

    def evicted(self, node: str) -> list[PodInfo]:
        """Return the pods that a drain of `node` evicts or waits for, in queue order."""
        return [pod for pod in self.moving(node) if pod.key not in self.reserved]

    def moving(self, node: str) -> list[PodInfo]:
        """Return the pods that a drain removes from `node`, in queue order.

        The result has the pods of `evicted(node)`, and the `reserved` pods on this node.
        """
        pods = self.model.node(node).pods.values()
        return in_queue_order(pod for pod in pods if moves_with_drain(pod))

    def refusals(self, node: str) -> list[Blocker]:
        """Return what prevents a drain of `node`, wherever the new pods would go.

        There are three possible obstacles:

        - The kubelet does not answer (`_never_ends_pods`).
        - A budget refuses an eviction (`budget_blockers`).
        - A terminating pod stays forever (`_kept`), and `kubectl drain` waits for this pod forever.
        """
        keeps_pods = _never_ends_pods(self.model.node(node).node) and bool(self.evicted(node))
        first = [_silent(node)] if keeps_pods else []
        return [*first, *self._kept(node), *self.budget_blockers(node)]

    def _kept(self, node: str) -> Iterator[Blocker]:
        """Yield a blocker for each terminating pod of `node` that stays terminating forever.

        Either the kubelet cannot stop the pod (`is_stuck`), or the pod has ended and has a
        finalizer that no controller of Kubernetes removes.
        """
        # upstream: staging/src/k8s.io/kubectl/pkg/drain/drain.go: waitForDelete
        for pod in self._kept_pods.get(node, ()):
            owner, names = f"pod/{pod.key}", " and ".join(foreign_finalizers(pod))
            if not names:
                yield _stuck(node, pod)
                continue
            why = f"is being deleted, but finalizer {names} keeps it"
            edit = (
                f"remove finalizer {names} from {owner}, or drain with "
                "--skip-wait-for-delete-timeout"
            )
            workload = str(workload_of(pod))
            yield Blocker(node, pod.key, BlockCause.FINALIZER, owner, why, edit, workload=workload)

    @cached_property
    def _kept_pods(self) -> dict[str, list[Pod]]:
        """The terminating pods of the snapshot that stay forever (`_kept`), by node."""
        found: dict[str, list[Pod]] = {}
        for pod in self.model.objects:
            if not isinstance(pod, Pod) or not is_terminating(pod):
                continue
            on = self.model.table.find(pod.spec.node_name)
            where, now = None if on is None else on.node, self.model.now
            if not (is_kept_after_end(pod, where, now) or is_stuck(pod, where, now)):
                continue
            if not is_static(pod) and (is_terminal(pod) or not is_daemon_pod(pod)):
                found.setdefault(pod.spec.node_name, []).append(pod)
        return found

    def budget_blockers(self, node: str) -> list[Blocker]:
        """Return the blockers of pods on `node` whose eviction a budget refuses, now or always."""
        pods = self.evicted(node)
        lost = self._charged(pod for pod in pods if _is_lost(pod))
        refused = [one for pod in pods for one in self._budget_blockers(node, pod, lost)]
        return [*refused, *self._last_losses(node, pods), *self._sharing(node, pods)]

    def empty(
        self, node: str, *, finds_order: bool = True, reorders: bool | None = None
    ) -> PlannedDrain | Blocker:
        """Cordon `node` and move its pods to other nodes; budgets are not checked.

        If a pod does not fit, another order is tried: all pods are placed again, and the workload
        of the pod that did not fit is placed first. The search for an order fails if an order
        repeats, or after `_ORDERS_MAX` orders. The search also fails if a pod of the workload that
        is placed first does not fit. After a failed search, the model is unchanged, and the result
        is a Blocker for one pod that does not fit. `unplaced_blockers` finds the blockers of all
        workloads, with changes that help.

        If a workload does not fit even when it is placed first (`_refused_first`), no order helps,
        and no other order is tried.

        If `reorders` is not None, it replaces `self.reorders` in this call. If neither
        `finds_order` nor `reorders` is set, other orders are tried only if they could change which
        pod the Blocker names. A Blocker can have the cause ORDER, which says that the pods fit in
        another order, only if other orders are tried.
        """
        reorders = self.reorders if reorders is None else reorders
        model, pods, first = self.model, self.moving(node), tuple[str, ...]()
        unplaced: Unplaced | None = None
        tried = set[tuple[str, ...]]()
        while True:
            with model.hypothesis() as supposed:
                self.clear(node, pods)
                found = self._move(node, pods, first)
                if isinstance(found, PlannedDrain):
                    if unplaced is not None and not reorders:
                        return _wrong_order(node, pods, unplaced, first)
                    supposed.commit()
                    return found
            if not first:
                refused, is_final = self._refused_first(node, pods)
                if refused is None and not (finds_order or reorders):
                    return blocker_of(node, found, is_first=False)
                if refused is not None and is_final:
                    return blocker_of(node, refused, is_first=True)
            tried.add(first)
            is_first = first[:1] == (found.workload,)
            unplaced = found if is_first or unplaced is None else unplaced
            first = (found.workload, *(one for one in first if one != found.workload))
            if is_first or first in tried or len(tried) == _ORDERS_MAX:
                return blocker_of(node, unplaced, is_first=is_first)

    def try_empty(self, node: str) -> PlannedDrain | Blocker | None:
        """Empty `node` as `empty` does, but usually return None instead of a Blocker.

        A Blocker is returned only if `reorders` is set and the other nodes have enough room in
        total. In all other cases, the method saves time: it does not search for the reason why
        `node` cannot be emptied.
        """
        if self.lacking_elsewhere(node):
            return None
        if self.reorders:
            return self.empty(node)
        pods = self.moving(node)
        with self.model.hypothesis() as supposed:
            self.clear(node, pods)
            found = self._move(node, pods, ())
            if isinstance(found, PlannedDrain):
                supposed.commit()
                return found
        return None

    def empty_and_return(self, node: str) -> PlannedDrain | Blocker:
        """Empty `node` as `empty` does, but pods that fit no other node wait until `node` is back.

        If pods wait, `node` is back in service afterwards, and these pods are placed. If one of
        these pods fits no node even then, return the Blocker of `empty`, and do not change the
        model.
        """
        found = self.empty(node)
        if isinstance(found, PlannedDrain):
            return found
        return self._empty_until_return(node) or found

    def drained_alone(
        self, node: str, *, return_again: bool, reorders: bool | None = None
    ) -> PlannedDrain | Blocker:
        """Return the result of emptying `node` with all other nodes as they are now.

        If `return_again` is set, the node returns to service, and `reorders` is ignored. If
        `return_again` is not set, a `reorders` other than None replaces `self.reorders`. The model
        does not change.
        """
        with self.model.hypothesis():
            if return_again:
                return self.empty_and_return(node)
            return self.empty(node, reorders=reorders)

    def replaced(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """Return the `pods` that a controller replaces if a drain evicts all of `pods`.

        The result includes the `reserved` pods. In the model, these pods have a node only to keep
        room for them, so this room must then be on another node. Evictions on other nodes are not
        counted as failures of Jobs. Pods whose replacements the API server refuses are left out.
        """
        pods = list(pods)
        failing, refused = self._failing(pods), self.refused(pods)
        return [
            pod
            for pod in pods
            if pod.key in self.reserved
            or (is_placed_anew(pod) and pod.key not in failing and pod.key not in refused)
        ]

    def refused(self, pods: Iterable[PodInfo]) -> dict[str, str]:
        """Return {pod: reason} for the `pods` whose replacements the API server would refuse.

        All `pods` are evicted. `reserved` pods and pods that their Jobs do not replace
        (`_failing`) are left out.
        """
        pods = [pod for pod in pods if pod.key not in self.reserved]
        failing = self._failing(pods)
        return self.admission.refused(pod for pod in pods if pod.key not in failing)

    def _failing(self, pods: Iterable[PodInfo]) -> dict[str, str]:
        """Return {pod: Job} for the `pods` whose Jobs do not replace them.

        Because of the evictions of `pods`, the Job of such a pod fails, or the pod's index in the
        Job fails. A Job is written as in `ObjectError.subject`.
        """
        evicted = (one for one in pods if one.key not in self.reserved)
        found = self.jobs.failing([one.pod for one in evicted if not is_leaving(one)])
        return {pod: f"Job {job.key}" for pod, job in found.items()}

    def _empty_until_return(self, node: str) -> PlannedDrain | None:
        model, pods, drained_node = self.model, self.evicted(node), self.model.node(node).node
        with model.hypothesis() as supposed:
            self.clear(node, pods)
            replaced, preempted = self.replaced(pods), list[str]()
            moves, left = self.place(node, replaced, preempted=preempted)
            preempts = tuple(
                one.pod.key for one in left if self.room_by_preemption(one.replacement)
            )
            model.put_node(drained_node)
            late, stuck = self.place(node, [one.pod for one in left])
            if stuck:
                return None
            moved = {move.pod for move in (*moves, *late)}
            pending = tuple(pod.key for pod in replaced if pod.key not in moved)
            supposed.commit()
        reasons = {one.pod.key: _why(one.message) for one in left}
        waits = {move.pod: reasons[move.pod] for move in late}
        return PlannedDrain(
            node,
            (*moves, *late),
            self._lost(pods),
            self._charged(pods),
            waits=waits,
            preempts=preempts,
            failing=self._failing(pods),
            refused=self.refused(pods),
            pending=pending,
            preempted=tuple(preempted),
        )

    def place(
        self,
        node: str,
        pods: Sequence[PodInfo],
        edit: Callable[[PodInfo], PodInfo] | None = None,
        preempted: list[str] | None = None,
    ) -> tuple[list[PodMove], list[Unplaced]]:
        """Place replacements of `pods`, which were on `node`, in the order of `pods`.

        `edit` changes each replacement before it is placed. Return the moves, and the pods whose
        replacements fit no node even after all other replacements have been placed. Pods that may
        stay pending (`_may_stay_pending`) are left out. If such pods are preempted and then fit no
        node, their keys are added to `preempted`.
        """
        moves: list[PodMove] = []
        victims: list[PodInfo] = []
        while True:
            left: list[Unplaced] = []
            for pod in pods:
                new = self.model.replacement(pod)
                new = new if edit is None else edit(new)
                decision = self._schedule(new, victims)
                if isinstance(decision, Placement):
                    workload = str(workload_of(pod.pod))
                    moves.append(PodMove(pod.key, workload, node, decision.node.name))
                else:
                    left.append(Unplaced(pod, new, decision.message))
            retried = any(_may_follow(one.replacement.pod.spec) for one in left)
            if len(left) == len(pods) or not retried:
                without_node = self._replace(victims)
                if preempted is not None:
                    preempted += without_node
                return moves, [one for one in left if not self._may_stay_pending(one.pod)]
            pods = [one.pod for one in left]

    def _schedule(self, pod: PodInfo, victims: list[PodInfo]) -> Decision:
        """Place `pod`; if it fits no node, it may preempt certain pods (`_may_be_preempted`).

        The preempted pods are added to `victims`. No pod is preempted if preemption would need
        other victims, too. The loop ends, because each preemption removes at least one pod.
        """
        may_preempt = self.ignores_negative and self._has_negative and pod.priority >= 0
        while True:
            decision = self.model.schedule(pod)
            if isinstance(decision, Placement) or not may_preempt:
                return decision
            found = self.room_by_preemption(pod)
            removed = () if found is None else tuple(found.victims)
            if not removed or not self._may_be_preempted(removed):
                return decision
            for victim in removed:
                self.model.remove(victim)
            victims += removed

    def _replace(self, victims: Sequence[PodInfo]) -> tuple[str, ...]:
        """Place replacements of the preempted `victims`; return the victims that fit no node."""
        return tuple(
            pod.key
            for pod in in_queue_order(victims)
            if not isinstance(self.model.schedule(self.model.replacement(pod)), Placement)
        )

    def _may_be_preempted(self, pods: Sequence[PodInfo]) -> bool:
        """Return whether all `pods` may stay pending, and no Job fails if they are preempted."""
        return all(map(self._may_stay_pending, pods)) and not self.jobs.not_replaced(
            [one.pod for one in pods]
        )

    def _may_stay_pending(self, pod: PodInfo) -> bool:
        """Return whether `pod` gives way to other pods, and a controller replaces it."""
        return self.ignores_negative and pod.priority < 0 and is_placed_anew(pod)

    def fits_first(self, node: str, workload: str) -> PlannedDrain | Blocker | None:
        """Return a drain of `node` that moves only the pods of `workload`, or a blocker.

        The blocker is about the first pod that does not fit. Returns None if only `empty` can
        decide: `node` has no pods of `workload`, or the pods may need pods of other workloads to be
        placed before them (`_follows`). The model does not change. This method is faster than
        `empty`.
        """
        pods = self.moving(node)
        own = [pod for pod in pods if str(workload_of(pod.pod)) == workload]
        if not own or self._follows(own, pods):
            return None
        with self.model.hypothesis():
            self.clear(node, pods)
            found = self._move(node, own, ())
        return found if isinstance(found, PlannedDrain) else blocker_of(node, found, is_first=True)

    def _refused_first(self, node: str, pods: Sequence[PodInfo]) -> tuple[Unplaced | None, bool]:
        """Return a pod that fits no other node even if its workload moves first, and `is_final`.

        `pods` are the pods of `node`. All of them are removed from the node. Then the workloads are
        tried one by one: the pods of one workload are placed, and removed again. The pod is None if
        the pods of each workload fit. `is_final` is True if it would not help the pod to place pods
        of other workloads before it (`_follows`). If `is_final` is True for some pods, one of these
        pods is returned.
        """
        own: dict[str, list[PodInfo]] = {}
        for pod in self.replaced(pods):
            own.setdefault(str(workload_of(pod.pod)), []).append(pod)
        follower: Unplaced | None = None
        with self.model.hypothesis():
            self.clear(node, pods)
            for found in own.values():
                with self.model.hypothesis():
                    refused = self._move(node, found, ())
                if isinstance(refused, PlannedDrain):
                    continue
                if not self._follows(found, pods):
                    return refused, True
                follower = follower or refused
        return follower, False

    def _follows(self, own: Iterable[PodInfo], pods: Iterable[PodInfo]) -> bool:
        """Return whether a pod in `own` may fit only after pods of other workloads are placed.

        `own` are the pods of one workload, and `pods` are all pods that leave the node.
        """
        others: list[PodInfo] | None = None
        for pod in own:
            new = self.model.as_replacement(pod)
            if not _may_follow(new.pod.spec):
                continue
            if others is None:
                workload = workload_of(pod.pod)
                others = [one for one in pods if workload_of(one.pod) != workload]
            if any(_can_precede(self.model.as_replacement(one), new) for one in others):
                return True
        return False

    def clear(self, node: str, pods: Iterable[PodInfo]) -> None:
        """Cordon `node` and remove `pods` from it, without placing replacements."""
        self.close(node)
        for pod in pods:
            self.model.remove(pod)

    def close(self, name: str) -> None:
        """Cordon the node `name`; if `deletes_nodes` is set, no pod can be placed on it anymore."""
        self.model.cordon(name)
        node = self.model.node(name).node
        if self.deletes_nodes and node.status.allocatable.get(PODS) != 0:
            allocatable = {**node.status.allocatable, PODS: 0}
            self.model.put_node(replace(node, status=replace(node.status, allocatable=allocatable)))

    def _move(
        self, node: str, pods: Sequence[PodInfo], first: Sequence[str]
    ) -> PlannedDrain | Unplaced:
        """Place replacements of `pods`; pods of the workloads in `first` are placed first.

        A replacement that fits no node is tried again in the next round if it may fit after other
        pods (`_may_follow`). If not all replacements can be placed, return an Unplaced for the
        first replacement that fitted no node in the last round.
        """
        ranks = {workload: rank for rank, workload in enumerate(first)}
        order = sorted(pods, key=lambda pod: ranks.get(str(workload_of(pod.pod)), len(first)))
        waiting = self.replaced(order)
        moves: list[PodMove] = []
        victims: list[PodInfo] = []
        pending: list[PodInfo] = []
        evicted = [pod for pod in order if pod.key not in self.reserved]
        while waiting:
            retried: list[PodInfo] = []
            unplaced: Unplaced | None = None
            for pod in waiting:
                new, workload = self.model.replacement(pod), str(workload_of(pod.pod))
                decision = self._schedule(new, victims)
                if isinstance(decision, Placement):
                    if pod.key in self.reserved:
                        continue
                    moves.append(PodMove(pod.key, workload, node, decision.node.name))
                    continue
                if self._may_stay_pending(pod):
                    pending.append(pod)
                    continue
                unplaced = unplaced or Unplaced(pod, new, self._message(decision))
                if not _may_follow(new.pod.spec):
                    return unplaced
                retried.append(pod)
            if unplaced is not None and len(retried) == len(waiting):
                return unplaced
            waiting = retried
        return PlannedDrain(
            node,
            tuple(moves),
            self._lost(evicted),
            self._charged(evicted),
            tuple(first),
            _commands_of_order(node, evicted, first),
            failing=self._failing(evicted),
            refused=self.refused(evicted),
            pending=tuple(pod.key for pod in pending),
            preempted=self._replace(victims),
        )

    def _message(self, failure: Failure) -> str:
        """Return the message of `failure`; it calls closed nodes cordoned instead of full.

        A closed node (`close`) takes no pods, so the scheduler calls it full. If an open node is
        full, too, the message is unchanged.
        """
        table = self.model.table
        is_full = table.alive & (table.allowed_pods > 0) & (table.pod_count >= table.allowed_pods)
        if not self.deletes_nodes or is_full.any():
            return failure.message
        return failure.message.replace(TOO_MANY_PODS, UNSCHEDULABLE.message)

    def _lost(self, pods: Iterable[PodInfo]) -> tuple[str, ...]:
        return tuple(pod.key for pod in pods if _is_lost(pod))

    def room_by_preemption(self, pod: PodInfo) -> PostFilterResult | None:
        """Return the node and victims of a preemption for `pod`, which fits no node.

        Return None if preemption makes no room.
        """
        with self.model.preempting():
            decision = self.model.schedule(pod)
        return None if isinstance(decision, Placement) else decision.post_filter_result

    def lacking_elsewhere(self, node: str) -> str:
        """Return a resource of which the other nodes have too little in total for `node`'s pods.

        The resource is `pods` if the other nodes cannot run this number of pods. Return "" if no
        resource is lacking in total; even so, `node` may be impossible to empty.
        """
        if self.ignores_negative and self._has_negative:
            return ""  # Replacements may preempt pods of other nodes: only `empty` can decide.
        table = self.model.table
        table.widen()
        info = self.model.node(node)
        pods = [self.model.as_replacement(pod) for pod in self.replaced(self.moving(node))]
        others = table.alive.copy()
        if not any(map(tolerates_cordon, pods)):
            others &= ~table.unschedulable
        others &= table.allowed_pods > 0  # 0 for a node without room for pods (`close`)
        others[info.row] = False
        free = np.maximum(table.allocatable - table.requested, 0)[:, others].sum(axis=1)
        needed = np.zeros(len(free), np.int64)
        for pod in pods:
            for column, amount in self.model.countable(pod.shape.requests):
                needed[column] += amount
        lacking = np.flatnonzero(needed > free)
        if len(lacking):
            return table.resources.names[int(lacking[0])]
        room = int(np.maximum(table.allowed_pods - table.pod_count, 0)[others].sum())
        return "pods" if len(pods) > room else ""

    def _charged(self, pods: Iterable[PodInfo]) -> dict[str, int]:
        charged: dict[str, int] = {}
        for pod in pods:
            for limit in self.budgets.guarding(pod.pod):
                charged[limit.key] = charged.get(limit.key, 0) + 1
        return charged

    # --- blockers --------------------------------------------------------------------------

    def _budget_blockers(self, node: str, pod: PodInfo, lost: Mapping[str, int]) -> list[Blocker]:
        """Return a blocker for each reason why budgets refuse the eviction of `pod` from `node`.

        `lost` maps the key of a budget to the number of the budget's pods on `node` that nothing
        would replace.
        """
        limits = self.budgets.guarding(pod.pod)
        if not limits:
            return []
        permitting = [one for one in limits if self.budgets.permits(pod.pod, one)]
        kept = max(permitting or limits, key=lambda one: bool(one.owner))
        others = [one for one in limits if one is not kept]
        found = [_several(node, pod, limits, others)] if others else []
        if permitting:
            return found
        spare = max(lost.get(kept.key, 0), 1)
        return [*found, *_exhausted(node, pod, kept, spare, self._scaled_up(pod, kept))]

    def _scaled_up(self, pod: PodInfo, limit: BudgetLimit) -> str:
        """Return an edit that gives the workload of `pod` two replicas; "" if it is useless."""
        workload = workload_of(pod.pod)
        can_scale = workload.kind in ("Deployment", "StatefulSet", "ReplicaSet", ROLLOUT)
        is_number = limit.rule == f"minAvailable {limit.wanted}"
        if limit.wanted != 1 or not can_scale or not is_number:
            return ""
        with self.model.hypothesis():
            first = self._second_replicas.obstacles(pod)
        return "; ".join((*first, self._second_replicas.command(workload)))

    @cached_property
    def _second_replicas(self) -> SecondReplicas:
        return SecondReplicas(self.model, self.admission)

    def _last_losses(self, node: str, pods: Iterable[PodInfo]) -> Iterator[Blocker]:
        """Yield a blocker for each budget that allows the loss of some, but not all, of `pods`."""
        lost: dict[BudgetLimit, list[PodInfo]] = {}
        for pod in pods:
            limits = self.budgets.guarding(pod.pod) if _is_lost(pod) else []
            if len(limits) == 1 and limits[0].now > 0:
                lost.setdefault(limits[0], []).append(pod)
        for limit, found in lost.items():
            if len(found) > limit.losses_max:
                yield _beyond(node, found, limit)

    def _sharing(self, node: str, pods: Iterable[PodInfo]) -> Iterator[Blocker]:
        """Yield a blocker if a budget allows evicting only some of the pods that share a claim.

        Only one node at a time can use the claim (`SharedClaims`). So replacements become ready
        only after all pods that use the claim are evicted.
        """
        guarded: dict[BudgetLimit, dict[str, PodInfo]] = {}
        for pod in pods:
            limits = self.budgets.guarding(pod.pod) if is_placed_anew(pod) else []
            if len(limits) == 1 and limits[0].now > 0:
                guarded.setdefault(limits[0], {})[pod.key] = pod
        for limit, found in guarded.items():
            shared = SharedClaims(self.model.cluster).users(one.pod for one in found.values())
            for claim, users in shared.items():
                if len(users) > limit.losses_max:
                    yield _together(node, found[users[limit.losses_max].key], limit, claim, users)


def _is_lost(pod: PodInfo) -> bool:
    """Return whether nothing replaces `pod`, a pod that a drain evicts."""
    return not (is_leaving(pod) or is_placed_anew(pod) or is_guard(pod.pod))


def _may_follow(spec: PodSpec) -> bool:
    """Return whether placing other pods first may help a pod with `spec` to fit a node.

    The result is True if `spec` has pod affinity or topology spread constraints.
    """
    if spec.affinity is not None and spec.affinity.pod_affinity is not None:
        return True
    return any(
        one.when_unsatisfiable == DO_NOT_SCHEDULE for one in spec.topology_spread_constraints
    )


def _can_precede(other: PodInfo, pod: PodInfo) -> bool:
    """Return whether placing `other` first may help `pod` to fit a node.

    `_may_follow` must be True for the spec of `pod`. A topology spread constraint of `pod` counts
    `other` only if `other` is in the same namespace and matches the selector of the constraint.
    """
    affinity = pod.pod.spec.affinity
    if affinity is not None and affinity.pod_affinity is not None:
        return True
    return other.namespace == pod.namespace and any(
        one.when_unsatisfiable == DO_NOT_SCHEDULE
        and one.label_selector is not None
        and selector_matches(one.label_selector, other.labels)
        for one in pod.pod.spec.topology_spread_constraints
    )


def blocker_of(node: str, found: Unplaced, *, is_first: bool) -> Blocker:
    """Return the blocker for the pod of `found`, which fits no node.

    `is_first` is set if the pods of `found.workload` were placed before all other pods.
    """
    cause = BlockCause.NO_PLACE if is_first else BlockCause.NO_ROOM
    why, workload = _why(found.message), found.workload
    return Blocker(node, found.pod.key, cause, workload, why, workload=workload)


def _wrong_order(
    node: str, pods: Sequence[PodInfo], unplaced: Unplaced, first: Sequence[str]
) -> Blocker:
    """Return the blocker for a node whose `pods` fit elsewhere, but not in queue order.

    The pods fit if the pods of the workloads in `first` are placed before the other pods.
    `unplaced` is the pod that finds no node in queue order. The field `edit` of the blocker
    contains the commands of `_commands_of_order`.
    """
    why, edit = _why(unplaced.message), f"evict {first_in_words(first)}"
    if commands := _commands_of_order(node, pods, first):
        edit += f": {', then '.join(commands)}; drain {node} when they run again"
    workload = unplaced.workload
    return Blocker(node, unplaced.pod.key, BlockCause.ORDER, workload, why, edit, workload=workload)


def first_in_words(first: Sequence[str]) -> str:
    """Return text such as `the pods of a first, then those of b` for the workloads in `first`."""
    return f"the pods of {first[0]} first" + "".join(f", then those of {one}" for one in first[1:])


def _commands_of_order(node: str, pods: Sequence[PodInfo], first: Sequence[str]) -> tuple[str, ...]:
    """Return kubectl commands that evict the pods of the workloads in `first` from `node`.

    There is one command for each workload, with the flags that its pods need. Return () if no label
    selector can distinguish the pods of one of these workloads from the other `pods` of the node.
    """
    selectors = [_selector(owner, pods) for owner in first]
    if not all(selectors):
        return ()
    return tuple(
        " ".join([f"kubectl drain {node} --pod-selector {selector}", *_flags(owner, pods)])
        for owner, selector in zip(first, selectors, strict=True)
    )


def _why(message: str) -> str:
    """Return the reasons in a FailedScheduling message, with "(cordoned)" after `unschedulable`."""
    return with_explanation(short_reason(message))


def _selector(workload: str, pods: Iterable[PodInfo]) -> str:
    """Return a label selector that selects, of `pods`, exactly the pods of `workload`.

    Return "" if their labels allow no such selector. The selector has one label if one is enough,
    preferably a label that no controller adds.
    """
    own, others = list[dict[str, str]](), list[dict[str, str]]()
    for pod in pods:
        is_own = str(workload_of(pod.pod)) == workload
        (own if is_own else others).append(pod.pod.metadata.labels)
    common = {item for item in own[0].items() if all(item in one.items() for one in own)}
    ordered = sorted(common, key=lambda item: (item[0] in _ADDED_LABELS, item))
    for chosen in (*([one] for one in ordered), ordered):
        if chosen and not any(set(chosen) <= one.items() for one in others):
            return ",".join(f"{key}={value}" for key, value in chosen)
    return ""


def _flags(workload: str, pods: Iterable[PodInfo]) -> list[str]:
    """Return the flags that `kubectl drain` needs for the `pods` that belong to `workload`."""
    own = (pod.pod for pod in pods if str(workload_of(pod.pod)) == workload)
    return [one.flag for one in needed_flags(own)]


def _never_ends_pods(node: Node) -> bool:
    """Return whether evicted pods of `node` stay terminating forever.

    The result is True if the kubelet does not answer and the node lacks the taint out-of-service.

    upstream: pkg/controller/podgc/gc_controller.go: gcTerminating
    """
    is_out = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return ready_status(node) == UNKNOWN and not is_out


def _silent(node: str) -> Blocker:
    why = "its kubelet does not answer, so evicted pods never stop"
    edit = f"repair the kubelet of node/{node}, or delete the node if its machine is gone"
    return Blocker(node, "", BlockCause.SILENT, f"node/{node}", why, edit)


def _stuck(node: str, pod: Pod) -> Blocker:
    """Return the blocker of `node` for `pod`, which its kubelet cannot stop (`is_stuck`)."""
    owner, meta = f"pod/{pod.key}", pod.metadata
    edit = (
        f"end the containers of {owner} and then run kubectl -n {meta.namespace} delete pod "
        f"{meta.name} --force, or drain with --skip-wait-for-delete-timeout"
    )
    why = f"is being deleted; {stuck_words(pod)}"
    workload = str(workload_of(pod))
    return Blocker(node, pod.key, BlockCause.STUCK, owner, why, edit, workload=workload)


def _several(
    node: str, pod: PodInfo, limits: Sequence[BudgetLimit], others: Sequence[BudgetLimit]
) -> Blocker:
    """Return the blocker of `pod`, which all the budgets in `limits` cover.

    The eviction API refuses a pod with several budgets. The edit of the blocker deletes `others`,
    which are all of `limits` except one.
    """
    which = joined(map(_name, limits))
    why = f"{which} select it; the eviction API refuses pods with several budgets"
    edit = f"kubectl -n {pod.namespace} delete pdb {' '.join(map(_name, others))}"
    if owners := [one.owner for one in others if one.owner]:
        keys = " and ".join(f"pdb/{one.key}" for one in others)
        edit = f"remove {keys} in {' and '.join(owners)}, which would create it again"
    return _of_budget(node, pod, BlockCause.SEVERAL_BUDGETS, others[-1], why, edit)


def _of_budget(
    node: str, pod: PodInfo, cause: BlockCause, limit: BudgetLimit, why: str, edit: str
) -> Blocker:
    """Return a blocker for `pod`; the object to change (`owner`) is the budget of `limit`.

    `why` is the reason, and `edit` is the change that removes it. Both are texts for users.
    """
    workload = str(workload_of(pod.pod))
    return Blocker(node, pod.key, cause, f"pdb/{limit.key}", why, edit, workload=workload)


def _name(limit: BudgetLimit) -> str:
    """Return the name of the budget of `limit`, without its namespace."""
    return limit.key.partition("/")[2]


def _exhausted(
    node: str, pod: PodInfo, limit: BudgetLimit, spare: int, scaled_up: str
) -> Iterator[Blocker]:
    """Yield blockers, each with an edit, for `pod`, whose budget allows no eviction now.

    If the budget never allows an eviction, the edit is `scaled_up`, which adds a replica. If
    `scaled_up` is "", the edit changes the budget's rule. If too few pods would be ready even after
    this edit, a second blocker follows.

    An edit that changes the rule sets maxUnavailable 1. This value would allow no eviction if the
    pods have no controller with a known scale. For such pods, the edit sets a minAvailable that
    leaves room for `spare` evictions.
    """
    if limit.problem:
        why = f"its status cannot be computed: {limit.problem}"
        edit = relaxed(limit, spare)
        yield _of_budget(node, pod, BlockCause.BUDGET_NEVER, limit, why, edit)
        return
    rule, healthy, needed, after = limit.rule, limit.healthy, limit.desired, ""
    if limit.is_permanent:
        after = "even after the other change, "  # `rule` and `healthy` are those after the edit
        why = f"{rule} with {limit.wanted} wanted leaves no room even if all are ready"
        if limit.lacks_scale:
            why = f"{rule} counts the replicas of controllers, and its pods have no controller"
        if operator := limit.owner or _custom_controller(pod.pod):
            why += f", unless {operator} reacts to the drain"
        edit = scaled_up or _reaction(node, pod.pod, limit) or relaxed(limit, spare)
        yield _of_budget(node, pod, BlockCause.BUDGET_NEVER, limit, why, edit)
        if scaled_up:
            healthy += 1  # the new replica is ready, too
        elif limit.lacks_scale:
            needed = max(limit.healthy - spare, 0)
            rule = f"minAvailable {needed}"
        elif not limit.has_scales:
            needed = max(limit.wanted - spare, 0)
            rule = f"minAvailable {needed}"
        else:
            rule, needed = RELAXED_RULE, limit.wanted - 1
        # upstream: pkg/registry/core/pod/storage/eviction.go:Create, for a pod that is not ready
        if healthy > needed or (healthy >= needed > 0 and not is_ready_pod(pod.pod)):
            return
    why = f"{after}{healthy} ready, {needed} needed ({rule})"
    count = needed + 1 - healthy
    more = "1 more pod" if count == 1 else f"{count:,} more pods"
    edit = f"make {more} ready for pdb/{limit.key}"
    if not (limit.is_permanent or is_ready_pod(pod.pod)):
        why += "; the pod itself is not ready"
        patch = '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}'
        edit = _patched(limit, patch, "unhealthyPodEvictionPolicy AlwaysAllow")
    yield _of_budget(node, pod, BlockCause.BUDGET_NOW, limit, why, edit)


def _reaction(node: str, pod: Pod, limit: BudgetLimit) -> str:
    """Return what makes the operator that controls `pod` move it away from `node`; "" if unknown.

    `limit` is the limit of the budget of `pod`. Users should not edit a budget that an operator
    made: the operator would revert the change, or the eviction could lose data. If the budget of an
    instance of CloudNativePG has no owner, a user made the budget. The result is then "", because
    such a budget blocks the eviction of an old primary, too. The owner does not matter for
    Longhorn, whose budgets have no owner, and for KubeVirt, which moves a virtual machine whichever
    budget refuses the eviction.
    """
    owner = controller_of(pod.metadata)
    group = "" if owner is None else owner.api_version.rpartition("/")[0]
    if group == _CLOUD_NATIVE_PG and not limit.owner:
        return ""
    return _REACTIONS[group].format(node=node) if group in _REACTIONS else ""


def _custom_controller(pod: Pod) -> str:
    """Return kind, namespace and name of the custom resource that controls `pod`, or ""."""
    owner = controller_of(pod.metadata)
    if owner is None or not is_custom(owner.api_version):
        return ""
    return f"{owner.kind} {pod.metadata.namespace}/{owner.name}"


def _beyond(node: str, lost: Sequence[PodInfo], limit: BudgetLimit) -> Blocker:
    """Return a blocker of `node` for the first pod in `lost` that the budget cannot spare.

    `lost` are the pods that a drain of `node` evicts and that no controller replaces. The budget
    allows the loss of `limit.losses_max` pods.
    """
    count, allowed = len(lost), limit.losses_max
    pods = f"{allowed:,} of {counted(count, 'pod')} without a controller"
    why = f"{limit.rule} allows the loss of {pods}"
    edit = _with_min_available(limit, limit.desired - (count - allowed))
    return _of_budget(node, lost[allowed], BlockCause.BUDGET_NEVER, limit, why, edit)


def _together(
    node: str, pod: PodInfo, limit: BudgetLimit, claim: str, users: Sequence[Pod]
) -> Blocker:
    """Return the blocker of a drain that must evict all `users` of `claim`, one after another.

    The budget allows only some of these evictions. `pod` is the first of the users whose eviction
    the budget refuses.
    """
    count, allowed = len(users), limit.losses_max
    why = (
        f"{limit.rule} allows the eviction of {allowed:,} of {count:,} pods that share {claim}; "
        "the new pods wait until all have left the node"
    )
    edit = _with_min_available(limit, limit.desired - (count - allowed))
    return _of_budget(node, pod, BlockCause.BUDGET_NEVER, limit, why, edit)


def relaxed(limit: BudgetLimit, spare: int) -> str:
    """Return an edit that lets the budget of `limit` allow an eviction.

    The rule becomes maxUnavailable 1. If the pods have no controller with a scale, the rule becomes
    a minAvailable that leaves room for `spare` evictions.
    """
    patch = '{"spec":{"minAvailable":null,"maxUnavailable":1}}'
    if limit.lacks_scale:
        return _with_min_available(limit, limit.healthy - spare)
    if not limit.has_scales:
        return _with_min_available(limit, limit.wanted - spare)
    return _patched(limit, patch, RELAXED_RULE)


def _with_min_available(limit: BudgetLimit, count: int) -> str:
    count = max(count, 0)
    patch = f'{{"spec":{{"maxUnavailable":null,"minAvailable":{count}}}}}'
    return _patched(limit, patch, f"minAvailable {count}")


def _patched(limit: BudgetLimit, patch: str, rule: str) -> str:
    """Return the command that applies the merge patch `patch` to the budget of `limit`.

    `rule` describes the patched field in words. If the budget has an owner, which would revert the
    patch, return a text that says to set `rule` in the owner.
    """
    if limit.owner:
        return f"set {rule} for pdb/{limit.key} in {limit.owner}, which owns the budget"
    namespace, _, name = limit.key.partition("/")
    return f"kubectl -n {namespace} patch pdb {name} --type merge -p '{patch}'"
