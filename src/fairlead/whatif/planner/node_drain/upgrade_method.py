"""Notes about nodes of a dump that are upgraded in another way than by a drain of each node.

    nodes of Karpenter                  Karpenter replaces nodes that have drifted
    node groups of EKS, GKE and AKS     the provider adds surge nodes, as its settings say
    nodes of OpenShift                  its machine config operator adds no surge nodes

The labels and annotations of a node show which row applies to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.objects import Node
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT, NODE_POOL
from fairlead.engine.autoscaling.karpenter.pod import is_disruptable
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import AKS_AGENT_POOL, EKS_NODE_GROUP, GKE_NODE_POOL
from fairlead.whatif.snapshot.samples import matching_pods, samples

_NAMED_MAX: Final = 3
_DRIFT: Final = (
    "it replaces nodes that have drifted, for example because their node class selects another "
    "image. The pace depends on the disruption budgets of the NodePools. It does not depend on "
    "--surge, --max-unavailable and --for."
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

# upstream: openshift/machine-config-operator pkg/daemon/constants/constants.go
_MACHINE_CONFIG: Final = "machineconfiguration.openshift.io/currentConfig"
# upstream: openshift/api machineconfiguration/v1/types.go: MachineConfigPoolSpec
_IN_PLACE: Final = (
    "OpenShift upgrades its nodes in place, without surge nodes. Each MachineConfigPool drains as "
    "many nodes at a time as its maxUnavailable allows (default: 1). --surge 0 adds no surge "
    "nodes, and --max-unavailable states how many nodes are drained at a time."
)


def upgrade_method_notes(
    manifests: Iterable[Manifest], names: Iterable[str], now: Instant
) -> tuple[str, ...]:
    """Return notes about how Karpenter, cloud providers and OpenShift upgrade the nodes `names`.

    `manifests` are the objects of the dump, which was taken at `now`.
    """
    wanted = frozenset(names)
    found = [one.node for one in samples(manifests) if one.kind is NODE]
    nodes = [one for one in found if one.metadata.name in wanted]
    own = [one for one in nodes if NODE_POOL in one.metadata.labels]
    others = [one.metadata.labels for one in nodes if NODE_POOL not in one.metadata.labels]
    notes = [_karpenter_note(own, len(others), manifests, now)] if own else []
    in_place = any(_MACHINE_CONFIG in one.metadata.annotations for one in nodes)
    return (*notes, *_provider_notes(others), *([_IN_PLACE] if in_place else []))


def _karpenter_note(
    nodes: Sequence[Node], others: int, manifests: Iterable[Manifest], now: Instant
) -> str:
    """Return the note about Karpenter's `nodes`.

    `others` is the number of nodes to upgrade that are not Karpenter's.
    """
    pool = min(one.metadata.labels[NODE_POOL] for one in nodes)
    parts = [
        f"Karpenter does not drain its {counted(len(nodes), 'node')} for an upgrade as shown here: "
        + _DRIFT,
        *_kept(nodes, manifests, now),
        f"To simulate it: fairlead whatif DUMP {_DRIFTED.format(pool)}",
    ]
    if others:
        parts[-1] += f". --nodes '!{NODE_POOL}' checks only the {counted(others, 'other node')}"
    return f"{' '.join(parts)}."


def _kept(nodes: Sequence[Node], manifests: Iterable[Manifest], now: Instant) -> Iterator[str]:
    """Yield a sentence about the `nodes` that the annotation do-not-disrupt keeps.

    The annotation protects a node, or a pod on it, from replacement. If the NodeClaim has a
    terminationGracePeriod, a pod's annotation does not protect the node. upstream:
    pkg/controllers/state/statenode.go: ValidateNodeDisruptable, ValidatePodsDisruptable
    """
    annotated = {
        one.metadata.name for one in nodes if one.metadata.annotations.get(DO_NOT_DISRUPT) == "true"
    }
    protected = {one.metadata.name for one in nodes} - set(_with_grace_period(samples(manifests)))
    found = matching_pods(manifests, lambda pod: DO_NOT_DISRUPT in pod.metadata.annotations)
    pods = [one.pod for one in found]
    held = [one for one in pods if one.spec.node_name in protected and not is_disruptable(one, now)]
    kept = annotated | {one.spec.node_name for one in held}
    if kept:
        holders = [f"node {name}" for name in sorted(annotated)]
        holders += [f"pod {key}" for key in sorted(one.key for one in held)]
        yield (
            f"Karpenter does not replace {listed(sorted(kept), _NAMED_MAX)}, because of "
            f"{DO_NOT_DISRUPT} on {listed(holders, _NAMED_MAX)}."
        )


def _with_grace_period(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield the names of the nodes whose NodeClaim has a terminationGracePeriod."""
    for one in manifests:
        match one.value if one.kind.kind == "NodeClaim" else {}:
            case {"spec": {"terminationGracePeriod": str()}, "status": {"nodeName": str(name)}}:
                yield name


def _provider_notes(nodes: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a note for each provider of some of the nodes; `nodes` has the labels of each node."""
    for label, (provider, setting, options) in _MANAGED.items():
        groups = sorted({labels[label] for labels in nodes if label in labels})
        if groups:
            kind = "node group" if len(groups) == 1 else "node groups"
            yield (
                f"{provider} upgrades {kind} {listed(groups, _NAMED_MAX)} with surge nodes. The "
                f"dump does not contain {setting}; {options}."
            )
