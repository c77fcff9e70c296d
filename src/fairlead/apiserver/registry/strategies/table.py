"""The strategy of each built-in kind, by resource.

The strategies of an API group are imported when one of them is first looked up. The strategies of
definitions, policies and certificates import CEL and cryptography, which a simulation of nodes and
pods does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import CUSTOM, DEFAULT, ResourceStrategy

# API group: the module of its strategies, with a table STRATEGIES.
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


class StrategyTable(Mapping[str, ResourceStrategy]):
    """Strategies by resource (`pods`, `deployments.apps`), imported one group at a time."""

    def __init__(
        self, variant: Callable[[str, ResourceStrategy], ResourceStrategy | None] | None = None
    ) -> None:
        """`variant` maps a resource and its strategy to the strategy in this table.

        If `variant` returns None, the table has no strategy for the resource. By default, the table
        has the strategies of an API server.
        """
        self._variant = variant
        self._groups: set[str] = set()
        self._loaded: dict[str, ResourceStrategy] = {}

    def __getitem__(self, resource: str) -> ResourceStrategy:
        found: ResourceStrategy | None = self.get(resource)
        if found is None:
            raise KeyError(resource)
        return found

    def get(self, resource: str, default: Any = None) -> Any:
        """Return the strategy of `resource`; `default` if the table has none for it."""
        found = self._loaded.get(resource)
        if found is None:
            self._load(resource.partition(".")[2])
            found = self._loaded.get(resource, default)
        return found

    def __iter__(self) -> Iterator[str]:
        for group in _MODULES:
            self._load(group)
        return iter(self._loaded)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load(self, group: str) -> None:
        if group in self._groups or group not in _MODULES:
            return
        self._groups.add(group)
        module = import_module(f"fairlead.apiserver.registry.strategies.{_MODULES[group]}")
        strategies: Mapping[str, ResourceStrategy] = module.STRATEGIES
        for resource, strategy in strategies.items():
            if resource.partition(".")[2] == group:
                found = strategy if self._variant is None else self._variant(resource, strategy)
                if found is not None:
                    self._loaded[resource] = found


STRATEGIES: Final = StrategyTable()


def strategy_of(kind: Kind) -> ResourceStrategy:
    """Return the strategy of a kind; `CUSTOM` or `DEFAULT` if the kind has no own strategy."""
    return STRATEGIES.get(kind.resource) or (CUSTOM if kind.is_custom else DEFAULT)
