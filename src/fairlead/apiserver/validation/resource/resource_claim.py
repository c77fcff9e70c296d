"""Validates ResourceClaims, their templates, and DeviceClasses.

upstream: pkg/apis/resource/validation/validation.go:ValidateResourceClaim, ValidateDeviceClass
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_label_value,
    check_unchanged,
    node_selector,
    too_long,
    too_many,
)
from fairlead.apiserver.validation.meta.ip import parse_cidr
from fairlead.apiserver.validation.meta.selector import check_node_selector
from fairlead.apiserver.validation.resource.resource_slice import (
    check_binding_conditions,
    check_driver,
    check_label,
    check_pool_name,
    check_trait_name,
)
from fairlead.apiserver.validation.status import check_status_conditions
from fairlead.cel.cost.expression_estimate import estimated_cost
from fairlead.cel.device import device_size, read_selector
from fairlead.cel.error import ExpressionError

_EXACTLY_ONE_REQUIRED: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE: Final = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required,'
    " but multiple fields are set"
)
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def check_claim(obj: Json) -> Causes:
    """Yield the errors of a ResourceClaim."""
    yield from _check_devices("spec.devices", obj["spec"]["devices"])


def check_claim_template(obj: Json) -> Causes:
    """Yield the errors of a ResourceClaimTemplate."""
    yield from _check_devices("spec.spec.devices", obj["spec"]["spec"]["devices"])


def _check_devices(field: str, devices: Json) -> Causes:
    requests = devices.get("requests") or []
    yield from check_fields(field, "resource.v1.DeviceClaim", devices, "requests")
    yield from _check_named(f"{field}.requests", requests, _check_request)
    known = known_requests(requests)
    for index, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{field}.constraints[{index}]"
        yield from _check_references(f"{where}.requests", constraint.get("requests") or [], known)
        yield from _check_constraint(where, constraint)
    for index, config in enumerate(devices.get("config") or ()):
        where = f"{field}.config[{index}]"
        yield from _check_references(f"{where}.requests", config.get("requests") or [], known)
        yield from _check_config(where, config)


def _check_named(field: str, items: list[Json], check: Callable[[str, Json], Causes]) -> Causes:
    """Yield the errors of all items of a list. The items must have unique names."""
    names = [one.get("name", "") for one in items]
    again = repeated_indexes(names)
    for index, (name, one) in enumerate(zip(names, items, strict=True)):
        where = f"{field}[{index}]"
        if name and index in again:
            yield duplicate(where, name)
        yield from check_label(f"{where}.name", name)
        yield from check(where, one)


def known_requests(requests: list[Json]) -> set[str]:
    """Return the name of each request, and `request/subrequest` for each of its subrequests."""
    known = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known |= {f"{name}/{one.get('name', '')}" for one in request.get("firstAvailable") or ()}
    return known


def _check_request(field: str, request: Json) -> Causes:
    exactly, first = request.get("exactly"), request.get("firstAvailable") or []
    if first:
        yield from check_fields(field, "resource.v1.DeviceRequest", request, "firstAvailable")
        yield from _check_named(f"{field}.firstAvailable", first, _check_exact_request)
    if exactly is not None:
        yield from _check_exact_request(f"{field}.exactly", exactly)
    if exactly is None and not first:
        yield required(field, _EXACTLY_ONE_REQUIRED)
    elif exactly is not None and first:
        yield invalid(field, None, f"{_EXACTLY_ONE_REQUIRED}, but multiple fields are set")


def _check_exact_request(field: str, request: Json) -> Causes:
    yield from check_fields(field, "resource.v1.ExactDeviceRequest", request, "deviceClassName")
    yield from check_selectors(f"{field}.selectors", request.get("selectors") or [])
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count:
        why = "must not be specified when allocationMode is 'All'"
        yield invalid(f"{field}.count", count, why)
    elif mode == "ExactCount" and count <= 0:
        yield invalid(f"{field}.count", count, "must be greater than zero")
    yield from check_fields(field, "resource.v1.ExactDeviceRequest", request, "allocationMode")
    for index, toleration in enumerate(request.get("tolerations") or ()):
        yield from _check_toleration(f"{field}.tolerations[{index}]", toleration)


def _check_toleration(field: str, toleration: Json) -> Causes:
    yield from check_fields(field, "resource.v1.DeviceToleration", toleration, "key")
    value = toleration.get("value", "")
    match toleration.get("operator", ""):
        case "Exists":
            if value:
                yield invalid(f"{field}.value", value, "must be empty for operator `Exists`")
        case "Equal":
            yield from check_label_value(f"{field}.value", value)
        case _:
            yield from check_fields(field, "resource.v1.DeviceToleration", toleration, "operator")
    yield from check_fields(field, "resource.v1.DeviceToleration", toleration, "effect")


def check_reference(field: str, name: str, known: AbstractSet[str]) -> Causes:
    """Yield the errors of `name`, which must be in `known`.

    `known` contains the name of each request of a claim, and `request/subrequest` for each
    subrequest.
    """
    parts = name.split("/")
    if len(parts) > 2:
        yield invalid(field, name, _REFERENCE)
        return
    for part in parts:
        yield from check_dns_label(field, part)
    if name not in known:
        yield invalid(field, name, _REFERENCE)


def _check_references(field: str, names: list[str], known: AbstractSet[str]) -> Causes:
    for index, name in enumerate(names):
        yield from check_reference(f"{field}[{index}]", name, known)
    for index in sorted(repeated_indexes(names)):
        yield duplicate(f"{field}[{index}]", names[index])


def _check_constraint(field: str, constraint: Json) -> Causes:
    """Yield the errors of a constraint between devices (upstream: validateDeviceConstraint)."""
    for key in ("matchAttribute", "distinctAttribute"):
        name = constraint.get(key)
        if name is None:
            continue
        yield from check_trait_name(f"{field}.{key}", name)
        if name and "/" not in name:
            yield invalid(f"{field}.{key}", name, "must include a domain")
        return
    yield required(field, _ONE_ATTRIBUTE)


def _check_config(field: str, config: Json) -> Causes:
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{field}.opaque")
        return
    yield from check_driver(f"{field}.opaque.driver", opaque.get("driver", ""))
    parameters = opaque.get("parameters")
    where = f"{field}.opaque.parameters"
    if parameters is None:
        yield required(where)
    elif not isinstance(parameters, dict):
        yield invalid(where, "<value omitted>", "parameters must be a valid JSON object")


def check_class(obj: Json) -> Causes:
    """Yield the errors of a DeviceClass."""
    spec = obj["spec"]
    yield from check_selectors("spec.selectors", spec.get("selectors") or [])
    for index, config in enumerate(spec.get("config") or ()):
        yield from _check_config(f"spec.config[{index}]", config)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


# --- status --------------------------------------------------------------------------------------

# An allocation is immutable, but can be removed as a whole.
#
# upstream: pkg/apis/resource/validation/validation.go:ValidateResourceClaimStatusUpdate

RESERVED_MAX: Final = 256
RESULTS_MAX: Final = 32
CONFIGS_MAX: Final = 64  # the sum of the configurations of the class and of the claim
REFERENCES_MAX: Final = 32
CONDITIONS_MAX: Final = 8  # AllocatedDeviceStatusMaxConditions
DATA_BYTES_MAX: Final = 10 * 1024  # AllocatedDeviceStatusDataMaxLength
IPS_MAX: Final = 16
INTERFACE_LENGTH_MAX: Final = 256
HARDWARE_ADDRESS_LENGTH_MAX: Final = 128
_SHARE_ID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHARE_ID_RULE: Final = "must be a lowercase UUID in 8-4-4-4-12 format"
_RESERVED: Final = "status.reservedFor"
_ALLOCATION: Final = "status.allocation"
_DEVICES: Final = "status.devices"
_NOT_ALLOCATED: Final = "must be an allocated device in the claim"
_INTERFACE_ADDRESS: Final = (
    "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
)
_NO_NEW_ENTRIES: Final = (
    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
)


def check_claim_status(old: Json, new: Json) -> Causes:
    """Yield the errors of an update of a claim's status; `old` and `new` are whole claims."""
    before, after = old.get("status") or {}, new.get("status") or {}
    reserved = after.get("reservedFor") or []
    yield from _check_users(reserved)
    yield from _check_device_statuses(after)
    if reserved and after.get("allocation") is None:
        yield forbidden(_RESERVED, "may not be specified when `allocated` is not set")
    elif new["metadata"].get("deletionTimestamp"):
        had = before.get("reservedFor") or []
        if any(user not in had for user in reserved):
            yield forbidden(_RESERVED, _NO_NEW_ENTRIES)
    if after.get("allocation") is None:
        return
    if before.get("allocation") is not None:
        yield from check_unchanged(_ALLOCATION, before["allocation"], after["allocation"])
        return
    known = known_requests((new["spec"].get("devices") or {}).get("requests") or [])
    devices = after["allocation"].get("devices") or {}
    yield from _check_results(devices.get("results") or (), known)
    yield from _check_configs(devices.get("config") or [], known)
    if after["allocation"].get("nodeSelector") is not None:
        selector = node_selector(after["allocation"]["nodeSelector"])
        yield from check_node_selector(f"{_ALLOCATION}.nodeSelector", selector)


