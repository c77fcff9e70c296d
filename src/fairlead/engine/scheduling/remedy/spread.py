"""Remedies for topology spread: change the constraint or the labels of the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from fairlead.api.objects import LabelSelector, Pod, TopologySpreadConstraint
from fairlead.engine.core.status import Status
from fairlead.engine.framework.extension_point import original_of
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from fairlead.engine.scheduling.remedy.affinity import labelled
from fairlead.engine.scheduling.remedy.change import RemedyChange
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

replace = msgspec.structs.replace
_DO_NOT_SCHEDULE: Final = "DoNotSchedule"
_MORE_SKEW_MAX: Final = 8
_FEWER_DOMAINS_MAX: Final = 8


def propose_for_spread(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield changes for each DoNotSchedule constraint, then a change that drops all constraints.

    A change for one constraint labels the node, lowers minDomains, raises maxSkew or stops
    enforcing the constraint. The change of minDomains comes before the change of maxSkew, because a
    lower minDomains keeps the pods as evenly spread as before.

    The default constraints of the profile apply only to pods without constraints. For such a pod,
    the changes label the node or give the pod its own constraint.
    """
    if not pod.pod.spec.topology_spread_constraints:
        yield from _replace_defaults(framework, pod.pod, node)
        return
    for i, constraint in enumerate(pod.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != _DO_NOT_SCHEDULE:
            continue
        key = constraint.topology_key
        if key not in node.labels:
            yield from _label(framework, node, key)
            continue
        for fewer in _fewer_domains(framework, constraint):
            what = f"lower minDomains on {key} from {constraint.min_domains} to {fewer}"
            yield RemedyChange(what, pod=_with(pod.pod, i, replace(constraint, min_domains=fewer)))
        for more in range(1, _MORE_SKEW_MAX + 1):
            skew = constraint.max_skew + more
            what = f"raise maxSkew on {key} from {constraint.max_skew} to {skew}"
            yield RemedyChange(what, pod=_with(pod.pod, i, replace(constraint, max_skew=skew)))
        what = f"set whenUnsatisfiable to ScheduleAnyway for {key}"
        soft = replace(constraint, when_unsatisfiable="ScheduleAnyway", min_domains=None)
        yield RemedyChange(what, pod=_with(pod.pod, i, soft))
    spec = replace(pod.pod.spec, topology_spread_constraints=())
    yield RemedyChange("drop the pod's spread constraints", pod=replace(pod.pod, spec=spec))


def _fewer_domains(framework: Framework, constraint: TopologySpreadConstraint) -> Iterable[int]:
    """Return values below the current minDomains, highest first, at most _FEWER_DOMAINS_MAX.

    Values above the number of domains in the cluster are left out, because they have the same
    effect as the current value. More than one value is returned, because some domains may not count
    for the pod, for example because of its node affinity.
    """
    present = constraint.min_domains or 1
    if present == 1:
        return ()
    nodes = framework.cluster.table.nodes()
    domains = {one.labels.get(constraint.topology_key) for one in nodes} - {None}
    most = min(present - 1, len(domains))
    return range(most, max(0, most - _FEWER_DOMAINS_MAX), -1)


def _label(framework: Framework, node: NodeInfo, key: str) -> Iterator[RemedyChange]:
    nodes = framework.cluster.table.nodes()
    for value in sorted({one.labels[key] for one in nodes if key in one.labels}):
        what = f"label node {node.name} {key}={value}"
        yield RemedyChange(what, node=labelled(node.node, key, value))


def _replace_defaults(framework: Framework, pod: Pod, node: NodeInfo) -> Iterator[RemedyChange]:
    plugin = original_of(framework.find("PodTopologySpread"))
    keys = plugin.enforced_default_keys if isinstance(plugin, PodTopologySpread) else ()
    for key in keys:
        if key not in node.labels:
            yield from _label(framework, node, key)
    for key in keys[:1]:
        own = TopologySpreadConstraint(
            max_skew=1,
            topology_key=key,
            when_unsatisfiable="ScheduleAnyway",
            label_selector=LabelSelector(match_labels=pod.metadata.labels),
        )
        what = f"give the pod its own spread constraint on {key} with ScheduleAnyway"
        spec = replace(pod.spec, topology_spread_constraints=(own,))
        yield RemedyChange(what, pod=replace(pod, spec=spec))


def _with(pod: Pod, i: int, constraint: TopologySpreadConstraint) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[i] = constraint
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(constraints)))
