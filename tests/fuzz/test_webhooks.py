"""Webhooks with arbitrary answers: the answer is applied, or the request is refused."""

from __future__ import annotations

import base64
import json
from typing import Final
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import json_texts, json_values, texts
from tests.fuzz.test_bodies import OPERATIONS, POINTERS
from tests.fuzz.test_mutations import NOTHING, mutated
from tests.fuzz.test_requests import check
from tests.unit.apiserver.endpoints.conftest import CountedIds
from tests.unit.apiserver.widget import DEFINITIONS, NEW, OLD, Webhook, definition, new, old

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

NOW = parse_timestamp("2026-01-01T00:00:00Z")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ROUNDS_MAX = 2
RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}
WEBHOOK = {
    "name": "a.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "rules": [RULE],
    "clientConfig": {"url": "https://127.0.0.1:9/"},
}

PATCH = st.lists(
    st.fixed_dictionaries(
        {
            "op": OPERATIONS,
            "path": POINTERS
            | st.sampled_from(("/data", "/metadata", "/metadata/labels", "/kind", "")),
        },
        optional={"from": POINTERS, "value": json_values(4)},
    ),
    max_size=3,
)


@st.composite
def answers(draw, uid):
    """Strategy for a webhook's response to the review with `uid`, mostly valid."""
    if draw(st.integers(0, 9)) == 0:
        return draw(json_texts())
    text = json.dumps(draw(PATCH | json_values(4))).encode()
    response = {
        "uid": uid,
        "allowed": draw(st.booleans()),
        "patchType": "JSONPatch",
        "patch": base64.b64encode(text).decode(),
        "status": {"code": draw(st.integers(-1, 10_000)), "message": draw(texts()), "reason": "a"},
        "warnings": draw(st.lists(texts(), max_size=2)),
        "auditAnnotations": {"a": "b"},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    changed = draw(mutated(review)) if draw(st.booleans()) else review
    return json.dumps(None if changed is NOTHING else changed).encode()


def server():
    """A server with the admission plugins of a served one, and the namespace default."""
    ids = CountedIds()
    store = Store(ids, admission=served_admission(ids.new_suffix), registry=API_SERVER)
    made = complete_server(store, clock=lambda: NOW, address="127.0.0.1:6443", version="0")
    ask(made, "POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
    return made


def ask(made, method, path, body, call=None):
    raw = json.dumps(body).encode()
    return run_to_end(made.handle.steps(Request(method, path, body=raw), NOW), call)


@pytest.mark.long
@given(st.data(), st.sampled_from(("mutating", "validating")), st.sampled_from(("Fail", "Ignore")))
def test_any_answer_of_a_webhook_is_applied_or_refused(data, sort, policy):
    made = server()
    webhook = {**WEBHOOK, "failurePolicy": policy, "reinvocationPolicy": "IfNeeded"}
    config = {"metadata": {"name": "a"}, "webhooks": [webhook]}
    assert ask(made, "POST", CONFIGURATIONS.format(sort), config).status == 201
    calls = []

    def call(webhook):
        calls.append(webhook)
        assert len(calls) <= ROUNDS_MAX
        uid = json.loads(webhook.body)["request"]["uid"]
        return WebhookAnswer(body=data.draw(answers(uid)))

    body = {"metadata": {"name": "a"}, "data": {"a": "b"}}
    answer = ask(made, "POST", CONFIG_MAPS, body, call)
    if b"Internal error occurred: " not in answer.body[0]:  # created by the webhook
        check(answer)


REQUESTS: Final[tuple[tuple[str, str, object], ...]] = (
    ("GET", f"{OLD}/w", None),
    ("GET", OLD, None),
    ("GET", f"{OLD}?fieldSelector=spec.address%3Da:1", None),
    ("GET", f"{OLD}/w/scale", None),
    ("POST", OLD, old("x")),
    ("PUT", f"{OLD}/w", {**old(), "metadata": {"name": "w", "resourceVersion": "3"}}),
    ("DELETE", f"{OLD}/w", {}),
    ("DELETE", OLD, {}),
)
# Errors 500 of upstream: the conversion fails, or its result has no replicas.
FAILED = (b"conversion webhook for example.com/", b"the spec replicas field")


@pytest.mark.long
@given(st.data(), st.sampled_from(REQUESTS), st.sampled_from(("v1", "v1beta1")))
def test_any_answer_of_a_conversion_webhook_is_used_or_an_error(data, request, version):
    """What the webhook stored can be read in the storage version."""
    made, webhook = server(), Webhook()
    assert ask(made, "POST", DEFINITIONS, definition(reviews=(version,))).status == 201
    assert ask(made, "POST", NEW, new(replicas=1)).status == 201

    def call(needed):
        answer = webhook.answer(json.loads(needed.body))
        changed = data.draw(mutated(answer)) if data.draw(st.booleans()) else answer
        return WebhookAnswer(body=json.dumps(None if changed is NOTHING else changed).encode())

    method, url, body = request
    path, _, query = url.partition("?")
    raw = b"" if body is None else json.dumps(body).encode()
    sent = Request(method, path, tuple(parse_qsl(query)), {}, raw)
    answer = run_to_end(made.handle.steps(sent, NOW), call)
    if not any(text in b"".join(answer.body) for text in FAILED):
        check(answer)
    assert ask(made, "GET", NEW, {}).status == 200
    watch = made.handle(Request("GET", NEW, (("watch", "1"),)), NOW)
    check(watch)
