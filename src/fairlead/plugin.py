"""The stable public interface for scheduler plugins; plugins import only from this module.

docs/plugins.md is the guide and lists every name. A plugin is a class:

    from fairlead import plugin

    class SpotLast:
        name = "SpotLast"
        locality = plugin.Locality.NODE

        def score(self, state, pod, node):
            return 0 if node.labels.get("pool") == "spot" else 100
"""

from __future__ import annotations

from fairlead.engine.core.command import (
    Bind,
    Condition,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.cluster_event import (
    ClusterEvent,
    EventKind,
    EventListener,
    QueueingHint,
)
from fairlead.engine.framework.cycle_state import Cloneable, CycleState
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.interface import (
    SCORE_MAX,
    BindPlugin,
    ColumnFilterPlugin,
    ColumnScorePlugin,
    FilterPlugin,
    Locality,
    Normalization,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    Preparation,
    Preparer,
    PreScorePlugin,
    QueueSortPlugin,
    Releaser,
    ReservePlugin,
    Rows,
    ScoreEpoch,
    ScoreNormalizer,
    ScorePlugin,
    ScoreRelevance,
    Scores,
    ShapeRelevance,
    Verdicts,
)
from fairlead.engine.framework.preemption.disruption_budget import split_by_budget
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.preemption.policy import (
    CandidateRanking,
    VictimEligibility,
    VictimImportance,
)
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.framework.trial import Trial
from fairlead.engine.framework.waiting_pods import Wait, WaitingPod, WaitingPods
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

__all__ = [
    "SCORE_MAX",
    "SKIP",
    "SUCCESS",
    "Bind",
    "BindPlugin",
    "Candidate",
    "CandidateRanking",
    "CandidateRule",
    "Cloneable",
    "Cluster",
    "ClusterEvent",
    "Code",
    "ColumnFilterPlugin",
    "ColumnScorePlugin",
    "Condition",
    "CreateObject",
    "CycleState",
    "DeleteObject",
    "Diagnosis",
    "DurationNs",
    "EventKind",
    "EventListener",
    "FilterPlugin",
    "Handle",
    "Instant",
    "Locality",
    "NodeInfo",
    "NodeTable",
    "Nominator",
    "Normalization",
    "ObjectRef",
    "PatchObject",
    "PatchStatus",
    "PermitPlugin",
    "Plugin",
    "PluginFault",
    "PodInfo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "Preparation",
    "Preparer",
    "QueueSortPlugin",
    "QueueingHint",
    "RecordEvent",
    "Releaser",
    "ReservePlugin",
    "Rows",
    "ScoreEpoch",
    "ScoreNormalizer",
    "ScorePlugin",
    "ScoreRelevance",
    "Scores",
    "Shape",
    "ShapeRelevance",
    "Status",
    "Trial",
    "Verdicts",
    "VictimEligibility",
    "VictimImportance",
    "Wait",
    "WaitingPod",
    "WaitingPods",
    "error",
    "seconds",
    "split_by_budget",
    "unresolvable",
    "unschedulable",
]
