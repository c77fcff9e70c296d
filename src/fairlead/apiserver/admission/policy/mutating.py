"""MutatingAdmissionPolicy: changes objects with CEL expressions.

The mutations of a policy run one after the other. An ApplyConfiguration is merged into the object
by the rules of server-side apply. A JSONPatch is applied to the object by the rules of RFC 6902.

upstream: apiserver/pkg/admission/plugin/policy/mutating/{dispatcher,plugin}.go,
patch/{smd,json_patch}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import (
    AdmissionAttributes,
    Operation,
    ReinvocationContext,
)
from fairlead.apiserver.admission.cel.admission_request import (
    convert_objects,
    converted_object,
    in_request_version,
)
from fairlead.apiserver.admission.cel.environment import ExpressionContext
from fairlead.apiserver.admission.match import has_false_condition, is_exempt
from fairlead.apiserver.admission.policy.match import (
    PolicyMatch,
    expression_context,
    policy_matches,
)
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    MUTATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING,
    Kind,
)
from fairlead.apiserver.patch.jsonpatch.apply import PatchFailedError, apply_json_patch
from fairlead.apiserver.patch.managedfields.path_element import inner_schema
from fairlead.apiserver.patch.managedfields.typed import merged
from fairlead.apiserver.patch.managedfields.typed_validation import validation_errors
from fairlead.apiserver.schema.model import ANYTHING, ElementRelationship, Schema, Type, schema_of
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookCalls
from fairlead.cel.value import as_json

_IF_NEEDED: Final = "IfNeeded"
_JSON_PATCH: Final = "JSONPatch"
_NOT_APPLIED: Final = "error applying patch"
_UNTYPED: Final = f"{_NOT_APPLIED}: failed to convert patch object to typed object"
_ATOMIC: Final = (
    f"{_NOT_APPLIED}: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
)


class MutatingAdmissionPolicy:
    """The admission plugin `MutatingAdmissionPolicy`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> WebhookCalls[Json]:
        """Return the object as changed by all matching policies, in the order of their names.

        Policies do not apply to deletions, to subresources, or to writes that the server itself
        makes. Raises ApiError 403 if a policy fails and its failurePolicy is Fail.
        """
        is_part = bool(attributes.subresource)
        if attributes.write.user is None or is_exempt(attributes.kind) or is_part:
            return attributes.obj
        if attributes.operation is Operation.DELETE:
            return attributes.obj
        attributes = attributes.without_generated_name()
        kinds = (MUTATING_ADMISSION_POLICY, MUTATING_ADMISSION_POLICY_BINDING)
        for match in policy_matches(*kinds, attributes, storage):
            if _is_invoked(match, attributes.reinvocation):
                changed = yield from _apply_policy(match, attributes, storage)
                attributes = attributes.with_object(changed)
        return attributes.with_generated_name().obj


def _is_invoked(match: PolicyMatch, reinvocation: ReinvocationContext | None) -> bool:
    """Return whether the policy runs in this round of mutation.

    In the first round, also record the policy in `reinvocation` if its reinvocationPolicy lets it
    run again in the second round.
    """
    if reinvocation is None:
        return True
    binding_name = match.binding["metadata"]["name"] if match.binding else ""
    key = f"{MUTATING_ADMISSION_POLICY.kind}/{match.policy['metadata']['name']}/{binding_name}"
    if reinvocation.round:
        return key in reinvocation.due
    if match.policy["spec"].get("reinvocationPolicy") == _IF_NEEDED:
        reinvocation.previously_invoked.append(key)
    return True


def _apply_policy(
    match: PolicyMatch, attributes: AdmissionAttributes, storage: Storage
) -> WebhookCalls[Json]:
    """Return the object after the policy of `match` has run once for each item of `match.params`.

    Raises ApiError 403 if the policy fails and its failurePolicy is Fail.
    """
    if match.problem:
        return _fail_or_ignore(match, match.problem, attributes)
    obj = attributes.obj
    for params in match.params:
        obj = yield from _apply_mutations(match, attributes.with_object(obj), params, storage)
    reinvocation = attributes.reinvocation
    if reinvocation is not None and obj != attributes.obj:
        obj = reinvocation.apply_defaults(obj)
        reinvocation.record_change()
    return obj


