"""Metric: one entry of spec.metrics, evaluated for the pods of the scale target.

Only the resource metrics API exists (sources Resource and ContainerResource). Metrics of other
sources fail as on a cluster without an adapter for custom and external metrics.

upstream: pkg/controller/podautoscaler/horizontal.go:computeReplicasForMetric,
computeStatusForResourceMetricGeneric
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    HorizontalPodAutoscaler,
    MetricSource,
    MetricSpec,
    Pod,
    ScalingRules,
)
from fairlead.api.quantity import (
    NANOS_PER_MILLI,
    NANOS_PER_UNIT,
    Quantity,
    canonical,
    parse_quantity,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import LoadCurve, WorkloadLoad
from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import (
    MeteredResource,
    MetricError,
    PodGroups,
    PodReadings,
    group_pods,
    thousandths,
)
from fairlead.engine.workloads.horizontal_pod_autoscaler.replica_calculator import (
    Proposal,
    Tolerances,
    average_proposal,
    utilization_proposal,
)

NO_CUSTOM_METRICS: Final = (
    "unable to fetch metrics from custom metrics API: "
    "no custom metrics API (custom.metrics.k8s.io) registered"
)
NO_EXTERNAL_METRICS: Final = (
    "unable to fetch metrics from external metrics API: the server could not find the requested "
    "resource (get {}.external.metrics.k8s.io)"
)
NO_TARGET: Final = (
    "invalid resource metric source: neither an average utilization target nor an average value "
    "(usage) target was set"
)


class FailedMetricError(Exception):
    """Raised if a metric cannot propose a number of replicas.

    `reason` is the reason of the event and the condition. `problem` is the error text, and `whole`
    is the metric's `failure_prefix` followed by the error text.
    """

    def __init__(self, metric: Metric, why: str) -> None:
        """Build the error for `metric`; `why` is the error text."""
        super().__init__(why)
        self.reason = f"FailedGet{metric.spec.type}Metric"
        self.problem = why
        self.whole = f"{metric.failure_prefix}: {why}"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric and the pods that it evaluates."""

    spec: MetricSpec
    namespace: str
    tolerances: Tolerances
    groups: PodGroups | None  # the pods; None if `problem` is set
    # The load of the workload; None if no load is set for the metric's resource.
    curve: LoadCurve | None
    problem: str = ""  # the error text if the metric cannot be computed, else ""
    source: MetricSource = field(init=False)
    _target: int = field(init=False)  # the amount in thousandths, or the percentage

    def __post_init__(self) -> None:
        """Set `source` and the target amount or percentage from `spec`."""
        source = _source(self.spec)
        object.__setattr__(self, "source", source)
        target = source.target.average_utilization or 0
        if self.groups is not None and source.target.average_value is not None:
            target = -(-parse_quantity(source.target.average_value).nano // NANOS_PER_MILLI)
        object.__setattr__(self, "_target", target)

    @property
    def name(self) -> str:
        """Description of the metric in reasons and conditions, such as `cpu resource`."""
        resource = self.source.name
        if self.source.target.average_value is not None:
            return f"{resource} resource"
        of = "container resource" if self.spec.type == "ContainerResource" else "resource"
        return f"{resource} {of} utilization (percentage of request)"

    @property
    def short_name(self) -> str:
        """Short name for users, such as `cpu` or `External metric s0-prometheus`."""
        match self.spec.type:
            case "Resource":
                return self.source.name
            case "ContainerResource":
                return f"{self.source.name} of container {self.source.container}"
            case other:
                return f"{other} metric {_metric_name(self.source)}"

    @property
    def failure_prefix(self) -> str:
        """The text that precedes the problem in the error text of this metric."""
        match self.spec.type:
            case "Resource":
                return f"failed to get {self.source.name} resource metric value"
            case "ContainerResource":
                return f"failed to get {self.source.container} container metric value"
            case "External":
                return f"failed to get {_metric_name(self.source)} external metric value"
            case other:
                return f"failed to get {other.lower()} metric value"

    def usage(self, at: Instant) -> int:
        """Return the usage of the counted pods at the time `at`, in thousandths."""
        assert self.groups is not None
        load = 0 if self.curve is None else thousandths(self.source.name, self.curve.at(at))
        return self.groups.usage(load)

    def propose(self, current: int, at: Instant) -> Proposal:
        """Return the proposal at the time `at` for a target with `current` replicas.

        Raises FailedMetricError if the metric cannot be computed.
        """
        if self.problem or self.groups is None:
            raise FailedMetricError(self, self.problem)
        is_amount = self.source.target.average_value is not None
        propose = average_proposal if is_amount else utilization_proposal
        try:
            return propose(self.groups, self.usage(at), self._target, self.tolerances, current)
        except MetricError as problem:
            raise FailedMetricError(self, f"{_attempt(self.source)}: {problem}") from None

    def status(self, proposal: Proposal) -> Json:
        """Return the entry of status.currentMetrics for `proposal`."""
        average = canonical(Quantity(nano=proposal.average * NANOS_PER_MILLI))
        current: Json = {"averageValue": average}
        if proposal.utilization is not None:
            current["averageUtilization"] = proposal.utilization
        if self.spec.type == "Resource":
            return {"type": "Resource", "resource": {"name": self.source.name, "current": current}}
        container = {
            "name": self.source.name,
            "container": self.source.container,
            "current": current,
        }
        return {"type": "ContainerResource", "containerResource": container}

    def follows_load(self, current: int) -> bool:
        """Return whether the proposal is certain to rise or stay the same when the load rises.

        Returns True if there are `current` counted pods, and no unready or missing pods. The
        proposal then depends only on the ratio of usage to target. If the ratio is within the
        tolerances, the proposal is `current`. If the ratio is below the tolerances, the proposal is
        at most `current`. If the ratio is above the tolerances, the proposal is at least `current`.
        """
        groups = self.groups
        if groups is None or groups.unready.pods or groups.missing_requests:
            return False
        return groups.counted.pods == current

    def until(self) -> Iterator[Instant]:
        """Yield the instant at which `groups` becomes outdated; nothing if that never happens."""
        if self.groups is not None and self.groups.until is not None:
            yield self.groups.until


def metrics_of(
    autoscaler: HorizontalPodAutoscaler,
    pods: Collection[Pod],
    load: WorkloadLoad,
    config: HorizontalPodAutoscalerConfig,
    now: Instant,
    readings: PodReadings,
) -> tuple[Metric, ...]:
    """Return the metrics of `autoscaler` for the `pods` of its target and their `load`.

    `readings` is a cache: a pod's data is computed again only if the pod has changed since the last
    call.
    """
    tolerances = tolerances_of(autoscaler, config)
    namespace = autoscaler.metadata.namespace
    found = []
    for spec in autoscaler.spec.metrics:
        if spec.type not in ("Resource", "ContainerResource"):
            problem = _absent_metric(spec, namespace)
            found.append(Metric(spec, namespace, tolerances, None, None, problem))
            continue
        source = _source(spec)
        curve = load.get(source.name)
        groups, problem = None, NO_TARGET
        if source.target.average_value is not None or source.target.average_utilization is not None:
            metered = MeteredResource(source.name, source.container, has_load=source.name in load)
            try:
                groups, problem = group_pods(pods, metered, config, now, readings), ""
            except MetricError as cause:
                problem = f"{_attempt(source)}: {cause}"
        found.append(Metric(spec, namespace, tolerances, groups, curve, problem))
    return tuple(found)


def tolerances_of(
    autoscaler: HorizontalPodAutoscaler, config: HorizontalPodAutoscalerConfig
) -> Tolerances:
    """Return the tolerances in the autoscaler's behavior; by default, the configured tolerance."""
    behavior = autoscaler.spec.behavior
    if behavior is None:
        return Tolerances(config.tolerance, config.tolerance)
    return Tolerances(
        _tolerance(behavior.scale_down, config.tolerance),
        _tolerance(behavior.scale_up, config.tolerance),
    )


def _tolerance(rules: ScalingRules, default: float) -> float:
    stated = rules.tolerance
    return default if stated is None else parse_quantity(stated).nano / NANOS_PER_UNIT


def _source(spec: MetricSpec) -> MetricSource:
    match spec.type:
        case "ContainerResource":
            return spec.container_resource
        case "Pods":
            return spec.pods
        case "Object":
            return spec.object
        case "External":
            return spec.external
        case _:
            return spec.resource


def _attempt(source: MetricSource) -> str:
    what = "utilization" if source.target.average_value is None else "usage"
    return f"failed to get {source.name} {what}"


# --- metrics that do not exist -------------------------------------------------------------------


def _absent_metric(spec: MetricSpec, namespace: str) -> str:
    """Return the error text for a metric that is not from the resource metrics API."""
    source = _source(spec)
    name = _metric_name(source)
    match spec.type:
        case "Pods":
            return f"unable to get metric {name}: {NO_CUSTOM_METRICS}"
        case "Object":
            described = source.described_object
            where = f"{described.kind} {namespace}/{described.name}"
            return f"unable to get metric {name} on {where}: {NO_CUSTOM_METRICS}"
        case _:
            from fairlead.api.text.go_selector import go_selector  # noqa: PLC0415 - rarely needed

            selector = go_selector(source.metric.get("selector"))
            what = f"{namespace}/{name}/{selector}"
            return f"unable to get external metric {what}: {NO_EXTERNAL_METRICS.format(name)}"


def _metric_name(source: MetricSource) -> str:
    return str(source.metric.get("name", ""))
