"""Compiles and type-checks the CEL expressions of webhooks and admission policies.

upstream: pkg/apis/admissionregistration/validation/validation.go,
apiserver/pkg/admission/plugin/cel/{compile,composition}.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.validation.meta.field import Causes, invalid
from fairlead.cel.check.object_types import ObjectTypes
from fairlead.cel.check.types import DYN, CelType, parse_type
from fairlead.cel.compiler import compiled
from fairlead.cel.error import ExpressionError
from fairlead.cel.program import KEPT_CHARACTERS_MAX

CACHE_SIZE: Final = 1_024
BOOLEAN: Final = ("bool",)
TEXT: Final = ("string",)
TEXT_OR_NULL: Final = ("string", "null_type")
OBJECT: Final = ("Object",)
PATCH: Final = ("list(JSONPatch)",)
# The limit for the total length of the expressions of one object, because parsing them takes time.
# Each expression counts as its length plus _CHARACTERS_EACH.
CHARACTERS_MAX: Final = 200_000
_CHARACTERS_EACH: Final = 150
_VARIABLES: Final = "kubernetes.variables"
_TEXT_KEYS: Final = "map(string, string)"
_STRUCTURES: Final = {
    "GroupVersionKind": {"group": "string", "version": "string", "kind": "string"},
    "GroupVersionResource": {"group": "string", "version": "string", "resource": "string"},
    "UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "list(string)",
        "extra": "map(string, list(string))",
    },
    "AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "NamespaceSpec": {"finalizers": "list(string)"},
    "NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), "string"),
        "lastTransitionTime": "timestamp",
    },
    "NamespaceStatus": {"conditions": "list(kubernetes.NamespaceCondition)", "phase": "string"},
    "NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), "string"),
        **dict.fromkeys(("labels", "annotations"), _TEXT_KEYS),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "timestamp"),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        "finalizers": "list(string)",
    },
    "Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
}
_FIELDS: Final = {
    f"kubernetes.{name}": {own: parse_type(kind) for own, kind in fields.items()}
    for name, fields in _STRUCTURES.items()
}
_ALWAYS: Final = {
    "object": DYN,
    "oldObject": DYN,
    "namespaceObject": parse_type("kubernetes.Namespace"),
    "request": parse_type("kubernetes.AdmissionRequest"),
}
_RIGHTS: Final = {
    "authorizer": parse_type("kubernetes.authorization.Authorizer"),
    "authorizer.requestResource": parse_type("kubernetes.authorization.ResourceCheck"),
}


class ExpressionVariables(Struct):
    """The optional variables of the CEL expressions in one policy or webhook configuration.

    `has_params` allows the variable `params`, and `has_rights` allows `authorizer`. `makes_objects`
    allows expressions to build objects. `variables` contains the variables that a policy has
    defined so far. `variables` is None for expressions that cannot use such variables, for example
    those of matchConditions. `left[0]` is the number of characters that all remaining expressions
    may have together. Copies of this struct share the list `left`. If `is_compiled` is False,
    expressions are neither compiled nor checked.
    """

    is_compiled: bool = True
    has_params: bool = False
    has_rights: bool = True
    makes_objects: bool = False
    variables: dict[str, CelType] | None = None
    left: list[int] = field(default_factory=lambda: [CHARACTERS_MAX])

    def without_rights(self) -> ExpressionVariables:
        """Return a copy of these variables that lacks `authorizer`."""
        return replace(self, has_rights=False)

    def of_mutations(self) -> ExpressionVariables:
        """Return a copy of these variables for expressions that build objects or JSON patches."""
        return replace(self, makes_objects=True)


def check_expression(
    field: str,
    expression: str,
    wanted: tuple[str, ...] = (),
    known: ExpressionVariables | None = None,
) -> Causes:
    """Yield the errors of `expression`; `known` states which optional variables it may use.

    If `known` is None, `expression` may use only the optional variable `authorizer`. The type of
    the result must be one of `wanted`; if `wanted` is empty, every type is allowed. A blank
    expression has no errors.
    """
    known = known or ExpressionVariables()
    if not known.is_compiled or not expression.strip():
        return
    problem, made = _error_and_type(expression, known)
    if problem:
        yield invalid(field, expression, problem)
    elif wanted and made.full_name not in wanted:
        which = wanted[0] if not wanted[1:] else f"one of [{' '.join(wanted)}]"
        yield invalid(field, expression, f"must evaluate to {which} but got {made.full_name}")


def check_variable(field: str, name: str, expression: str, known: ExpressionVariables) -> Causes:
    """Yield the errors of the variable `name`, and add it to `known` if it is valid."""
    if not known.is_compiled:
        return
    problem, made = _error_and_type(expression, known) if expression.strip() else ("", DYN)
    if problem:
        yield invalid(field, expression, problem)
    elif known.variables is not None:
        known.variables[name] = made


def _error_and_type(expression: str, known: ExpressionVariables) -> tuple[str, CelType]:
    """Return (error text of an expression, type of its result).

    The error text is "" for a valid expression.
    """
    known.left[0] -= len(expression) + _CHARACTERS_EACH
    if known.left[0] < 0:
        return (
            f"compilation failed: all expressions may have {CHARACTERS_MAX} characters altogether",
            DYN,
        )
    named = None if known.variables is None else tuple(known.variables.items())
    return _read(expression, _named(known), named, makes_objects=known.makes_objects)


def _named(known: ExpressionVariables) -> tuple[tuple[str, CelType], ...]:
    """Return (name, type) of each optional variable that `known` allows.

    The optional variables are `params`, `authorizer` and `authorizer.requestResource`.
    """
    params = {"params": DYN} if known.has_params else {}
    return tuple((params | (_RIGHTS if known.has_rights else {})).items())


@text_cache(maxsize=CACHE_SIZE, characters_max=KEPT_CHARACTERS_MAX)
def _read(
    expression: str,
    others: tuple[tuple[str, CelType], ...],
    named: tuple[tuple[str, CelType], ...] | None,
    *,
    makes_objects: bool,
) -> tuple[str, CelType]:
    variables = {**_ALWAYS, **dict(others)}
    fields = ObjectTypes(_FIELDS) if makes_objects else dict(_FIELDS)
    if named is not None:
        variables["variables"], fields[_VARIABLES] = CelType(_VARIABLES), dict(named)
    try:
        return "", compiled(expression, variables, fields).type_
    except ExpressionError as cause:
        return cause.whole, DYN
