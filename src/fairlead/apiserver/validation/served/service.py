"""Services and the endpoints behind them.

upstream: pkg/apis/core/validation/validation.go:ValidateService, validateEndpointSubsets,
pkg/apis/discovery/validation/validation.go
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_label_problems
from fairlead.apiserver.validation.served.form import (
    check_ip,
    check_one_of,
    check_port,
    check_port_number,
    check_unchanged,
    port_name_problems,
)

Json = dict[str, Any]

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
NONE: Final = "None"
ONLY_OUTWARD: Final = "may only be set for externally-accessible services"
_OUTWARD: Final = ("NodePort", "LoadBalancer")
_NOT_IP: Final = "must be a valid IP address"
_LOCAL_RANGES: Final = (
    ("is_unspecified", "may not be unspecified ({})"),
    ("is_loopback", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    ("is_link_local", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    ("is_multicast", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
)


def check_service(obj: Json) -> Causes:
    """A new or changed Service."""
    spec = obj["spec"]
    sort = spec.get("type", "")
    ports = spec.get("ports") or []
    headless = spec.get("clusterIP") == NONE
    if not ports and sort != "ExternalName" and not headless:
        yield required("spec.ports")
    if sort == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    yield from _check_ports(ports)
    yield from check_one_of(
        "spec.sessionAffinity", spec.get("sessionAffinity", ""), ("ClientIP", NONE)
    )
    yield from _check_addresses(spec, sort)
    for place, address in enumerate(spec.get("externalIPs") or ()):
        yield from check_ip(f"spec.externalIPs[{place}]", address)
    if sort not in TYPES:
        yield not_supported("spec.type", sort, TYPES)
    yield from _check_policies(spec, sort)
    if spec.get("loadBalancerClass") is not None and sort != "LoadBalancer":
        why = "may only be used when `type` is 'LoadBalancer'"
        yield forbidden("spec.loadBalancerClass", why)


def _check_ports(ports: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for place, port in enumerate(ports):
        field = f"spec.ports[{place}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            yield required(f"{field}.name")
        elif name:
            for problem in dns_label_problems(name):
                yield invalid(f"{field}.name", name, problem)
            if name in names:
                yield duplicate(f"{field}.name", name)
        names[name] = None
        yield from check_port_number(f"{field}.port", port["port"])
        yield from check_one_of(f"{field}.protocol", port.get("protocol", ""), PROTOCOLS)
        yield from check_port(f"{field}.targetPort", port["targetPort"])
    yield from _check_repeated(ports)


def _check_repeated(ports: list[Json]) -> Causes:
    seen: dict[tuple[str, int], None] = {}
    for place, port in enumerate(ports):
        key = (port.get("protocol", ""), port["port"])
        if key in seen:
            shown = {
                "Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1],
                "TargetPort": 0, "NodePort": 0,
            }  # fmt: skip
            yield duplicate(f"spec.ports[{place}]", shown)
        seen[key] = None


def _check_addresses(spec: Json, sort: str) -> Causes:
    # What is sent in the old field counts as the first of the new one.
    sent = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    for place, address in enumerate(sent):
        field = f"spec.clusterIPs[{place}]"
        if address == NONE:
            if sort in _OUTWARD:
                yield invalid(field, NONE, f"may not be set to 'None' for {sort} services")
        else:
            yield from check_ip(field, address)


def _check_policies(spec: Json, sort: str) -> Causes:
    outside = spec.get("externalTrafficPolicy", "")
    if outside:
        if sort not in _OUTWARD and not spec.get("externalIPs"):
            yield invalid("spec.externalTrafficPolicy", outside, ONLY_OUTWARD)
        else:
            yield from check_one_of("spec.externalTrafficPolicy", outside, ("Cluster", "Local"))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None:
        yield from check_one_of("spec.internalTrafficPolicy", inside, ("Cluster", "Local"))


def check_service_update(old: Json, new: Json) -> Causes:
    """The address stays while the Service has one."""
    before, after = old["spec"], new["spec"]
    if before.get("type") == "ExternalName" or after.get("type") == "ExternalName":
        return
    had, wants = before.get("clusterIPs") or [], after.get("clusterIPs") or []
    if had and wants and had[0] != wants[0]:
        yield invalid("spec.clusterIPs[0]", wants, "may not change once set")


def check_service_status(obj: Json) -> Causes:
    """Only a balanced Service has addresses outside."""
    ingress = (obj.get("status") or {}).get("loadBalancer", {}).get("ingress")
    if ingress and obj["spec"].get("type") != "LoadBalancer":
        why = "may only be used when `spec.type` is 'LoadBalancer'"
        yield forbidden("status.loadBalancer.ingress", why)


def check_endpoints(obj: Json) -> Causes:
    """Endpoints, the older form."""
    for place, subset in enumerate(obj.get("subsets") or ()):
        field = f"subsets[{place}]"
        lists = [subset.get(key) or [] for key in ("addresses", "notReadyAddresses")]
        if not any(lists):
            yield required(field, "must specify `addresses` or `notReadyAddresses`")
        for key, addresses in zip(("addresses", "notReadyAddresses"), lists, strict=True):
            for number, address in enumerate(addresses):
                yield from _check_endpoint(f"{field}.{key}[{number}].ip", address.get("ip", ""))
        for number, port in enumerate(subset.get("ports") or ()):
            where = f"{field}.ports[{number}]"
            if not port.get("name") and len(subset["ports"]) > 1:
                yield required(f"{where}.name")
            yield from check_port_number(f"{where}.port", port["port"])
            yield from check_one_of(f"{where}.protocol", port.get("protocol", ""), PROTOCOLS)


def _check_endpoint(field: str, text: str) -> Causes:
    problems = list(check_ip(field, text))
    yield from problems
    if problems:
        yield invalid(field, text, _NOT_IP)
        return
    address = ipaddress.ip_address(text)
    for trait, why in _LOCAL_RANGES:
        if getattr(address, trait):
            yield invalid(field, text, why.format(text))


def check_endpoint_slice(obj: Json) -> Causes:
    """An EndpointSlice."""
    sort = obj.get("addressType", "")
    if not sort:
        yield required("addressType")
    elif sort not in ADDRESS_TYPES:
        yield not_supported("addressType", sort, ADDRESS_TYPES)
    names: dict[str, None] = {}
    for place, port in enumerate(obj.get("ports") or ()):
        name = port.get("name") or ""
        for problem in port_name_problems(name) if name else ():
            yield invalid(f"ports[{place}].name", name, problem)
        if name in names:
            yield duplicate(f"ports[{place}].name", name)
        names[name] = None
        yield from check_one_of(f"ports[{place}].protocol", port.get("protocol", ""), PROTOCOLS)
    for place, endpoint in enumerate(obj.get("endpoints") or ()):
        field = f"endpoints[{place}].addresses"
        addresses = endpoint.get("addresses") or []
        if not addresses:
            yield required(field, "must contain at least 1 address")
        for number, address in enumerate(addresses):
            if sort in ("IPv4", "IPv6"):
                yield from check_ip(f"{field}[{number}]", address)


def check_endpoint_slice_update(old: Json, new: Json) -> Causes:
    """A slice has addresses of one family for ever."""
    yield from check_unchanged("addressType", old.get("addressType"), new.get("addressType"))
