"""Updates of a ResourceClaim's status: allocation, consumers, devices.

An allocation is immutable, but can be removed as a whole.

upstream: pkg/apis/resource/validation/validation.go:ValidateResourceClaimStatusUpdate
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.format import check_dns_label, check_unchanged, too_many
from fairlead.apiserver.validation.resource.resource_claim import (
    check_reference,
    known_requests,
)
from fairlead.apiserver.validation.resource.resource_slice import check_driver, check_pool_name

RESERVED_MAX: Final = 256
RESULTS_MAX: Final = 32
_RESERVED: Final = "status.reservedFor"
_ALLOCATION: Final = "status.allocation"
_LATE: Final = (
    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
)


def check_claim_status(old: Json, new: Json) -> Causes:
    """The status of `new`, which replaces `old`."""
    before, after = old.get("status") or {}, new.get("status") or {}
    reserved = after.get("reservedFor") or []
    yield from _check_users(reserved)
    if reserved and after.get("allocation") is None:
        yield forbidden(_RESERVED, "may not be specified when `allocated` is not set")
    elif new["metadata"].get("deletionTimestamp"):
        had = before.get("reservedFor") or []
        if any(user not in had for user in reserved):
            yield forbidden(_RESERVED, _LATE)
    if after.get("allocation") is None:
        return
    if before.get("allocation") is not None:
        yield from check_unchanged(_ALLOCATION, before["allocation"], after["allocation"])
        return
    known = known_requests((new["spec"].get("devices") or {}).get("requests") or [])
    devices = after["allocation"].get("devices") or {}
    yield from _check_results(devices.get("results") or (), known)


def _check_users(users: list[Json]) -> Causes:
    if len(users) > RESERVED_MAX:
        yield too_many(_RESERVED, len(users), RESERVED_MAX)
    for index, user in enumerate(users[:RESERVED_MAX]):
        for key in ("resource", "name", "uid"):
            if not user.get(key):
                yield required(f"{_RESERVED}[{index}].{key}")
    ids = [user.get("uid") or "" for user in users]
    for index in sorted(repeated_indexes(ids)):
        yield duplicate(f"{_RESERVED}[{index}]", ids[index])


def _check_results(results: Iterable[Json], known: set[str]) -> Causes:
    field = f"{_ALLOCATION}.devices.results"
    results = list(results)
    if len(results) > RESULTS_MAX:
        yield too_many(field, len(results), RESULTS_MAX)
    for index, result in enumerate(results[:RESULTS_MAX]):
        at = f"{field}[{index}]"
        yield from check_reference(f"{at}.request", result.get("request") or "", known)
        yield from check_driver(f"{at}.driver", result.get("driver") or "")
        yield from check_pool_name(f"{at}.pool", result.get("pool") or "")
        yield from check_dns_label(f"{at}.device", result.get("device") or "")
