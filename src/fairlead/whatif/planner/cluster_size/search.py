"""size: the cheapest set of nodes that runs all pods, found by a search with exact placements.

All nodes to replace are removed with their pods. Then

    1  build     The pods are scheduled one by one, the largest first. If a pod finds no node, a
                 node that takes it is added: the one with the most value for its price. This is
                 done in several ways, and each result is a candidate. One more candidate consists
                 of copies of the present nodes whose kinds are on offer. In this candidate, each
                 pod is nominated to the copy of its node. The cheapest candidate is taken.
    2  survive   For each failure that must be survived, the failed nodes are removed and their
                 pods are scheduled again. Missing nodes are added.
    3  unify     The nodes are replaced by nodes of one type, if that is cheaper. Steps 1 and 2 can
                 miss this. For example, 2 large nodes can cost less than 4 small nodes. With one
                 more node for a failure, 3 large nodes can cost more than 5 small nodes.
    4  spread    Nodes that are added later can make a pod violate its topology spread constraints.
                 Such pods are placed again. Missing nodes are added. This step is repeated after
                 step 5.
    5  improve   Nodes are removed if their pods find other places. Some nodes are exchanged for a
                 cheaper one. Some are chosen at random, and replaced by the nodes that step 1 would
                 add, or by another cheaper set (`substitutes`). If there are few nodes, all of them
                 are also replaced together. A change is kept if it lowers the cost, and all pods
                 still run, also after each failure. The trial of a change ends as soon as it is
                 certain to fail: a pod fits no node wherever the other pods go (`_known_refusal`),
                 or the new nodes are not cheaper (`_place_below`).

Every placement is a decision of the scheduler. `Survival.failures` yields the failures to try.
`effort` limits the scheduling cycles of step 5, as a multiple of the number of pods. Step 5 also
ends when the cost reaches the proven lower bound, or when all changes were tried. The search is
repeatable with the same seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import ceil, gcd
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE
from fairlead.api.objects import Taint
from fairlead.api.pods.facts import belongs_to_node
from fairlead.api.text.name_list import listed
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.nodelifecycle.well_known import UNREACHABLE
from fairlead.engine.plugins.pod_topology_spread.constraint import DO_NOT_SCHEDULE, HONOR
from fairlead.engine.plugins.pod_topology_spread.filter import SPREAD_MISMATCH
from fairlead.engine.plugins.volume_binding.node_volumes import NODE_CONFLICT, STATUSES
from fairlead.engine.scheduling.decision import Failure, Placement
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.daemon_set.rule import target_node
from fairlead.whatif.next_steps.spread_rule import hard_words
from fairlead.whatif.outcome.image_platform import SAME_PLATFORM, ImagePlatforms
from fairlead.whatif.outcome.scheduling_message import reasons_of, short_reason
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import (
    ClusterModel,
    in_queue_order,
    is_leaving,
    moves_with_drain,
)
from fairlead.whatif.planner.cluster_size.build_step import BuildStep, KnownPlacement
from fairlead.whatif.planner.cluster_size.cost_bound import cost_bound
from fairlead.whatif.planner.cluster_size.image_rule import ImageRule
from fairlead.whatif.planner.cluster_size.node_offer import NodeOffer
from fairlead.whatif.planner.cluster_size.requirement import NodeSetRequirements
from fairlead.whatif.planner.cluster_size.size_result import (
    SizeBound,
    SizeResult,
    SpreadBlock,
    TodaysLoss,
)
from fairlead.whatif.planner.cluster_size.substitute import Kind, substitutes
from fairlead.whatif.planner.cluster_size.survival import Survival
from fairlead.whatif.planner.node.node_bound import closed_nodes
from fairlead.whatif.planner.refusal import size_problem
from fairlead.whatif.run.progress import Progress

NODES_MAX: Final = 100_000
_MICRO: Final = 1_000_000  # prices are compared in millionths
_RUIN_SIZES: Final = (2, 3, 5, 8)  # numbers of nodes that are chosen at random and replaced
_ALL_MAX: Final = 12  # if there are at most so many nodes, all nodes are replaced together, too
_CHOICES_MAX: Final = 20  # random choices of nodes, before all choices are tried in order
_CHANGES_MAX: Final = 4  # changes that are tried before the next choice
_SURVIVAL_ROUNDS_MAX: Final = 50
_SPREAD_ROUNDS_MAX: Final = 5
_COUNTS_MAX: Final = 8  # the maximum number of node counts that are tried for a type
_UNIFY_CYCLES_MAX: Final = 20_000  # after so many cycles, no other set of one type is tried
# The taints of a failed node after its grace period.
_FAILED: Final = tuple(Taint(key=UNREACHABLE, effect=one) for one in (NO_SCHEDULE, NO_EXECUTE))
(_VOLUME_CONFLICT,) = STATUSES[NODE_CONFLICT].reasons
# If one of these plugins rejects a node, it also does so after more pods were placed.
_FINAL: Final = frozenset(
    (
        "InterPodAffinity",  # for pods without required affinity
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "TaintToleration",
    )
)
_PODS_MIN: Final = 500  # the effort for fewer pods is the same as for this number of pods


class _Strategy(Struct, frozen=True):
    """A way to choose nodes.

    If `prefers_large` is set, large nodes come first. If it is not set, small nodes come first. If
    `follows_rest` is set, the value of a node depends on the resources that are still missing. If
    it is not set, the value depends on the whole demand.
    """

    prefers_large: bool
    follows_rest: bool


class _Trial(Struct, frozen=True):
    """A trial of a failure: `pods` is the number of pods on the failed nodes.

    `cycles` is the number of scheduling cycles that the trial ran. `numbers` is the number of names
    that it gave to new nodes, including nodes that it removed again.
    """

    pods: int
    cycles: int
    numbers: int


_STRATEGIES: Final = tuple(
    _Strategy(large, rest) for rest in (True, False) for large in (True, False)
)


class SizeSearch:
    """A search for the cheapest nodes; the model contains the nodes found so far."""

    def __init__(
        self,
        model: ClusterModel,
        offers: Sequence[NodeOffer],
        survival: Survival,
        progress: Progress,
        seed: int = 0,
        images: ImagePlatforms = SAME_PLATFORM,
    ) -> None:
        """Prepare a search; `run` changes `model`.

        `offers` are the kinds of nodes that can be added, and `survival` states the failures that
        the nodes must survive. `seed` determines the random choices. `images` are the platforms of
        the images of `model`.
        """
        self._model = model
        self._images = ImageRule(images, model)
        self._offers = offers
        self._survival = survival
        self._progress = progress
        self._shows_cycles = False
        self._pick = TieBreak(seed).pick
        self._number = 0
        self._limit = self._spent = 0
        self._rooms: list[list[float]] = []
        self._free: list[float] = []  # free amounts of the nodes to keep, before a node is added
        self._kept = 0
        self._staying: frozenset[str] = frozenset()  # uids of the pods that are never placed anew
        self._closed: list[str] = []  # nodes to keep whose taints keep off all pods
        self._left: list[float] = []  # the requests of the pods that are not placed yet
        self._strategy = _STRATEGIES[0]
        self._only: tuple[str | None, str] | None = None  # add only this (pool or all, type)
        self._origins: dict[str, str] = {}  # by uid of the new pod: the node of the old pod
        # Known placements of a build that the model does not contain yet: (pod, name and offer of
        # the node to add first or None, placement).
        self._ahead: list[tuple[PodInfo, tuple[str, NodeOffer] | None, KnownPlacement]] = []
        # (pod, pool, zone) if a volume of the pod cannot be used there, on nodes of any type.
        self._conflicts: set[tuple[str, str, str]] = set()
        # By the names of some of the present nodes: the untried changes that replace these nodes.
        self._untried: dict[tuple[str, ...], Iterator[Callable[[], bool]]] = {}
        # The shapes of the pods that kept a node from being removed, most recent last.
        self._refused: dict[int, None] = {}
        # The failures that the pods, except `pinned` pods, are known to survive on the present
        # nodes. The keys are (name of the failure, names of the failed nodes).
        self._survived: dict[tuple[str, ...], _Trial] = {}
        self.result = SizeResult()

    def run(self, replaced: Iterable[NodeInfo], effort: int) -> SizeResult:
        """Search for nodes with room for the waiting pods and the pods of the nodes in `replaced`.

        The step "improve" may use `effort` scheduling cycles for each pod. If there are fewer than
        500 pods, it may use as many cycles as for 500.
        """
        names = [info.name for info in replaced]
        if self._survival.is_any:
            self._try_todays_nodes()
        pods = self._take_away([self._model.node(name) for name in names])
        kept = self._model.table.nodes()
        self._staying = frozenset(pod.id for info in kept for pod in info.pods.values())
        columns = tuple(self._model.table.resources.names)
        self._rooms = [offer.room(columns) for offer in self._offers]
        self._closed = closed_nodes(self._model, pods)
        self._free, self._kept = self._free_room(), self._model.table.count - len(self._closed)
        self._requirements = NodeSetRequirements(self._model, self._offers, self._rooms)
        self.result.bound = self._bound(pods, self._survival)
        self._begin(pods)
        self._unify()
        self._place_refused()
        self._spent = self.result.cycles
        self._limit = effort * max(len(pods), _PODS_MIN)
        self._begin_phase("improving", self._limit)
        self._improve()
        for _ in range(_SPREAD_ROUNDS_MAX):
            is_changed = self._place_refused()
            self.result.survives = not self._survival.is_any or self._is_survivable()
            if not is_changed:
                break
        self._forget_survivors()
        self.result.held = self._held_pods() if self.result.survives else {}
        self.result.waiting_at_once = self._waiting_at_once()
        self.result.image_notes = tuple(self._images.notes(self._model.pods()))
        self._explain_unplaceable(pods)
        if self.result.unplaceable or self.result.pinned:
            # The bound must hold for the pods that run, and for the failures that all pods survive.
            placed = [pod for pod in pods if pod.key not in self.result.unplaceable]
            survival = Survival() if self.result.pinned else self._survival
            self.result.bound = self._bound(placed, survival)
        return self.result

    def _begin(self, pods: Sequence[PodInfo]) -> None:
        """Build the nodes in several ways, and keep the best result.

        The best result has the fewest unplaceable pods and then the lowest cost. If several results
        are equally good, the first is kept. The first build makes copies of the present nodes.
        """
        best: tuple[tuple[int, float], Callable[[], BuildStep]] | None = None
        empty, filled = BuildStep(), BuildStep()
        builds = [partial(self._build, pods, strategy, empty) for strategy in _STRATEGIES]
        spent: dict[BuildStep, tuple[int, int]] = {}  # by last step: cycles, node numbers
        for build in (partial(self._build_as_today, pods, filled), *builds):
            with self._model.hypothesis():
                last = build()
                cycles, number = self.result.cycles, self._number
                if last in spent:  # the same nodes as those of an earlier build
                    self._ahead.clear()
                    more_cycles, more_numbers = spent[last]
                    self.result.cycles += more_cycles
                    self._number += more_numbers
                else:
                    self._catch_up()
                    self._become_survivable(only_hardest=True)
                    cost = (len(self.result.unplaceable), self.result.cost)
                    if best is None or cost < best[0]:
                        best = cost, build
                    spent[last] = self.result.cycles - cycles, self._number - number
            self.result.nodes, self.result.unplaceable, self.result.pinned = {}, {}, {}
        assert best is not None
        best[1]()
        self._catch_up()
        self._become_survivable()

    def _build_as_today(self, pods: Sequence[PodInfo], filled: BuildStep) -> BuildStep:
        """Copy the replaced nodes, place pods on the copies of their nodes; return the last step.

        A pod that does not fit the copy of its node is tried again in the next round, until a round
        places no pod. For example, topology spread may admit a pod only after other pods are placed
        in other zones. After the last round, `_build` places the remaining pods and the pods
        without a copied node. `filled` is the first step of `_build`: the state in which the copies
        contain the pods that fit them.
        """
        copies = {name: self._add(offer) for offer in self._offers for name in offer.today}
        left = [pod for pod in pods if self._origins.get(pod.id) in copies]
        while left:
            refused = [
                pod for pod in left if not self._place_on(copies[self._origins[pod.id]], pod)
            ]
            if len(refused) == len(left):
                break
            left = refused
        waiting = {pod.id for pod in left}
        return self._build(
            [pod for pod in pods if pod.id in waiting or self._origins.get(pod.id) not in copies],
            _STRATEGIES[0],
            filled,
        )

    def _place_on(self, node: str, pod: PodInfo) -> bool:
        """Nominate `pod` to `node` and schedule it; return whether it gets this node.

        If the scheduler chooses another node, the pod is not placed.
        """
        with self._model.hypothesis() as supposed:
            decision = self._schedule(_nominated(pod, node))
            if isinstance(decision, Failure) or decision.node.name != node:
                return False
            supposed.commit()
        return True

    def _build(self, pods: Sequence[PodInfo], strategy: _Strategy, step: BuildStep) -> BuildStep:
        """Place `pods`, and add nodes according to `strategy`; return the last step.

        The build begins at `step`. From there on, it takes over the decisions of earlier builds
        that made the same steps. `_catch_up` later applies these decisions to the model.
        """
        self._strategy = strategy
        self._left = self._demand(pods)
        self._begin_phase("building", len(pods))
        for number, pod in enumerate(pods):
            self._progress.reach(number, 0)
            step = self._place_in_build(pod, step if self._model.repeats_decisions else BuildStep())
            self._left[-1] -= 1
            for column, amount in pod.shape.requests:
                self._left[column] -= amount
        return step

    def _place_in_build(self, pod: PodInfo, step: BuildStep) -> BuildStep:
        """Place `pod`, on a new node if necessary; return the next step.

        A decision that an earlier build has recorded in `step` is not made again, but counts as a
        scheduling cycle. So the limits on the number of cycles do not depend on earlier builds.
        """
        if step.placed is None and step.failure is None:
            self._catch_up()
            decision = self._schedule(pod)
            if isinstance(decision, Failure):
                step.failure = decision
            else:
                step.placed = self._known(pod, decision)
                return step.placed.after
        else:
            self.result.cycles += 1
        if step.placed is not None:
            self._ahead.append((pod, None, step.placed))
            return step.placed.after
        for offer in self._by_value(pod):
            if len(self.result.nodes) >= NODES_MAX:
                break
            placed = self._try_offer(pod, offer, step)
            if placed is not None:
                return placed.after
        assert step.failure is not None
        self.result.unplaceable[pod.key] = short_reason(step.failure.message)
        step.left_out = step.left_out or BuildStep()
        return step.left_out

    def _try_offer(self, pod: PodInfo, offer: NodeOffer, step: BuildStep) -> KnownPlacement | None:
        """Add a node of `offer`, and place `pod` on any node.

        If the pod fits no node, remove the added node, and return None. `step` has the results of
        earlier trials, which are used again.
        """
        if id(offer) in step.tries:
            self.result.cycles += 1
            placed = step.tries[id(offer)]
            name = self._next_name()
            if placed is not None:
                self.result.nodes[name] = offer
                self._ahead.append((pod, (name, offer), placed))
            return placed
        self._catch_up()
        placed = None
        with self._model.hypothesis() as supposed:
            name = self._add(offer)
            decision = self._schedule(pod)
            if isinstance(decision, Placement):
                supposed.commit()
                placed = self._known(pod, decision)
            else:
                step.failure = decision
        if placed is None:
            del self.result.nodes[name]
        step.tries[id(offer)] = placed
        return placed

    def _known(self, pod: PodInfo, decision: Placement) -> KnownPlacement:
        """Return a record of `decision`, which the model has just made."""
        model = self._model
        is_reserved = model.reserves(pod, decision)
        return KnownPlacement(decision.node.row, model.choices, is_reserved, BuildStep())

    def _catch_up(self) -> None:
        """Add the nodes and placements in `_ahead` to the model, and empty `_ahead`."""
        for pod, added, known in self._ahead:
            if added is not None:
                name, offer = added
                offer.node(name).add_to(self._model)
            if known.is_reserved:
                self._model.schedule(pod)
            else:
                self._model.place_again(pod, known.row, known.choices)
        self._ahead.clear()

    def _explain_unplaceable(self, pods: Iterable[PodInfo]) -> None:
        """Set, for each unplaceable pod, the reasons why nodes refuse it (`_refusals`)."""
        reasons = self.result.unplaceable
        found = self._refusals([pod for pod in pods if pod.key in reasons])
        self.result.unplaceable = reasons | found

    def _refusals(self, pods: Sequence[PodInfo], failed_zone: str | None = None) -> dict[str, str]:
        """Return the reasons why nodes refuse each of `pods`, by the key of the pod.

        The nodes are the existing nodes that are kept, and one empty node of each offer. Offers in
        `failed_zone` are left out. Pods without reasons are left out, too. If all nodes are too
        small for a pod, the reasons end with the size of the largest node.
        """
        model, built = self._model, dict(self.result.nodes)
        reasons: dict[str, str] = {}
        if not pods:
            return reasons
        with model.hypothesis():
            for offer in self._offers:
                if offer.zone != failed_zone:
                    self._add(offer)
            rows = [one.row for one in model.table.nodes() if one.name not in built]
            for pod in pods:
                diagnosis = find_nodes_that_fit(model.profile_of(pod).plans, pod).diagnosis()
                found = {reason for row in rows for reason in diagnosis.status_of(row).reasons}
                if found:
                    size = size_problem(model, pod)
                    why = f" ({size})" if size else ""
                    reasons[pod.key] = f"{', '.join(sorted(found))}{why}"
        self.result.nodes = built
        return reasons

    def _waiting_at_once(self) -> int:
        """Return the number of pods that find no node if all pods are created at one instant.

        Pods whose scheduling ends with an error do not count (`ClusterModel.errors`). The method
        removes from the new nodes all pods that a drain would evict, and schedules their
        replacements in queue order. Then it reverts these changes of the model.
        """
        model = self._model
        self._begin_phase("placing all pods at once")
        pods = [
            pod
            for name in self.result.nodes
            for pod in model.node(name).pods.values()
            if moves_with_drain(pod)
        ]
        with model.hypothesis():
            for pod in pods:
                model.remove(pod)
            new = map(self._replacement, in_queue_order(pods))
            found = (self._schedule(pod) for pod in new)
            return sum(isinstance(one, Failure) and not one.is_error for one in found)

    # --- building --------------------------------------------------------------------------

    def _take_away(self, replaced: list[NodeInfo]) -> list[PodInfo]:
        """Remove the nodes in `replaced` and the pods on them; also remove the waiting pods.

        Return new pods for the waiting pods, and for the removed pods that a drain would evict. The
        largest pod comes first. A waiting pod that belongs to a removed node is not replaced,
        because each new node has its own pods of DaemonSets.
        """
        model, gone = self._model, {info.name for info in replaced}
        # All pods get a node, so all gangs can start.
        waiting = model.waiting_pods(with_batch=True)
        self.result.waiting_today = len(waiting)
        pods = []
        for pod in waiting:
            model.remove(pod)
            if not (belongs_to_node(pod.pod) and target_node(pod.pod) in gone):
                pods.append((pod, ""))
        for info in replaced:
            pods += [
                (pod, info.name)
                for pod in info.pods.values()
                if moves_with_drain(pod) and not is_leaving(pod)
            ]
            model.remove_node(info.name)
        new = []
        for pod, node in pods:
            new.append(self._replacement(pod))
            self._origins[new[-1].id] = node
        return sorted(new, key=_largest_first)

    def _replacement(self, pod: PodInfo) -> PodInfo:
        return self._images.kept_on_platforms(self._model.replacement(pod))

    def _schedule(self, pod: PodInfo) -> Placement | Failure:
        self.result.cycles += 1
        if self._shows_cycles:
            self._progress.reach(self.result.cycles, 0)
        return self._model.schedule(pod)

    def _begin_phase(self, phase: str, total: int = 0) -> None:
        """Show the progress of a phase; if `total` is 0, show the number of scheduling cycles."""
        self._shows_cycles = not total
        self._progress.begin(phase, total)

    def _place(self, pod: PodInfo, failed_zone: str | None = None) -> Failure | None:
        """Schedule `pod`, on a new node if necessary; return None if the pod got a node.

        If the pod got no node, return the Failure that says why no existing node took the pod. No
        node is added in `failed_zone`.
        """
        failure = self._schedule(pod)
        if isinstance(failure, Placement):
            return None
        for offer in self._by_value(pod):
            place = pod.key, offer.pool, offer.zone
            if offer.zone == failed_zone or len(self.result.nodes) >= NODES_MAX:
                continue
            if place in self._conflicts:
                continue
            with self._model.hypothesis() as supposed:
                name = self._add(offer)
                decision = self._schedule(pod)
                if isinstance(decision, Placement):
                    supposed.commit()
                    return None
                if _VOLUME_CONFLICT in decision.message and self._has_conflict(pod, name):
                    self._conflicts.add(place)
            del self.result.nodes[name]
        return failure

    def _has_conflict(self, pod: PodInfo, name: str) -> bool:
        """Return whether a volume of `pod` cannot be used on the node `name`."""
        diagnosis = find_nodes_that_fit(self._model.profile_of(pod).plans, pod).diagnosis()
        return _VOLUME_CONFLICT in diagnosis.status_of(self._model.node(name).row).reasons

    def _next_name(self) -> str:
        """Return the next of the names `new-1`, `new-2` and so on that is free in the model."""
        while True:
            self._number += 1
            name = f"new-{self._number}"
            if self._model.is_free_name(name):
                return name

    def _add(self, offer: NodeOffer) -> str:
        name = self._next_name()
        offer.node(name).add_to(self._model)
        self.result.nodes[name] = offer
        return name

    def _by_value(self, pod: PodInfo) -> list[NodeOffer]:
        """Return the offers that are large enough for `pod`, the least wasteful offer first.

        The waste of an offer is (price - value) / price. The value is the cost of the offer's
        capacity at `_unit_prices`. Offers with about the same waste are ordered by price, in the
        direction that `_Strategy.prefers_large` states. At equal prices, the offer whose pool has
        the fewest new nodes in the offer's zone comes first.
        """
        bought = Counter(map(id, self.result.nodes.values()))
        used: Counter[tuple[str, str]] = Counter()
        for one in self._offers:
            used[one.pool, one.zone] += bought[id(one)]
        units = self._unit_prices()
        sign = -1 if self._strategy.prefers_large else 1
        found, wanted = [], self._model.countable(pod.shape.wanted)
        for offer, room in zip(self._offers, self._rooms, strict=True):
            if any(amount > room[at] for at, amount in wanted) or self._is_excluded(offer):
                continue
            value = float_sum(unit * size for unit, size in zip(units, room, strict=True))
            waste = 1 - value / offer.price if offer.price else 0.0
            count = used[offer.pool, offer.zone]
            found.append((round(waste, 2), sign * offer.price, count, offer.title, offer))
        found.sort(key=lambda entry: entry[:4])
        return [entry[-1] for entry in found]

    def _is_excluded(self, offer: NodeOffer) -> bool:
        if self._only is None:
            return False
        pool, node_type = self._only
        return pool in (None, offer.pool) and offer.node_type != node_type

    def _unit_prices(self) -> Sequence[float]:
        """Return the price of one unit of each resource."""
        if not self._strategy.follows_rest:
            return self.result.bound.unit_prices
        self._catch_up()  # the free amounts of all nodes of the build count
        lacking = _less(self._left, self._free_room())
        prices = [offer.price for offer in self._offers]
        found = cost_bound(lacking, self._rooms, prices)
        return found.unit_prices if found.cost else self.result.bound.unit_prices

    def _demand(self, pods: Iterable[PodInfo]) -> list[float]:
        """Return the sum of the requests of `pods` for each resource, then the number of pods."""
        demand = [0.0] * (len(self._rooms[0]) if self._rooms else 1)
        for pod in pods:
            demand[-1] += 1
            for column, amount in self._model.countable(pod.shape.requests):
                demand[column] += amount
        return demand

    def _free_room(self, without: Sequence[str] = ()) -> list[float]:
        """Return the total free amount of each resource; the last item is the free pod count.

        Two kinds of nodes do not count: those in `without`, and those whose taints no pod
        tolerates.
        """
        table = self._model.table
        columns = len(self._rooms[0]) - 1 if self._rooms else 0
        free = np.maximum(table.allocatable - table.requested, 0)
        free_pods = np.maximum(table.allowed_pods - table.pod_count, 0)
        names = (*without, *self._closed)
        left_out = [one.row for one in map(self._model.find_node, names) if one is not None]
        free[:, left_out] = free_pods[left_out] = 0
        found = [float(amount) for amount in free.sum(axis=1).tolist()[:columns]]
        found += [0.0] * (columns - len(found))
        return [*found, float(free_pods.sum())]

    def _bound(self, pods: Sequence[PodInfo], survival: Survival) -> SizeBound:
        """Return a lower bound on the cost; existing nodes that are kept cost nothing.

        The search compares nodes by `SizeBound.unit_prices`. These prices are computed only from
        the requested resources, not from the other requirements (`NodeSetRequirements`).
        """
        prices = [offer.price for offer in self._offers]
        wanted = _less(self._demand(pods), self._free)
        units = cost_bound(wanted, self._rooms, prices).unit_prices
        required = list(self._requirements.of(pods, self._free, self._kept, self._demand))
        supplies = [[one.supplies[at] for one in required] for at in range(len(prices))]
        bound = cost_bound([one.amount for one in required], supplies, prices)
        causes: dict[str, float] = {}
        for one, share in zip(required, bound.shares, strict=True):
            if share:
                causes[one.cause] = causes.get(one.cause, 0.0) + share
        return SizeBound(self._whole(self._with_failures(bound.cost, survival)), units, causes)

    def _with_failures(self, bound: float, survival: Survival) -> float:
        """Return a lower bound on the cost of nodes that survive the failures.

        `bound` is a lower bound on the cost of nodes that need not survive any failure.
        """
        if self._kept:
            return bound
        cost = bound
        if survival.nodes:
            cost += survival.nodes * min((offer.price for offer in self._offers), default=0.0)
        zones = {offer.zone for offer in self._offers}
        if survival.zones and len(zones) > 1 and "" not in zones:
            # Any Z - 1 of Z zones must hold all pods: (Z - 1) · cost >= Z · bound. This does not
            # hold if nodes can be in no zone. Such nodes run after the failure of any zone.
            cost = max(cost, bound * len(zones) / (len(zones) - 1))
        return cost

    def _whole(self, cost: float) -> float:
        """Return `cost`, rounded up to a multiple of the greatest common divisor of the prices.

        The cost of any set of nodes is such a multiple.
        """
        unit = gcd(*(round(offer.price * _MICRO) for offer in self._offers))
        return ceil(cost * _MICRO / unit - 1e-6) * unit / _MICRO if unit else cost

    def _place_refused(self) -> bool:
        """Place again each pod that its node would refuse now; return whether a pod has moved.

        This is necessary because a new node can add a domain to a topology spread constraint. A new
        node adds a domain even if its taints repel the pods of the constraint. So a pod that was
        placed before can exceed maxSkew now, and its replacement would stay pending. A pod stays if
        neither the present nodes nor a new node take it, or if it ran on a kept node before the
        search.
        """
        is_changed = False
        kept = (one.name for one in self._model.table.nodes() if one.name not in self.result.nodes)
        for name in (*self.result.nodes, *kept):
            for pod in self._movable_pods([name]):
                if pod.id in self._staying or not _has_hard_spread(pod):
                    continue
                with self._model.hypothesis() as supposed:
                    self._model.remove(pod)
                    new = self._replacement(pod)
                    if not self._place_on(name, new) and self._place(new) is None:
                        supposed.commit()
                        is_changed = True
        if is_changed:
            self._survived = {}
        return is_changed

    # --- surviving -------------------------------------------------------------------------

    def _become_survivable(self, *, only_hardest: bool = False) -> None:
        """Add nodes until the pods survive every failure; stop after `_SURVIVAL_ROUNDS_MAX` rounds.

        In each round, the nodes that pods need after each failure are added. If `only_hardest` is
        True, and several nodes may fail together, only the failures that are hardest to survive are
        tried.
        """
        self._survived = {}
        if not self._survival.is_any:
            return
        self._begin_phase("surviving failures")
        for _ in range(_SURVIVAL_ROUNDS_MAX):
            added = False
            for name, gone in self._failures(only_hardest=only_hardest):
                known = self._survived.get((name, *gone))
                if known is not None:  # no node was added since the last trial
                    self.result.cycles += known.cycles
                    self._number += known.numbers
                    continue
                missing = self._missing_after(name, gone)
                for offer in missing:
                    self._add(offer)
                    added = True
                if missing:
                    self._survived = {}
            if not added:
                return

    def _is_survivable(self) -> bool:
        """Add missing nodes until the pods survive every failure.

        Return False if nodes are still missing after `_SURVIVAL_ROUNDS_MAX` rounds.
        """
        for _ in range(_SURVIVAL_ROUNDS_MAX):
            if self._survives():
                return True
            self._become_survivable()
        return self._survives()

    def _failures(self, *, only_hardest: bool = False) -> Iterator[tuple[str, Sequence[str]]]:
        return self._survival.failures(
            self._model.table.nodes, lambda: self.result.nodes, only_hardest=only_hardest
        )

    def _missing_after(self, failure: str, gone: Sequence[str]) -> list[NodeOffer]:
        """Return the nodes to add so that all pods have a node after the loss of the nodes `gone`.

        `failure` is the name of this loss. Pods that fit no node after the loss, not even a new
        one, are added to `pinned`.
        """
        before, cycles, number = dict(self.result.nodes), self.result.cycles, self._number
        zone = _failed_zone(failure)
        with self._model.hypothesis():
            pods = self._fail(gone)
            for pod in pods:
                refused = self._place(pod, zone)
                if refused is not None:
                    self.result.pinned[pod.key, failure] = short_reason(refused.message)
        added = [offer for name, offer in self.result.nodes.items() if name not in before]
        self.result.nodes = before
        if not added:
            trial = _Trial(len(pods), self.result.cycles - cycles, self._number - number)
            self._survived[failure, *gone] = trial
        return added

    def _fail(self, gone: Sequence[str]) -> list[PodInfo]:
        """Remove the nodes `gone`; return replacements of their pods, the largest first."""
        model, pods = self._model, self._movable_pods(gone)
        for name in gone:
            model.remove_node(name)
        return sorted(map(self._replacement, pods), key=_largest_first)

    def _movable_pods(self, nodes: Iterable[str]) -> list[PodInfo]:
        """Return the pods on `nodes` that would need another node if these nodes were removed."""
        return [
            pod
            for name in nodes
            for pod in self._model.node(name).pods.values()
            if moves_with_drain(pod) and not is_leaving(pod)
        ]

    def _survives(self) -> bool:
        """Return whether each pod survives each failure; pairs in `SizeResult.pinned` do not count.

        For a pair (pod, failure) in `pinned`, the pod fits no node on offer after the failure.
        """
        tried = 0
        for failure, gone in self._failures():
            tried += 1
            known = self._survived.get((failure, *gone))
            if known is not None:
                self.result.cycles += known.pods
                continue
            with self._model.hypothesis():
                pods = self._fail(gone)
                for pod in pods:
                    lost = isinstance(self._schedule(pod), Failure)
                    if lost and (pod.key, failure) not in self.result.pinned:
                        return False
            self._survived[failure, *gone] = _Trial(len(pods), len(pods), 0)
        self.result.tried = tried
        if self._survival.nodes > 1:
            sets = self._survival.node_sets(self._model.table.nodes(), self.result.nodes)
            self.result.sets_covered, self.result.sets = sets.covered, sets.total
        return True

    def _forget_survivors(self) -> None:
        """Drop (pod, failure) from `pinned` if the final set of nodes lets the pod survive.

        The reasons of the entries that remain are updated.
        """
        if not self.result.pinned:
            return
        pinned, refused = self.result.pinned, dict[tuple[str, str], str]()
        for failure, gone in self._failures():
            with self._model.hypothesis():
                pods = [pod for pod in self._fail(gone) if isinstance(self._schedule(pod), Failure)]
                pods = [pod for pod in pods if (pod.key, failure) in pinned]
                reasons = self._refusals(pods, _failed_zone(failure))
                for pod in pods:
                    known = reasons.get(pod.key, pinned[pod.key, failure])
                    refused[pod.key, failure] = known
        self.result.pinned = {one: refused[one] for one in pinned if one in refused}

    def _try_todays_nodes(self) -> None:
        """Try each failure on the present nodes; set `tried_today` and `losses_today` of `result`.

        The scheduling cycles of these trials are not counted in `SizeResult.cycles`.
        """
        self._begin_phase("trying failures today")
        for failure, gone in self._failures():
            self.result.tried_today += 1
            self._progress.reach(self.result.tried_today, 0)
            with self._model.hypothesis():
                pods = self._fail(gone)
                lost = [pod for pod in pods if isinstance(self._model.schedule(pod), Failure)]
            if lost:
                failed = failure if _failed_zone(failure) else listed(gone)
                workloads = {pod.key: str(workload_of(pod.pod)) for pod in lost}
                self.result.losses_today.append(TodaysLoss(failed, workloads))

    def _held_pods(self) -> dict[tuple[str, str], SpreadBlock]:
        """Return the pods that find a node only after the Node objects of failed nodes are deleted.

        Until then, the failed nodes have taints, but topology spread constraints whose
        nodeTaintsPolicy is not Honor still count them. The keys are (pod, failure).

        upstream: plugins/podtopologyspread/filtering.go: calPreFilterState
        """
        held: dict[tuple[str, str], SpreadBlock] = {}
        for failure, gone in self._failures():
            pods = self._movable_pods(gone)
            if not any(map(_counting_constraints, pods)):
                continue
            with self._model.hypothesis():
                for pod in self._fail_with_nodes_kept(gone, pods):
                    counting, decision = _counting_constraints(pod), self._schedule(pod)
                    if (
                        counting
                        and isinstance(decision, Failure)
                        and SPREAD_MISMATCH in decision.message
                        and (pod.key, failure) not in self.result.pinned
                    ):
                        workload = str(workload_of(pod.pod))
                        held[pod.key, failure] = SpreadBlock(workload, "; ".join(counting))
        return held

    def _fail_with_nodes_kept(self, gone: Sequence[str], pods: Sequence[PodInfo]) -> list[PodInfo]:
        """Taint the nodes `gone`, and remove `pods`; return their replacements, the largest first.

        upstream: nodelifecycle/node_lifecycle_controller.go: doNoScheduleTaintingPass,
        processTaintBaseEviction
        """
        model = self._model
        for name in gone:
            node = model.node(name).node
            spec = replace(node.spec, taints=(*node.spec.taints, *_FAILED))
            model.put_node(replace(node, spec=spec))
        for pod in pods:
            model.remove(pod)
        return sorted(map(self._replacement, pods), key=_largest_first)

    # --- nodes of one type -----------------------------------------------------------------

    def _unify(self) -> None:
        """Try to replace all nodes by nodes of one type, then the nodes of each pool.

        A replacement is kept if it is cheaper.
        """
        pools = sorted({offer.pool for offer in self._offers})
        self._limit = self.result.cycles + _UNIFY_CYCLES_MAX
        self._begin_phase("trying nodes of one type")
        for pool in (None, *pools) if len(pools) > 1 else (None,):
            kinds: dict[tuple[str, str], list[int]] = {}  # the indexes of the offers of each type
            for at, offer in enumerate(self._offers):
                if pool in (None, offer.pool):
                    kinds.setdefault((offer.pool, offer.node_type), []).append(at)
            self._unify_pool(pool, list(kinds.values()))

    def _unify_pool(self, pool: str | None, kinds: Iterable[Sequence[int]]) -> None:
        """Replace the nodes of `pool` by nodes of one of `kinds`, if that is cheaper.

        If `pool` is None, the nodes of all pools are replaced. A kind is given as the list of the
        indexes of its offers. For each kind, up to `_COUNTS_MAX` different numbers of nodes are
        tried. The first number is a lower bound (`_fewest`). Every number is so small that the
        nodes can cost less than the present nodes.
        """
        inside = [name for name, one in self.result.nodes.items() if pool in (None, one.pool)]
        demand = self._demand(map(self._model.as_replacement, self._movable_pods(inside)))
        wanted = _less(demand, self._free_room(without=inside))
        is_all = len(inside) == len(self.result.nodes) and not self._kept
        found = []
        for kind in kinds:
            price = min(self._offers[at].price for at in kind)
            fewest = self._fewest(wanted, kind, is_all=is_all)
            if fewest is not None and price:
                found.append((fewest * price, price, fewest, kind))
        for _, price, fewest, kind in sorted(found):
            most = ceil((self._cost_of(pool) - 1e-9) / price) - 1
            step = max(1, ceil((most + 1 - fewest) / _COUNTS_MAX))
            for count in range(fewest, most + 1, step):
                if self.result.is_cheapest or self.result.cycles >= self._limit:
                    return
                if count * price < self._cost_of(pool) - 1e-9:
                    self._try(partial(self._unified, pool, kind, count))

    def _cost_of(self, pool: str | None) -> float:
        return float_sum(
            one.price for one in self.result.nodes.values() if pool in (None, one.pool)
        )

    def _fewest(self, wanted: Sequence[float], kind: Sequence[int], *, is_all: bool) -> int | None:
        """Return a lower bound on the number of nodes of `kind` that hold the amounts `wanted`.

        Return None if no number of nodes is enough. `is_all` is set if the cluster has no other
        nodes. The bound then includes the nodes that are needed to survive the failures.
        """
        rooms = [max(column) for column in zip(*(self._rooms[at] for at in kind), strict=True)]
        pairs = [(amount, room) for amount, room in zip(wanted, rooms, strict=True) if amount]
        if any(room <= 0 for _, room in pairs):
            return None
        fewest = max((ceil(amount / room - 1e-9) for amount, room in pairs), default=0)
        if not is_all:
            return fewest
        most = fewest + self._survival.nodes
        zones = {self._offers[at].zone for at in kind}
        if self._survival.zones and len(zones) > 1 and "" not in zones:
            # If one of Z zones fails, the other Z - 1 must hold all pods, as in `_with_failures`.
            return max(most, ceil(fewest * len(zones) / (len(zones) - 1) - 1e-9))
        return most

    def _unified(self, pool: str | None, kind: Sequence[int], count: int) -> bool:
        """Replace the nodes of `pool` by at least `count` nodes of `kind`.

        More nodes of `kind` are added if necessary. Return False if a pod fits no node, or if the
        new nodes are not cheaper than the old nodes. Also return False if `SizeResult.pinned` would
        contain a pod that it did not contain before.
        """
        result, before, limit = self.result, dict(self.result.pinned), self.result.cost
        inside = [name for name, one in result.nodes.items() if pool in (None, one.pool)]
        pods = self._fail(inside)
        for name in inside:
            del result.nodes[name]
        offers = sorted((self._offers[at] for at in kind), key=lambda one: (one.price, one.zone))
        if not self._survival.zones:
            offers = [one for one in offers if one.price == offers[0].price]
        for number in range(count):
            self._add(offers[number % len(offers)])
        self._only = pool, offers[0].node_type
        fit = self._place_below(limit, pods)
        if fit:
            self._become_survivable()
        self._only = None
        known = {pod for pod, _ in before}
        if fit and all(pod in known for pod, _ in result.pinned):
            return True
        result.pinned = before
        return False

    def _place_below(self, limit: float, pods: Iterable[PodInfo]) -> bool:
        """Place `pods`, on new nodes if necessary; return whether all nodes cost less than `limit`.

        Stop and return False as soon as a pod fits no node, or the cost reaches `limit`.
        """
        known = -1
        for pod in pods:
            if self._place(pod) is not None:
                return False
            if len(self.result.nodes) != known:  # otherwise, the cost is the same as before
                known = len(self.result.nodes)
                if self.result.cost >= limit:
                    return False
        return True

    # --- improving -------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        used = self.result.cycles - self._spent
        self._progress.reach(min(used, self._limit), 0)
        return used >= self._limit or self.result.is_cheapest

    def _improve(self) -> None:
        """Remove and exchange nodes while the cost falls; then replace some nodes, and repeat.

        Set `SizeResult.tried_all_changes` if no change is left to try.
        """
        while not self._is_over:
            cost = self.result.cost
            self._remove_nodes()
            self._exchange_nodes()
            while self.result.cost >= cost:
                count = len(self.result.nodes)
                sizes = (*_RUIN_SIZES, count) if count <= _ALL_MAX else _RUIN_SIZES
                if sum(self._replace_some(size) for size in sizes) == 0:
                    self.result.tried_all_changes = not self._is_over
                    return

    def _try(self, change: Callable[[], bool]) -> bool:
        """Make `change`; keep it only if it saves money and the pods still survive every failure.

        Return whether the change was kept.
        """
        before, cost = dict(self.result.nodes), self.result.cost
        survived, self._survived = self._survived, {}
        with self._model.hypothesis() as supposed:
            if (
                change()
                and self.result.cost < cost - 1e-9
                and (not self._survival.is_any or self._survives())
            ):
                supposed.commit()
                self._untried.clear()  # the nodes or their pods differ now
                return True
        self.result.nodes, self._survived = before, survived
        return False

    def _remove_nodes(self) -> None:
        """Try to remove each node; nodes with the least load for their price come first."""
        self.result.obstacles = {}
        names = sorted(self.result.nodes, key=self._load_for_price)
        for name in names:
            if self._is_over:
                return
            self._try(lambda name=name: self._without([name]))  # type: ignore[misc]

    def _exchange_nodes(self) -> None:
        """Try to replace each node by a cheaper kind of node."""
        for name in sorted(self.result.nodes, key=self._load_for_price):
            offer = self.result.nodes[name]
            cheaper = [
                one for one in self._offers if one.price < offer.price and one.zone == offer.zone
            ]
            for one in sorted(cheaper, key=lambda one: (one.price, one.title)):
                if self._is_over:
                    return
                if self._try(lambda name=name, one=one: self._exchanged(name, one)):  # type: ignore[misc]
                    break

    def _replace_some(self, count: int) -> int:
        """Choose `count` nodes, and try changes that replace them; return the number of trials.

        If all changes that replace these nodes were already tried, other nodes are chosen. The
        result is 0 only if no change is left for any choice, or if the search is over.
        """
        for chosen in self._choices(count):
            if chosen not in self._untried:
                self._untried[chosen] = self._replacements(chosen)
            changes, tried = self._untried[chosen], 0
            while tried < _CHANGES_MAX and not self._is_over:
                change = next(changes, None)
                if change is None:
                    break
                tried += 1
                if self._try(change):
                    return tried
            if tried or self._is_over:
                return tried
        return 0

    def _choices(self, count: int) -> Iterator[tuple[str, ...]]:
        """Yield choices of `count` nodes, by name: first random choices, then all choices in order.

        A choice can occur several times. Nothing is yielded if there are fewer nodes.
        """
        names = sorted(self.result.nodes)
        if len(names) < count:
            return
        for _ in range(_CHOICES_MAX):
            left = names.copy()
            yield tuple(sorted(left.pop(self._pick(len(left))) for _ in range(count)))
        yield from combinations(names, count)

    def _replacements(self, names: Sequence[str]) -> Iterator[Callable[[], bool]]:
        """Yield the changes that replace the nodes in `names`.

        If other new nodes stay, the nodes that replace `names` must supply everything that the pods
        on `names` require. The free room of the other nodes is not subtracted, because most of it
        is divided into pieces that are too small for these pods.
        """
        yield partial(self._rebuilt, names)
        pods = [self._model.as_replacement(pod) for pod in self._movable_pods(names)]
        replaces_all = len(names) == len(self.result.nodes)
        free, kept = (self._free, self._kept) if replaces_all else ([0.0] * len(self._free), 0)
        required = list(self._requirements.of(pods, free, kept, self._demand))
        limit = float_sum(self.result.nodes[name].price for name in names)
        least = self.result.bound.cost - (self.result.cost - limit)
        for kinds in substitutes(self._offers, required, limit):
            if float_sum(self._offers[kind[0]].price for kind in kinds) >= least - 1e-9:
                yield partial(self._substituted, names, kinds)

    def _substituted(self, names: Sequence[str], kinds: Sequence[Kind]) -> bool:
        """Replace the nodes in `names` by a node of each of `kinds`; return whether all pods fit.

        The new nodes are in the zones of the replaced nodes, as far as possible.
        """
        zones = Counter(self.result.nodes[name].zone for name in names)
        pods = self._fail(names)
        for name in names:
            del self.result.nodes[name]
        for kind in kinds:
            offer = max((self._offers[at] for at in kind), key=lambda one: zones[one.zone])
            zones[offer.zone] -= 1
            self._add(offer)
        return all(isinstance(self._schedule(pod), Placement) for pod in pods)

    def _rebuilt(self, names: Sequence[str]) -> bool:
        """Remove the nodes in `names`; return False if no cheaper nodes are found for their pods.

        As soon as the new nodes cost as much as the removed nodes, no more pods are scheduled.
        """
        limit = self.result.cost - 1e-9
        pods = self._fail(names)
        for name in names:
            del self.result.nodes[name]
        return self._place_below(limit, pods)

    def _exchanged(self, name: str, offer: NodeOffer) -> bool:
        pods = self._fail([name])
        del self.result.nodes[name]
        self._add(offer)
        return all(isinstance(self._schedule(pod), Placement) for pod in pods)

    def _without(self, names: Sequence[str]) -> bool:
        """Remove the nodes in `names`; return False if one of their pods fits no other node.

        If the result is False, the scheduler's reasons for this pod are counted in `obstacles`.
        """
        pods = self._fail(names)
        for name in names:
            del self.result.nodes[name]
        failure = self._known_refusal(pods)
        for pod in pods if failure is None else ():
            decision = self._schedule(pod)
            if isinstance(decision, Failure):
                self._note_refused(pod)
                failure = decision
                break
        if failure is None:
            return True
        for reason in reasons_of(failure.message):
            self.result.obstacles[reason] = self.result.obstacles.get(reason, 0) + 1
        return False

    def _known_refusal(self, pods: Sequence[PodInfo]) -> Failure | None:
        """Return the Failure of a pod that fits no node wherever the other `pods` go.

        Returns None if no such pod is found. Only one pod is tried. This pod has the `Shape` (the
        part of its spec that affects scheduling) that was refused most recently. Often, the pods of
        one workload prevent the removal of many nodes. A trial of only this pod is much faster than
        the placement of all pods that come before it in `pods`. Nevertheless, one scheduling cycle
        is counted for each of the pods that come before it.
        """
        first = {pod.shape.id: at for at, pod in reversed(list(enumerate(pods)))}
        tried = next((first[shape] for shape in reversed(self._refused) if shape in first), None)
        if tried is None:
            return None
        with self._model.hypothesis():
            decision = self._model.schedule(pods[tried])
        if isinstance(decision, Placement) or not _is_final(pods[tried], decision):
            return None
        self._note_refused(pods[tried])
        self.result.cycles += tried + 1
        return decision

    def _note_refused(self, pod: PodInfo) -> None:
        self._refused.pop(pod.shape.id, None)
        self._refused[pod.shape.id] = None

    def _load_for_price(self, name: str) -> tuple[float, str]:
        info, price = self._model.node(name), self.result.nodes[name].price
        units = self.result.bound.unit_prices
        load = float_sum(unit * amount for unit, amount in zip(units, info.requested, strict=False))
        return load / price if price else load, name


def _less(demand: Sequence[float], free: Sequence[float]) -> list[float]:
    """Return `demand` minus `free` for each resource, but at least 0."""
    return [max(amount - room, 0.0) for amount, room in zip(demand, free, strict=True)]


def _counting_constraints(pod: PodInfo) -> list[str]:
    """Return the text of each topology spread constraint of `pod` that counts tainted nodes.

    Constraints with ScheduleAnyway are left out, because they reject no nodes.
    """
    return [
        hard_words(one.topology_key, one.max_skew, one.min_domains)
        for one in pod.pod.spec.topology_spread_constraints
        if one.when_unsatisfiable == DO_NOT_SCHEDULE and one.node_taints_policy != HONOR
    ]


def _has_hard_spread(pod: PodInfo) -> bool:
    """Return whether `pod` has a topology spread constraint that can reject nodes."""
    constraints = pod.pod.spec.topology_spread_constraints
    return any(one.when_unsatisfiable == DO_NOT_SCHEDULE for one in constraints)


def _is_final(pod: PodInfo, failure: Failure) -> bool:
    """Return whether `pod`, which fits no node now, certainly fits no node later.

    Pods that are placed later can help if the pod must run near other pods, or if topology spread
    rejected a node.
    """
    affinity = pod.pod.spec.affinity
    seeks_pods = affinity is not None and affinity.pod_affinity is not None
    return not seeks_pods and _FINAL.issuperset(failure.plugins)


def _failed_zone(failure: str) -> str | None:
    """Return the zone that fails in `failure`; None if single nodes fail."""
    return failure.removeprefix("zone ") if failure.startswith("zone ") else None


def _nominated(pod: PodInfo, node: str) -> PodInfo:
    """Return `pod` with the nominated node `node`."""
    status = replace(pod.pod.status, nominated_node_name=node)
    return PodInfo(replace(pod.pod, status=status), pod.shape)


def _largest_first(pod: PodInfo) -> tuple[float, str]:
    """Return the sort key of a pod: largest first; one core counts as much as 4 GiB."""
    return -(pod.shape.milli_cpu / 1000 + pod.shape.memory / (4 << 30)), pod.key
