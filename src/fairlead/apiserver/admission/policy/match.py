"""Which policies, by which bindings, with which parameters, are about a request.

upstream: apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go,
plugin/policy/matching/matching.go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.apiserver.admission.attributes import Asked
from fairlead.apiserver.admission.cel.environment import Scope
from fairlead.apiserver.admission.match import EXACT, judge_of, known_of, matched_kind, selects
from fairlead.apiserver.apiextensions.served_kind import kinds_of
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, KINDS, Kind
from fairlead.apiserver.storage.storage import Storage

_NO_PARAMS: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"
_NO_NAMESPACE: Final = (
    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
)
_A_NAMESPACE: Final = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"


@dataclass(frozen=True, slots=True)
class Match:
    """A policy that is about a request in the form of `kind`, by a binding if there is no problem.

    `params` are what it is asked with, one after the other; None is none.
    """

    policy: Json
    kind: Kind
    binding: Json | None = None
    params: tuple[Json | None, ...] = ()
    problem: str = ""

    @property
    def may_fail(self) -> bool:
        """Whether the request goes on without its judgement."""
        return bool(self.policy["spec"].get("failurePolicy", "Fail") == "Ignore")


def matches(policies: Kind, bindings: Kind, asked: Asked, storage: Storage) -> Iterator[Match]:
    """The policies of a kind with a say in the request, in order of their names."""
    by_policy: dict[str, list[Json]] = {}
    for binding in storage.items(bindings):
        by_policy.setdefault(binding["spec"].get("policyName", ""), []).append(binding)
    if not by_policy:
        return
    for policy in storage.items(policies):
        bound = by_policy.get(policy["metadata"]["name"])
        if not bound:
            continue
        kind = _matched(policy["spec"].get("matchConstraints") or {}, asked, storage)
        if kind is not None:
            yield from _of_policy(policy, kind, bound, asked, storage)


def scope_of(match: Match, asked: Asked, params: Json | None, storage: Storage) -> Scope:
    """What the expressions of a policy can name."""
    known = {**known_of(asked, match.kind, storage), "params": params}
    variables = match.policy["spec"].get("variables") or ()
    return Scope(known, variables, judge_of(asked))


def _of_policy(
    policy: Json, kind: Kind, bindings: list[Json], asked: Asked, storage: Storage
) -> Iterator[Match]:
    wanted = policy["spec"].get("paramKind")
    found = param_kind(wanted, storage) if wanted else None
    if wanted and found is None:
        named = _type_text(wanted)
        why = f"failed to find resource referenced by paramKind: '{named}'"
        yield Match(policy, kind, problem=f"failed to configure policy: {why}")
        return
    for binding in bindings:
        resources = binding["spec"].get("matchResources")
        if resources and _matched(resources, asked, storage) is None:
            continue
        try:
            params = tuple(_params(found, binding["spec"].get("paramRef"), asked, storage))
        except ValueError as cause:
            problem = f"failed to configure binding: {cause}"
            yield Match(policy, kind, binding, problem=problem)
        else:
            yield Match(policy, kind, binding, params)


def _matched(resources: Json, asked: Asked, storage: Storage) -> Kind | None:
    """The kind in whose form the request is judged, None where it is not."""
    if not selects(resources, asked, storage):
        return None
    is_exact = resources.get("matchPolicy") == EXACT
    excluded = resources.get("excludeResourceRules") or ()
    if matched_kind(excluded, asked, storage, is_exact=is_exact) is not None:
        return None
    rules = resources.get("resourceRules") or ()
    return matched_kind(rules, asked, storage, is_exact=is_exact) if rules else asked.kind


def param_kind(wanted: Json, storage: Storage) -> Kind | None:
    """The kind that the paramKind of a policy names, None where there is none."""
    named = (wanted.get("apiVersion", ""), wanted.get("kind", ""))
    for kind in KINDS:
        if (kind.api_version, kind.kind) == named and not kind.is_custom:
            return kind
    for definition in storage.items(CUSTOM_RESOURCE_DEFINITION):
        for kind in kinds_of(definition):
            if (kind.api_version, kind.kind) == named:
                return kind
    return None


def _type_text(wanted: Json) -> str:
    """`group/version, Kind=X`."""
    version = wanted.get("apiVersion", "")
    return f"{version if '/' in version else f'/{version}'}, Kind={wanted.get('kind', '')}"


def _params(
    kind: Kind | None, reference: Json | None, asked: Asked, storage: Storage
) -> Iterator[Json | None]:
    """The parameters that a binding refers to. Raises ValueError."""
    if kind is None or not reference:
        yield None
        return
    namespace = ""
    if kind.namespaced:
        namespace = reference.get("namespace") or asked.namespace
        if not namespace:
            raise ValueError(_NO_NAMESPACE)
    elif reference.get("namespace"):
        raise ValueError(_A_NAMESPACE)
    found = [_typed(kind, obj) for obj in _referred(kind, namespace, reference, storage)]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ValueError(_NO_PARAMS)
    yield from found


def _referred(kind: Kind, namespace: str, reference: Json, storage: Storage) -> Iterator[Json]:
    if reference.get("name"):
        found = storage.find(kind, namespace, reference["name"])
        if found is not None:
            yield found
        return
    selector = decode_as(LabelSelector, reference.get("selector") or {})
    for obj in storage.items(kind, namespace if kind.namespaced else None):
        if selector_matches(selector, obj["metadata"].get("labels") or {}):
            yield obj


def _typed(kind: Kind, obj: Json) -> Json:
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
