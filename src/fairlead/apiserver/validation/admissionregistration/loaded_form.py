"""Checks admission policies, their bindings and webhook configurations of a snapshot.

These kinds have no typed view. Therefore this module first checks that their fields have the right
types. Then it applies the rules of an API server for stored objects (see `options.STORED`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.json import Json, mapping
from fairlead.api.objects import LabelSelector
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.admissionregistration import policy, webhook
from fairlead.apiserver.validation.admissionregistration.options import STORED
from fairlead.apiserver.validation.meta.field import Causes

GROUP: Final = "admissionregistration.k8s.io/"
_V1BETA1_WEBHOOK: Final = {"sideEffects": "Unknown", "admissionReviewVersions": ["v1beta1"]}
_V1ALPHA1_REFERENCE: Final = {"parameterNotFoundAction": "Deny"}
_Texts = tuple[str, ...]


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    """The base class of the types in this module: immutable, with camelCase names in JSON."""


class _Rule(_Form, frozen=True):
    api_groups: _Texts = ()
    api_versions: _Texts = ()
    operations: _Texts = ()
    resources: _Texts = ()
    resource_names: _Texts = ()
    scope: str = ""


class _Named(_Form, frozen=True, kw_only=True):
    """A condition or a variable: an expression with a name."""

    name: str = ""
    expression: str


class _Matching(_Form, frozen=True):
    match_policy: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: tuple[_Rule, ...] = ()
    exclude_resource_rules: tuple[_Rule, ...] = ()


class _ParamKind(_Form, frozen=True):
    api_version: str = ""
    kind: str = ""


class _Validation(_Form, frozen=True):
    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""


class _AuditAnnotation(_Form, frozen=True):
    key: str
    value_expression: str


class _Expression(_Form, frozen=True):
    expression: str = ""


class _Mutation(_Form, frozen=True):
    patch_type: str
    apply_configuration: _Expression | None = None
    json_patch: _Expression | None = None


class _PolicySpec(_Form, frozen=True):
    failure_policy: str = ""
    reinvocation_policy: str = ""
    param_kind: _ParamKind | None = None
    match_constraints: _Matching | None = None
    match_conditions: tuple[_Named, ...] = ()
    variables: tuple[_Named, ...] = ()
    validations: tuple[_Validation, ...] = ()
    audit_annotations: tuple[_AuditAnnotation, ...] = ()
    mutations: tuple[_Mutation, ...] = ()


class _Policy(_Form, frozen=True):
    spec: _PolicySpec


class _ParamRef(_Form, frozen=True):
    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str = ""


class _BindingSpec(_Form, frozen=True):
    policy_name: str = ""
    param_ref: _ParamRef | None = None
    match_resources: _Matching | None = None
    validation_actions: _Texts = ()


class _Binding(_Form, frozen=True):
    spec: _BindingSpec


class _Service(_Form, frozen=True):
    name: str = ""
    namespace: str = ""
    path: str = ""
    port: int = 0


class _ClientConfig(_Form, frozen=True):
    url: str = ""
    service: _Service | None = None
    ca_bundle: str = ""


class _Webhook(_Form, frozen=True):
    name: str
    client_config: _ClientConfig = _ClientConfig()
    rules: tuple[_Rule, ...] = ()
    match_policy: str = ""
    match_conditions: tuple[_Named, ...] = ()
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    admission_review_versions: _Texts = ()
    failure_policy: str = ""
    reinvocation_policy: str = ""
    side_effects: str = ""
    timeout_seconds: int = 0


class _Configuration(_Form, frozen=True):
    webhooks: tuple[_Webhook, ...] = ()


_check_policy: Final = partial(policy.check_policy, options=STORED)
_check_mutating_policy: Final = partial(policy.check_mutating_policy, options=STORED)
_check_webhooks: Final = partial(webhook.check_webhooks, options=STORED)
_FORMS: Final[dict[str, tuple[type[_Form], Callable[[Json], Causes]]]] = {
    "ValidatingAdmissionPolicy": (_Policy, _check_policy),
    "ValidatingAdmissionPolicyBinding": (_Binding, policy.check_validating_binding),
    "MutatingAdmissionPolicy": (_Policy, _check_mutating_policy),
    "MutatingAdmissionPolicyBinding": (_Binding, policy.check_mutating_binding),
    "ValidatingWebhookConfiguration": (_Configuration, _check_webhooks),
    "MutatingWebhookConfiguration": (_Configuration, _check_webhooks),
}
_INVALID: Final = "FieldValueInvalid"


def check_admission_form(obj: Json) -> Causes:
    """Yield the errors of `obj`, except those that an API server tolerates in stored objects.

    `obj` is an object of the group admissionregistration.k8s.io in any version. If fields have
    wrong types, only the error of the first one is yielded.
    """
    if obj["kind"] not in _FORMS:
        return
    form, check = _FORMS[obj["kind"]]
    whole = without_nulls(obj)
    try:
        decode_as(form, whole)
    except DecodeError as cause:
        yield Cause(_INVALID, cause.problem, cause.field)
        return
    yield from check(_with_defaults(whole))


def _with_defaults(obj: Json) -> Json:
    """Return `obj` with the defaults that its version has for fields that version v1 requires.

    upstream: pkg/apis/admissionregistration/{v1alpha1,v1beta1}/defaults.go
    """
    _, _, version = obj["apiVersion"].rpartition("/")
    if version == "v1beta1" and "webhooks" in obj:
        hooks = [
            _V1BETA1_WEBHOOK | {name: value for name, value in one.items() if value != []}
            for one in obj["webhooks"]
        ]
        return obj | {"webhooks": hooks}
    reference = mapping(obj, "spec", "paramRef")
    if version == "v1alpha1" and reference:
        return obj | {"spec": obj["spec"] | {"paramRef": _V1ALPHA1_REFERENCE | reference}}
    return obj
