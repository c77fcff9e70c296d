"""find_nodes_that_fit: finds the nodes that fit a pod, and the reasons for rejecting other nodes.

upstream: pkg/scheduler/schedule_one.go: findNodesThatFitPod
"""

from __future__ import annotations

from fairlead.engine.framework.feasibility import Feasibility, filter_nodes
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.scheduling.nominated_pods import with_nominated_verdicts
from fairlead.engine.state.pod_info import PodInfo


def find_nodes_that_fit(plans: PlanCache, pod: PodInfo) -> Feasibility:
    """Return the verdict on every node for `pod`; nominated pods count as placed."""
    found = filter_nodes(plans, pod)
    if found.rejected is None:
        found.codes = with_nominated_verdicts(plans, pod, found.plan, found.state, found.codes)
        if found.restricting:
            _add_nominated_rejector(plans, pod, found)
    return found


def _add_nominated_rejector(plans: PlanCache, pod: PodInfo, found: Feasibility) -> None:
    """Add to `found.restricting` the plugin that rejects the pod's nominated node.

    Upstream has one set for the plugins whose PreFilter limits the nodes and for the plugin that
    rejects the nominated node. All plugins in this set are named in the message about the nodes
    that PreFilter excluded (schedule_one.go: findNodesThatFitPod, evaluateNominatedNode).
    """
    node = found.plan.table.find(pod.pod.status.nominated_node_name)
    if node is None:
        return
    status = plans.framework.run_filters_with_nominated(found.state, pod, node)
    if status is not None and status.plugin and status.plugin not in found.restricting:
        found.restricting = tuple(sorted((*found.restricting, status.plugin)))
