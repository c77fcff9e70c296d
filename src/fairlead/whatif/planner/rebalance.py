"""rebalance: moves of running pods that place waiting pods and even out the nodes.

A move evicts a pod, and the scheduler places its replacement. There are three kinds of moves. The
first kind that is possible is taken:

    1  A pod that waits for room gets a place, because one other pod of the same or a lower priority
       moves. The first waiting pod for which there is such a move gets a place. Of the moves that
       help this pod, the move that leaves the nodes most even is taken.
    2  As 1, but the node of the moved pod is cordoned until the replacement has a place on another
       node. Without the cordon, the scheduler would place the replacement on the same node again.
    3  The loads of the nodes become more even. The fullest node that has a pod whose move helps is
       chosen. The pod on this node whose move lowers the sum of squared loads most is moved.

The load of a node is the requested share of its cpu or memory, whichever is larger. In sums and
averages, nodes are weighted by their size. No move of kind 3 makes its target fuller than its
origin was before. A pod moves only if budgets and the rules of the autoscalers allow its eviction.
The controller of the pod must be able to create the replacement: the eviction must not make a Job
fail, and the API server must admit the replacement. The images of the pod must run on its new node.
Moves are made one at a time, each after the replacement of the previous move is ready.

Most controllers create the replacement while the old pod still stops (`_ReplacementOrder`). Then
the scheduler chooses the node of the replacement first. The waiting pod gets a place when the old
pod is gone.

Example: nodes with loads 0.9 and 0.3 and a pod of 0.2 on the first node. A move of this pod leads
to the loads 0.7 and 0.5; the sum of squares falls from 0.90 to 0.74.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.objects import ApiObject, Job
from fairlead.api.pods.facts import controller_of
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ARCH, OS, is_virtual
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY
from fairlead.engine.workloads.job.progress import replaces_failed_only
from fairlead.whatif.outcome.image_platform import SAME_PLATFORM, ImagePlatforms
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import is_leaving, is_placed_anew
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.planner.node_drain.autoscaler_rule import RULE_OF, AutoscalerRules, IgnoredRule
from fairlead.whatif.planner.node_drain.drain_planner import DrainPlanner, PodMove
from fairlead.whatif.planner.node_drain.job_room import JobRoom
from fairlead.whatif.planner.node_drain.replacement_admission import ReplacementAdmission
from fairlead.whatif.planner.stopping_pod import StoppingPod, stopping_pod
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.progress import Progress

_CREATING_FIRST: Final = frozenset(("ReplicaSet", "ReplicationController", "Job"))
_BARE: Final = "pod/"  # the beginning of the name of a workload that is a single pod
MOVES_MAX: Final = 10_000
# A smaller decrease of the sum of squared loads is not worth an eviction. Example of this gain: a
# pod of 5% of its node moves to an equal node with a load 10 points lower.
_GAIN_MIN: Final = 5e-3
_NODES_TRIED_MAX: Final = 8  # number of the fullest nodes that are tried before the search ends

_Candidate = tuple[NodeInfo, PodInfo]  # a pod that may move, after its node


class NodeBalance(Struct, frozen=True):
    """The number of waiting pods, and how even the loads of schedulable, ready nodes are.

    `fullest` is the largest load, `deviation` is the standard deviation of the loads, and `squares`
    is the sum of the squared loads. `deviation` and `squares` are weighted by the size of the
    nodes: a node of average size has the weight 1.
    """

    waiting: int
    fullest: float
    deviation: float
    squares: float


class GainingMove(Struct, frozen=True):
    """A move, with the balance before and after it.

    `placed` is the key of the waiting pod that got room, "" if the move only evens out the nodes.
    If `is_cordoned` is set, the pod's node must be cordoned before the eviction, and stay cordoned
    until the replacement has a node.
    """

    move: PodMove
    before: NodeBalance
    after: NodeBalance
    placed: str = ""
    is_cordoned: bool = False

    @property
    def gain(self) -> float:
        """The decrease of the sum of squared loads; may be negative if a waiting pod is placed."""
        return self.before.squares - self.after.squares


class RebalancePlan(Struct):
    """The moves in order, and the balance before the first move and after the last move."""

    before: NodeBalance
    after: NodeBalance
    moves: list[GainingMove] = field(default_factory=list)
    # The number of pods that each rule of the autoscalers keeps on their nodes.
    kept: Counter[IgnoredRule] = field(default_factory=Counter)
    failing: int = 0  # the number of pods whose Jobs would not replace them
    # By pod, the message with which the API server refuses its replacement for good.
    refused: dict[str, str] = field(default_factory=dict)
    # The workloads of the pods whose images might not support the platform of the node that the pod
    # would get. The moves of these pods are left out.
    mismatched: tuple[str, ...] = ()


class _ReplacementOrder:
    """Says for each pod whether its controller creates the replacement before the pod has stopped.

    A ReplicaSet or a ReplicationController creates the replacement first if the quotas have room
    for both pods. A Job does the same if its podReplacementPolicy allows this. A StatefulSet gives
    its new pod the same name, so it waits until the old pod has stopped. Other controllers are
    assumed to wait, too.

    upstream: pkg/controller/controller_utils.go: FilterActivePods
    """

    def __init__(self, objects: Iterable[ApiObject], admission: ReplacementAdmission) -> None:
        """Use the Jobs in `objects`, and the current state of `admission`."""
        self._admission = admission
        self._waiting_jobs = {
            one.metadata.uid
            for one in objects
            if isinstance(one, Job) and replaces_failed_only(one)
        }

    def creates_first(self, pod: PodInfo) -> bool:
        """Return whether the replacement of `pod` exists while `pod` still stops."""
        owner = controller_of(pod.pod.metadata)
        if owner is None or owner.kind not in _CREATING_FIRST or owner.uid in self._waiting_jobs:
            return False
        return not self._admission.refusal_of_another(pod)


class Rebalancer:
    """Searches for moves of pods that make room for waiting pods and even out the load of nodes."""

    def __init__(
        self,
        planner: DrainPlanner,
        rules: AutoscalerRules,
        images: ImagePlatforms = SAME_PLATFORM,
    ) -> None:
        """Prepare moves in the model of `planner`; `rules` and budgets must allow each eviction.

        `images` are the platforms of the images. No move places a pod on a node if one of the pod's
        images might not support the platform of the node.
        """
        self._planner = planner
        self._model = planner.model
        self._rules = rules
        self._images = images
        self._mismatched: set[str] = set()
        self._jobs = JobRoom(
            self._model.current_objects(), self._model.now, self._model.stop_exit_code
        )
        self._admission = ReplacementAdmission(planner.model)
        self._replacement_order = _ReplacementOrder(self._model.current_objects(), self._admission)
        table = planner.model.table
        self._counts = np.zeros(len(table.alive), np.bool_)  # by row
        for info in table.nodes():
            self._counts[info.row] = takes_pods(info.node) and not is_virtual(info.labels)
        self._waiting: list[PodInfo] = []

    def run(self, moves_max: int, progress: Progress) -> RebalancePlan:
        """Return a plan with at most `moves_max` moves.

        Waiting pods that fit without a move are placed first; `NodeBalance.waiting` does not count
        them.
        """
        for pod in self._model.waiting_pods():
            with self._model.hypothesis() as supposed:
                self._model.remove(pod)
                if isinstance(self._model.schedule(self._model.replacement(pod)), Placement):
                    supposed.commit()  # the pod fits a node and waits only for the scheduler
                else:
                    self._waiting.append(pod)
        before = self._balance()
        plan = RebalancePlan(
            before, before, kept=self._kept(), failing=self._failing(), refused=self._refused()
        )
        progress.begin("looking for moves", moves_max)
        while len(plan.moves) < moves_max:
            progress.reach(len(plan.moves), 0)
            found = self._make_room() or self._even_out()
            if found is None:
                break
            plan.moves.append(found)
            plan.after = found.after
        plan.mismatched = tuple(sorted(self._mismatched))
        return plan

    # --- measures --------------------------------------------------------------------------

    def _loads(self) -> npt.NDArray[np.float64]:
        """Return the load of the node in each row of the node table.

        The load is 0 for a row that `_open_rows` excludes.
        """
        table = self._model.table
        whole = np.maximum(table.allocatable[[CPU, MEMORY]], 1)
        loads = (table.requested[[CPU, MEMORY]] / whole).max(axis=0)
        return np.where(self._open_rows(), loads, 0.0)

    def _open_rows(self) -> npt.NDArray[np.bool_]:
        """Return, for each row of the node table, whether the node counts in the balance.

        A node counts if it is schedulable, takes pods, has allocatable cpu and memory, and is not
        virtual. The cores that a virtual node states are not cores of a machine.
        """
        table = self._model.table
        has_size = (table.allocatable[[CPU, MEMORY]] > 0).all(axis=0)
        rows: npt.NDArray[np.bool_] = table.alive & ~table.unschedulable & self._counts & has_size
        return rows

    def _balance(self) -> NodeBalance:
        loads, open_at = self._loads(), self._open_rows()
        if not open_at.any():
            return NodeBalance(len(self._waiting), 0.0, 0.0, 0.0)
        seen, sizes = loads[open_at], self._sizes(open_at)
        average = float(sizes @ seen) / len(seen)
        deviation = (float(sizes @ (seen - average) ** 2) / len(seen)) ** 0.5
        squares = float(sizes @ seen**2)
        return NodeBalance(len(self._waiting), float(seen.max()), deviation, squares)

    def _sizes(self, open_at: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return the sizes of the nodes in the rows `open_at` of the node table.

        A node's size is the mean of its share of all cpu and its share of all memory. The sizes are
        scaled so that their average is 1.
        """
        offered = self._model.table.allocatable[[CPU, MEMORY]][:, open_at]
        shares = offered / np.maximum(offered.sum(axis=1, keepdims=True), 1)
        total = shares.sum()
        return shares.sum(axis=0) * (shares.shape[1] / total) if total else np.ones(shares.shape[1])

    # --- moves -----------------------------------------------------------------------------

    def _make_room(self) -> GainingMove | None:
        """Make a move that gives a waiting pod a place, keep it in the model, and return it.

        Moves with a cordon are tried only if no other move gives any waiting pod a place. Return
        None if no single move gives a waiting pod a place.
        """
        stays: dict[str, list[_Candidate]] = {}
        for waiting in list(self._waiting):
            stays[waiting.key] = []
            candidates = (
                (info, pod)
                for info, pod in self._movable(self._model.table.nodes())
                if pod.priority <= waiting.priority and self._could_hold(info, pod, waiting)
            )
            best, stays[waiting.key] = self._best_for(waiting, candidates)
            if best is not None and (found := self._commit(*best, waiting)):
                return found
        for waiting in list(self._waiting):
            best, _ = self._best_for(waiting, stays[waiting.key], cordons=True)
            if best is not None and (found := self._commit(*best, waiting, cordons=True)):
                return found
        return None

    def _best_for(
        self, waiting: PodInfo, candidates: Iterable[_Candidate], *, cordons: bool = False
    ) -> tuple[_Candidate | None, list[_Candidate]]:
        """Return (best candidate, candidates that need a cordon); one of `candidates` is to move.

        The move of the best candidate gives `waiting` a place, and leaves the nodes the most even;
        the best candidate is None if no move gives `waiting` a place. If `cordons` is set, the node
        of the candidate is cordoned during the move. A candidate needs a cordon if its replacement
        would go to the old node again, and this node is not cordoned yet.
        """
        best: tuple[float, _Candidate] | None = None
        stays = []
        for info, pod in candidates:
            with self._model.hypothesis():
                move = self._moved(info, pod, waiting, cordons=cordons)
                if move is None:
                    continue
                if move.target == info.name:
                    # The waiting pod cannot be placed on a node that is cordoned already.
                    if not info.node.spec.unschedulable:
                        stays.append((info, pod))
                elif self._images_run(pod, move.target):
                    squares = self._balance().squares
                    if best is None or squares < best[0]:
                        best = squares, (info, pod)
        return (None if best is None else best[1]), stays

    def _even_out(self) -> GainingMove | None:
        """Make a helpful move of a pod, keep it in the model, and return it.

        A move is helpful if it lowers `NodeBalance.squares` by more than `_GAIN_MIN`. In addition,
        it must not make its target fuller than its origin was. Only nodes of `_open_rows` can be
        targets. The `_NODES_TRIED_MAX` fullest nodes are tried as origins, the fullest first. From
        the first origin with a helpful move, the move that lowers `squares` most is made. Return
        None if there is no helpful move, or if `_commit` rejects the move.
        """
        before, loads, is_open = self._balance().squares, self._loads(), self._open_rows()
        for row in np.argsort(-loads, kind="stable")[:_NODES_TRIED_MAX].tolist():
            if not loads[row]:
                return None
            info = self._model.table.at(row)
            best: tuple[float, PodInfo] | None = None
            for _, pod in self._movable([info]):
                with self._model.hypothesis():
                    move = self._moved(info, pod, None)
                    if move is None or move.target == info.name:
                        continue
                    if not is_open[self._model.node(move.target).row]:
                        continue
                    if self._load_of(move.target) <= loads[row]:
                        squares = self._balance().squares
                        is_best = best is None or squares < best[0]
                        if before - squares <= _GAIN_MIN or not is_best:
                            continue
                        if self._images_run(pod, move.target):
                            best = squares, pod
            if best is not None:
                return self._commit(info, best[1], None)
        return None

    def _could_hold(self, info: NodeInfo, pod: PodInfo, waiting: PodInfo) -> bool:
        """Return False if the node certainly lacks room for the pod `waiting` in place of `pod`."""
        freed = dict(pod.shape.load)
        return all(
            info.requested_of(column) - freed.get(column, 0) + amount
            <= (info.allocatable[column] if column < len(info.allocatable) else 0)
            for column, amount in self._model.countable(waiting.shape.wanted)
        )

    def _load_of(self, node: str) -> float:
        return float(self._loads()[self._model.node(node).row])

    def _movable(self, infos: list[NodeInfo]) -> Iterator[tuple[NodeInfo, PodInfo]]:
        """Yield (node, pod) for the pods of `infos` that may move.

        If several such pods on a node have the same labels and the same `shape` (the part of the
        spec that affects scheduling), only one is yielded.
        """
        for info in infos:
            seen: set[tuple[int, tuple[tuple[str, str], ...]]] = set()
            for pod in self._planner.evicted(info.name):
                alike = (pod.shape.id, tuple(sorted(pod.labels.items())))
                if alike not in seen and self._may_move(info.name, pod):
                    seen.add(alike)
                    yield info, pod

    def _may_move(self, node: str, pod: PodInfo) -> bool:
        limits = self._planner.budgets.guarding(pod.pod)
        return (
            not is_leaving(pod)
            and ready_status(self._model.node(node).node) != UNKNOWN  # its pods never stop
            and len(limits) <= 1
            and all(limit.now > 0 for limit in limits)
            and self._rules.pod_blocker(node, pod.pod) is None
            and self._jobs.replaces(pod.pod)
            and not self._admission.refusal(pod)
        )

    def _kept(self) -> Counter[IgnoredRule]:
        """Return, for each autoscaler rule, the number of pods that cannot move because of it."""
        nodes = self._model.table.nodes()
        pods = (
            (info.name, pod.pod)
            for info in nodes
            for pod in self._planner.evicted(info.name)
            if not is_leaving(pod)
        )
        found = (self._rules.pod_blocker(*one) for one in pods)
        return Counter(RULE_OF[one.cause] for one in found if one and one.cause in RULE_OF)

    def _failing(self) -> int:
        """Return the number of pods whose Jobs would not replace them after an eviction."""
        nodes = self._model.table.nodes()
        pods = (pod for info in nodes for pod in self._planner.evicted(info.name))
        return sum(not (is_leaving(pod) or self._jobs.replaces(pod.pod)) for pod in pods)

    def _refused(self) -> dict[str, str]:
        """Return the message for each pod whose replacement is always refused, by pod key."""
        nodes = self._model.table.nodes()
        pods = (pod for info in nodes for pod in self._planner.evicted(info.name))
        found = {pod.key: self._admission.refusal(pod) for pod in pods if is_placed_anew(pod)}
        return {key: message for key, message in found.items() if message}

    def _moved(
        self, info: NodeInfo, pod: PodInfo, waiting: PodInfo | None, *, cordons: bool = False
    ) -> PodMove | None:
        """Evict `pod`; schedule its replacement, and also the pod `waiting` unless it is None.

        If `cordons` is set, the node `info` is cordoned from before the eviction until the
        replacement has a node. Return the move of `pod`. If the replacement is created while `pod`
        stops, and goes to the old node again, the target of the move is this node, and the pod
        `waiting` is not scheduled. Return None if the pod `waiting` fits no node, or if its images
        might not run on the node that it gets. Also return None if the replacement fits no node, or
        if it is created later and goes to the old node again.
        """
        model = self._model
        is_first = self._replacement_order.creates_first(pod)
        stopping = stopping_pod(pod.pod, model.cluster, model.now) if is_first else None
        model.remove(pod)
        node = info.node
        if cordons:
            model.cordon(info.name)
        early = None if stopping is None else self._placed_early(pod, stopping)
        workload = str(workload_of(pod.pod))
        if early is not None and early.node.name == info.name:
            return PodMove(pod.key, workload, info.name, info.name)
        if waiting is not None and not cordons and not self._is_placed(waiting):
            return None
        decision = early or model.schedule(model.replacement(pod))
        if not isinstance(decision, Placement) or decision.node.name == info.name:
            return None
        if cordons:
            model.put_node(node)
            if waiting is not None and not self._is_placed(waiting):
                return None
        return PodMove(pod.key, workload, info.name, decision.node.name)

    def _is_placed(self, waiting: PodInfo) -> bool:
        """Schedule the pod `waiting`; return whether it gets a node on which its images run."""
        self._model.remove(waiting)
        placed = self._model.schedule(self._model.replacement(waiting))
        return isinstance(placed, Placement) and self._images_run(waiting, placed.node.name)

    def _placed_early(self, pod: PodInfo, stopping: StoppingPod) -> Placement | None:
        """Schedule the replacement of `pod` while `pod` stops; return None if it fits no node then.

        `pod` has been removed from the model, and stays removed. `stopping` takes its place in the
        model during the scheduling cycle.
        """
        model = self._model
        model.put(stopping.pod)
        for claim in stopping.claims:
            model.put(claim)
        decision = model.schedule(model.replacement(pod))
        model.remove(model.pod_info(stopping.pod))
        return decision if isinstance(decision, Placement) else None

    def _images_run(self, pod: PodInfo, node: str) -> bool:
        """Return False, and remember the workload, if images of `pod` might not run on `node`."""
        if not self._images.may_mismatch(pod.pod, node, self._model.node(node).labels):
            return True
        self._mismatched.add(str(workload_of(pod.pod)))
        return False

    def _commit(
        self, info: NodeInfo, pod: PodInfo, waiting: PodInfo | None, *, cordons: bool = False
    ) -> GainingMove | None:
        """Repeat the move of `pod` that `_moved` has tried; commit this move, and return it.

        `waiting` is a waiting pod that is scheduled after the removal of `pod`, or None. If
        `cordons` is set, `waiting` is scheduled when the replacement of `pod` has a node
        (`_moved`). The repeated move can have another target, because a tie-break chooses again.
        Change nothing and return None if the repeated move fails, or if the pod's images might not
        support the platform of the target. A move without a `waiting` pod also fails if the nodes
        do not become more even, or if the target becomes fuller than the node `info` was.
        """
        before, load = self._balance(), self._load_of(info.name)
        with self._model.hypothesis() as supposed:
            move = self._moved(info, pod, waiting, cordons=cordons)
            if move is None or move.target == info.name:
                return None
            if not self._images_run(pod, move.target):
                return None
            is_worse = (
                self._balance().squares >= before.squares or self._load_of(move.target) > load
            )
            if waiting is None and is_worse:
                return None
            supposed.commit()
        self._jobs.evict(pod.pod)
        self._admission.replace(pod)
        if waiting is not None:
            self._waiting.remove(waiting)
        placed = "" if waiting is None else waiting.key
        return GainingMove(move, before, self._balance(), placed, cordons)


