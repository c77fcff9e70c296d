"""SchedulerVersion: the scheduler rules that differ between Kubernetes versions, as data.

1.36 is the default. 1.19 is included because most explanations of preemption describe it. Code
reads the fields of `SchedulerVersion` and never compares version numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.status import Status
from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.profile import DEFAULT_PLUGINS
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.plugins.release_1_19.registry import RELEASE_1_19
from fairlead.engine.scheduling.preemption.execution import new_execution
from fairlead.engine.scheduling.preemption.policy import (
    LOWEST_HIGHEST_PRIORITY,
    RULES,
    PreemptionPolicy,
)
from fairlead.engine.scheduling.preemption.preemptions import NewExecution
from fairlead.engine.scheduling.preemption.synchronous_execution import SynchronousExecution
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.scheduling.queue.move_request_queue import MoveRequestQueue
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.pod_info import PodInfo

NewQueue = Callable[
    [Mapping[str, Framework], BackoffConfig, Instant, Callable[[PodInfo], Status | None]],
    SchedulingQueue,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerVersion:
    """The behaviour of kube-scheduler in one Kubernetes version.

    - `plugins` and `args`: the default profile
    - `factories`: plugins that replace Fairlead's own plugins or are added to them
    - `backoff`: the default queue settings
    - `queue`: builds the scheduling queue
    - `preemption`: the rules that choose victims
    - `new_execution`: builds the execution of a preemption
    - `names_preemption`: failure messages include the reasons of PostFilter plugins
    - `device_taint_rules`: DeviceTaintRules have an effect
    - `pod_groups`: the pods of a PodGroup of scheduling.k8s.io are scheduled as a group (gate
      GenericWorkload)
    """

    version: str
    plugins: tuple[tuple[str, int], ...] = DEFAULT_PLUGINS
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    factories: Mapping[str, Factory] = field(default_factory=dict)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
    queue: NewQueue = SchedulingQueue
    preemption: PreemptionPolicy = field(default_factory=PreemptionPolicy)
    new_execution: NewExecution = new_execution
    names_preemption: bool = True
    device_taint_rules: bool = False
    pod_groups: bool = False


V1_36: Final = SchedulerVersion(version="1.36")

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
    """Return the cost rule of 1.19, which uses the first victim's priority as the highest.

    In 1.19, victims whose eviction violates a budget come first, so that priority may not be the
    highest.

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
)

VERSIONS: Final = (V1_19, V1_36)
