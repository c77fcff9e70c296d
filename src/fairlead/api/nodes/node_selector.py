"""Node selectors of pods: nodeSelector, required and preferred node affinity.

Terms are ORed, and the requirements within a term are ANDed. A term without requirements matches
nothing. The API server accepts some terms that the scheduler cannot parse, such as Gt `-5`. A
required term of this kind never matches. A preferred term of this kind fails the scheduling attempt
with upstream's error text.

upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    PreferredSchedulingTerm,
)
from fairlead.api.selector import requirement_matches
from fairlead.api.text.integer import parse_int64

__all__ = [
    "is_unmatchable",
    "name_restriction",
    "node_selector_matches",
    "preferred_term_error",
    "preferred_terms_error",
    "required_node_affinity",
    "required_node_affinity_matches",
    "required_selector_error",
    "requirement_matches",
    "requirement_words",
    "term_matches",
]

NAME_FIELD: Final = "metadata.name"
CACHE_SIZE: Final = 1 << 14

Labels = Mapping[str, str]

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_NONE_GIVEN: Final = "for 'in', 'notin' operators, values set can't be empty"
_SOME_GIVEN: Final = "values set must be empty for exists and does not exist"
_NOT_ONE_GIVEN: Final = "for 'Gt', 'Lt' operators, exactly one value is required"
_NO_INTEGER: Final = "for 'Gt', 'Lt' operators, the value must be an integer"


def requirement_words(one: NodeSelectorRequirement) -> str:
    """Return the requirement `one` as text, such as `pool=gpu or pool=mem`."""
    match one.operator:
        case "In":
            return " or ".join(f"{one.key}={value}" for value in one.values)
        case "Exists":
            return f"the label {one.key}"
        case "DoesNotExist":
            return f"no label {one.key}"
        case _:
            return f"{one.key} {one.operator} {', '.join(one.values)}"


def required_node_affinity(spec: PodSpec) -> NodeSelector | None:
    """Return the required node affinity of a pod; None if it has none."""
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution


def required_node_affinity_matches(spec: PodSpec, labels: Labels, node_name: str) -> bool:
    """Return True if a node matches the nodeSelector and required node affinity of `spec`."""
    # upstream: nodeaffinity.go:RequiredNodeAffinity.Match
    for key, value in spec.node_selector.items():  # a generator would take longer
        if labels.get(key) != value:
            return False
    required = required_node_affinity(spec)
    return required is None or node_selector_matches(required, labels, node_name)


def node_selector_matches(selector: NodeSelector, labels: Labels, node_name: str) -> bool:
    """Return True if one of the terms matches the node; without terms, nothing matches."""
    return any(term_matches(term, labels, node_name) for term in selector.node_selector_terms)


def term_matches(term: NodeSelectorTerm, labels: Labels, node_name: str) -> bool:
    """Return True if the node meets every requirement; False if the term is empty or invalid."""
    if is_unmatchable(term):
        return False
    return all(requirement_matches(one, labels) for one in term.match_expressions) and all(
        _field_matches(one, node_name) for one in term.match_fields
    )


def is_unmatchable(term: NodeSelectorTerm) -> bool:
    """Return True if `term` cannot match any node, because it is empty or cannot be parsed."""
    return not (term.match_expressions or term.match_fields) or bool(_problems(term))


def name_restriction(spec: PodSpec) -> tuple[str, ...] | None:
    """Return the node names that the required terms allow, sorted; None if they allow every name.

    The names are restricted if every required term has a `metadata.name In` requirement. A term
    with several such requirements allows only the names that all of them list. The result is () if
    no term allows a name.
    """
    # upstream: plugins/nodeaffinity/node_affinity.go:PreFilter
    required = required_node_affinity(spec)
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        of_term = [set(one.values) for one in term.match_fields if _is_name_in(one)]
        if not of_term:
            return None
        names |= set.intersection(*of_term)
    return tuple(sorted(names))


def preferred_term_error(index: int, term: PreferredSchedulingTerm) -> str | None:
    """Return upstream's error for the preferred term at `index`; None if it is valid.

    A term of weight 0 is not checked.
    """
    return _aggregate(_preferred_problems(index, term))


def preferred_terms_error(terms: tuple[PreferredSchedulingTerm, ...]) -> str | None:
    """Return upstream's combined error for the preferred terms of a pod; None if all are valid."""
    # upstream: nodeaffinity.go:NewPreferredSchedulingTerms
    return _aggregate(
        tuple(
            problem
            for index, term in enumerate(terms)
            for problem in _preferred_problems(index, term)
        )
    )


