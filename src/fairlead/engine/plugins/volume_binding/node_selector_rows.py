"""Evaluates node selectors for all rows of the node table together.

As in upstream, a volume's node affinity is compared only with the labels of a node. A requirement
on the field metadata.name is evaluated as if the node's name were "".

upstream: component-helpers/storage/volume/helpers.go: CheckNodeAffinity
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from fairlead.api.nodes.node_selector import is_unmatchable, term_matches
from fairlead.api.objects import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorTerm,
)
from fairlead.engine.plugins.node_affinity import requirement_mask, term_mask
from fairlead.engine.state.node_table import NodeTable

Mask = npt.NDArray[np.bool_]


def selector_mask(selector: NodeSelector, table: NodeTable) -> Mask:
    """Return, for the node at each row, whether at least one term of `selector` matches it."""
    rows = np.arange(table.capacity)
    found = np.zeros(table.capacity, np.bool_)
    for term in selector.node_selector_terms:
        by_labels = _without_fields(term)
        if by_labels is not None:
            found |= term_mask(by_labels, table, rows) if by_labels.match_expressions else True
    return found


def _without_fields(term: NodeSelectorTerm) -> NodeSelectorTerm | None:
    """Return `term` without its field requirements; None if no node can match `term`.

    The field requirements are evaluated with the node name "" (see the module).
    """
    if is_unmatchable(term):
        return None
    if not term.match_fields:
        return term
    fields = NodeSelectorTerm(match_fields=term.match_fields)
    if not term_matches(fields, {}, ""):
        return None
    return msgspec.structs.replace(term, match_fields=())


def simple_values(selector: NodeSelector) -> tuple[str, tuple[str, ...]] | None:
    """Return (key, values) if the selector has the simple form `key In values`, else None."""
    if len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_fields or len(term.match_expressions) != 1 or is_unmatchable(term):
        return None
    one = term.match_expressions[0]
    return (one.key, one.values) if one.operator == "In" else None


def label_mask(selector: LabelSelector, table: NodeTable) -> Mask:
    """Return, for the node at each row, whether `selector` matches its labels.

    An empty selector matches every node.
    """
    rows = np.arange(table.capacity)
    found = np.ones(table.capacity, np.bool_)
    for key, value in selector.match_labels.items():
        one = NodeSelectorRequirement(key=key, operator="In", values=(value,))
        found &= requirement_mask(one, table, rows)
    for requirement in selector.match_expressions:
        one = NodeSelectorRequirement(
            key=requirement.key, operator=requirement.operator, values=requirement.values
        )
        found &= requirement_mask(one, table, rows)
    return found


def topology_mask(terms: tuple[TopologySelectorTerm, ...], table: NodeTable) -> Mask:
    """Return, for the node at each row, whether one of `terms` matches its labels.

    If there are no terms, every node matches. An empty term matches no node.

    upstream: pkg/apis/core/v1/helper/helpers.go: MatchTopologySelectorTerms
    """
    if not terms:
        return np.ones(table.capacity, np.bool_)
    rows = np.arange(table.capacity)
    found = np.zeros(table.capacity, np.bool_)
    for term in terms:
        if not term.match_label_expressions:
            continue
        holds = np.ones(table.capacity, np.bool_)
        for one in term.match_label_expressions:
            wanted = NodeSelectorRequirement(key=one.key, operator="In", values=one.values)
            holds &= requirement_mask(wanted, table, rows)
        found |= holds
    return found
