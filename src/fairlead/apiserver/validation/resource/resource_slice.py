"""Validates ResourceSlices.

upstream: pkg/apis/resource/validation/validation.go
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from fairlead.api.facts import facts_of
from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, canonical, parse_quantity
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_field, check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_qualified_name,
    check_subdomain,
    node_selector,
    too_long,
    too_many,
)
from fairlead.apiserver.validation.meta.selector import check_node_selector

POOL_LENGTH_MAX: Final = 253
_DRIVER: Final = facts_of("resource.v1.ResourceSliceSpec").fields["driver"]
NAME_LENGTH_MAX: Final = 32
TEXT_LENGTH_MAX: Final = 64
TRAITS_MAX: Final = 32
VALID_VALUES_MAX: Final = 10  # CapacityRequestPolicyDiscreteMaxOptions
BINDING_CONDITIONS_MAX: Final = 4  # BindingConditionsMaxSize, BindingFailureConditionsMaxSize
DEVICES_MAX: Final = 128
ADVANCED_DEVICES_MAX: Final = 64  # ResourceSliceMaxDevicesWithTaintsOrConsumesCounters
TAINTS_MAX: Final = 16
COUNTER_SETS_MAX: Final = 8
CONSUMED_SETS_MAX: Final = 2  # ResourceSliceMaxDeviceCounterConsumptionsPerDevice
COUNTERS_MAX: Final = 32  # of a counter set, and of the counters in it that one device consumes
_ONE_POLICY: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same'
    " time"
)
_OVERLAP: Final = "bindingFailureConditions must not overlap with bindingConditions"
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE: Final = f"exactly one of {', '.join(f'`{key}`' for key in _PLACES)} is required"
_DEVICE_PLACES: Final = _PLACES[:3]
_ONE_DEVICE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when"
    " `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set"
    " to true in the ResourceSlice spec"
)
_IDENTIFIER_FORM: Final = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER: Final = re.compile(_IDENTIFIER_FORM)
_IDENTIFIER_RULE: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    f"validation is '{_IDENTIFIER_FORM}')"
)
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
)


def check_slice(obj: Json) -> Causes:
    """Yield the errors of a ResourceSlice."""
    spec = obj["spec"]
    yield from check_driver("spec.driver", spec.get("driver", ""))
    yield from _check_pool("spec.pool", spec.get("pool") or {})
    yield from _check_place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    yield from _check_devices("spec.devices", spec)
    yield from _check_counter_sets(
        "spec.sharedCounters", spec.get("sharedCounters") or [], "name", COUNTER_SETS_MAX
    )


def check_scheduled_slice(obj: Json) -> Causes:
    """Yield those errors of a ResourceSlice that hide its devices from the scheduler.

    These are the errors in the driver, in the pool and in the selection of nodes, and missing names
    of devices. `obj` must not contain nulls.
    """
    spec = obj.get("spec") or {}
    yield from check_driver("spec.driver", spec.get("driver", ""))
    yield from _check_pool("spec.pool", spec.get("pool") or {})
    yield from _check_place(spec)
    for index, device in enumerate(spec.get("devices") or ()):
        if not device.get("name"):
            yield required(f"spec.devices[{index}].name")


def _check_devices(field: str, spec: Json) -> Causes:
    devices = spec.get("devices") or []
    is_advanced = any(one.get("taints") or one.get("consumesCounters") for one in devices)
    most = ADVANCED_DEVICES_MAX if is_advanced else DEVICES_MAX
    if len(devices) > most:
        yield too_many(field, len(devices), most)
        return
    is_per_device = bool(spec.get("perDeviceNodeSelection"))
    for index, device in enumerate(devices):
        yield from _check_device(f"{field}[{index}]", device, is_per_device=is_per_device)
    yield from _check_unique(field, [device.get("name", "") for device in devices])


def _check_unique(field: str, names: list[str]) -> Causes:
    for index in sorted(repeated_indexes(names)):
        if names[index]:
            yield duplicate(f"{field}[{index}]", names[index])


def check_driver(field: str, name: str) -> Causes:
    """Yield the errors of the name of a DRA driver."""
    yield from check_field(field, _DRIVER, name)


def check_pool_name(field: str, name: str) -> Causes:
    """Yield the errors of the name of a device pool."""
    if not name:
        yield required(field)
        return
    if len(name) > POOL_LENGTH_MAX:
        yield too_long(field, POOL_LENGTH_MAX)
    for part in name.split("/"):
        yield from check_subdomain(field, part)


def _check_pool(field: str, pool: Json) -> Causes:
    yield from check_pool_name(f"{field}.name", pool.get("name", ""))
    kind = "resource.v1.ResourcePool"
    yield from check_fields(field, kind, pool, "resourceSliceCount", "generation")


def _check_place(spec: Json) -> Causes:
    """Yield the errors of the fields that say on which nodes the slice's devices are available."""
    if spec.get("nodeName") == "":
        yield invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    elif spec.get("nodeName"):
        yield from check_subdomain("spec.nodeName", spec["nodeName"])
    selector = spec.get("nodeSelector")
    if selector is not None:
        yield from _check_one_term("spec.nodeSelector", selector)
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key) is False:
            yield invalid(f"spec.{key}", spec[key], "must be either unset or set to true")
    stated = _stated(_PLACES, spec)
    if not stated:
        yield required("spec", _ONE_PLACE)
    elif len(stated) > 1:
        why = f"{_ONE_PLACE}, but multiple fields are set"
        yield invalid("spec", f"{{{', '.join(stated)}}}", why)


