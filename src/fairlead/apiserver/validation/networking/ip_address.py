"""IPAddresses and ServiceCIDRs.

upstream: pkg/apis/networking/validation/validation.go:ValidateIPAddress, ValidateServiceCIDR
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, invalid, required
from fairlead.apiserver.validation.meta.format import (
    IMMUTABLE,
    dns_subdomain_problems,
    path_segment_problems,
)
from fairlead.apiserver.validation.meta.ip import check_strict_cidr, check_strict_ip

RANGES_MAX: Final = 2
_TWO_FAMILIES: Final = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)


def check_ip_address(obj: Json) -> Causes:
    """An IPAddress, whose name is the address in canonical form."""
    yield from check_strict_ip("metadata.name", obj["metadata"].get("name", ""))
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        yield required("spec.parentRef")
    else:
        yield from _check_parent("spec.parentRef", parent)


def _check_parent(field: str, parent: Json) -> Causes:
    group = parent.get("group") or ""
    for problem in dns_subdomain_problems(group) if group else ():
        yield invalid(f"{field}.group", group, problem)
    for key in ("resource", "name", "namespace"):
        value = parent.get(key) or ""
        if not value and key != "namespace":
            yield required(f"{field}.{key}")
        for problem in path_segment_problems(value) if value else ():
            yield invalid(f"{field}.{key}", value, problem)


def check_service_cidr(obj: Json) -> Causes:
    """A ServiceCIDR: one CIDR, or one of each family."""
    spec = obj.get("spec") or {}
    ranges = spec.get("cidrs") or []
    if not ranges:
        yield required("spec.cidrs", "at least one CIDR required")
    elif len(ranges) > RANGES_MAX:
        yield invalid("spec.cidrs", {"CIDRs": ranges}, "may only hold up to 2 values")
    elif len(ranges) > 1 and len({":" in text for text in ranges}) < len(ranges):
        yield invalid("spec.cidrs", {"CIDRs": ranges}, _TWO_FAMILIES)
    else:
        for index, text in enumerate(ranges):
            yield from check_strict_cidr(f"spec.cidrs[{index}]", text)


def check_service_cidr_update(old: Json, new: Json) -> Causes:
    """A CIDR never changes; one of the other family can be added."""
    # upstream: validation.go:ValidateServiceCIDRUpdate
    had, has = ((one.get("spec") or {}).get("cidrs") or [] for one in (old, new))
    if len(had) > len(has) or len(has) - len(had) > 1:
        yield invalid("spec.cidrs", has, IMMUTABLE)
        return
    for index, text in enumerate(had):
        if has[index] != text:
            yield invalid(f"spec.cidrs[{index}]", has[index], IMMUTABLE)
