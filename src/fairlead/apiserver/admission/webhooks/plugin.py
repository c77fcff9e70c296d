"""Webhooks: what others, asked over HTTP, make of a request.

Nothing here does I/O. A webhook whose answer is not known yet ends the request with
`WebhookNeeded`; whoever serves asks it and handles the request anew, with the answer at hand:

    handle --WebhookNeeded--> ask over HTTP --answer--> handle --...--> done

What the server itself writes is not sent to webhooks.

upstream: apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go,
plugin/webhook/generic/webhook.go, errors/statuserror.go
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked
from fairlead.apiserver.admission.cel.admission_request import new_of
from fairlead.apiserver.admission.cel.environment import Scope
from fairlead.apiserver.admission.match import (
    EXACT,
    failing,
    is_exempt,
    judge_of,
    known_of,
    matched_kind,
    selects,
)
from fairlead.apiserver.admission.webhooks.client_config import authority_of, place_of
from fairlead.apiserver.admission.webhooks.review import review_of, verified
from fairlead.apiserver.conversion.kind_conversion import stored
from fairlead.apiserver.error import ApiError, Cause, bad_request, forbidden
from fairlead.apiserver.kind import (
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from fairlead.apiserver.patch.jsonpatch.apply import apply_json_patch
from fairlead.apiserver.request import NO_ANSWERS, Request, WebhookAnswer
from fairlead.apiserver.schema.json_text import parse_json
from fairlead.apiserver.storage.storage import Storage

TIMEOUT_S_DEFAULT: Final = 10
_HARMLESS: Final = ("None", "NoneOnDryRun")
_IF_NEEDED: Final = "IfNeeded"
_JSON_PATCH: Final = "JSONPatch"
CODE_MAX: Final = 599  # beyond it there is no status line


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One webhook to ask: POST `body` to `url`, trusting the authority `ca` (PEM) if given.

    `key` tells the answer from others that the request may need: about other objects, of others.
    """

    key: str
    url: str
    ca: str
    timeout_s: int
    body: bytes


class WebhookNeeded(Exception):  # noqa: N818 - no error: the request waits for an answer
    """A request cannot go on before a webhook has answered."""

    def __init__(self, call: WebhookCall) -> None:
        """`call` is what is to be asked; `drawn` are the ids that the request was given so far.

        `sweep` is how far it came with a collection, and `is_further` whether it is about another
        object of that than it was before.
        """
        super().__init__(call.url)
        self.call = call
        self.drawn: tuple[str, ...] = ()
        self.progress: object | None = None
        self.is_further = False

    def answered(self, request: Request, answer: WebhookAnswer) -> Request:
        """`request`, which waited for this, as it is to be handled anew."""
        known = NO_ANSWERS if self.is_further else request.webhooks
        webhooks = {**known, self.call.key: answer}
        return replace(request, webhooks=webhooks, drawn=self.drawn, progress=self.progress)


@dataclass(frozen=True, slots=True)
class _Hook:
    """A webhook, its key, and what it has to say about which kind."""

    webhook: Json
    key: str
    kind: Kind
    may_change: bool

    @property
    def name(self) -> str:
        """As refusals have it."""
        found: str = self.webhook["name"]
        return found

    @property
    def timeout_s(self) -> int:
        """How long its answer may take."""
        return int(self.webhook.get("timeoutSeconds") or TIMEOUT_S_DEFAULT)

    @property
    def may_fail(self) -> bool:
        """Whether the request goes on without it."""
        return bool(self.webhook.get("failurePolicy", "Fail") == "Ignore")


class MutatingWebhooks:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """What all webhooks in turn make of the object. Raises ApiError, WebhookNeeded."""
        rounds = asked.about.rounds
        if asked.about.write.user is None or is_exempt(asked.kind):
            return asked.obj
        if rounds is not None and rounds.number and asked.obj != rounds.last:
            rounds.call_again()  # plugins of our own have changed it since
        for webhook, key in _configured(MUTATING_WEBHOOK_CONFIGURATION, storage):
            hook = _hook(webhook, key, asked, storage, may_change=True)
            if hook is None:
                continue
            if rounds is not None and rounds.number:
                if key not in rounds.due:
                    continue
                hook = _Hook(webhook, f"{key}#{rounds.number}", hook.kind, may_change=True)
            asked = asked.become(self._told(hook, asked, storage))
            if rounds is not None and webhook.get("reinvocationPolicy") == _IF_NEEDED:
                rounds.asked.append(key)
        if rounds is not None:
            rounds.last = asked.obj
        return asked.obj

    def _told(self, hook: _Hook, asked: Asked, storage: Storage) -> Json:
        changed = _patched(hook, asked, _answered(hook, asked, storage))
        rounds = asked.about.rounds
        if changed is asked.obj or rounds is None:
            return changed
        if not asked.about.subresource:
            changed = rounds.complete(changed)
        if changed != asked.obj:
            rounds.note_change()
        return changed


class ValidatingWebhooks:
    """The admission plugin."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse what any webhook refuses. Raises ApiError, WebhookNeeded."""
        if asked.about.write.user is None or is_exempt(asked.kind):
            return asked.obj
        for webhook, key in _configured(VALIDATING_WEBHOOK_CONFIGURATION, storage):
            hook = _hook(webhook, key, asked, storage, may_change=False)
            if hook is not None:
                _answered(hook, asked, storage)
        return asked.obj


