"""Groups the pods of a scale target by whether their usage counts, and sums their requests.

    ignored   terminating or failed pods: not in the calculation
    unready   pending pods. For cpu, also pods that have never been ready. For cpu, a pod younger
              than `cpu_initialization_period` is also unready in two cases: it is not ready now, or
              its readiness changed less than one metric window ago
    missing   pods that have no metric and are not pending, whether or not they are ready
    counted   all other pods: their usage is compared with the target

The load of a workload is divided equally among its serving pods: pods that are running, ready and
not terminating. The other running pods use nothing. If the load of the workload is not known, the
metric of a running pod is the usage in the pod's annotation `fairlead.dev/usage`. A pod without
this annotation has no metric. The usage of a pod is divided among its containers in proportion to
their requests.

Example: 4 pods and a load of 3 cores. Two pods have been ready for a long time, one became ready 5
seconds ago, and one is pending. The three ready pods use 1 core each, but the metric of the third
pod does not count yet. So 2 pods are counted, which use 2 cores together, and 2 pods are unready.

upstream: pkg/controller/podautoscaler/replica_calculator.go:groupPods, calculateRequests;
metrics/client.go:getPodMetrics, getContainerMetrics
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Container, Pod
from fairlead.api.pods.facts import condition, is_sidecar, is_terminating
from fairlead.api.pods.requests import pod_requests
from fairlead.api.pods.usage import usage_of
from fairlead.api.quantity import NANOS_PER_MILLI, parse_quantity
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import CPU, RESOURCES

# upstream: --metric-resolution in metrics-server's manifest
WINDOW: Final[DurationNs] = seconds(15)
NO_METRICS: Final = "no metrics returned from resource metrics API"


class MetricError(ValueError):
    """Raised if a metric cannot be computed; the message is in upstream's words."""


def thousandths(resource: str, amount: int) -> int:
    """Return `amount` in thousandths.

    An amount of cpu is in thousandths of a core already. Amounts of other resources are in whole
    units.
    """
    return amount if resource == CPU else amount * 1000


class PodTotals(Struct):
    """A number of pods, and the sum of their requests in thousandths."""

    pods: int = 0
    requests: int = 0

    def add(self, requests: int) -> None:
        """Count one more pod, with the given `requests` in thousandths."""
        self.pods += 1
        self.requests += requests


class PodGroups(Struct):
    """The pods of a scale target, grouped for one metric."""

    counted: PodTotals
    unready: PodTotals
    missing_requests: list[int]  # the requests of each missing pod in thousandths
    serving: int = 0  # the number of pods that share the workload's load
    # If the workload's load is known, the number of counted serving pods. For the metric of a
    # container, each of these pods counts only as the fraction of its usage that the container
    # uses.
    weight: Fraction | int = 0
    # If the load is unknown, the annotations of the counted pods state the usage of each pod. This
    # is the sum in thousandths.
    stated: int = 0
    request_problem: str = ""  # the error text if the requests are unknown, else ""
    # If no pod changes, the groups stay the same until this instant (None: forever).
    until: Instant | None = None

    def usage(self, load: int) -> int:
        """Return the usage of the counted pods under `load`; both amounts are in thousandths."""
        if not self.serving:
            return self.stated
        weight = self.weight
        return self.stated + load * weight.numerator // (weight.denominator * self.serving)

    def expires(self, at: Instant) -> None:
        """Record that the groups change at the time `at`, if no earlier change is known."""
        self.until = at if self.until is None else min(self.until, at)


class MeteredResource(Struct, frozen=True):
    """The resource whose usage a metric measures, in each pod or in one container of each pod.

    `container` is the name of the container, "" for whole pods. `has_load` is set if the
    workload's load is known for this resource.
    """

    name: str
    container: str
    has_load: bool


class _Reading(Struct):
    """One version of a pod, with the facts about it that a metric reads.

    The times `since` and `started` are 0 if the metric does not depend on them.
    """

    pod: Pod
    has_metric: bool
    is_gone: bool
    is_pending: bool
    is_running: bool
    is_serving: bool
    requests: int  # in thousandths
    request_problem: str  # error text, or ""
    container_problem: str  # error text, or ""
    readiness: str | None = None
    since: Instant = 0  # the time of the last change of the condition Ready
    started: Instant = 0  # the start time of the pod
    # The metered container's fraction of the pod's usage, or 1 if the metric measures whole pods.
    part: Fraction | int = 0
    stated: int = 0  # the usage according to the pod's annotation, in thousandths


class PodReadings:
    """Caches, for each metered resource, the data of each pod until the pod changes."""

    def __init__(self) -> None:
        self._known: dict[MeteredResource, dict[str, _Reading]] = {}

    def of(self, pods: Iterable[Pod], metered: MeteredResource) -> Collection[_Reading]:
        """Return one reading for each of `pods`, in order; all pods must be in one namespace."""
        known = self._known.get(metered, {})
        found: dict[str, _Reading] = {}
        for pod in pods:
            name = pod.metadata.name
            reading = known.get(name)
            if reading is None or reading.pod is not pod:
                reading = _read(pod, metered)
            found[name] = reading
        self._known[metered] = found
        return found.values()


