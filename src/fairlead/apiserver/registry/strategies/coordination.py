"""The strategy of Leases.

upstream: pkg/registry/coordination/lease/strategy.go,
pkg/apis/coordination/validation/validation.go:ValidateLeaseSpec
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

# --- validation ----------------------------------------------------------------------------------


def check_lease(obj: Json) -> Causes:
    """Yield the errors of a Lease."""
    yield from check_fields("spec", "coordination.v1.LeaseSpec", obj.get("spec") or {})


# the fields of coordinated leader election, which is off by default
_DISABLED: Final = ("strategy", "preferredHolder")


def _prepare_for_create(lease: Json, _: PreparationContext) -> Json:
    spec = lease.get("spec") or {}
    return {**lease, "spec": {key: spec[key] for key in spec if key not in _DISABLED}}


def _prepare_for_update(old: Json, new: Json, _: PreparationContext) -> Json:
    had, spec = old.get("spec") or {}, new.get("spec") or {}
    kept = {key: spec[key] for key in spec if key not in _DISABLED or key in had}
    return {**new, "spec": kept}


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "leases.coordination.k8s.io": ResourceStrategy(
        prepare_for_create=_prepare_for_create,
        allow_create_on_update=True,
        allow_unconditional_update=False,
        prepare_for_update=_prepare_for_update,
        rules=KindRules(
            name=dns_subdomain_problems,
            accepts_any_finalizer=True,
            metadata_validations=0,
            new=json_check(check_lease),
        ),
    )
}