def _configured(kind: Kind, storage: Storage) -> Iterator[tuple[Json, str]]:
    """All webhooks in the order in which they are asked, each with a key of its own."""
    for configuration in storage.items(kind):
        for webhook in configuration.get("webhooks") or ():
            yield webhook, f"{kind.kind}/{configuration['metadata']['name']}/{webhook['name']}"


def _hook(
    webhook: Json, key: str, asked: Asked, storage: Storage, *, may_change: bool
) -> _Hook | None:
    """`webhook` with what it has a say in; None where that is nothing. Raises ApiError 403."""
    if not selects(webhook, asked, storage):
        return None
    is_exact = webhook.get("matchPolicy") == EXACT
    rules = webhook.get("rules") or ()
    matched = matched_kind(rules, asked, storage, is_exact=is_exact)
    if matched is None:
        return None
    hook = _Hook(webhook, key, matched, may_change)
    conditions = webhook.get("matchConditions") or ()
    return None if conditions and _is_excluded(hook, asked, conditions, storage) else hook


def _is_excluded(hook: _Hook, asked: Asked, conditions: tuple[Json, ...], storage: Storage) -> bool:
    scope = Scope(known_of(asked, hook.kind, storage), judge=judge_of(asked))
    try:
        return failing(conditions, scope)
    except ValueError as cause:
        if hook.may_fail:
            return True
        raise forbidden(asked.kind, asked.namespace, asked.name, str(cause)) from None


def _answered(hook: _Hook, asked: Asked, storage: Storage) -> Json:
    """The webhook's response; empty where it may fail and does. Raises ApiError."""
    write = asked.about.write
    if write.dry_run and hook.webhook.get("sideEffects") not in _HARMLESS:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
    try:
        response = _response(hook, asked, storage)
    except ValueError as cause:
        if hook.may_fail:
            stage = "mutation" if hook.may_change else "validating"
            write.annotate(f"failed-open.{stage}.webhook.admission.k8s.io/{hook.key}", hook.name)
            return {}
        raise _failed(hook, str(cause)) from None
    for key, value in (response.get("auditAnnotations") or {}).items():
        write.annotate(f"{hook.name}/{key}", str(value))
    for warning in response.get("warnings") or ():
        write.warn(str(warning))
    if not response.get("allowed"):
        raise _denied(hook.name, response.get("status") or {})
    return response


def _response(hook: _Hook, asked: Asked, storage: Storage) -> Json:
    """What the webhook said. Raises ValueError where it failed, WebhookNeeded before."""
    config = hook.webhook.get("clientConfig") or {}
    versions = hook.webhook.get("admissionReviewVersions") or ()
    review, uid = review_of(asked, hook.kind, hook.key, versions)
    url, missing = place_of(config, storage)
    answer = missing or asked.about.write.webhooks.get(uid)
    if answer is None:
        ca = authority_of(config.get("caBundle", ""))
        body = json.dumps(review).encode()
        raise WebhookNeeded(WebhookCall(uid, url, ca, hook.timeout_s, body))
    if answer.failure:
        posted = "" if answer.is_reached else f'Post "{url}?timeout={hook.timeout_s}s": '
        raise ValueError(f"failed to call webhook: {posted}{answer.failure}")
    return verified(answer.body, review, uid, may_change=hook.may_change)


def _failed(hook: _Hook, why: str) -> ApiError:
    """500, as upstream has it where something else fails."""
    # upstream: apimachinery/pkg/api/errors/errors.go:NewInternalError
    text = f'failed calling webhook "{hook.name}": {why}'
    return _broken(text)


def _broken(text: str) -> ApiError:
    message = f"Internal error occurred: {text}"
    return ApiError("InternalError", 500, message, causes=(Cause("", text),))


def _denied(name: str, status: Json) -> ApiError:
    """What the webhook's Status says, at least 400."""
    by = f'admission webhook "{name}" denied the request'
    code = min(max(status.get("code") or 0, 400), CODE_MAX)
    reason = str(status.get("reason") or "")
    details = status.get("details")
    said = status.get("message") or reason
    message = f"{by}: {said}" if said else f"{by} without explanation"
    return ApiError(reason, code, message, details=details if isinstance(details, dict) else None)


def _patched(hook: _Hook, asked: Asked, response: Json) -> Json:
    if not response.get("patch"):
        return asked.obj
    try:
        operations = _operations(response["patch"])
    except ValueError as cause:
        why = f"received undecodable patch in webhook response: {cause}"
        if hook.may_fail:
            return asked.obj
        raise _failed(hook, why) from None
    if not operations:
        return asked.obj
    before = new_of(asked, hook.kind)
    if before is None:
        raise _broken(
            f'admission webhook "{hook.name}" attempted to modify the object, which is not '
            "supported for this operation"
        )
    kind = response.get("patchType", _JSON_PATCH)
    if kind != _JSON_PATCH:
        if hook.may_fail:
            return asked.obj
        raise _failed(hook, f'unsupported patch type "{kind}"')
    try:
        patched: Json = apply_json_patch(before, operations)
    except ApiError as cause:
        raise _broken(cause.message) from None
    if asked.about.write.view is not None:
        return asked.obj
    return stored(hook.kind, patched)


def _operations(patch: str) -> list[Any]:
    """The operations in a patch as it is sent. Raises ValueError."""
    operations = parse_json(base64.b64decode(patch, validate=True))
    if not isinstance(operations, list | None):
        raise ValueError("json: cannot unmarshal it into Go value of type jsonpatch.Patch")  # noqa: TRY004
    return operations or []
