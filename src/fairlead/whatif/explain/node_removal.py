"""removal_table: obstacles to the removal of a node by autoscalers, and whether they stop a drain.

Cluster Autoscaler and Karpenter respect annotations and rules that `kubectl drain` does not know:

    found on the node or its pods             autoscaler that keeps the node   kubectl drain
    karpenter.sh/do-not-disrupt               Karpenter                        ignores it
    scale-down-disabled, safe-to-evict=false  Cluster Autoscaler               ignores it
    emptyDir or hostPath volumes              Cluster Autoscaler               emptyDir needs a flag
    no controller                             Cluster Autoscaler               needs --force
    minimum size of the node group            Cluster Autoscaler               ignores it

upstream: cluster-autoscaler/simulator/drainability/rules, karpenter pkg/utils/pod/scheduling.go,
kubectl/pkg/drain/filters.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.api.objects import Node, Pod
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT
from fairlead.whatif.change.kubectl_drain import DELETE_EMPTY_DIR, FORCE, needed_flags
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.autoscaler_rule import installed_rules
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause, Blocker
from fairlead.whatif.planner.pool_limit import minimum_of_group
from fairlead.whatif.result.tabular_answer import NAME, ResultColumn, ResultTable
from fairlead.whatif.snapshot.snapshot import Snapshot

_IGNORES: Final = "ignores it"
_FLAG_OF: Final = {
    BlockCause.LOCAL_STORAGE: (DELETE_EMPTY_DIR, "the data is lost"),
    BlockCause.NOT_REPLICATED: (FORCE, "the pod is gone for good"),
}
_COLUMNS: Final = (
    ResultColumn("of", "on", NAME),
    ResultColumn("why", "what"),
    ResultColumn("keeps", "respected by"),
    ResultColumn("drain", "kubectl drain"),
)
_SHOWN_MAX: Final = 5


def removal_table(
    model: ClusterModel, node: Node, pods: Sequence[Pod], snapshot: Snapshot
) -> ResultTable:
    """Return a table of what keeps an autoscaler from removing `node`, which runs `pods`.

    Cluster Autoscaler's rules are applied with the flags that it has in `snapshot`
    (`installed_rules`).
    """
    name = node.metadata.name
    rules = installed_rules(model, snapshot.manifests)
    by_key = {pod.key: pod for pod in pods}
    groups: dict[tuple[str, BlockCause], list[Blocker]] = {}
    blockers = [*rules.node_blockers(node)]
    blockers += (one for pod in pods for one in rules.pod_blockers(name, pod))
    for one in blockers:
        groups.setdefault((one.why, one.cause), []).append(one)
    rows = [
        {
            "of": listed([one.pod or one.owner for one in found], 1),
            "pods": [one.pod for one in found if one.pod],
            "why": why,
            "keeps": _keeper(why, is_of_karpenter=rules.is_of_karpenter(name)),
            "drain": _in_drain(cause, [by_key[one.pod] for one in found if one.pod]),
            "edits": list(dict.fromkeys(one.edit for one in found if one.edit)),
        }
        for (why, cause), found in groups.items()
    ]
    every = (info.node for info in model.table.nodes())
    if (group := minimum_of_group(node, every, snapshot.manifests)) is not None:
        of, low = group
        rows.append(
            {
                "of": f"node group {of}",
                "pods": [],
                "why": f"the minimum size of the group, {counted(low, 'node')}",
                "keeps": "Cluster Autoscaler",
                "drain": _IGNORES,
                "edits": [],
            }
        )
    title = f"what autoscalers check before they remove {name}"
    return ResultTable("removal", title, _COLUMNS, rows, _SHOWN_MAX)


def _keeper(why: str, *, is_of_karpenter: bool) -> str:
    if DO_NOT_DISRUPT in why:
        return "Karpenter" if is_of_karpenter else "Karpenter, but only on its own nodes"
    return "no autoscaler: Karpenter manages the node" if is_of_karpenter else "Cluster Autoscaler"


def _in_drain(cause: BlockCause, pods: Iterable[Pod]) -> str:
    """Return what `kubectl drain` does with `pods`, which have a blocker with this `cause`."""
    if cause in _FLAG_OF:
        flag, effect = _FLAG_OF[cause]
        if any(one.flag == flag for one in needed_flags(pods)):
            return f"needs {flag}; {effect}"
    return _IGNORES
