"""Leases.

upstream: pkg/apis/coordination/validation/validation.go:ValidateLeaseSpec
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, invalid


def check_lease(obj: Json) -> Causes:
    """A Lease."""
    spec = obj.get("spec") or {}
    for key, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
        number = spec.get(key)
        if number is not None and number < least:
            bound = "greater than 0" if least else "greater than or equal to 0"
            yield invalid(f"spec.{key}", number, f"must be {bound}")
