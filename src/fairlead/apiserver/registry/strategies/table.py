"""The strategy of each built-in kind, by resource.

The strategies of an API group are imported when one of them is first looked up. Some of their
modules import CEL or cryptography, which a simulation of nodes and pods does not need. To import
even less, several kinds of the core group have their own modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import CUSTOM, DEFAULT, ResourceStrategy

# API group: the module that contains its strategies in the table STRATEGIES.
_MODULES: Final = {
    "": "core.group",
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "apiregistration.k8s.io": "apiregistration",
    "apps": "apps",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "certificates.k8s.io": "certificates",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "networking.k8s.io": "networking",
    "node.k8s.io": "node",
    "policy": "policy",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "resource",
    "scheduling.incubator.k8s.io": "scheduling",
    "scheduling.k8s.io": "scheduling",
    "scheduling.sigs.dev": "scheduling",
    "scheduling.volcano.sh": "scheduling",
    "scheduling.x-k8s.io": "scheduling",
    "storage.k8s.io": "storage",
}
# Resource: the module that contains its strategy as STRATEGY, if the resource has its own module.
_OWN_MODULES: Final = {
    "events": "core.event",
    "namespaces": "core.namespace",
    "nodes": "core.node",
    "persistentvolumeclaims": "core.persistent_volume_claim",
    "persistentvolumes": "core.persistent_volume",
    "pods": "core.pod",
    "services": "core.service",
}


class StrategyTable(Mapping[str, ResourceStrategy]):
    """Strategies by resource (`pods`, `deployments.apps`), imported when they are looked up."""

    def __init__(
        self, variant: Callable[[str, ResourceStrategy], ResourceStrategy | None] | None = None
    ) -> None:
        """`variant` is called for each resource, and returns this table's strategy for it.

        The arguments of `variant` are the resource and the API server's strategy for this resource.
        If `variant` returns None, the table has no strategy for the resource. If there is no
        `variant`, the table has the API server's strategies.
        """
        self._variant = variant
        self._modules: set[str] = set()
        self._loaded: dict[str, ResourceStrategy] = {}

    def __getitem__(self, resource: str) -> ResourceStrategy:
        found: ResourceStrategy | None = self.get(resource)
        if found is None:
            raise KeyError(resource)
        return found

    def get(self, resource: str, default: Any = None) -> Any:
        """Return the strategy of `resource`; `default` if the table has none."""
        found = self._loaded.get(resource)
        if found is None:
            self._load(resource)
            found = self._loaded.get(resource, default)
        return found

    def __iter__(self) -> Iterator[str]:
        for group in _MODULES:
            self._load_group(group)
        for resource in _OWN_MODULES:
            self._load(resource)
        return iter(self._loaded)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load(self, resource: str) -> None:
        own = _OWN_MODULES.get(resource)
        if own is None:
            self._load_group(resource.partition(".")[2])
        elif own not in self._modules:
            self._modules.add(own)
            self._put(resource, _module(own).STRATEGY)

    def _load_group(self, group: str) -> None:
        if group in self._modules or group not in _MODULES:
            return
        self._modules.add(group)
        strategies: Mapping[str, ResourceStrategy] = _module(_MODULES[group]).STRATEGIES
        for resource, strategy in strategies.items():
            if resource.partition(".")[2] == group:
                self._put(resource, strategy)

    def _put(self, resource: str, strategy: ResourceStrategy) -> None:
        found = strategy if self._variant is None else self._variant(resource, strategy)
        if found is not None:
            self._loaded[resource] = found


def _module(name: str) -> Any:
    return import_module(f"fairlead.apiserver.registry.strategies.{name}")


STRATEGIES: Final = StrategyTable()


def strategy_of(kind: Kind) -> ResourceStrategy:
    """Return the API server's strategy of a kind; `CUSTOM` or `DEFAULT` if the kind has none."""
    return STRATEGIES.get(kind.resource) or (CUSTOM if kind.is_custom else DEFAULT)
