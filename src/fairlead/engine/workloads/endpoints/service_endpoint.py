"""Endpoint: a pod behind a Service, with its addresses, conditions and ports.

A pod is an endpoint from the time when it has an address until it has finished. The conditions of
an endpoint say whether the pod is ready, serving or terminating. Pods that have different numbers
for the same named port are in different slices.

upstream: staging/src/k8s.io/endpointslice/utils.go:podToEndpoint, getEndpointPorts;
pkg/controller/endpoint/endpoints_controller.go:syncService
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import Pod, Service, ServicePort
from fairlead.api.pods.facts import is_sidecar, is_terminal, is_terminating
from fairlead.engine.workloads.pod_control.scale_down import is_ready

Ports = tuple[tuple[str, int, str, str | None], ...]  # name, port, protocol, appProtocol

HEADLESS: Final = "None"
EXTERNAL: Final = "ExternalName"
PREFER_SAME_NODE: Final = "PreferSameNode"
PREFER_ZONE: Final = ("PreferSameZone", "PreferClose", PREFER_SAME_NODE)
# With one of these annotations, upstream ignores spec.trafficDistribution.
TOPOLOGY_MODES: Final = (
    "service.kubernetes.io/topology-mode",
    "service.kubernetes.io/topology-aware-hints",
)


class Endpoint(Struct, frozen=True):
    """A pod behind a Service."""

    address: str
    node: str
    zone: str
    pod: str
    namespace: str
    uid: str
    hostname: str  # set only if the pod's subdomain is the name of the Service, otherwise ""
    is_serving: bool  # whether the pod's condition Ready is true, even if the pod is terminating
    is_terminating: bool
    is_published: bool  # whether the Service publishes addresses that are not ready
    ports: Ports
    distribution: str = ""  # the trafficDistribution of the Service, or ""

    @property
    def is_ready(self) -> bool:
        """Whether clients may open new connections to the pod."""
        return self.is_published or (self.is_serving and not self.is_terminating)

    def in_slice(self) -> Json:
        """Return the endpoint as an entry of an EndpointSlice."""
        entry: Json = {
            "addresses": [self.address],
            "conditions": {
                "ready": self.is_ready,
                "serving": self.is_serving,
                "terminating": self.is_terminating,
            },
            "targetRef": self._target(),
        }
        optional = {"hostname": self.hostname, "nodeName": self.node, "zone": self.zone}
        entry |= {key: text for key, text in optional.items() if text}
        hints = self._hints() if self.is_ready else {}
        return entry | ({"hints": hints} if hints else {})

    @property
    def is_ipv4(self) -> bool:
        """Whether the address is an IPv4 address; pods of a dump can have IPv6 addresses."""
        # upstream: endpointslice/utils.go:getEndpointAddresses, which selects by family
        return ":" not in self.address

    def _hints(self) -> Json:
        """Return the hints of the endpoint: the zone or node whose clients should use it."""
        # upstream: endpointslice/trafficdist/trafficdist.go:ReconcileHints
        hints: Json = {}
        if self.zone and self.distribution in PREFER_ZONE:
            hints["forZones"] = [{"name": self.zone}]
        if self.node and self.distribution == PREFER_SAME_NODE:
            hints["forNodes"] = [{"name": self.node}]
        return hints

    def in_subset(self) -> Json:
        """Return the endpoint as an address of an Endpoints object."""
        optional = {"hostname": self.hostname, "nodeName": self.node}
        present = {key: text for key, text in optional.items() if text}
        return {"ip": self.address, **present, "targetRef": self._target()}

    def _target(self) -> Json:
        return {"kind": "Pod", "namespace": self.namespace, "name": self.pod, "uid": self.uid}


def is_selecting(service: Service) -> bool:
    """Return whether `service` selects pods; if not, users write its endpoints."""
    return bool(service.spec.selector) and service.spec.type != EXTERNAL


def has_topology_hints(service: Service) -> bool:
    """Return whether an annotation of `service` requests topology hints."""
    notes = service.metadata.annotations
    return any(notes.get(key) in ("Auto", "auto") for key in TOPOLOGY_MODES)


def endpoint_of(service: Service, pod: Pod, zone: str) -> Endpoint | None:
    """Return the endpoint of `pod`, which `service` selects.

    `zone` is the zone of the pod's node, "" if unknown. Returns None if the pod has no address or
    has finished.
    """
    # upstream: staging/src/k8s.io/endpointslice/util/controller_utils.go:ShouldPodBeInEndpoints
    if not pod.status.pod_ip or is_terminal(pod):
        return None
    meta, spec = pod.metadata, pod.spec
    is_named = bool(spec.hostname) and spec.subdomain == service.metadata.name
    return Endpoint(
        address=pod.status.pod_ip,
        node=spec.node_name,
        zone=zone,
        pod=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        hostname=spec.hostname if is_named else "",
        is_serving=is_ready(pod),
        is_terminating=is_terminating(pod),
        is_published=service.spec.publish_not_ready_addresses,
        ports=tuple(_ports(service.spec.ports, pod)),
        distribution=_distribution(service),
    )


def _distribution(service: Service) -> str:
    # upstream: staging/src/k8s.io/endpointslice/reconciler.go:reconcileByAddressType
    return "" if has_topology_hints(service) else service.spec.traffic_distribution


def subsets_of(endpoints: Iterable[Endpoint]) -> list[Json]:
    """Return the subsets of an Endpoints object, one for each distinct set of ports.

    Terminating pods are included only if the Service has publishNotReadyAddresses set.
    """
    by_ports: dict[Ports, list[Endpoint]] = {}
    for one in endpoints:
        if not one.is_terminating or one.is_published:
            by_ports.setdefault(one.ports, []).append(one)
    subsets = []
    for ports in sorted(by_ports, key=repr):
        found = sorted(by_ports[ports], key=lambda one: (one.address, one.pod))
        subset: Json = {}
        if ready := [one.in_subset() for one in found if one.is_ready]:
            subset["addresses"] = ready
        if unready := [one.in_subset() for one in found if not one.is_ready]:
            subset["notReadyAddresses"] = unready
        if ports:
            subset["ports"] = [_unnamed(port) for port in ports_json(ports)]
        subsets.append(subset)
    return subsets


def ports_json(ports: Ports) -> list[Json]:
    """Return `ports` as JSON, in the form that EndpointSlices and Endpoints use."""
    return [
        {"name": name, "port": number, "protocol": protocol}
        | ({"appProtocol": application} if application else {})
        for name, number, protocol, application in ports
    ]


def _unnamed(port: Json) -> Json:
    return port if port["name"] else {key: part for key, part in port.items() if key != "name"}


def _ports(ports: Iterable[ServicePort], pod: Pod) -> Iterable[tuple[str, int, str, str | None]]:
    for port in ports:
        number = _number(port, pod)
        if number:
            yield port.name, number, port.protocol, port.app_protocol


def _number(port: ServicePort, pod: Pod) -> int:
    """Return the number of the pod's port to which the Service's `port` leads.

    Returns 0 if the target port is a name and the pod has no port of this name.
    """
    # upstream: pkg/api/v1/pod/util.go:FindPort
    target = port.target_port
    if isinstance(target, str):
        sidecars = filter(is_sidecar, pod.spec.init_containers)
        for container in (*pod.spec.containers, *sidecars):
            for one in container.ports:
                if (one.name, one.protocol) == (target, port.protocol):
                    return one.container_port
        return 0
    return target or port.port
