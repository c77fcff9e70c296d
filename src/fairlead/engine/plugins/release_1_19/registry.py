"""RELEASE_1_19: the plugins that replace or extend the in-tree ones in a 1.19 profile.

The CheckNode… plugins come from 1.16; the feature gate TaintNodesByCondition needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlead.engine.plugins.node_affinity import NodeAffinityArgs
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.plugins.release_1_16.node_condition import (
    CheckNodeCondition,
    CheckNodePressure,
)
from fairlead.engine.plugins.release_1_19.balanced_allocation import BalancedFractions
from fairlead.engine.plugins.release_1_19.node_prefer_avoid_pods import NodePreferAvoidPods
from fairlead.engine.plugins.release_1_19.reasons import NamedTaintToleration, SelectorNodeAffinity
from fairlead.engine.plugins.release_1_19.selector_spread import SelectorSpread

RELEASE_1_19: Final[Mapping[str, Factory]] = {
    "TaintToleration": lambda _h, _a: NamedTaintToleration(),
    "NodeAffinity": lambda _h, args: SelectorNodeAffinity(
        msgspec.convert(dict(args), NodeAffinityArgs)
    ),
    "NodeResourcesBalancedAllocation": lambda _h, _a: BalancedFractions(),
    "NodePreferAvoidPods": lambda _h, _a: NodePreferAvoidPods(),
    "SelectorSpread": lambda handle, _a: SelectorSpread(handle),
    "CheckNodeCondition": lambda _h, _a: CheckNodeCondition(),
    "CheckNodeMemoryPressure": lambda _h, _a: CheckNodePressure(
        "MemoryPressure", only_best_effort=True
    ),
    "CheckNodeDiskPressure": lambda _h, _a: CheckNodePressure("DiskPressure"),
    "CheckNodePIDPressure": lambda _h, _a: CheckNodePressure("PIDPressure"),
}
