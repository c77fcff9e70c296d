"""Validates Endpoints and EndpointSlices.

upstream: pkg/apis/core/validation/validation.go:validateEndpointSubsets,
pkg/apis/discovery/validation/validation.go
"""

from __future__ import annotations

import ipaddress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    invalid,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_domain_name,
    check_label_value,
    check_not_special,
)
from fairlead.apiserver.validation.meta.ip import check_ip
from fairlead.apiserver.validation.meta.object_meta import check_labels

_LISTS: Final = ("addresses", "notReadyAddresses")


def check_endpoints(obj: Json) -> Causes:
    """Yield the errors of an Endpoints object."""
    for index, subset in enumerate(obj.get("subsets") or ()):
        field = f"subsets[{index}]"
        if not any(subset.get(key) for key in _LISTS):
            yield required(field, "must specify `addresses` or `notReadyAddresses`")
        for key in _LISTS:
            for number, address in enumerate(subset.get(key) or ()):
                yield from _check_address(f"{field}.{key}[{number}]", address)
        ports = subset.get("ports") or []
        for number, port in enumerate(ports):
            yield from _check_port(f"{field}.ports[{number}]", port, is_only=len(ports) == 1)


def _check_address(field: str, address: Json) -> Causes:
    text = address.get("ip", "")
    yield from check_ip(f"{field}.ip", text)
    yield from check_fields(field, "core.v1.EndpointAddress", address, "hostname", "nodeName")
    yield from check_not_special(f"{field}.ip", text)


def _check_port(field: str, port: Json, *, is_only: bool) -> Causes:
    name = port.get("name", "")
    if name:
        yield from check_dns_label(f"{field}.name", name)
    elif not is_only:
        yield required(f"{field}.name")
    names = ("port", "protocol", "appProtocol")
    yield from check_fields(field, "core.v1.EndpointPort", port, *names)


def check_endpoint_slice(obj: Json) -> Causes:
    """Yield the errors of an EndpointSlice."""
    type_, kind = obj.get("addressType", ""), "discovery.v1.EndpointSlice"
    yield from check_fields("", kind, obj, "addressType")
    # If a list is too long, its items are not checked.
    excess = list(check_fields("", kind, obj, "endpoints"))
    yield from excess or _check_slice_endpoints(type_, obj.get("endpoints") or [])
    excess = list(check_fields("", kind, obj, "ports"))
    yield from excess or _check_slice_ports(obj.get("ports") or [])


def _check_slice_endpoints(type_: str, endpoints: list[Json]) -> Causes:
    for index, endpoint in enumerate(endpoints):
        field = f"endpoints[{index}]"
        yield from check_fields(field, "discovery.v1.Endpoint", endpoint, "addresses")
        for number, address in enumerate(endpoint.get("addresses") or ()):
            yield from _check_slice_address(f"{field}.addresses[{number}]", type_, address)
        yield from _check_place(field, endpoint)


def _check_slice_address(field: str, type_: str, address: str) -> Causes:
    if type_ == "FQDN":
        yield from check_domain_name(field, address)
    if type_ not in ("IPv4", "IPv6"):
        return
    try:
        fits = ipaddress.ip_address(address).version == int(type_[-1])
    except ValueError:
        fits = False
    if not fits:
        yield invalid(field, address, f"must be a valid {type_} address")
    yield from check_not_special(field, address)


def _check_place(field: str, endpoint: Json) -> Causes:
    """Yield the errors of an endpoint's node name, topology, host name and zone hints."""
    yield from check_fields(field, "discovery.v1.Endpoint", endpoint, "nodeName")
    yield from check_fields(field, "discovery.v1.Endpoint", endpoint, "deprecatedTopology")
    labels = endpoint.get("deprecatedTopology") or {}
    yield from check_labels(f"{field}.deprecatedTopology", labels)
    yield from check_fields(field, "discovery.v1.Endpoint", endpoint, "hostname")
    hints, where = endpoint.get("hints") or {}, f"{field}.hints.forZones"
    excess = list(check_fields(f"{field}.hints", "discovery.v1.EndpointHints", hints, "forZones"))
    if excess:
        yield from excess
        return
    names = [zone.get("name", "") for zone in hints.get("forZones") or ()]
    again = repeated_indexes(names)
    for number, name in enumerate(names):
        if number in again:
            yield duplicate(f"{where}[{number}].name", name)
        yield from check_label_value(f"{where}[{number}].name", name)


def _check_slice_ports(ports: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for index, port in enumerate(ports):
        name = port.get("name") or ""
        if name:
            yield from check_dns_label(f"ports[{index}].name", name)
        if name in names:
            yield duplicate(f"ports[{index}].name", name)
        names[name] = None
        where = f"ports[{index}]"
        yield from check_fields(where, "discovery.v1.EndpointPort", port, "protocol", "appProtocol")