def required_selector_error(selector: NodeSelector) -> str | None:
    """Return upstream's error for all terms of `selector` together; None if all are valid."""
    # upstream: nodeaffinity.go:NewNodeSelector
    return _aggregate(
        tuple(
            f"nodeSelectorTerms[{index}].{problem}"
            for index, term in enumerate(selector.node_selector_terms)
            for problem in _problems(term)
        )
    )


def _is_name_in(requirement: NodeSelectorRequirement) -> bool:
    return requirement.key == NAME_FIELD and requirement.operator == "In"


def _field_matches(requirement: NodeSelectorRequirement, node_name: str) -> bool:
    # upstream: apimachinery/pkg/fields/selector.go: a missing field reads as ""
    actual = node_name if requirement.key == NAME_FIELD else ""
    return (actual == requirement.values[0]) == (requirement.operator == "In")


# --- parse errors -------------------------------------------------------------------------


def _preferred_problems(index: int, term: PreferredSchedulingTerm) -> tuple[str, ...]:
    if term.weight == 0:
        return ()
    return tuple(f"[{index}].{problem}" for problem in _problems(term.preference))


@lru_cache(maxsize=CACHE_SIZE)
def _problems(term: NodeSelectorTerm) -> tuple[str, ...]:
    """Return upstream's parse errors for `term`, each with its path."""
    # upstream: nodeaffinity.go:newNodeSelectorTerm
    return tuple(
        f"matchExpressions[{index}]{problem}"
        for index, requirement in enumerate(term.match_expressions)
        for problem in _label_problems(requirement)
    ) + tuple(
        f"matchFields[{index}]{problem}"
        for index, requirement in enumerate(term.match_fields)
        for problem in _field_problems(requirement)
    )


def _label_problems(requirement: NodeSelectorRequirement) -> Iterator[str]:
    # upstream: apimachinery/pkg/labels/selector.go:NewRequirement
    if requirement.operator not in _OPERATORS:
        yield _not_supported(requirement.operator, _OPERATORS)
        return
    if problems := label_key_problems(requirement.key):
        yield _invalid(".key", requirement.key, "; ".join(problems))
    yield from _value_count_problems(requirement)
    for index, value in enumerate(requirement.values):
        if problems := label_value_problems(value):
            yield _invalid(f".values[{index}][{requirement.key}]", value, "; ".join(problems))


def _value_count_problems(requirement: NodeSelectorRequirement) -> Iterator[str]:
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn" if not values:
            yield _invalid(".values", values, _NONE_GIVEN)
        case "Exists" | "DoesNotExist" if values:
            yield _invalid(".values", values, _SOME_GIVEN)
        case "Gt" | "Lt":
            if len(values) != 1:
                yield _invalid(".values", values, _NOT_ONE_GIVEN)
            for index, value in enumerate(values):
                if parse_int64(value) is None:
                    yield _invalid(f".values[{index}]", value, _NO_INTEGER)


def _field_problems(requirement: NodeSelectorRequirement) -> Iterator[str]:
    # upstream: nodeaffinity.go:nodeSelectorRequirementsAsFieldSelector
    if requirement.operator not in _FIELD_OPERATORS:
        yield _not_supported(requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values) != 1:
        yield _invalid(".values", requirement.values, "must have one element")


def _invalid(path: str, value: str | tuple[str, ...], detail: str) -> str:
    return f"{path}: Invalid value: {_as_go_writes(value)}: {detail}"


def _not_supported(operator: str, supported: tuple[str, ...]) -> str:
    choices = ", ".join(map(_as_go_writes, supported))
    return f".operator: Unsupported value: {_as_go_writes(operator)}: supported values: {choices}"


def _as_go_writes(value: str | tuple[str, ...]) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"[]string{{{', '.join(map(_as_go_writes, value))}}}" if value else "[]string(nil)"


def _aggregate(problems: tuple[str, ...]) -> str | None:
    # upstream: apimachinery/pkg/util/errors/errors.go:aggregate.Error lists each text once
    texts = list(dict.fromkeys(problems))
    if not texts:
        return None
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
