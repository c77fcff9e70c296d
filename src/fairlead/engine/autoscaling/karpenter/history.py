"""The history of Karpenter in a run: created and removed nodes, and failures to create nodes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from fairlead.engine.autoscaling.refusal import RefusalLog
from fairlead.engine.core.instant import Instant


class KarpenterNodeChange(Struct, frozen=True, kw_only=True):
    """A node that Karpenter created (`added`) or removed; `price` is per hour.

    The `reason` of a creation is `Provisioned` or `Created by a user`. If the node replaces
    disrupted nodes, `reason` is the reason of the disruption. The `reason` of a removal is one of
    these texts:

    - the reason of a disruption, such as `Drifted`
    - `Expired`, `Deleted`, `Overprovisioned` or `registration_timeout`
    - `RegistrationFailed: MESSAGE`, where MESSAGE is the API server's message
    """

    at: Instant
    added: bool
    node: str
    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    price: float
    reason: str


class LimitedUse(Struct, frozen=True):
    """The capacity of the nodes of the NodePool `pool`, for each resource that the pool limits.

    `at` is the time of the provisioning pass after which the nodes have this capacity.
    """

    at: Instant
    pool: str
    amounts: Mapping[str, int]


class KarpenterHistory(Struct):
    """The actions of Karpenter in a run.

    If no node can be created for a pod, `errors` maps the key of the pod to upstream's error text.
    `undelivered` contains the number of NodeClaims that failed for lack of capacity, by NodePool.
    `refusals` records for how long each error applied. If a provisioning pass creates NodeClaims
    for a NodePool with limits, `uses` gets an entry for the pass and the NodePool.
    """

    changes: list[KarpenterNodeChange] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    undelivered: dict[str, int] = field(default_factory=dict)
    refusals: RefusalLog = field(default_factory=RefusalLog)
    uses: list[LimitedUse] = field(default_factory=list)
