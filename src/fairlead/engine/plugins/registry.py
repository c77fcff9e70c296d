"""IN_TREE: maps each plugin of the default profile, except DefaultPreemption, to its factory.

A factory takes the handle, which gives read access to the engine, and the plugin's arguments from
pluginConfig. The factory raises a ValueError that names the field of an invalid argument.
`engine.scheduling.compose` builds DefaultPreemption, which needs the framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.default_binder import DefaultBinder
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources, DynamicResourcesArgs
from fairlead.engine.plugins.image_locality import ImageLocality
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs
from fairlead.engine.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from fairlead.engine.plugins.node_declared_features import NodeDeclaredFeatures
from fairlead.engine.plugins.node_name import NodeName
from fairlead.engine.plugins.node_ports import NodePorts
from fairlead.engine.plugins.node_resources.args import BalancedAllocationArgs, FitArgs
from fairlead.engine.plugins.node_resources.balanced_allocation import balanced_allocation
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.plugins.node_unschedulable import NodeUnschedulable
from fairlead.engine.plugins.node_volume_limits.plugin import NodeVolumeLimits
from fairlead.engine.plugins.pod_topology_spread.constraint import PodTopologySpreadArgs
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.plugins.priority_sort import PrioritySort
from fairlead.engine.plugins.scheduling_gates import SchedulingGates
from fairlead.engine.plugins.taint_toleration import TaintToleration
from fairlead.engine.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs
from fairlead.engine.plugins.volume_restrictions import VolumeRestrictions
from fairlead.engine.plugins.volume_zone import VolumeZone

Args = Mapping[str, Any]
Factory = Callable[[Handle, Args], Plugin]


def _simple(plugin: Callable[[], Plugin]) -> Factory:
    return lambda _handle, _args: plugin()


def _node_resources_fit(handle: Handle, args: Args) -> Plugin:
    return NodeResourcesFit(handle, msgspec.convert(dict(args), FitArgs))


def _pod_topology_spread(handle: Handle, args: Args) -> Plugin:
    return PodTopologySpread(handle, msgspec.convert(dict(args), PodTopologySpreadArgs))


def _volume_binding(handle: Handle, args: Args) -> Plugin:
    return VolumeBinding(handle, msgspec.convert(dict(args), VolumeBindingArgs))


def _node_affinity(_handle: Handle, args: Args) -> Plugin:
    return NodeAffinity(msgspec.convert(dict(args), NodeAffinityArgs))


def _balanced_allocation(handle: Handle, args: Args) -> Plugin:
    return balanced_allocation(handle, msgspec.convert(dict(args), BalancedAllocationArgs))


def _dynamic_resources(handle: Handle, args: Args) -> Plugin:
    return DynamicResources(handle, msgspec.convert(dict(args), DynamicResourcesArgs))


def _inter_pod_affinity(handle: Handle, args: Args) -> Plugin:
    return InterPodAffinity(handle, msgspec.convert(dict(args), InterPodAffinityArgs))


def _gang_scheduling(handle: Handle, _args: Args) -> Plugin:
    from fairlead.engine.plugins.gang_scheduling import GangScheduling  # noqa: PLC0415 - rare

    return GangScheduling(handle)


IN_TREE: Final[Mapping[str, Factory]] = {
    "SchedulingGates": _simple(SchedulingGates),
    "PrioritySort": _simple(PrioritySort),
    "NodeUnschedulable": _simple(NodeUnschedulable),
    "NodeName": _simple(NodeName),
    "TaintToleration": _simple(TaintToleration),
    "NodeAffinity": _node_affinity,
    "NodePorts": _simple(NodePorts),
    "NodeResourcesFit": _node_resources_fit,
    "VolumeRestrictions": lambda handle, _a: VolumeRestrictions(handle),
    "NodeVolumeLimits": lambda handle, _a: NodeVolumeLimits(handle),
    "VolumeBinding": _volume_binding,
    "VolumeZone": lambda handle, _a: VolumeZone(handle),
    "PodTopologySpread": _pod_topology_spread,
    "InterPodAffinity": _inter_pod_affinity,
    "DynamicResources": _dynamic_resources,
    "NodeDeclaredFeatures": _simple(NodeDeclaredFeatures),
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "ImageLocality": lambda handle, _a: ImageLocality(handle),
    "DefaultBinder": _simple(DefaultBinder),
}

# Plugins behind feature gates that are off by default.
GATED: Final[Mapping[str, Factory]] = {"GangScheduling": _gang_scheduling}

# The argument type of each plugin that takes arguments.
IN_TREE_ARGS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesFit": FitArgs,
    "VolumeBinding": VolumeBindingArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "DynamicResources": DynamicResourcesArgs,
    "NodeResourcesBalancedAllocation": BalancedAllocationArgs,
}
