"""Release: the Kubernetes version that the parts of the engine follow.

Some parts have rules for several versions. Such a part uses its rules for the requested version. If
it has none, it uses its rules for the last version before the requested version. If a part has
rules only for later versions, it uses the rules for the earliest of these versions. Parts without
rules for several versions follow 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.feature_gate import (
    DEVICE_TAINT_RULES,
    FEATURE_GATES,
    GATES_OF_KINDS,
    GENERIC_WORKLOAD,
    MAX_UNAVAILABLE_STATEFUL_SET,
    NODE_LEASE,
    NON_PREEMPTING_PRIORITY,
    POP_FROM_BACKOFF,
    TAINT_BASED_EVICTIONS,
    TAINT_NODES_BY_CONDITION,
    WORKLOAD_AWARE_PREEMPTION,
    check_gates,
)
from fairlead.engine.nodelifecycle.profile import PROFILES, VersionProfile, gated
from fairlead.engine.plugins.registry import GATED
from fairlead.engine.scheduling.version import V1_36, SchedulerVersion

NEWEST: Final = "1.36"
SELECTABLE: Final = tuple(FEATURE_GATES)
SCHEDULERS: Final = ("1.19", NEWEST)
PRIORITY_ADMISSIONS: Final = ("1.21", NEWEST)
# Without taints for conditions, the scheduler reads conditions itself, as in 1.16.
CONDITION_PLUGINS: Final = (
    ("CheckNodeCondition", 0),
    ("CheckNodeMemoryPressure", 0),
    ("CheckNodeDiskPressure", 0),
    ("CheckNodePIDPressure", 0),
)


class Release(Struct, frozen=True, kw_only=True):
    """The Kubernetes version to follow, and the feature gates that were set.

    Feature gates that are not in `gates` have their defaults.
    """

    version: str = NEWEST
    gates: Mapping[str, bool] = field(default_factory=dict)

    def with_defaults(self, gates: Mapping[str, bool], field: str = "") -> Release:
        """Return the release with `gates` added; gates that are already set keep their values.

        Raises ConfigurationError if the version lacks a gate or has locked it to another value. The
        error's field is `field` followed by the name of the gate.
        """
        check_gates(self.version, gates, field)
        return replace(self, gates={**gates, **self.gates})

    def is_on(self, gate: str) -> bool:
        """Return whether `gate` is on; True if the version does not have the gate."""
        known = FEATURE_GATES[self.version].get(gate)
        return self.gates.get(gate, known is None or known.default)

    @property
    def scheduler(self) -> SchedulerVersion:
        """The rules of the scheduler in this release."""
        version = _scheduler_version(newest_described(SCHEDULERS, self.version))
        pops = version.backoff.pop_from_backoff and self.is_on(POP_FROM_BACKOFF)
        honors_never = self.is_on(NON_PREEMPTING_PRIORITY)
        by_taints = self.is_on(TAINT_NODES_BY_CONDITION)
        plugins = version.plugins if by_taints else (*CONDITION_PLUGINS, *version.plugins)
        # upstream: apis/config/v1/default_plugins.go: applyFeatureGates
        gated = tuple((name, 0) for name in GATED if self._switched_on(name))
        return replace(
            version,
            backoff=replace(version.backoff, pop_from_backoff=pops),
            preemption=replace(
                version.preemption,
                honors_never=honors_never,
                by_group=self._switched_on(WORKLOAD_AWARE_PREEMPTION),
            ),
            plugins=(*plugins, *gated),
            factories={**version.factories, **GATED} if gated else version.factories,
            pod_groups=self._switched_on(GENERIC_WORKLOAD),
            device_taint_rules=self._switched_on(DEVICE_TAINT_RULES),
        )

    @property
    def switched_on(self) -> tuple[str, ...]:
        """The feature gates that are on although they are off by default."""
        gates = FEATURE_GATES[self.version].items()
        return tuple(name for name, gate in gates if not gate.default and self.is_on(name))

    @property
    def group_priorities(self) -> bool:
        """Whether priority admission gives PodGroups of scheduling.k8s.io a priority."""
        return self._switched_on(WORKLOAD_AWARE_PREEMPTION)

    def _switched_on(self, gate: str) -> bool:
        """Return whether `gate` is on; False if the version does not have the gate."""
        return gate in FEATURE_GATES[self.version] and self.is_on(gate)

    @property
    def gates_of_kinds(self) -> tuple[str, ...]:
        """The feature gates that are on and add API kinds."""
        return tuple(gate for gate in GATES_OF_KINDS if self._switched_on(gate))

    @property
    def node_lifecycle(self) -> VersionProfile:
        """The rules of the node controllers in this release."""
        profile = PROFILES[newest_described(PROFILES, self.version)]
        return gated(profile, {name: self.is_on(name) for name in FEATURE_GATES[self.version]})

    @property
    def taint_based_evictions(self) -> bool:
        """Whether taints evict pods from unresponsive nodes."""
        return self.is_on(TAINT_BASED_EVICTIONS)

    @property
    def node_leases(self) -> bool:
        """Whether kubelets renew leases.

        If not, kubelets post their status as often as they would renew leases.
        """
        return self.is_on(NODE_LEASE)

    @property
    def priority_admission(self) -> str:
        """The Kubernetes version whose rules for priority admission apply."""
        return newest_described(PRIORITY_ADMISSIONS, self.version)

    @property
    def max_unavailable_stateful_set(self) -> bool:
        """Whether StatefulSets update up to maxUnavailable pods at the same time."""
        return self._switched_on(MAX_UNAVAILABLE_STATEFUL_SET)

    @property
    def preemption_policies(self) -> bool:
        """Whether priority admission gives pods a preemption policy."""
        return self.is_on(NON_PREEMPTING_PRIORITY)

    @property
    def parts(self) -> dict[str, str]:
        """A mapping {name of a part of the engine: the version that the part follows}."""
        return {
            "scheduler": self.scheduler.version,
            "node controllers": self.node_lifecycle.version,
            "priority admission": self.priority_admission,
        }


CURRENT: Final = Release()


def release_of(version: str = "", gates: Mapping[str, bool] | None = None) -> Release:
    """Return the release `version` ("" for the newest), with feature gates changed by `gates`.

    Raises ConfigurationError for an unknown version or an invalid gate. The error's field is "" or
    the name of the gate.
    """
    name = version or NEWEST
    if name not in SELECTABLE:
        known = ", ".join(SELECTABLE)
        raise ConfigurationError("", f"unknown version {name!r}; known: {known}")
    return Release(version=name).with_defaults(gates or {})


def _scheduler_version(version: str) -> SchedulerVersion:
    if version == V1_36.version:
        return V1_36
    # Imported only when needed: few runs follow 1.19, and an import at the start would slow down
    # every run.
    from fairlead.engine.scheduling.release_1_19 import V1_19  # noqa: PLC0415

    return V1_19


def newest_described(described: Iterable[str], version: str) -> str:
    """Return `version` if it is in `described`, otherwise the last version before it.

    If all versions in `described` are later than `version`, returns the oldest of them.
    """
    ordered = sorted(described, key=_number)
    return next((one for one in reversed(ordered) if _number(one) <= _number(version)), ordered[0])


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
