"""Webhooks: what others, asked over HTTP, make of a request.

Nothing here does I/O. A webhook whose answer is not known yet ends the request with
`WebhookNeeded`; whoever serves asks it and handles the request anew, with the answer at hand:

    handle --WebhookNeeded--> ask over HTTP --answer--> handle --...--> done

What Fairlead itself writes is not sent to webhooks.

upstream: apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go,
plugin/webhook/generic/webhook.go, request/admissionreview.go, errors/statuserror.go
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.apiserver.admission.plugin import ALONE, Circumstances, Operation
from fairlead.apiserver.admission.webhook_rule import applies
from fairlead.apiserver.error import ApiError, Cause, bad_request
from fairlead.apiserver.kind import (
    MUTATING_WEBHOOK_CONFIGURATION,
    SERVICE,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from fairlead.apiserver.patch.json_patch import apply_json_patch
from fairlead.apiserver.request import User, WebhookAnswer
from fairlead.apiserver.storage import Json, Storage

TIMEOUT_S_DEFAULT: Final = 10
REVIEW: Final = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
_HARMLESS: Final = ("None", "NoneOnDryRun")
_NO_REPLY: Final = "expected response.uid="


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One webhook to ask: POST `body` to `url`, trusting the authority `ca` (PEM) if given."""

    key: str
    url: str
    ca: str
    timeout_s: int
    body: bytes


class WebhookNeeded(Exception):  # noqa: N818 - no error: the request waits for an answer
    """A request cannot go on before a webhook has answered."""

    def __init__(self, call: WebhookCall) -> None:
        """`call` is what is to be asked."""
        super().__init__(call.url)
        self.call = call


@dataclass(frozen=True, slots=True)
class _Hook:
    """A webhook, and the request that it may be asked about."""

    webhook: Json
    key: str
    operation: Operation
    kind: Kind
    obj: Json
    about: Circumstances

    @property
    def name(self) -> str:
        """As refusals have it."""
        found: str = self.webhook["name"]
        return found

    @property
    def timeout_s(self) -> int:
        """How long its answer may take."""
        return int(self.webhook.get("timeoutSeconds", TIMEOUT_S_DEFAULT))


class MutatingWebhooks:
    """The admission plugin."""

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """What all webhooks in turn make of `obj`. Raises ApiError, WebhookNeeded."""
        for webhook, key in _configured(MUTATING_WEBHOOK_CONFIGURATION, storage, circumstances):
            hook = _Hook(webhook, key, operation, kind, obj, circumstances)
            obj = _patched(hook, _asked(hook, storage))
        return obj


class ValidatingWebhooks:
    """The admission plugin."""

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """Refuse what any webhook refuses. Raises ApiError, WebhookNeeded."""
        for webhook, key in _configured(VALIDATING_WEBHOOK_CONFIGURATION, storage, circumstances):
            _asked(_Hook(webhook, key, operation, kind, obj, circumstances), storage)
        return obj


def _configured(kind: Kind, storage: Storage, about: Circumstances) -> Iterator[tuple[Json, str]]:
    """All webhooks in the order in which they are asked, each with a key of its own."""
    if about.write.user is None:
        return
    for configuration in storage.items(kind):
        for webhook in configuration.get("webhooks") or ():
            yield webhook, f"{kind.kind}/{configuration['metadata']['name']}/{webhook['name']}"


def _asked(hook: _Hook, storage: Storage) -> Json:
    """The webhook's response; empty where it is not asked, or may fail and does."""
    about = hook.about
    if not applies(hook.webhook, hook.operation, hook.kind, hook.obj, storage, about):
        return {}
    dry_run = about.write.dry_run
    if dry_run and hook.webhook.get("sideEffects") not in _HARMLESS:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
    config = hook.webhook.get("clientConfig") or {}
    url, missing = _place(config, storage)
    review, uid = _review(hook)
    answer = missing or about.write.webhooks.get(hook.key)
    if answer is None:
        ca = _pem(config.get("caBundle", ""))
        raise WebhookNeeded(WebhookCall(hook.key, url, ca, hook.timeout_s, review))
    try:
        response = _response(answer, uid)
    except ValueError as cause:
        if hook.webhook.get("failurePolicy", "Fail") == "Ignore":
            return {}
        posted = f'Post "{url}?timeout={hook.timeout_s}s": ' if answer.failure else ""
        why = f'failed calling webhook "{hook.name}": failed to call webhook: {posted}{cause}'
        raise _failed(why) from None
    for warning in response.get("warnings") or ():
        about.write.warn(str(warning))
    if not response.get("allowed"):
        raise _denied(hook.name, response.get("status") or {})
    return response


