"""The strategies of rbac.authorization.k8s.io.

upstream: pkg/registry/rbac/*/strategy.go,
pkg/apis/rbac/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.facts import values_of
from fairlead.api.json import Json
from fairlead.apiserver.kind import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.validation.meta.field import Causes, invalid, not_supported, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_subdomain,
    label_selector,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.meta.selector import check_label_selector

# --- validation ----------------------------------------------------------------------------------

RBAC: Final = "rbac.authorization.k8s.io"
SUBJECTS: Final = values_of("rbac.v1.Subject", "kind")


def check_role(obj: Json) -> Causes:
    """Yield the errors of a Role."""
    yield from _check_rules(obj, namespaced=True)


def check_cluster_role(obj: Json) -> Causes:
    """Yield the errors of a ClusterRole."""
    yield from _check_rules(obj, namespaced=False)
    field = "aggregationRule.clusterRoleSelectors"
    selectors = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    if obj.get("aggregationRule") is not None and not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required(field, why)
    for index, selector in enumerate(selectors):
        where = f"{field}[{index}]"
        problems = list(check_label_selector(where, label_selector(selector)))
        yield from problems
        if problems:
            yield invalid(where, selector, "invalid label selector.")


def _check_rules(obj: Json, *, namespaced: bool) -> Causes:
    for index, rule in enumerate(obj.get("rules") or ()):
        field = f"rules[{index}]"
        yield from check_fields(field, "rbac.v1.PolicyRule", rule, "verbs")
        paths = rule.get("nonResourceURLs")
        if paths:
            if namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                yield invalid(f"{field}.nonResourceURLs", paths, why)
            if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{field}.nonResourceURLs", paths, why)
            continue
        yield from check_fields(field, "rbac.v1.PolicyRule", rule, "apiGroups", "resources")


def check_role_binding(obj: Json) -> Causes:
    """Yield the errors of a RoleBinding."""
    yield from _check_binding(obj, ("Role", "ClusterRole"), namespaced=True)


def check_cluster_role_binding(obj: Json) -> Causes:
    """Yield the errors of a ClusterRoleBinding."""
    yield from _check_binding(obj, ("ClusterRole",), namespaced=False)


def _check_binding(obj: Json, kinds: tuple[str, ...], *, namespaced: bool) -> Causes:
    role = obj.get("roleRef") or {}
    if role.get("apiGroup") != RBAC:
        yield not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (RBAC,))
    if role.get("kind") not in kinds:
        yield not_supported("roleRef.kind", role.get("kind", ""), kinds)
    yield from check_fields("roleRef", "rbac.v1.RoleRef", role, "name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _check_subject(f"subjects[{index}]", subject, namespaced=namespaced)


def _check_subject(field: str, subject: Json, *, namespaced: bool) -> Causes:
    name, kind = subject.get("name", ""), subject.get("kind", "")
    yield from check_fields(field, "rbac.v1.Subject", subject, "name", "kind")
    if kind not in SUBJECTS:
        return
    group = subject.get("apiGroup", "")
    expected = "" if kind == "ServiceAccount" else RBAC
    if kind == "ServiceAccount" and name:
        yield from check_subdomain(f"{field}.name", name)
    if group != expected:
        yield not_supported(f"{field}.apiGroup", group, (expected,))
    if kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
        yield required(f"{field}.namespace")


def _role(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(
        allow_create_on_update=True,
        rules=KindRules(new=json_check(check)),
        null_when_empty=(("rules",),),
    )


def _binding(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(allow_create_on_update=True, rules=KindRules(new=json_check(check)))


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    CLUSTER_ROLE.resource: _role(check_cluster_role),
    CLUSTER_ROLE_BINDING.resource: _binding(check_cluster_role_binding),
    ROLE.resource: _role(check_role),
    ROLE_BINDING.resource: _binding(check_role_binding),
}
