"""Handlers of create, update, patch and delete requests."""

from __future__ import annotations

import pytest

EVENTS = "/api/v1/namespaces/default/events"


def test_a_dry_run_changes_nothing(api, config_maps):
    made = api.post(f"{config_maps}?dryRun=All", {"metadata": {"name": "a"}})
    assert made.status == 201
    assert "resourceVersion" not in made.json["metadata"]
    assert api.get(f"{config_maps}/a").status == 404


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{nope", 400, "the object provided is unrecognized"),
        ("[]", 400, "the object provided is unrecognized"),
        ("null", 422, 'ConfigMap "" is invalid: metadata.name: Required value'),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, "unknown conversion"),
        ({"kind": "Widget"}, 400, 'no kind "Widget" is registered'),
        ({"metadata": {"name": "a", "namespace": "x"}}, 400, "does not match the namespace"),
        ({"metadata": {"name": "a", "resourceVersion": "5"}}, 500, "should not be set"),
        ({"metadata": {"name": 5}}, 400, "cannot unmarshal number"),
    ],
)
def test_invalid_bodies_are_refused(api, config_maps, body, status, message):
    refused = api.post(config_maps, body)
    assert (refused.status, message in refused.message) == (status, True)


def test_a_body_without_api_version_and_kind_is_accepted(api, config_maps):
    assert api.post(config_maps, {"metadata": {"name": "a"}}).json["kind"] == "ConfigMap"


def test_an_unknown_media_type_is_refused(api, config_maps):
    refused = api.post(config_maps, "hi", content_type="text/plain")
    assert (refused.status, refused.json["reason"]) == (415, "UnsupportedMediaType")


def test_unknown_fields_are_dropped_and_reported(api, config_maps):
    body = {"metadata": {"name": "a"}, "bogus": 1}
    made = api.post(config_maps, body)
    assert "bogus" not in made.json
    assert made.response.warnings == ('unknown field "bogus"',)
    strict = api.post(f"{config_maps}?fieldValidation=Strict", body)
    assert (strict.status, "strict decoding error" in strict.message) == (400, True)


def test_duplicate_keys_in_yaml_are_reported(api, config_maps):
    body = b"metadata:\n  name: a\n  name: a\n"
    made = api.post(config_maps, body, content_type="application/yaml")
    assert made.response.warnings == ('line 3: key "name" already set in map',)


def test_an_update_of_an_outdated_version_is_a_conflict(api, config_maps):
    made = api.config_map("a")
    api.patch(f"{config_maps}/a", {"data": {"k": "v"}})
    refused = api.put(f"{config_maps}/a", made)
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")


def test_an_update_that_changes_nothing_keeps_the_version(api, config_maps):
    made = api.config_map("a")
    assert api.put(f"{config_maps}/a", made).json["metadata"]["resourceVersion"] == "1"


def test_the_name_in_an_update_must_be_the_name_in_the_path(api, config_maps):
    made = api.config_map("a")
    assert api.put(f"{config_maps}/b", made).message == (
        "the name of the object (a) does not match the name on the URL (b)"
    )


def test_some_kinds_are_created_by_an_update(api):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert api.put(f"{leases}/l", {"metadata": {"name": "l"}}).status == 201
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    assert api.put(f"{classes}/r", {"metadata": {"name": "r"}, "handler": "runc"}).status == 201
    assert (
        api.put("/api/v1/namespaces/default/configmaps/a", {"metadata": {"name": "a"}}).status
        == 404
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {}),
        ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "runc"}),
        ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}),
    ],
)
def test_an_update_of_some_kinds_requires_a_resource_version(api, path, body):
    named = {**body, "metadata": {"name": "l"}}
    assert api.post(path, named).status == 201
    refused = api.put(f"{path}/l", named)
    assert (refused.status, "must be specified for an update" in refused.message) == (422, True)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/merge-patch+json", {"data": {"b": "2"}}),
        ("application/strategic-merge-patch+json", {"data": {"b": "2"}}),
        ("application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "2"}]),
    ],
)
def test_all_patch_types_change_the_object(api, config_maps, content_type, body):
    api.post(config_maps, {"metadata": {"name": "a"}, "data": {"a": "1"}})
    changed = api.patch(f"{config_maps}/a", body, content_type)
    assert changed.json["data"] == {"a": "1", "b": "2"}


