"""find_correction: the pod with corrected typing errors in its nodeSelector and node affinity.

A requirement counts as a typing error only if no node meets it, and the labels of the nodes offer
exactly one correction. Two texts are similar if they may differ by a typing error
(`is_misspelling`):

    some nodes have the required key    exactly one value of this key is similar to the required
                                        value; the correction is this value
    no node has the required key        exactly one key is similar to the required key, and some
                                        node would meet the requirement with this key; the
                                        correction is this key
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.node_selector import (
    required_node_affinity,
    required_node_affinity_matches,
    requirement_words,
)
from fairlead.api.objects import Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec
from fairlead.api.selector import requirement_matches
from fairlead.api.text.misspelling import is_misspelling
from fairlead.api.text.name_list import joined
from fairlead.engine.scheduling.remedy.change import RemedyChange

Labels = Mapping[str, str]
NODE_SELECTOR: Final = "nodeSelector"
NODE_AFFINITY: Final = "affinity.nodeAffinity"
_WORDS: Final = {NODE_SELECTOR: "nodeSelector", NODE_AFFINITY: "node affinity"}
# Operators that a misspelt label can make fail. Nodes without the label meet the other operators.
_POSITIVE: Final = ("In", "Exists", "Gt", "Lt")


class CorrectedRequirement(Struct, frozen=True):
    """A requirement `given` that is probably meant to be `likely`; `field` is a path in the spec.

    `nodes` is the number of nodes that meet `likely`.
    """

    field: str
    given: NodeSelectorRequirement
    likely: NodeSelectorRequirement
    nodes: int


class SelectorCorrection(Struct, frozen=True):
    """The corrected `pod`, and the `corrected` requirements; at least one."""

    pod: Pod
    corrected: tuple[CorrectedRequirement, ...]

    def change_of(self, pod: Pod) -> RemedyChange:
        """Return the correction as a change of `pod`, which may have other changes already."""
        parts = [
            f"correct {requirement_words(one.given)} to {requirement_words(one.likely)} in the "
            f"pod's {_WORDS[one.field]}"
            for one in self.corrected
        ]
        spec, affinity = self.pod.spec, pod.spec.affinity
        if affinity is not None and spec.affinity is not None:
            affinity = replace(affinity, node_affinity=spec.affinity.node_affinity)
        changed = replace(pod.spec, node_selector=spec.node_selector, affinity=affinity)
        return RemedyChange(joined(parts), pod=replace(pod, spec=changed))


def find_correction(
    pod: Pod, nodes: Iterable[Node], kept_selector: Labels
) -> SelectorCorrection | None:
    """Return the correction of typing errors with which `pod` matches at least one node.

    Returns None if `pod` matches one of `nodes` already. Also returns None for the pod of a
    DaemonSet, and for any other pod whose affinity names a node (matchFields). The entries of
    `kept_selector`, which admission adds to the nodeSelector, are not corrected.
    """
    named = [(one.metadata.name, one.metadata.labels) for one in nodes]
    required = required_node_affinity(pod.spec)
    terms = () if required is None else required.node_selector_terms
    if any(one.match_fields for one in terms) or _matches_any(pod.spec, named):
        return None
    search = _Search([labels for _, labels in named])
    selector = {}
    for key, value in pod.spec.node_selector.items():
        one = NodeSelectorRequirement(key=key, operator="In", values=(value,))
        if kept_selector.get(key) != value:
            one = search.corrected(NODE_SELECTOR, one)
        selector[one.key] = one.values[0]
    spec = replace(pod.spec, node_selector=selector)
    if required is not None and spec.affinity is not None:
        changed = replace(
            required, node_selector_terms=tuple(search.corrected_term(one) for one in terms)
        )
        assert spec.affinity.node_affinity is not None
        affinity = replace(
            spec.affinity.node_affinity, required_during_scheduling_ignored_during_execution=changed
        )
        spec = replace(spec, affinity=replace(spec.affinity, node_affinity=affinity))
    if not search.found or not _matches_any(spec, named):
        return None
    return SelectorCorrection(replace(pod, spec=spec), tuple(search.found))


def _matches_any(spec: PodSpec, nodes: Iterable[tuple[str, Labels]]) -> bool:
    return any(required_node_affinity_matches(spec, labels, name) for name, labels in nodes)


class _Search:
    """Corrects requirements by the labels of all `nodes`, and keeps the corrections in `found`."""

    def __init__(self, nodes: Sequence[Labels]) -> None:
        self.found: list[CorrectedRequirement] = []
        self._nodes = nodes

    def corrected_term(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        """Return a term of the node affinity with corrected requirements."""
        corrected = tuple(self.corrected(NODE_AFFINITY, one) for one in term.match_expressions)
        return replace(term, match_expressions=corrected)

    def corrected(
        self, field: str, requirement: NodeSelectorRequirement
    ) -> NodeSelectorRequirement:
        """Return `requirement` of the field `field`; correct it if it is a typing error."""
        if requirement.operator not in _POSITIVE or self._met(requirement):
            return requirement
        if any(requirement.key in labels for labels in self._nodes):
            likely = self._with_likely_values(requirement)
        else:
            likely = self._with_likely_key(requirement)
        if likely != requirement:
            self.found.append(CorrectedRequirement(field, requirement, likely, self._met(likely)))
        return likely

    def _met(self, requirement: NodeSelectorRequirement) -> int:
        """Return the number of nodes that meet `requirement`."""
        return sum(requirement_matches(requirement, labels) for labels in self._nodes)

    def _with_likely_values(self, requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
        if requirement.operator != "In":
            return requirement
        known = {labels[requirement.key] for labels in self._nodes if requirement.key in labels}
        values = (
            _only((other for other in known if is_misspelling(value, other)), value)
            for value in requirement.values
        )
        return replace(requirement, values=tuple(values))

    def _with_likely_key(self, requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
        similar = (
            key
            for key in {key for labels in self._nodes for key in labels}
            if is_misspelling(requirement.key, key) and self._met(replace(requirement, key=key))
        )
        return replace(requirement, key=_only(similar, requirement.key))


def _only(found: Iterable[str], otherwise: str) -> str:
    """Return the only text in `found`; `otherwise` if there are none or several."""
    candidates = list(found)
    return candidates[0] if len(candidates) == 1 else otherwise
