"""Explains a HorizontalPodAutoscaler: what its metrics propose, its limits, and room for pods.

The metrics and conditions come from the status that the controller wrote. The proposal of a metric
is computed from its current value, its target value and the number of replicas in the status.
Unlike the controller, this module ignores whether pods are ready or have metrics.

If the autoscaler scales a custom resource, such as an Argo Rollout, the number of replicas comes
from the status of the autoscaler.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

from msgspec import Struct

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    HorizontalPodAutoscaler,
    LabelSelector,
    Pod,
    ResourceRequirements,
    ScalingPolicy,
    ScalingRules,
)
from fairlead.api.pods.facts import is_sidecar
from fairlead.api.quantity import NANOS_PER_UNIT, QuantityError, parse_quantity
from fairlead.api.selector import format_selector, selector_matches
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import (
    REPLICATION_CONTROLLER,
    SCALABLE,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.replica_calculator import Tolerances
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import FitResult, fit
from fairlead.whatif.planner.new_pod import new_pods_of
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import Snapshot

_DISABLED: Final = "Disabled"
_TOLERANCE: Final = 0.1  # --horizontal-pod-autoscaler-tolerance
_METRIC_COLUMNS: Final = (
    ResultColumn("metric", "metric", NAME),
    ResultColumn("current", "current", NUMBER),
    ResultColumn("target", "target", NUMBER),
    ResultColumn("proposal", "replicas proposed", NUMBER),
)
_CONDITION_COLUMNS: Final = (
    ResultColumn("type", "condition", NAME),
    ResultColumn("status", "status"),
    ResultColumn("reason", "reason"),
    ResultColumn("message", "message"),
)
_REFUSAL_COLUMNS: Final = (
    ResultColumn("nodes", "nodes", NUMBER),
    ResultColumn("plugin", "refused by"),
    ResultColumn("reason", "because"),
)


class _Metric(Struct, frozen=True):
    """A metric of the spec with its value in the status.

    If the spec has no target value, `current` and `target` are both "".
    """

    name: str
    current: str  # "" if the status has no value for the metric
    target: str
    proposal: int | None  # the number of replicas that the metric proposes, None if it is unknown
    resource: str = ""  # if the target is a percentage of the requests for a resource, its name
    container: str = ""  # the only container that the metric measures, "" for all containers


def explain_autoscaler(model: ClusterModel, snapshot: Snapshot, found: Manifest) -> TabularAnswer:
    """Return the explanation of the HorizontalPodAutoscaler `found` of `snapshot`.

    Raises InputError if its spec is malformed.
    """
    try:
        view = decode_as(HorizontalPodAutoscaler, found.value)
    except DecodeError as cause:
        raise InputError.of_decode(found.source, cause) from None
    inventory = snapshot.inventory()
    target = _target(found, inventory)
    counted_then = view.status.get("currentReplicas")
    then = counted_then if isinstance(counted_then, int) else 0
    replicas = _replicas(target) if target is not None else then if _is_custom(view) else 0
    metrics = [
        _metric(one, view, then or replicas) for one in _entries(found.value.get("spec"), "metrics")
    ]
    pods = [] if target is None else _pods(model, target)
    conditions = _entries(view.status, "conditions")
    room: FitResult | str | None = None
    if target is not None:
        room = _room(model, inventory, target, view, replicas)
    elif _is_custom(view):
        room = f"The pods of {_reference(view)} are not simulated, so their room is not known."
    return TabularAnswer(
        kind="AutoscalerExplanation",
        source=snapshot.source,
        verdict=_verdict(view, target, replicas, metrics, conditions),
        findings=(
            *_missing_requests(metrics, pods),
            *_behavior_words(view, (_highest(metrics) or replicas) - replicas),
            *_room_words(view, replicas, room),
        ),
        tables=(
            ResultTable("metrics", "its metrics", _METRIC_COLUMNS, [
                {"metric": one.name, "current": one.current, "target": one.target,
                 "proposal": one.proposal}
                for one in metrics
            ]),
            ResultTable("refusals", "nodes on which the next pod does not fit", _REFUSAL_COLUMNS, [
                {"nodes": one.nodes, "plugin": one.plugin, "reason": one.reason}
                for one in (room.refusals if isinstance(room, FitResult) else ())
            ]),
            ResultTable("conditions", "its conditions", _CONDITION_COLUMNS, [
                {name: str(one.get(name, "")) for name in ("type", "status", "reason", "message")}
                for one in conditions
            ]),
        ),
        facts={
            "autoscaler": found.ref.key,
            "target": _reference(view),
            "replicas": replicas,
            "proposal": _highest(metrics),
            "min_replicas": view.spec.min_replicas,
            "max_replicas": view.spec.max_replicas,
            "fitting": room.count if isinstance(room, FitResult) else None,
        },
        steps=tuple(
            _steps(found, view, target, _highest(metrics) or 0, snapshot.question_arguments)
        ),
    )  # fmt: skip


def _steps(
    found: Manifest,
    view: HorizontalPodAutoscaler,
    target: Manifest | None,
    proposal: int,
    arguments: Sequence[str],
) -> Iterator[NextStep]:
    """Yield commands that raise maxReplicas to the `proposal` of the metrics.

    Nothing is yielded if the proposal is within the limits. `arguments` are the command-line words
    with which another command reads the same cluster.
    """
    if target is None or proposal <= view.spec.max_replicas:
        return
    ref = WorkloadRef(target.full_kind, target.ref.namespace, target.ref.name)
    edit = f"hpa/{found.ref.key}:spec.maxReplicas={proposal}"
    words = ("fairlead", "whatif", *arguments, "--set", edit, "--scale", f"{ref}={proposal}")
    yield NextStep("simulate a higher maxReplicas first", command=shlex.join(words))
    patch = f'{{"spec":{{"maxReplicas":{proposal}}}}}'
    words = ("kubectl", "patch", "hpa", "-n", found.ref.namespace, found.ref.name, "-p", patch)
    yield NextStep("raise maxReplicas", command=shlex.join(words), makes_change=True)


def _verdict(
    view: HorizontalPodAutoscaler,
    target: Manifest | None,
    replicas: int,
    metrics: Sequence[_Metric],
    conditions: Sequence[Json],
) -> str:
    name, what = f"hpa/{view.metadata.namespace}/{view.metadata.name}", _reference(view)
    if target is None and not _is_custom(view):
        return f"{name} scales nothing: {what} is not in the dump or has no replicas."
    if failure := _failure(conditions, "AbleToScale"):
        return f"{name} does not scale {what}: {failure}."
    if target is None and "currentReplicas" not in view.status:
        return f"{name} has no replicas in its status, so those of {what} are not known."
    if not replicas and view.spec.min_replicas:
        return f"{name} is off, because {what} has 0 replicas."
    if step := _step_to_limit(view, replicas):  # the controller does not read the metrics
        return f"{name} {step}"
    if failure := _failure(conditions, "ScalingActive"):
        return f"{name} does not scale {what}: {failure}."
    return f"{name} {_verdict_of_metrics(view, replicas, metrics, conditions)}"


def _step_to_limit(view: HorizontalPodAutoscaler, replicas: int) -> str:
    """Return the change of `replicas` to the nearest limit; "" if `replicas` is within limits."""
    least, most = view.spec.min_replicas, view.spec.max_replicas
    if least <= replicas <= most:
        return ""
    field, after = ("maxReplicas", most) if replicas > most else ("minReplicas", least)
    step = f"{_reference(view)} from {replicas:,} to {counted(after, 'replica')}"
    return f"scales {step}, because {field} is {after:,}."


def _verdict_of_metrics(
    view: HorizontalPodAutoscaler,
    replicas: int,
    metrics: Sequence[_Metric],
    conditions: Sequence[Json],
) -> str:
    proposal, what = _highest(metrics), _reference(view)
    if proposal is None:
        return f"has no metrics in the dump; {what} has {counted(replicas, 'replica')}."
    unknown = [one.name for one in metrics if one.proposal is None]
    if unknown and proposal < replicas:
        # upstream: horizontal.go: computeReplicasForMetrics
        return (
            f"keeps the {counted(replicas, 'replica')} of {what}: without a value of "
            f"{listed(unknown)}, it does not scale down."
        )
    return _decision(view, replicas, proposal, conditions)


def _failure(conditions: Iterable[Json], kind: str) -> str:
    """Return the message of the condition `kind` if it is False, else ""."""
    found = next((one for one in conditions if one.get("type") == kind), {})
    if found.get("status") != "False":
        return ""
    return str(found.get("message") or found.get("reason") or kind)


def _highest(metrics: Iterable[_Metric]) -> int | None:
    """Return the highest proposal; None if no metric has a proposal."""
    return max((one.proposal for one in metrics if one.proposal is not None), default=None)


def _decision(
    view: HorizontalPodAutoscaler, replicas: int, proposal: int, conditions: Sequence[Json]
) -> str:
    """Return a text about the autoscaler's action if its metrics propose `proposal` replicas."""
    least, most, what = view.spec.min_replicas, view.spec.max_replicas, _reference(view)
    proposed = f"its metrics propose {counted(proposal, 'replica')}"
    if proposal > replicas >= most:
        return f"keeps {what} at maxReplicas ({most:,}); {proposed}."
    if proposal < replicas <= least:
        return f"keeps {what} at minReplicas ({least:,}); {proposed}."
    if proposal == replicas:
        return f"keeps the {counted(replicas, 'replica')} of {what}, as its metrics propose."
    rules = _rules(view, proposal - replicas)
    if rules is not None and rules.select_policy == _DISABLED:
        return f"keeps the {counted(replicas, 'replica')} of {what}; {proposed}."
    after = min(max(proposal, least), most)
    step = f"{what} from {replicas:,} to {counted(after, 'replica')}"
    if after < replicas and _has_reason(conditions, "ScaleDownStabilized"):
        return f"waits to scale {step}: its recent recommendations were higher."
    if after > replicas and _has_reason(conditions, "ScaleUpStabilized"):
        return f"waits to scale {step}: its recent recommendations were lower."
    return f"scales {step}; {proposed}."