def test_an_apply_creates_the_object_and_owns_its_fields(api, config_maps):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    url, kind = f"{config_maps}/a?fieldManager=m", "application/apply-patch+yaml"
    made = api.patch(url, body, kind)
    assert made.status == 201
    [entry] = made.json["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("m", "Apply")
    other = api.patch(f"{config_maps}/a?fieldManager=o", {**body, "data": {"k": "2"}}, kind)
    assert (other.status, other.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "m": .data.k',
    )


def test_an_apply_without_a_field_manager_is_refused(api, config_maps):
    refused = api.patch(f"{config_maps}/a", {}, "application/apply-patch+yaml")
    assert "fieldManager: Required value: is required for apply patch" in refused.message


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"metadata": {"name": "b"}}, 400, "does not match the name on the URL"),
        ({"metadata": {"uid": "other"}}, 422, "metadata.uid: Invalid value"),
        ({"metadata": {"resourceVersion": "9"}}, 409, "the object has been modified"),
        ({"kind": "Secret"}, 422, "unknown conversion"),
        ("5", 400, "cannot unmarshal number into Go value"),
        ("null", 400, "Invalid JSON Patch"),
    ],
)
def test_invalid_patches_are_refused(api, config_maps, body, status, message):
    api.config_map("a")
    refused = api.patch(f"{config_maps}/a", body)
    assert (refused.status, message in refused.message) == (status, True)


def test_a_patch_with_an_unknown_media_type_is_refused(api, config_maps):
    api.config_map("a")
    refused = api.patch(f"{config_maps}/a", {}, "application/json")
    assert (refused.status, refused.message) == (415, "415: Unsupported Media Type")


def test_a_deletion_returns_a_status(api, config_maps):
    api.config_map("a")
    gone = api.delete(f"{config_maps}/a")
    assert gone.json["status"] == "Success"
    assert gone.json["details"] == {"name": "a", "kind": "configmaps", "uid": "uid-1"}