# --- the answer -------------------------------------------------------------------------------


def rebalance_answer(plan: RebalancePlan, source: str, notes: tuple[str, ...]) -> TabularAnswer:
    """Return the answer of `fairlead rebalance`."""
    rows = [
        {
            "step": number,
            "pod": one.move.pod,
            "from": one.move.origin,
            "to": one.move.target,
            "cordon": one.move.origin if one.is_cordoned else "",
            "places": one.placed,
            "gain": round(one.gain, 6),
            "deviation": round(one.after.deviation, 6),
            "points": f"{100 * (one.before.deviation - one.after.deviation):.2f}",
        }
        for number, one in enumerate(plan.moves, 1)
    ]
    columns = (
        ResultColumn("step", "step", NUMBER, 1),
        ResultColumn("pod", "pod", NAME),
        ResultColumn("from", "from", NAME),
        ResultColumn("to", "to", NAME),
        ResultColumn("cordon", "cordon first", NAME),
        ResultColumn("points", "gain (points)", NUMBER),
        ResultColumn("places", "makes room for", NAME),
    )
    facts: Json = {"before": _balance_json(plan.before), "after": _balance_json(plan.after)}
    table = ResultTable("moves", "moves, one at a time", columns, rows, 12)
    return TabularAnswer(
        "Rebalance", source, _verdict(plan), tuple(_findings(plan)), (table,), facts, notes
    )


