"""QueueTree: water filling in a tree of queues, one resource at a time.

    a queue wants        the requests of its own jobs plus the amounts that its children want,
                         limited by its capability
    a queue is given     1  its guarantee, even if it wants less, because no other queue may use
                            the guarantee
                         2  amounts up to its spec.deserved
                         3  a share of its parent's amount in proportion to its weight, at most the
                            amount that the queue wants; amounts from 1 and 2 are part of this share
    a queue deserves     the amount that it is given or the amount that it wants, whichever is
                         smaller

In the stages 2 and 3, the amount that a queue cannot take is divided among the other queues by
weight. As in Volcano, a guarantee is not added to a share. A guarantee only raises a smaller share.

Example: 12 CPUs, queues a (weight 1, wants 2), b (weight 1, wants 10), c (weight 2, wants 10).
Queue a is satisfied first, with 2 (its share would be 3). Then b gets 1/3 of the remaining 10 and c
gets 2/3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.state.shape import Amounts

# the parent of queues without a parent
ROOT: Final = ""


class Claim(Struct, frozen=True):
    """The weight, requests and limits of one queue.

    `request` is the sum of the requests of the queue's own jobs, by resource column. `bound` is the
    queue's capability, and `entitled` is its spec.deserved. `bound`, `guarantee` and `entitled`
    have entries only for the resources that the queue limits or claims.
    """

    weight: int
    request: Mapping[int, int]
    bound: Amounts = ()
    guarantee: Amounts = ()
    entitled: Amounts = ()
    parent: str = ROOT


class _Part(Struct, frozen=True):
    """One of the queues among which `fill_in_stages` divides an amount.

    `name` and `weight` are those of the queue. `stages[0]` is the amount that the queue gets in any
    case. `stages[1]` and `stages[2]` limit the queue's share in the next two stages.
    """

    name: str
    weight: int
    stages: tuple[float, float, float]


def parent_problem(parents: Mapping[str, str], name: str) -> str:
    """Return why the queue `name` is a child of the root although it names another parent.

    `parents` maps each queue to the parent that it names, or to ROOT. Return "" if the queue names
    no parent, or is the child of this parent.
    """
    parent = parents.get(name, ROOT)
    if parent != ROOT and parent not in parents:
        return "does not exist"
    seen, at = {name}, parent
    while at in parents:
        if at in seen:
            return "is the queue itself" if parent == name else "is in a cycle"
        seen.add(at)
        at = parents[at]
    return ""


class QueueTree:
    """Divides each resource among the queues of a tree.

    A queue is a child of the root if `parent_problem` finds a problem of its parent.
    """

    def __init__(self, claims: Mapping[str, Claim]) -> None:
        self._claims = claims
        named = {name: claim.parent for name, claim in claims.items()}
        self._parents = {
            name: ROOT if parent_problem(named, name) else parent for name, parent in named.items()
        }
        self._children: dict[str, list[str]] = {}
        for name, parent in self._parents.items():
            self._children.setdefault(parent, []).append(name)
        self._guarantees: dict[str, dict[int, int]] = {}
        self._guarantee(ROOT)

    def _guarantee(self, name: str) -> dict[int, int]:
        """Return the queue's guarantee, or the sum of its children's guarantees if that is larger.

        Resources are compared one by one. Also adds the guarantees of the queue and of all queues
        below it to `_guarantees`.
        """
        found: dict[int, int] = {}
        for child in self._children.get(name, ()):
            for column, amount in self._guarantee(child).items():
                found[column] = found.get(column, 0) + amount
        for column, amount in self._claims[name].guarantee if name != ROOT else ():
            found[column] = max(found.get(column, 0), amount)
        self._guarantees[name] = found
        return found

    def parent_of(self, name: str) -> str:
        """Return the name of the queue's parent, or ROOT if the queue has no parent."""
        return self._parents[name]

    def path_of(self, name: str) -> list[str]:
        """Return the names of the queues on the path from the top of the tree to `name`."""
        path = [name]
        while (above := self.parent_of(path[-1])) != ROOT:
            path.append(above)
        return path[::-1]

    def limits(self, total: Mapping[int, int]) -> dict[str, Amounts]:
        """Return {name of a queue: the amounts, by column, that the queue must not exceed}.

        A queue must not exceed its capability. A queue must also not use the guarantees of its
        siblings. So these guarantees are subtracted from the limit of the nearest ancestor with a
        limit. If no ancestor has a limit, the guarantees are subtracted from `total`. A queue may
        always use its own guarantee up to its capability.

        upstream: volcano: pkg/scheduler/plugins/proportion/proportion.go,
        pkg/scheduler/plugins/capacity/capacity.go: realCapability
        """
        found: dict[str, Amounts] = {}
        self._add_limits(ROOT, total, found)
        return found

    def _add_limits(self, above: str, pool: Mapping[int, int], found: dict[str, Amounts]) -> None:
        children = self._children.get(above, ())
        guaranteed: dict[int, int] = {}
        for name in children:
            for column, amount in self._guarantees[name].items():
                guaranteed[column] = guaranteed.get(column, 0) + amount
        for name in children:
            limits = dict(self._claims[name].bound)
            for column, amount in guaranteed.items():
                own = self._guarantees[name].get(column, 0)
                if own < amount and column in pool:
                    rest = max(pool[column] - amount, 0) + own
                    limits[column] = min(rest, limits.get(column, rest))
            found[name] = tuple(sorted(limits.items()))
            self._add_limits(name, {**pool, **limits}, found)

    def divide(self, column: int, whole: float) -> dict[str, float]:
        """Return the part of `whole` that each queue deserves, for the resource in `column`."""
        wanted: dict[str, float] = {}
        for name in self._children.get(ROOT, ()):
            self._add_wants(name, column, wanted)
        deserved: dict[str, float] = {}
        self._divide(ROOT, column, whole, wanted, deserved)
        return deserved

    # --- demand ----------------------------------------------------------------------------

    def _add_wants(self, name: str, column: int, wanted: dict[str, float]) -> float:
        claim = self._claims[name]
        total = float(claim.request.get(column, 0))
        for child in self._children.get(name, ()):
            total += self._add_wants(child, column, wanted)
        wanted[name] = min(total, _amount(claim.bound, column, total))
        return wanted[name]

    # --- allocation ------------------------------------------------------------------------

    def _divide(
        self,
        above: str,
        column: int,
        pool: float,
        wanted: Mapping[str, float],
        deserved: dict[str, float],
    ) -> None:
        children = self._children.get(above, [])
        parts = [self._part(name, column, wanted[name]) for name in children]
        own = self._claims[above].request.get(column, 0) if above != ROOT else 0
        if own and children:
            # The queue's own jobs take part like one more child.
            parts.append(_Part(above, self._claims[above].weight, (0.0, 0.0, float(own))))
        given = fill_in_stages(pool, parts)
        for name in children:
            deserved[name] = min(given[name], wanted[name])
            if self._children.get(name):
                self._divide(name, column, deserved[name], wanted, deserved)

    def _part(self, name: str, column: int, wanted: float) -> _Part:
        claim = self._claims[name]
        guarantee = float(self._guarantees[name].get(column, 0))
        entitled = max(guarantee, min(wanted, _amount(claim.entitled, column, 0)))
        return _Part(name, claim.weight, (guarantee, entitled, max(entitled, wanted)))


