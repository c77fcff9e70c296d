"""Notes about how the nodes of a dump are upgraded, if it differs from a drain of each node.

    nodes of Karpenter                  Karpenter replaces them when they have drifted
    node groups of EKS, GKE and AKS     the provider adds surge nodes, as its settings say

The labels of a node show to which row it belongs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.workloads.drain.protected_pod import protects_from_karpenter
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import AKS_AGENT_POOL, EKS_NODE_GROUP, GKE_NODE_POOL
from fairlead.whatif.snapshot.samples import matching_pods, samples

_NODE_POOL: Final = "karpenter.sh/nodepool"
_NAMED_MAX: Final = 3
_DRIFT: Final = (
    "it replaces nodes that have drifted, for example because their node class selects another "
    "image. The disruption budgets of the NodePools limit the pace, not --surge, --max-unavailable "
    "and --for."
)
_DRIFTED: Final = (
    "--autoscale karpenter --set nodepool/{}:spec.template.metadata.labels.upgrade=now, with "
    "a --set for each NodePool"
)
# The provider, its setting of the pace, and the options that state the setting, by node label.
_MANAGED: Final[Mapping[str, tuple[str, str, str]]] = {
    EKS_NODE_GROUP: ("EKS", "the setting maxUnavailable", "--max-unavailable states it"),
    GKE_NODE_POOL: (
        "GKE",
        "the settings maxSurge and maxUnavailable",
        "--surge and --max-unavailable state them",
    ),
    AKS_AGENT_POOL: ("AKS", "the setting max surge", "--surge states it"),
}


def upgrade_method_notes(manifests: Iterable[Manifest], names: Collection[str]) -> tuple[str, ...]:
    """Return notes about how Karpenter and cloud providers upgrade the nodes `names`.

    `manifests` are the objects of the dump.
    """
    nodes = [one.node for one in samples(manifests) if one.kind is NODE]
    labels = {one.metadata.name: one.metadata.labels for one in nodes if one.metadata.name in names}
    own = {name: found[_NODE_POOL] for name, found in labels.items() if _NODE_POOL in found}
    others = [found for name, found in labels.items() if name not in own]
    notes = [_karpenter_note(own, len(others), manifests)] if own else []
    return (*notes, *_provider_notes(others))


def _karpenter_note(pools: Mapping[str, str], others: int, manifests: Iterable[Manifest]) -> str:
    """Return the note about Karpenter's nodes. `pools` maps each to its NodePool.

    `others` is the number of nodes to upgrade that are not Karpenter's.
    """
    parts = [
        f"Karpenter does not drain its {counted(len(pools), 'node')} for an upgrade as shown here: "
        + _DRIFT,
        *_kept(pools, manifests),
        f"To simulate it: fairlead whatif DUMP {_DRIFTED.format(min(pools.values()))}",
    ]
    if others:
        parts[-1] += f". --nodes '!{_NODE_POOL}' checks only the {counted(others, 'other node')}"
    return f"{' '.join(parts)}."


def _kept(nodes: Collection[str], manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a sentence about those of `nodes` that Karpenter does not replace because of pods.

    A terminationGracePeriod of the NodeClaim ends the protection by the pods' annotation.
    upstream: pkg/controllers/state/statenode.go: ValidatePodsDisruptable
    """
    ended = set(_with_grace_period(samples(manifests)))
    pods = [one.pod for one in matching_pods(manifests, protects_from_karpenter)]
    held = [one for one in pods if one.spec.node_name in nodes]
    held = [one for one in held if one.spec.node_name not in ended]
    if held:
        where = listed(sorted({one.spec.node_name for one in held}), _NAMED_MAX)
        why = listed(sorted(one.key for one in held), _NAMED_MAX)
        yield f"It does not replace {where}, because of karpenter.sh/do-not-disrupt on pod {why}."


def _with_grace_period(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield the names of the nodes whose NodeClaim has a terminationGracePeriod."""
    for one in manifests:
        match one.value if one.kind.kind == "NodeClaim" else {}:
            case {"spec": {"terminationGracePeriod": str()}, "status": {"nodeName": str(name)}}:
                yield name


def _provider_notes(nodes: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a note for each provider whose node groups have some of the nodes with these labels."""
    for label, (provider, setting, options) in _MANAGED.items():
        groups = sorted({labels[label] for labels in nodes if label in labels})
        if groups:
            kind = "node group" if len(groups) == 1 else "node groups"
            yield (
                f"{provider} upgrades {kind} {listed(groups, _NAMED_MAX)} with surge nodes. The "
                f"dump does not contain {setting}; {options}."
            )
