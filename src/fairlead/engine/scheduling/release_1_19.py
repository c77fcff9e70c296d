"""V1_19: the rules of kube-scheduler 1.19 that differ from 1.36."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.plugins.release_1_19.registry import RELEASE_1_19
from fairlead.engine.scheduling.preemption.policy import (
    LOWEST_HIGHEST_PRIORITY,
    RULES,
    PreemptionPolicy,
)
from fairlead.engine.scheduling.preemption.synchronous_execution import SynchronousExecution
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.scheduling.queue.move_request_queue import MoveRequestQueue
from fairlead.engine.scheduling.version import SchedulerVersion
from fairlead.engine.state.pod_info import PodInfo

# upstream: v1.19 algorithmprovider/registry.go: getDefaultConfig. The order is that of Filter.
_PLUGINS_1_19: Final = (
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeResourcesFit", 1),
    ("NodeName", 0),
    ("NodePorts", 0),
    ("NodeAffinity", 1),
    ("VolumeRestrictions", 0),
    ("TaintToleration", 1),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 1),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("NodePreferAvoidPods", 10_000),
    ("SelectorSpread", 1),
    ("DefaultBinder", 0),
)


def _any_pod(_pod: PodInfo) -> bool:
    return True


def _first_is_highest(rule: CandidateRule) -> CandidateRule:
    """Return `rule` as it is in 1.19.

    Only LOWEST_HIGHEST_PRIORITY differs: in 1.19, the rule assumes that the first victim has the
    highest priority. The assumption may be wrong, because in 1.19 the victims whose eviction
    violates a budget come first, and a later victim may have a higher priority.

    upstream: v1.19 defaultpreemption/default_preemption.go: pickOneNodeForPreemption
    """
    if rule is not LOWEST_HIGHEST_PRIORITY:
        return rule
    return replace(rule, cost=lambda candidate: candidate.victims[0].priority)


V1_19: Final = SchedulerVersion(
    version="1.19",
    plugins=_PLUGINS_1_19,
    args={"PodTopologySpread": {"defaultingType": "List"}},
    factories=RELEASE_1_19,
    backoff=BackoffConfig(
        max_in_unschedulable=seconds(60), pop_from_backoff=False, ends_at_expiry=True
    ),
    queue=MoveRequestQueue,
    preemption=PreemptionPolicy(
        rules=tuple(map(_first_is_highest, RULES)),
        waits_for=_any_pod,
        keeps_nomination=True,
        groups_violating=True,
    ),
    new_execution=SynchronousExecution,
    names_preemption=False,
    observes_generation=False,
)
