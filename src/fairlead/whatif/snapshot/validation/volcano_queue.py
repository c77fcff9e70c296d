"""Refuses Queues that Volcano's admission webhook does not allow.

Only new and changed Queues are checked, because the webhook has checked those of a dump. Sums over
the queues of a tree are not checked.

upstream: volcano: pkg/webhooks/admission/queues/validate/validate_queue.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import at, mapping
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.whatif.snapshot.manifest import Manifest

_GROUP: Final = "scheduling.volcano.sh"
_ROOT: Final = "root"
_WEIGHT: Final = "queue weight must be a positive integer"
# If a queue has a capability, these amounts of its spec must not exceed the capability.
_LIMITED: Final = (("deserved",), ("guarantee", "resource"))


def refuse_invalid_queue(
    queue: Manifest, before: Manifest | None, others: Iterable[Manifest]
) -> None:
    """Raise InputError if Volcano refuses the Queue `queue`; Queues of kube-batch have no rules.

    `before` is the Queue that `queue` replaces; None if it is new. A new Queue with the weight 0
    gets the weight 1 from another webhook. `others` are all Queues, with the new ones.
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
    capability = mapping(spec, "capability")
    for path in _LIMITED if capability else ():
        for name, amount in mapping(spec, *path).items():
            if _nano(amount) > _nano(capability.get(name, 0)):
                problem = f"{amount} is more than the capability of the queue"
                raise queue.refuse(problem, field=f"spec.{'.'.join(path)}[{name}]")


def _nano(amount: object) -> int:
    """Return `amount` in billionths; 0 if it is malformed, which other checks report."""
    try:
        return parse_quantity(str(amount)).nano
    except QuantityError:
        return 0
