"""InProcessWebhooks: admission webhooks that answer without a network, sometimes late or wrongly.

    mark      mutating, pods when they are created: adds an annotation        failurePolicy Fail
    guard     validating, workloads and bindings when they are created        failurePolicy Fail
    watch     validating, pods when they are created, changed or deleted      failurePolicy Ignore

A correct answer admits the object. A correct answer takes up to 0.3 s, so other changes happen
between the call of a webhook and the write of the object. A timeout takes 2 s. Only the engine's
commands call these webhooks. The changes of a client script call none, because a request to a
webhook names a user, and these changes have no user.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.suspension import WebhookAnswer, WebhookCall
from fairlead.engine.core.instant import DurationNs, seconds

MARK: Final = "torture.example.com/admitted"
_EVERY: Final = 12  # calls
_DELAYS_MS: Final = (0, 0, 3, 40, 300)
_URL: Final = "https://webhooks.invalid/"
_MUTATES: Final = "mark"


def configurations() -> tuple[Json, ...]:
    """Return the webhook configurations that register the webhooks."""
    pods = {"apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"]}
    bindings = {**pods, "resources": ["pods/binding"], "operations": ["CREATE"]}
    workloads = {"apiGroups": ["apps", "batch"], "apiVersions": ["*"], "resources": ["*"]}
    every = {**pods, "operations": ["CREATE", "UPDATE", "DELETE"]}
    guarded = [{**workloads, "operations": ["CREATE"]}, bindings]
    marked = [{**pods, "operations": ["CREATE"]}]
    return (
        _configuration("Mutating", _webhook(_MUTATES, marked, "Fail")),
        _configuration(
            "Validating", _webhook("guard", guarded, "Fail"), _webhook("watch", [every], "Ignore")
        ),
    )


def _configuration(kind: str, *webhooks: Json) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "torture"},
        "webhooks": list(webhooks),
    }


def _webhook(name: str, rules: list[Json], failure_policy: str) -> Json:
    return {
        "name": f"{name}.torture.example.com",
        "clientConfig": {"url": f"{_URL}{name}"},
        "rules": rules,
        "failurePolicy": failure_policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }


class DelayedAnswer(Struct, frozen=True):
    """A webhook's answer, and the time in nanoseconds after which it arrives."""

    answer: WebhookAnswer
    delay: DurationNs


class InProcessWebhooks:
    """Answers webhook calls; one answer in 12 is wrong until `is_calm` returns true."""

    def __init__(self, tally: Counter[str], is_calm: Callable[[], bool]) -> None:
        """`tally` counts the calls and the wrong answers."""
        self._tally = tally
        self._is_calm = is_calm
        self._calls = 0

    def call(self, call: WebhookCall) -> DelayedAnswer:
        """Return the answer to `call`."""
        self._calls += 1
        self._tally["webhook calls"] += 1
        if self._is_calm():
            return DelayedAnswer(_admitting_answer(call), 0)
        if self._calls % _EVERY == 0:
            self._tally["webhook wrong answers"] += 1
            return _wrong(call, self._calls // _EVERY)
        return DelayedAnswer(_admitting_answer(call), _delay_of(call))


def _delay_of(call: WebhookCall) -> DurationNs:
    return _DELAYS_MS[crc32(call.body) % len(_DELAYS_MS)] * NANOSECONDS_PER_MILLISECOND


def _admitting_answer(call: WebhookCall) -> WebhookAnswer:
    """Return an answer that admits the object.

    If the called webhook is mutating, the answer adds an annotation.
    """
    review: Json = msgspec.json.decode(call.body)
    response: Json = {"uid": review["request"]["uid"], "allowed": True}
    if call.url == f"{_URL}{_MUTATES}":
        marks = review["request"]["object"]["metadata"].get("annotations") or {}
        change = {"op": "add", "path": "/metadata/annotations", "value": {**marks, MARK: "yes"}}
        patch = base64.b64encode(msgspec.json.encode([change])).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    return WebhookAnswer(body=_body(review, response), is_reached=True)


def _wrong(call: WebhookCall, number: int) -> DelayedAnswer:
    """Return a wrong answer to `call`; `number` selects one of six kinds of wrong answers."""
    review: Json = msgspec.json.decode(call.body)
    match number % 6:
        case 0:
            timeout = seconds(call.timeout_s)
            return DelayedAnswer(WebhookAnswer(failure="context deadline exceeded"), timeout)
        case 1:
            return DelayedAnswer(WebhookAnswer(failure="EOF"), 0)
        case 2:
            busy = "the server is currently unable to handle the request"
            return DelayedAnswer(WebhookAnswer(failure=busy, is_reached=True), 0)
        case 3:
            return DelayedAnswer(WebhookAnswer(body=b"<html>", is_reached=True), 0)
        case 4:
            other = _body(review, {"uid": "another", "allowed": True})
            return DelayedAnswer(WebhookAnswer(body=other, is_reached=True), _delay_of(call))
        case _:
            status = {"code": 403, "reason": "Forbidden", "message": "not now"}
            refusal = {"uid": review["request"]["uid"], "allowed": False, "status": status}
            answer = WebhookAnswer(body=_body(review, refusal), is_reached=True)
            return DelayedAnswer(answer, _delay_of(call))


def _body(review: Json, response: Json) -> bytes:
    return msgspec.json.encode({**review, "request": None, "response": response})
