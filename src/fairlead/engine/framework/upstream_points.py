"""UPSTREAM_POINTS: the extension points of kube-scheduler's own plugins.

Users enable plugins at upstream's extension points. Fairlead's plugin of the same name may
implement others, or need fewer (NodeResourcesFit has no PreFilter); upstream's configuration is
still valid.
upstream: the interface assertions of framework/plugins/*
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ALL_BUT_BINDING: Final = ("PreFilter", "Filter", "PreScore", "Score")

UPSTREAM_POINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "SchedulingGates": ("PreEnqueue",),
    "PrioritySort": ("QueueSort",),
    "NodeUnschedulable": ("Filter",),
    "NodeName": ("Filter",),
    "TaintToleration": ("Filter", "PreScore", "Score"),
    "NodeAffinity": _ALL_BUT_BINDING,
    "NodePorts": ("PreFilter", "Filter"),
    "NodeResourcesFit": _ALL_BUT_BINDING,
    "VolumeRestrictions": ("PreFilter", "Filter"),
    "NodeVolumeLimits": ("PreFilter", "Filter"),
    "VolumeBinding": (*_ALL_BUT_BINDING, "Reserve", "PreBind"),
    "VolumeZone": ("PreFilter", "Filter"),
    "PodTopologySpread": _ALL_BUT_BINDING,
    "InterPodAffinity": _ALL_BUT_BINDING,
    "DynamicResources": (
        "PreEnqueue", "PreFilter", "Filter", "PostFilter", "Score", "Reserve", "PreBind"
    ),
    "NodeDeclaredFeatures": ("PreFilter", "Filter"),
    "DefaultPreemption": ("PreEnqueue", "PostFilter"),
    "NodeResourcesBalancedAllocation": ("PreScore", "Score"),
    "ImageLocality": ("Score",),
    "DefaultBinder": ("Bind",),
}  # fmt: skip
