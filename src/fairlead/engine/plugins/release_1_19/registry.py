"""RELEASE_1_19: the factories of plugins that only 1.19 profiles use.

The CheckNode… plugins come from 1.16; they are used if the feature gate TaintNodesByCondition is
off.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.node_affinity import NodeAffinityArgs
from fairlead.engine.plugins.node_resources.args import FitArgs
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.plugins.registry import Args, Factory


def _taint_toleration(_handle: Handle, _args: Args) -> Plugin:
    from fairlead.engine.plugins.release_1_19.reasons import NamedTaintToleration

    return NamedTaintToleration()


def _node_affinity(_handle: Handle, args: Args) -> Plugin:
    from fairlead.engine.plugins.release_1_19.reasons import SelectorNodeAffinity

    return SelectorNodeAffinity(msgspec.convert(dict(args), NodeAffinityArgs))


def _node_resources_fit(handle: Handle, args: Args) -> Plugin:
    fit_args = msgspec.convert(dict(args), FitArgs)
    return NodeResourcesFit(handle, fit_args, checks_empty_node=False)


def _balanced_allocation(_handle: Handle, _args: Args) -> Plugin:
    from fairlead.engine.plugins.release_1_19.balanced_allocation import BalancedFractions

    return BalancedFractions()


def _node_prefer_avoid_pods(_handle: Handle, _args: Args) -> Plugin:
    from fairlead.engine.plugins.release_1_19.node_prefer_avoid_pods import NodePreferAvoidPods

    return NodePreferAvoidPods()


def _selector_spread(handle: Handle, _args: Args) -> Plugin:
    from fairlead.engine.plugins.release_1_19.selector_spread import SelectorSpread

    return SelectorSpread(handle)


def _check_node_condition(_handle: Handle, _args: Args) -> Plugin:
    from fairlead.engine.plugins.release_1_16.node_condition import CheckNodeCondition

    return CheckNodeCondition()


def _check_node_pressure(
    condition: str, _handle: Handle, _args: Args, *, only_best_effort: bool = False
) -> Plugin:
    from fairlead.engine.plugins.release_1_16.node_condition import CheckNodePressure

    return CheckNodePressure(condition, only_best_effort=only_best_effort)


RELEASE_1_19: Final[Mapping[str, Factory]] = {
    "TaintToleration": _taint_toleration,
    "NodeAffinity": _node_affinity,
    "NodeResourcesFit": _node_resources_fit,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodePreferAvoidPods": _node_prefer_avoid_pods,
    "SelectorSpread": _selector_spread,
    "CheckNodeCondition": _check_node_condition,
    "CheckNodeMemoryPressure": partial(
        _check_node_pressure, "MemoryPressure", only_best_effort=True
    ),
    "CheckNodeDiskPressure": partial(_check_node_pressure, "DiskPressure"),
    "CheckNodePIDPressure": partial(_check_node_pressure, "PIDPressure"),
}
