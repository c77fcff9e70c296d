"""Validates NodePools from files, as the CustomResourceDefinition of Karpenter would.

upstream: pkg/apis/crds/karpenter.sh_nodepools.yaml
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.apiserver.validation.batch.schedule import schedule_problem
from fairlead.engine.autoscaling.karpenter.apis import (
    NEVER,
    WHEN_EMPTY,
    WHEN_EMPTY_OR_UNDERUTILIZED,
    FlexibleRequirement,
    NodePool,
    NodePoolBudget,
)
from fairlead.engine.autoscaling.karpenter.disruption.budget import DRIFTED, EMPTY, UNDERUTILIZED
from fairlead.whatif.configuration.autoscaling.new_node_validation import (
    Problems,
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
_BOUND: Final = re.compile(r"[0-9]{1,18}")
_WEIGHT_MAX: Final = 100
_MIN_VALUES_MAX: Final = 50


def require_valid(source: str, pool: NodePool) -> None:
    """Raise InputError for the first problem of `pool`, which was read from `source`."""
    for field, problem in _problems(pool):
        raise InputError(source, problem, object_name=f"NodePool {pool.name}", field=field)


def _problems(pool: NodePool) -> Problems:
    spec = pool.spec
    if spec.weight is not None and not 1 <= spec.weight <= _WEIGHT_MAX:
        yield "spec.weight", f"{spec.weight} is not from 1 to {_WEIGHT_MAX}"
    if spec.replicas is not None and spec.replicas < 0:
        yield "spec.replicas", f"{spec.replicas} is negative"
    for name, text in spec.limits.items():
        try:
            parse_quantity(text)
        except QuantityError as cause:
            yield f"spec.limits.{name}", str(cause)
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
    if budget.schedule is not None and (problem := schedule_problem(budget.schedule)):
        yield f"{path}.schedule", problem
    if budget.duration is not None and not _BUDGET_DURATION.fullmatch(budget.duration):
        yield f"{path}.duration", f"{budget.duration!r} is not a duration such as 8h or 1h30m"
    for index, reason in enumerate(budget.reasons or ()):
        if reason not in _REASONS:
            yield f"{path}.reasons[{index}]", _no_choice(reason, _REASONS)


def _template_problems(pool: NodePool) -> Problems:
    path, template = "spec.template", pool.spec.template
    yield from label_problems(f"{path}.metadata.labels", template.metadata.labels)
    spec = template.spec
    yield from _duration_problems(f"{path}.spec.expireAfter", spec.expire_after)
    grace = spec.termination_grace_period
    if grace is not None and not _DURATION.fullmatch(grace):
        yield f"{path}.spec.terminationGracePeriod", _no_duration(grace)
    for name, taints in (("taints", spec.taints), ("startupTaints", spec.startup_taints)):
        for index, taint in enumerate(taints):
            yield from taint_problems(f"{path}.spec.{name}[{index}]", taint)
    for index, one in enumerate(spec.requirements):
        yield from _requirement_problems(f"{path}.spec.requirements[{index}]", one)


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


def _duration_problems(path: str, text: str) -> Problems:
    if text != NEVER and not _DURATION.fullmatch(text):
        yield path, f"{_no_duration(text)}, or {NEVER}"


def _no_duration(text: str) -> str:
    return f"{text!r} is not a duration such as 30s, 5m or 720h"


def _no_choice(text: str, known: tuple[str, ...]) -> str:
    return f"{text!r} is not a valid value; {known_names(text, known)}"
