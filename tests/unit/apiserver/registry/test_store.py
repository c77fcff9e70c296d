"""The verbs of the store: stored objects, results, and messages of refusals."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import DEPLOYMENT, NODE, POD, find_kind, kind_of
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.dump.snapshot_load import located

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}


def deployment(**spec):
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
            **spec,
        },
    }


def put(store, manifest):
    """Replace the stored object by `manifest`, as a PUT does."""
    kind = kind_of(manifest)
    obj = located(kind, manifest)
    meta = obj["metadata"]
    old = store.get(kind, meta.get("namespace", ""), meta["name"])
    return store.update(kind, old, obj, parse_timestamp("2026-01-01T00:00:00Z"))


def refusal_of(act, *args, **kwargs):
    with pytest.raises(ApiError) as refusal:
        act(*args, **kwargs)
    return refusal.value.reason, refusal.value.code, refusal.value.message


# --- create ---------------------------------------------------------------------------------


def test_a_new_object_gets_the_metadata_of_the_server(store, pod, now):
    sent = pod(metadata={"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"})
    meta = store.create(sent, now)["metadata"]
    assert meta == {
        "name": "a",
        "namespace": "default",
        "uid": "uid-1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
        "resourceVersion": "1",
    }


def test_the_store_keeps_its_own_copy_without_nulls(store, pod, now):
    sent = pod(nodeSelector={"a": "b"}, affinity=None)
    stored = store.create(sent, now)
    sent["spec"]["nodeSelector"]["a"] = "changed"
    assert store.get(POD, "default", "a") is stored
    assert stored["spec"]["nodeSelector"] == {"a": "b"}
    assert "affinity" not in stored["spec"]


def test_namespaces_are_filled_in_or_cleared(store, now):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}}
    assert store.create(CONFIG_MAP, now)["metadata"]["namespace"] == "default"
    assert "namespace" not in store.create(node, now)["metadata"]


def test_only_new_nodes_keep_their_status(store, pod, now):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "4"}},
    }
    assert store.create(node, now)["status"] == {"allocatable": {"cpu": "4"}}
    assert store.create(pod(phase="Running"), now)["status"] == {"phase": "Pending"}
    assert "status" not in store.create(deployment() | {"status": {"replicas": 3}}, now)


def test_a_gated_pod_gets_a_condition(store, pod, now):
    status = store.create(pod(schedulingGates=[{"name": "x.io/wait"}]), now)["status"]
    assert status["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


def test_a_name_can_be_generated(store, pod, now):
    sent = pod(metadata={"generateName": "web-"})
    del sent["metadata"]["name"]
    assert store.create(sent, now)["metadata"]["name"] == "web-00001"
    sent["metadata"]["generateName"] = "w" * 70
    assert store.create(sent, now)["metadata"]["name"] == "w" * 58 + "00003"


def test_a_name_takes_precedence_over_generate_name(store, pod, now):
    sent = pod("mine", metadata={"generateName": "web-"})
    assert store.create(sent, now)["metadata"]["name"] == "mine"


def test_a_taken_name_with_generate_name_has_another_message(store, pod, now):
    sent = pod("mine", metadata={"generateName": "web-"})
    store.create(sent, now)
    with pytest.raises(ApiError) as refused:
        store.create(sent, now)
    assert refused.value.message == (
        'pods "mine" already exists, the server was not able to generate a unique name for the '
        "object"
    )
    assert (refused.value.code, refused.value.retry_after_s) == (409, 1)


def test_an_ip_address_gets_the_value_of_generate_name_as_its_name(new_store, now):
    store = new_store(registry=API_SERVER)
    parent = {"resource": "services", "namespace": "d", "name": "s"}
    address = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"generateName": "10.0.0.9"},
        "spec": {"parentRef": parent},
    }
    assert store.create(address, now)["metadata"]["name"] == "10.0.0.9"


def test_taken_names_are_refused(store, pod, now):
    store.create(pod(), now)
    assert refusal_of(store.create, pod(), now) == (
        "AlreadyExists",
        409,
        'pods "a" already exists',
    )
    store.create(deployment(), now)
    assert refusal_of(store.create, deployment(), now)[2] == (
        'deployments.apps "web" already exists'
    )


def test_the_name_of_a_terminating_object_is_taken(store, now):
    store.create({**CONFIG_MAP, "metadata": {"name": "m", "finalizers": ["x.io/y"]}}, now)
    store.delete(find_kind("cm"), "default", "m", now)
    assert refusal_of(store.create, CONFIG_MAP, now)[2] == (
        'object is being deleted: configmaps "m" already exists'
    )


def test_a_resource_version_of_a_new_object_is_refused(store, pod, now):
    assert refusal_of(store.create, pod(metadata={"resourceVersion": "5"}), now) == (
        "",
        500,
        "resourceVersion should not be set on objects to be created",
    )


def test_a_refused_object_changes_nothing(store, pod, now):
    refusal_of(store.create, pod("Bad_"), now)
    refusal_of(store.create, pod(priorityClassName="nope"), now)
    assert store.version == 0


# --- read -----------------------------------------------------------------------------------


def test_absent_objects_are_not_found(store, now):
    assert store.find(POD, "default", "x") is None
    assert refusal_of(store.get, POD, "default", "x") == ("NotFound", 404, 'pods "x" not found')
    assert refusal_of(store.delete, DEPLOYMENT, "default", "x", now)[2] == (
        'deployments.apps "x" not found'
    )
    assert refusal_of(store.patch, NODE, "", "x", {}, now)[2] == 'nodes "x" not found'
    assert refusal_of(store.patch_status, NODE, "", "x", {}, now)[2] == 'nodes "x" not found'
    assert refusal_of(put, store, deployment())[2] == 'deployments.apps "web" not found'


def test_lists_are_by_namespace(store, pod, now):
    for namespace, name in (("b", "y"), ("a", "z"), ("b", "x")):
        store.create(pod(name, namespace=namespace), now)
    keys = [(o["metadata"]["namespace"], o["metadata"]["name"]) for o in store.list(POD)]
    assert keys == [("a", "z"), ("b", "x"), ("b", "y")]
    assert [o["metadata"]["name"] for o in store.list(POD, "b")] == ["x", "y"]


# --- update and patch -----------------------------------------------------------------------


def test_a_stale_update_conflicts(store, now):
    old = store.create(deployment(), now)
    put(store, deployment(replicas=2) | {"metadata": old["metadata"]})
    assert refusal_of(put, store, old) == (
        "Conflict",
        409,
        (
            'Operation cannot be fulfilled on deployments.apps "web": the object has been '
            "modified; "
            "please apply your changes to the latest version and try again"
        ),
    )
    assert put(store, deployment(replicas=3))["spec"]["replicas"] == 3  # unconditional


def test_a_patch_with_an_outdated_resource_version_conflicts(store, now):
    version = store.create(deployment(), now)["metadata"]["resourceVersion"]
    lock = {"metadata": {"resourceVersion": version}, "spec": {"replicas": 2}}
    store.patch(DEPLOYMENT, "default", "web", lock, now)
    assert refusal_of(store.patch, DEPLOYMENT, "default", "web", lock, now)[0] == "Conflict"


def test_a_pod_with_another_uid_conflicts(store, pod, now):
    store.create(pod(), now)
    words = (
        'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
        "Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        "failed: UID in precondition: other, UID in object meta: uid-1"
    )
    assert refusal_of(put, store, pod(metadata={"uid": "other"}))[2] == words
    patch = (store.patch, POD, "default", "a", {"metadata": {"labels": {"x": "y"}}}, now)
    assert refusal_of(*patch, uid="other") == ("Conflict", 409, words)
    status = (store.patch_status, POD, "default", "a", {"phase": "Running"}, now)
    assert refusal_of(*status, uid="other") == ("Conflict", 409, words)


def test_a_write_that_changes_nothing_keeps_the_version(store, now):
    stored = store.create(deployment(replicas=2), now)
    assert put(store, stored) is stored
    assert store.patch(DEPLOYMENT, "default", "web", {"spec": {"replicas": 2}}, now) is stored
    assert store.patch_status(DEPLOYMENT, "default", "web", {}, now) is stored
    assert store.version == 1


def test_a_status_write_whose_stored_form_is_the_old_one_keeps_the_version(new_store, now):
    """The write sets currentReplicas to 0, which the API server omits."""
    store = new_store(registry=API_SERVER)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    sent = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 2},
    }
    stored = store.create(sent, now)
    written = store.patch_status(kind_of(sent), "default", "web", {"currentReplicas": 0}, now)
    assert written is stored


def test_the_generation_counts_changes_of_the_spec(store, now):
    def generation(patch):
        return store.patch(DEPLOYMENT, "default", "web", patch, now)["metadata"]["generation"]

    store.create(deployment(), now)
    assert generation({"metadata": {"labels": {"a": "b"}}}) == 1
    assert generation({"spec": {"replicas": 2}}) == 2
    assert generation({"metadata": {"annotations": {"a": "b"}}}) == 3  # Deployments only


def test_changes_of_annotations_do_not_increment_the_generation_of_other_kinds(store, pod, now):
    store.create(pod(), now)
    patch = {"metadata": {"annotations": {"a": "b"}}}
    assert store.patch(POD, "default", "a", patch, now)["metadata"]["generation"] == 1


def test_a_kind_without_generations_gets_none(store, now):
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, now)
    node = store.patch(NODE, "", "n", {"spec": {"unschedulable": True}}, now)
    assert "generation" not in node["metadata"]


def test_an_update_cannot_change_status_and_metadata_of_the_server(store, now):
    store.create(deployment(), now)
    store.patch_status(DEPLOYMENT, "default", "web", {"replicas": 1}, now)
    sent = deployment(replicas=5) | {"status": {"replicas": 9}}
    sent["metadata"] |= {"creationTimestamp": "1999-01-01T00:00:00Z", "generation": 77}
    stored = put(store, sent)
    assert stored["status"] == {"replicas": 1}
    assert stored["metadata"]["generation"] == 2
    assert stored["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_status_merges_and_nulls_remove(store, pod, now, later):
    store.create(pod(), now)
    store.patch_status(POD, "default", "a", {"nominatedNodeName": "n", "reason": "r"}, now)
    stored = store.patch_status(
        POD,
        "default",
        "a",
        {"nominatedNodeName": None},
        later(5),
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    )
    assert stored["status"] == {
        "phase": "Pending",
        "reason": "r",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "lastTransitionTime": "2026-01-01T00:00:05Z",
            }
        ],
    }
    assert stored["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"phase": "Dancing"},
            (
                'status.phase: Unsupported value: "Dancing": supported values: "Pending", '
                '"Running", '
                '"Succeeded", "Failed", "Unknown"'
            ),
        ),
        (
            {"nominatedNodeName": "n"},
            (
                "status.nominatedNodeName: Forbidden: may not be set on pods that are already "
                "bound "
                "to a node"
            ),
        ),
        (
            {"startTime": "yesterday"},
            (
                "status.startTime: Invalid value: \"yesterday\": 'yesterday' is not an RFC 3339 "
                "timestamp "
                "such as 2026-01-01T00:00:00Z"
            ),
        ),
    ],
)
def test_an_invalid_status_is_refused(store, pod, now, fields, words):
    store.create(pod(node="n1"), now)
    assert refusal_of(store.patch_status, POD, "default", "a", fields, now) == (
        "Invalid",
        422,
        f'Pod "a" is invalid: {words}',
    )


def test_a_status_of_a_wrong_type_is_refused(store, pod, now):
    store.create(pod(), now)
    reason, code, message = refusal_of(
        store.patch_status, POD, "default", "a", {"containerStatuses": "none"}, now
    )
    assert (reason, code) == ("BadRequest", 400)
    assert "status.containerStatuses: Expected `array`, got `str`" in message


def test_invalid_quantities_in_the_status_of_a_node_are_refused(store, now):
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, now)
    fields = {"allocatable": {"cpu": "-1"}}
    assert refusal_of(store.patch_status, NODE, "", "n", fields, now)[2] == (
        'Node "n" is invalid: status.allocatable.cpu: Invalid value: "-1": must be greater than '
        "or equal to 0"
    )


def test_an_update_does_not_require_fields_that_the_object_never_had(store, now):
    bare = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    }
    store.put_as_is(bare, now)
    patch = {"spec": {"replicas": 5}}
    assert store.patch(DEPLOYMENT, "default", "web", patch, now)["spec"]["replicas"] == 5
    worse = {"spec": {"template": {"spec": {"containers": [{"name": "Bad_"}]}}}}
    assert (
        "spec.template.spec.containers[0].name"
        in (refusal_of(store.patch, DEPLOYMENT, "default", "web", worse, now)[2])
    )


def test_containers_in_a_simulation_need_no_names_or_images(new_store, pod, now):
    sent = pod(containers=[{"resources": {"requests": {"cpu": "1"}}}])
    served = new_store(registry=API_SERVER)
    assert "image: Required value" in refusal_of(served.create, sent, now)[2]
    assert new_store().create(sent, now)["spec"]["containers"] == sent["spec"]["containers"]


# --- as is ----------------------------------------------------------------------------------


def test_put_as_is_keeps_status_uid_and_priority(store, pod, now):
    sent = pod(phase="Running", node="n", metadata={"uid": "u"}, priority=7)
    stored = store.put_as_is(sent, now)
    assert (stored["status"], stored["spec"]["priority"]) == ({"phase": "Running"}, 7)
    assert (stored["metadata"]["uid"], stored["metadata"]["resourceVersion"]) == ("u", "1")
    assert stored["spec"]["schedulerName"] == "default-scheduler"


def test_patch_as_is_can_change_immutable_fields(store, pod, now):
    store.create(pod(), now)
    patch = {"spec": {"nodeName": "n", "priority": 9}, "status": {"phase": "Failed"}}
    stored = store.patch_as_is(POD, "default", "a", patch, now)
    assert stored["spec"]["nodeName"] == "n"
    assert stored["status"]["phase"] == "Failed"
    assert stored["metadata"]["uid"] == "uid-1"


def test_put_as_is_refuses_an_invalid_object(store, pod, now):
    sent = pod(containers=[{"resources": {"requests": {"cpu": "-1"}}}])
    assert refusal_of(store.put_as_is, sent, now)[2] == (
        'Pod "a" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": '
        "must be greater than or equal to 0"
    )
