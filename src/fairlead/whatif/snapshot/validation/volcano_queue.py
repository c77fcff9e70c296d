"""Refuses Queues that Volcano's admission webhook does not allow.

Only new and changed Queues are checked, because the webhook has checked the Queues of a dump. Sums
over the queues of a tree are not checked. Some versions of Volcano also refuse a guarantee without
`deserved`, and a capability of a queue whose parent has no capability. Other versions allow both,
and so does this module.

upstream: volcano: pkg/webhooks/admission/queues/validate/validate_queue.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.api.json import Json, at, mapping
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.whatif.snapshot.manifest import Manifest

_GROUP: Final = "scheduling.volcano.sh"
_ROOT: Final = "root"
_WEIGHT: Final = "queue weight must be a positive integer"
_CAPABILITY: Final = ("capability",)
_DESERVED: Final = ("deserved",)
_GUARANTEE: Final = ("guarantee", "resource")
# (field, field with its limits, name of the second field in error messages). Both are fields of a
# queue's spec. The amounts of the first field must not exceed those of the second.
_LIMITS: Final = (
    (_DESERVED, _CAPABILITY, "capability"),
    (_GUARANTEE, _CAPABILITY, "capability"),
    (_GUARANTEE, _DESERVED, "deserved amount"),
)
# The webhook compares an updated queue with its parent and children if one of these has changed.
_IN_TREE: Final = (("parent",), _CAPABILITY, _DESERVED, _GUARANTEE)


def refuse_invalid_queue(
    queue: Manifest, before: Manifest | None, others: Iterable[Manifest]
) -> None:
    """Raise InputError if Volcano refuses the Queue `queue`; Queues of kube-batch have no rules.

    `before` is the Queue that `queue` replaces; None if `queue` is new. A new Queue with the weight
    0 gets the weight 1 from another webhook. `others` are all Queues, including new Queues.
    """
    if queue.kind.group != _GROUP:
        return
    spec = mapping(queue.value, "spec")
    if spec.get("weight") == 0 and before is not None:
        raise queue.refuse(_WEIGHT, field="spec.weight")
    parent = spec.get("parent")
    was = None if before is None else at(before.value, "spec", "parent")
    if parent and parent not in {_ROOT, was}:
        if parent == queue.ref.name:
            raise queue.refuse("a queue cannot be its own parent", field="spec.parent")
        if all(one.ref.name != parent for one in others):
            raise queue.refuse(f"there is no queue {parent}", field="spec.parent")
    for path, limit, name in _LIMITS:
        _refuse_excess(queue, path, mapping(spec, *limit), f"the {name} of the queue")
    if _changes_amounts(queue, before):
        _refuse_excess_in_tree(queue, others)


def _refuse_excess_in_tree(queue: Manifest, others: Iterable[Manifest]) -> None:
    """Raise InputError if `queue` has more capability than its parent, or less than a child."""
    capability = mapping(queue.value, "spec", "capability")
    for other in others:
        if other.ref.name == at(queue.value, "spec", "parent"):
            limit = mapping(other.value, "spec", "capability")
            _refuse_excess(
                queue, _CAPABILITY, limit, f"the capability of its parent {other.ref.name}"
            )
        if at(other.value, "spec", "parent") == queue.ref.name:
            excess = _excess(other, _CAPABILITY, capability)
            if excess:
                problem = f"is less than the {excess[1]} {excess[0]} of its child {other.ref.name}"
                raise queue.refuse(problem, field="spec.capability")


def _refuse_excess(queue: Manifest, path: tuple[str, ...], limit: Json, called: str) -> None:
    """Raise InputError if `limit` is not empty, and an amount at `path` in the spec exceeds it."""
    excess = _excess(queue, path, limit)
    if excess:
        problem = f"{excess[1]} is more than {called}"
        raise queue.refuse(problem, field=f"spec.{'.'.join(path)}[{excess[0]}]")


def _excess(queue: Manifest, path: tuple[str, ...], limit: Json) -> tuple[str, Any] | None:
    """Return the first resource whose amount at `path` in the spec exceeds `limit`, and the amount.

    Return None if no amount exceeds `limit`. An empty `limit` allows all amounts. In any other
    `limit`, a missing resource has the limit 0.
    """
    amounts = mapping(queue.value, "spec", *path) if limit else {}
    return next(
        (one for one in amounts.items() if _nano(one[1]) > _nano(limit.get(one[0], 0))), None
    )


def _changes_amounts(queue: Manifest, before: Manifest | None) -> bool:
    """Return whether `queue` is new, or has another parent or other amounts than `before`."""
    return before is None or any(
        at(queue.value, "spec", *path) != at(before.value, "spec", *path) for path in _IN_TREE
    )


def _nano(amount: object) -> int:
    """Return `amount` in billionths; 0 if it is malformed, which other checks report."""
    try:
        return parse_quantity(str(amount)).nano
    except QuantityError:
        return 0