def _amount(amounts: Amounts, column: int, default: float) -> float:
    return next((amount for c, amount in amounts if c == column), default)


def fill_in_stages(pool: float, parts: Sequence[_Part]) -> dict[str, float]:
    """Return {name of a part: amount of `pool` that the part gets}.

    Each part gets its `stages[0]`, even if `pool` is smaller than the sum of these amounts. Two
    more stages fill the parts: first up to their `stages[1]`, then up to their `stages[2]`. A part
    keeps the amount from earlier stages. In each of the two stages, it gets more only if it has
    less than its proportion of `pool` by weight. A part with weight 0 gets no more in the last
    stage.
    """
    given = {part.name: part.stages[0] for part in parts}
    for stage in (1, 2):
        # Stage 1 fills parts with weight 0, too; the last stage does not.
        weights = {part.name: part.weight or (1 if stage < 2 else 0) for part in parts}
        limits = {part.name: max(part.stages[stage], given[part.name]) for part in parts}
        given = _raise(pool, given, limits, weights)
    return given


def _raise(
    pool: float,
    given: Mapping[str, float],
    limits: Mapping[str, float],
    weights: Mapping[str, int],
) -> dict[str, float]:
    """Divide `pool` in proportion to `weights`; return the amount that each part gets.

    A part gets at least its entry in `given` and at most its entry in `limits`. A part with weight
    0 gets exactly its entry in `given`. The keys of all mappings are the names of the parts.
    """
    kept = {name: given[name] for name, weight in weights.items() if weight <= 0}
    while True:
        others = {name: weight for name, weight in weights.items() if name not in kept}
        filled = _fill(pool - float_sum(kept.values()), limits, others)
        # These parts keep their `given`, which is more than their proportion. So the other parts
        # get less than now. None of the kept parts would get more in a later round, and each round
        # keeps at least one part.
        below = {name: given[name] for name, amount in filled.items() if amount < given[name]}
        if not below:
            return kept | filled
        kept |= below


def _fill(pool: float, limits: Mapping[str, float], weights: Mapping[str, int]) -> dict[str, float]:
    """Divide `pool` in proportion to `weights`; return the amount that each part gets.

    A part gets at most its entry in `limits`. The parts with the smallest limit ÷ weight are filled
    first. The amount that these parts leave is divided among the other parts. A part with weight 0
    gets nothing and is missing from the result.
    """
    order = sorted(
        (name for name, weight in weights.items() if weight > 0),
        key=lambda name: (limits[name] / weights[name], name),
    )
    filled, weight = {}, sum(weights[name] for name in order)
    for name in order:
        filled[name] = min(limits[name], max(pool, 0.0) * weights[name] / weight)
        pool -= filled[name]
        weight -= weights[name]
    return filled
