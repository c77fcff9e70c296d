"""OvercommittedNodes: finds nodes whose pods request more than is allocatable.

A node becomes overcommitted if two schedulers bind pods to it at the same moment, or if its kubelet
lowers what is allocatable. Then the kubelet may reject pods. An extended resource that the node
does not list does not count, because the kubelet admits pods that request it. The scheduler places
such pods if `ignoredResources` or an extender's `managedResources` tell it to ignore the resource,
or if a DeviceClass provides the resource.

upstream: kubelet/lifecycle/predicate.go: removeMissingExtendedResources
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.resource_name import is_extended_resource
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.resource_columns import PODS


class OvercommittedNodes:
    """The overcommitted nodes of a cluster; `check` updates them."""

    def __init__(self) -> None:
        """Start without overcommitted nodes."""
        self._known: dict[str, frozenset[str]] = {}

    def check(self, cluster: Cluster, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """Check the nodes `names`; yield the nodes that have become overcommitted.

        Yields (name of the node, overcommitted resources). A node is yielded again only if another
        resource becomes overcommitted, or if the node was not overcommitted in between.
        """
        for name in names:
            info = cluster.table.find(name)
            found = [] if info is None else list(_overcommitted(cluster, info))
            is_new = not self._known.get(name, frozenset()).issuperset(found)
            if found:
                self._known[name] = frozenset(found)
            else:
                self._known.pop(name, None)
            if is_new:
                yield name, found


def _overcommitted(cluster: Cluster, info: NodeInfo) -> Iterator[str]:
    """Yield the names of the resources of which the node's pods request too much."""
    names = cluster.table.resources.names
    for column, requested in enumerate(info.requested):
        offered = info.allocatable_of(column)
        if requested > offered and (offered or not _is_absent(cluster, info, names[column])):
            yield names[column]
    if len(info.pods) > info.allowed_pods:
        yield PODS


def _is_absent(cluster: Cluster, info: NodeInfo, resource: str) -> bool:
    """Return whether the kubelet of a node without any of `resource` ignores requests of it."""
    if cluster.devices.extended.class_of(resource) is not None:
        return True
    return is_extended_resource(resource) and resource not in info.node.status.allocatable
