"""Validates DeviceTaintRules.

upstream: pkg/apis/resource/validation/validation.go: ValidateDeviceTaintRule
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import too_many
from fairlead.apiserver.validation.resource.resource_slice import (
    check_driver,
    check_label,
    check_pool_name,
    check_taint,
)
from fairlead.apiserver.validation.status import check_status_conditions

CONDITIONS_MAX: Final = 8
_CONDITIONS: Final = "status.conditions"


def check_rule(obj: Json) -> Causes:
    """Yield the errors of a DeviceTaintRule."""
    selector = obj["spec"].get("deviceSelector") or {}
    checks = {"driver": check_driver, "pool": check_pool_name, "device": check_label}
    for key, check in checks.items():
        if selector.get(key) is not None:
            yield from check(f"spec.deviceSelector.{key}", selector[key])
    yield from check_taint("spec.taint", obj["spec"].get("taint") or {})


def check_rule_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the conditions in a DeviceTaintRule's status."""
    conditions = (new.get("status") or {}).get("conditions") or []
    yield from check_status_conditions(_CONDITIONS, conditions)
    if len(conditions) > CONDITIONS_MAX:
        yield too_many(_CONDITIONS, len(conditions), CONDITIONS_MAX)
