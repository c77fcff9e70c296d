"""Containers: what they ask for and which ports they take.

upstream: pkg/apis/core/validation/validation.go:validateContainerCommon, validateContainerPorts
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import Container, ContainerPort
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_label_problems
from fairlead.apiserver.validation.resource import check_requirements

PORT_MAX: Final = 65_535
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")


def check_containers(field: str, containers: Sequence[Container], *, host_network: bool) -> Causes:
    """What each container asks for."""
    for place, container in enumerate(containers):
        where = f"{field}[{place}]"
        for number, port in enumerate(container.ports):
            place_of_port = f"{where}.ports[{number}]"
            yield from _check_port(place_of_port, port, host_network=host_network)
        yield from check_requirements(f"{where}.resources", container.resources)
        policy = container.restart_policy
        if policy and policy not in RESTART_POLICIES:
            yield not_supported(f"{where}.restartPolicy", policy, RESTART_POLICIES)


def check_names(field: str, containers: Sequence[Container], names: dict[str, None]) -> Causes:
    """Names, where there are some, tell the containers of a pod apart; `names` gathers them."""
    for place, container in enumerate(containers):
        where = f"{field}[{place}].name"
        if container.name in names:
            yield duplicate(where, container.name)
        for problem in dns_label_problems(container.name) if container.name else ():
            yield invalid(where, container.name, problem)
        if container.name:
            names[container.name] = None


def check_runnable(field: str, containers: Sequence[Container]) -> Causes:
    """What a kubelet needs to start a container."""
    for place, container in enumerate(containers):
        if not container.name:
            yield required(f"{field}[{place}].name")
        if not container.image:
            yield required(f"{field}[{place}].image")


def _check_port(field: str, port: ContainerPort, *, host_network: bool) -> Causes:
    if not port.container_port:
        yield required(f"{field}.containerPort")
    else:
        yield from _check_number(f"{field}.containerPort", port.container_port)
    if port.host_port:
        yield from _check_number(f"{field}.hostPort", port.host_port)
        if host_network and port.host_port != port.container_port:
            why = "must match `containerPort` when `hostNetwork` is true"
            yield invalid(f"{field}.hostPort", port.host_port, why)
    if port.protocol not in PROTOCOLS:
        yield not_supported(f"{field}.protocol", port.protocol, PROTOCOLS)


def _check_number(field: str, number: int) -> Causes:
    if not 1 <= number <= PORT_MAX:
        yield invalid(field, number, f"must be between 1 and {PORT_MAX}, inclusive")
