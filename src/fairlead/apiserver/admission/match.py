"""Decides whether a webhook or policy applies to a request: rules, selectors and match conditions.

With the matchPolicy Equivalent (the default), a rule for another version of the request's kind
applies too. The webhook or policy then receives the object in that version.

upstream: apiserver/pkg/admission/plugin/webhook/{generic/webhook,matchconditions/matcher}.go,
predicates/{rules,namespace,object}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.cel.admission_request import (
    admission_request,
    converted_object,
    converted_old_object,
    namespace_of,
)
from fairlead.apiserver.admission.cel.authorizer import RequesterAuthorizer, authorizer_variables
from fairlead.apiserver.admission.cel.environment import ExpressionContext
from fairlead.apiserver.kind import (
    CUSTOM_RESOURCE_DEFINITION,
    KINDS,
    NAMESPACE,
    Kind,
)
from fairlead.apiserver.storage.storage import Storage
from fairlead.cel.cost.runtime_cost import MATCH_CONDITIONS_BUDGET

ALL: Final = "*"
EXACT: Final = "Exact"
# A webhook must not be able to prevent the repair of its own configuration. upstream:
# predicates/rules/rules.go:IsExemptAdmissionConfigurationResource
_EXEMPT_GROUP: Final = "admissionregistration.k8s.io"


def is_exempt(kind: Kind) -> bool:
    """Return whether webhooks and policies never apply to objects of `kind`."""
    return kind.group == _EXEMPT_GROUP


def matched_kind(
    rules: Sequence[Json], attributes: AdmissionAttributes, storage: Storage, *, is_exact: bool
) -> Kind | None:
    """Return a kind that `rules` match: the request's kind, or else another version of it.

    Return None if no rule matches. If `is_exact` is True, only the request's kind is considered.
    """
    if any(_matches_rule(rule, attributes, attributes.kind) for rule in rules):
        return attributes.kind
    if is_exact:
        return None
    equivalents = list(_equivalent_kinds(attributes.kind, storage))
    for rule in rules:
        for other in equivalents:
            if _matches_rule(rule, attributes, other):
                return other
    return None


def matches_selectors(matching: Json, attributes: AdmissionAttributes, storage: Storage) -> bool:
    """Return whether the namespaceSelector and objectSelector in `matching` match the request."""
    if not _matches_namespace(matching.get("namespaceSelector"), attributes, storage):
        return False
    selector = matching.get("objectSelector")
    if not any((selector or {}).values()):
        return True
    if attributes.operation is Operation.CONNECT:
        return False  # predicates/object/matcher.go: options without metadata match no selector
    is_deletion = attributes.operation is Operation.DELETE
    objects = (
        None if is_deletion else attributes.obj,
        attributes.obj if is_deletion else attributes.old,
    )
    return any(_selects(selector, _labels(obj)) for obj in objects if obj is not None)


def has_false_condition(conditions: Sequence[Json], context: ExpressionContext) -> bool:
    """Return whether one of the match conditions `conditions` is false.

    Raises ValueError if no condition is false and at least one condition cannot be evaluated.
    """
    problems = []
    context = context.with_budget(MATCH_CONDITIONS_BUDGET)
    for condition in conditions:
        found = context.evaluate(condition["expression"])
        if found.problem:
            problems.append(found.problem)
        elif found.value is False:
            return True
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise ValueError(text)
    return False


def cel_variables(attributes: AdmissionAttributes, matched: Kind, storage: Storage) -> Json:
    """Return the CEL variables for a request; objects are converted to the kind `matched`."""
    request = admission_request(attributes, matched)
    write = attributes.write
    # The server itself, which makes some requests, has no authorizer.
    requester = None if write.user is None else RequesterAuthorizer(write.rights, write.user)
    return {
        "object": converted_object(attributes, matched),
        "oldObject": converted_old_object(attributes, matched),
        "request": request,
        "namespaceObject": namespace_of(attributes, storage),
        **authorizer_variables(request, requester),
    }


def _equivalent_kinds(kind: Kind, storage: Storage) -> Iterator[Kind]:
    """Yield the kinds that are other versions of `kind`."""
    if kind.custom is None:
        yield from (
            other
            for other in KINDS
            if other.resource == kind.resource and other.api_version != kind.api_version
        )
        return
    definition = storage.find(CUSTOM_RESOURCE_DEFINITION, "", kind.resource)
    for version in (definition or {}).get("spec", {}).get("versions") or ():
        if version.get("served") and version["name"] != kind.version:
            yield replace(kind, version=version["name"])


def _matches_rule(rule: Json, attributes: AdmissionAttributes, kind: Kind) -> bool:
    context = rule.get("scope", ALL)
    is_in_scope = context == ALL or (context == "Namespaced") == kind.namespaced
    names = rule.get("resourceNames")
    return (
        is_in_scope
        and _contains(rule.get("operations") or (), attributes.operation.value)
        and _contains(rule.get("apiGroups") or (), kind.group)
        and _contains(rule.get("apiVersions") or (), kind.version)
        and any(
            _matches_resource(name, kind, attributes.subresource)
            for name in rule.get("resources") or ()
        )
        and (not names or attributes.name in names)
    )


def _contains(names: Sequence[str], name: str) -> bool:
    return name in names or ALL in names


def _matches_resource(name: str, kind: Kind, subresource: str) -> bool:
    resource, _, subresource_pattern = name.partition("/")
    return resource in (ALL, kind.plural) and subresource_pattern in (
        (ALL, subresource) if subresource_pattern else (subresource,)
    )


def _labels(obj: Json | None) -> Json:
    labels: Json = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return labels


def _selects(selector: Json | None, labels: Json) -> bool:
    if not selector:
        return True
    return selector_matches(decode_as(LabelSelector, selector), labels)


def _matches_namespace(
    selector: Json | None, attributes: AdmissionAttributes, storage: Storage
) -> bool:
    if not selector:
        return True
    if attributes.kind is NAMESPACE:
        # upstream: predicates/namespace/matcher.go: a new namespace is selected by its own labels
        is_new = attributes.operation is Operation.CREATE
        found = None if is_new else storage.find(NAMESPACE, "", attributes.name)
        return _selects(selector, _labels(found or attributes.obj))
    if not attributes.kind.namespaced:
        return True
    return _selects(selector, _labels(storage.find(NAMESPACE, "", attributes.namespace)))
