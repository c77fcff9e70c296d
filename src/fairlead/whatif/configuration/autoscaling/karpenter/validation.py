"""Validates Karpenter's objects from files, as its CustomResourceDefinitions would.

upstream: pkg/apis/crds/karpenter.sh_nodepools.yaml, karpenter.sh_nodeclaims.yaml,
karpenter.sh_nodeoverlays.yaml
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import ResourceList
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.api.timestamp import parse_duration, parse_timestamp
from fairlead.apiserver.validation.batch.schedule import schedule_problem
from fairlead.engine.autoscaling.karpenter.apis import (
    NEVER,
    WHEN_EMPTY,
    WHEN_EMPTY_OR_UNDERUTILIZED,
    FlexibleRequirement,
    NodeClaim,
    NodeClaimSpec,
    NodeOverlay,
    NodePool,
    NodePoolBudget,
)
from fairlead.engine.autoscaling.karpenter.disruption.budget import DRIFTED, EMPTY, UNDERUTILIZED
from fairlead.engine.core.cron_schedule import EVERY
from fairlead.whatif.configuration.autoscaling.new_node_validation import (
    Problems,
    amount_problems,
    label_problems,
    taint_problems,
)
from fairlead.whatif.input.error import InputError, known_names

_POLICIES: Final = (WHEN_EMPTY, WHEN_EMPTY_OR_UNDERUTILIZED)
_REASONS: Final = (UNDERUTILIZED, EMPTY, DRIFTED)
_COMPARISONS: Final = ("Gt", "Gte", "Lt", "Lte")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", *_COMPARISONS)
_BUDGET_NODES: Final = re.compile(r"(100|[0-9]{1,2})%|[0-9]{1,18}")
_BUDGET_DURATION: Final = re.compile(r"([0-9]{1,9}[hm]|[0-9]{1,9}h[0-9]{1,9}m)(0s)?")
_DURATION: Final = re.compile(r"([0-9]{1,9}[smh])+")
_PRICE: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")
_PRICE_CHANGE: Final = re.compile(r"[+-][0-9]{1,18}(\.[0-9]{1,18})?%?")
_BOUND: Final = re.compile(r"[0-9]{1,18}")
_WEIGHT_MAX: Final = 100
_OVERLAY_WEIGHT_MAX: Final = 10_000
_MIN_VALUES_MAX: Final = 50


def require_valid(source: str, obj: NodePool | NodeClaim | NodeOverlay) -> None:
    """Raise InputError for the first problem of `obj`, which was read from `source`."""
    match obj:
        case NodePool() as pool:
            problems = _pool_problems(pool)
        case NodeClaim() as claim:
            problems = _claim_problems(claim)
        case NodeOverlay() as overlay:
            problems = _overlay_problems(overlay)
    for field, problem in problems:
        name = f"{type(obj).__name__} {obj.name}"
        raise InputError(source, problem, object_name=name, field=field)


def _pool_problems(pool: NodePool) -> Problems:
    spec = pool.spec
    if spec.weight is not None and not 1 <= spec.weight <= _WEIGHT_MAX:
        yield "spec.weight", f"{spec.weight} is not from 1 to {_WEIGHT_MAX}"
    if spec.replicas is not None and spec.replicas < 0:
        yield "spec.replicas", f"{spec.replicas} is negative"
    yield from _amount_problems("spec.limits", spec.limits)
    yield from _disruption_problems(pool)
    yield from _template_problems(pool)


def _disruption_problems(pool: NodePool) -> Problems:
    disruption = pool.spec.disruption
    path = "spec.disruption"
    if disruption.consolidation_policy not in _POLICIES:
        policy = disruption.consolidation_policy
        yield f"{path}.consolidationPolicy", _no_choice(policy, _POLICIES)
    yield from _duration_problems(f"{path}.consolidateAfter", disruption.consolidate_after)
    for index, budget in enumerate(disruption.budgets):
        yield from _budget_problems(f"{path}.budgets[{index}]", budget)


def _budget_problems(path: str, budget: NodePoolBudget) -> Problems:
    if not _BUDGET_NODES.fullmatch(budget.nodes):
        yield f"{path}.nodes", f"{budget.nodes!r} is not a number, or a percentage up to 100%"
    if (budget.schedule is None) != (budget.duration is None):
        yield path, "schedule and duration must be stated together or not at all"
    if budget.schedule is not None and (problem := _schedule_problem(budget.schedule)):
        yield f"{path}.schedule", problem
    duration = budget.duration
    if duration is not None and not _BUDGET_DURATION.fullmatch(duration):
        yield f"{path}.duration", f"{duration!r} is not a duration such as 8h or 1h30m"
    elif duration is not None:
        yield from _length_problems(f"{path}.duration", duration)
    for index, reason in enumerate(budget.reasons or ()):
        if reason not in _REASONS:
            yield f"{path}.reasons[{index}]", _no_choice(reason, _REASONS)


def _schedule_problem(text: str) -> str:
    if text.startswith(EVERY):  # valid for CronJobs, but refused by the pattern of this field
        return f"{text!r} is an interval, not a cron expression or a name such as @daily"
    return schedule_problem(text)


def _template_problems(pool: NodePool) -> Problems:
    path, template = "spec.template", pool.spec.template
    yield from label_problems(f"{path}.metadata.labels", template.metadata.labels)
    yield from _claim_spec_problems(f"{path}.spec", template.spec)


def _claim_problems(claim: NodeClaim) -> Problems:
    yield from _claim_spec_problems("spec", claim.spec)
    for name, amounts in claim.spec.resources.items():
        yield from _amount_problems(f"spec.resources.{name}", amounts)
    status = claim.status
    yield from _amount_problems("status.capacity", status.capacity)
    yield from _amount_problems("status.allocatable", status.allocatable)
    times = {
        "metadata.creationTimestamp": claim.metadata.creation_timestamp,
        "metadata.deletionTimestamp": claim.metadata.deletion_timestamp,
        "status.lastPodEventTime": status.last_pod_event_time,
        **{
            f"status.conditions[{index}].lastTransitionTime": one.last_transition_time
            for index, one in enumerate(status.conditions)
        },
    }
    for field, text in times.items():
        if not text:
            continue
        try:
            parse_timestamp(text)
        except ValueError as cause:
            yield field, str(cause)


def _claim_spec_problems(path: str, spec: NodeClaimSpec) -> Problems:
    yield from _duration_problems(f"{path}.expireAfter", spec.expire_after)
    grace = spec.termination_grace_period
    if grace is not None:
        yield from _duration_problems(f"{path}.terminationGracePeriod", grace, allows_never=False)
    for name, taints in (("taints", spec.taints), ("startupTaints", spec.startup_taints)):
        for index, taint in enumerate(taints):
            yield from taint_problems(f"{path}.{name}[{index}]", taint)
    for index, one in enumerate(spec.requirements):
        yield from _requirement_problems(f"{path}.requirements[{index}]", one)


def _overlay_problems(overlay: NodeOverlay) -> Problems:
    spec = overlay.spec
    for index, one in enumerate(spec.requirements):
        yield from _requirement_problems(f"spec.requirements[{index}]", one)
    if spec.price is not None and not _PRICE.fullmatch(spec.price):
        yield "spec.price", f"{spec.price!r} is not a price such as 0.25"
    change = spec.price_adjustment
    if change is not None and not _PRICE_CHANGE.fullmatch(change):
        yield "spec.priceAdjustment", f"{change!r} is not a change such as +0.25 or -10%"
    for name, text in spec.capacity.items():
        for problem in amount_problems(name, text):
            yield f"spec.capacity.{name}", problem
    if spec.weight is not None and not 1 <= spec.weight <= _OVERLAY_WEIGHT_MAX:
        yield "spec.weight", f"{spec.weight} is not from 1 to {_OVERLAY_WEIGHT_MAX:,}"


def _amount_problems(path: str, amounts: ResourceList) -> Problems:
    for name, text in amounts.items():
        try:
            parse_quantity(text)
        except QuantityError as cause:
            yield f"{path}.{name}", str(cause)


def _requirement_problems(path: str, one: FlexibleRequirement) -> Problems:
    for problem in label_key_problems(one.key):
        yield f"{path}.key", problem
    for value in one.values:
        for problem in label_value_problems(value):
            yield f"{path}.values", problem
    if one.operator not in _OPERATORS:
        yield f"{path}.operator", _no_choice(one.operator, _OPERATORS)
    elif one.operator == "In" and not one.values:
        yield f"{path}.values", "is empty, but the operator is In"
    elif one.operator in _COMPARISONS and not (
        len(one.values) == 1 and _BOUND.fullmatch(one.values[0])
    ):
        yield f"{path}.values", f"is not one number, which the operator {one.operator} needs"
    if one.min_values is not None:
        most = min(len(one.values), _MIN_VALUES_MAX) if one.operator == "In" else _MIN_VALUES_MAX
        if not 1 <= one.min_values <= most:
            yield f"{path}.minValues", f"{one.min_values} is not from 1 to {most}"


def _duration_problems(path: str, text: str, *, allows_never: bool = True) -> Problems:
    if allows_never and text == NEVER:
        return
    if not _DURATION.fullmatch(text):
        problem = f"{text!r} is not a duration such as 30s, 5m or 720h"
        yield path, f"{problem}, or {NEVER}" if allows_never else problem
    else:
        yield from _length_problems(path, text)


def _length_problems(path: str, duration: str) -> Problems:
    try:
        parse_duration(duration)
    except ValueError as cause:
        yield path, str(cause)


def _no_choice(text: str, known: tuple[str, ...]) -> str:
    return f"{text!r} is not a valid value; {known_names(text, known)}"