def _has_reason(conditions: Sequence[Json], reason: str) -> bool:
    return any(one.get("reason") == reason for one in conditions)


def _missing_requests(metrics: Iterable[_Metric], pods: Sequence[Pod]) -> Iterator[str]:
    for one in metrics:
        lacking = _without_request(pods, one) if one.resource else []
        if lacking:
            containers = f"{'Container' if len(lacking) == 1 else 'Containers'} {listed(lacking)}"
            have = "has" if len(lacking) == 1 else "have"
            yield (
                f"{containers} {have} no {one.resource} request, so the percentage of requests "
                "cannot be computed."
            )


def _rules(view: HorizontalPodAutoscaler, change: int) -> ScalingRules | None:
    """Return the scaling rules for a `change` of the replicas; None if `spec.behavior` is not set.

    A positive `change` is a scale-up.
    """
    behavior = view.spec.behavior
    if behavior is None:
        return None
    return behavior.scale_up if change > 0 else behavior.scale_down


def _behavior_words(view: HorizontalPodAutoscaler, change: int) -> Iterator[str]:
    """Yield sentences about `spec.behavior`: the directions that it disables, and its rate limits.

    `change` is the proposed change of the replicas. Only the rate limits for the direction of
    `change` are included.
    """
    for direction, sign in (("up", 1), ("down", -1)):
        rules = _rules(view, sign)
        if rules is None:
            continue
        if rules.select_policy == _DISABLED:
            yield f"behavior disables scaling {direction}."
        elif rules.policies and change * sign > 0:
            verb = "adds" if sign > 0 else "removes"
            limits = " or ".join(map(_policy_words, rules.policies))
            which = "less" if rules.select_policy == "Min" else "more"
            chosen = f", whichever is {which}" if len(rules.policies) > 1 else ""
            yield f"behavior {verb} at most {limits}{chosen}."