def _check_configs(configs: list[Json], known: set[str]) -> Causes:
    """Yield the errors of the device configurations in an allocation.

    upstream: validateDeviceAllocationConfiguration
    """
    field = f"{_ALLOCATION}.devices.config"
    if len(configs) > CONFIGS_MAX:
        yield too_many(field, len(configs), CONFIGS_MAX)
        return
    for index, config in enumerate(configs):
        at = f"{field}[{index}]"
        yield from check_fields(at, "resource.v1.DeviceAllocationConfiguration", config, "source")
        names = config.get("requests") or []
        if len(names) > REFERENCES_MAX:
            yield too_many(f"{at}.requests", len(names), REFERENCES_MAX)
        else:
            yield from _check_references(f"{at}.requests", names, known)
        yield from _check_config(at, config)


def without_deallocated(old: Json, new: Json) -> Json:
    """Return `new` without the statuses of devices that are allocated in `old` but not in `new`.

    upstream: pkg/registry/resource/resourceclaim/strategy.go: dropDeallocatedStatusDevices
    """
    before, after = old.get("status") or {}, new.get("status") or {}
    gone = {_key(one) for one in _results(before)} - {_key(one) for one in _results(after)}
    devices = after.get("devices") or []
    kept = [one for one in devices if _key(one) not in gone]
    if len(kept) == len(devices):
        return new
    return {**new, "status": {**after, "devices": kept}}


