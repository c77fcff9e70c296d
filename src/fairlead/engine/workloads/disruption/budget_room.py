"""BudgetRoom: disruptions that budgets allow now, and the maximum that they could allow.

    blocked now        the budget allows no eviction, because some of its pods are not ready
    blocked for good   the budget allows no eviction even if all replicas are ready (minAvailable
                       equal to the replicas, maxUnavailable 0, or a percentage that rounds up to
                       all replicas)
    blocked twice      several budgets select the pod; the eviction API refuses its eviction

Example: a budget has minAvailable 2. If its Deployment has 2 replicas and both are ready, 0
disruptions are allowed now and 0 at best. If the Deployment has 3 replicas and one is unready, 0
disruptions are allowed now and 1 at best.

upstream: pkg/registry/core/pod/storage/eviction.go, pkg/controller/disruption/disruption.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fairlead.api.objects import ApiObject, Pod, PodDisruptionBudget
from fairlead.api.pods.facts import controller_of, is_terminal, is_terminating
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.disruption.budget import BudgetError, desired_healthy
from fairlead.engine.workloads.disruption.budget_state import BudgetState, NamespaceBudgets
from fairlead.engine.workloads.disruption.scale import Scales, is_scalable
from fairlead.engine.workloads.int_or_percent import IntOrPercentError
from fairlead.engine.workloads.pod_control.scale_down import is_ready

_ALWAYS: Final = "AlwaysAllow"


class BudgetLimit(Struct, frozen=True):
    """The disruptions that a budget allows: `now`, and `at_best` if all its replicas are ready."""

    key: str
    rule: str  # the budget's limit in words
    now: int
    at_best: int
    healthy: int  # the number of ready pods
    desired: int  # the number of pods that must be ready
    wanted: int  # the number of replicas
    problem: str = ""  # the error text if the budget's status cannot be computed, else ""
    owner: str = ""  # the object that owns the budget, such as `Cluster db/pg`, or ""
    # False if the limit is a number of pods (minAvailable) and the budget could not use
    # maxUnavailable instead. A budget cannot use maxUnavailable if its pods have no controller, or
    # if one of their controllers has no known scale.
    has_scales: bool = True

    @property
    def is_permanent(self) -> bool:
        """Whether the budget allows no disruption even if all pods that it covers are ready."""
        return self.at_best < 1

    @property
    def losses_max(self) -> int:
        """The maximum number of pods that can be evicted if no evicted pod is replaced."""
        return max(self.now, self.at_best)

    @property
    def lacks_scale(self) -> bool:
        """Whether the number of wanted replicas is 0 or unknown, so that no disruption is allowed.

        There are three causes:
        - the limit is a percentage or maxUnavailable, and the pods have no controller with a scale
        - the budget selects no pods
        - the status cannot be computed (`problem`), for example because the limit is invalid
        """
        # upstream: pkg/controller/disruption/disruption.go:getExpectedScale
        return bool(self.problem) or self.wanted == 0

    @property
    def spares_unready(self) -> bool:
        """Whether unready pods may be evicted because enough other pods are healthy."""
        return self.healthy >= self.desired > 0


class BudgetRoom:
    """The budgets of a cluster.

    The pods of a budget are counted as in the disruption controller.
    """

    def __init__(self, objects: Iterable[ApiObject], now: Instant) -> None:
        """Count the unfinished pods in `objects` at `now`."""
        self._namespaces: dict[str, NamespaceBudgets] = {}
        self._scales = Scales()
        self._limits: dict[str, BudgetLimit] = {}
        known = list(objects)
        for one in known:
            if isinstance(one, PodDisruptionBudget):
                namespace = one.metadata.namespace
                self._namespaces.setdefault(namespace, NamespaceBudgets()).observe_budget(one)
                self._scales.learn(one)
        for one in known:
            if isinstance(one, Pod):
                self._scales.observe_pod(one)
                if not is_terminal(one) and one.metadata.namespace in self._namespaces:
                    self._namespaces[one.metadata.namespace].observe_pod(one)
            elif is_scalable(one):
                self._scales.observe(one)
        for namespace, budgets in self._namespaces.items():
            for name, state in budgets.states.items():
                key = f"{namespace}/{name}"
                self._limits[key] = self._limit(key, state, now)

    def of(self, pod: Pod) -> list[BudgetLimit]:
        """Return the limits of the budgets that select `pod`, sorted by the budgets' names."""
        budgets = self._namespaces.get(pod.metadata.namespace)
        if budgets is None:
            return []
        return [
            self._limits[f"{pod.metadata.namespace}/{name}"]
            for name, state in sorted(budgets.states.items())
            if state.selects(pod.metadata.labels)
        ]

    def guarding(self, pod: Pod) -> list[BudgetLimit]:
        """Return the limits of the budgets that an eviction of `pod` must respect.

        If several budgets are returned, the eviction API refuses the eviction. Returns [] for pods
        that are evicted without a check: pending, finished and terminating pods, and pods without
        labels. Also returns [] for an unready pod whose only budget leaves unready pods unprotected
        (unhealthyPodEvictionPolicy).
        """
        if (
            not pod.metadata.labels
            or is_terminating(pod)
            or is_terminal(pod)
            or pod.status.phase == "Pending"
        ):
            return []
        found = self.of(pod)
        if len(found) == 1 and not is_ready(pod) and self._spares(found[0]):
            return []
        return found

    def breached(self, victims: Iterable[Pod]) -> list[tuple[BudgetLimit, int]]:
        """Return (budget, number of victims) for each budget that the preemption breaches.

        `victims` are the preempted pods. A budget counts all victims that it selects, including
        unready pods. A budget is breached if it allows fewer disruptions than it counts victims.
        The result is sorted by the keys of the budgets.
        """
        # upstream: plugins/defaultpreemption: filterPodsWithPDBViolation
        limits = [limit for victim in victims for limit in self.of(victim)]
        counts = Counter(limit.key for limit in limits)
        by_key = {limit.key: limit for limit in limits}
        return [(by_key[key], n) for key, n in sorted(counts.items()) if n > by_key[key].now]

    def permits(self, pod: Pod, limit: BudgetLimit) -> bool:
        """Return whether the budget of `limit` permits an eviction of `pod` now.

        Other budgets that select the pod are ignored.
        """
        return limit.now > 0 or (not is_ready(pod) and self._spares(limit))

    def limits(self) -> list[BudgetLimit]:
        """Return the limits of all budgets, sorted by namespace and name."""
        return [self._limits[key] for key in sorted(self._limits)]

    def _spares(self, limit: BudgetLimit) -> bool:
        namespace, _, name = limit.key.partition("/")
        spec = self._namespaces[namespace].states[name].budget.view.spec
        return spec.unhealthy_pod_eviction_policy == _ALWAYS or limit.spares_unready

    def _limit(self, key: str, state: BudgetState, now: Instant) -> BudgetLimit:
        budget, rule = state.budget, _rule(state.budget.view)
        members, owner = len(budget.members), _owner(state.budget.view)
        namespace, expected = budget.view.metadata.namespace, budget.view.status.expected_pods
        try:
            scale = self._scales.total(namespace, budget.owners, expected)
        except BudgetError as cause:
            if budget.needs_scale:
                return BudgetLimit(key, rule, 0, 0, budget.healthy, 0, members, str(cause), owner)
            scale = members
        try:
            status = budget.status(scale, now)
            wanted = scale if budget.needs_scale else max(members, scale)
            at_best = max(0, wanted - desired_healthy(budget.view, wanted))
        except (BudgetError, IntOrPercentError) as cause:
            return BudgetLimit(key, rule, 0, 0, budget.healthy, 0, members, str(cause), owner)
        return BudgetLimit(
            key,
            rule,
            status.disruptions_allowed,
            at_best,
            status.current_healthy,
            status.desired_healthy,
            wanted,
            owner=owner,
            has_scales=budget.needs_scale or self._has_scales(state),
        )

    def _has_scales(self, state: BudgetState) -> bool:
        """Return whether the budget's pods have controllers that all have a scale.

        maxUnavailable needs these scales. `Scales.has_scale` decides whether a controller has a
        scale.

        upstream: pkg/controller/disruption/disruption.go: getExpectedScale
        """
        namespace, owners = state.budget.view.metadata.namespace, state.budget.owners
        return bool(owners) and all(self._scales.has_scale(namespace, one) for one in owners)


def _owner(view: PodDisruptionBudget) -> str:
    """Return kind, namespace and name of the budget's owner; "" if it has no owner.

    Some operators do not set `controller` in owner references. If no owner reference sets it, the
    first owner reference names the owner.
    """
    meta = view.metadata
    owner = controller_of(meta) or next(iter(meta.owner_references), None)
    return "" if owner is None else f"{owner.kind} {meta.namespace}/{owner.name}"


def _rule(view: PodDisruptionBudget) -> str:
    spec = view.spec
    if spec.max_unavailable is not None:
        return f"maxUnavailable {spec.max_unavailable}"
    if spec.min_available is not None:
        return f"minAvailable {spec.min_available}"
    return "no limit"
