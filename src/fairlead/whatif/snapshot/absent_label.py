"""Sentences about the labels that a pod requires and that no node has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.nodes.node_selector import (
    required_node_affinity,
    required_node_affinity_matches,
    requirement_words,
)
from fairlead.api.objects import NodeSelectorRequirement, Pod
from fairlead.api.selector import requirement_matches
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined

_VALUES_MAX: Final = 5

Labels = Mapping[str, str]


def missing_labels(pod: Pod, nodes: Mapping[str, Labels]) -> list[str]:
    """Return a sentence for each label requirement of `pod` that no node meets.

    Return [] if the nodeSelector and the node affinity of `pod` allow some node. `nodes` contains
    the labels of each node by its name.
    """
    if any(
        required_node_affinity_matches(pod.spec, labels, name) for name, labels in nodes.items()
    ):
        return []
    return [*absent_labels(pod, [*nodes.values()])]


def absent_labels(pod: Pod, nodes: Sequence[Labels]) -> Iterator[str]:
    """Yield a sentence for each label requirement of `pod` that no node meets.

    `nodes` contains the labels of each node. The terms of the node affinity are alternatives; the
    nodeSelector belongs to each alternative. If each requirement of an alternative is met by some
    node, but no node meets all requirements, a sentence says so. Yield nothing if a term names a
    node (matchFields), because such terms are not checked here. An empty term matches no node.
    """
    selector = [
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in pod.spec.node_selector.items()
    ]
    required = required_node_affinity(pod.spec)
    terms = () if required is None else required.node_selector_terms
    alternatives = [selector]
    if terms:
        alternatives = [
            [*selector, *one.match_expressions] for one in terms if one.match_expressions
        ]
    if not nodes or any(one.match_fields for one in terms):
        return
    meeting = {
        one: sum(requirement_matches(one, labels) for labels in nodes)
        for alternative in alternatives
        for one in alternative
    }
    for one, count in meeting.items():
        if not count:
            yield _absent_label(one, nodes)
    for alternative in alternatives:
        if alternative and all(meeting[one] for one in alternative):
            parts = [
                f"{requirement_words(one)} ({counted(meeting[one], 'node')})" for one in alternative
            ]
            yield f"No node has all of these: {joined(parts)}."


def _absent_label(one: NodeSelectorRequirement, nodes: Sequence[Labels]) -> str:
    """Return a sentence: no node meets the requirement `one`, but nodes have other values."""
    if one.operator == "Exists":
        return f"No node has the label {one.key}."
    if one.operator == "DoesNotExist":
        return f"Every node has the label {one.key}."
    values = Counter(labels[one.key] for labels in nodes if one.key in labels)
    if not values:
        return f"No node has {requirement_words(one)}; no node has the label {one.key}."
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{value or repr(value)} ({counted(n, 'node')})" for value, n in ordered]
    if len(shown) > _VALUES_MAX:
        shown[_VALUES_MAX:] = [f"{len(shown) - _VALUES_MAX:,} more"]
    if one.operator == "NotIn":
        return f"Every node has one of the excluded values of {one.key}: {joined(shown)}."
    if len(shown) == 1:
        return f"No node has {requirement_words(one)}; the only value of {one.key} is {shown[0]}."
    return f"No node has {requirement_words(one)}; the values of {one.key} are {joined(shown)}."
