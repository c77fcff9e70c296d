"""StaticPools: keeps the number of nodes of each static NodePool at spec.replicas.

    too few NodeClaims     launch the missing ones, within the pool's limit on nodes
    too many               delete the surplus; `surplus_claims` chooses them

Launches and deletions happen as soon as a NodePool or NodeClaim has changed. If a launch fails
because the provider has no capacity, the pool pauses its launches. The pool resumes its launches
when an offering becomes available again, or when a NodePool changes.

upstream: pkg/controllers/static/provisioning/controller.go, static/deprovisioning/controller.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.context import KarpenterContext
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifecycle import NodeClaimLifecycle
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import static_request
from fairlead.engine.autoscaling.karpenter.state.pool_count import pool_count
from fairlead.engine.autoscaling.karpenter.static.replicas import missing_claims, surplus_claims
from fairlead.engine.core.instant import Instant

_PROVISIONED: Final = "Provisioned"
_OVERPROVISIONED: Final = "Overprovisioned"


class StaticPools:
    """Launches and deletes the NodeClaims of static NodePools.

    If the feature gate StaticCapacity is off, this class does nothing.
    """

    def __init__(
        self,
        context: KarpenterContext,
        claims: NodeClaimLifecycle,
        pending: Callable[[], frozenset[str]],
        options: KarpenterOptions,
    ) -> None:
        """`pending` returns the names of the NodeClaims that a disruption command replaces."""
        self._context = context
        self._claims = claims
        self._pending = pending
        self._options = options
        self._due: Instant | None = None
        self._without_capacity: set[str] = set()  # names of NodePools

    def next_due(self) -> Instant | None:
        """Return the time of the next check; None if no check is scheduled."""
        return self._due

    def is_waiting(self) -> bool:
        """Return whether a check is due, or a launch waits for an offering to become available."""
        waits = bool(self._without_capacity) and self._context.offerings.has_temporary
        return self._due is not None or waits

    def change(self, now: Instant) -> None:
        """Schedule a check, because NodeClaims have changed."""
        if self._options.static_capacity and any(self._pools()):
            self._due = now

    def retry(self, now: Instant) -> None:
        """Schedule a check of all pools, because offerings or NodePools have changed."""
        self._without_capacity.clear()
        self.change(now)

    def reconcile(self, now: Instant) -> None:
        """Launch and delete NodeClaims, if a check is due at `now`."""
        if self._due is None or self._due > now:
            return
        self._due = None
        for pool in self._pools():
            if pool.metadata.deletion_timestamp:
                continue
            if pool.is_ready and pool.name not in self._without_capacity:
                self._launch_missing(pool, now)
            for claim in surplus_claims(self._context.cluster, pool, self._pending(), now):
                self._claims.delete(claim, _OVERPROVISIONED, now)

    def _pools(self) -> list[NodePool]:
        pools = self._context.cluster.node_pools
        return [pools[name] for name in sorted(pools) if pools[name].is_static]

    def _launch_missing(self, pool: NodePool, now: Instant) -> None:
        cluster = self._context.cluster
        request = static_request(pool, self._options.well_known_labels)
        for _ in range(missing_claims(pool, pool_count(cluster, pool, self._pending(), now))):
            if self._claims.create(request, _PROVISIONED, now) not in cluster.node_claims:
                self._without_capacity.add(pool.name)
                return
