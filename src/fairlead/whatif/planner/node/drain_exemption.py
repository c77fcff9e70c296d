"""Nodes that no plan drains: virtual nodes, and nodes that are being deleted.

A virtual node has no machine of its own to upgrade.
"""

from __future__ import annotations

from fairlead.api.objects import Node
from fairlead.api.well_known_label import virtual_words


def drain_exemption(node: Node) -> str:
    """Return why no plan drains `node`; "" if plans may drain it."""
    return virtual_words(node.metadata.labels) or deletion_words(node)


def deletion_words(node: Node) -> str:
    """Return a clause about the deletion of `node`; "" if `node` is not being deleted.

    The clause names the finalizers for which the deletion waits.
    """
    meta = node.metadata
    if not meta.deletion_timestamp:
        return ""
    waits = f", and waits for finalizer {' and '.join(meta.finalizers)}" if meta.finalizers else ""
    return f"it is being deleted{waits}"