def _check_device_place(field: str, device: Json, *, is_per_device: bool) -> Causes:
    """Yield the errors of the fields that select the nodes on which one device is available.

    The device may have such fields only if the slice sets `perDeviceNodeSelection`
    (`is_per_device`).
    """
    if not is_per_device:
        if any(device.get(key) is not None for key in _DEVICE_PLACES):
            yield invalid(field, None, _NO_DEVICE_PLACE)
        return
    if device.get("nodeName") == "":
        yield invalid(f"{field}.nodeName", "", "must not be empty")
    elif device.get("nodeName"):
        yield from check_subdomain(f"{field}.nodeName", device["nodeName"])
    if device.get("nodeSelector") is not None:
        where = f"{field}.nodeSelector"
        yield from check_node_selector(where, node_selector(device["nodeSelector"]))
    if device.get("allNodes") is False:
        yield invalid(
            f"{field}.allNodes", device["allNodes"], "must be either unset or set to true"
        )
    stated = _stated(_DEVICE_PLACES, device)
    if not stated:
        yield required(field, _ONE_DEVICE_PLACE)
    elif len(stated) > 1:
        yield invalid(field, f"{{{', '.join(stated)}}}", _ONE_DEVICE_PLACE)


def _stated(keys: tuple[str, ...], obj: Json) -> list[str]:
    return [f"`{key}`" for key in keys if obj.get(key) not in (None, False, "")]


def _check_one_term(field: str, selector: Json) -> Causes:
    yield from check_node_selector(field, node_selector(selector))
    terms = selector.get("nodeSelectorTerms") or []
    if len(terms) != 1:
        why = "must have exactly one node selector term"
        yield invalid(f"{field}.nodeSelectorTerms", terms, why)


def _check_device(field: str, device: Json, *, is_per_device: bool) -> Causes:
    yield from check_label(f"{field}.name", device.get("name", ""))
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    for key, attribute in attributes.items():
        yield from check_trait_name(f"{field}.attributes[{key}]", key)
        yield from _check_attribute(f"{field}.attributes[{key}]", attribute)
    is_shared = bool(device.get("allowMultipleAllocations"))
    for key, capacity in capacities.items():
        yield from check_trait_name(f"{field}.capacity[{key}]", key)
        yield from _check_capacity(f"{field}.capacity[{key}]", capacity, is_shared=is_shared)
    count = len(attributes) + len(capacities)
    if count > TRAITS_MAX:
        why = f"the total number of attributes and capacities must not exceed {TRAITS_MAX}"
        yield invalid(field, count, why)
    yield from _check_taints(f"{field}.taints", device.get("taints") or [])
    consumed = device.get("consumesCounters") or []
    yield from _check_counter_sets(
        f"{field}.consumesCounters", consumed, "counterSet", CONSUMED_SETS_MAX
    )
    yield from _check_device_place(field, device, is_per_device=is_per_device)
    yield from check_binding_conditions(field, device)


