"""Lists and watches are the same whether storage keeps objects encoded or decoded."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.response.encoded_objects import rest_of, rest_of_text
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import Storage

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def pod(number, **more):
    meta = {
        "name": f"p{number}",
        "namespace": "default",
        "uid": f"u{number}",
        "labels": {"app": f"a{number % 2}", 'a"b': "x"},
        **more,
    }
    spec = {"nodeName": f"n{number}", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {}}


@pytest.fixture
def make_cold(make_api):
    """Makes servers whose storage keeps nearly all pods as texts."""

    def make(storage, pods):
        api = make_api()
        for manifest in pods:
            storage.put(POD, manifest)
        api.store = Store(None, admission=(), storage=storage)
        api.server = complete_server(
            api.store, clock=lambda: api.now, address="127.0.0.1:6443", version="0"
        )
        return api

    return make


@pytest.mark.parametrize("accept", ["application/json", "application/yaml", TABLE, PARTIAL])
@pytest.mark.parametrize(
    "query",
    [
        "",
        "?limit=3",
        "?labelSelector=app%3Da1",
        "?labelSelector=app+in+(a0)",
        "?labelSelector=app%21%3Da1",
        "?fieldSelector=spec.nodeName%3Dn2",
        "?fieldSelector=spec.hostNetwork%3Dfalse",
        "?fieldSelector=metadata.name%21%3Dp1",
        "?resourceVersion=5&resourceVersionMatch=Exact",
    ],
)
def test_a_list_from_compact_storage_equals_a_list_from_ordinary_storage(make_cold, accept, query):
    warm, cold = (
        make_cold(storage, [pod(number) for number in (3, 1, 4, 2, 5, 1, 2)])
        for storage in (Storage(), CompactStorage(hot_max=1))
    )
    assert cold.get(PODS + query, accept=accept).text == warm.get(PODS + query, accept=accept).text


def test_a_continued_list_starts_after_the_previous_page(make_cold):
    cold = make_cold(CompactStorage(hot_max=1), [pod(number) for number in range(5)])
    first = cold.get(f"{PODS}?limit=2").json
    rest = cold.get(f"{PODS}?limit=9&continue={first['metadata']['continue']}").json
    assert [obj["metadata"]["name"] for obj in first["items"] + rest["items"]] == [
        f"p{number}" for number in range(5)
    ]


def test_a_watch_begins_with_the_existing_objects(make_cold, event_names):
    cold = make_cold(CompactStorage(hot_max=1), [pod(2), pod(1)])
    watch = cold.get(f"{PODS}?watch=true&labelSelector=app%3Da1")
    assert event_names(watch) == [("ADDED", "p1")]


def test_many_initial_events_of_a_watch_are_read_in_parts(make_cold):
    """No event is lost between the parts, and later events follow the initial ones."""
    long = {"annotations": {"a": "x" * 1_000}}
    cold = make_cold(CompactStorage(hot_max=1), [pod(number, **long) for number in range(3)])
    watch = cold.get(f"{PODS}?watch=true")
    first = watch.pop_lines(2_000)
    assert (len(first), watch.is_drained) == (2, False)
    cold.store.storage.put(POD, pod(9))
    names = [json.loads(line)["object"]["metadata"]["name"] for line in first + watch.pop_lines()]
    assert names == ["p0", "p1", "p2", "p9"]
    assert watch.is_drained


@pytest.mark.parametrize("order", [("kind", "apiVersion"), ("apiVersion", "kind")])
def test_an_encoded_object_is_sent_without_being_decoded(order):
    obj = {**{key: pod(1)[key] for key in order}, **pod(1)}
    assert rest_of_text(POD, json.dumps(obj, separators=(",", ":")).encode()) == rest_of(obj)


def test_an_encoded_object_with_a_late_kind_is_decoded():
    obj = {"metadata": pod(1)["metadata"], "kind": "Pod", "apiVersion": "v1"}
    assert rest_of_text(POD, json.dumps(obj).encode()) == rest_of(obj)


@pytest.mark.parametrize(
    ("labels", "fields", "wanted"),
    [
        ("app=a1", "", True),
        ("app=a", "", False),
        ("app=x", "", False),
        ("!app", "", False),
        ("", "spec.nodeName=n1", True),
        ("", "spec.nodeName=n", False),
        ("", "spec.nodeName=", False),
        ("", "status.phase=", True),
    ],
)
def test_selectors_give_equal_results_for_encoded_and_decoded_objects(labels, fields, wanted):
    selected = selection_predicate(POD, labels, fields)
    text = json.dumps(pod(1), separators=(",", ":")).encode()
    assert (selected.selects(text), selected.selects(pod(1))) == (wanted, wanted)
