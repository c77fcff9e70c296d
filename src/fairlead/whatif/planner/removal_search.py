"""RemovalSearch: finds nodes that can be removed together, and that save as much as possible.

    1  orders     The nodes are tried one after another. A node is chosen if the scheduler finds a
                  place for its pods on nodes that are not chosen. This is done in several orders:
                  lowest load per price first (load per size if a node has no price), lowest load
                  first, fewest pods first, highest price first if there are prices, and least room
                  per price first (`RoomTable.share`). The choice that saves most is taken.
    2  sets       If there are at most `_SETS_OF_MAX` nodes, all sets of them that save more than
                  this choice are tried, too, the set that saves most first. The nodes of a set are
                  cordoned together, and emptied one after another. The first set that can be
                  emptied is taken. This step ends after about `_CYCLES_MAX` scheduling cycles.

Sums of free resources (`RoomTable`) shorten both steps. The saving of each order is estimated from
these sums, without the scheduler. The order with the highest estimate is tried first, and an order
whose estimate is less than the best saving so far is not tried. A set is not tried either if the
other nodes have too little room in total for its pods.

If there are no prices, each node saves the same. If the number of nodes to remove is limited, each
order ends when the limit is reached.

What the search leaves out: if there are more than `_SETS_OF_MAX` nodes, no sets are tried after the
orders. An order that is not tried can be better than its estimate, because a node that cannot be
emptied leaves room for others. Each set is tried in one order of its nodes. The pods go where the
scheduler places them, although another placement could free more nodes. So a better choice can
exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.plugins.node_unschedulable import tolerates_cordon
from fairlead.engine.state.resource_columns import CPU, MEMORY
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, is_leaving, moves_with_drain
from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node_drain.drain_plan import drain_effort
from fairlead.whatif.planner.node_drain.drain_planner import (
    BlockCause,
    Blocker,
    DrainPlanner,
)
from fairlead.whatif.planner.node_drain.job_room import JobRoom
from fairlead.whatif.planner.node_drain.replacement_admission import edit_of_refusal
from fairlead.whatif.run.progress import NoProgress, PhasesInTurn, Progress

_SETS_OF_MAX: Final = 12  # with more nodes, there are too many sets
_CYCLES_MAX: Final = 5_000  # about two seconds
_TOLERANCE: Final = 1e-9

Floats = npt.NDArray[np.float64]
Rank = Callable[[str], tuple[float | str, ...]]


class RemovalChoice(Struct):
    """The result of trying nodes: the `chosen` nodes, and the blockers of the `failed` nodes.

    The chosen nodes can be emptied together. A blocker names a pod that cannot move, and its
    workload. If the nodes that stay have too little of a resource in total, the blocker names no
    pod. `tried` are all tried nodes, in order.
    """

    chosen: list[str] = field(default_factory=list)
    failed: dict[str, Blocker] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)

    def up_to(self, limit: int | None) -> RemovalChoice:
        """Return the result of these trials as if they had ended at `limit` chosen nodes."""
        if limit is None or len(self.chosen) < limit:
            return self
        end = self.tried.index(self.chosen[limit - 1]) + 1 if limit else 0
        tried = self.tried[:end]
        failed = {name: self.failed[name] for name in tried if name in self.failed}
        return RemovalChoice(self.chosen[:limit], failed, tried)


class RemovalSearch:
    """A search among `names` with the scheduler of `planner`; the model stays unchanged.

    `prices` maps nodes to hourly prices. `most` is an upper bound on the number of nodes that can
    be removed.
    """

    def __init__(
        self,
        planner: DrainPlanner,
        names: Sequence[str],
        prices: Mapping[str, float],
        most: int,
        progress: Progress,
    ) -> None:
        """Sort `names` into the orders of step 1 (see the module); nothing is tried yet."""
        self._planner, self._names, self._prices = planner, names, prices
        self._most, self._progress = most, progress
        self._room = RoomTable(planner, names)
        ranks = _ranks(planner.model, prices, self._room)
        self._orders = list(dict.fromkeys(tuple(sorted(names, key=rank)) for rank in ranks))
        # By (`planner.reorders`, number of the order): the choice that was made for this order, and
        # the limit of nodes for which it was made.
        self._made: dict[tuple[bool, int], tuple[RemovalChoice, int | None]] = {}

    def best(self, limit: int | None) -> RemovalChoice:
        """Return the best choice of at most `limit` nodes.

        Choices that were made for a higher limit are used again.
        """
        found = self._best_of_orders(limit)
        if len(self._names) <= _SETS_OF_MAX:
            found = self._better_set(found, limit) or found
        return found

    def _best_of_orders(self, limit: int | None) -> RemovalChoice:
        """Return the best of the choices of at most `limit` nodes that the orders yield.

        If several choices are equally good, the choice of the first of these orders in `_orders` is
        taken.
        """
        estimates = [self._estimate(order, limit) for order in self._orders]
        numbers = sorted(range(len(estimates)), key=lambda at: (-estimates[at], at))
        phases, total = PhasesInTurn(self._progress), len(self._orders)

        def choose(at: int) -> RemovalChoice:
            known = self._known(numbers[at], limit)
            if known is not None:
                return known
            phase = phases.phase(at, f"trying order {at + 1} of {total}", len(self._names))
            return choose_nodes(
                self._planner, self._orders[numbers[at]], jobs_of(self._planner), phase, limit
            )

        found: dict[int, RemovalChoice] = {}
        checks = independent_checks(self._planner.model, choose, range(total), forked_min=2)
        with closing(checks) as choices:
            for at, choice in enumerate(choices):
                phases.end_phase()
                found[numbers[at]] = choice
                if self._known(numbers[at], limit) is None:
                    self._made[self._planner.reorders, numbers[at]] = choice, limit
                best = max(self._worth(one.chosen) for one in found.values())
                if not self._prices and len(choice.chosen) in (limit, self._most):
                    break  # no other order removes more nodes
                if at + 1 < total and estimates[numbers[at + 1]] < best[0]:
                    break
        choices_made = [found[number] for number in sorted(found)]
        return max(choices_made, key=lambda one: self._worth(one.chosen))

    def _known(self, number: int, limit: int | None) -> RemovalChoice | None:
        """Return the choice of at most `limit` nodes for the order `number`; None if it is unknown.

        The choice is known if an earlier trial of this order shows it.
        """
        made = self._made.get((self._planner.reorders, number))
        if made is None:
            return None
        choice, made_for = made
        ended = made_for is not None and len(choice.chosen) == made_for
        if ended and (limit is None or limit > len(choice.chosen)):
            return None
        return choice.up_to(limit)

    def _better_set(self, known: RemovalChoice, limit: int | None) -> RemovalChoice | None:
        """Return a choice that is better than `known`; None if there is no such choice.

        The choice begins with the nodes of a set (step 2). Further nodes are added if possible, up
        to `limit`.
        """
        planner, cycles = self._planner, 0
        worths = [self._worth([name])[0] for name in self._names]
        most = self._most if limit is None else min(limit, self._most)
        sets = self._room.better_sets(worths, self._worth(known.chosen), most)
        self._progress.begin("trying sets of nodes", len(sets))
        for number, names in enumerate(sets):
            self._progress.reach(number, 0)
            cycles += sum(len(planner.moving(name)) for name in names)
            if cycles > _CYCLES_MAX:
                return None
            found = self._with_set(names, limit)
            if found is not None:
                return found
        return None

    def _with_set(self, names: Sequence[str], limit: int | None) -> RemovalChoice | None:
        """Return a choice that begins with `names`; None if they cannot be emptied together.

        Further nodes are added if possible, up to `limit`.
        """
        planner, jobs = self._planner, jobs_of(self._planner)
        first = sorted(names, key=lambda name: drain_effort(planner, name))
        rest = [name for name in self._names if name not in names]
        with planner.model.hypothesis():
            for name in first:
                planner.close(name)
            if any(_emptied(planner, name, jobs) is not None for name in first):
                return None
            found = RemovalChoice(first, tried=first.copy())
            _try_each(planner, rest, jobs, found, limit, NoProgress())
            return found

    def _estimate(self, order: Sequence[str], limit: int | None) -> float:
        """Return the saving if at most `limit` nodes are removed, tried in the order of `order`.

        The result is an estimate from sums of free resources (`RoomTable`), without the scheduler.
        """
        if not self._prices and (limit is None or limit > self._most):
            limit = self._most
        return self._worth(self._room.removable(order, limit))[0]

    def _worth(self, names: Sequence[str]) -> tuple[float, int]:
        """Return the saving of removing `names`, and their number.

        The saving is the total price; if there are no prices, it is the number of nodes.
        """
        if not self._prices:
            return float(len(names)), len(names)
        return float_sum(self._prices.get(name, 0.0) for name in names), len(names)


class RoomTable:
    """How much free room of the cluster the removal of each node in `names` uses up.

    The room of a node is the sum of the requests of the pods that a drain moves, plus the amounts
    that are free on the node. `free` is the free room of the whole cluster. A set of nodes can be
    removed only if the sum of their rooms is at most `free`, for each resource and for the number
    of pods. This condition is not sufficient, because each pod must fit a single node, too.
    """

    def __init__(self, planner: DrainPlanner, names: Sequence[str]) -> None:
        """Sum up the room of each node, and the free room."""
        model, table = planner.model, planner.model.table
        table.widen()
        moving = {
            name: [model.as_replacement(pod) for pod in planner.replaced(planner.moving(name))]
            for name in names
        }
        is_open = table.alive & (table.allowed_pods > 0)
        if not any(tolerates_cordon(pod) for pods in moving.values() for pod in pods):
            is_open = is_open & ~table.unschedulable
        free = (
            np.vstack(
                [
                    np.maximum(table.allocatable - table.requested, 0),
                    np.maximum(table.allowed_pods - table.pod_count, 0)[None, :],
                ]
            )
            * is_open
        )
        self.free: Floats = free.sum(axis=1).astype(np.float64)
        self._at = {name: at for at, name in enumerate(names)}
        self._names = names
        self.rooms: Floats = np.zeros((len(names), len(self.free)))
        wanted: Floats = np.zeros(len(self.free))
        for at, name in enumerate(names):
            self.rooms[at] = free[:, model.node(name).row]
            for pod in moving[name]:
                self.rooms[at, -1] += 1
                wanted[-1] += 1
                for column, amount in model.countable(pod.shape.requests):
                    self.rooms[at, column] += amount
                    wanted[column] += amount
        # Nothing else is scarce: what no pod requests needs no room.
        self.rooms[:, wanted == 0] = 0.0

    def share(self, name: str) -> float:
        """Return the sum, over the resources, of the share of `free` that the node's room takes."""
        return float((self.rooms[self._at[name]] / np.maximum(self.free, 1.0)).sum())

    def removable(self, order: Sequence[str], limit: int | None) -> list[str]:
        """Return at most `limit` nodes that `order` can remove according to the sums of room."""
        left, found = self.free.copy(), list[str]()
        for name in order:
            if len(found) == limit:
                break
            room = self.rooms[self._at[name]]
            if (room <= left).all():
                left -= room
                found.append(name)
        return found

    def better_sets(
        self, worths: Sequence[float], least: tuple[float, int], limit: int
    ) -> list[list[str]]:
        """Return the sets of nodes that are better than `least`, the most valuable set first.

        `worths` are the values of the nodes. `least` is a total value and a number of nodes: of two
        sets with the same value, the larger set is better. Sets whose room exceeds `free`, or with
        more than `limit` nodes, are left out.
        """
        count = len(self._names)
        members = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        worth, sizes = members @ np.array(worths, np.float64), members.sum(axis=1)
        better = worth > least[0] + _TOLERANCE
        better |= (worth > least[0] - _TOLERANCE) & (sizes > least[1])
        fits = better & (sizes <= limit) & ((members @ self.rooms) <= self.free).all(axis=1)
        numbers = np.flatnonzero(fits)
        ordered = numbers[np.lexsort((-sizes[numbers], -worth[numbers].round(6)))].tolist()
        return [
            [name for at, name in enumerate(self._names) if number >> at & 1] for number in ordered
        ]