def _check_counter_sets(field: str, sets: list[Json], name_key: str, most: int) -> Causes:
    """Yield the errors of a list of counter sets.

    `most` is the maximum number of sets. `name_key` is the field that contains a set's name.

    upstream: validateCounterSet, validateDeviceCounterConsumption
    """
    if len(sets) > most:
        yield too_many(field, len(sets), most)
        return
    for index, one in enumerate(sets):
        where = f"{field}[{index}]"
        counters = one.get("counters") or {}
        yield from check_label(f"{where}.{name_key}", one.get(name_key, ""))
        if not counters:
            yield required(f"{where}.counters")
        elif len(counters) > COUNTERS_MAX:
            yield too_many(f"{where}.counters", len(counters), COUNTERS_MAX)
        else:
            for name in counters:
                yield from check_dns_label(f"{where}.counters[{name}]", name)
    yield from _check_unique(field, [one.get(name_key, "") for one in sets])


def _check_capacity(field: str, capacity: Json, *, is_shared: bool) -> Causes:
    """Yield the errors of a capacity's request policy.

    Only a device with allowMultipleAllocations (`is_shared`) may have a policy.

    upstream: validateMultiAllocatableDeviceCapacity, validateSingleAllocatableDeviceCapacity
    """
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    where = f"{field}.requestPolicy"
    if not is_shared:
        yield forbidden(where, "allowMultipleAllocations must be true")
        return
    values, valid_range = policy.get("validValues") or [], policy.get("validRange")
    default = policy.get("default")
    if values and valid_range is not None:
        yield forbidden(where, _ONE_POLICY)
        return
    stated = "validValues" if values else "validRange"
    if not values and valid_range is None:
        return
    if default is None:
        yield required(f"{where}.default", f"required when {stated} is defined")
    elif values:
        yield from _check_valid_values(f"{where}.validValues", capacity["value"], default, values)
    else:
        yield from _check_valid_range(
            f"{where}.validRange", capacity["value"], default, valid_range
        )


def _check_valid_values(field: str, capacity: str, default: str, values: list[str]) -> Causes:
    """Yield the errors of the list of values that a request policy allows.

    upstream: validateRequestPolicyValidValues
    """
    amounts, most = [parse_quantity(value) for value in values], parse_quantity(capacity)
    for index, (one, following) in enumerate(pairwise(amounts), 1):
        if one > following:
            shown = canonical(following)
            yield invalid(f"{field}[{index}]", shown, "values must be sorted in ascending order")
    if len(values) > VALID_VALUES_MAX:
        yield too_many(field, len(values), VALID_VALUES_MAX)
        return
    for index, amount in enumerate(amounts):
        if amount > most:
            why = f"option is larger than capacity value: {canonical(most)}"
            yield invalid(f"{field}[{index}]", canonical(amount), why)
    keys = [str(amount.whole) for amount in amounts]
    for index in sorted(repeated_indexes(keys)):
        yield duplicate(f"{field}[{index}]", keys[index])
    if parse_quantity(default) not in amounts:
        why = "default value is not valid according to the requestPolicy"
        yield invalid(field, canonical(parse_quantity(default)), why)


def _check_valid_range(field: str, capacity: str, default: str, valid: Json) -> Causes:
    """Yield the errors of the range of values that a request policy allows.

    upstream: validateRequestPolicyRange
    """
    if valid.get("min") is None:
        yield required(f"{field}.min", "required when validRange is defined")
        return
    most, usual = parse_quantity(capacity), parse_quantity(default)
    least, limit, step = (
        None if valid.get(key) is None else parse_quantity(valid[key])
        for key in ("min", "max", "step")
    )
    assert least is not None
    yield from _check_order(f"{field}.min", "min", least, "capacity value", most)
    if usual < least:
        why = f"default is less than min: {canonical(least)}"
        yield invalid(f"{field}.min", canonical(usual), why)
    if limit is not None:
        yield from _check_order(f"{field}.max", "min", least, "max", limit)
        yield from _check_order(f"{field}.max", "max", limit, "capacity value", most)
        if usual > limit:
            why = f"default is more than max: {canonical(limit)}"
            yield invalid(f"{field}.max", canonical(usual), why)
    if step is not None:
        yield from _check_step(
            f"{field}.step", most, least, step, [usual, *([limit] if limit else [])]
        )


def _check_order(field: str, low: str, lower: Quantity, high: str, higher: Quantity) -> Causes:
    if lower > higher:
        yield invalid(field, canonical(lower), f"{low} is larger than {high}: {canonical(higher)}")


