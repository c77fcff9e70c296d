"""Allocates a cluster IP for each Service, and node ports if its type needs them.

The functions raise ApiError 422 if a requested address or node port is not available. The functions
raise ApiError 500 if a requested health check node port is not available, or if no address or port
is left.

upstream: pkg/registry/core/service/storage/{alloc,storage}.go, ipallocator, portallocator
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from ipaddress import IPv4Address
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.registry.strategies.core.service_cidr import (
    free_address,
    holds,
    ranges,
    taken_addresses,
)
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.core.service import check_cluster_ips
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.field import invalid as refused

PORTS: Final = range(30_000, 32_768)
# The first ports of PORTS are allocated last, so that Services can request them.
# upstream: portallocator/allocator.go:calculateRangeOffset (min(max(16, size / 32), 128))
STATIC_PORTS: Final = 86
ALLOCATION_ORDER: Final = (*PORTS[STATIC_PORTS:], *PORTS[:STATIC_PORTS])
# The node ports that a dry run returns, none of which can be allocated. upstream:
# portallocator/operation.go:AllocateNext, ipallocator/ipallocator.go:allocateNextService
DRY_RUN_PORTS: Final = range(PORTS.stop + 1, 1 << 16)
HEADLESS: Final = "None"
EXTERNAL_NAME: Final = "ExternalName"
FAMILY: Final = "IPv4"
SINGLE: Final = "SingleStack"
REQUIRED: Final = "RequireDualStack"
_OTHER_FAMILY: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}
ON_NODES: Final = ("NodePort", "LoadBalancer")


def with_addresses(service: Json, storage: Storage, *, dry_run: bool = False) -> Json:
    """Return a new Service with its cluster IP and node ports.

    A dry run allocates nothing: it sets placeholders for the cluster IP and the node ports that
    `service` does not request. Raises ApiError 422, 500.
    """
    return addressed(service, storage, dry_run=dry_run)


def require_name(service: Json, storage: Storage) -> None:
    """Refuse a nameless Service if the server has to choose its cluster IP.

    Call this function only if the name is missing. Raises ApiError 422, or 500 if no address is
    left.
    """
    # upstream: ipallocator/ipallocator.go:createIPAddress, which Store.BeginCreate leads to
    spec = service["spec"]
    wanted = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    if spec.get("type") == EXTERNAL_NAME or wanted:
        return
    free = _free_address(storage, None)
    text = (
        f'Invalid value: [""]: failed to allocate IP: IPAddress.networking.k8s.io "{free}" is '
        "invalid: spec.parentRef.name: Required value"
    )
    namespace = service["metadata"].get("namespace", "")
    raise invalid(SERVICE, namespace, "", (Cause("FieldValueInvalid", text, "spec.clusterIPs"),))


def check_addresses(service: Json, storage: Storage, *, dry_run: bool = False) -> None:
    """Refuse a new Service that cannot get its addresses.

    A dry run does not fail when all addresses are taken. Raises ApiError 422 or 500.
    """
    with_addresses(service, storage, dry_run=dry_run)


def addressed(
    service: Json, storage: Storage, before: Json | None = None, *, dry_run: bool = False
) -> Json:
    """Return `service` with a cluster IP and node ports; missing ones are allocated.

    A Service of type ExternalName is returned unchanged. `before` is the previous spec of the
    Service. A dry run allocates nothing and sets placeholders. Raises ApiError 422, 500.
    """
    if service["spec"].get("type") == EXTERNAL_NAME:
        return service
    uid = service["metadata"].get("uid")
    others = [obj["spec"] for obj in storage.unsorted(SERVICE) if obj["metadata"].get("uid") != uid]
    spec = {**service["spec"], **_families(service, before or {})}
    address = _address(service, storage, before or {}, dry_run=dry_run)
    spec |= {"clusterIP": address, "clusterIPs": [address]}
    free = DRY_RUN_PORTS if dry_run else ALLOCATION_ORDER
    if spec.get("type") in ON_NODES:
        spec["ports"] = _ports({**service, "spec": spec}, others, free)
    if has_health_check(spec):
        spec["healthCheckNodePort"] = _health_port(spec, others, free)
    return {**service, "spec": spec}


def _families(service: Json, before: Json) -> Json:
    """Return an object with the fields `ipFamilyPolicy` and `ipFamilies` of a Service.

    `before` is the previous spec of the Service, {} for a new Service. Raises ApiError 422 if the
    IP families or cluster IPs are invalid.
    """
    # upstream: alloc.go:initIPFamilyFields
    spec = service["spec"]
    sent = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    is_bare = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy") or before.get("ipFamilyPolicy")
    policy = policy or (REQUIRED if is_bare else SINGLE)
    families = list(spec.get("ipFamilies") or ())
    found = tuple(check_cluster_ips(spec)) or tuple(_misfits(policy, sent, families))
    if not found:
        families += [FAMILY for address in sent[len(families) :] if address != HEADLESS]
        if is_bare:
            families = families or [FAMILY]
            other = _OTHER_FAMILY[families[0]]
            alone = policy == SINGLE or len(families) > 1
            return {"ipFamilyPolicy": policy, "ipFamilies": families + [other] * (not alone)}
        found = tuple(_unknown_families(policy, families))
    if found:
        meta = service["metadata"]
        raise invalid(SERVICE, meta.get("namespace", ""), meta.get("name", ""), found)
    return {"ipFamilyPolicy": policy, "ipFamilies": families or [FAMILY]}


def _misfits(policy: str, sent: list[str], families: list[str]) -> Causes:
    why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
    for values, what in ((sent, "cluster IPs"), (families, "IP families")):
        if policy == SINGLE and len(values) > 1:
            yield refused("spec.ipFamilyPolicy", policy, f"{why} {what} are specified")
    for at in range(len(families), len(sent)):
        if ":" in sent[at]:
            why = "IPv6 is not configured on this cluster"
            yield refused(f"spec.clusterIPs[{at}]", sent, why)


def _unknown_families(policy: str, families: list[str]) -> Causes:
    if policy == REQUIRED:
        why = "this cluster is not configured for dual-stack services"
        yield refused("spec.ipFamilyPolicy", policy, why)
    for at, family in enumerate(families):
        if family != FAMILY:
            yield refused(f"spec.ipFamilies[{at}]", family, "not configured on this cluster")


def has_health_check(spec: Json) -> bool:
    """Return whether a Service needs a health check node port."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _health_port(spec: Json, others: Iterable[Json], free: Sequence[int]) -> int:
    """Return the health check node port of a Service; a new port is taken from `free`.

    `others` are the specs of the other Services. Raises ApiError 500 if the requested port is not
    available, or if no port is left.
    """
    taken = taken_ports([*others, {"ports": spec.get("ports", ())}])
    number = int(spec.get("healthCheckNodePort") or 0)
    if not number:
        return next(_free_ports(free, taken, "HealthCheck NodePort"))
    why = _wrong_port(number, taken)
    if why:
        text = f"failed to allocate requested HealthCheck NodePort {number}: {why}"
        raise ApiError("InternalError", 500, f"Internal error occurred: {text}")
    return number