def choose_nodes(
    planner: DrainPlanner,
    names: Sequence[str],
    jobs: JobRoom,
    progress: Progress,
    limit: int | None = None,
) -> RemovalChoice:
    """Try the nodes in the order of `names`, and choose those that can be emptied.

    The search ends when `limit` nodes are chosen. `jobs` counts the evictions of Jobs' pods.
    """
    found = RemovalChoice()
    progress.begin("trying nodes", len(names))
    with planner.model.hypothesis():
        _try_each(planner, names, jobs, found, limit, progress)
    return found


def _try_each(
    planner: DrainPlanner,
    names: Sequence[str],
    jobs: JobRoom,
    found: RemovalChoice,
    limit: int | None,
    progress: Progress,
) -> None:
    """Try to empty each of `names` in the model, and add the results to `found`.

    The trials end when `found` has `limit` nodes.
    """
    latest = ""
    for number, name in enumerate(names):
        if len(found.chosen) == limit:
            break
        progress.reach(number, 0)
        found.tried.append(name)
        if lacking := planner.lacking_elsewhere(name):
            found.failed[name] = Blocker(name, "", BlockCause.NO_ROOM, "", _too_little(lacking))
            continue
        # Most nodes are kept by pods of the workload that kept the node before them.
        blocker = _emptied(planner, name, jobs, latest)
        if blocker is None:
            found.chosen.append(name)
            continue
        found.failed[name] = blocker
        latest = blocker.owner if blocker.cause is not BlockCause.JOB else latest