def group_pods(
    pods: Iterable[Pod],
    metered: MeteredResource,
    config: HorizontalPodAutoscalerConfig,
    now: Instant,
    readings: PodReadings | None = None,
) -> PodGroups:
    """Group `pods`, the pods of a scale target, for the resource `metered` at `now`.

    `readings` is a cache: a pod's data is computed again only if the pod has changed since the last
    call. Raises MetricError if no pod has a metric, or if the metered container is missing in a
    pod.
    """
    read = (readings or PodReadings()).of(pods, metered)
    if not any(one.has_metric for one in read):
        problem = f"unable to get metrics for resource {metered.name}: {NO_METRICS}"
        can_have_one = metered.name in RESOURCES and any(one.is_running for one in read)
        raise MetricError(problem + config.usage_advice if can_have_one else problem)
    groups = PodGroups(PodTotals(), PodTotals(), [])
    for one in read:
        if one.container_problem:
            raise MetricError(one.container_problem)
        groups.request_problem = groups.request_problem or one.request_problem
        if one.is_gone:
            continue
        groups.serving += one.is_serving
        if one.is_pending:
            groups.unready.add(one.requests)
        elif not one.has_metric:
            groups.missing_requests.append(one.requests)
        elif metered.name == CPU and _is_unready(one, groups, config, now):
            groups.unready.add(one.requests)
        else:
            groups.counted.add(one.requests)
            if not metered.has_load:
                groups.stated += one.stated
            elif one.is_serving:
                groups.weight += one.part
    return groups


def _read(pod: Pod, metered: MeteredResource) -> _Reading:
    has_metric, phase = _has_metric(pod, metered), pod.status.phase
    ready = condition(pod, "Ready")
    is_gone = is_terminating(pod) or phase == "Failed"
    container_problem = _container_problem(pod, metered) if has_metric else ""
    requests, request_problem = 0, ""
    if not container_problem:
        try:
            requests = _requests(pod, metered)
        except MetricError as problem:
            request_problem = str(problem)
    reading = _Reading(
        pod=pod,
        has_metric=has_metric,
        is_gone=is_gone,
        is_pending=phase == "Pending",
        is_running=phase == "Running",
        is_serving=phase == "Running" and ready is not None and ready.status == "True",
        requests=requests,
        request_problem=request_problem,
        container_problem=container_problem,
    )
    if not has_metric or is_gone or container_problem:
        return reading
    if metered.name == CPU and ready is not None and pod.status.start_time:
        reading.readiness = ready.status
        changed = ready.last_transition_time
        reading.since = parse_timestamp(changed) if changed else 0
        reading.started = parse_timestamp(pod.status.start_time)
    reading.part = _container_part(pod, metered) if metered.container else 1
    if not metered.has_load:
        stated = thousandths(metered.name, usage_of(pod)[metered.name]) * reading.part
        reading.stated = stated.numerator // stated.denominator
    return reading


def _has_metric(pod: Pod, metered: MeteredResource) -> bool:
    if pod.status.phase != "Running" or metered.name not in RESOURCES:
        return False
    return metered.has_load or metered.name in usage_of(pod)


def _container_problem(pod: Pod, metered: MeteredResource) -> str:
    name = metered.container
    if not name or any(one.name == name for one in _containers(pod)):
        return ""
    problem = f"container {name} not present in metrics for pod {pod.key}"
    return (
        f"unable to get metrics for resource {metered.name}: "
        f"failed to get container metrics: {problem}"
    )


def _is_unready(
    reading: _Reading, groups: PodGroups, config: HorizontalPodAutoscalerConfig, now: Instant
) -> bool:
    """Return whether the pod's cpu metric is ignored because the pod counts as unready.

    If the result will change with time, the time of this change is recorded in `groups`.
    """
    if reading.readiness is None:
        return True
    since, is_down = reading.since, reading.readiness == "False"
    initialized = reading.started + config.cpu_initialization_period
    if initialized > now:
        groups.expires(initialized)
        if is_down:
            return True
        if now < since + WINDOW:
            groups.expires(since + WINDOW)
            return True
        return False
    return is_down and reading.started + config.initial_readiness_delay > since


# --- requests ------------------------------------------------------------------------------------


def _containers(pod: Pod) -> Iterator[Container]:
    """Yield the containers that run for the whole life of the pod, sidecars included."""
    yield from pod.spec.containers
    yield from (one for one in pod.spec.init_containers if is_sidecar(one))


def _requests(pod: Pod, metered: MeteredResource) -> int:
    """Return the requests of the pod or of the metered container, in thousandths.

    Raises MetricError if a request or the container is missing.
    """
    name, container = metered.name, metered.container
    if not container and pod.spec.resources is not None and pod.spec.resources.requests:
        amount = pod_requests(pod).get(name)
        if amount is None:
            raise MetricError(f"missing pod-level request for {name} in Pod {pod.metadata.name}")
        return thousandths(name, amount)
    total, is_found = 0, False
    for one in _containers(pod):
        if container in ("", one.name):
            total, is_found = total + _container_request(pod, one, name), True
    if container and not is_found:
        raise MetricError(f"container {container} not found in Pod {pod.metadata.name}")
    return total


def _container_request(pod: Pod, container: Container, resource: str) -> int:
    text = container.resources.requests.get(resource)
    if text is None:
        where = f"container {container.name} of Pod {pod.metadata.name}"
        raise MetricError(f"missing request for {resource} in {where}")
    return -(-parse_quantity(text).nano // NANOS_PER_MILLI)


def _container_part(pod: Pod, metered: MeteredResource) -> Fraction:
    """Return the metered container's part of the pod's usage.

    The usage is divided among the containers in proportion to their requests. If no container has
    a request, all parts are equal.
    """
    requested = {
        one.name: parse_quantity(one.resources.requests.get(metered.name, 0)).nano
        for one in _containers(pod)
    }
    total = sum(requested.values())
    if not total:
        return Fraction(1, len(requested))
    return Fraction(requested[metered.container], total)