def test_a_graceful_deletion_of_a_pod_returns_the_pod(api, pods, pod):
    api.post(pods, pod("a", nodeName="n"))
    shown = api.delete(f"{pods}/a", {"gracePeriodSeconds": 5}).json
    assert (shown["kind"], shown["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 5)
    assert api.get(f"{pods}/a").status == 200
    api.delete(f"{pods}/a?gracePeriodSeconds=0")
    assert api.get(f"{pods}/a").status == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_foreground_and_orphan_deletion_add_a_finalizer(api, config_maps, policy, finalizer):
    api.config_map("a")
    shown = api.delete(f"{config_maps}/a?propagationPolicy={policy}").json
    assert shown["metadata"]["finalizers"] == [finalizer]


@pytest.mark.parametrize(
    "query",
    ["propagationPolicy=Bad", "propagationPolicy=Orphan&orphanDependents=true", "dryRun=Some"],
)
def test_invalid_delete_options_are_refused(api, config_maps, query):
    api.config_map("a")
    refused = api.delete(f"{config_maps}/a?{query}")
    assert (refused.status, refused.json["details"]["kind"]) == (422, "DeleteOptions")
    assert api.get(f"{config_maps}/a").status == 200


def test_a_terminating_object_gets_no_new_finalizers(api, config_maps):
    api.config_map("a", finalizers=["a.b/c"])
    api.delete(f"{config_maps}/a")
    refused = api.patch(f"{config_maps}/a", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})
    assert (refused.status, "no new finalizers can be added" in refused.message) == (422, True)
    api.patch(f"{config_maps}/a", {"metadata": {"finalizers": None}})
    assert api.get(f"{config_maps}/a").status == 404


def test_deletecollection_returns_the_deleted_objects(api, config_maps):
    for name in ("a", "b"):
        api.config_map(name, labels={"l": name})
    gone = api.delete(f"{config_maps}?labelSelector=l=a").json
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a"]
    left = api.get(config_maps).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


def test_a_namespace_is_deleted_when_it_is_finalized(api):
    api.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    going = api.delete("/api/v1/namespaces/n").json
    assert going["status"] == {"phase": "Terminating"}
    api.put("/api/v1/namespaces/n/finalize", {"metadata": {"name": "n"}, "spec": {}})
    assert api.get("/api/v1/namespaces/n").status == 404


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
def test_an_event_is_deleted_at_once_with_any_propagation_policy(api, policy):
    """Events have no dependents."""
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    api.post(EVENTS, {"metadata": {"name": "e"}, "involvedObject": about})
    gone = api.delete(f"{EVENTS}/e?propagationPolicy={policy}")
    assert (gone.json["kind"], api.get(f"{EVENTS}/e").status) == ("Status", 404)


def test_a_write_cannot_set_the_deletion_timestamp(api, config_maps):
    """The timestamp of an object that is being deleted cannot be changed either."""
    api.config_map("a", finalizers=["a.b/c"])
    ending = {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
    refused = api.patch(f"{config_maps}/a", {"metadata": ending})
    fields = [cause["field"] for cause in refused.json["details"]["causes"]]
    assert fields == ["metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"] * 2
    going = api.delete(f"{config_maps}/a").json["metadata"]
    later = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
    left = api.patch(f"{config_maps}/a", {"metadata": later}).json["metadata"]
    assert left["deletionTimestamp"] == going["deletionTimestamp"]


def test_the_self_link_of_an_update_is_ignored(api, config_maps):
    """An update that changes only selfLink keeps the resource version."""
    made = api.config_map("a")
    named = {**made, "metadata": {**made["metadata"], "selfLink": "/x"}}
    assert api.put(f"{config_maps}/a", named).json == made


def test_a_negative_generation_is_refused(api, config_maps):
    refused = api.post(config_maps, {"metadata": {"name": "a", "generation": -1}})
    assert refused.message == (
        'ConfigMap "a" is invalid: metadata.generation: Invalid value: -1: must be greater than or '
        "equal to 0"
    )


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/nodes", "minions/x"),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices",
            "apiregistration.k8s.io/apiservices/v1.a.b",
        ),
    ],
)
def test_a_uid_conflict_names_the_storage_key_of_the_object(api, path, place):
    spec = {"group": "a.b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    name = place.rpartition("/")[2]
    made = api.post(path, {"metadata": {"name": name}, "spec": spec if "api" in place else {}}).json
    other = {**made, "metadata": {**made["metadata"], "uid": "other"}}
    assert f"Key: /registry/{place}, " in api.put(f"{path}/{name}", other).message


@pytest.mark.parametrize(
    ("ranges", "field"),
    [
        (["10.1.0.0/24", "fd00::/64"], ""),
        (["10.2.0.0/24"], "spec.cidrs[0]"),
        (["fd00::/64", "10.1.0.0/24"], "spec.cidrs[0]"),
    ],
)
def test_the_ranges_of_a_service_cidr_can_only_be_extended(api, ranges, field):
    """A range of the other IP family can be appended."""
    path = "/apis/networking.k8s.io/v1/servicecidrs"
    api.post(path, {"metadata": {"name": "x"}, "spec": {"cidrs": ["10.1.0.0/24"]}})
    answer = api.patch(f"{path}/x", {"spec": {"cidrs": ranges}})
    causes = answer.json["details"]["causes"] if field else []
    assert [cause["field"] for cause in causes] == ([field] if field else [])


def test_a_deletion_can_have_a_uid_precondition_in_the_query(api, config_maps):
    uid = api.config_map("a")["metadata"]["uid"]
    assert api.delete(f"{config_maps}/a?uid=x").status == 409
    assert api.delete(f"{config_maps}/a?uid={uid}").status == 200
