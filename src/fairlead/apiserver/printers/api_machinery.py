"""Table rows of RBAC, admission, flow control and API registration kinds.

upstream: pkg/printers/internalversion/printers.go:printRoleBinding, printFlowSchema, ... and
kube-aggregator/pkg/registry/apiservice/etcd/etcd.go:ConvertToTable
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json, at, items, mapping, name_of, number, text
from fairlead.api.text.go_selector import go_selector
from fairlead.apiserver.printers.age import age_of
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import NONE, UNSET


def _role_binding(obj: Json, now: int) -> list[Cell]:
    role = f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"
    subjects = [", ".join(_subjects(obj, kind)) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(obj), role, age_of(obj, now), *subjects]


def _subjects(obj: Json, kind: str) -> list[str]:
    found = [subject for subject in items(obj, "subjects") if subject.get("kind") == kind]
    if kind == "ServiceAccount":
        return [f"{text(subject, 'namespace')}/{text(subject, 'name')}" for subject in found]
    return [text(subject, "name") for subject in found]


def _webhooks(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), len(items(obj, "webhooks")), age_of(obj, now)]


def _validating_policy(obj: Json, now: int) -> list[Cell]:
    return _policy(obj, len(items(obj, "spec", "validations")), now)


def _mutating_policy(obj: Json, now: int) -> list[Cell]:
    return _policy(obj, len(items(obj, "spec", "mutations")), now)


def _policy(obj: Json, rules: int, now: int) -> list[Cell]:
    param = at(obj, "spec", "paramKind")
    named = f"{text(param, 'apiVersion')}/{text(param, 'kind')}" if param else UNSET
    return [name_of(obj), rules, named, age_of(obj, now)]


def _policy_binding(obj: Json, now: int) -> list[Cell]:
    param, shown = mapping(obj, "spec", "paramRef"), UNSET
    if param.get("name"):
        # The binding does not say whether the parameter kind is namespaced.
        shown = f"{text(param, 'namespace') or '*'}/{text(param, 'name')}"
    elif param.get("selector") is not None:
        shown = go_selector(param["selector"])
    return [name_of(obj), text(obj, "spec", "policyName"), shown, age_of(obj, now)]


def _flow_schema(obj: Json, now: int) -> list[Cell]:
    dangling = "?"
    for condition in items(obj, "status", "conditions"):
        if condition.get("type") == "Dangling":
            dangling = text(condition, "status")
            break
    return [
        name_of(obj),
        text(obj, "spec", "priorityLevelConfiguration", "name"),
        number(obj, "spec", "matchingPrecedence"),
        text(obj, "spec", "distinguisherMethod", "type") or NONE,
        age_of(obj, now),
        dangling,
    ]


def _by_precedence(obj: Json) -> tuple[int, str]:
    """Return a sort key that puts FlowSchemas in the order in which they are matched."""
    # upstream: pkg/printers/internalversion/printers.go:printFlowSchemaList
    return number(obj, "spec", "matchingPrecedence"), name_of(obj)


def _priority_level(obj: Json, now: int) -> list[Cell]:
    """Return the row of a priority level; an exempt level does not show its shares."""
    spec = mapping(obj, "spec")
    queuing = mapping(spec, "limited", "limitResponse", "queuing")
    values = (
        at(spec, "limited", "nominalConcurrencyShares"),
        queuing.get("queues"),
        queuing.get("handSize"),
        queuing.get("queueLengthLimit"),
    )
    shown = [NONE if value is None else value for value in values]
    return [name_of(obj), text(spec, "type"), *shown, age_of(obj, now)]


def _api_service(obj: Json, now: int) -> list[Cell]:
    service = at(obj, "spec", "service")
    service_text = f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"
    return [name_of(obj), service_text, _availability(obj), age_of(obj, now)]


def _availability(obj: Json) -> str:
    for condition in items(obj, "status", "conditions"):
        if condition.get("type") == "Available":
            status = text(condition, "status")
            return status if status == "True" else f"{status} ({text(condition, 'reason')})"
    return "Unknown"


_BINDING: Final = "Name/name, Role, Age, Users*, Groups*, ServiceAccounts*"
ROLE_BINDING: Final = printer(_BINDING, _role_binding)
WEBHOOKS: Final = printer("Name/name, Webhooks:integer, Age", _webhooks)
VALIDATING_POLICY: Final = printer(
    "Name/name, Validations:integer, ParamKind, Age", _validating_policy
)
MUTATING_POLICY: Final = printer("Name/name, Mutations:integer, ParamKind, Age", _mutating_policy)
POLICY_BINDING: Final = printer("Name/name, PolicyName, ParamRef, Age", _policy_binding)
FLOW_SCHEMA: Final = printer(
    "Name/name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL",
    _flow_schema,
    order=_by_precedence,
)
PRIORITY_LEVEL: Final = printer(
    "Name/name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
    _priority_level,
)
API_SERVICE: Final = printer("Name/name, Service, Available, Age", _api_service)