def _policy_words(policy: ScalingPolicy) -> str:
    is_percentage = policy.type == "Percent"
    amount = f"{policy.value}% of the pods" if is_percentage else counted(policy.value, "pod")
    return f"{amount} in {for_readers(seconds(policy.period_seconds))}"


def _room_words(
    view: HorizontalPodAutoscaler, replicas: int, room: FitResult | str | None
) -> Iterator[str]:
    if room is None:
        return
    if isinstance(room, str):
        yield room
        return
    more, most = view.spec.max_replicas - replicas, f"maxReplicas ({view.spec.max_replicas:,})"
    if room.count == more:
        pods, verb = ("The pod", "fits") if more == 1 else (f"All {more:,} pods", "fit")
        yield f"{pods} up to {most} {verb} on the present nodes."
        return
    why = short_reason(room.stop) if room.refused_by == "scheduling" else room.stop
    verb = "fits" if room.count == 1 else "fit"
    fitting = f"{room.count:,} of the {counted(more, 'pod')}" if room.count else "No pod"
    yield f"{fitting} up to {most} {verb if room.count else 'fits'} on the present nodes: {why}."


def _room(
    model: ClusterModel,
    inventory: Inventory,
    target: Manifest,
    view: HorizontalPodAutoscaler,
    replicas: int,
) -> FitResult | str | None:
    """Return the result of adding pods up to maxReplicas, or why no pod can be added.

    Return None if `replicas` is not below maxReplicas. The model does not change.
    """
    more = view.spec.max_replicas - replicas
    if more <= 0:
        return None
    try:
        with model.hypothesis():
            return fit(model, new_pods_of("explain", target, inventory), NoProgress(), more)
    except InputError as cause:
        return f"No pod can be added: {cause.problem}."


