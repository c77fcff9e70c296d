"""Which requests a webhook or a policy is about: rules, selectors and conditions.

A rule that names another version of a kind is about this one too, unless the match policy is
Exact: objects are then shown in that version.

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
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.admission.cel.admission_request import (
    namespace_of,
    new_of,
    old_of,
    request_of,
)
from fairlead.apiserver.admission.cel.authorizer import Judge, authorizer
from fairlead.apiserver.admission.cel.environment import Scope
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, KINDS, NAMESPACE, Kind
from fairlead.apiserver.storage.storage import Storage

ALL: Final = "*"
EXACT: Final = "Exact"
# upstream: predicates/rules: those who judge requests cannot keep each other from being changed
_EXEMPT_GROUP: Final = "admissionregistration.k8s.io"


def is_exempt(kind: Kind) -> bool:
    """Whether nobody from outside has a say in objects of `kind`."""
    return kind.group == _EXEMPT_GROUP


def matched_kind(
    rules: Sequence[Json], asked: Asked, storage: Storage, *, is_exact: bool
) -> Kind | None:
    """The kind that one of `rules` means, the request's own if there is one; else None."""
    if any(_matches(rule, asked, asked.kind) for rule in rules):
        return asked.kind
    if is_exact:
        return None
    others = list(_equivalents(asked.kind, storage))
    for rule in rules:
        for other in others:
            if _matches(rule, asked, other):
                return other
    return None


def selects(matching: Json, asked: Asked, storage: Storage) -> bool:
    """Whether the selectors of `matching` (of namespaces, of objects) want the request."""
    if not _is_in_namespace(matching.get("namespaceSelector"), asked, storage):
        return False
    selector = matching.get("objectSelector")
    if not selector:
        return True
    is_deletion = asked.operation is Operation.DELETE
    objects = (None if is_deletion else asked.obj, asked.obj if is_deletion else asked.about.old)
    return any(_selects(selector, _labels(obj)) for obj in objects if obj is not None)


def failing(conditions: Sequence[Json], scope: Scope) -> bool:
    """Whether one of `conditions` does not hold. Raises ValueError where one cannot be told."""
    problems = []
    for condition in conditions:
        found = scope.evaluated(condition["expression"])
        if found.problem:
            problems.append(found.problem)
        elif found.value is False:
            return True
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise ValueError(text)
    return False


def known_of(asked: Asked, matched: Kind, storage: Storage) -> Json:
    """What all expressions about a request can name, in the form of `matched`."""
    request = request_of(asked, matched)
    return {
        "object": new_of(asked, matched),
        "oldObject": old_of(asked, matched),
        "request": request,
        "namespaceObject": namespace_of(asked, storage),
        "authorizer": authorizer(request),
    }


def judge_of(asked: Asked) -> Judge | None:
    """Who can tell what else whoever asks may do."""
    write = asked.about.write
    return None if write.user is None else Judge(write.rights, write.user)


def _equivalents(kind: Kind, storage: Storage) -> Iterator[Kind]:
    """Other kinds that show the same objects."""
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


def _matches(rule: Json, asked: Asked, kind: Kind) -> bool:
    scope = rule.get("scope", ALL)
    is_in_scope = scope == ALL or (scope == "Namespaced") == kind.namespaced
    names = rule.get("resourceNames")
    return (
        is_in_scope
        and _has(rule.get("operations") or (), asked.operation.value)
        and _has(rule.get("apiGroups") or (), kind.group)
        and _has(rule.get("apiVersions") or (), kind.version)
        and any(
            _is_resource(name, kind, asked.about.subresource)
            for name in rule.get("resources") or ()
        )
        and (not names or asked.name in names)
    )


def _has(names: Sequence[str], name: str) -> bool:
    return name in names or ALL in names


def _is_resource(name: str, kind: Kind, subresource: str) -> bool:
    resource, _, part = name.partition("/")
    return resource in (ALL, kind.plural) and part in (
        (ALL, subresource) if part else (subresource,)
    )


def _labels(obj: Json | None) -> Json:
    labels: Json = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return labels


def _selects(selector: Json | None, labels: Json) -> bool:
    if not selector:
        return True
    return selector_matches(decode_as(LabelSelector, selector), labels)


def _is_in_namespace(selector: Json | None, asked: Asked, storage: Storage) -> bool:
    if not selector:
        return True
    if asked.kind is NAMESPACE:
        # upstream: predicates/namespace/matcher.go: a new namespace is judged by its own labels
        is_new = asked.operation is Operation.CREATE
        found = None if is_new else storage.find(NAMESPACE, "", asked.name)
        return _selects(selector, _labels(found or asked.obj))
    if not asked.kind.namespaced:
        return True
    return _selects(selector, _labels(storage.find(NAMESPACE, "", asked.namespace)))
