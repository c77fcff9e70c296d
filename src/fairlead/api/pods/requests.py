"""The effective resource requests of a pod, as the scheduler counts them.

    containers run together with all sidecars       -> the sum of their requests
    before that, init containers run one by one     -> for each init container: its requests plus
                                                       those of the sidecars started earlier
    per resource, the pod needs the largest of these amounts;
    pod-level requests replace the amounts of cpu, memory and hugepages; overhead is added.

In stored objects, a missing request has already been replaced by the limit. A pod that is being
resized in place counts with the largest of its desired, allocated and actual resources. Sums are
exact, in whole nanos, and are rounded up once at the end: cpu to millicores, other resources to
whole units.

upstream: component-helpers/resource/helpers.go:PodRequests
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.objects import Container, Pod, ResourceList
from fairlead.api.pods.facts import condition, is_sidecar
from fairlead.api.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, parse_quantity, round_up

CPU: Final = "cpu"
MEMORY: Final = "memory"
HUGEPAGES_PREFIX: Final = "hugepages-"
RESIZE_PENDING: Final = "PodResizePending"  # the condition of a pod whose resize was not allocated

# upstream: pkg/scheduler/util/pod_resources.go:DefaultMilliCPURequest, DefaultMemoryRequest
DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024

Nanos = dict[str, int]
"""Exact amounts per resource, in nanos."""

_DEFAULTS: Final[Nanos] = {
    CPU: DEFAULT_MILLI_CPU * NANOS_PER_MILLI,
    MEMORY: DEFAULT_MEMORY_BYTES * NANOS_PER_UNIT,
}
_NO_DEFAULTS: Final[Nanos] = {}


def pod_requests(pod: Pod, *, existing: bool = False) -> dict[str, int]:
    """Return the pod's effective requests: cpu in millicores, other resources in whole units.

    Amounts are rounded up. If `existing` is True (for bound pods), the status of an in-place resize
    is taken into account. A request of 0 is included.
    """
    return _rounded(_effective(pod, _NO_DEFAULTS, existing=existing, pod_level=True))


def pod_nonzero_requests(pod: Pod, *, existing: bool) -> tuple[int, int]:
    """Return the pod's requests for the scoring of nodes, as (millicores, bytes of memory).

    If a container has no cpu request, 100m are counted for it. If it has no memory request, 200 MiB
    are counted. A request of 0 stays 0. `existing` is True for a bound pod. Pod-level requests and
    the status of an in-place resize are used only if `existing` is True.
    """
    # For an existing pod with pod-level requests, defaults apply only to resources that the pod
    # level omits (framework/types.go:getNonMissingContainerRequests). For the pod being scheduled,
    # pod-level requests are ignored: NodeResourcesFit's scorer is built without them
    # (plugins/noderesources/resource_allocation.go:calculatePodResourceRequest).
    defaults = _DEFAULTS
    if existing and _pod_level_requests(pod):
        present = _effective(pod, _NO_DEFAULTS, existing=True, pod_level=True)
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in present}
    requests = _rounded(_effective(pod, defaults, existing=existing, pod_level=existing))
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _effective(pod: Pod, defaults: Nanos, *, existing: bool, pod_level: bool) -> Nanos:
    requests_of = _resized_requests(pod) if existing else _spec_requests
    requests = _of_containers(pod, requests_of, defaults)
    if pod_level:
        requests |= _resized_pod_level(pod) if existing else _pod_level_requests(pod)
    _add(requests, _nanos(pod.spec.overhead))
    return requests


def _of_containers(pod: Pod, requests_of: Callable[[Container], Nanos], defaults: Nanos) -> Nanos:
    """Return the requests of containers and init containers, by the rule in the module docstring.

    `requests_of` returns the requests of a container; `defaults` replace missing requests.
    """
    running: Nanos = {}
    for container in pod.spec.containers:
        _add(running, defaults | requests_of(container))
    if not pod.spec.init_containers:
        return running
    sidecars: Nanos = {}
    starting: Nanos = {}
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            requests = defaults | requests_of(container)
            _add(running, requests)
            _add(sidecars, requests)
            _raise_to(starting, sidecars)
        else:  # an init container ends before it could be resized, so only its spec counts
            requests = defaults | _spec_requests(container)
            _add(requests, sidecars)
            _raise_to(starting, requests)
    _raise_to(running, starting)
    return running


def _resized_requests(pod: Pod) -> Callable[[Container], Nanos]:
    """Return a function that returns the requests of a container of `pod`.

    If the container's status reports no resources, the function returns the requests in the spec.
    Otherwise it returns the largest of the desired, allocated and actual resources. If the pod's
    resize is infeasible, the desired resources do not count.
    """
    reported = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    statuses = {status.name: status for status in reported}
    if not statuses:
        return _spec_requests
    infeasible = _is_resize_infeasible(pod)

    def with_status(container: Container) -> Nanos:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return _spec_requests(container)
        wanted = {} if infeasible else _spec_requests(container)
        return _largest(wanted, status.resources.requests, status.allocated_resources)

    return with_status


def _is_resize_infeasible(pod: Pod) -> bool:
    """Return True if the resize is infeasible, so that the desired resources do not count."""
    # upstream: helpers.go:IsPodResizeInfeasible
    pending = condition(pod, RESIZE_PENDING)
    return pending is not None and pending.reason == "Infeasible"


def _resized_pod_level(pod: Pod) -> Nanos:
    """Return the pod-level requests, taking the pod's resize status into account."""
    # upstream: helpers.go:PodRequests with InPlacePodLevelResourcesVerticalScaling, on in 1.36
    requests = _pod_level_requests(pod)
    if not requests or pod.status.resources is None:
        return requests
    wanted = {} if _is_resize_infeasible(pod) else requests
    effective = _largest(wanted, pod.status.resources.requests, pod.status.allocated_resources)
    return {name: effective.get(name, 0) for name in requests}


def _pod_level_requests(pod: Pod) -> Nanos:
    """Return the pod-level requests in spec.resources: cpu, memory and hugepages."""
    if pod.spec.resources is None:
        return {}
    return {
        name: parse_quantity(text).nano
        for name, text in pod.spec.resources.requests.items()
        if name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)
    }


def _spec_requests(container: Container) -> Nanos:
    return _nanos(container.resources.requests)


def _nanos(resources: ResourceList) -> Nanos:
    return {name: parse_quantity(text).nano for name, text in resources.items()}


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _largest(wanted: Nanos, actual: ResourceList, allocated: ResourceList) -> Nanos:
    largest = dict(wanted)
    _raise_to(largest, _nanos(actual))
    _raise_to(largest, _nanos(allocated))
    return largest


def _raise_to(total: Nanos, other: Mapping[str, int]) -> None:
    """Copy each amount in `other` to `total`, unless `total` already has at least as much."""
    for name, nano in other.items():
        if name not in total or total[name] < nano:
            total[name] = nano


def _rounded(requests: Nanos) -> dict[str, int]:
    return {
        name: round_up(nano, NANOS_PER_MILLI if name == CPU else NANOS_PER_UNIT)
        for name, nano in requests.items()
    }