def _address(service: Json, storage: Storage, before: Json, *, dry_run: bool) -> str:
    """Return the cluster IP of a Service.

    `before` is the previous spec of the Service, {} for a new Service. In a dry run, a Service that
    requests no address gets the first range's network address. Raises ApiError 422, 500.
    """
    spec = service["spec"]
    wanted: str = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    if wanted in (HEADLESS, before.get("clusterIP") or HEADLESS):
        return wanted
    uid = service["metadata"].get("uid")
    if not wanted:
        return str(ranges(storage)[0].network_address) if dry_run else _free_address(storage, uid)
    why = (
        _unavailable_in_dry_run(wanted, storage) if dry_run else _unavailable(wanted, storage, uid)
    )
    if why:
        text = f'Invalid value: ["{wanted}"]: failed to allocate IP {wanted}: {why}'
        raise refused_service(service, Cause("FieldValueInvalid", text, "spec.clusterIPs"))
    return wanted


def _unavailable(wanted: str, storage: Storage, uid: str | None) -> str:
    try:
        address = IPv4Address(wanted)
    except ValueError:
        return "not a valid IP"
    if not any(holds(network, address) for network in ranges(storage)):
        return "the provided network does not match the current range"
    is_taken = wanted in taken_addresses(storage, uid)
    return "provided IP is already allocated" if is_taken else ""


