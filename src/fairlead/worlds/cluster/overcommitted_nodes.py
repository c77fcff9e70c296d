"""OvercommittedNodes: finds nodes whose pods request more than is allocatable.

A node becomes overcommitted if two schedulers bind pods to it at the same moment, or if its kubelet
lowers what is allocatable. The kubelet of an overcommitted node may reject pods. An extended
resource that the node does not list does not count, because the kubelet admits pods that request
it. The scheduler places such pods if `ignoredResources` or an extender's `managedResources` tell it
to ignore the resource, or if a DeviceClass provides the resource.

The changed nodes are read from the change logs of the engine's state, not from the stimuli. The
reason is that an engine can apply a change some time after it has received the stimulus
(`VersionOrder`).

upstream: kubelet/lifecycle/predicate.go: removeMissingExtendedResources
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.resource_name import is_extended_resource
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.resource_columns import PODS


class OvercommittedNodes:
    """The overcommitted nodes of a cluster; `check` updates them."""

    def __init__(self) -> None:
        """Start without overcommitted nodes."""
        self._known: dict[str, frozenset[str]] = {}
        # The positions in the logs of changed nodes and pods up to which nodes have been checked.
        self._read: tuple[int, int] | None = None

    def check(self, cluster: Cluster) -> list[tuple[str, list[str]]]:
        """Check the nodes that have changed since the last call.

        Return the nodes on which a resource is overcommitted now, but was not when the node was
        checked last. An entry is (name of the node, all its overcommitted resources). The first
        call returns [], because it has no earlier call to compare with.
        """
        found, table = [], cluster.table
        self._known = {name: one for name, one in self._known.items() if table.find(name)}
        for info in self._changed(table):
            resources = list(_overcommitted(cluster, info))
            is_new = not self._known.get(info.name, frozenset()).issuperset(resources)
            if resources:
                self._known[info.name] = frozenset(resources)
            else:
                self._known.pop(info.name, None)
            if is_new:
                found.append((info.name, resources))
        return found

    def _changed(self, table: NodeTable) -> list[NodeInfo]:
        """Return the nodes that have changed since the last call.

        Returns [] on the first call. Returns all nodes if the change logs of `table` no longer
        contain all changes since the last call.
        """
        read, self._read = self._read, (table.node_log.position, table.pod_log.position)
        if read is None:
            return []
        nodes, pods = table.node_log.since(read[0]), table.pod_log.since(read[1])
        if nodes is None or pods is None:
            return list(table.nodes())
        return [table.at(row) for row in dict.fromkeys((*nodes, *pods)) if table.alive[row]]


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
    """Return whether the kubelet of the node `info` ignores the requests of pods for `resource`.

    Call this method only if the node's allocatable amount of `resource` is 0 or missing.
    """
    if cluster.devices.extended.class_of(resource) is not None:
        return True
    return is_extended_resource(resource) and resource not in info.node.status.allocatable