def _emptied(planner: DrainPlanner, name: str, jobs: JobRoom, first: str = "") -> Blocker | None:
    """Empty the node `name`, and count the evictions in `jobs`; return a Blocker if this fails.

    The pods of the workload `first` are tried before all other pods.
    """
    failing = job_blocker(planner, jobs, name)
    if failing is not None:
        return failing
    evicted = planner.evicted(name)
    found = planner.fits_first(name, first)
    if not isinstance(found, Blocker):
        found = planner.empty(name, finds_order=False)
    if isinstance(found, Blocker):
        return found
    for pod in evicted:
        jobs.evict(pod.pod)
    return None


def jobs_of(planner: DrainPlanner) -> JobRoom:
    """Return a count of the failures of all Jobs in the present state of the model."""
    model = planner.model
    return JobRoom(model.current_objects(), model.now, model.stop_exit_code)


def job_blocker(planner: DrainPlanner, jobs: JobRoom, name: str) -> Blocker | None:
    """Return a blocker if a drain of node `name` evicts a pod that its Job would not replace.

    Returns None if there is no such pod.
    """
    evicted = [one.pod for one in planner.evicted(name) if not is_leaving(one)]
    pod = next(iter(jobs.not_replaced(evicted)), None)
    if pod is None:
        return None
    owner = str(workload_of(pod))
    why = "its Job would fail, because the evictions count as failures of its pods"
    edit = f"wait for the end of {owner}"
    return Blocker(name, pod.key, BlockCause.JOB, owner, why, edit, workload=owner)


