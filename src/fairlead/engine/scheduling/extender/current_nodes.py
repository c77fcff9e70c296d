"""without_deleted_nodes: drops nodes that are deleted while extenders answer.

While a cycle is suspended, nodes may be deleted, and new nodes may reuse their rows. The cycle
continues with the nodes that still exist, and ignores new nodes.
"""

from __future__ import annotations

import numpy as np

from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.scheduling.extender.consultation import Consultation, Result
from fairlead.engine.state.node_info import NodeInfo


def without_deleted_nodes(
    consultation: Consultation[Result], found: Feasibility
) -> Consultation[Result]:
    """Run `consultation`; after each answer, remove deleted nodes from `found`."""
    table = found.plan.table
    present = {node.row: node for node in table.nodes()}
    seen = table.node_log.position
    try:
        questions = next(consultation)
        while True:
            responses = yield questions
            if table.node_log.position != seen:
                _remove_deleted_nodes(found, present)
            questions = consultation.send(responses)
    except StopIteration as end:
        result: Result = end.value
        return result


def _remove_deleted_nodes(found: Feasibility, present: dict[int, NodeInfo]) -> None:
    table, plan = found.plan.table, found.plan
    gone = (row for row, node in present.items() if table.find(node.name) is not node)
    positions = [at for row in gone if (at := plan.position(row)) is not None]
    if positions:
        found.without(np.array(positions, np.int64))