def _apply_mutations(
    match: PolicyMatch, attributes: AdmissionAttributes, params: Json | None, storage: Storage
) -> WebhookCalls[Json]:
    """Return the object after all mutations of one policy, evaluated with `params`."""
    spec = match.policy["spec"]
    yield from convert_objects(attributes, match.kind)
    context = expression_context(match, attributes, params, storage)
    try:
        if has_false_condition(spec.get("matchConditions") or (), context):
            return attributes.obj
    except ValueError as cause:
        return _fail_or_ignore(match, str(cause), attributes)
    for mutation in spec.get("mutations") or ():
        before = converted_object(attributes, match.kind) or {}
        try:
            after = _mutate(mutation, match.kind, before, context)
        except ValueError as cause:
            _fail_or_ignore(match, str(cause), attributes)
            continue
        if after != before:
            changed = yield from in_request_version(attributes, match.kind, after)
            attributes = attributes.with_object(changed)
            yield from convert_objects(attributes, match.kind)
            context = expression_context(match, attributes, params, storage)
    return attributes.obj


def _mutate(mutation: Json, kind: Kind, obj: Json, context: ExpressionContext) -> Json:
    """Return the object after one mutation.

    Raises ValueError with the reason if the mutation fails.
    """
    is_patch = mutation.get("patchType") == _JSON_PATCH
    patch = mutation.get("jsonPatch" if is_patch else "applyConfiguration") or {}
    expression = patch.get("expression", "")
    result = context.evaluate(expression)
    if result.problem:
        raise ValueError(result.problem)
    value = as_json(result.value)
    return _apply_json_patch(obj, value) if is_patch else _apply_configuration(kind, obj, value)


def _apply_json_patch(obj: Json, operations: Any) -> Json:
    if not isinstance(operations, list):
        raise ValueError(  # noqa: TRY004 - the policy's error
            "type mismatch: JSONPatchType.expression should evaluate to array"
        )
    try:
        patched: Json = apply_json_patch(obj, operations)
    except PatchFailedError as failure:
        if failure.is_failed_test:
            return obj  # a failed `test` operation makes the patch a no-op
        raise ValueError(f"JSON Patch: {failure.problem}") from None
    except ApiError as cause:
        raise ValueError(f"JSON Patch: {cause.message}") from None
    return patched


def _apply_configuration(kind: Kind, obj: Json, configuration: Any) -> Json:
    if not isinstance(configuration, dict):
        raise ValueError(  # noqa: TRY004 - the policy's error
            "must evaluate to a non-object type: ApplyConfiguration"
        )
    schema = kind.custom.fields if kind.custom else schema_of(kind.api_version, kind.kind)
    schema = schema or ANYTHING
    errors = validation_errors(schema, configuration)
    if errors:
        raise ValueError(f"{_UNTYPED}: {errors}")
    atomic = ", ".join(_atomic_fields(schema, configuration, ""))
    if atomic:
        raise ValueError(f"{_ATOMIC}: {atomic}")
    merge: Json = merged(schema, obj, configuration)
    return merge


def _atomic_fields(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Yield the path of each atomic list, map or struct that a merge of `value` would replace."""
    if not isinstance(value, dict | list):
        return
    if schema.topology is ElementRelationship.ATOMIC and path:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _atomic_fields(inner_schema(schema, f"f:{key}"), item, f"{path}.{key}")
    elif schema.type is Type.LIST and schema.items is not None:
        for item in value:
            yield from _atomic_fields(schema.items, item, path)


def _fail_or_ignore(match: PolicyMatch, reason: str, attributes: AdmissionAttributes) -> Json:
    if match.ignores_failure:
        return attributes.obj
    name = match.policy["metadata"]["name"]
    if match.binding is None:
        message = f"policy '{name}' denied request: {reason}"
    else:
        binding_name = match.binding["metadata"]["name"]
        message = f"policy '{name}' with binding '{binding_name}' denied request: {reason}"
    meta = attributes.obj.get("metadata") or {}
    kind = attributes.kind
    details_of_object = {
        "name": attributes.name or meta.get("generateName") or "Unknown",
        "group": kind.stored_group,
        "kind": kind.plural,
    }
    details: Json = {key: value for key, value in details_of_object.items() if value}
    details["causes"] = [{"message": message}]
    raise ApiError("Forbidden", 403, message, details=details)
