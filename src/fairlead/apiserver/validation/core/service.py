"""Validates Services.

upstream: pkg/apis/core/validation/validation.go:ValidateService
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    IMMUTABLE,
    check_dns_label,
    check_not_special,
    check_port,
    check_port_number,
    check_qualified_name,
    check_subdomain,
)
from fairlead.apiserver.validation.meta.ip import check_cidr, check_ip
from fairlead.apiserver.validation.meta.object_meta import check_labels

FAMILIES: Final = ("IPv4", "IPv6")
_SPEC: Final = "core.v1.ServiceSpec"
NONE: Final = "None"
EXTERNAL_NAME: Final = "ExternalName"
BALANCED: Final = "LoadBalancer"
AFFINITY_MAX_S: Final = 86_400
ONLY_EXTERNALLY_ACCESSIBLE: Final = "may only be set for externally-accessible services"
SET_ONCE: Final = "may not change once set"
ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_EXTERNALLY_ACCESSIBLE: Final = ("NodePort", BALANCED)


def check_service(obj: Json) -> Causes:
    """Yield the errors of a new or changed Service."""
    spec = obj["spec"]
    ports = spec.get("ports") or []
    yield from _check_topology(obj["metadata"].get("annotations") or {})
    if not ports and spec.get("type") != EXTERNAL_NAME and not is_headless(spec):
        yield required("spec.ports")
    yield from _check_name(spec)
    yield from _check_ports(ports)
    yield from check_labels("spec.selector", spec.get("selector") or {})
    yield from _check_affinity(spec)
    yield from check_cluster_ips(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        where = f"spec.externalIPs[{index}]"
        problems = list(check_ip(where, address))
        yield from problems or check_not_special(where, address)
    type_ = spec.get("type", "")
    yield from check_fields("spec", _SPEC, spec, "type")
    yield from _check_node_ports(type_, ports)
    yield from _check_repeated(ports)
    yield from _check_balancing(obj, spec, type_)
    yield from _check_policies(spec, type_)


def is_headless(spec: Json) -> bool:
    """Return whether the Service is headless: its clusterIP is the string "None"."""
    return _sent_ips(spec) == [NONE]


def _sent_ips(spec: Json) -> list[str]:
    """Return clusterIPs. If only clusterIP is set, return a list that contains only its value."""
    # upstream: pkg/registry/core/service/storage/storage.go:normalizeClusterIPs
    return spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])


def _check_topology(annotations: Json) -> Causes:
    mode, hints = (annotations.get(key) for key in (TOPOLOGY_MODE, TOPOLOGY_HINTS))
    if mode is not None and hints is not None and mode != hints:
        why = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
        yield invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, why)


def _check_name(spec: Json) -> Causes:
    """Yield the errors of externalName, and an error for each IP field that the type forbids.

    A Service of type ExternalName needs an externalName, and must not have cluster IPs, ipFamilies
    or an ipFamilyPolicy. A Service of type NodePort or LoadBalancer must not be headless.
    """
    type_ = spec.get("type", "")
    if type_ in _EXTERNALLY_ACCESSIBLE and is_headless(spec):
        why = f"may not be set to 'None' for {type_} services"
        yield invalid("spec.clusterIPs[0]", NONE, why)
    if type_ != EXTERNAL_NAME:
        return
    why = "may not be set for ExternalName services"
    if _sent_ips(spec):
        yield forbidden("spec.clusterIPs", why)
    for key in ("ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            yield forbidden(f"spec.{key}", why)
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    else:
        yield from check_subdomain("spec.externalName", name)


def _check_ports(ports: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            yield required(f"{field}.name")
        elif name:
            yield from check_dns_label(f"{field}.name", name)
            if name in names:
                yield duplicate(f"{field}.name", name)
        names[name] = None
        yield from check_fields(field, "core.v1.ServicePort", port, "port", "protocol")
        yield from check_port(f"{field}.targetPort", port["targetPort"])
        yield from check_fields(field, "core.v1.ServicePort", port, "appProtocol")


def _check_affinity(spec: Json) -> Causes:
    type_, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    yield from check_fields("spec", _SPEC, spec, "sessionAffinity")
    field = "spec.sessionAffinityConfig"
    if type_ == NONE and config is not None:
        yield forbidden(field, "must not be set when session affinity is None")
    if type_ != "ClientIP":
        return
    why = "when session affinity type is ClientIP"
    limit_s = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
    if limit_s is None:
        yield required(f"{field}.clientIP.timeoutSeconds", why)
    elif not 0 < limit_s <= AFFINITY_MAX_S:
        text = f"must be greater than 0 and less than {AFFINITY_MAX_S}"
        yield invalid(f"{field}.clientIP.timeoutSeconds", limit_s, text)


def check_cluster_ips(spec: Json) -> Causes:
    """Yield the errors of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy."""
    # upstream: validation.go:ValidateServiceClusterIPsRelatedFields
    if spec.get("type") == EXTERNAL_NAME:
        return
    sent, first = _sent_ips(spec), spec.get("clusterIP")
    if first and sent[0] != first:
        yield invalid("spec.clusterIPs", sent, "first value must match `clusterIP`")
    if sent and not first:
        yield invalid("spec.clusterIPs", sent, "must be empty when `clusterIP` is not specified")
    families = spec.get("ipFamilies") or []
    again = repeated_indexes(families)
    for index, family in enumerate(families):
        if family not in FAMILIES:
            yield not_supported(f"spec.ipFamilies[{index}]", family, FAMILIES)
        if index in again:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    yield from check_fields("spec", _SPEC, spec, "ipFamilyPolicy")
    malformed = list(_check_forms(sent))
    yield from malformed
    if len(sent) > 2:
        yield invalid("spec.clusterIPs", sent, "may only hold up to 2 values")
    if not malformed:
        yield from _check_families(sent, families)


def _check_forms(sent: list[str]) -> Causes:
    for index, address in enumerate(sent):
        if index or address != NONE:
            yield from check_ip(f"spec.clusterIPs[{index}]", address)
        elif len(sent) > 1:
            yield invalid("spec.clusterIPs", sent, "'None' must be the first and only value")


def _check_families(sent: list[str], families: list[str]) -> Causes:
    if len(sent) > 1 and len({":" in address for address in sent}) < 2:
        why = "may specify no more than one IP for each IP family"
        yield invalid("spec.clusterIPs", sent, why)
    if sent == [NONE]:
        return
    for index, (address, family) in enumerate(zip(sent, families, strict=False)):
        if family in FAMILIES and (":" in address) != (family == "IPv6"):
            why = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid(f"spec.clusterIPs[{index}]", address, why)


def _check_node_ports(type_: str, ports: list[Json]) -> Causes:
    for index, port in enumerate(ports):
        if type_ == "ClusterIP" and port.get("nodePort"):
            why = "may not be used when `type` is 'ClusterIP'"
            yield forbidden(f"spec.ports[{index}].nodePort", why)
    seen: dict[tuple[str, int], None] = {}
    for index, port in enumerate(ports):
        number = port.get("nodePort") or 0
        key = (port.get("protocol", ""), number)
        if number and key in seen:
            yield duplicate(f"spec.ports[{index}].nodePort", number)
        seen[key] = None


def _check_repeated(ports: list[Json]) -> Causes:
    seen: dict[tuple[str, int], None] = {}
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port["port"])
        if key in seen:
            shown = {
                "Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1],
                "TargetPort": 0, "NodePort": 0,
            }  # fmt: skip
            yield duplicate(f"spec.ports[{index}]", shown)
        seen[key] = None


def _check_balancing(obj: Json, spec: Json, type_: str) -> Causes:
    """Yield the errors of the fields that only Services of type LoadBalancer may have."""
    yield from _check_source_ranges(obj, spec, type_)
    if spec.get("allocateLoadBalancerNodePorts") is not None and type_ != BALANCED:
        yield forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCED)
    if spec.get("loadBalancerClass") is None:
        return
    if type_ == BALANCED:
        yield from check_qualified_name("spec.loadBalancerClass", spec["loadBalancerClass"])
    else:
        yield forbidden("spec.loadBalancerClass", ONLY_BALANCED)


def _check_source_ranges(obj: Json, spec: Json, type_: str) -> Causes:
    ranges = spec.get("loadBalancerSourceRanges") or []
    field = "spec.LoadBalancerSourceRanges"
    named = [(f"{field}[{index}]", text) for index, text in enumerate(ranges)]
    annotation = (obj["metadata"].get("annotations") or {}).get(SOURCE_RANGES)
    if not ranges and annotation is not None:
        field = f"metadata.annotations[{SOURCE_RANGES}]"
        named = [(field, text) for text in annotation.split(",")] if annotation.strip() else []
    elif not ranges:
        return
    if type_ != BALANCED:
        yield forbidden(field, ONLY_BALANCED)
    for where, text in named:
        yield from check_cidr(where, text.strip())


def _check_policies(spec: Json, type_: str) -> Causes:
    outside = spec.get("externalTrafficPolicy", "")
    is_externally_accessible = type_ in _EXTERNALLY_ACCESSIBLE or (
        type_ == "ClusterIP" and spec.get("externalIPs")
    )
    if outside and not is_externally_accessible:
        yield invalid("spec.externalTrafficPolicy", outside, ONLY_EXTERNALLY_ACCESSIBLE)
    else:
        yield from check_fields("spec", _SPEC, spec, "externalTrafficPolicy")
    port = spec.get("healthCheckNodePort") or 0
    if port and not (type_ == BALANCED and outside == "Local"):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", port, why)
    elif port:
        yield from check_port_number("spec.healthCheckNodePort", port)
    yield from check_fields("spec", _SPEC, spec, "internalTrafficPolicy", "trafficDistribution")


def check_service_update(old: Json, new: Json) -> Causes:
    """Yield errors if an update changes immutable fields of a Service."""
    before, after = old["spec"], new["spec"]
    if before.get("type") == "ExternalName" or after.get("type") == "ExternalName":
        return
    for key in ("clusterIPs", "ipFamilies"):
        had, wants = before.get(key) or [], after.get(key) or []
        if had and wants and had[0] != wants[0]:
            yield invalid(f"spec.{key}[0]", wants, SET_ONCE)
    if before.get("type") == after.get("type") == BALANCED:
        had, wants = before.get("loadBalancerClass"), after.get("loadBalancerClass")
        if had != wants:
            yield invalid("spec.loadBalancerClass", wants, SET_ONCE)
    ports = [_health_port(spec) for spec in (before, after)]
    if None not in ports and ports[0] != ports[1]:
        yield forbidden("spec.healthCheckNodePort", IMMUTABLE)


def _health_port(spec: Json) -> int | None:
    """Return the health check node port; None if the Service needs no health check."""
    is_required = spec.get("type") == BALANCED and spec.get("externalTrafficPolicy") == "Local"
    return spec.get("healthCheckNodePort", 0) if is_required else None
