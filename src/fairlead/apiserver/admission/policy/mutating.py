"""MutatingAdmissionPolicy: changes in CEL that are made to what comes in.

A policy says nothing until a binding puts it to work. Its mutations are done one after the other:
a configuration is merged into the object as an applier's would be, a JSON patch is applied to it.

upstream: apiserver/pkg/admission/plugin/policy/mutating/{dispatcher,plugin}.go,
patch/{smd,json_patch}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Circumstances, Operation
from fairlead.apiserver.admission.cel.admission_request import new_of
from fairlead.apiserver.admission.cel.environment import Scope
from fairlead.apiserver.admission.match import failing, is_exempt
from fairlead.apiserver.admission.policy.match import Match, matches, scope_of
from fairlead.apiserver.admission.policy.object_literal import as_map
from fairlead.apiserver.conversion.kind_conversion import stored
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    MUTATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING,
    Kind,
)
from fairlead.apiserver.patch.jsonpatch.apply import TestFailedError, apply_json_patch
from fairlead.apiserver.patch.managedfields.path_element import inner_schema
from fairlead.apiserver.patch.managedfields.typed import merged
from fairlead.apiserver.patch.managedfields.typed_validation import validation_errors
from fairlead.apiserver.schema.model import ANYTHING, Schema, Topology, Type, schema_of
from fairlead.apiserver.storage.storage import Storage

_IF_NEEDED: Final = "IfNeeded"
_JSON_PATCH: Final = "JSONPatch"
_NOT_APPLIED: Final = "error applying patch"
_UNTYPED: Final = f"{_NOT_APPLIED}: failed to convert patch object to typed object"
_ATOMIC: Final = (
    f"{_NOT_APPLIED}: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
)


class MutatingPolicies:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """What all policies in turn make of `obj`. Raises ApiError 403."""
        is_part = bool(asked.about.subresource)
        if asked.about.write.user is None or is_exempt(asked.kind) or is_part:
            return asked.obj
        if asked.operation is Operation.DELETE:
            return asked.obj
        kinds = (MUTATING_ADMISSION_POLICY, MUTATING_ADMISSION_POLICY_BINDING)
        for match in matches(*kinds, asked, storage):
            if _has_turn(match, asked.about):
                asked = replace(asked, obj=_changed(match, asked, storage))
        return asked.obj


def _has_turn(match: Match, about: Circumstances) -> bool:
    """Whether the policy is asked in this round; it is remembered if it wants to be again."""
    rounds = about.rounds
    if rounds is None:
        return True
    bound = match.binding["metadata"]["name"] if match.binding else ""
    key = f"{MUTATING_ADMISSION_POLICY.kind}/{match.policy['metadata']['name']}/{bound}"
    if rounds.number:
        return key in rounds.due
    if match.policy["spec"].get("reinvocationPolicy") == _IF_NEEDED:
        rounds.asked.append(key)
    return True


def _changed(match: Match, asked: Asked, storage: Storage) -> Json:
    """What one policy makes of the object. Raises ApiError 403 where it fails and may not."""
    if match.problem:
        return _failed(match, match.problem, asked)
    obj = asked.obj
    for params in match.params:
        obj = _mutated_in_turn(match, replace(asked, obj=obj), params, storage)
    rounds = asked.about.rounds
    if rounds is not None and obj != asked.obj:
        obj = rounds.complete(obj)
        rounds.note_change()
    return obj


def _mutated_in_turn(match: Match, asked: Asked, params: Json | None, storage: Storage) -> Json:
    """The object after all mutations. Raises ApiError 403 where one fails and may not."""
    spec = match.policy["spec"]
    scope = scope_of(match, asked, params, storage)
    try:
        if failing(spec.get("matchConditions") or (), scope):
            return asked.obj
    except ValueError as cause:
        return _failed(match, str(cause), asked)
    for mutation in spec.get("mutations") or ():
        before = new_of(asked, match.kind) or {}
        try:
            after = _mutated(mutation, match.kind, before, scope)
        except ValueError as cause:
            _failed(match, str(cause), asked)
            continue
        if after != before:
            asked = replace(asked, obj=stored(match.kind, after))
            scope = scope_of(match, asked, params, storage)
    return asked.obj


def _mutated(mutation: Json, kind: Kind, obj: Json, scope: Scope) -> Json:
    """The object after one mutation. Raises ValueError that says why it cannot be done."""
    is_patch = mutation.get("patchType") == _JSON_PATCH
    wanted = mutation.get("jsonPatch" if is_patch else "applyConfiguration") or {}
    expression = wanted.get("expression", "")
    found = scope.evaluated(as_map(expression))
    if found.problem:
        # It is the expression as it was written that people know.
        raise ValueError(found.problem.replace(as_map(expression), expression))
    return _patched(obj, found.value) if is_patch else _applied(kind, obj, found.value)


def _patched(obj: Json, operations: Any) -> Json:
    if not isinstance(operations, list):
        raise ValueError(  # noqa: TRY004 - of a policy's making
            "type mismatch: JSONPatchType.expression should evaluate to array"
        )
    try:
        patched: Json = apply_json_patch(obj, operations)
    except TestFailedError:
        return obj  # its policy asks whether there is anything to do
    except ApiError as cause:
        raise ValueError(f"JSON Patch: {cause.message}") from None
    return patched


def _applied(kind: Kind, obj: Json, configuration: Any) -> Json:
    if not isinstance(configuration, dict):
        raise ValueError(  # noqa: TRY004 - likewise
            "must evaluate to a non-object type: ApplyConfiguration"
        )
    schema = kind.custom.fields if kind.custom else schema_of(kind.api_version, kind.kind)
    schema = schema or ANYTHING
    wrong = validation_errors(schema, configuration)
    if wrong:
        raise ValueError(f"{_UNTYPED}: {wrong}")
    atomic = ", ".join(_atomic_fields(schema, configuration, ""))
    if atomic:
        raise ValueError(f"{_ATOMIC}: {atomic}")
    merge: Json = merged(schema, obj, configuration)
    return merge


def _atomic_fields(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Where `value` would replace the whole of a list, a map or an object."""
    if not isinstance(value, dict | list):
        return
    if schema.topology is Topology.ATOMIC and path:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _atomic_fields(inner_schema(schema, f"f:{key}"), item, f"{path}.{key}")
    elif schema.type is Type.LIST and schema.items is not None:
        for item in value:
            yield from _atomic_fields(schema.items, item, path)


def _failed(match: Match, why: str, asked: Asked) -> Json:
    if match.may_fail:
        return asked.obj
    name = match.policy["metadata"]["name"]
    if match.binding is None:
        message = f"policy '{name}' denied request: {why}"
    else:
        bound = match.binding["metadata"]["name"]
        message = f"policy '{name}' with binding '{bound}' denied request: {why}"
    meta = asked.obj.get("metadata") or {}
    kind = asked.kind
    named = {
        "name": asked.name or meta.get("generateName") or "Unknown",
        "group": kind.stored_group,
        "kind": kind.plural,
    }
    details: Json = {key: value for key, value in named.items() if value}
    details["causes"] = [{"message": message}]
    raise ApiError("Forbidden", 403, message, details=details)
