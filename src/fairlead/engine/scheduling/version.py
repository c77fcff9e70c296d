"""SchedulerVersion: the scheduler rules that differ between Kubernetes versions, as data.

1.36 is the default. 1.19 (`release_1_19`) is included because most explanations of preemption are
about 1.19. Code reads the fields of `SchedulerVersion` and never compares version numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status
from fairlead.engine.framework.profile import DEFAULT_PLUGINS
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.scheduling.preemption.execution import new_execution
from fairlead.engine.scheduling.preemption.policy import (
    PreemptionPolicy,
)
from fairlead.engine.scheduling.preemption.preemptions import NewExecution
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.pod_info import PodInfo

NewQueue = Callable[
    [Mapping[str, Framework], BackoffConfig, Instant, Callable[[PodInfo], Status | None]],
    SchedulingQueue,
]


class SchedulerVersion(Struct, frozen=True, kw_only=True):
    """The behaviour of kube-scheduler in one Kubernetes version.

    The fields `plugins` and `args` are the default profile.
    """

    version: str
    plugins: tuple[tuple[str, int], ...] = DEFAULT_PLUGINS
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Plugins that replace Fairlead's own plugins or are added to them.
    factories: Mapping[str, Factory] = field(default_factory=dict)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)  # the default queue settings
    queue: NewQueue = SchedulingQueue
    preemption: PreemptionPolicy = field(default_factory=PreemptionPolicy)
    new_execution: NewExecution = new_execution
    names_preemption: bool = True  # failure messages include the reasons of PostFilter plugins
    observes_generation: bool = True  # the condition PodScheduled has observedGeneration
    device_taint_rules: bool = False  # DeviceTaintRules have an effect
    # The pods of a PodGroup of scheduling.k8s.io are scheduled as a group (gate GenericWorkload).
    pod_groups: bool = False


V1_36: Final = SchedulerVersion(version="1.36")