# --- metrics ------------------------------------------------------------------------------------


def _metric(entry: Json, view: HorizontalPodAutoscaler, replicas: int) -> _Metric:
    """Return the metric of `entry`, from spec.metrics, with its value from the status."""
    kind, source = _source(entry)
    name, identity = _name(kind, source), _identity(entry)
    target = _object(source.get("target"))
    current: Json = {}
    for one in _entries(view.status, "currentMetrics"):
        if _identity(one) == identity:
            current = _object(_source(one)[1].get("current"))
    for field in ("averageUtilization", "averageValue", "value"):
        if target.get(field) is None:
            continue
        is_percentage = field == "averageUtilization"
        unit = "%" if is_percentage else ""
        value = current.get(field)
        return _Metric(
            name,
            "" if value is None else f"{value}{unit}",
            f"{target[field]}{unit}",
            None if value is None else _proposal(value, target[field], view, replicas),
            str(source.get("name", "")) if is_percentage else "",
            str(source.get("container", "")),
        )
    return _Metric(name, "", "", None)


def _proposal(
    current: Any, target: Any, view: HorizontalPodAutoscaler, replicas: int
) -> int | None:
    """Return ceil(current ÷ target x replicas), or `replicas` if the ratio is within the tolerance.

    Return None if `current` or `target` is not a quantity, or if `target` is 0.

    upstream: pkg/controller/podautoscaler/replica_calculator.go
    """
    try:
        ratio = parse_quantity(current).nano / parse_quantity(target).nano
    except (QuantityError, ZeroDivisionError):
        return None
    behavior = view.spec.behavior
    down = None if behavior is None else behavior.scale_down
    up = None if behavior is None else behavior.scale_up
    if Tolerances(_tolerance(down), _tolerance(up)).contain(ratio):
        return replicas
    return ceil(ratio * replicas)


def _tolerance(rules: ScalingRules | None) -> float:
    if rules is None or rules.tolerance is None:
        return _TOLERANCE
    return parse_quantity(rules.tolerance).nano / NANOS_PER_UNIT


def _source(entry: Json) -> tuple[str, Json]:
    """Return (type, source) of a metric; the source is in the field that the type names."""
    kind = str(entry.get("type", ""))
    return kind, _object(entry.get(kind[:1].lower() + kind[1:]))


def _identity(entry: Json) -> tuple[str, Json]:
    """Return (type, fields) of a metric: a key that is equal in the spec and the status."""
    kind, source = _source(entry)
    return kind, {key: value for key, value in source.items() if key not in ("target", "current")}


