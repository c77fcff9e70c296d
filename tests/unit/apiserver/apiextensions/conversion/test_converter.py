"""Which objects a conversion webhook gets, and which answers are errors."""

from __future__ import annotations

import json

import pytest
from tests.unit.apiserver.widget import Webhook, definition, new, old

from fairlead.apiserver.apiextensions.conversion import converter
from fairlead.apiserver.apiextensions.conversion.conversions import Conversions
from fairlead.apiserver.apiextensions.conversion.converter import (
    ConversionFailedError,
    calls_webhook,
    converted,
    from_storage,
    to_storage,
)
from fairlead.apiserver.apiextensions.served_kind import kinds_of
from fairlead.apiserver.kind import SERVICE as SERVICE_KIND
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

NEW_KIND, OLD_KIND = kinds_of(definition())
SERVICE = {"service": {"namespace": "n", "name": "hooks", "path": "/c", "port": 8443}}


def run(steps, webhook=None):
    """Return the result of `steps`; the webhook converts."""
    webhook = webhook or Webhook()
    return run_to_end(steps, lambda call: WebhookAnswer(body=webhook.answer_text(call.body)))


def test_only_objects_in_another_version_are_converted():
    webhook = Webhook()
    objects = [new("a"), old("b"), new("c")]
    made = run(converted(NEW_KIND, objects, "example.com/v1beta1", Storage()), webhook)
    assert webhook.names == [("v1beta1", ["a", "c"])]
    assert made == [old("a"), old("b"), old("c")]


def test_nothing_is_called_if_all_objects_have_the_version():
    objects = [new("a"), new("b")]
    assert run_to_end(from_storage(NEW_KIND, objects, Storage())) == objects
    assert run_to_end(to_storage(NEW_KIND, objects[0], Storage())) is objects[0]


def test_without_a_webhook_only_the_api_version_changes():
    kind = kinds_of(definition(strategy="None"))[1]
    assert run_to_end(from_storage(kind, [new(size=2)], Storage()))[0]["spec"] == {"size": 2}
    assert not calls_webhook(kind, new())


@pytest.mark.parametrize("encode", [lambda obj: obj, lambda obj: json.dumps(obj).encode()])
def test_a_stored_object_may_be_text(encode):
    assert calls_webhook(OLD_KIND, encode(new()))
    assert not calls_webhook(NEW_KIND, encode(new()))
    assert run(from_storage(OLD_KIND, [encode(new())], Storage())) == [old()]


def test_fields_that_the_version_does_not_have_are_pruned():
    class Chatty(Webhook):
        def answer(self, review):
            made = super().answer(review)
            made["response"]["convertedObjects"][0]["spec"]["more"] = 1
            return made

    assert run(from_storage(OLD_KIND, [new()], Storage()), Chatty()) == [old()]


def test_many_objects_are_converted_in_several_calls(monkeypatch):
    monkeypatch.setattr(converter, "BATCH_BYTES", 2 * len(json.dumps(new("w0"))))
    webhook = Webhook()
    made = run(from_storage(OLD_KIND, [new(f"w{n}") for n in range(5)], Storage()), webhook)
    assert [len(names) for _, names in webhook.names] == [2, 2, 1]
    assert made == [old(f"w{n}") for n in range(5)]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (WebhookAnswer(failure="context deadline exceeded"), "failed: Post .*: context deadline"),
        (WebhookAnswer(failure="bad gateway", is_reached=True), "failed: bad gateway"),
        (WebhookAnswer(body=b"{"), "failed: couldn't get version/kind"),
    ],
)
def test_a_failed_call_is_an_error(answer, problem):
    with pytest.raises(ConversionFailedError, match=problem) as refusal:
        run_to_end(from_storage(OLD_KIND, [new()], Storage()), lambda _: answer)
    assert refusal.value.code == 500
    assert refusal.value.message.startswith("conversion webhook for example.com/v1, Kind=Widget ")


def test_a_wrong_number_of_objects_is_an_error():
    class Empty(Webhook):
        def answer(self, review):
            made = super().answer(review)
            made["response"]["convertedObjects"].pop()
            return made

    with pytest.raises(ConversionFailedError, match="returned 1 objects, expected 2"):
        run(from_storage(OLD_KIND, [new("a"), new("b")], Storage()), Empty())


def test_a_webhook_is_found_by_its_service():
    found = definition()
    found["spec"]["conversion"]["webhook"]["clientConfig"] = SERVICE
    kind, storage, urls = kinds_of(found)[1], Storage(), []
    with pytest.raises(ConversionFailedError, match='service "hooks" not found'):
        run_to_end(from_storage(kind, [new()], storage))
    meta = {"namespace": "n", "name": "hooks"}
    spec = {"externalName": "localhost"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    storage.put(SERVICE_KIND, service)

    def call(needed):
        urls.append((needed.url, needed.timeout_s))
        return WebhookAnswer(body=Webhook().answer_text(needed.body))

    assert run_to_end(from_storage(kind, [new()], storage), call) == [old()]
    assert urls == [("https://localhost:8443/c", 30)]


# --- conversions of a request --------------------------------------------------------------------


def test_a_conversion_is_made_once_for_a_request():
    webhook, conversions = Webhook(), Conversions(NEW_KIND, Storage())
    runs = []

    def compute():
        runs.append(1)
        made = conversions.in_version("example.com/v1beta1", new())
        again = conversions.in_version("example.com/v1beta1", new())
        return made, again

    assert run(conversions.run(compute), webhook) == (old(), old())
    assert len(webhook.reviews) == 1
    assert len(runs) == 2


def test_a_failed_conversion_is_not_repeated():
    webhook, conversions = Webhook(), Conversions(NEW_KIND, Storage())
    webhook.failure = "no way"

    def compute():
        for _ in range(2):
            with pytest.raises(ConversionFailedError, match="no way"):
                conversions.in_version("example.com/v1beta1", new())

    run(conversions.run(compute), webhook)
    assert len(webhook.reviews) == 1


def test_an_empty_object_needs_no_webhook():
    conversions = Conversions(NEW_KIND, Storage())
    assert conversions.in_version("example.com/v1beta1", {}) == {
        "apiVersion": "example.com/v1beta1"
    }
