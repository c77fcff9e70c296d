"""Validates PodDisruptionBudgets.

upstream: pkg/apis/policy/validation/validation.go
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import IntOrString, PodDisruptionBudget
from fairlead.api.text.integer import capped_integer
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import Causes, invalid, non_negative
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.selector import check_label_selector

_PERCENT_FORM: Final = "[0-9]+%"
_PERCENT: Final = re.compile(_PERCENT_FORM)
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT_FORM}')"
)


def check_disruption_budget(manifest: Json, budget: PodDisruptionBudget) -> Causes:
    """Yield the errors of a PodDisruptionBudget."""
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
    kind, name = "policy.v1.PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy"
    yield from check_fields("spec", kind, manifest.get("spec", {}), name)


def check_disrupted_pods(budget: PodDisruptionBudget) -> Causes:
    """Yield an error for each entry of status.disruptedPods whose time is malformed.

    An API server refuses a malformed time when it decodes the object. The typed view `budget` keeps
    the times as text, so they are checked here.
    """
    for name, text in budget.status.disrupted_pods.items():
        try:
            parse_timestamp(text)
        except ValueError as problem:
            yield invalid(f"status.disruptedPods[{name}]", text, str(problem))


def _check_amount(field: str, amount: IntOrString) -> Causes:
    """Yield the errors of a number or a percentage of pods."""
    if isinstance(amount, int):
        yield from non_negative(field, amount)
    elif not _PERCENT.fullmatch(amount):
        yield invalid(field, amount, _PERCENT_RULE)
    elif capped_integer(amount[:-1], 101) > 100:
        yield invalid(field, amount, "must not be greater than 100%")
