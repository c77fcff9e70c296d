"""NodeChanges: what the other steps of a change do to nodes and pods before the descheduler runs.

The descheduler runs at the same simulated time as these steps, but after them. New nodes are Ready
by then. Drained nodes are cordoned, and their pods are terminating. The taints that controllers add
later are not there yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import at
from fairlead.api.objects import ApiObject, Node, NodeCondition, Pod
from fairlead.api.pods.facts import is_daemon_pod, is_static, is_terminal, is_terminating
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.command import Command, CreateObject, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.well_known import NOT_READY
from fairlead.engine.workloads.node_annotation import DRAIN, REQUESTED

_READY: Final = "Ready"


class NodeChanges(Struct, frozen=True):
    """The names of the nodes that are created, cordoned and drained.

    Drained nodes are in `cordoned`, too.
    """

    created: frozenset[str] = frozenset()
    cordoned: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()

    def applied(self, before: ApiObject, now: Instant) -> ApiObject:
        """Return the node or pod `before` as the descheduler sees it; `now` is the present time."""
        match before:
            case Node():
                return self._node(before)
            case Pod() if before.spec.node_name in self.drained and _is_drained(before):
                metadata = replace(before.metadata, deletion_timestamp=format_timestamp(now))
                return replace(before, metadata=metadata)
        return before

    def _node(self, node: Node) -> Node:
        name = node.metadata.name
        if name in self.cordoned:
            node = replace(node, spec=replace(node.spec, unschedulable=True))
        if name not in self.created:
            return node
        others = [one for one in node.status.conditions if one.type != _READY]
        conditions = (*others, NodeCondition(type=_READY, status="True"))
        taints = tuple(one for one in node.spec.taints if one.key != NOT_READY)
        spec, status = node.spec, replace(node.status, conditions=conditions)
        return replace(node, spec=replace(spec, taints=taints), status=status)


def node_changes(commands: Iterable[Command]) -> NodeChanges:
    """Return the nodes that `commands` create, cordon and drain.

    Nodes that a rolling drain drains later are left out.
    """
    created: set[str] = set()
    cordoned: set[str] = set()
    drained: set[str] = set()
    for one in commands:
        match one:
            case CreateObject(target=target) if target.kind == NODE.kind:
                created.add(target.name)
            case PatchObject(target=target, patch=patch) if target.kind == NODE.kind:
                if at(patch, "spec", "unschedulable"):
                    cordoned.add(target.name)
                if at(patch, "metadata", "annotations", DRAIN) == REQUESTED:
                    drained.add(target.name)
    return NodeChanges(frozenset(created), frozenset(cordoned), frozenset(drained))


def _is_drained(pod: Pod) -> bool:
    """Return whether a drain evicts `pod`."""
    return not (is_daemon_pod(pod) or is_static(pod) or is_terminal(pod) or is_terminating(pod))
