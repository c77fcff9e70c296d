"""Loading of a snapshot with all objects of a cluster."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Unstructured
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, PRIORITY_CLASS, find_kind
from fairlead.apiserver.registry.api_server import API_SERVER


def node(name, **meta):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **meta}}


def _kind(view):
    return view.kind if isinstance(view, Unstructured) else type(view).__name__


def described(objects):
    return [
        "/".join(filter(None, (_kind(o), o.metadata.namespace, o.metadata.name))) for o in objects
    ]


def refusal_of(act, *args):
    with pytest.raises(ApiError) as refusal:
        act(*args)
    return refusal.value


def test_objects_are_loaded_kind_by_kind_with_pods_last(store, pod, now):
    queue = {"apiVersion": "x.io/v1", "kind": "Queue", "metadata": {"name": "q"}}
    objects = [pod("b"), node("n2"), queue, pod("a", namespace="z"), pod("a"), node("n1")]
    expected = [
        "Node/n1",
        "Node/n2",
        "PriorityClass/system-cluster-critical",
        "PriorityClass/system-node-critical",
        "Queue/q",
        "Pod/default/a",
        "Pod/default/b",
        "Pod/z/a",
    ]
    assert described(store.load(objects, now)) == expected


def test_the_order_of_the_files_makes_no_difference(new_store, pod, now):
    objects = [pod("b"), node("n2"), pod("a"), node("n1")]
    results = [new_store().load(order, now) for order in (objects, objects[::-1])]
    assert described(results[0]) == described(results[1])


def test_generated_uids_do_not_depend_on_the_order_of_the_files(new_store, pod, now):
    """Equally old gangs, for example, are handled in the order of their uids."""
    objects = [pod("b"), node("n2"), pod("a"), node("n1")]
    results = [new_store().load(order, now) for order in (objects, objects[::-1])]
    first, second = ([one.metadata.uid for one in found] for found in results)
    assert first == second


def test_objects_keep_their_metadata_and_status(store, pod, now):
    meta = {
        "uid": "u",
        "resourceVersion": "500",
        "creationTimestamp": "2025-05-05T05:05:05Z",
        "generation": 4,
        "deletionTimestamp": "2026-01-01T00:00:10Z",
        "deletionGracePeriodSeconds": 30,
    }
    store.load([pod(node="n", phase="Running", metadata=meta)], now)
    loaded = store.get(POD, "default", "a")
    assert loaded["metadata"] == {"name": "a", "namespace": "default", **meta}
    assert loaded["status"] == {"phase": "Running"}


def test_missing_fields_are_filled_in(store, now):
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": None}}
    store.load([sent], now)
    loaded = store.get(POD, "default", "a")
    assert loaded["metadata"]["uid"].startswith("uid-")
    assert loaded["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert loaded["spec"]["schedulerName"] == "default-scheduler"
    assert "x" not in loaded["spec"]
    assert "generation" not in loaded["metadata"]


def test_numeric_versions_are_kept_and_other_objects_get_later_versions(store, pod, now):
    versions = {"a": "70", "b": None, "c": "opaque", "d": "9"}
    objects = [
        pod(name, metadata={"resourceVersion": version}) for name, version in versions.items()
    ]
    store.load(objects, now)
    loaded = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in store.list(POD)}
    assert (loaded["a"], loaded["d"]) == ("70", "9")
    assert 70 < int(loaded["b"]) < int(loaded["c"]) == store.version
    assert int(store.create(pod("e"), now)["metadata"]["resourceVersion"]) == store.version


def test_a_load_sends_no_events_and_watches_start_after_it(store, pod, now):
    changes = []
    store.subscribe(changes.append)
    store.load([pod()], now)
    assert changes == []
    assert store.changes_since(store.version) == []
    assert refusal_of(store.changes_since, 0).reason == "Expired"


def test_the_system_priority_classes_are_added_once(store, priority_class, now):
    mine = priority_class("system-node-critical", 2_000_001_000, description="mine")
    store.load([mine], now)
    names = [(o["metadata"]["name"], o["description"][:4]) for o in store.list(PRIORITY_CLASS)]
    assert names == [("system-cluster-critical", "Used"), ("system-node-critical", "mine")]


def test_objects_of_unknown_kinds_are_kept(store, now):
    sent = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "Odd:Name", "namespace": "n"},
        "spec": {"replicas": -1},
    }
    store.load([sent], now)
    [stored] = [o for kind in store.storage.kinds() for o in store.list(kind) if o["kind"] == "Job"]
    assert stored["spec"] == {"replicas": -1}
    assert store.list(find_kind("job")) == []


def test_a_stored_pod_needs_no_image(new_store, now):
    store = new_store(registry=API_SERVER)
    sent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    store.load([sent], now)
    assert refusal_of(store.create, {**sent, "metadata": {"name": "b"}}, now).message == (
        'Pod "b" is invalid: spec.containers[0].image: Required value'
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"metadata": {}},
            'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            {"spec": {"priority": "high"}},
            (
                'Pod in version "v1" cannot be handled as a Pod: spec.priority: Expected `int | '
                "null`, got `str`"
            ),
        ),
        (
            {"spec": {"containers": "c"}},
            (
                'Pod in version "v1" cannot be handled as a Pod: spec.containers: Expected '
                "`array`, got `str`"
            ),
        ),
        (
            {"metadata": "a"},
            (
                'Pod in version "v1" cannot be handled as a Pod: metadata: Expected `object`, got '
                "`str`"
            ),
        ),
        (
            {"metadata": {"name": "a", "creationTimestamp": "now"}},
            (
                'Pod "a" is invalid: metadata.creationTimestamp: Invalid value: "now": \'now\' is '
                "not an RFC 3339 timestamp such as 2026-01-01T00:00:00Z"
            ),
        ),
    ],
    ids=[
        "no name",
        "a text for a number",
        "a text for a list",
        "a text for an object",
        "no instant",
    ],
)
def test_a_malformed_object_is_named(store, pod, now, change, words):
    assert refusal_of(store.load, [pod("ok"), {**pod(), **change}], now).message == words


def test_an_object_given_twice_is_named(store, pod, now):
    refused = refusal_of(store.load, [pod(), pod("b"), pod()], now)
    assert refused.message == 'Pod "a" is invalid: metadata.name: Duplicate value: "a"'
    assert (refused.kind, refused.namespace, refused.name) == (POD, "default", "a")
    store.load([pod()], now)
    assert refusal_of(store.load, [pod()], now).message == refused.message


def test_a_refused_snapshot_changes_nothing(store, pod, now):
    refusal_of(store.load, [pod(), pod("Bad_")], now)
    assert (store.version, store.list(POD)) == (0, [])
