"""Leases.

upstream: pkg/apis/coordination/validation/validation.go:ValidateLeaseSpec
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.field_facts import check_fields


def check_lease(obj: Json) -> Causes:
    """A Lease."""
    yield from check_fields("spec", "coordination.v1.LeaseSpec", obj.get("spec") or {})
