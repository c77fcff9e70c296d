"""Whether a webhook is asked about a request: its rules and selectors.

`matchConditions` are not looked at: a webhook that has some is asked more often than it wants.

upstream: apiserver/pkg/admission/plugin/webhook/predicates/{rules,namespace,object}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.apiserver.admission.plugin import Circumstances, Operation
from fairlead.apiserver.kind import NAMESPACE, Kind
from fairlead.apiserver.storage import Json, Storage

ALL: Final = "*"
# upstream: predicates/rules: webhooks cannot keep each other from being changed
_EXEMPT_GROUP: Final = "admissionregistration.k8s.io"


def applies(
    webhook: Json,
    operation: Operation,
    kind: Kind,
    obj: Json,
    storage: Storage,
    about: Circumstances,
) -> bool:
    """Whether `webhook` has a say in `operation` on `obj`."""
    if kind.group == _EXEMPT_GROUP:
        return False
    rules = webhook.get("rules") or ()
    if not any(_matches(rule, operation, kind, about.subresource) for rule in rules):
        return False
    labels = (obj.get("metadata") or {}).get("labels") or {}
    before = ((about.old or {}).get("metadata") or {}).get("labels") or {}
    selector = webhook.get("objectSelector")
    if not _selects(selector, labels) and not (before and _selects(selector, before)):
        return False
    return _is_in_namespace(webhook.get("namespaceSelector"), kind, obj, storage)


def _matches(rule: Json, operation: Operation, kind: Kind, subresource: str) -> bool:
    scope = rule.get("scope", ALL)
    is_in_scope = scope == ALL or (scope == "Namespaced") == kind.namespaced
    return (
        is_in_scope
        and _has(rule.get("operations") or (), operation.value)
        and _has(rule.get("apiGroups") or (), kind.group)
        and _has(rule.get("apiVersions") or (), kind.version)
        and any(_is_resource(name, kind, subresource) for name in rule.get("resources") or ())
    )


def _has(names: Sequence[str], name: str) -> bool:
    return name in names or ALL in names


def _is_resource(name: str, kind: Kind, subresource: str) -> bool:
    resource, _, part = name.partition("/")
    return resource in (ALL, kind.plural) and part in (
        (ALL, subresource) if part else (subresource,)
    )


def _selects(selector: Json | None, labels: Json) -> bool:
    if not selector:
        return True
    # A budget is the smallest kind with a label selector in it.
    decoded = decode_as(PodDisruptionBudget, {"spec": {"selector": selector}}).spec.selector
    return selector_matches(decoded, labels)


def _is_in_namespace(selector: Json | None, kind: Kind, obj: Json, storage: Storage) -> bool:
    if not selector:
        return True
    if kind is NAMESPACE:
        return _selects(selector, obj["metadata"].get("labels") or {})
    if not kind.namespaced:
        return True
    namespace = storage.find(NAMESPACE, "", obj["metadata"].get("namespace", ""))
    return _selects(selector, ((namespace or {}).get("metadata") or {}).get("labels") or {})