def refusal_blockers(planner: DrainPlanner, name: str) -> list[Blocker]:
    """Return a blocker for each workload that could not replace its pods on the node `name`."""
    evicted = planner.evicted(name)
    refused = planner.refused(evicted)
    found: dict[str, Blocker] = {}
    for pod in evicted:
        owner = str(workload_of(pod.pod))
        if pod.key in refused and owner not in found:
            why = f"the API server would refuse its new pod: {refused[pod.key]}"
            edit = edit_of_refusal(pod.namespace, refused[pod.key])
            cause = BlockCause.REFUSED
            found[owner] = Blocker(name, pod.key, cause, owner, why, edit, workload=owner)
    return list(found.values())


def _too_little(resource: str) -> str:
    """Return why a node is kept: the other nodes have too little free `resource` for its pods."""
    if resource == "pods":
        return "the nodes that stay cannot run so many pods"
    return f"the nodes that stay do not have enough free {resource} for its pods"


def _ranks(model: ClusterModel, prices: Mapping[str, float], room: RoomTable) -> list[Rank]:
    """Return a sort key for each order in which nodes are tried (see the module's docstring)."""
    total = [max(int(amount), 1) for amount in model.table.allocatable.sum(axis=1)]

    def share(amounts: Sequence[int]) -> float:
        return amounts[CPU] / total[CPU] + amounts[MEMORY] / total[MEMORY]

    def load(name: str) -> float:
        return share(model.node(name).requested)

    def load_for_its_price(name: str) -> float:
        worth = prices.get(name, 0.0) or share(model.node(name).allocatable) or 1.0
        return load(name) / worth

    def pods(name: str) -> float:
        return float(sum(moves_with_drain(pod) for pod in model.node(name).pods.values()))

    def room_for_its_price(name: str) -> float:
        return room.share(name) / ((prices.get(name, 0.0) or 1e-9) if prices else 1.0)

    highest_price: list[Rank] = [lambda name: (-prices.get(name, 0.0), name)]
    return [
        lambda name: (load_for_its_price(name), name),
        lambda name: (load(name), name),
        lambda name: (pods(name), name),
        *(highest_price if prices else ()),
        lambda name: (room_for_its_price(name), load(name), name),
        lambda name: (room_for_its_price(name), pods(name), name),
    ]
