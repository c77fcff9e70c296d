"""One run of a DeschedulerPolicy over a snapshot.

    1. deschedule   the strategies for single pods, profile by profile
    2. balance      the strategies for whole nodes and domains, profile by profile

Every strategy sees all pods of the snapshot, but no pod is evicted twice. Disruption budgets allow
and refuse evictions as the eviction API would at the time of the run.

upstream: pkg/descheduler/descheduler.go:runProfiles
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.codec import DecodeError, decode
from fairlead.api.objects import ApiObject, LabelSelector, Node, Pod
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import (
    DEPLOYMENT,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.descheduler.cluster_view import ClusterView
from fairlead.whatif.descheduler.evictor import (
    DEFAULT_PROTECTIONS,
    EXTRA_PROTECTIONS,
    SYSTEM_CRITICAL,
    Eviction,
    Evictor,
    EvictorRules,
    RunLimits,
)
from fairlead.whatif.descheduler.node_change import NodeChanges
from fairlead.whatif.descheduler.policy import (
    BALANCE,
    DESCHEDULE,
    EVICTOR,
    DeschedulerProfile,
    EvictorArgs,
    LifeTimeArgs,
    PolicyFile,
    RestartsArgs,
    SpreadArgs,
    UtilizationArgs,
    ViolatingNodeAffinityArgs,
)
from fairlead.whatif.descheduler.spread import remove_duplicates, remove_violating_spread
from fairlead.whatif.descheduler.strategy import (
    PREFERRED,
    REQUIRED,
    remove_failed,
    remove_old,
    remove_restarting,
    remove_violating_anti_affinity,
    remove_violating_node_affinity,
    remove_violating_node_taints,
)
from fairlead.whatif.descheduler.utilization import (
    EVICTION_MODES,
    HIGH,
    LOW,
    balance_high,
    balance_low,
)
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

Strategy = Callable[[Evictor, Any], None]

_STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PodLifeTime": remove_old,
    "RemoveFailedPods": remove_failed,
    "RemovePodsHavingTooManyRestarts": remove_restarting,
    "RemovePodsViolatingInterPodAntiAffinity": remove_violating_anti_affinity,
    "RemovePodsViolatingNodeAffinity": remove_violating_node_affinity,
    "RemovePodsViolatingNodeTaints": remove_violating_node_taints,
    "HighNodeUtilization": balance_high,
    "LowNodeUtilization": balance_low,
    "RemoveDuplicates": remove_duplicates,
    "RemovePodsViolatingTopologySpreadConstraint": remove_violating_spread,
}
# The kinds that strategies and disruption budgets need.
_KINDS: Final = (NODE, POD, POD_DISRUPTION_BUDGET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET,
                 REPLICATION_CONTROLLER)  # fmt: skip
# upstream: podlifetime/validation.go, removepodshavingtoomanyrestarts/validation.go
_LIFE_TIME_STATES: Final = (
    "Running", "Pending", "Succeeded", "Failed", "Unknown", "NodeAffinity", "NodeLost", "Shutdown",
    "UnexpectedAdmissionError", "PodInitializing", "ContainerCreating", "ImagePullBackOff",
    "CrashLoopBackOff", "CreateContainerConfigError", "ErrImagePull", "CreateContainerError",
    "InvalidImageName",
)  # fmt: skip
_RESTARTS_STATES: Final = ("Running", "CrashLoopBackOff")
# {operator of label selectors: whether a requirement with this operator needs values}
_OPERATORS: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
_SPREAD_KINDS: Final = ("DoNotSchedule", "ScheduleAnyway")
_NO_CHANGES: Final = NodeChanges()
# upstream: descheduler.go: in a cluster with a single node, evictions cannot improve anything
_NODES_MIN: Final = 2


class DescheduleResult(Struct, frozen=True):
    """The evictions in order, including those that a budget refused.

    `nodes` is the largest number of Ready nodes that any one profile of the policy selects. If no
    pod is evicted, `reasons` contains sentences that explain why; otherwise it is empty.
    """

    evictions: Sequence[Eviction]
    nodes: int
    reasons: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """Sentences that summarize the run."""
        if self.nodes < _NODES_MIN:
            return [f"The descheduler evicts nothing on {counted(self.nodes, 'Ready node')}."]
        made = Counter(one.strategy for one in self.evictions if not one.refused_by)
        kept = Counter(one.refused_by for one in self.evictions if one.refused_by)
        found = [f"{count:,} by {name}" for name, count in made.items()]
        total = made.total()
        pods = counted(total, "pod")
        by = f": {', '.join(found)}" if found else ""
        notes = [f"The descheduler evicts {pods} in one run{by}.", *self.reasons]
        notes += [
            f"The budget {name} keeps {count:,} of the descheduler's pods."
            for name, count in sorted(kept.items())
        ]
        return notes


def run_policy(
    file: PolicyFile, inventory: Inventory, now: Instant, changes: NodeChanges = _NO_CHANGES
) -> DescheduleResult:
    """Return the evictions of one run of the policy `file` at `now`, after `changes`.

    Raises InputError for arguments that are wrong or not supported.
    """
    policy = file.policy
    manifests = [one for kind in _KINDS for one in inventory.of_kind(kind)]
    objects = [changes.applied(_view(one), now) for one in manifests]
    pods = [one for one in objects if isinstance(one, Pod)]
    nodes = [one for one in objects if isinstance(one, Node)]
    budgets, limits = BudgetRoom(objects, now), RunLimits(policy)
    runs: list[tuple[DeschedulerProfile, Evictor]] = []
    _selector(file.source, policy.node_selector)
    for profile in policy.profiles:
        args = file.args(profile, EVICTOR, EvictorArgs)
        selector = _selector(file.source, args.node_selector or policy.node_selector)
        chosen = [one for one in nodes if selector_matches(selector, one.metadata.labels)]
        view = ClusterView(chosen, pods)
        rules = _rules(file.source, args, inventory, pods)
        runs.append((profile, Evictor(view, rules, limits, budgets, now)))
    steps = [
        (profile, evictor, name, forms[name])
        for point, forms in (("deschedule", DESCHEDULE), ("balance", BALANCE))
        for profile, evictor in runs
        for name in _enabled(profile, point)
    ]
    evictions: list[Eviction] = []
    for profile, evictor, name, form in steps:
        arguments = file.args(profile, name, form)
        _require_supported(file.source, name, arguments)
        if len(evictor.view.nodes) < _NODES_MIN:
            continue
        before = len(evictor.evictions)
        _STRATEGIES[name](evictor, arguments)
        evictions += evictor.evictions[before:]
    seen = max((len(evictor.view.nodes) for _, evictor in runs), default=0)
    made = any(not one.refused_by for one in evictions)
    reasons = [] if made else _reasons([evictor for _, evictor in runs], pods)
    return DescheduleResult(evictions, seen, reasons)


def _reasons(evictors: Sequence[Evictor], pods: Sequence[Pod]) -> list[str]:
    """Return sentences that explain why no pod is evicted."""
    reasons = []
    for evictor in evictors:
        protected = Counter(evictor.protection(pod) for pod in pods)
        free = protected.pop("", 0)
        parts = ", ".join(f"{name} ({count:,})" for name, count in protected.most_common())
        if parts:
            reasons.append(f"Protected from the descheduler: {parts}. Not protected: {free:,}.")
        reasons += evictor.remarks
    return list(dict.fromkeys(reasons))


def _enabled(profile: DeschedulerProfile, point: str) -> list[str]:
    plugins = getattr(profile.plugins, point)
    return [name for name in plugins.enabled if name not in plugins.disabled]


def _view(manifest: Manifest) -> ApiObject:
    if manifest.view is not None:
        return manifest.view
    try:
        return decode(manifest.value)
    except DecodeError as cause:
        raise InputError.of_decode(manifest.source, cause) from None


def _selector(source: str, text: str) -> Any:
    try:
        return parse_selector(text)
    except SelectorError as cause:
        problem = f"{text!r} is not a selector: {cause}"
        raise InputError(source, problem, field="nodeSelector") from None


def _rules(
    source: str, args: EvictorArgs, inventory: Inventory, pods: Sequence[Pod]
) -> EvictorRules:
    _require_selector(source, f"{EVICTOR}.labelSelector", args.label_selector)
    owned = Counter(owner.uid for pod in pods for owner in pod.metadata.owner_references)
    threshold = _threshold(source, args, inventory)
    return EvictorRules(args, _protections(source, args), threshold, _min_age(source, args), owned)


def _protections(source: str, args: EvictorArgs) -> frozenset[str]:
    """Return the names of the pod protections that the fields of `args` enable.

    `pod_protections` is the newer field; each of the older fields enables or disables one
    protection.

    Raises InputError for an unknown protection.

    upstream: defaultevictor.go:getEffectivePodProtections
    """
    stated, field = args.pod_protections, f"{EVICTOR}.podProtections"
    for names, known in ((stated.default_disabled, DEFAULT_PROTECTIONS),
                         (stated.extra_enabled, EXTRA_PROTECTIONS)):  # fmt: skip
        for name in names:
            if name not in known:
                problem = f"unknown protection {name!r}; {known_names(name, known)}"
                raise InputError(source, problem, field=field)
    off = {
        "FailedBarePods": args.evict_failed_bare_pods,
        "PodsWithLocalStorage": args.evict_local_storage_pods,
        "DaemonSetPods": args.evict_daemon_set_pods,
        "SystemCriticalPods": args.evict_system_critical_pods,
    }
    on = {"PodsWithPVC": args.ignore_pvc_pods, "PodsWithoutPDB": args.ignore_pods_without_pdb}
    kept = {name for name in DEFAULT_PROTECTIONS if not off[name]} - set(stated.default_disabled)
    added = {name for name, is_on in on.items() if is_on}
    return frozenset(kept | added | set(stated.extra_enabled))


def _threshold(source: str, args: EvictorArgs, inventory: Inventory) -> int:
    threshold = args.priority_threshold
    if threshold is None:
        return SYSTEM_CRITICAL
    field = f"{EVICTOR}.priorityThreshold"
    if threshold.name and threshold.value is not None:
        raise InputError(source, "has value and name; expected one of them", field=field)
    if threshold.value is not None and abs(threshold.value) > SYSTEM_CRITICAL:
        raise InputError(
            source, f"is not from -{SYSTEM_CRITICAL} to {SYSTEM_CRITICAL}", field=f"{field}.value"
        )
    if not threshold.name:
        return SYSTEM_CRITICAL if threshold.value is None else threshold.value
    found = inventory.get(PRIORITY_CLASS, "", threshold.name)
    if found is None:
        problem = f"there is no PriorityClass {threshold.name}"
        raise InputError(source, problem, field=f"{EVICTOR}.priorityThreshold.name")
    return int(found.value["value"])


def _min_age(source: str, args: EvictorArgs) -> DurationNs:
    if args.min_pod_age is None:
        return 0
    try:
        return read_duration(args.min_pod_age)
    except ValueError as cause:
        raise InputError(source, str(cause), field=f"{EVICTOR}.minPodAge") from None


def _require_supported(source: str, name: str, args: Any) -> None:
    """Raise InputError for arguments that upstream refuses, or that a simulation cannot apply."""
    _require_selector(source, f"{name}.labelSelector", getattr(args, "label_selector", None))
    chosen = getattr(args, "namespaces", None)
    if chosen is not None and chosen.include and chosen.exclude:
        problem = "has include and exclude; expected one of them"
        raise InputError(source, problem, field=f"{name}.namespaces")
    match args:
        case ViolatingNodeAffinityArgs(node_affinity_type=kinds):
            if not kinds:
                raise InputError(source, "is empty", field=f"{name}.nodeAffinityType")
            _require_known(source, name, "nodeAffinityType", kinds, (REQUIRED, PREFERRED))
        case SpreadArgs(constraints=kinds):
            _require_known(source, name, "constraints", kinds, _SPREAD_KINDS)
        case LifeTimeArgs(states=states):
            _require_known(source, name, "states", states, _LIFE_TIME_STATES)
        case RestartsArgs(states=states):
            _require_known(source, name, "states", states, _RESTARTS_STATES)
        case UtilizationArgs():
            _require_utilization(source, name, args)
        case _:
            pass


def _require_utilization(source: str, name: str, args: UtilizationArgs) -> None:
    """Raise InputError for wrong arguments of the utilization strategy `name`."""
    _require_known(source, name, "evictionModes", args.eviction_modes, EVICTION_MODES)
    for field, is_set, owner in (
        ("evictionLimits", args.eviction_limits.node is not None, LOW),
        ("evictionModes", bool(args.eviction_modes), HIGH),
    ):
        if is_set and name != owner:
            raise InputError(source, f"is supported only by {owner}", field=f"{name}.{field}")
    if args.evictable_namespaces.include:
        problem = "is not supported; only exclude can be set"
        raise InputError(source, problem, field=f"{name}.evictableNamespaces.include")
    _require_percentages(source, name, args)


def _require_known(
    source: str, name: str, field: str, values: Sequence[str], known: Sequence[str]
) -> None:
    for value in values:
        if value not in known:
            problem = f"unknown value {value!r}; {known_names(value, known)}"
            raise InputError(source, problem, field=f"{name}.{field}")


def _require_percentages(source: str, name: str, args: UtilizationArgs) -> None:
    """Raise InputError for thresholds that upstream refuses (nodeutilization/validation.go).

    A threshold may exceed its target only if `args.use_deviation_thresholds` is set.
    """
    lower, upper = args.thresholds, args.target_thresholds
    for field, shares in (("thresholds", lower), ("targetThresholds", upper)):
        for resource, share in shares.items():
            if not 0 <= share <= 100:
                problem = f"{share:g} is not a percentage from 0 to 100"
                raise InputError(source, problem, field=f"{name}.{field}.{resource}")
    if not lower:
        raise InputError(source, "is required", field=f"{name}.thresholds")
    if name == LOW and set(lower) != set(upper):
        problem = "must name the same resources as thresholds"
        raise InputError(source, problem, field=f"{name}.targetThresholds")
    for resource, share in lower.items():
        if share > upper.get(resource, share) and not args.use_deviation_thresholds:
            problem = f"{share:g} is more than its target of {upper[resource]:g}"
            raise InputError(source, problem, field=f"{name}.thresholds.{resource}")


def _require_selector(source: str, field: str, selector: LabelSelector | None) -> None:
    """Raise InputError for an invalid operator, or for values that do not fit the operator."""
    for number, one in enumerate(selector.match_expressions if selector is not None else ()):
        where = f"{field}.matchExpressions[{number}]"
        if not one.key:
            raise InputError(source, "is required", field=f"{where}.key")
        if one.operator not in _OPERATORS:
            problem = f"unknown operator {one.operator!r}; known: {', '.join(_OPERATORS)}"
            raise InputError(source, problem, field=f"{where}.operator")
        if bool(one.values) != _OPERATORS[one.operator]:
            needs = "needs values" if _OPERATORS[one.operator] else "takes no values"
            raise InputError(source, f"{one.operator} {needs}", field=f"{where}.values")
