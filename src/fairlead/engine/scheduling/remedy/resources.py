"""Remedies for insufficient resources: request less, or delete other pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fairlead.api.objects import Container, Pod, ResourceList, ResourceRequirements
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import amount_text, milli_value, whole_value
from fairlead.engine.core.status import Status
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.remedy.change import RemedyChange, deleting
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

replace = msgspec.structs.replace


def lower_requests(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield the change that lowers the pod's requests to the free amounts on the node.

    Yields nothing if the node is too small even when it is empty, because the pod is then meant for
    larger nodes. Also yields nothing if the free amount of one of the insufficient resources is 0.
    """
    if capacity_problem(framework, pod, node):
        return
    short = _shortages(framework, pod, node)
    if short and all(free > 0 for _, _, free in short):
        lower = pod.pod
        for name, _, free in short:
            lower = with_request(lower, name, free)
        each = (
            f"the {name} request from {amount_text(name, amount - _overhead(pod.pod, name))} to "
            f"{amount_text(name, free - _overhead(pod.pod, name))}"
            for name, amount, free in short
        )
        is_drastic = any(2 * free < amount for _, amount, free in short)
        yield RemedyChange(f"lower {' and '.join(each)}", pod=lower, is_drastic=is_drastic)


def free_resources(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield changes that each delete one pod on the node, then changes that delete several pods.

    Terminating pods are chosen first, then the least important pods. Yields nothing if the node is
    too small even when it is empty.
    """
    if capacity_problem(framework, pod, node):
        return
    pods = sorted(node.pods.values(), key=importance, reverse=True)
    pods.sort(key=lambda one: not one.terminating)
    for other in pods:
        yield deleting([other])
    for count in range(2, len(pods) + 1):
        yield deleting(pods[:count])


def capacity_problem(framework: Framework, pod: PodInfo, node: NodeInfo) -> str:
    """Return why `pod` would not fit `node` even if the node had no pods; "" if it would fit.

    Only resources are considered. Example: `the node is too small (4 cpu)`.
    """
    names = framework.cluster.table.resources.names
    offered = {
        names[column]: node.allocatable_of(column)
        for column, amount in pod.shape.wanted
        if amount > node.allocatable_of(column)
        and not is_provided_by_devices(framework.cluster, node, column)
    }
    missing = [name for name, amount in offered.items() if not amount]
    if missing:
        return f"the node has no {' and no '.join(missing)}"
    return f"the node is too small ({amounts_text(offered)})" if offered else ""


def is_provided_by_devices(cluster: Cluster, node: NodeInfo, column: int) -> bool:
    """Return whether `node` provides the resource in `column` only as devices of a DeviceClass."""
    name = cluster.table.resources.names[column]
    return cluster.devices.extended.is_delegated(name, node.allocatable_of(column))


def amounts_text(amounts: Mapping[str, int]) -> str:
    """Return amounts by resource as text, such as `4 cpu and 16Gi memory`."""
    return " and ".join(f"{amount_text(name, amount)} {name}" for name, amount in amounts.items())


def _shortages(framework: Framework, pod: PodInfo, node: NodeInfo) -> list[tuple[str, int, int]]:
    """Return (resource, requested amount, free amount) of each insufficient resource."""
    names = framework.cluster.table.resources.names
    free = {c: node.free_of(c) for c, _ in pod.shape.wanted}
    return [
        (names[column], amount, free[column])
        for column, amount in pod.shape.wanted
        if amount > free[column] and not is_provided_by_devices(framework.cluster, node, column)
    ]


def with_request(pod: Pod, name: str, target: int) -> Pod:
    """Return a copy of `pod` that requests at most `target` of the resource `name` in total.

    `target` is in millicores for cpu, and in whole units for all other resources. The total
    includes the pod's overhead, which does not change.
    """
    spec, own = pod.spec, max(target - _overhead(pod, name), 0)
    if spec.resources is not None and name in spec.resources.requests:
        return replace(pod, spec=replace(spec, resources=_with_amount(spec.resources, name, own)))
    init = tuple(_capped(c, name, own) for c in spec.init_containers)
    lowered = replace(spec, init_containers=init)
    excess = pod_requests(replace(pod, spec=lowered)).get(name, 0) - target
    containers = list(spec.containers)
    order = sorted(range(len(containers)), key=lambda i: -_requested(containers[i], name))
    for i in order:
        give = min(max(excess, 0), _requested(containers[i], name))
        containers[i] = _capped(containers[i], name, _requested(containers[i], name) - give)
        excess -= give
    return replace(pod, spec=replace(lowered, containers=tuple(containers)))


def _requested(container: Container, name: str) -> int:
    return _amount(container.resources.requests, name)


def _overhead(pod: Pod, name: str) -> int:
    """Return the amount that the pod's RuntimeClass adds to the request; it cannot be lowered."""
    return _amount(pod.spec.overhead, name)


def _amount(amounts: ResourceList, name: str) -> int:
    text = amounts.get(name, 0)
    return milli_value(text) if name == "cpu" else whole_value(text)


def _capped(container: Container, name: str, most: int) -> Container:
    if _requested(container, name) <= most:
        return container
    return replace(container, resources=_with_amount(container.resources, name, most))


def _with_amount(resources: ResourceRequirements, name: str, amount: int) -> ResourceRequirements:
    text = f"{amount}m" if name == "cpu" else str(amount)
    return replace(resources, requests={**resources.requests, name: text})
