"""The strategies of flowcontrol.apiserver.k8s.io.

upstream: pkg/registry/flowcontrol/*/strategy.go,
pkg/apis/flowcontrol/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.validation.meta.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_subdomain,
    dns_label_problems,
    dns_subdomain_problems,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.status import check_flow_status

# --- validation ----------------------------------------------------------------------------------

PRECEDENCE_MAX: Final = 10_000
EXEMPT: Final = "exempt"
METHODS: Final = ("ByNamespace", "ByUser")
VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
)  # fmt: skip
QUEUES_MAX: Final = 10_000_000
_KEYS: Final = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_NAMESPACE: Final = "each member of this list must be '*' or a DNS-1123 label; "


def check_schema(obj: Json) -> Causes:
    """Yield the errors of a FlowSchema."""
    spec = obj["spec"]
    precedence, field = spec.get("matchingPrecedence", 0), "spec.matchingPrecedence"
    if precedence <= 0:
        yield invalid(field, precedence, "must be a positive value")
    if precedence > PRECEDENCE_MAX:
        yield invalid(field, precedence, f"must not be greater than {PRECEDENCE_MAX}")
    if precedence == 1 and obj["metadata"].get("name") != EXEMPT:
        why = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield invalid(field, precedence, why)
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in METHODS:
        shown = {"Type": method.get("type", "")}
        yield not_supported("spec.distinguisherMethod.type", shown, METHODS)
    reference = "flowcontrol.v1.PriorityLevelConfigurationReference"
    level = spec.get("priorityLevelConfiguration") or {}
    yield from check_fields("spec.priorityLevelConfiguration", reference, level, "name")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _check_rule(f"spec.rules[{index}]", rule)


def _check_rule(field: str, rule: Json) -> Causes:
    yield from check_fields(field, "flowcontrol.v1.PolicyRulesWithSubjects", rule, "subjects")
    for index, subject in enumerate(rule.get("subjects") or []):
        yield from _check_subject(f"{field}.subjects[{index}]", subject)
    resources, paths = rule.get("resourceRules") or [], rule.get("nonResourceRules") or []
    if not resources and not paths:
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield required(field, why)
    for index, one in enumerate(resources):
        yield from _check_resources(f"{field}.resourceRules[{index}]", one)
    for index, one in enumerate(paths):
        yield from _check_paths(f"{field}.nonResourceRules[{index}]", one)


def _check_subject(field: str, subject: Json) -> Causes:
    kind = subject.get("kind", "")
    yield from check_fields(field, "flowcontrol.v1.Subject", subject, "kind")
    if kind not in _KEYS:
        return
    key = _KEYS[kind]
    yield from _check_named(f"{field}.{key}", key, subject.get(key))
    for other, stated in _KEYS.items():
        if other != kind and subject.get(stated) is not None:
            why = f"{stated} is forbidden when subject kind is not '{other}'"
            yield forbidden(f"{field}.{stated}", why)


def _check_named(field: str, key: str, subject: Json | None) -> Causes:
    if subject is None:
        kind = key[0].upper() + key[1:]
        yield required(field, f"{key} is required when subject kind is '{kind}'")
        return
    name, namespace = subject.get("name", ""), subject.get("namespace", "")
    if not name:
        yield required(f"{field}.name")
    if key != "serviceAccount":
        return
    if name not in ("", "*"):
        yield from check_subdomain(f"{field}.name", name)
    if namespace:
        yield from check_dns_label(f"{field}.namespace", namespace)
    else:
        yield required(f"{field}.namespace", "must specify namespace for service account")


def _check_verbs(field: str, verbs: list[str]) -> Causes:
    if not verbs:
        yield required(field, "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            yield invalid(field, verbs, "if '*' is present, must not specify other verbs")
    elif not all(verb in VERBS for verb in verbs):
        yield not_supported(field, verbs, VERBS)


def _check_resources(field: str, rule: Json) -> Causes:
    yield from _check_verbs(f"{field}.verbs", rule.get("verbs") or [])
    for key, none, others in (
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ):
        values = rule.get(key) or []
        if not values:
            yield required(f"{field}.{key}", none)
        elif len(values) > 1 and "*" in values:
            why = f"if '*' is present, must not specify other {others}"
            yield invalid(f"{field}.{key}", values, why)
    spaces = rule.get("namespaces") or []
    where = f"{field}.namespaces"
    if not spaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        yield required(where, why)
    elif "*" in spaces:
        if len(spaces) > 1:
            yield invalid(where, spaces, "if '*' is present, must not specify other namespaces")
        return
    for index, space in enumerate(spaces):
        for problem in dns_label_problems(space):
            yield invalid(f"{where}[{index}]", space, f"{_NAMESPACE}{problem}")


def _check_paths(field: str, rule: Json) -> Causes:
    yield from _check_verbs(f"{field}.verbs", rule.get("verbs") or [])
    paths, where = rule.get("nonResourceURLs") or [], f"{field}.nonResourceURLs"
    if not paths:
        yield required(where, "nonResourceURLs must contain at least one value")
    elif "*" in paths:
        if len(paths) > 1:
            why = "if '*' is present, must not specify other non-resource URLs"
            yield invalid(where, paths, why)
    else:
        for index, path in enumerate(paths):
            yield from _check_path(f"{where}[{index}]", path)


def _check_path(field: str, path: str) -> Causes:
    # upstream: validation.go:ValidateNonResourceURLPath
    if not path:
        yield invalid(field, path, "must not be empty")
    elif path != "/" and not path.startswith("/"):
        yield invalid(field, path, "must start with slash")
    elif " " in path:
        yield invalid(field, path, "must not contain white-space")
    elif "//" in path:
        yield invalid(field, path, "must not contain double slash")
    elif "*" in path and not (path.count("*") == 1 and path.endswith("/*")):
        why = "wildcard can only do suffix matching"
        yield invalid(field, path, why)


def check_level(obj: Json) -> Causes:
    """Yield the errors of a PriorityLevelConfiguration."""
    spec, name = obj["spec"], obj["metadata"].get("name")
    type_, limited = spec.get("type", ""), spec.get("limited")
    if (name == EXEMPT) != (type_ == "Exempt"):
        why = "type must be 'Exempt' if and only if name is 'exempt'"
        yield invalid("spec.type", type_, why)
    match type_:
        case "Exempt":
            if limited is not None:
                yield forbidden("spec.limited", "must be nil if the type is not Limited")
        case "Limited":
            if spec.get("exempt") is not None:
                yield forbidden("spec.exempt", "must be nil if the type is Limited")
            if limited is None:
                yield required("spec.limited", "must not be empty when type is Limited")
            else:
                yield from _check_limited("spec.limited", limited)
        case _:
            kind = "flowcontrol.v1.PriorityLevelConfigurationSpec"
            yield from check_fields("spec", kind, spec, "type")


def _check_limited(field: str, limited: Json) -> Causes:
    limits = "flowcontrol.v1.LimitedPriorityLevelConfiguration"
    yield from check_fields(field, limits, limited, "nominalConcurrencyShares")
    response = limited.get("limitResponse") or {}
    yield from _check_response(f"{field}.limitResponse", response)
    yield from check_fields(field, limits, limited, "lendablePercent", "borrowingLimitPercent")


def _check_response(field: str, response: Json) -> Causes:
    queuing, where = response.get("queuing"), f"{field}.queuing"
    match response.get("type", ""):
        case "Reject":
            if queuing is not None:
                why = "must be nil if limited.limitResponse.type is not Limited"
                yield forbidden(where, why)
        case "Queue":
            if queuing is None:
                why = "must not be empty if limited.limitResponse.type is Limited"
                yield required(where, why)
            else:
                yield from _check_queuing(where, queuing)
        case _:
            yield from check_fields(field, "flowcontrol.v1.LimitResponse", response, "type")


def _check_queuing(field: str, queuing: Json) -> Causes:
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    for key in ("queueLengthLimit", "queues"):
        if queuing.get(key, 0) <= 0:
            yield invalid(f"{field}.{key}", queuing.get(key, 0), "must be positive")
    if queues > QUEUES_MAX:
        yield invalid(f"{field}.queues", queues, f"must not be greater than {QUEUES_MAX}")
    if hand <= 0:
        yield invalid(f"{field}.handSize", hand, "must be positive")
    if hand > queues:
        why = f"should not be greater than queues ({queues})"
        yield invalid(f"{field}.handSize", hand, why)


def _strategy(check: Callable[[Json], Causes]) -> ResourceStrategy:
    return ResourceStrategy(
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_comparisons=1,
            new=json_check(check),
            subresources={"status": check_flow_status},
        ),
        reset_fields={"status": (("metadata",),)},
    )


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "flowschemas.flowcontrol.apiserver.k8s.io": _strategy(check_schema),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _strategy(check_level),
}