def _results(status: Json) -> list[Json]:
    devices = (status.get("allocation") or {}).get("devices") or {}
    return devices.get("results") or []


def _key(device: Json) -> tuple[str, ...]:
    """Return the key that identifies an allocated device, or a share of a device."""
    return tuple(device.get(key) or "" for key in ("driver", "pool", "device", "shareID"))


def _shown(key: tuple[str, ...]) -> Json:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), key, strict=True))


def _check_device_statuses(status: Json) -> Causes:
    """Yield the errors of the statuses that drivers report for devices."""
    allocated = {_key(one) for one in _results(status)}
    devices = status.get("devices") or []
    for index, device in enumerate(devices):
        yield from _check_device_status(f"{_DEVICES}[{index}]", device, allocated)
    keys = [_key(device) for device in devices]
    for index in sorted(repeated_indexes([*map(list, keys)])):
        yield duplicate(f"{_DEVICES}[{index}]", _shown(keys[index]))


def _check_device_status(
    field: str, device: Json, allocated: AbstractSet[tuple[str, ...]]
) -> Causes:
    """Yield the errors of a driver's status for one device (upstream: validateDeviceStatus)."""
    yield from check_driver(f"{field}.driver", device.get("driver") or "")
    yield from check_pool_name(f"{field}.pool", device.get("pool") or "")
    yield from check_label(f"{field}.device", device.get("device") or "")
    yield from _check_share(f"{field}.shareID", device.get("shareID"))
    if _key(device) not in allocated:
        yield invalid(field, _shown(_key(device)), _NOT_ALLOCATED)
    conditions = device.get("conditions") or []
    if len(conditions) > CONDITIONS_MAX:
        yield too_many(f"{field}.conditions", len(conditions), CONDITIONS_MAX)
    yield from check_status_conditions(f"{field}.conditions", conditions)
    yield from _check_data(f"{field}.data", device.get("data"))
    yield from _check_network(f"{field}.networkData", device.get("networkData") or {})


