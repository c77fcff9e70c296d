"""Node selector terms over columns: each requirement is evaluated once per distinct label value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.api.node_selector import is_unmatchable, term_matches
from fairlead.api.objects import NodeSelectorRequirement, NodeSelectorTerm
from fairlead.api.selector import requirement_matches
from fairlead.engine.framework.interface import Rows
from fairlead.engine.state.node_table import NodeTable

Mask = npt.NDArray[np.bool_]


def term_mask(term: NodeSelectorTerm, table: NodeTable, rows: Rows) -> Mask:
    """The rows on which all requirements of `term` hold; `term_matches` for many nodes."""
    if is_unmatchable(term):
        return np.zeros(len(rows), np.bool_)
    if term.match_fields:
        return _by_node(term, table, rows)
    fits = np.ones(len(rows), np.bool_)
    for requirement in term.match_expressions:
        fits &= requirement_mask(requirement, table, rows)
    return fits


def requirement_mask(requirement: NodeSelectorRequirement, table: NodeTable, rows: Rows) -> Mask:
    """The rows whose labels meet `requirement`."""
    column = table.label_column(requirement.key)
    key = requirement.key
    by_value = [requirement_matches(requirement, {key: value}) for value in column.values]
    # The last entry is the verdict for nodes without the key: their id is ABSENT = -1.
    verdicts = np.array([*by_value, requirement_matches(requirement, {})], np.bool_)
    found: Mask = verdicts[column.ids[rows]]
    return found


def _by_node(term: NodeSelectorTerm, table: NodeTable, rows: Rows) -> Mask:
    nodes = (table.at(row) for row in rows.tolist())
    return np.array([term_matches(term, node.labels, node.name) for node in nodes], np.bool_)