def _balance_json(balance: NodeBalance) -> Json:
    return {
        "waiting_pods": balance.waiting,
        "fullest_load": round(balance.fullest, 6),
        "deviation": round(balance.deviation, 6),
    }


def _verdict(plan: RebalancePlan) -> str:
    if not plan.moves:
        which = "allowed move" if plan.kept else "move"  # a finding says which rules keep pods
        return f"No {which} of one pod gives a waiting pod a place or makes the nodes more even."
    placed = plan.before.waiting - plan.after.waiting
    several = len(plan.moves) > 1
    give, take, make = ("give", "take", "make") if several else ("gives", "takes", "makes")
    room = f" {give} {counted(placed, 'waiting pod')} a place and" if placed else ""
    before, after = f"{plan.before.fullest:.0%}", f"{plan.after.fullest:.0%}"
    effect = f"{take} the fullest node from {before} to {after}"
    if before == after:
        effect = f"{make} the nodes more even; the fullest stays at {after}"
        if placed:
            effect = f"{'leave' if several else 'leaves'} the fullest node at {after}"
    return f"{counted(len(plan.moves), 'move')}{room} {effect}."


def _findings(plan: RebalancePlan) -> Iterator[str]:
    before, after = 100 * plan.before.deviation, 100 * plan.after.deviation
    then = f", and {after:.1f} after the moves" if plan.moves else ""
    what = "The standard deviation of the loads of nodes"
    yield f"{what} is {before:.1f} percentage points now{then}."
    if plan.after.waiting:
        yield f"{counted(plan.after.waiting, 'waiting pod')} would still find no place."
    cordoned = [str(step) for step, one in enumerate(plan.moves, 1) if one.is_cordoned]
    if cordoned:
        which = "step" if len(cordoned) == 1 else "steps"
        yield (
            f"In {which} {listed(cordoned)}, cordon the node of the pod before the eviction, and "
            "uncordon the node when the replacement has another node. Without the cordon, the "
            "scheduler would place the replacement on the same node again."
        )
    # An eviction deletes these pods, and no controller creates them again.
    bare = [one.move.pod for one in plan.moves if one.move.workload.startswith(_BARE)]
    if bare:
        has, them = ("has", "it") if len(set(bare)) == 1 else ("have", "them")
        named = listed(list(dict.fromkeys(bare)))
        yield f"{named} {has} no controller: create {them} again after the eviction."
    for rule, count in plan.kept.most_common():
        verb = "stays where it is" if count == 1 else "stay where they are"
        yield f"{counted(count, 'pod')} {verb} because of a rule that --ignore {rule} lifts."
    if plan.failing:
        stay, the, them = ("stay where they are", "their Jobs", "them")
        if plan.failing == 1:
            stay, the, them = ("stays where it is", "its Job", "it")
        yield f"{counted(plan.failing, 'pod')} {stay}: {the} would not replace {them}."
    if plan.mismatched:
        yield (
            f"The images of {listed(plan.mismatched)} might not run on nodes with another "
            "operating system or architecture. Moves are left out if such a node would get these "
            f"pods. A nodeSelector for {OS} or {ARCH} keeps the pods off such nodes."
        )
    if plan.refused:
        stay, the, them = "stay where they are", "their controllers", "them"
        if len(plan.refused) == 1:
            stay, the, them = "stays where it is", "its controller", "it"
        why, pods = next(iter(plan.refused.values())), counted(len(plan.refused), "pod")
        yield f"{pods} {stay}: {the} could not replace {them} ({why})."
