"""BatchRules: the conventions of a session, either kube-batch's or those of current Kubernetes.

A configuration file of kube-batch or Volcano uses kube-batch's conventions. kube-batch's
conventions are the predicates and priorities of Kubernetes 1.16, requests summed over containers,
and amounts compared with a tolerance (slack). Fairlead's own configuration uses the conventions of
current Kubernetes. Fairlead's configuration compares amounts exactly, and evicts a gang as a whole
if the eviction of single members would break the gang. kube-batch's *bugs* are in
`engine.batch.defect`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.engine.batch.info.request import (
    KUBE_BATCH_SLACK,
    NO_SLACK,
    RequestRule,
    Slack,
    container_requests,
    effective_requests,
)

PRESSURE_CHECKS: Final = {
    "predicate.MemoryPressureEnable": "CheckNodeMemoryPressure",
    "predicate.DiskPressureEnable": "CheckNodeDiskPressure",
    "predicate.PIDPressureEnable": "CheckNodePIDPressure",
}


class BatchRules(Struct, frozen=True, kw_only=True):
    """The conventions that a session follows where kube-batch and Kubernetes differ."""

    name: str
    requests: RequestRule  # computes a task's requests
    slack: Slack  # the tolerance of comparisons
    filters: tuple[str, ...]  # the scheduler plugins that filter nodes
    # The scheduler plugins that score nodes, each as (plugin, argument of nodeorder for its weight,
    # default weight).
    scorers: tuple[tuple[str, str, int], ...]
    best_score: int  # the scores of `scorers` are between 0 and this
    uncounted: tuple[str, ...] = ()  # the resources that shares do not count
    # Whether nodes whose pods use more than the node offers are excluded.
    leaves_out_overused: bool = False
    # Whether the default queue exists even if no Queue object defines it.
    has_default_queue: bool = False
    # Whether a gang is evicted as a whole when the eviction of single members would break it.
    takes_whole_gangs: bool = False
    # If set, a job's turn continues after a task that fits on no node. Also, preemption within a
    # job is tried for every task that is still pending after preemption between jobs.
    tries_every_task: bool = False
    # Whether the jobs for which pods were evicted come first while these pods stop. Other jobs then
    # do not take the resources.
    keeps_freed_room: bool = False


KUBE_BATCH_RULES: Final = BatchRules(
    name="kube-batch",
    requests=container_requests,
    slack=KUBE_BATCH_SLACK,
    # upstream: plugins/predicates/predicates.go, in its order
    filters=(
        "CheckNodeCondition",
        "NodeUnschedulable",
        "NodeAffinity",
        "NodePorts",
        "TaintToleration",
        "InterPodAffinity",
    ),
    # With upstream's weights (plugins/nodeorder/nodeorder.go).
    scorers=(
        ("LeastRequestedPriority", "leastrequested.weight", 1),
        ("MostRequestedPriority", "mostrequested.weight", 0),
        ("NodeAffinityPriority", "nodeaffinity.weight", 1),
        ("InterPodAffinityPriority", "podaffinity.weight", 1),
        ("BalancedResourceAllocation", "balancedresource.weight", 1),
    ),
    best_score=10,
    uncounted=("ephemeral-storage",),
    leaves_out_overused=True,
)

FAIRLEAD_RULES: Final = BatchRules(
    name="fairlead",
    requests=effective_requests,
    slack=NO_SLACK,
    # In the order of the default profile (framework/profile.py). NodeResourcesFit is not here,
    # because the session checks resources.
    filters=(
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ),
    scorers=(
        ("TaintToleration", "tainttoleration.weight", 3),
        ("NodeAffinity", "nodeaffinity.weight", 2),
        ("NodeResourcesFit", "leastrequested.weight", 1),
        ("PodTopologySpread", "podtopologyspread.weight", 2),
        ("InterPodAffinity", "podaffinity.weight", 2),
        ("NodeResourcesBalancedAllocation", "balancedresource.weight", 1),
        ("ImageLocality", "imagelocality.weight", 1),
    ),
    best_score=100,
    has_default_queue=True,
    takes_whole_gangs=True,
    tries_every_task=True,
    keeps_freed_room=True,
)

RULES: Final = {rules.name: rules for rules in (KUBE_BATCH_RULES, FAIRLEAD_RULES)}
