"""The admission plugins MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

`admit` is a generator that yields the webhook calls and receives their answers (see
`suspension`). Webhooks are not called for writes that the server itself makes.

upstream: apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go,
plugin/webhook/generic/webhook.go, errors/statuserror.go
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.cel.admission_request import (
    convert_objects,
    converted_object,
    in_request_version,
)
from fairlead.apiserver.admission.cel.environment import ExpressionContext
from fairlead.apiserver.admission.match import (
    EXACT,
    cel_variables,
    has_false_condition,
    is_exempt,
    matched_kind,
    matches_selectors,
)
from fairlead.apiserver.admission.webhooks.review import admission_review, verified_response
from fairlead.apiserver.error import ApiError, Cause, bad_request, forbidden
from fairlead.apiserver.kind import (
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from fairlead.apiserver.patch.jsonpatch.apply import PatchFailedError, apply_json_patch
from fairlead.apiserver.schema.gojson.json_text import json_kind, parse_json
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookCalls, run_to_end
from fairlead.apiserver.webhook_client_config import WebhookClientConfig

TIMEOUT_S_DEFAULT: Final = 10
_DRY_RUN_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_IF_NEEDED: Final = "IfNeeded"
_JSON_PATCH: Final = "JSONPatch"
CODE_MAX: Final = 599  # there is no status line for a higher code


class _Hook(Struct, frozen=True):
    """A webhook that applies to a request.

    `kind` is the kind that the webhook's rules match.
    """

    webhook: Json
    key: str
    kind: Kind
    is_mutating: bool

    @property
    def name(self) -> str:
        name: str = self.webhook["name"]
        return name

    @property
    def timeout_s(self) -> int:
        """The timeout of a call in seconds."""
        return int(self.webhook.get("timeoutSeconds") or TIMEOUT_S_DEFAULT)

    @property
    def ignores_failure(self) -> bool:
        """True if failed calls of the webhook are ignored."""
        return bool(self.webhook.get("failurePolicy", "Fail") == "Ignore")


class MutatingAdmissionWebhook:
    """The admission plugin `MutatingAdmissionWebhook`."""

    HANDLES_CONNECT: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> WebhookCalls[Json]:
        """Return the object with the changes of all matching mutating webhooks.

        Raises ApiError if a webhook denies the request, or if its call fails and its failurePolicy
        is not Ignore.
        """
        reinvocation = attributes.reinvocation
        if attributes.write.user is None or is_exempt(attributes.kind):
            return attributes.obj
        attributes = attributes.without_generated_name()
        if (
            reinvocation is not None
            and reinvocation.round
            and attributes.obj != reinvocation.last_output
        ):
            # Built-in plugins have changed the object since the last webhook ran.
            reinvocation.require_previously_invoked()
        for webhook, key in _webhooks_of(MUTATING_WEBHOOK_CONFIGURATION, storage):
            hook = yield from _matching_hook(webhook, key, attributes, storage, is_mutating=True)
            if hook is None:
                continue
            if reinvocation is not None and reinvocation.round:
                if key not in reinvocation.due:
                    continue
                hook = _Hook(webhook, f"{key}#{reinvocation.round}", hook.kind, is_mutating=True)
            changed = yield from self._invoke_and_patch(hook, attributes, storage)
            attributes = attributes.with_object(changed)
            if reinvocation is not None and webhook.get("reinvocationPolicy") == _IF_NEEDED:
                reinvocation.previously_invoked.append(key)
        if reinvocation is not None:
            reinvocation.last_output = attributes.obj
        return attributes.with_generated_name().obj

    def _invoke_and_patch(
        self, hook: _Hook, attributes: AdmissionAttributes, storage: Storage
    ) -> WebhookCalls[Json]:
        response = yield from _invoke(hook, attributes, storage)
        changed = yield from _apply_patch(hook, attributes, response)
        reinvocation = attributes.reinvocation
        if changed is attributes.obj or reinvocation is None:
            return changed
        if not attributes.subresource:
            changed = reinvocation.apply_defaults(changed)
        if changed != attributes.obj:
            reinvocation.record_change()
        return changed


class ValidatingAdmissionWebhook:
    """The admission plugin `ValidatingAdmissionWebhook`."""

    CHECKS_ONLY: ClassVar[bool] = True
    HANDLES_CONNECT: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> WebhookCalls[Json]:
        """Return the unchanged object.

        Raises ApiError if a webhook denies the request, or if its call fails and its failurePolicy
        is not Ignore.
        """
        if attributes.write.user is None or is_exempt(attributes.kind):
            return attributes.obj
        for webhook, key in _webhooks_of(VALIDATING_WEBHOOK_CONFIGURATION, storage):
            hook = yield from _matching_hook(webhook, key, attributes, storage, is_mutating=False)
            if hook is not None:
                yield from _invoke(hook, attributes, storage)
        return attributes.obj


def matching_webhooks(attributes: AdmissionAttributes, storage: Storage) -> Iterator[str]:
    """Yield the names of the webhooks to call for the request, mutating webhooks first."""
    if is_exempt(attributes.kind):
        return
    for kind in (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION):
        for webhook, key in _webhooks_of(kind, storage):
            try:
                matching = _matching_hook(webhook, key, attributes, storage, is_mutating=False)
                hook = run_to_end(matching)
            except ApiError:
                continue  # a match condition fails: the request is refused without a call
            if hook is not None:
                yield hook.name


def _webhooks_of(kind: Kind, storage: Storage) -> list[tuple[Json, str]]:
    """Return (webhook, unique key) for each webhook in configurations of `kind`, in call order."""
    return [
        (webhook, f"{kind.kind}/{configuration['metadata']['name']}/{webhook['name']}")
        for configuration in storage.items(kind)
        for webhook in configuration.get("webhooks") or ()
    ]


def _matching_hook(
    webhook: Json, key: str, attributes: AdmissionAttributes, storage: Storage, *, is_mutating: bool
) -> WebhookCalls[_Hook | None]:
    """Return `webhook` as a _Hook if it applies to the request, else None.

    Raises ApiError 403 if a match condition cannot be evaluated and failurePolicy is not
    Ignore.
    """
    if not matches_selectors(webhook, attributes, storage):
        return None
    is_exact = webhook.get("matchPolicy") == EXACT
    rules = webhook.get("rules") or ()
    matched = matched_kind(rules, attributes, storage, is_exact=is_exact)
    if matched is None:
        return None
    hook = _Hook(webhook, key, matched, is_mutating)
    yield from convert_objects(attributes, matched)
    conditions = webhook.get("matchConditions") or ()
    return (
        None
        if conditions and _fails_match_conditions(hook, attributes, conditions, storage)
        else hook
    )


def _fails_match_conditions(
    hook: _Hook, attributes: AdmissionAttributes, conditions: tuple[Json, ...], storage: Storage
) -> bool:
    context = ExpressionContext(cel_variables(attributes, hook.kind, storage))
    try:
        return has_false_condition(conditions, context)
    except ValueError as cause:
        if hook.ignores_failure:
            return True
        raise forbidden(
            attributes.kind, attributes.namespace, attributes.name, str(cause)
        ) from None


def _invoke(hook: _Hook, attributes: AdmissionAttributes, storage: Storage) -> WebhookCalls[Json]:
    """Return the webhook's response; {} if the call failed and the webhook ignores failures.

    Raises ApiError for a denial, and for a failed call that is not ignored.
    """
    write = attributes.write
    if write.dry_run and hook.webhook.get("sideEffects") not in _DRY_RUN_SIDE_EFFECTS:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
    try:
        response = yield from _call(hook, attributes, storage)
    except ValueError as cause:
        if hook.ignores_failure:
            stage = "mutation" if hook.is_mutating else "validating"
            write.annotate(f"failed-open.{stage}.webhook.admission.k8s.io/{hook.key}", hook.name)
            return {}
        raise _call_failed(hook, str(cause)) from None
    for key, value in (response.get("auditAnnotations") or {}).items():
        write.annotate(f"{hook.name}/{key}", str(value))
    for warning in response.get("warnings") or ():
        write.warn(str(warning))
    if not response.get("allowed"):
        raise _denied(hook.name, response.get("status") or {})
    return response


def _call(hook: _Hook, attributes: AdmissionAttributes, storage: Storage) -> WebhookCalls[Json]:
    """Call the webhook and return its response. Raises ValueError if the call fails."""
    config = hook.webhook.get("clientConfig") or {}
    versions = hook.webhook.get("admissionReviewVersions") or ()
    review, uid = admission_review(attributes, hook.kind, hook.key, versions)
    client = WebhookClientConfig(config, hook.timeout_s)
    try:
        body = yield from client.post(json.dumps(review).encode(), storage)
    except ValueError as cause:
        raise ValueError(f"failed to call webhook: {cause}") from None
    return verified_response(body, review, uid, is_mutating=hook.is_mutating)


def _call_failed(hook: _Hook, reason: str) -> ApiError:
    """Return the error 500 that upstream reports for a failed call."""
    # upstream: apimachinery/pkg/api/errors/errors.go:NewInternalError
    text = f'failed calling webhook "{hook.name}": {reason}'
    return _internal_error(text)


def _internal_error(text: str) -> ApiError:
    message = f"Internal error occurred: {text}"
    return ApiError("InternalError", 500, message, causes=(Cause("", text),))


def _denied(name: str, status: Json) -> ApiError:
    """Return the error for a denial.

    The code of the error is the code in `status`. A missing code, or a code below 400, becomes 400.
    A code above `CODE_MAX` becomes `CODE_MAX`.
    """
    prefix = f'admission webhook "{name}" denied the request'
    code = min(max(status.get("code") or 0, 400), CODE_MAX)
    reason = str(status.get("reason") or "")
    details = status.get("details")
    explanation = status.get("message") or reason
    message = f"{prefix}: {explanation}" if explanation else f"{prefix} without explanation"
    return ApiError(reason, code, message, details=details if isinstance(details, dict) else None)


def _apply_patch(
    hook: _Hook, attributes: AdmissionAttributes, response: Json
) -> WebhookCalls[Json]:
    if not response.get("patch"):
        return attributes.obj
    try:
        operations = _operations(response["patch"])
    except ValueError as cause:
        reason = f"received undecodable patch in webhook response: {cause}"
        if hook.ignores_failure:
            return attributes.obj
        raise _call_failed(hook, reason) from None
    if not operations:
        return attributes.obj
    before = converted_object(attributes, hook.kind)
    if before is None:
        raise _internal_error(
            f'admission webhook "{hook.name}" attempted to modify the object, which is not '
            "supported for this operation"
        )
    kind = response.get("patchType", _JSON_PATCH)
    if kind != _JSON_PATCH:
        if hook.ignores_failure:
            return attributes.obj
        raise _call_failed(hook, f'unsupported patch type "{kind}"')
    patched = _patched(before, operations)
    if attributes.write.view is not None:
        return attributes.obj
    return (yield from in_request_version(attributes, hook.kind, patched))


def _patched(obj: Json, operations: list[Any]) -> Json:
    try:
        return apply_json_patch(obj, operations)
    except PatchFailedError as failure:
        raise _internal_error(failure.problem) from None
    except ApiError as cause:
        raise _internal_error(cause.message) from None


def _operations(patch: str) -> list[Any]:
    """Return the decoded operations of a base64-encoded JSON patch.

    Raises ValueError if `patch` is malformed.
    """
    operations = parse_json(base64.b64decode(patch, validate=True))
    if not isinstance(operations, list | None):
        found = json_kind(operations)
        raise ValueError(f"json: cannot unmarshal {found} into Go value of type jsonpatch.Patch")  # noqa: TRY004
    return operations or []
