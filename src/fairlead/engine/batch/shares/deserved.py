"""How much of the cluster each queue deserves: water filling by weight.

    as long as anything remains and anybody is not satisfied:
        every unsatisfied queue gets its weight's part of what remained at the start of the round
        who has what it asked for is satisfied, and gives back the rest

By default each resource is divided by itself (`engine.batch.plugins.queue_tree`). kube-batch asks
for all resources at once (proportion-less), so that a queue that wants much of one hoards all
others; it knows no tree. upstream: proportion.go: OnSessionOpen
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.slack import Slack
from fairlead.engine.batch.shares.queue_tree import Claim, QueueTree
from fairlead.engine.state.shape import Amounts

Quantities = dict[int, float]

# Each round satisfies a queue or ends; far beyond any number of queues.
_ROUNDS_MAX: Final = 100_000


class WaterFillingError(RuntimeError):
    """The division did not end; carries what remained."""


def divide(
    total: Mapping[int, int], claims: Mapping[str, Claim], slack: Slack, defects: BatchDefects
) -> dict[str, Quantities]:
    """What each claim deserves of `total`, by column."""
    if defects.has(Defect.PROPORTION_LESS):
        return _divide_at_once(total, claims, slack)
    tree = QueueTree(claims)
    by_column = {column: tree.divide(column, float(whole)) for column, whole in total.items()}
    return {
        name: {column: deserved[name] for column, deserved in by_column.items()} for name in claims
    }


def _divide_at_once(
    total: Mapping[int, int], claims: Mapping[str, Claim], slack: Slack
) -> dict[str, Quantities]:
    """kube-batch's rounds, in its order of float operations."""
    deserved: dict[str, Quantities] = {name: {0: 0.0, 1: 0.0} for name in claims}
    remaining: Quantities = {column: float(whole) for column, whole in total.items()}
    unmet = dict(claims)
    for _ in range(_ROUNDS_MAX):
        weight = sum(claim.weight for claim in unmet.values())
        if not weight or _is_empty(remaining, slack):
            return deserved
        given: Quantities = {}
        for name, claim in list(unmet.items()):
            before = dict(deserved[name])
            for column, rest in remaining.items():
                part = rest * (claim.weight / weight)
                deserved[name][column] = deserved[name].get(column, 0.0) + part
            if _is_less(claim.request, deserved[name], slack):
                deserved[name] = _minimum(deserved[name], claim.request)
                del unmet[name]
            elif _hold_to_bound(deserved[name], claim.bound):
                del unmet[name]
            _note_difference(given, deserved[name], before)
        for column, amount in given.items():
            remaining[column] = remaining.get(column, 0.0) - amount
    raise WaterFillingError(remaining)


def _note_difference(given: Quantities, after: Quantities, before: Quantities) -> None:
    for column, amount in after.items():
        given[column] = given.get(column, 0.0) + amount - before.get(column, 0.0)


def _hold_to_bound(deserved: Quantities, bound: Amounts) -> bool:
    """Cut what is beyond `bound`; whether anything was."""
    beyond = [(c, limit) for c, limit in bound if deserved.get(c, 0.0) > limit]
    deserved.update((column, float(limit)) for column, limit in beyond)
    return bool(beyond)


def _is_empty(amounts: Quantities, slack: Slack) -> bool:
    return all(amount < slack.least_part(column) for column, amount in amounts.items())


def _is_less(request: Mapping[int, int], deserved: Quantities, slack: Slack) -> bool:
    """Less in every resource (resource_info.go: Less)."""
    scalars = [column for column in request if column > 1]
    if not scalars and any(
        amount <= slack.least_part(c) for c, amount in deserved.items() if c > 1
    ):
        return False
    return all(amount < deserved.get(column, 0.0) for column, amount in request.items())


def _minimum(deserved: Quantities, request: Mapping[int, int]) -> Quantities:
    """Resource by resource; scalars survive only if both have some (helpers.go: Min)."""
    scalars = any(c > 1 for c in deserved) and any(c > 1 for c in request)
    return {
        column: min(amount, float(request.get(column, 0)))
        for column, amount in deserved.items()
        if column <= 1 or scalars
    }
