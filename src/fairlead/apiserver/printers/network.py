"""Table rows of Services, endpoints, Ingresses and network policies.

upstream: pkg/printers/internalversion/printers.go:printService, printEndpoints, ...
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json, at, items, mapping, name_of, number, text
from fairlead.apiserver.printers.age import UNKNOWN, age_of
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import (
    MORE_MAX,
    NONE,
    UNSET,
    first_few,
    labels,
    selector_text,
)


def _service(obj: Json, now: int) -> list[Cell]:
    spec = mapping(obj, "spec")
    return [
        name_of(obj),
        text(spec, "type"),
        next(iter(items(spec, "clusterIPs")), NONE),
        _external_ip(obj),
        ",".join(map(_port, items(spec, "ports"))) or NONE,
        age_of(obj, now),
        labels(mapping(spec, "selector")),
    ]


def _external_ip(obj: Json) -> str:
    spec = mapping(obj, "spec")
    external = [str(ip) for ip in items(spec, "externalIPs")]
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            balanced = _load_balancer(obj)
            both = [*(balanced.split(",") if balanced else ()), *external]
            return ",".join(both) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
        case _:
            return UNKNOWN


def _load_balancer(obj: Json) -> str:
    points = items(obj, "status", "loadBalancer", "ingress")
    return ",".join(
        sorted({text(point, "ip") or text(point, "hostname") for point in points} - {""})
    )


def _port(port: Json) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{number(port, 'port')}{node_port}/{text(port, 'protocol')}"


def _endpoints(obj: Json, now: int) -> list[Cell]:
    subsets = items(obj, "subsets")
    listed = [point for subset in subsets for point in _subset(subset)]
    return [name_of(obj), first_few(listed) if subsets else NONE, age_of(obj, now)]


def _subset(subset: Json) -> list[str]:
    ips = [text(address, "ip") for address in items(subset, "addresses")]
    ports = items(subset, "ports")
    if not ports:
        return ips
    return [f"{_bracketed(ip)}:{number(port, 'port')}" for port in ports for ip in ips]


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _endpoint_slice(obj: Json, now: int) -> list[Cell]:
    ports = [_slice_port(port) for port in items(obj, "ports")]
    points = [
        str(address)
        for endpoint in items(obj, "endpoints")
        for address in items(endpoint, "addresses")
    ]
    return [
        name_of(obj),
        text(obj, "addressType"),
        first_few(ports) or UNSET,
        first_few(points) or UNSET,
        age_of(obj, now),
    ]


def _slice_port(port: Json) -> str:
    return text(port, "port") or ("*" if port.get("name") is None else text(port, "name"))


def _ingress(obj: Json, now: int) -> list[Cell]:
    rules = items(obj, "spec", "rules")
    return [
        name_of(obj),
        text(obj, "spec", "ingressClassName") or NONE,
        _hosts(rules),
        _load_balancer(obj),
        "80, 443" if items(obj, "spec", "tls") else "80",
        age_of(obj, now),
    ]


def _hosts(rules: list[Json]) -> str:
    """Return up to MORE_MAX hosts and `+ N more...` as text; "*" if no rule has a host.

    N also counts rules without a host.
    """
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == MORE_MAX:
            return f"{','.join(hosts)} + {len(rules) - MORE_MAX} more..."
        if rule.get("host"):
            hosts.append(text(rule, "host"))
    return ",".join(hosts) or "*"


def _ingress_class(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), text(obj, "spec", "controller"), _parameters(obj), age_of(obj, now)]


def _parameters(obj: Json) -> str:
    parameters = at(obj, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    return f"{text(parameters, 'kind')}{group}/{text(parameters, 'name')}"


def _network_policy(obj: Json, now: int) -> list[Cell]:
    selected = selector_text(at(obj, "spec", "podSelector")) or NONE
    return [name_of(obj), selected, age_of(obj, now)]


def _ip_address(obj: Json, now: int) -> list[Cell]:
    parent = mapping(obj, "spec", "parentRef")
    resource = ".".join(filter(None, (text(parent, "resource"), text(parent, "group"))))
    path = (resource, text(parent, "namespace"), text(parent, "name"))
    return [name_of(obj), "/".join(filter(None, path)), age_of(obj, now)]


def _service_cidr(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), ",".join(map(str, items(obj, "spec", "cidrs"))), age_of(obj, now)]


SERVICE: Final = printer(
    "Name/name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*", _service
)
ENDPOINTS: Final = printer("Name/name, Endpoints, Age", _endpoints)
ENDPOINT_SLICE: Final = printer("Name/name, AddressType, Ports, Endpoints, Age", _endpoint_slice)
INGRESS: Final = printer("Name/name, Class, Hosts, Address, Ports, Age", _ingress)
INGRESS_CLASS: Final = printer("Name/name, Controller, Parameters, Age", _ingress_class)
NETWORK_POLICY: Final = printer("Name/name, Pod-Selector, Age", _network_policy)
IP_ADDRESS: Final = printer("Name/name, ParentRef, Age", _ip_address)
SERVICE_CIDR: Final = printer("Name/name, CIDRs, Age", _service_cidr)
