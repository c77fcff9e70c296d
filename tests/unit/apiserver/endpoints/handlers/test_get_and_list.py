"""Handlers of get, list and watch requests."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND


def names(answer):
    return [item["metadata"]["name"] for item in answer.json["items"]]


def test_items_of_a_list_have_no_kind(api, config_maps):
    api.config_map("a")
    listed = api.get(config_maps).json
    assert listed["kind"] == "ConfigMapList"
    assert listed["metadata"] == {"resourceVersion": "1"}
    assert "kind" not in listed["items"][0]
    assert api.get(f"{config_maps}/a").json["kind"] == "ConfigMap"


def test_a_list_is_sorted_by_storage_key(api):
    for namespace, name in (("a", "z"), ("a-b", "m"), ("a", "b-2"), ("a", "b")):
        api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name}})
    assert names(api.get("/api/v1/configmaps")) == ["m", "b", "b-2", "z"]


def test_all_pages_show_the_version_of_the_first_page(api, config_maps):
    for name in ("a", "b", "c", "d"):
        api.config_map(name)
    first = api.get(f"{config_maps}?limit=2")
    assert first.json["metadata"]["remainingItemCount"] == 2
    api.delete(f"{config_maps}/c")
    api.config_map("bb")
    token = first.json["metadata"]["continue"]
    second = api.get(f"{config_maps}?limit=2&continue={token}")
    assert names(first) + names(second) == ["a", "b", "c", "d"]
    assert second.json["metadata"] == {"resourceVersion": "4"}


def test_a_page_of_a_list_with_a_selector_has_no_remaining_item_count(api, config_maps):
    for name in ("a", "b", "c"):
        api.config_map(name, labels={"l": "1"})
    listed = api.get(f"{config_maps}?limit=1&labelSelector=l").json
    assert "remainingItemCount" not in listed["metadata"]


def test_an_expired_continue_token_is_refused_with_a_new_token(make_api, config_maps):
    api = make_api(log_capacity=2)
    for name in ("a", "b", "c"):
        api.config_map(name)
    token = api.get(f"{config_maps}?limit=1").json["metadata"]["continue"]
    for name in ("d", "e", "f"):
        api.config_map(name)
    refused = api.get(f"{config_maps}?continue={token}")
    assert (refused.status, refused.json["reason"]) == (410, "Expired")
    fresh = refused.json["metadata"]["continue"]
    assert names(api.get(f"{config_maps}?continue={fresh}")) == ["b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("query", "status", "found"),
    [
        ("resourceVersion=1", 200, ["a", "b"]),
        ("resourceVersion=1&resourceVersionMatch=Exact", 200, ["a"]),
        ("resourceVersion=1&limit=5", 200, ["a"]),
        ("resourceVersion=0&limit=1", 200, ["a", "b"]),
        ("resourceVersionMatch=Exact", 422, None),
        ("resourceVersion=abc", 400, None),
        ("resourceVersion=99", 504, None),
        ("limit=abc", 400, None),
        ("limit=-1", 200, ["a", "b"]),
        ("continue=garbage", 400, None),
        ("fieldSelector=metadata.name=b", 200, ["b"]),
        ("fieldSelector=metadata.name!=b", 200, ["a"]),
        ("fieldSelector=data.k=1", 400, None),
        ("fieldSelector=metadata.name", 400, None),
        ("labelSelector=x in (1,2)", 200, ["b"]),
        ("labelSelector=x,", 400, None),
    ],
)
def test_the_options_of_a_list(api, config_maps, query, status, found):
    api.config_map("a")
    api.config_map("b", labels={"x": "1"})
    answer = api.get(f"{config_maps}?{query}")
    assert answer.status == status
    if found is not None:
        assert names(answer) == found


def test_a_watch_sends_the_changes(api, config_maps, event_names):
    api.config_map("a")
    watch = api.get(f"{config_maps}?watch=true")
    api.patch(f"{config_maps}/a", {"data": {"k": "v"}})
    api.config_map("b")
    api.delete(f"{config_maps}/a")
    api.post("/api/v1/namespaces/other/configmaps", {"metadata": {"name": "c"}})
    assert event_names(watch) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]


def test_a_watch_from_a_version_sends_later_changes(api, config_maps, event_names):
    api.config_map("a")
    api.config_map("b")
    assert event_names(api.get(f"{config_maps}?watch=1&resourceVersion=1")) == [("ADDED", "b")]


def test_a_watch_from_a_future_version_waits_for_this_version(api, config_maps, event_names):
    watch = api.get(f"{config_maps}?watch=1&resourceVersion=2")
    for name in ("a", "b", "c"):
        api.config_map(name)
    assert event_names(watch) == [("ADDED", "c")]


def test_a_watch_from_a_compacted_version_ends_with_an_error(make_api, config_maps, objects):
    api = make_api(log_capacity=1)
    for name in ("a", "b", "c"):
        api.config_map(name)
    watch = api.get(f"{config_maps}?watch=1&resourceVersion=1")
    assert watch.is_over
    [status] = objects(watch)
    assert (status["code"], status["reason"]) == (410, "Expired")


def test_an_object_that_starts_or_stops_to_match_is_added_or_deleted(api, config_maps, event_names):
    api.config_map("a", labels={"l": "1"})
    watch = api.get(f"{config_maps}?watch=1&labelSelector=l=1")
    api.patch(f"{config_maps}/a", {"metadata": {"labels": {"l": "2"}}})
    api.patch(f"{config_maps}/a", {"data": {"k": "v"}})
    api.patch(f"{config_maps}/a", {"metadata": {"labels": {"l": "1"}}})
    assert event_names(watch) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


def test_an_object_that_no_longer_matches_has_old_content_and_new_version(
    api, config_maps, objects
):
    api.config_map("a", labels={"l": "1"})
    watch = api.get(f"{config_maps}?watch=1&labelSelector=l=1")
    api.patch(f"{config_maps}/a", {"metadata": {"labels": {"l": "2"}}})
    _, left = objects(watch)
    assert left["metadata"]["labels"] == {"l": "1"}
    assert left["metadata"]["resourceVersion"] == "2"


def test_a_bookmark_ends_the_initial_events_of_a_watch_list(api, config_maps, objects):
    api.config_map("a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    [_, bookmark] = objects(api.get(f"{config_maps}?watch=1&{query}"))
    assert bookmark["metadata"] == {
        "resourceVersion": "1",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


def test_a_watch_list_requires_a_resource_version_match(api, config_maps):
    refused = api.get(f"{config_maps}?watch=1&sendInitialEvents=true")
    assert refused.status == 422
    assert "sendInitialEvents requires setting resourceVersionMatch" in refused.message


def test_the_watch_parameter_is_ignored_in_a_get_of_one_object(api, config_maps):
    api.config_map("a")
    assert api.get(f"{config_maps}/a?watch=true").json["kind"] == "ConfigMap"


def test_the_deprecated_watch_path_watches_one_object(api, event_names):
    api.config_map("a")
    api.config_map("b")
    watch = api.get("/api/v1/watch/namespaces/default/configmaps/b")
    assert event_names(watch) == [("ADDED", "b")]


def test_only_the_first_table_of_a_watch_has_columns(api, config_maps, objects):
    api.config_map("a")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    watch = api.get(f"{config_maps}?watch=1", accept=accept)
    api.config_map("b")
    first, second = objects(watch)
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["columnDefinitions"] is None


def test_the_watch_of_a_slow_client_is_ended(api, config_maps, monkeypatch):
    monkeypatch.setattr("fairlead.apiserver.endpoints.collection.watch.BACKLOG_BYTES_MAX", 100)
    watch = api.get(f"{config_maps}?watch=1")
    api.config_map("a")
    assert watch.is_over
    assert api.server.watches.count() == 0


def test_no_event_is_sent_after_the_end_of_a_watch(api, config_maps, event_names):
    watch = api.get(f"{config_maps}?watch=1")
    watch.close()
    api.config_map("a")
    assert event_names(watch) == []


def test_an_object_can_be_requested_as_partial_metadata(api, config_maps):
    api.config_map("a", labels={"l": "1"})
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    shown = api.get(f"{config_maps}/a", accept=accept).json
    assert (shown["kind"], shown["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    refused = api.get(config_maps, accept=accept)
    assert refused.status == 406
    assert refused.message.endswith("but the requested object is a list (*core.ConfigMapList)")


def test_an_object_can_be_requested_as_yaml(api, config_maps):
    api.config_map("a")
    assert api.get(f"{config_maps}/a", accept="application/yaml").text.startswith("apiVersion: v1")


EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"{EVENTS}?fieldSelector=regarding.kind=Pod", 200),
        (f"{EVENTS}?fieldSelector=reportingController=x", 200),
        (f"{EVENTS}?fieldSelector=involvedObject.kind=Pod", 400),
        ("/api/v1/events?fieldSelector=involvedObject.kind=Pod", 200),
        ("/api/v1/events?fieldSelector=regarding.kind=Pod", 400),
        ("/api/v1/nodes?fieldSelector=metadata.name=n", 200),
        ("/api/v1/nodes?fieldSelector=metadata.namespace=n", 400),
        ("/api/v1/persistentvolumes?fieldSelector=metadata.namespace=n", 200),
    ],
)
def test_field_selectors_use_the_names_of_the_requested_version(api, url, status):
    """Some cluster-scoped kinds have no selectable field metadata.namespace."""
    assert api.get(url).status == status


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("10s", "2026-01-01T00:00:10.000000Z"),
        (None, "2026-01-01T00:00:00.000000Z"),
        ("often", "2026-01-01T00:00:00.000000Z"),
    ],
)
def test_a_lease_has_the_time_of_its_last_renewal(api, every, expected):
    """A simulated kubelet writes the interval of its renewals instead of each renewal."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    annotations = {"fairlead.dev/renewed-every": every} if every else {}
    spec = {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z"}
    made = api.post(leases, {"metadata": {"name": "a", "annotations": annotations}, "spec": spec})
    api.now += 12 * NANOSECONDS_PER_SECOND
    shown = [api.get(f"{leases}/a").json, *api.get(leases).json["items"]]
    assert [one["spec"]["renewTime"] for one in shown] == [expected] * 2
    version = made.json["metadata"]["resourceVersion"]
    assert [one["metadata"]["resourceVersion"] for one in shown] == [version] * 2
