"""The ranges of Service addresses: the IPv4 CIDRs of ServiceCIDRs, or else 10.96.0.0/16.

A range is in use if a ServiceCIDR lists the range, and this ServiceCIDR is ready and not
terminating. The first addresses of a range are reserved for Services that request a specific
address. A Service that requests no address gets a reserved one only when the rest of the range is
taken. An address is taken if an IPAddress exists for it, or if it is the cluster IP of a Service.

There are two differences from upstream. First, the search for a free address begins with the
ServiceCIDR `kubernetes`, and tries the addresses of a range in ascending order; upstream starts at
a random address. Second, while no ServiceCIDR is ready, the ranges of all ServiceCIDRs are used;
upstream responds with 500 in this case.

upstream: pkg/registry/core/service/ipallocator/{cidrallocator,ipallocator}.go,
pkg/api/servicecidr/servicecidr.go:PrefixContainsIP
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import SERVICE, kind_of
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.meta.ip import parse_cidr

SERVICE_CIDR: Final = kind_of({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR"})
IP_ADDRESS: Final = kind_of({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress"})
NETWORK: Final = IPv4Network("10.96.0.0/16")
OWN_RANGE: Final = "kubernetes"
_OFFSET_MIN: Final = 16
_OFFSET_MAX: Final = 256
_OFFSET_DIVISOR: Final = 16


def ranges(storage: Storage) -> list[IPv4Network]:
    """Return the ranges from which cluster IPs are allocated; there is at least one."""
    known = sorted(storage.unsorted(SERVICE_CIDR), key=_sort_key)
    return _networks(filter(_is_ready, known)) or _networks(known) or [NETWORK]


def networks_of(service_cidr: Json) -> list[IPv4Network | IPv6Network]:
    """Return the ranges of a ServiceCIDR.

    Malformed ranges are left out. The API server refuses them, but a dump can contain them.
    """
    texts = (service_cidr.get("spec") or {}).get("cidrs") or ()
    found = (parse_cidr(text) for text in texts if isinstance(text, str))
    return [ip_network(one.network) for one in found if one is not None]


def _networks(known: Iterable[Json]) -> list[IPv4Network]:
    found = dict.fromkeys(network for one in known for network in networks_of(one))
    return [network for network in found if isinstance(network, IPv4Network)]


def holds(network: IPv4Network, address: IPv4Address) -> bool:
    """Return whether `address` is a host address in the range `network`."""
    ends = (network.network_address, network.broadcast_address)
    return address in network and address not in ends


def taken_addresses(storage: Storage, uid: str | None) -> set[str]:
    """Return the addresses of all IPAddresses, and of all Services whose uid differs from `uid`."""
    taken = {name for (_, name), _ in storage.stored_items(IP_ADDRESS)}
    for service in storage.unsorted(SERVICE):
        if service["metadata"].get("uid") != uid:
            taken |= addresses_of(service)
    return taken


def addresses_of(service: Json) -> set[str]:
    """Return the cluster IPs of a Service."""
    spec = service.get("spec") or {}
    found = {spec.get("clusterIP"), *(spec.get("clusterIPs") or ())}
    return {text for text in found if text and text != "None"}


def free_address(networks: list[IPv4Network], taken: set[str]) -> str:
    """Return a free address in one of `networks`; "" if all addresses are taken."""
    for network in networks:
        for candidate in _candidates(network):
            if str(candidate) not in taken:
                return str(candidate)
    return ""


def _candidates(network: IPv4Network) -> Iterator[IPv4Address]:
    first, last = network.network_address + 1, network.broadcast_address - 1
    chosen = first + _range_offset(network)
    for start, end in ((chosen, last), (first, chosen - 1)):
        yield from map(IPv4Address, range(int(start), int(end) + 1))


def _range_offset(network: IPv4Network) -> int:
    """Return how many addresses at the start of `network` are reserved for explicit requests."""
    # upstream: ipallocator.go:calculateRangeOffset
    if network.num_addresses <= _OFFSET_MIN:
        return 0
    return min(max(network.num_addresses // _OFFSET_DIVISOR, _OFFSET_MIN), _OFFSET_MAX)


def _sort_key(obj: Json) -> tuple[bool, str]:
    name = obj["metadata"]["name"]
    return name != OWN_RANGE, name


def _is_ready(obj: Json) -> bool:
    if obj["metadata"].get("deletionTimestamp"):
        return False
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return True  # without a condition: the controller has not set it yet
