"""Finds the policies that apply to a request, with their bindings and parameters.

upstream: apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go,
plugin/policy/matching/matching.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.cel.environment import ExpressionContext
from fairlead.apiserver.admission.match import (
    EXACT,
    cel_variables,
    matched_kind,
    matches_selectors,
)
from fairlead.apiserver.apiextensions.served_kind import kinds_of
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, KINDS, Kind
from fairlead.apiserver.storage.storage import Storage

_NO_PARAMS: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"
_NO_NAMESPACE: Final = (
    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
)
_A_NAMESPACE: Final = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"


class PolicyMatch(Struct, frozen=True):
    """A policy that applies to a request through a binding.

    `kind` is the kind that the policy's rules match. The policy is evaluated once for each item of
    `params`; None stands for an evaluation without parameters. `problem` is the reason why the
    policy or the binding cannot be used, or "". `binding` is None if the problem is in the policy.
    """

    policy: Json
    kind: Kind
    binding: Json | None = None
    params: tuple[Json | None, ...] = ()
    problem: str = ""

    @property
    def ignores_failure(self) -> bool:
        """True if errors of the policy's expressions are ignored (failurePolicy Ignore)."""
        return bool(self.policy["spec"].get("failurePolicy", "Fail") == "Ignore")


def policy_matches(
    policies: Kind, bindings: Kind, attributes: AdmissionAttributes, storage: Storage
) -> Iterator[PolicyMatch]:
    """Yield a match for each binding, if both the binding and its policy apply to the request.

    The matches are sorted by the name of the policy. A policy with bindings and an unknown
    paramKind has one match, whose `binding` is None.
    """
    by_policy: dict[str, list[Json]] = {}
    for binding in storage.items(bindings):
        by_policy.setdefault(binding["spec"].get("policyName", ""), []).append(binding)
    if not by_policy:
        return
    for policy in storage.items(policies):
        bound = by_policy.get(policy["metadata"]["name"])
        if not bound:
            continue
        kind = _matched_kind(policy["spec"].get("matchConstraints") or {}, attributes, storage)
        if kind is not None:
            yield from _binding_matches(policy, kind, bound, attributes, storage)


def expression_context(
    match: PolicyMatch, attributes: AdmissionAttributes, params: Json | None, storage: Storage
) -> ExpressionContext:
    """Return the context in which a policy's expressions are evaluated with `params`."""
    variables_of_request = {**cel_variables(attributes, match.kind, storage), "params": params}
    variables = match.policy["spec"].get("variables") or ()
    return ExpressionContext(variables_of_request, variables)


def _binding_matches(
    policy: Json,
    kind: Kind,
    bindings: list[Json],
    attributes: AdmissionAttributes,
    storage: Storage,
) -> Iterator[PolicyMatch]:
    reference = policy["spec"].get("paramKind")
    kind_of_params = param_kind(reference, storage) if reference else None
    if reference and kind_of_params is None:
        type_text = _type_text(reference)
        why = f"failed to find resource referenced by paramKind: '{type_text}'"
        yield PolicyMatch(policy, kind, problem=f"failed to configure policy: {why}")
        return
    for binding in bindings:
        resources = binding["spec"].get("matchResources")
        if resources and _matched_kind(resources, attributes, storage) is None:
            continue
        try:
            params = tuple(
                _selected_params(
                    kind_of_params, binding["spec"].get("paramRef"), attributes, storage
                )
            )
        except ValueError as cause:
            problem = f"failed to configure binding: {cause}"
            yield PolicyMatch(policy, kind, binding, problem=problem)
        else:
            yield PolicyMatch(policy, kind, binding, params)


def _matched_kind(
    resources: Json, attributes: AdmissionAttributes, storage: Storage
) -> Kind | None:
    """Return the kind that the rules match, or the request's kind if `resources` has no rules.

    Return None if the selectors do not match the request, or if a rule in excludeResourceRules
    matches. Also return None if there are rules and none of them matches.
    """
    if not matches_selectors(resources, attributes, storage):
        return None
    is_exact = resources.get("matchPolicy") == EXACT
    excluded = resources.get("excludeResourceRules") or ()
    if matched_kind(excluded, attributes, storage, is_exact=is_exact) is not None:
        return None
    rules = resources.get("resourceRules") or ()
    return matched_kind(rules, attributes, storage, is_exact=is_exact) if rules else attributes.kind


def param_kind(reference: Json, storage: Storage) -> Kind | None:
    """Return the kind that the paramKind `reference` names; None if the server has no such kind."""
    type_text = (reference.get("apiVersion", ""), reference.get("kind", ""))
    for kind in KINDS:
        if (kind.api_version, kind.kind) == type_text and not kind.is_custom:
            return kind
    for definition in storage.items(CUSTOM_RESOURCE_DEFINITION):
        for kind in kinds_of(definition):
            if (kind.api_version, kind.kind) == type_text:
                return kind
    return None


def _type_text(reference: Json) -> str:
    """Return the paramKind `reference` as text, such as `apps/v1, Kind=Deployment`."""
    version = reference.get("apiVersion", "")
    return f"{version if '/' in version else f'/{version}'}, Kind={reference.get('kind', '')}"


def _selected_params(
    kind: Kind | None, reference: Json | None, attributes: AdmissionAttributes, storage: Storage
) -> Iterator[Json | None]:
    """Yield the parameters that the paramRef `reference` selects.

    Yield None if the policy has no paramKind or the binding has no paramRef. Raises ValueError if
    the paramRef is invalid, or if it selects nothing and its parameterNotFoundAction is Deny.
    """
    if kind is None or not reference:
        yield None
        return
    namespace = ""
    if kind.namespaced:
        namespace = reference.get("namespace") or attributes.namespace
        if not namespace:
            raise ValueError(_NO_NAMESPACE)
    elif reference.get("namespace"):
        raise ValueError(_A_NAMESPACE)
    found = [
        {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
        for obj in _params_by_reference(kind, namespace, reference, storage)
    ]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ValueError(_NO_PARAMS)
    yield from found


def _params_by_reference(
    kind: Kind, namespace: str, reference: Json, storage: Storage
) -> Iterator[Json]:
    if reference.get("name"):
        found = storage.find(kind, namespace, reference["name"])
        if found is not None:
            yield found
        return
    selector = decode_as(LabelSelector, reference.get("selector") or {})
    for obj in storage.items(kind, namespace if kind.namespaced else None):
        if selector_matches(selector, obj["metadata"].get("labels") or {}):
            yield obj
