"""Warnings about Services, Endpoints, EndpointSlices and NetworkPolicies.

upstream: pkg/api/service/warnings.go:GetWarningsForService, pkg/registry/core/endpoint,
discovery/endpointslice, networking/networkpolicy: strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.ip import parse_cidr, parse_ip

Warnings = Iterator[str]

_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_OLD_EXTERNAL_IPS: Final = (
    "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
)
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_SLICE_MANAGERS: Final = (
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
)
_ENDPOINTS_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_ENDPOINTS_MANAGER: Final = "endpoint-controller"


def service_warnings(service: Json) -> Warnings:
    """Yield warnings about deprecated and ignored fields of a Service."""
    spec, notes = service["spec"], service["metadata"].get("annotations") or {}
    if _HINTS in notes:
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
    type_ = spec.get("type")
    yield from _address_warnings(spec)
    if spec.get("externalIPs"):
        yield _OLD_EXTERNAL_IPS
    if type_ == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if type_ != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
    if spec.get("loadBalancerIP") and type_ != "LoadBalancer":
        yield 'spec.loadBalancerIP is ignored when service type is not "LoadBalancer"'


def _address_warnings(spec: Json) -> Warnings:
    address = spec.get("clusterIP")
    if address not in (None, "", "None"):
        for index, text in enumerate(spec.get("clusterIPs") or ()):
            yield from ip_warnings(f"spec.clusterIPs[{index}]", text)
    if spec.get("type") == "ClusterIP" and address == "None":
        yield from _headless_warnings(spec)
    for index, text in enumerate(spec.get("externalIPs") or ()):
        yield from ip_warnings(f"spec.externalIPs[{index}]", text)
    if spec.get("loadBalancerIP"):
        yield from ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", text)


def _headless_warnings(spec: Json) -> Warnings:
    ignored = "is ignored for headless services"
    for key in ("loadBalancerIP", "externalIPs"):
        if spec.get(key):
            yield f"spec.{key} {ignored}"
    if spec.get("sessionAffinity", "None") != "None":
        yield f"spec.SessionAffinity {ignored}"


def endpoints_warnings(endpoints: Json) -> Warnings:
    """Yield warnings about non-canonical addresses.

    There are no warnings if the endpoints controller manages the Endpoints.
    """
    labels = endpoints["metadata"].get("labels") or {}
    if labels.get(_ENDPOINTS_MANAGED_BY) == _ENDPOINTS_MANAGER:
        return
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        for key in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(key) or ()):
                yield from ip_warnings(f"subsets[{index}].{key}[{at}].ip", address.get("ip", ""))


def slice_warnings(obj: Json) -> Warnings:
    """Yield warnings about an EndpointSlice: non-canonical addresses, the address type FQDN."""
    labels = obj["metadata"].get("labels") or {}
    if obj.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    if labels.get(_MANAGED_BY) in _SLICE_MANAGERS:
        return
    for index, endpoint in enumerate(obj.get("endpoints") or ()):
        for at, address in enumerate(endpoint.get("addresses") or ()):
            yield from ip_warnings(f"endpoints[{index}].addresses[{at}]", address)


def network_policy_warnings(policy: Json) -> Warnings:
    """Yield warnings about non-canonical CIDRs in a NetworkPolicy."""
    spec = policy.get("spec") or {}
    for way, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(way) or ()):
            for number, peer in enumerate(rule.get(side) or ()):
                block, field = peer.get("ipBlock"), f"spec.{way}[{index}].{side}[{number}].ipBlock"
                if block is None:
                    continue
                yield from cidr_warnings(f"{field}.cidr", block.get("cidr") or "")
                for at, text in enumerate(block.get("except") or ()):
                    yield from cidr_warnings(f"{field}.except[{at}]", text)


# --- addresses -----------------------------------------------------------------------------------

# upstream: apimachinery/pkg/util/validation/ip.go:GetWarningsForIP, GetWarningsForCIDR


def ip_warnings(field: str, text: str) -> Warnings:
    """Yield a warning if `text` is an address in non-canonical form."""
    found = parse_ip(text)
    if found is None:
        return
    if found.is_padded or found.mapped is not None:
        why = f'is invalid: use "{found.plain}"'
        yield f'{field}: non-standard IP address "{text}" {why}'
    elif ":" in text and str(found.address) != text:
        why = f'should be in RFC 5952 canonical format ("{found.address}")'
        yield f'{field}: IPv6 address "{text}" {why}'


def cidr_warnings(field: str, text: str) -> Warnings:
    """Yield a warning if `text` is a CIDR in non-canonical form, or with host bits set."""
    found = parse_cidr(text)
    if found is None:
        return
    if found.begins_within:
        alone = f"{found.first.plain}/{found.first.address.max_prefixlen}"
        why = f'is ambiguous in this context (should be "{found.network}" or "{alone}"?)'
        yield f'{field}: CIDR value "{text}" {why}'
    if found.is_padded or found.first.mapped is not None:
        yield f'{field}: non-standard CIDR value "{text}" is invalid: use "{found.network}"'
    elif not found.begins_within and ":" in text and found.network != text:
        why = f'should be in RFC 5952 canonical format ("{found.network}")'
        yield f'{field}: IPv6 CIDR value "{text}" {why}'
