"""The price expander: keeps the options with the lowest score.

The score of an option is its unfitness times its price ratio. The price ratio is the price of the
new nodes divided by the price of the pods that fit these nodes. The price of a fixed small pod is
added to both prices. The unfitness is 1 for nodes with the preferred number of cores, and larger
for other nodes. The more nodes an option adds, the closer its unfitness is to 1. Nodes with a
GPU always have the unfitness 1000.

upstream: expander/price/{price,preferred}.go
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod
from fairlead.api.quantity import milli_value
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.expander.option import Option
from fairlead.engine.autoscaling.cluster_autoscaler.gpu import has_gpu

# Reduces the influence of small prices: a pod of half a core and 500 MiB.
_STABILIZATION_POD: Final = decode_as(
    Pod,
    {
        "metadata": {"name": "stabilize", "namespace": "kube-system"},
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "500Mi"}}}],
        },
    },
)
_GPU_UNFITNESS: Final = 1000.0
_NODES_DAMPED: Final = 15.0
# (largest number of nodes in the cluster for which the entry applies, preferred number of cores of
# a new node)
_PREFERRED_CORES: Final = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
_PREFERRED_CORES_MAX: Final = 32


class Cheapest:
    """Keeps the options with the lowest score; drops options whose price is unknown."""

    def __init__(self, provider: CloudProvider, cluster_nodes: int) -> None:
        """Use the prices of `provider`.

        `cluster_nodes`, the number of nodes in the cluster, determines the preferred node size.
        """
        self._provider = provider
        self._preferred = _preferred_cores(cluster_nodes)

    def best_options(self, options: Sequence[Option]) -> list[Option]:
        """Return all options with the lowest score."""
        stabilization = self._provider.pod_price(_STABILIZATION_POD)
        best: list[Option] = []
        lowest = math.inf
        for option in options:
            score = self._score(option, stabilization)
            if score is None:
                continue
            if not best or score < lowest:
                best, lowest = [], score
            if score == lowest:
                best.append(option)
        return best

    def _score(self, option: Option, stabilization: float) -> float | None:
        node = option.template.node
        node_price = self._provider.node_price(node)
        if node_price is None:
            return None
        total_pods = 0.0
        for pod in option.pods:
            total_pods += self._provider.pod_price(pod.pod)
        total_nodes = node_price * option.nodes
        ratio = (total_nodes + stabilization) / (total_pods + stabilization)
        return self._unfitness(node, option.nodes) * ratio

    def _unfitness(self, node: Node, nodes: int) -> float:
        if has_gpu(node, self._provider.gpu_label):
            return _GPU_UNFITNESS
        cores = milli_value(node.status.capacity.get("cpu", 0)) / 1000.0
        preferred = float(self._preferred)
        unfitness = max(preferred / cores, cores / preferred) if cores else math.inf
        # The more nodes an option adds, the less the size of the nodes matters.
        return (unfitness - 1.0) * (1.0 - math.tanh((nodes - 1) / _NODES_DAMPED)) + 1.0


def _preferred_cores(nodes: int) -> int:
    for most, cores in _PREFERRED_CORES:
        if nodes <= most:
            return cores
    return _PREFERRED_CORES_MAX
