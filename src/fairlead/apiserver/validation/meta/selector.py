"""Validates label selectors and node selectors.

upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidateLabelSelector,
pkg/apis/core/validation/validation.go:ValidateNodeSelector, ValidateNodeFieldSelectorRequirement
"""

from __future__ import annotations

from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.object_meta import check_labels

NODE_NAME_FIELD: Final = "metadata.name"
UNKNOWN_OPERATOR: Final = "not a valid selector operator"


def check_label_selector(
    field: str, selector: LabelSelector | None, *, strict: bool = True
) -> Causes:
    """Yield the errors of a label selector.

    The values in matchExpressions are checked only if `strict` is set.
    """
    if selector is None:
        return
    yield from check_labels(f"{field}.matchLabels", selector.match_labels)
    for index, requirement in enumerate(selector.match_expressions):
        at = f"{field}.matchExpressions[{index}]"
        yield from _check_requirement(at, requirement, may_compare=False, strict=strict)


def check_node_selector(field: str, selector: NodeSelector, *, strict: bool = True) -> Causes:
    """Yield the errors of a node selector.

    Label values are checked only if `strict` is set.
    """
    terms = f"{field}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(terms, "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        yield from check_node_selector_term(f"{terms}[{index}]", term, strict=strict)


def check_node_selector_term(field: str, term: NodeSelectorTerm, *, strict: bool = True) -> Causes:
    """Yield the errors of a node selector term.

    Label values are checked only if `strict` is set.
    """
    for index, requirement in enumerate(term.match_expressions):
        at = f"{field}.matchExpressions[{index}]"
        yield from _check_requirement(at, requirement, may_compare=True, strict=strict)
    for index, requirement in enumerate(term.match_fields):
        yield from _check_node_field(f"{field}.matchFields[{index}]", requirement)


def _check_requirement(
    field: str,
    requirement: LabelSelectorRequirement | NodeSelectorRequirement,
    *,
    may_compare: bool,
    strict: bool = True,
) -> Causes:
    """Yield the errors of a requirement on labels.

    `may_compare` allows the operators Gt and Lt. Label values are checked only if `strict` is set.
    """
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{field}.values", why)
        case "Exists" | "DoesNotExist":
            if requirement.values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{field}.values", why)
        case "Gt" | "Lt" if may_compare:
            if len(requirement.values) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{field}.values", why)
        case operator:
            yield invalid(f"{field}.operator", operator, UNKNOWN_OPERATOR)
    for problem in label_key_problems(requirement.key):
        yield invalid(f"{field}.key", requirement.key, problem)
    for index, value in enumerate(requirement.values if strict else ()):
        for problem in label_value_problems(value):
            yield invalid(f"{field}.values[{index}]", value, problem)


def _check_node_field(field: str, requirement: NodeSelectorRequirement) -> Causes:
    """Yield the errors of a requirement on metadata.name, the only selectable field of a Node."""
    match requirement.operator:
        case "In" | "NotIn":
            if len(requirement.values) != 1:
                why = (
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                    "selector"
                )
                yield required(f"{field}.values", why)
        case operator:
            yield invalid(f"{field}.operator", operator, UNKNOWN_OPERATOR)
    if requirement.key != NODE_NAME_FIELD:
        yield invalid(f"{field}.key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        for problem in dns_subdomain_problems(value):
            yield invalid(f"{field}.values[{index}]", value, problem)
