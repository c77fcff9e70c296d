"""Whether a scheduler configuration has rules that are not in the objects of the cluster.

The pods of a dump may have been placed before such a rule applied. So a copy of the node on which a
pod ran might reject this pod. The spec of a workload does not show which zones admit its pods,
either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.next_steps.spread_rule import is_hard

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def has_own_rules(config: SchedulerConfig) -> bool:
    """Return whether `config` may keep pods off nodes that the default configuration allows.

    The result is True if `config` has extenders, users' plugins, a required `addedAffinity` of
    NodeAffinity, or hard `defaultConstraints` of PodTopologySpread.
    """
    if config.extenders or config.out_of_tree:
        return True
    return any(map(_restricts_nodes, (profile.args for profile in config.profiles)))


def _restricts_nodes(args: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether arguments of NodeAffinity or PodTopologySpread exclude nodes."""
    affinity = args.get("NodeAffinity", {}).get("addedAffinity") or {}
    spread = args.get("PodTopologySpread", {}).get("defaultConstraints") or ()
    return affinity.get(_REQUIRED) is not None or any(map(is_hard, spread))
