"""GPUs of nodes: which nodes have a GPU, and under which resource name.

upstream: utils/gpu/gpu.go
"""

from __future__ import annotations

from fairlead.api.objects import Node
from fairlead.api.quantity import whole_value
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    GPU_RESOURCES,
)


def gpu_resource(node: Node) -> str | None:
    """Return the first GPU resource that is allocatable on the node; None if there is none."""
    allocatable = node.status.allocatable
    return next((name for name in GPU_RESOURCES if whole_value(allocatable.get(name, 0)) > 0), None)


def has_gpu(node: Node, gpu_label: str) -> bool:
    """Return whether the node has the label `gpu_label` or an allocatable GPU."""
    return gpu_label in node.metadata.labels or gpu_resource(node) is not None
