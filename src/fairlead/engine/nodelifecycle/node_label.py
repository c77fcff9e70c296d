"""Labels of nodes that go by two names: the copy follows the source.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:reconcileNodeLabels
"""

from __future__ import annotations

from fairlead.api.objects import Node


def stale_labels(node: Node, copies: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The labels that `node` lacks or has with another value, by `copies` of (source, copy)."""
    labels = node.metadata.labels
    return {
        copy: labels[source]
        for source, copy in copies
        if source in labels and labels.get(copy) != labels[source]
    }
