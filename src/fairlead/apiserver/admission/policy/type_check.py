"""Type checks of ValidatingAdmissionPolicies: the warnings in `status.typeChecking`.

A policy is stored even if its expressions refer to fields that some of the matched kinds lack. Its
status contains a warning about each expression that does not compile for at least one of these
kinds. When an expression is compiled for a kind, `object` and `oldObject` get their types from the
schema of this kind. `params` gets its type from the schema of the paramKind. A field of `variables`
has the type of its expression. If this type is a structure, or if the expression does not compile,
the field has the type `dyn` instead. `request`, `namespaceObject` and `authorizer` always have the
type `dyn`.

Differs from upstream: quantities and values of CEL's library types also have the type `dyn`.

upstream: apiserver/pkg/admission/plugin/policy/validating/typechecking.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.declared_type import declared
from fairlead.apiserver.apiextensions.cel.escaped_name import spelled
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import Schema, Type, schema_of, schemas
from fairlead.cel.check.types import DYN, STRING, CelType, list_of, map_of, parse_type
from fairlead.cel.compiler import compiled
from fairlead.cel.error import ExpressionError

_UNTYPED: Final = ("request", "namespaceObject", "authorizer", "authorizer.requestResource")
_VARIABLES: Final = CelType("kubernetes.variables")
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: Final = {
    Type.STRING: STRING,
    Type.BYTES: parse_type("bytes"),
    Type.INT32: parse_type("int"),
    Type.INT64: parse_type("int"),
    Type.NUMBER: parse_type("double"),
    Type.BOOLEAN: parse_type("bool"),
    Type.TIME: parse_type("timestamp"),
    Type.MICRO_TIME: parse_type("timestamp"),
}

_Structures = dict[str, Mapping[str, CelType]]


def expression_warnings(policy: Json, kinds: Iterable[Kind], param: Kind | None) -> list[Json]:
    """Return the warnings about the expressions of `policy` for objects of `kinds`.

    `param` is the kind of the policy's parameters. `param` is None if the policy has no parameters
    or the server does not serve their kind.
    """
    checks = [_TypeCheck(kind, param, policy["spec"]) for kind in kinds if _has_schema(kind)]
    warnings: list[Json] = []
    for index, rule in enumerate(policy["spec"].get("validations") or ()):
        for name in ("expression", "messageExpression"):
            problems = [text for one in checks for text in one.problems(rule.get(name) or "")]
            if problems:
                place = f"spec.validations[{index}].{name}"
                warnings.append({"fieldRef": place, "warning": "\n".join(problems)})
    return warnings


class _TypeCheck:
    """Checks expressions against the types that CEL variables have for objects of one kind."""

    def __init__(self, kind: Kind, param: Kind | None, spec: Json) -> None:
        self._title = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        self._structures: _Structures = {}
        object_ = self._type_of_kind(kind)
        has_type = param is not None and _has_schema(param)
        self._types = {
            **dict.fromkeys(_UNTYPED, DYN),
            "object": object_,
            "oldObject": object_,
            "params": self._type_of_kind(param) if param is not None and has_type else DYN,
            "variables": _VARIABLES,
        }
        fields: dict[str, CelType] = {}
        self._structures[_VARIABLES.name] = fields
        for one in spec.get("variables") or ():
            fields[one["name"]] = self._type_of_variable(one["expression"])

    def problems(self, expression: str) -> Iterator[str]:
        """Yield the compiler's errors as one text; nothing for a valid or empty expression."""
        if not expression:
            return
        try:
            compiled(expression, self._types, self._structures)
        except ExpressionError as cause:
            yield f"{self._title}: {cause}\n"

    def _type_of_variable(self, expression: str) -> CelType:
        # upstream: plugin/cel/composition.go:convertCelTypeToDeclType
        try:
            type_ = compiled(expression, self._types, self._structures).type_
        except ExpressionError:
            return DYN
        return DYN if type_.is_structure else type_

    def _type_of_kind(self, kind: Kind) -> CelType:
        schema = schema_of(kind.api_version, kind.kind)
        if schema is not None:
            return self._type_of(schema)
        raw = kind.custom.raw if kind.custom is not None else {}
        found = declared(raw, kind.qualified, is_object=True)
        if found is None:
            return DYN
        self._structures |= found.structures()
        metadata = self._type_of(schemas().of_definition(_METADATA))
        whole = {**self._structures[found.type_.name], "metadata": metadata}
        self._structures[found.type_.name] = whole
        return found.type_

    def _type_of(self, schema: Schema) -> CelType:
        """Return the CEL type of values with `schema`.

        Also add all structures in that type to `self._structures`.
        """
        if schema.type is Type.LIST and schema.items is not None:
            return list_of(self._type_of(schema.items))
        if schema.type is Type.MAP and schema.items is not None:
            return map_of(STRING, self._type_of(schema.items))
        if schema.type is not Type.OBJECT or not schema.definition:
            return _SCALARS.get(schema.type, DYN)
        if schema.definition not in self._structures:
            fields: dict[str, CelType] = {}
            self._structures[schema.definition] = fields  # first: types may be circular
            for name, member in schemas().of_definition(schema.definition).fields.items():
                fields[name] = fields[spelled(name)] = self._type_of(member.schema)
        return CelType(schema.definition)


def _has_schema(kind: Kind) -> bool:
    return kind.custom is not None or schema_of(kind.api_version, kind.kind) is not None
