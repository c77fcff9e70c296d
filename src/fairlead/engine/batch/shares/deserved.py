"""divide: computes the amounts that each queue deserves, by weighted water filling.

    while an amount remains and some queue is not satisfied:
        every unsatisfied queue gets, in proportion to its weight, a share of the amount that
            remained at the start of the round
        a queue that has all it requests is satisfied; it returns the amount above its request

By default each resource is divided separately (`engine.batch.shares.queue_tree`). kube-batch
divides all resources together (the defect `proportion-less`). A queue that requests much of one
resource then also gets more of the other resources.

upstream: proportion.go: OnSessionOpen
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.request import Slack
from fairlead.engine.batch.shares.queue_tree import Claim, QueueTree
from fairlead.engine.state.shape import Amounts

Quantities = dict[int, float]

# Each round satisfies a queue or ends; this is far more than any number of queues.
_ROUNDS_MAX: Final = 100_000


class WaterFillingError(RuntimeError):
    """Raised if the water filling does not end; the argument contains the remaining amounts."""


def divide(
    total: Mapping[int, int], claims: Mapping[str, Claim], slack: Slack, defects: BatchDefects
) -> dict[str, Quantities]:
    """Return {queue: {resource column: amount of `total` that the queue deserves}}.

    `claims` maps queues to their weight, requests and limits. Raises WaterFillingError if
    kube-batch's division (the defect `proportion-less`) does not end.
    """
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
    """Return the deserved amounts, computed with kube-batch's float operations."""
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
    """Limit `deserved` to `bound`; return whether any amount was reduced."""
    beyond = [(c, limit) for c, limit in bound if deserved.get(c, 0.0) > limit]
    deserved.update((column, float(limit)) for column, limit in beyond)
    return bool(beyond)


def _is_empty(amounts: Quantities, slack: Slack) -> bool:
    return all(amount < slack.least_part(column) for column, amount in amounts.items())


def _is_less(request: Mapping[int, int], deserved: Quantities, slack: Slack) -> bool:
    """Return whether `request` is less than `deserved` in every resource that `request` contains.

    As in upstream, there is an exception if `request` contains only cpu and memory. The result is
    then False if `deserved` contains another resource with an amount of at most `slack.least_part`.

    upstream: resource_info.go: Less
    """
    scalars = [column for column in request if column > 1]
    if not scalars and any(
        amount <= slack.least_part(c) for c, amount in deserved.items() if c > 1
    ):
        return False
    return all(amount < deserved.get(column, 0.0) for column, amount in request.items())


def _minimum(deserved: Quantities, request: Mapping[int, int]) -> Quantities:
    """Return the minimum of `deserved` and `request` for each resource.

    If only one argument contains resources other than cpu and memory, these resources are left out
    (helpers.go: Min).
    """
    scalars = any(c > 1 for c in deserved) and any(c > 1 for c in request)
    return {
        column: min(amount, float(request.get(column, 0)))
        for column, amount in deserved.items()
        if column <= 1 or scalars
    }
