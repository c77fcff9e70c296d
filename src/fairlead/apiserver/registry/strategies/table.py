"""The strategy of each built-in kind, by resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategies import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apps,
    autoscaling,
    batch,
    certificates,
    coordination,
    discovery,
    flowcontrol,
    networking,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
)
from fairlead.apiserver.registry.strategies.core import group as core
from fairlead.apiserver.registry.strategy import CUSTOM, DEFAULT, ResourceStrategy

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    resource: strategy
    for group in (
        core,
        admissionregistration,
        apiextensions,
        apiregistration,
        apps,
        autoscaling,
        batch,
        certificates,
        coordination,
        discovery,
        flowcontrol,
        networking,
        node,
        policy,
        rbac,
        resource,
        scheduling,
        storage,
    )
    for resource, strategy in group.STRATEGIES.items()
}


def strategy_of(kind: Kind) -> ResourceStrategy:
    """Returns the strategy of a kind; `CUSTOM` or `DEFAULT` if it has none of its own."""
    return STRATEGIES.get(kind.resource) or (CUSTOM if kind.is_custom else DEFAULT)
