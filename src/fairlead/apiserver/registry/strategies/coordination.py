"""The strategy of Leases.

A simulated kubelet does not write each renewal of its Lease (`api.lease`). Therefore, a Lease gets
the time of its last renewal when it is read. Clients use this time to judge whether a node is
alive, and how old a dump is.

upstream: pkg/registry/coordination/lease/strategy.go,
pkg/apis/coordination/validation/validation.go:ValidateLeaseSpec
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.lease import RENEWED_EVERY, renewals_of
from fairlead.api.objects import Lease
from fairlead.api.timestamp import format_micro_time
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


def _with_last_renewal(lease: Json, now: int) -> Json:
    """Return `lease` with the time of its last renewal at or before `now` in spec.renewTime."""
    if RENEWED_EVERY not in (lease["metadata"].get("annotations") or {}):
        return lease
    try:
        renewals = renewals_of(decode_as(Lease, lease))
    except ValueError:  # a client may write any value
        return lease
    if renewals is None:
        return lease
    last = format_micro_time(renewals.last(now))
    return {**lease, "spec": {**lease["spec"], "renewTime": last}}


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "leases.coordination.k8s.io": ResourceStrategy(
        prepare_for_create=_prepare_for_create,
        allow_create_on_update=True,
        allow_unconditional_update=False,
        prepare_for_update=_prepare_for_update,
        decorate=_with_last_renewal,
        rules=KindRules(
            name=dns_subdomain_problems,
            accepts_any_finalizer=True,
            metadata_validations=0,
            new=json_check(check_lease),
        ),
    )
}
