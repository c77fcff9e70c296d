"""The feature gates that have an effect in Fairlead, by Kubernetes version, with their defaults.

upstream: pkg/features/kube_features.go of each version
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.api.text.field_problem import forbidden
from fairlead.engine.configuration.error import ConfigurationError

POP_FROM_BACKOFF: Final = "SchedulerPopFromBackoffQ"
NON_PREEMPTING_PRIORITY: Final = "NonPreemptingPriority"
TAINT_NODES_BY_CONDITION: Final = "TaintNodesByCondition"
TAINT_BASED_EVICTIONS: Final = "TaintBasedEvictions"
NODE_LEASE: Final = "NodeLease"
DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
GENERIC_WORKLOAD: Final = "GenericWorkload"
GANG_SCHEDULING: Final = "GangScheduling"
MAX_UNAVAILABLE_STATEFUL_SET: Final = "MaxUnavailableStatefulSet"
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"
# Gates that add API kinds.
GATES_OF_KINDS: Final = (DEVICE_TAINT_RULES, GENERIC_WORKLOAD)
_DISRUPTION_EXCLUSION: Final = "NodeDisruptionExclusion"
_LEGACY_NODE_ROLE: Final = "LegacyNodeRoleBehavior"


class FeatureGate(Struct, frozen=True):
    """The default of a feature gate in one version.

    If `is_locked` is set, users cannot change the gate: Fairlead implements only the default.
    """

    default: bool
    is_locked: bool = False


ON: Final = FeatureGate(default=True)
OFF: Final = FeatureGate(default=False)
ALWAYS: Final = FeatureGate(default=True, is_locked=True)
NEVER: Final = FeatureGate(default=False, is_locked=True)

FEATURE_GATES: Final[Mapping[str, Mapping[str, FeatureGate]]] = {
    "1.16": {
        NODE_LEASE: ON,
        TAINT_NODES_BY_CONDITION: ON,
        TAINT_BASED_EVICTIONS: ON,
        NON_PREEMPTING_PRIORITY: OFF,
        _DISRUPTION_EXCLUSION: OFF,
        _LEGACY_NODE_ROLE: ON,
    },
    "1.19": {
        NODE_LEASE: ALWAYS,
        TAINT_BASED_EVICTIONS: ALWAYS,
        NON_PREEMPTING_PRIORITY: ON,
        _DISRUPTION_EXCLUSION: ON,
        _LEGACY_NODE_ROLE: ON,
    },
    "1.21": {
        NODE_LEASE: ALWAYS,
        NON_PREEMPTING_PRIORITY: ON,
        _DISRUPTION_EXCLUSION: ALWAYS,
        _LEGACY_NODE_ROLE: NEVER,
    },
    "1.36": {
        POP_FROM_BACKOFF: ON,
        "ClearingNominatedNodeNameAfterBinding": ALWAYS,
        "ContainerRestartRules": ALWAYS,
        "DRAAdminAccess": ALWAYS,
        "DRAConsumableCapacity": ALWAYS,
        "DRADeviceBindingConditions": ALWAYS,
        DEVICE_TAINT_RULES: OFF,
        "DRADeviceTaints": ALWAYS,
        "DRAExtendedResource": ALWAYS,
        "DRAListTypeAttributes": NEVER,
        "DRANodeAllocatableResources": NEVER,
        "DRAPartitionableDevices": ALWAYS,
        "DRAPrioritizedList": ALWAYS,
        "DRAResourceClaimDeviceStatus": ALWAYS,
        "DRAResourceClaimGranularStatusAuthorization": ALWAYS,
        "DRASchedulerFilterTimeout": ALWAYS,
        "DRAWorkloadResourceClaims": NEVER,
        "DeploymentReplicaSetTerminatingReplicas": ALWAYS,
        "DynamicResourceAllocation": ALWAYS,
        GANG_SCHEDULING: OFF,
        GENERIC_WORKLOAD: OFF,
        "HPAConfigurableTolerance": ALWAYS,
        "HPAScaleToZero": NEVER,
        "InPlacePodLevelResourcesVerticalScaling": ALWAYS,
        "InPlacePodVerticalScaling": ALWAYS,
        "InPlacePodVerticalScalingInitContainers": ALWAYS,
        "JobManagedBy": ALWAYS,
        "JobPodReplacementPolicy": ALWAYS,
        "LogarithmicScaleDown": ALWAYS,
        "MatchLabelKeysInPodTopologySpread": ALWAYS,
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": ALWAYS,
        MAX_UNAVAILABLE_STATEFUL_SET: OFF,
        "MutableCSINodeAllocatableCount": ALWAYS,
        "MutablePVNodeAffinity": NEVER,
        "MutablePodResourcesForSuspendedJobs": ALWAYS,
        "MutableSchedulingDirectivesForSuspendedJobs": ALWAYS,
        "MutatingAdmissionPolicy": ALWAYS,
        "NodeDeclaredFeatures": ALWAYS,
        "NodeInclusionPolicyInPodTopologySpread": ALWAYS,
        "NominatedNodeNameForExpectation": ALWAYS,
        "OpportunisticBatching": ALWAYS,
        "OrderedNamespaceDeletion": ALWAYS,
        "PodDeletionCost": ALWAYS,
        "PodLevelResources": ALWAYS,
        "PodTopologyLabelsAdmission": ALWAYS,
        "RelaxedServiceNameValidation": ALWAYS,
        "RestartAllContainersOnContainerExits": ALWAYS,
        "SchedulerAsyncAPICalls": NEVER,
        "SchedulerAsyncPreemption": ALWAYS,
        "SchedulerQueueingHints": ALWAYS,
        "SeparateTaintEvictionController": ALWAYS,
        "StaleControllerConsistencyDaemonSet": ALWAYS,
        "StaleControllerConsistencyJob": ALWAYS,
        "StaleControllerConsistencyReplicaSet": ALWAYS,
        "StaleControllerConsistencyStatefulSet": ALWAYS,
        "StatefulSetSemanticRevisionComparison": ALWAYS,
        "StorageCapacityScoring": NEVER,
        "StrictIPCIDRValidation": ALWAYS,
        "TaintTolerationComparisonOperators": NEVER,
        "TopologyAwareWorkloadScheduling": NEVER,
        "UserNamespacesHostNetworkSupport": NEVER,
        "VolumeAttributesClass": ALWAYS,
        "VolumeLimitScaling": NEVER,
        WORKLOAD_AWARE_PREEMPTION: OFF,
        "WorkloadWithJob": NEVER,
    },
}

# The gates that must be on before a gate can be switched on.
# upstream: kube_features.go: defaultKubernetesFeatureGateDependencies
REQUIRED_GATES: Final[Mapping[str, tuple[str, ...]]] = {
    GANG_SCHEDULING: (GENERIC_WORKLOAD,),
    WORKLOAD_AWARE_PREEMPTION: (GANG_SCHEDULING,),
}


def parse_gates(field: str, text: str) -> dict[str, bool]:
    """Return the values of the gates in `text`, such as "NodeLease=false,TaintBasedEvictions=true".

    Raises ConfigurationError with the field `field` if an entry has no value, if its value is
    neither true nor false, or if a gate has both values. If a gate has both values, upstream uses
    the last one.
    """
    gates: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, is_joined, value = entry.partition("=")
        if not is_joined:
            raise ConfigurationError(field, f"{entry!r} is not GATE=true or GATE=false")
        if value.lower() not in ("true", "false"):
            raise ConfigurationError(field, f"{name}: {value!r} is neither true nor false")
        is_on = value.lower() == "true"
        if gates.setdefault(name, is_on) is not is_on:
            raise ConfigurationError(field, f"{name} is both true and false")
    return gates


def check_gates(version: str, gates: Mapping[str, bool], field: str = "") -> None:
    """Raise ConfigurationError if `version` does not support the value of a gate in `gates`.

    A version supports no value of a gate that it lacks. It supports only the default of a locked
    gate. The error's field is `field` followed by the name of the gate.
    """
    known = FEATURE_GATES[version]
    for name, value in gates.items():
        gate = known.get(name)
        if gate is None:
            problem = f"Fairlead has no such gate for Kubernetes {version}; {_hint(name, known)}"
            raise ConfigurationError(f"{field}{name}", problem)
        if gate.is_locked and value is not gate.default:
            only = f"Fairlead supports only {str(gate.default).lower()} for Kubernetes {version}"
            raise ConfigurationError(f"{field}{name}", forbidden(only))


def _hint(name: str, known: Mapping[str, FeatureGate]) -> str:
    """Return the most similar of the `known` gates, and all gates that users can change."""
    nearest = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {nearest[0]}? " if nearest else ""
    changeable = sorted(one for one, gate in known.items() if not gate.is_locked)
    fixed = len(known) - len(changeable)
    rest = f", and {fixed} with a fixed value (docs/versions.md)" if fixed else ""
    return f"{meant}known: {', '.join(changeable)}{rest}"


def check_required_gates(version: str, gates: Mapping[str, bool], field: str) -> None:
    """Raise ConfigurationError with `field` if a gate is on but a gate that it requires is off.

    `gates` are all gates that were set; the other gates have the defaults of `version`.
    upstream: component-base/featuregate/feature_gate.go: validateDependencies
    """
    known = FEATURE_GATES[version]
    for name, needed in REQUIRED_GATES.items():
        off = [one for one in needed if one in known and not gates.get(one, known[one].default)]
        if gates.get(name) and off:
            names = " ".join(off)
            problem = f"{name} is enabled, but depends on features that are disabled: [{names}]"
            raise ConfigurationError(field, problem)
