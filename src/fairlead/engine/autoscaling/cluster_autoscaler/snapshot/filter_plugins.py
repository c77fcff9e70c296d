"""build_plans: the filters of the scheduler's default profile, for simulations.

upstream: simulator/framework/handle.go: NewHandle. Only PreFilter and Filter are called.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from msgspec import Struct, field

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.framework.trial import Trial
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.plugins.registry import IN_TREE
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

_UNUSED: Final = frozenset(
    {"SchedulingGates", "DefaultPreemption", "NodeResourcesBalancedAllocation", "ImageLocality"}
)
_PLUGINS: Final = tuple((name, 0) for name, _ in DEFAULT_PLUGINS if name not in _UNUSED)


class _SimulationHandle(Struct):
    """The handle through which plugins read the snapshot.

    Implements `engine.framework.runtime.Handle`.
    """

    cluster: Cluster
    nominator: Nominator = field(default_factory=Nominator)
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)

    def trial(self, state: CycleState, pod: PodInfo) -> AbstractContextManager[Trial]:
        """Raise NotImplementedError: no PreFilter or Filter plugin in the profile starts trials."""
        raise NotImplementedError(pod.key)


def build_plans(cluster: Cluster) -> PlanCache:
    """Return a plan cache for `cluster` with the filters of the default profile."""
    handle = _SimulationHandle(cluster)
    profile = Profile(plugins=_PLUGINS)
    plugins = [(IN_TREE[name](handle, {}), 0) for name, _ in _PLUGINS]
    return PlanCache(Framework(profile, plugins, handle))