def _check_step(
    field: str, most: Quantity, least: Quantity, step: Quantity, values: list[Quantity]
) -> Causes:
    first = Quantity(nano=least.nano + step.nano, format=least.format)
    if first > most:
        what = f"one step {canonical(first)} is larger than capacity value: {canonical(most)}"
        yield invalid(field, canonical(step), what)
    for value in values:
        # Upstream divides by a step of 0 and crashes. Here no value is a multiple of a step of 0.
        if not step.whole or (value.whole - least.whole) % step.whole:
            why = (
                f"value is not a multiple of a given step ({canonical(step)})"
                f" from ({canonical(least)})"
            )
            yield invalid(field, canonical(value), why)


def check_binding_conditions(field: str, device: Json) -> Causes:
    """Yield the errors of the binding conditions of a device in a slice or in an allocation.

    upstream: validateDeviceBindingParameters
    """
    wanted = device.get("bindingConditions") or []
    failures = device.get("bindingFailureConditions") or []
    lists = {"bindingConditions": wanted, "bindingFailureConditions": failures}
    for key, names in lists.items():
        if len(names) > BINDING_CONDITIONS_MAX:
            yield too_many(f"{field}.{key}", len(names), BINDING_CONDITIONS_MAX)
            continue
        for index, name in enumerate(names):
            yield from check_qualified_name(f"{field}.{key}[{index}]", name)
    for index in sorted(repeated_indexes(wanted)):
        yield duplicate(f"{field}.bindingConditions[{index}]", wanted[index])
    repeated = repeated_indexes(failures)
    for index, name in enumerate(failures):
        where = f"{field}.bindingFailureConditions[{index}]"
        if index in repeated:
            yield duplicate(where, name)
        if name in wanted:
            yield invalid(where, name, _OVERLAP)
    for missing, given in (tuple(lists), tuple(reversed(lists))):
        if lists[given] and not lists[missing]:
            why = f"{missing} are required to use {given}"
            yield invalid(f"{field}.{missing}", device.get(missing), why)


def check_label(field: str, name: str) -> Causes:
    """Yield the errors of a required DNS label."""
    if not name:
        yield required(field)
    else:
        yield from check_dns_label(field, name)


def check_trait_name(field: str, name: str) -> Causes:
    """Yield the errors of the name of an attribute or capacity."""
    domain, slash, short = name.rpartition("/")
    if not name:
        yield required(field, "name required")
        return
    if slash and not domain:
        yield required(field, "the domain must not be empty")
    elif slash:
        yield from check_driver(field, domain)
    if not short:
        yield required(field, "the name must not be empty")
        return
    if len(short) > NAME_LENGTH_MAX:
        yield too_long(field, NAME_LENGTH_MAX)
    if not _IDENTIFIER.fullmatch(short):
        yield invalid(field, short, _IDENTIFIER_RULE)


def _check_attribute(field: str, attribute: Json) -> Causes:
    version = attribute.get("version")
    yield from check_fields(field, "resource.v1.DeviceAttribute", attribute, "string")
    if version is not None:
        if not _VERSION.fullmatch(version):
            why = "must be a string compatible with semver.org spec 2.0.0"
            yield invalid(f"{field}.version", version, why)
        if len(version) > TEXT_LENGTH_MAX:
            yield too_long(f"{field}.version", TEXT_LENGTH_MAX)
    stated = [key for key in ("bool", "int", "string", "version") if attribute.get(key) is not None]
    if not stated:
        yield required(field, "exactly one value must be specified")
    elif len(stated) > 1:
        shown = {
            f"{key.capitalize()}Value": attribute.get(key)
            for key in ("int", "bool", "string", "version")
        }
        yield invalid(field, shown, "exactly one value must be specified")


def _check_taints(field: str, taints: list[Json]) -> Causes:
    if len(taints) > TAINTS_MAX:
        yield too_many(field, len(taints), TAINTS_MAX)
        return
    for index, taint in enumerate(taints):
        yield from check_taint(f"{field}[{index}]", taint)


def check_taint(field: str, taint: Json) -> Causes:
    """Yield the errors of a device taint (upstream: validateDeviceTaint)."""
    yield from check_qualified_name(f"{field}.key", taint.get("key", ""))
    yield from check_fields(field, "resource.v1.DeviceTaint", taint, "value", "effect")
