"""NodeName: a pod with spec.nodeName fits only the node of that name (plugins/nodename)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

OTHER_NODE: Final = unresolvable("node(s) didn't match the requested node name").by("NodeName")


class NodeName:
    """Rejects all nodes except the node in spec.nodeName (Filter)."""

    name = "NodeName"
    locality = Locality.NODE
    events = frozenset({EventKind.NODE_ADD})

    def shape_key(self, shape: Shape) -> Hashable:
        """Return None, because this plugin reads no part of a `Shape`."""
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject the node if spec.nodeName is the name of another node."""
        return None if pod.pod.spec.node_name in ("", node.name) else OTHER_NODE

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        wanted = pod.pod.spec.node_name
        codes = np.zeros(len(rows), np.int32)
        if wanted:
            named = table.find(wanted)
            codes[:] = 1 if named is None else rows != named.row
        return Verdicts(codes, (OTHER_NODE, OTHER_NODE))