def _check_data(field: str, data: Any) -> Causes:
    """Yield the errors of the data that a driver adds to a status.

    upstream: validateRawExtension
    """
    if data is None:
        return
    if len(msgspec.json.encode(data)) > DATA_BYTES_MAX:
        yield too_long(field, DATA_BYTES_MAX)
    elif not isinstance(data, dict):
        yield invalid(field, "<value omitted>", "must be a valid JSON object")


def _check_network(field: str, network: Json) -> Causes:
    """Yield the errors of a network device's addresses (upstream: validateNetworkDeviceData)."""
    for key, most in (
        ("interfaceName", INTERFACE_LENGTH_MAX),
        ("hardwareAddress", HARDWARE_ADDRESS_LENGTH_MAX),
    ):
        if len((network.get(key) or "").encode()) > most:
            yield too_long(f"{field}.{key}", most)
    addresses = network.get("ips") or []
    if len(addresses) > IPS_MAX:
        yield too_many(f"{field}.ips", len(addresses), IPS_MAX)
        return
    for index, address in enumerate(addresses):
        parsed = parse_cidr(address)
        if parsed is None:
            yield invalid(f"{field}.ips[{index}]", address, _INTERFACE_ADDRESS)
        elif parsed.interface != address:
            why = f"must be in canonical form ({quoted(parsed.interface)})"
            yield invalid(f"{field}.ips[{index}]", address, why)
    for index in sorted(repeated_indexes(addresses)):
        yield duplicate(f"{field}.ips[{index}]", addresses[index])


def _check_share(field: str, share: str | None) -> Causes:
    if share is not None and not _SHARE_ID.fullmatch(share):
        yield invalid(field, share, _SHARE_ID_RULE)


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
        yield from check_binding_conditions(at, result)
        yield from _check_share(f"{at}.shareID", result.get("shareID"))


# --- selectors -----------------------------------------------------------------------------------

# upstream: dynamic-resource-allocation/cel/compile.go:CompileCELExpression,
# pkg/apis/resource/validation/validation.go:validateCELSelector

LENGTH_MAX: Final = 10 * 1024
SELECTORS_MAX: Final = 32
EXPRESSIONS_CACHED_MAX: Final = 1_024
COST_MAX: Final = 1_000_000


def check_selectors(field: str, selectors: list[Json]) -> Causes:
    """Yield the errors of the device selectors in a claim's request or in a DeviceClass."""
    for index, selector in enumerate(selectors):
        where = f"{field}[{index}].cel"
        if selector.get("cel") is None:
            yield required(where)
            continue
        yield from _check_expression(f"{where}.expression", selector["cel"].get("expression", ""))
    if len(selectors) > SELECTORS_MAX:
        yield too_many(field, len(selectors), SELECTORS_MAX)


def _check_expression(field: str, expression: str) -> Causes:
    if len(expression.encode()) > LENGTH_MAX:
        yield too_long(field, LENGTH_MAX)
        return
    problem, cost = _error_and_cost(expression)
    if problem:
        yield invalid(field, expression, problem)
    elif cost > COST_MAX:
        yield forbidden(field, "too complex, exceeds cost limit")


@lru_cache(maxsize=EXPRESSIONS_CACHED_MAX)
def _error_and_cost(expression: str) -> tuple[str, int]:
    """Return (error text of `expression`, highest estimated cost of the expression).

    The text is "" if the expression compiles and its type is bool or unknown. The cost is 0 if
    there is an error.
    """
    try:
        selector = read_selector(expression)
    except ExpressionError as cause:
        return cause.whole, 0
    if selector.type_.name not in ("bool", "any"):
        return f"must evaluate to bool or the unknown type, not {selector.type_.full_name}", 0
    return "", estimated_cost(selector, device_size).high
