"""Service addresses: each service gets an IP of its own, and ports on all nodes if it wants them.

Which addresses are taken is read off the services themselves.

upstream: pkg/registry/core/service/storage/{alloc,storage}.go, ipallocator, portallocator
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.storage import Json, Storage

NETWORK: Final = IPv4Network("10.96.0.0/16")
# Kept for addresses that people choose; upstream gives out the others first.
_FIRST: Final = NETWORK.network_address + 256
_LAST: Final = NETWORK.broadcast_address - 1
PORTS: Final = range(30_000, 32_768)
HEADLESS: Final = "None"
EXTERNAL_NAME: Final = "ExternalName"
_ON_NODES: Final = ("NodePort", "LoadBalancer")
_ADDRESSED: Final = (
    "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy",
)  # fmt: skip


def with_addresses(service: Json, storage: Storage) -> Json:
    """A new service with its addresses. Raises ApiError 422 for one that is not to be had."""
    return _addressed(service, storage)


def require_name(service: Json, storage: Storage) -> None:
    """Refuse a service without a name whose address is to be chosen: it belongs to a name.

    Raises ApiError 422.
    """
    # upstream: ipallocator/ipallocator.go:createIPAddress, which Store.BeginCreate leads to
    spec = service["spec"]
    wanted = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    if spec.get("type") == EXTERNAL_NAME or wanted:
        return
    free = _free_address({other["spec"].get("clusterIP") for other in storage.unsorted(SERVICE)})
    text = (
        f'Invalid value: [""]: failed to allocate IP: IPAddress.networking.k8s.io "{free}" is '
        "invalid: spec.parentRef.name: Required value"
    )
    namespace = service["metadata"].get("namespace", "")
    raise invalid(SERVICE, namespace, "", (Cause("FieldValueInvalid", text, "spec.clusterIPs"),))


def with_kept_addresses(old: Json, new: Json, storage: Storage) -> Json:
    """A service that changes: what it has stays, unless its new type has no use for it."""
    before, spec = old["spec"], new["spec"]
    if spec.get("type") == EXTERNAL_NAME:
        return {**new, "spec": _without(spec, *_ADDRESSED, "externalTrafficPolicy")}
    if before.get("clusterIP") and not spec.get("clusterIP"):
        kept = {key: before[key] for key in ("clusterIP", "clusterIPs") if key in before}
        spec = {**spec, **kept}
    is_moved = before.get("clusterIP") not in (None, spec.get("clusterIP"))
    if is_moved and before.get("type") != EXTERNAL_NAME:
        shown = f'["{spec.get("clusterIP", "")}"]'
        text = f"Invalid value: {shown}: may not change once set"
        cause = Cause("FieldValueInvalid", text, "spec.clusterIPs[0]")
        raise _refused(new, cause)
    if spec.get("type") not in _ON_NODES:
        spec = _without(spec, "externalTrafficPolicy", "allocateLoadBalancerNodePorts")
        if before.get("type") in _ON_NODES:
            ports = [_without(port, "nodePort") for port in spec.get("ports", [])]
            spec = {**spec, "ports": ports} if ports else spec
    return _addressed({**new, "spec": spec}, storage)


def _addressed(service: Json, storage: Storage) -> Json:
    spec = service["spec"]
    if spec.get("type") == EXTERNAL_NAME:
        return service
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        text = 'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack '
        cause = Cause("FieldValueInvalid", f"{text}services", "spec.ipFamilyPolicy")
        raise _refused(service, cause)
    others = [
        obj["spec"]
        for obj in storage.unsorted(SERVICE)
        if obj["metadata"]["uid"] != service["metadata"]["uid"]
    ]
    address = _address(service, others)
    spec = {
        **spec,
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": spec.get("ipFamilies") or ["IPv4"],
        "ipFamilyPolicy": spec.get("ipFamilyPolicy") or "SingleStack",
    }
    if spec.get("type") in _ON_NODES and spec.get("allocateLoadBalancerNodePorts", True):
        spec["ports"] = _ports(service, others)
    return {**service, "spec": spec}


def _address(service: Json, others: Iterable[Json]) -> str:
    spec = service["spec"]
    wanted: str = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    taken = {other.get("clusterIP") for other in others}
    if wanted == HEADLESS:
        return HEADLESS
    if wanted:
        why = _unavailable(wanted, taken)
        if why:
            text = f'Invalid value: ["{wanted}"]: failed to allocate IP {wanted}: {why}'
            raise _refused(service, Cause("FieldValueInvalid", text, "spec.clusterIPs"))
        return wanted
    return _free_address(taken)


def _unavailable(wanted: str, taken: set[Any]) -> str:
    try:
        inside = IPv4Address(wanted) in NETWORK
    except ValueError:
        return "not a valid IP"
    if not inside:
        return "the provided network does not match the current range"
    return "provided IP is already allocated" if wanted in taken else ""


def _free_address(taken: set[Any]) -> str:
    candidate = _FIRST
    while str(candidate) in taken:
        candidate += 1
        if candidate > _LAST:
            text = "failed to allocate a serviceIP: range is full"
            raise ApiError("InternalError", 500, f"Internal error occurred: {text}")
    return str(candidate)


def _ports(service: Json, others: Iterable[Json]) -> list[Json]:
    taken = {port.get("nodePort") for other in others for port in other.get("ports", ())}
    ports = []
    for index, port in enumerate(service["spec"].get("ports", ())):
        number = port.get("nodePort")
        if number:
            _require_port(service, index, number, taken)
        else:
            number = next((free for free in PORTS if free not in taken), 0)
        taken.add(number)
        ports.append({**port, "nodePort": number})
    return ports


def _require_port(service: Json, index: int, number: int, taken: set[Any]) -> None:
    if number not in PORTS:
        why = (
            "provided port is not in the valid range. The range of valid ports is "
            f"{PORTS[0]}-{PORTS[-1]}"
        )
    elif number in taken:
        why = "provided port is already allocated"
    else:
        return
    text = f"Invalid value: {number}: {why}"
    raise _refused(service, Cause("FieldValueInvalid", text, f"spec.ports[{index}].nodePort"))


def _refused(service: Json, cause: Cause) -> ApiError:
    meta = service["metadata"]
    return invalid(SERVICE, meta["namespace"], meta["name"], (cause,))


def _without(value: Json, *names: str) -> Json:
    return {key: item for key, item in value.items() if key not in names}
