"""VersionProfile: the differences between upstream versions, as data.

Code reads the profile's fields; it never compares version numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.well_known_label import (
    ARCH,
    BETA_ARCH,
    BETA_OS,
    BETA_REGION,
    BETA_ZONE,
    OS,
    REGION,
    ZONE,
)
from fairlead.engine.core.instant import DurationNs, seconds


class VersionProfile(Struct, frozen=True, kw_only=True):
    """The behavior of one upstream version.

    The comment on a boolean field says what happens if the field is True.
    """

    version: str
    node_monitor_grace_period: DurationNs

    # Nodes and zones:

    # The version has the mode that deletes the pods of not-ready nodes, with its flags and feature
    # gates.
    has_pod_eviction: bool
    # The keys of labels that contain a node's zone. If a node has several of these labels, the one
    # that is listed first is used.
    zone_labels: tuple[str, ...]
    region_labels: tuple[str, ...]  # the same for the node's region
    # Pairs (source, copy) of node labels that are kept equal.
    label_copies: tuple[tuple[str, str], ...]
    # Nodes with the label exclude-disruption do not count toward the zone's state.
    excludes_labelled: bool
    # Nodes whose names end in `master`, or in `master-` and three characters, do not count toward
    # the zone's state.
    excludes_masters: bool
    # A pass taints a node by its new Ready status (Unknown if the heartbeat is overdue), not by the
    # status before the pass.
    taints_by_current: bool
    requeues_untainted: bool  # each pass queues a not-ready node again if its taint is missing
    marks_late_bound_pods: bool  # a pod that is bound to a not-ready node is marked not ready
    reports_unready_pods: bool  # a pod that is marked not ready gets an event

    # Taint eviction:

    eviction_source: str  # the reporting controller of the events
    adds_disruption_target: bool  # evicted pods get the condition DisruptionTarget
    cancels_when_endless: bool  # a toleration without tolerationSeconds cancels a running timer
    remembers_evicted: bool  # a pod that a timer has evicted does not get a second timer

    # Pod garbage collection:

    # The time for which a node must be missing before its pods are deleted.
    orphan_quarantine: DurationNs
    fails_pods: bool  # pods are set to Failed before they are deleted
    # Terminating pods on not-ready nodes with the out-of-service taint are deleted.
    collects_out_of_service: bool

    # Nodes:

    uses_leases: bool = True  # a renewed node lease counts as a heartbeat, like a posted status
    taints_by_condition: bool = True  # conditions and cordons become NoSchedule taints


V1_36: Final = VersionProfile(
    version="1.36",
    node_monitor_grace_period=seconds(50),
    has_pod_eviction=False,
    zone_labels=(BETA_ZONE, ZONE),
    region_labels=(BETA_REGION, REGION),
    label_copies=((OS, BETA_OS), (ARCH, BETA_ARCH)),
    excludes_labelled=True,
    excludes_masters=False,
    taints_by_current=True,
    requeues_untainted=True,
    marks_late_bound_pods=True,
    reports_unready_pods=True,
    eviction_source="taint-eviction-controller",
    adds_disruption_target=True,
    cancels_when_endless=True,
    remembers_evicted=False,
    orphan_quarantine=seconds(40),
    fails_pods=True,
    collects_out_of_service=True,
)

# The feature gates at their 1.16 defaults: NodeDisruptionExclusion off, LegacyNodeRoleBehavior on.
V1_16: Final = VersionProfile(
    version="1.16",
    node_monitor_grace_period=seconds(40),
    has_pod_eviction=True,
    zone_labels=(BETA_ZONE,),
    region_labels=(BETA_REGION,),
    label_copies=((BETA_OS, OS), (BETA_ARCH, ARCH)),
    excludes_labelled=False,
    excludes_masters=True,
    taints_by_current=False,
    requeues_untainted=False,
    marks_late_bound_pods=False,
    reports_unready_pods=False,
    eviction_source="taint-controller",
    adds_disruption_target=False,
    cancels_when_endless=False,
    remembers_evicted=True,
    orphan_quarantine=0,
    fails_pods=False,
    collects_out_of_service=False,
)

PROFILES: Final = {profile.version: profile for profile in (V1_36, V1_16)}

# The field of the profile that each feature gate sets.
GATED_FIELDS: Final = {
    "NodeDisruptionExclusion": "excludes_labelled",
    "LegacyNodeRoleBehavior": "excludes_masters",
    "NodeLease": "uses_leases",
    "TaintNodesByCondition": "taints_by_condition",
}


def gated(profile: VersionProfile, gates: Mapping[str, bool]) -> VersionProfile:
    """Return `profile`, changed by the feature gates `gates`.

    Gates that set no field of a profile are ignored.
    """
    fields: dict[str, Any] = {
        GATED_FIELDS[name]: value for name, value in gates.items() if name in GATED_FIELDS
    }
    return replace(profile, **fields)