def _unavailable_in_dry_run(wanted: str, storage: Storage) -> str:
    """Return the reason why a dry run refuses the address `wanted`; "" if it is accepted."""
    # upstream: cidrallocator.go:DryRun, ipallocator.go:allocateService
    try:
        address, network = IPv4Address(wanted), ranges(storage)[0]
    except ValueError:
        return "not a valid IP"
    if holds(network, address):
        return ""
    valid = f"The range of valid IPs is {network}"
    return f"the provided IP ({wanted}) is not in the valid range. {valid}"


def _free_address(storage: Storage, uid: str | None) -> str:
    found = free_address(ranges(storage), taken_addresses(storage, uid))
    if not found:
        text = "failed to allocate a serviceIP: range is full"
        raise ApiError("InternalError", 500, f"Internal error occurred: {text}")
    return found


def taken_ports(specs: Iterable[Json]) -> set[Any]:
    """Return the node ports in the Service specs `specs`; the set may also contain None."""
    taken = set()
    for spec in specs:
        taken |= {port.get("nodePort") for port in spec.get("ports") or ()}
        taken.add(spec.get("healthCheckNodePort"))
    return taken


def _ports(service: Json, others: Iterable[Json], free: Sequence[int]) -> list[Json]:
    """Return the ports of a Service with their node ports.

    `others` are the specs of the other Services. Ports with the same number and different protocols
    share a node port. New node ports are taken from `free`. Raises ApiError 422, 500.
    """
    # upstream: alloc.go:initNodePorts
    spec = service["spec"]
    wanted = spec.get("ports") or ()
    taken, chosen = taken_ports(others), dict[int, int]()
    requested = {_number(port): port["nodePort"] for port in wanted[::-1] if port.get("nodePort")}
    numbers, named = _free_ports(free, taken, "nodePort"), set(requested.values())
    unrequested = (number for number in numbers if number not in named)
    is_given = spec.get("type") != "LoadBalancer" or spec.get("allocateLoadBalancerNodePorts", True)
    ports = []
    for index, port in enumerate(wanted):
        own, before = port.get("nodePort"), chosen.get(_number(port))
        if not own and not is_given:
            ports.append(port)
            continue
        given = own or before or requested.get(_number(port))
        number = given or next(unrequested)
        if number != before:
            why = _wrong_port(given, taken) if given else ""
            if why:
                raise refused_service(
                    service, refused(f"spec.ports[{index}].nodePort", number, why)
                )
            taken.add(number)
            chosen.setdefault(_number(port), number)
        ports.append({**port, "nodePort": number})
    return ports


def _free_ports(free: Sequence[int], taken: AbstractSet[Any], what: str) -> Iterator[int]:
    """Yield the ports of `free` that are not in `taken`.

    Raises ApiError 500 after the last port; `what` is the name of the port in the error.
    """
    yield from (number for number in free if number not in taken)
    text = f"failed to allocate a {what}: range is full"
    raise ApiError("InternalError", 500, f"Internal error occurred: {text}")


def _number(port: Json) -> int:
    return int(port.get("port") or 0)


def _wrong_port(number: int, taken: set[Any]) -> str:
    if number not in PORTS:
        span = f"{PORTS[0]}-{PORTS[-1]}"
        return f"provided port is not in the valid range. The range of valid ports is {span}"
    return "provided port is already allocated" if number in taken else ""


def refused_service(service: Json, cause: Cause) -> ApiError:
    """Return ApiError 422 for a Service whose requested addresses are refused."""
    meta = service["metadata"]
    return invalid(SERVICE, meta.get("namespace", ""), meta.get("name", ""), (cause,))


def without(value: Json, *names: str) -> Json:
    """Return `value` without the fields `names`."""
    return {key: item for key, item in value.items() if key not in names}
