"""DeviceTotals: counts a node's devices for an extended resource, and those that are in use.

Scoring strategies use these counts if a node's status.allocatable does not contain the extended
resource. The devices are those of the DeviceClass that is mapped to the resource.

upstream: plugins/noderesources/resource_allocation.go: calculateDRAResourceTotals
"""

from __future__ import annotations

from fairlead.api.objects import DeviceClass
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.dynamic_resources.device_selectors import (
    CompileError,
    DeviceSelectors,
    EvaluationError,
)
from fairlead.engine.state.devices.device_pools import EVERYWHERE, PoolDevice, is_usable_on
from fairlead.engine.state.node_info import NodeInfo


class DeviceTotals:
    """Counts devices, and invalidates the cached scores of a node when its devices change."""

    def __init__(self, handle: Handle) -> None:
        self._ledger = handle.cluster.devices
        self._related = handle.cluster.related
        self._table = handle.cluster.table
        self._selectors = DeviceSelectors()
        self._ledger.pools.subscribe(self._note)

    def of(self, resource: str, node: NodeInfo) -> tuple[int, int]:
        """Return the number of devices that provide `resource`, and how many of them are in use.

        A device is in use if a claim holds it or a share of it. Devices of incomplete pools count,
        too. Returns (0, 0) if no DeviceClass is mapped to the resource, or if a selector fails.
        """
        name = self._ledger.extended.class_of(resource)
        provider = None if name is None else self._related.get(DeviceClass, name)
        if provider is None:
            return 0, 0
        try:
            found = [
                device.id
                for pool in self._ledger.pools.on(node.node)
                for device in pool.devices
                if is_usable_on(device, node.node) and self._is_of(provider, device)
            ]
        except (CompileError, EvaluationError):
            return 0, 0
        return len(found), sum(map(self._ledger.is_allocated, found))

    def _is_of(self, provider: DeviceClass, device: PoolDevice) -> bool:
        return all(
            one.cel is not None and self._selectors.matches(one.cel.expression, device)
            for one in provider.spec.selectors
        )

    def _note(self, name: str) -> None:
        """Append the row of the node `name` to `pod_log`, or all rows if `name` is EVERYWHERE.

        The log names the rows whose scores must be computed again.
        """
        found = self._table.find(name)
        nodes = self._table.nodes() if name == EVERYWHERE else () if found is None else (found,)
        for node in nodes:
            self._table.pod_log.append(node.row)
