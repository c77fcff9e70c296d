"""Evictor: the rules and limits for evictions, and the evictions of a run so far.

upstream: pkg/framework/plugins/defaultevictor, pkg/descheduler/evictions/evictions.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_daemon_pod, is_static, is_terminating, pod_priority
from fairlead.api.selector import selector_matches
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.descheduler.cluster_view import ClusterView
from fairlead.whatif.descheduler.policy import DeschedulerPolicy, EvictorArgs

EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
SYSTEM_CRITICAL: Final = 2_000_000_000
DEFAULT_PROTECTIONS: Final = (
    "PodsWithLocalStorage",
    "DaemonSetPods",
    "SystemCriticalPods",
    "FailedBarePods",
)
EXTRA_PROTECTIONS: Final = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")


class Eviction(Struct, frozen=True):
    """An attempt of the strategy `strategy` to evict `pod`.

    `refused_by` is the disruption budget that refused the eviction, "" if no budget refused it.
    """

    pod: Pod
    strategy: str
    refused_by: str = ""


class EvictorRules(Struct, frozen=True):
    """The rules of DefaultEvictor, made from its arguments.

    `protections` are named as in upstream. SystemCriticalPods protects the pods whose priority is
    at least `threshold`. Pods that started less than `min_age` ago are protected, too. `owned` is
    the number of pods of each owner, by the owner's UID.
    """

    args: EvictorArgs
    protections: frozenset[str]
    threshold: int
    min_age: DurationNs
    owned: Mapping[str, int]


class RunLimits(Struct):
    """The policy's limits for one run, and the evictions so far, which all profiles share.

    The evictions are counted by node, by namespace and by the budget that allowed them. `evicted`
    contains the UIDs of the evicted pods.
    """

    policy: DeschedulerPolicy
    nodes: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    budgets: Counter[str] = field(default_factory=Counter)
    evicted: set[str] = field(default_factory=set)

    def is_reached(self, pod: Pod) -> bool:
        """Return whether a limit (total, per node or per namespace) forbids evicting `pod`."""
        policy = self.policy
        return (
            self.is_total_reached
            or _is_reached(policy.max_no_of_pods_to_evict_per_node, self.nodes[pod.spec.node_name])
            or _is_reached(
                policy.max_no_of_pods_to_evict_per_namespace,
                self.namespaces[pod.metadata.namespace],
            )
        )

    @property
    def is_total_reached(self) -> bool:
        """Whether the limit for the whole run forbids further evictions."""
        return _is_reached(self.policy.max_no_of_pods_to_evict_total, self.nodes.total())

    def is_node_reached(self, node: str) -> bool:
        """Return whether the limit per node forbids further evictions from `node`."""
        return _is_reached(self.policy.max_no_of_pods_to_evict_per_node, self.nodes[node])

    def count(self, pod: Pod, budgets: Iterable[str]) -> None:
        """Count the eviction of `pod`; `budgets` are the keys of the budgets that allowed it."""
        self.nodes[pod.spec.node_name] += 1
        self.namespaces[pod.metadata.namespace] += 1
        self.budgets.update(budgets)
        self.evicted.add(pod.metadata.uid)


def _is_reached(limit: int | None, used: int) -> bool:
    return limit is not None and used >= limit


class Evictor:
    """Decides whether pods may be evicted, and records evictions.

    The Evictor also records evictions that a disruption budget refuses.
    """

    def __init__(
        self,
        view: ClusterView,
        rules: EvictorRules,
        limits: RunLimits,
        budgets: BudgetRoom,
        now: Instant,
    ) -> None:
        """`budgets` states how many evictions the disruption budgets allow at `now`."""
        self.view = view
        self.limits = limits
        self.now = now
        self.evictions: list[Eviction] = []
        self.remarks: list[str] = []  # the reasons why a strategy had nothing to do
        self._rules = rules
        self._budgets = budgets

    def may_evict(self, pod: Pod) -> bool:
        """Return whether the policy allows evicting `pod`.

        Static pods, terminating pods and pods that the run has already evicted may never be
        evicted. Any other pod with the annotation `descheduler.alpha.kubernetes.io/evict` may
        always be evicted. For such a pod, the protections, the label selector, the minimum age and
        the minimum number of replicas do not matter.

        upstream: defaultevictor.go:Filter, constraints.go
        """
        meta = pod.metadata
        # No strategy lists terminating pods (podutil.BuildFilterFunc).
        if is_terminating(pod) or meta.uid in self.limits.evicted:
            return False
        if is_static(pod):
            return False
        if EVICT in meta.annotations:
            return True
        return not self.protection(pod) and self._is_selected(pod)

    def protection(self, pod: Pod) -> str:
        """Return the name of the rule that protects `pod`; "" if no rule protects it."""
        on, owners = self._rules.protections, pod.metadata.owner_references
        may_be_bare = "FailedBarePods" not in on and pod.status.phase == "Failed"
        if not owners and not may_be_bare:
            return "no controller"
        rules: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("DaemonSetPods", lambda: is_daemon_pod(pod)),
            ("SystemCriticalPods", lambda: pod_priority(pod) >= self._rules.threshold),
            ("PodsWithLocalStorage", lambda: _has_local_storage(pod)),
            ("PodsWithPVC", lambda: any(v.persistent_volume_claim for v in pod.spec.volumes)),
            ("PodsWithResourceClaims", lambda: bool(pod.spec.resource_claims)),
            ("PodsWithoutPDB", lambda: not self._budgets.of(pod)),
        )
        return next((name for name, applies in rules if name in on and applies()), "")

    def _is_selected(self, pod: Pod) -> bool:
        rules, meta = self._rules, pod.metadata
        selector = rules.args.label_selector
        if selector is not None and not selector_matches(selector, meta.labels):
            return False
        # A pod without a start time is new (constraints.go:evictionConstraintsForMinPodAge).
        started = pod.status.start_time
        if rules.min_age and (not started or self.now - parse_timestamp(started) < rules.min_age):
            return False
        # upstream: constraints.go:evictionConstraintsForMinReplicas
        owners = meta.owner_references
        return not (
            rules.args.min_replicas > 1
            and len(owners) == 1
            and rules.owned.get(owners[0].uid, 0) < rules.args.min_replicas
        )

    def fits_elsewhere(self, pod: Pod) -> bool:
        """Return whether `pod` fits another node; always True if the policy does not set nodeFit.

        upstream: defaultevictor.go:PreEvictionFilter
        """
        return not self._rules.args.node_fit or self.view.fits_another_node(pod, self.view.nodes)

    def evict(self, pod: Pod, strategy: str) -> bool:
        """Evict `pod`; return False if a limit or a disruption budget forbids the eviction."""
        if self.limits.is_reached(pod):
            return False
        guarding = self._budgets.guarding(pod)
        for limit in guarding:
            if len(guarding) > 1 or self.limits.budgets[limit.key] >= limit.now:
                self.evictions.append(Eviction(pod, strategy, limit.key))
                return False
        self.limits.count(pod, [limit.key for limit in guarding])
        self.evictions.append(Eviction(pod, strategy))
        return True

    def age(self, pod: Pod) -> DurationNs:
        """Return the time (ns) since the creation of `pod`; 0 if this time is unknown."""
        created = pod.metadata.creation_timestamp
        return self.now - parse_timestamp(created) if created else 0


def _has_local_storage(pod: Pod) -> bool:
    # upstream: pkg/utils/pod.go:IsPodWithLocalStorage
    return any(one.host_path is not None or one.empty_dir is not None for one in pod.spec.volumes)
