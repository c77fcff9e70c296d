"""Our own API server with the engine behind it, for what was recorded with controllers running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.conformance.api.own_server import OwnServer
from fairlead.core.instant import seconds
from fairlead.engine.config import EngineConfig
from fairlead.kubelet.config import KubeletConfig, StopAfter
from fairlead.workloads.config import WorkloadsConfig
from fairlead.worlds.local.life import Life
from fairlead.worlds.local.nodes import node_manifests

Json = dict[str, Any]

# The kubelets of the recordings were scripts, and quick.
CONFIG: Final = EngineConfig(
    kubelet=KubeletConfig(start_delay=seconds(0.2), stop=StopAfter(seconds(0.3))),
    workloads=WorkloadsConfig(is_observed=True),
)
ZONES: Final = ("zone-a", "zone-b", "zone-b")
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


class OwnCluster(OwnServer):
    """A fresh cluster with three nodes; whatever is due happens when `settle` is called."""

    def __init__(self) -> None:
        """Begin with what every cluster has."""
        super().__init__()
        for manifest in _nodes(self.now):
            self.store.put_as_is(manifest, self.now)
        self._life = Life(self.store, self.now, config=CONFIG, authority="authority")
        self.settle()

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        self._life.run_until(self.now)


def _nodes(now: int) -> Iterator[Json]:
    for manifest, zone in zip(node_manifests(len(ZONES), 1, now), ZONES, strict=True):
        meta = manifest["metadata"]
        labels = {**meta["labels"], "topology.kubernetes.io/zone": zone}
        if meta["name"] == "node-1":
            labels[CONTROL_PLANE] = ""
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        address = {"type": "InternalIP", "address": "127.0.0.1"}
        status = {
            **manifest["status"],
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [address],
        }
        yield {**manifest, "metadata": {**meta, "labels": labels}, "status": status}