def _name(kind: str, source: Json) -> str:
    if kind == "Resource":
        return str(source.get("name", ""))
    if kind == "ContainerResource":
        return f"{source.get('name', '')} of container {source.get('container', '')}"
    metric = _object(source.get("metric"))
    name, labels = str(metric.get("name", "")), _selector_text(metric.get("selector"))
    described = _object(source.get("describedObject"))
    if kind == "Object":
        return f"{name} of {described.get('kind', '')} {described.get('name', '')}"
    return f"{name} ({', '.join((kind.lower(), *labels))})"


def _selector_text(selector: object) -> tuple[str, ...]:
    """Return (kubectl's notation of `selector`,); () if the selector is empty or malformed."""
    try:
        text = format_selector(decode_as(LabelSelector, _object(selector)))
    except DecodeError:
        return ()
    return (text,) if text else ()


def _without_request(pods: Iterable[Pod], metric: _Metric) -> list[str]:
    """Return the names of the containers in `pods` that do not request the metric's resource.

    upstream: pkg/controller/podautoscaler/replica_calculator.go:calculateRequests
    """
    lacking = dict[str, None]()
    for pod in pods:
        total = pod.spec.resources
        if not metric.container and total is not None and _has_amount(total, metric.resource):
            continue
        sidecars = (one for one in pod.spec.init_containers if is_sidecar(one))
        for one in (*pod.spec.containers, *sidecars):
            is_metered = metric.container in ("", one.name)
            if is_metered and not _has_amount(one.resources, metric.resource):
                lacking[one.name] = None
    return list(lacking)


def _has_amount(resources: ResourceRequirements, name: str) -> bool:
    """Return whether `resources` has a request or a limit for the resource `name`.

    If there is only a limit, the limit is also the request.
    """
    return name in resources.requests or name in resources.limits


# --- objects ------------------------------------------------------------------------------------


def _target(found: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the workload that the autoscaler scales; None if it is not in the snapshot."""
    reference = _object(_object(found.value.get("spec")).get("scaleTargetRef"))
    for kind in SCALABLE:
        if kind.kind == reference.get("kind") and not _has_custom_group(reference):
            return inventory.get(kind, found.ref.namespace, str(reference.get("name", "")))
    return None


def _has_custom_group(reference: Json) -> bool:
    """Return whether the API group in `reference` has a dot, like groups of custom resources."""
    return "." in str(reference.get("apiVersion", "")).partition("/")[0]


def _is_custom(view: HorizontalPodAutoscaler) -> bool:
    """Return whether the target is a custom resource."""
    return "." in view.spec.scale_target_ref.api_version.partition("/")[0]


def _pods(model: ClusterModel, target: Manifest) -> list[Pod]:
    """Return the pods of the workload `target`; if there are none, a pod made from its template."""
    spec = _object(target.value.get("spec"))
    selector = _object(spec.get("selector"))
    if target.kind is REPLICATION_CONTROLLER:
        selector = {"matchLabels": selector}
    try:
        selected = decode_as(LabelSelector, selector)
        template = decode_as(Pod, _object(spec.get("template")))
    except DecodeError as cause:
        raise InputError.of_decode(target.source, cause) from None
    found = [
        one.pod
        for one in model.pods()
        if one.pod.metadata.namespace == target.ref.namespace
        and selector_matches(selected, one.pod.metadata.labels)
    ]
    return found or [template]


def _reference(view: HorizontalPodAutoscaler) -> str:
    reference = view.spec.scale_target_ref
    return f"{reference.kind} {view.metadata.namespace}/{reference.name}"


def _replicas(target: Manifest) -> int:
    wanted = _object(target.value.get("spec")).get("replicas", 1)
    return wanted if isinstance(wanted, int) else 1


def _object(value: Any) -> Json:
    return dict(value) if isinstance(value, Mapping) else {}


def _entries(value: Any, field: str) -> list[Json]:
    """Return the objects in the list `value[field]`; [] if there is no such list."""
    found = _object(value).get(field)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
