"""Our own API server with the engine behind it, for what was recorded with controllers running."""

from __future__ import annotations

from typing import Final

from fairlead.conformance.api.own_server import OwnServer
from fairlead.conformance.api.recorded_nodes import recorded_nodes
from fairlead.core.instant import seconds
from fairlead.engine.config import EngineConfig
from fairlead.kubelet.config import KubeletConfig, StopAfter
from fairlead.workloads.config import WorkloadsConfig
from fairlead.worlds.local.life import Life

# The kubelets of the recordings were scripts, and quick.
CONFIG: Final = EngineConfig(
    kubelet=KubeletConfig(start_delay=seconds(0.2), stop=StopAfter(seconds(0.3))),
    workloads=WorkloadsConfig(is_observed=True),
)


class OwnCluster(OwnServer):
    """A fresh cluster with three nodes; whatever is due happens when `settle` is called."""

    def __init__(self) -> None:
        """Begin with what every cluster has."""
        super().__init__()
        for manifest in recorded_nodes(self.now):
            self.store.put_as_is(manifest, self.now)
        self._life = Life(self.store, self.now, config=CONFIG, authority="authority")
        self.settle()

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        self._life.run_until(self.now)
