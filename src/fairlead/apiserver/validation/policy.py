"""PodDisruptionBudgets and PriorityClasses.

upstream: pkg/apis/policy/validation/validation.go, pkg/apis/scheduling/validation/validation.go
"""

from __future__ import annotations

import re
from typing import Any, Final

from fairlead.api.integer import capped_integer
from fairlead.api.objects import IntOrString, PodDisruptionBudget, PriorityClass
from fairlead.apiserver.admission.plugins.priority import SYSTEM_CLASSES
from fairlead.apiserver.validation.change_text import internal_of
from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    non_negative,
    not_supported,
)
from fairlead.apiserver.validation.pod import INT32_MAX, PREEMPTION_POLICIES
from fairlead.apiserver.validation.selector import check_label_selector

USER_PRIORITY_MAX: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_PERCENT_FORM: Final = "[0-9]+%"
_PERCENT: Final = re.compile(_PERCENT_FORM)
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT_FORM}')"
)


def check_disruption_budget(budget: PodDisruptionBudget, manifest: dict[str, Any]) -> Causes:
    """A PodDisruptionBudget; `manifest` is its JSON, for what the view leaves out."""
    spec = budget.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        shown = internal_of("policy.v1.PodDisruptionBudgetSpec", manifest["spec"])
        pointer = {"UnhealthyPodEvictionPolicy": manifest["spec"].get("unhealthyPodEvictionPolicy")}
        yield invalid("spec", shown | pointer, why)
    for key, amount in (
        ("minAvailable", spec.min_available),
        ("maxUnavailable", spec.max_unavailable),
    ):
        if amount is not None:
            yield from _check_amount(f"spec.{key}", amount)
    yield from check_label_selector("spec.selector", spec.selector)
    policy = manifest.get("spec", {}).get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in EVICTION_POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, EVICTION_POLICIES)


def _check_amount(field: str, amount: IntOrString) -> Causes:
    """A number of pods, or a percentage of them."""
    if isinstance(amount, int):
        yield from non_negative(field, amount)
    elif not _PERCENT.fullmatch(amount):
        yield invalid(field, amount, _PERCENT_RULE)
    elif capped_integer(amount[:-1], 101) > 100:
        yield invalid(field, amount, "must not be greater than 100%")


def check_priority_class(obj: PriorityClass) -> Causes:
    """A PriorityClass."""
    name = obj.metadata.name
    if name.startswith(SYSTEM_PREFIX):
        yield from _check_system_class(obj)
    elif obj.value > USER_PRIORITY_MAX:
        why = f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"
        yield forbidden("value", why)
    if obj.value < -INT32_MAX - 1:
        why = f"must be between {-INT32_MAX - 1} and {INT32_MAX}, inclusive"
        yield invalid("value", obj.value, why)
    policy = obj.preemption_policy
    if policy and policy not in PREEMPTION_POLICIES:
        yield not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES)


def check_priority_class_update(old: PriorityClass, new: PriorityClass) -> Causes:
    """A class means the same as long as it exists."""
    if old.value != new.value:
        yield forbidden("value", "may not be changed in an update.")
    if old.preemption_policy != new.preemption_policy:
        yield invalid("preemptionPolicy", new.preemption_policy, "field is immutable")


def _check_system_class(obj: PriorityClass) -> Causes:
    """The two classes of the system mean what they mean everywhere."""
    # upstream: pkg/apis/scheduling/v1/helpers.go:IsKnownSystemPriorityClass
    name = obj.metadata.name
    known = SYSTEM_CLASSES.get(name)
    if known is None:
        problem = f"{name} is not a known system priority class"
    elif obj.value != known["value"]:
        problem = f"value of {name} PriorityClass must be {known['value']}"
    elif obj.global_default:
        problem = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    why = (
        f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. "
        f"error: {problem}"
    )
    yield forbidden("metadata.name", why)