def _response(answer: WebhookAnswer, uid: str) -> Json:
    """What the webhook said. Raises ValueError for an answer that is none."""
    if answer.failure:
        raise ValueError(answer.failure)
    try:
        response = json.loads(answer.body)["response"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("the answer is no AdmissionReview with a response") from None
    if not isinstance(response, dict) or response.get("uid") != uid:
        shown = response.get("uid", "") if isinstance(response, dict) else ""
        raise ValueError(f'{_NO_REPLY}"{uid}", got "{shown}"')
    return response


def _failed(why: str) -> ApiError:
    """500, as upstream has it where something else fails."""
    # upstream: apimachinery/pkg/api/errors/errors.go:NewInternalError
    message = f"Internal error occurred: {why}"
    return ApiError("InternalError", 500, message, causes=(Cause("", why),))


def _denied(name: str, status: Json) -> ApiError:
    by = f'admission webhook "{name}" denied the request'
    code = max(int(status.get("code", 0) or 0), 400)
    reason = status.get("reason", "")
    if status.get("message"):
        return ApiError(reason, code, f"{by}: {status['message']}")
    return ApiError(reason, code, f"{by}: {reason}" if reason else f"{by} without explanation")


def _patched(hook: _Hook, response: Json) -> Json:
    if not response.get("patch"):
        return hook.obj
    try:
        operations = json.loads(base64.b64decode(response["patch"], validate=True))
        patched: Json = apply_json_patch(hook.obj, operations)
    except (ValueError, binascii.Error, ApiError) as cause:
        why = f'failed calling webhook "{hook.name}": {cause}'
        raise _failed(why) from None
    return patched


# --- what is sent --------------------------------------------------------------------------


def _review(hook: _Hook) -> tuple[bytes, str]:
    """The text of the AdmissionReview, and its uid, which follows from the rest."""
    kind, about = hook.kind, hook.about
    meta = hook.obj.get("metadata") or {}
    is_deletion = hook.operation is Operation.DELETE
    request: dict[str, Any] = {
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "name": meta.get("name", ""),
        "namespace": meta.get("namespace", ""),
        "operation": hook.operation.value,
        "userInfo": _user_info(about.write.user),
        "object": None if is_deletion else hook.obj,
        "oldObject": hook.obj if is_deletion else about.old,
        "dryRun": about.write.dry_run,
        "options": None,
    }
    request["requestKind"], request["requestResource"] = request["kind"], request["resource"]
    if about.subresource:
        request["subResource"] = request["requestSubResource"] = about.subresource
    # The same request gets the same uid when it is handled anew; generated names differ then.
    stable = {"key": hook.key, "name": meta.get("generateName") or meta.get("name", "")}
    digest = hashlib.sha256(json.dumps(stable).encode()).hexdigest()
    uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    return json.dumps({**REVIEW, "request": {"uid": uid, **request}}).encode(), uid


def _user_info(user: User | None) -> Mapping[str, Any]:
    if user is None:
        return {}
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups)}


def _place(config: Json, storage: Storage) -> tuple[str, WebhookAnswer | None]:
    """The URL of a webhook, and what is to be said of one whose service is not there."""
    if config.get("url"):
        return str(config["url"]), None
    service = config.get("service") or {}
    namespace, name = service.get("namespace", ""), service.get("name", "")
    found = storage.find(SERVICE, namespace, name)
    host = (found or {}).get("spec", {}).get("externalName") or f"{name}.{namespace}.svc"
    path = str(service.get("path") or "/").lstrip("/")
    missing = WebhookAnswer(failure=f'service "{name}" not found') if found is None else None
    return f"https://{host}:{service.get('port', 443)}/{path}", missing


def _pem(bundle: str) -> str:
    try:
        return base64.b64decode(bundle).decode()
    except (ValueError, UnicodeDecodeError):
        return ""
