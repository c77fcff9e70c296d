"""proposals: for each rejecting plugin, the changes to try, smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from fairlead.api.objects import Node, NodeSpec, Pod, PodSpec, Taint, Toleration
from fairlead.api.pods.host_port import ports_conflict
from fairlead.api.taint import NO_SCHEDULE, find_untolerated
from fairlead.engine.core.status import Status
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.remedy.affinity import (
    propose_for_node_affinity,
    propose_for_pod_affinity,
)
from fairlead.engine.scheduling.remedy.change import RemedyChange, deleting
from fairlead.engine.scheduling.remedy.resources import propose_for_resources
from fairlead.engine.scheduling.remedy.spread import propose_for_spread
from fairlead.engine.scheduling.remedy.volumes import (
    propose_for_exclusive_volumes,
    propose_for_volume_limits,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

Propose = Callable[[Framework, PodInfo, NodeInfo, Status], Iterator[RemedyChange]]

_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_REJECTING_EFFECTS: Final = ("NoSchedule", "NoExecute")
replace = msgspec.structs.replace


def proposals(
    framework: Framework, pod: PodInfo, node: NodeInfo, status: Status
) -> Iterator[RemedyChange]:
    """Yield the changes that may remove the rejection `status`.

    Yields nothing if no function in `_BY_PLUGIN` proposes changes for the plugin that rejects.
    """
    # The status of a node excluded by name has no plugin; only NodeAffinity excludes by name.
    propose = _BY_PLUGIN.get(status.plugin or "NodeAffinity")
    if propose is not None:
        yield from propose(framework, pod, node, status)


def _uncordon(
    _framework: Framework, _pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    # When a node is uncordoned, the node lifecycle controller removes the taint of the cordon
    # (node_lifecycle_controller.go: doNoScheduleTaintingPass).
    taints = tuple(one for one in node.node.spec.taints if not _is_of_cordon(one))
    spec = replace(node.node.spec, unschedulable=False, taints=taints)
    yield RemedyChange(f"uncordon node {node.name}", node=with_spec(node.node, spec))


def _tolerate(
    _framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    spec = pod.pod.spec
    taint = find_untolerated(node.node.spec.taints, spec.tolerations, _REJECTING_EFFECTS)
    if taint is None:
        return
    one = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    yield RemedyChange(f"tolerate taint {_written(taint)}", pod=tolerating(pod.pod, one))
    everything = Toleration(operator="Exists")
    yield RemedyChange("tolerate every taint", pod=tolerating(pod.pod, everything))


def _free_port(
    _framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    wanted = pod.shape.host_ports
    taking: list[PodInfo] = []
    taken: dict[str, None] = {}
    for other in sorted(node.pods.values(), key=importance, reverse=True):
        used = [b for b in other.shape.host_ports if any(ports_conflict(a, b) for a in wanted)]
        if used:
            taking.append(other)
            taken |= {f"{protocol} {port}": None for _, protocol, port in used}
    if taking:
        yield deleting(taking, f" (host port {', '.join(taken)})")


_BY_PLUGIN: Final[Mapping[str, Propose]] = {
    "NodeUnschedulable": _uncordon,
    "TaintToleration": _tolerate,
    "NodeAffinity": propose_for_node_affinity,
    "NodePorts": _free_port,
    "NodeResourcesFit": propose_for_resources,
    "PodTopologySpread": propose_for_spread,
    "InterPodAffinity": propose_for_pod_affinity,
    "VolumeRestrictions": propose_for_exclusive_volumes,
    "NodeVolumeLimits": propose_for_volume_limits,
}


def with_spec(node: Node, spec: NodeSpec) -> Node:
    """Return `node` with its spec replaced by `spec`."""
    return replace(node, spec=spec)


def tolerating(pod: Pod, toleration: Toleration) -> Pod:
    """Return `pod` with `toleration` added."""
    spec: PodSpec = replace(pod.spec, tolerations=(*pod.spec.tolerations, toleration))
    return replace(pod, spec=spec)


def _is_of_cordon(taint: Taint) -> bool:
    return taint.key == _UNSCHEDULABLE and taint.effect == NO_SCHEDULE


def _written(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
