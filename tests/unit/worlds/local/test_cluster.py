"""The controllers of a local cluster."""

from __future__ import annotations

import json
from functools import partial

import pytest

from fairlead.api.codec import decode
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, find_kind
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.request import ADMIN, Request
from fairlead.apiserver.storage.storage import ChangeType
from fairlead.engine.configuration.release import release_of
from fairlead.engine.core.instant import seconds
from fairlead.worlds.decision_log import DecisionLog

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def test_a_pod_is_scheduled_and_runs(cluster):
    cluster.ask("POST", PODS, POD)
    bound = cluster.find("pod", "a")
    assert bound["spec"]["nodeName"].startswith("node-")
    assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"].startswith("zone-")
    cluster.pass_time(2)
    status = cluster.find("pod", "a")["status"]
    [container] = status["containerStatuses"]
    assert (status["phase"], container["ready"]) == ("Running", True)
    assert status["podIP"].startswith("10.128.")


def test_the_clock_keeps_up_while_slices_of_work_take_30_ms(cluster):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": POD["spec"]}
    spec = {"replicas": 50, "selector": {"matchLabels": labels}, "template": template}
    web = {"metadata": {"name": "web"}, "spec": spec}
    body = json.dumps(web).encode()
    path = "/apis/apps/v1/namespaces/default/deployments"
    request = Request("POST", path, (), {"content-type": "application/json"}, body, ADMIN)
    cluster.local.server.handle(request, cluster.clock.now())
    control_plane = cluster.local.control_plane
    for _ in range(20):
        cluster.clock.jump_to(cluster.clock.now() + seconds(0.03))
        reached = control_plane.run_until(cluster.clock.now(), stop_when=lambda: True)
    assert control_plane.next_due() <= reached  # Some work is left.
    assert cluster.clock.now() - reached <= seconds(0.03)


def test_each_pod_has_a_unique_address_until_its_deletion(cluster):
    for name in ("a", "b"):
        pod = {**POD, "metadata": {"name": name}, "spec": {**POD["spec"], "nodeName": "node-1"}}
        cluster.ask("POST", PODS, pod)
    cluster.pass_time(2)
    first, second = (cluster.find("pod", name)["status"]["podIP"] for name in ("a", "b"))
    assert first != second
    cluster.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    cluster.ask("POST", PODS, {**POD, "spec": {**POD["spec"], "nodeName": "node-1"}})
    cluster.pass_time(2)
    assert cluster.find("pod", "a")["status"]["podIP"] == first


def test_the_scheduler_writes_events(cluster):
    cluster.ask("POST", PODS, POD)
    [event] = [row for row in cluster.list("event") if row["reason"] == "Scheduled"]
    assert event["involvedObject"]["name"] == "a"
    assert event["message"].startswith("Successfully assigned default/a to node-")


def test_repeated_events_are_counted(cluster):
    huge = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "99"}}}
    cluster.ask("POST", PODS, {**POD, "spec": {"containers": [huge]}})
    cluster.pass_time(400)  # the scheduler retries five minutes later
    [failed] = [row for row in cluster.list("event") if row["reason"] == "FailedScheduling"]
    assert failed["series"]["count"] == 2


def test_events_are_deleted_after_an_hour(cluster):
    cluster.ask("POST", PODS, POD)
    cluster.pass_time(3_590)
    assert {row["involvedObject"]["name"] for row in cluster.list("event")} >= {"a"}
    cluster.pass_time(20)
    assert not cluster.list("event")


def test_events_of_clients_are_deleted_an_hour_after_their_last_write(cluster):
    events = "/api/v1/namespaces/default/events"
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    for name in ("once", "twice"):
        cluster.ask("POST", events, {"metadata": {"name": name}, "involvedObject": about})
    cluster.pass_time(3_000)
    counted = {"count": 2}
    cluster.ask("PATCH", f"{events}/twice", counted, "application/merge-patch+json")
    cluster.pass_time(1_000)
    assert [row["metadata"]["name"] for row in cluster.list("event")] == ["twice"]
    cluster.pass_time(2_700)
    assert not cluster.list("event")


def test_every_namespace_gets_its_default_objects(cluster):
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    assert cluster.find("serviceaccount", "default", "n") is not None
    shown = cluster.find("configmap", "kube-root-ca.crt", "n")
    assert shown["data"] == {"ca.crt": "PEM"}
    cluster.ask("DELETE", "/api/v1/namespaces/n/serviceaccounts/default")
    assert cluster.find("serviceaccount", "default", "n") is not None


def test_the_published_ca_is_that_of_the_server(make_cluster):
    """A snapshot contains the CA of another cluster; a user may change the ConfigMap, too."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    meta = {"name": "kube-root-ca.crt", "namespace": "n"}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": "OTHER"}}
    cluster = make_cluster(objects=(namespace, other), authority="PEM")
    assert cluster.find("configmap", "kube-root-ca.crt", "n")["data"] == {"ca.crt": "PEM"}
    path, patch = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt", {"data": {"x": "y"}}
    cluster.ask("PATCH", path, patch, "application/merge-patch+json")
    assert cluster.find("configmap", "kube-root-ca.crt", "n")["data"] == {"ca.crt": "PEM"}


def test_a_namespace_is_deleted_when_it_is_empty(cluster):
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    cluster.ask("POST", "/api/v1/namespaces/n/pods", POD)
    cluster.pass_time(2)
    cluster.ask("DELETE", "/api/v1/namespaces/n")
    assert cluster.find("namespace", "n", "")["status"]["phase"] == "Terminating"
    cluster.pass_time(5)
    assert cluster.list("configmap", "n"), "pods go first"
    cluster.pass_time(5)
    assert cluster.find("namespace", "n", "") is None


def test_conditions_of_a_namespace_name_remaining_objects_and_finalizers(cluster):
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    held = {"metadata": {"name": "c", "finalizers": ["a.b/c"]}}
    cluster.ask("POST", "/api/v1/namespaces/n/configmaps", held)
    cluster.ask("DELETE", "/api/v1/namespaces/n")
    cluster.pass_time(5)
    conditions = {
        row["type"]: (row["status"], row["reason"], row["message"])
        for row in cluster.find("namespace", "n", "")["status"]["conditions"]
    }
    assert conditions["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    )
    assert conditions["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: a.b/c in 1 resource instances",
    )
    assert conditions["NamespaceDeletionContentFailure"][0] == "False"
    patch = {"metadata": {"finalizers": None}}
    path = "/api/v1/namespaces/n/configmaps/c"
    cluster.ask("PATCH", path, patch, "application/merge-patch+json")
    cluster.pass_time(9)
    assert cluster.find("namespace", "n", "") is None


def test_a_deployment_is_rolled_out(cluster):
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": POD["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    cluster.ask("POST", path, {"metadata": {"name": "d"}, "spec": spec})
    cluster.pass_time(5)
    assert cluster.find("deployment", "d")["status"]["readyReplicas"] == 2
    [replica_set] = cluster.list("replicaset")
    made_from = {pod["metadata"]["generateName"] for pod in cluster.list("pod")}
    assert made_from == {f"{replica_set['metadata']['name']}-"}


def test_a_disabled_component_does_nothing(make_cluster):
    cluster = make_cluster(nodes=1, without=("scheduler",))
    cluster.ask("POST", PODS, POD)
    cluster.pass_time(60)
    assert "nodeName" not in cluster.find("pod", "a")["spec"]


def test_an_undecodable_object_does_not_affect_others(cluster):
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Pod", "plural": "things", "singular": "thing", "listKind": "Things"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.ask("POST", crds, definition)
    cluster.pass_time(5)
    thing = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "t"}, "spec": 5}
    cluster.ask("POST", "/apis/example.com/v1/namespaces/default/things", thing)
    cluster.ask("POST", PODS, POD)
    assert cluster.find("pod", "a")["spec"]["nodeName"].startswith("node-")


def test_nodes_are_assigned_to_zones_in_turn(make_cluster):
    cluster = make_cluster(nodes=4, zones=3)
    zones = [
        node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for node in cluster.local.store.list(NODE)
    ]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]


def test_default_objects_are_created_when_the_quota_allows_them(cluster):
    """They are missing while the quota forbids them, and are created after the quota changes."""
    quotas = "/api/v1/namespaces/default/resourcequotas"
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}}
    cluster.ask("POST", quotas, quota)
    cluster.ask("DELETE", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
    assert cluster.list("ConfigMap") == []
    patch = {"spec": {"hard": {"configmaps": "1"}}}
    cluster.ask("PATCH", f"{quotas}/q", patch, "application/merge-patch+json")
    assert [obj["metadata"]["name"] for obj in cluster.list("ConfigMap")] == ["kube-root-ca.crt"]


def test_the_usage_of_quotas_is_counted(cluster):
    """Existing objects are counted when the quota is created; later changes are counted, too."""
    path = "/api/v1/namespaces/default"

    def used():
        return cluster.find("ResourceQuota", "q")["status"]["used"]

    cluster.ask("POST", f"{path}/configmaps", {"metadata": {"name": "a"}})
    hard = {"configmaps": "5", "requests.cpu": "2"}
    cluster.ask(
        "POST", f"{path}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    )
    assert used() == {"configmaps": "2", "requests.cpu": "0"}
    cluster.ask("DELETE", f"{path}/configmaps/a")
    assert used() == {"configmaps": "1", "requests.cpu": "0"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    cluster.ask(
        "POST", f"{path}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    )
    assert used() == {"configmaps": "1", "requests.cpu": "500m"}


def test_the_deployment_controller_writes_revision_and_status_together(cluster):
    """The controller writes both at once, and the generation does not change."""
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    cluster.ask(
        "POST",
        "/apis/apps/v1/namespaces/default/deployments",
        {"metadata": {"name": "d"}, "spec": spec},
    )
    meta = cluster.find("Deployment", "d")["metadata"]
    assert meta["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert meta["generation"] == 1


def test_exec_into_a_running_container_is_not_implemented(cluster):
    """No command is executed."""
    pods = "/api/v1/namespaces/default/pods"
    cluster.ask(
        "POST",
        pods,
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    )
    cluster.pass_time(10)
    assert cluster.ask("GET", f"{pods}/p/exec")["reason"] == "NotImplemented"


def test_all_component_statuses_are_healthy(cluster):
    """All components are one process."""
    path = "/api/v1/componentstatuses"
    found = cluster.ask("GET", path)
    assert "resourceVersion" not in found["metadata"]
    names = [one["metadata"]["name"] for one in found["items"]]
    assert names == ["controller-manager", "scheduler", "etcd-0"]
    assert cluster.ask("GET", f"{path}/scheduler")["conditions"][0]["status"] == "True"
    assert cluster.ask("GET", f"{path}/x")["message"] == "Component not found: x"
    assert cluster.ask("POST", path, {"metadata": {"name": "x"}})["reason"] == "MethodNotAllowed"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_autoscaler_follows_the_annotated_load(cluster, version):
    """This holds for both API versions; the status has the values that kubectl prints."""
    cluster.ask("POST", "/apis/apps/v1/namespaces/default/deployments", loaded_deployment())
    path = f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    request = Request("POST", path, (), {}, json.dumps(scaler).encode(), ADMIN)
    response = cluster.local.server.handle(request, cluster.clock.now())
    assert (response.status, response.warnings) == (201, ())
    cluster.pass_time(60)
    web = cluster.find("deployment", "web")
    assert web["spec"]["replicas"] == 3
    (owner,) = (
        one
        for one in web["metadata"]["managedFields"]
        if one["fieldsV1"].get("f:spec") == {"f:replicas": {}}
    )
    assert (owner["manager"], owner["subresource"]) == ("kube-controller-manager", "scale")
    assert "time" not in owner
    status = cluster.find("hpa", "web")["status"]
    usage = cluster.ask("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")
    shares = [one["containers"][0]["usage"]["cpu"] for one in usage["items"]]
    assert sorted(shares) == ["133m", "133m", "134m"]
    current = {"averageUtilization": 133, "averageValue": "133m"}
    assert status["currentMetrics"][0]["resource"]["current"] == current
    assert [one["reason"] for one in status["conditions"]] == [
        "ReadyForNewScale",
        "ValidMetricFound",
        "TooManyReplicas",
    ]


def test_an_autoscaler_without_a_load_says_how_to_state_it(cluster):
    deployment = loaded_deployment()
    del deployment["metadata"]["annotations"]
    cluster.ask("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    cluster.ask("POST", path, scaler)
    cluster.pass_time(60)
    (active,) = (
        one
        for one in cluster.find("hpa", "web")["status"]["conditions"]
        if one["type"] == "ScalingActive"
    )
    assert active["reason"] == "FailedGetResourceMetric"
    assert "no metrics returned from resource metrics API; state the usage" in active["message"]
    assert "fairlead.dev/load" in active["message"]


def loaded_deployment():
    """Return a Deployment with one replica that requests 100m and has a load of 400m."""
    labels = {"app": "web"}
    containers = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "100m"}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "metadata": {"name": "web", "annotations": {"fairlead.dev/load": "cpu=400m"}},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def test_the_status_of_a_pod_has_the_observed_generation(cluster):
    """Conditions have the kubelet's order; those of a binding have no observedGeneration."""
    cluster.ask("POST", PODS, POD)
    cluster.pass_time(5)
    status = cluster.find("pod", "a")["status"]
    assert status["observedGeneration"] == 1
    assert [(row["type"], row.get("observedGeneration")) for row in status["conditions"]] == [
        ("PodReadyToStartContainers", 1),
        ("Initialized", 1),
        ("Ready", 1),
        ("ContainersReady", 1),
        ("PodScheduled", 1),
    ]


def test_schedulers_write_events_of_the_newer_group(cluster):
    cluster.ask("POST", PODS, POD)
    [event] = [row for row in cluster.list("event") if row["reason"] == "Scheduled"]
    assert event["action"] == "Binding"
    assert event["reportingComponent"] == "default-scheduler"
    assert event["reportingInstance"] == "default-scheduler-fairlead"
    assert event.get("firstTimestamp") is None
    assert event["eventTime"]
    assert "count" not in event


def test_a_pod_is_pending_before_its_containers_run(cluster):
    """Containers wait for the init containers before them; a sidecar keeps running."""
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "initContainers": [
            {"name": "first", "image": "i"},
            {"name": "beside", "image": "i", "restartPolicy": "Always"},
        ],
    }
    cluster.ask("POST", PODS, {**POD, "spec": spec})
    cluster.pass_time(0.2)
    status = cluster.find("pod", "a")["status"]
    assert status["phase"] == "Pending"
    assert status["hostIP"]
    assert "podIP" not in status
    assert states(status) == {"c": "waiting", "first": "waiting", "beside": "waiting"}
    initialized = status["conditions"][1]
    assert initialized["message"] == "containers with incomplete status: [first beside]"
    ready = status["conditions"][2]
    assert (ready["type"], ready["status"]) == ("Ready", "False")
    assert ready["message"] == "containers with unready status: [beside c]"
    cluster.pass_time(2)
    status = cluster.find("pod", "a")["status"]
    assert status["podIP"]
    assert states(status) == {"c": "running", "first": "terminated", "beside": "running"}


def states(status):
    rows = (*status["containerStatuses"], *status["initContainerStatuses"])
    return {row["name"]: next(iter(row["state"])) for row in rows}


def test_a_kubelet_rejects_a_pod_that_does_not_fit(cluster):
    """The pod fails without conditions and container statuses, and its event has the reason."""
    requests = {"resources": {"requests": {"cpu": "9000"}}}
    spec = {"nodeName": "node-1", "containers": [{**POD["spec"]["containers"][0], **requests}]}
    cluster.ask("POST", PODS, {**POD, "spec": spec})
    cluster.pass_time(2)
    status = cluster.find("pod", "a")["status"]
    message = status.pop("message")
    assert message.startswith(
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 9000000, used: 0, "
    )
    assert status == {
        "observedGeneration": 1,
        "phase": "Failed",
        "qosClass": "Burstable",
        "reason": "OutOfcpu",
        "startTime": status["startTime"],
    }
    [event] = [row for row in cluster.list("event") if row["reason"] == "OutOfcpu"]
    assert (event["type"], f"Pod was rejected: {event['message']}") == ("Warning", message)


def test_a_kubelet_stops_a_pod_at_its_deadline(cluster):
    """There is an event about the pod, and one about each container that was running."""
    cluster.ask("POST", PODS, {**POD, "spec": {**POD["spec"], "activeDeadlineSeconds": 5}})
    cluster.pass_time(5.5)
    assert cluster.find("pod", "a")["status"]["phase"] == "Running"
    cluster.pass_time(2)
    status = cluster.find("pod", "a")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    messages = {row["reason"]: row["message"] for row in cluster.list("event")}
    assert messages["DeadlineExceeded"].startswith("Pod was active on the node longer than")
    assert messages["Killing"] == "Stopping container c"


@pytest.mark.parametrize(
    ("phase", "delay", "ended"),
    [
        ("Failed", "0s", (143, "Error")),
        ("Failed", "1h", (143, "Error")),
        ("Succeeded", "0s", (0, "Completed")),
    ],
)
def test_a_kubelet_stops_the_containers_of_a_pod_that_a_client_ends(cluster, phase, delay, ended):
    """So budgets no longer count the pod as healthy; also if the pod was not ready yet."""
    meta = {"name": "a", "annotations": {"fairlead.dev/ready-delay": delay}}
    cluster.ask("POST", PODS, {**POD, "metadata": meta})
    cluster.pass_time(2)
    patch = {"status": {"phase": phase}}
    cluster.ask("PATCH", f"{PODS}/a/status", patch, "application/merge-patch+json")
    cluster.pass_time(2)
    status = cluster.find("pod", "a")["status"]
    reasons = {row["type"]: (row["status"], row.get("reason")) for row in status["conditions"]}
    reason = "PodFailed" if phase == "Failed" else "PodCompleted"
    assert status["phase"] == phase
    assert reasons["Ready"] == reasons["ContainersReady"] == ("False", reason)
    [container] = status["containerStatuses"]
    terminated = container["state"]["terminated"]
    assert not container["ready"]
    assert (terminated["exitCode"], terminated["reason"]) == ended
    killing = [row["message"] for row in cluster.list("event") if row["reason"] == "Killing"]
    assert killing == ["Stopping container c"]
    version = cluster.find("pod", "a")["metadata"]["resourceVersion"]
    cluster.pass_time(60)
    assert cluster.find("pod", "a")["metadata"]["resourceVersion"] == version


def test_the_containers_of_a_pod_that_a_client_fails_are_killed_after_the_grace_period(cluster):
    meta = {"name": "a", "annotations": {"fairlead.dev/stop-duration": "1h"}}
    spec = {**POD["spec"], "terminationGracePeriodSeconds": 10}
    cluster.ask("POST", PODS, {"metadata": meta, "spec": spec})
    cluster.pass_time(2)
    patch = {"status": {"phase": "Failed", "reason": "Mine"}}
    cluster.ask("PATCH", f"{PODS}/a/status", patch, "application/merge-patch+json")
    cluster.pass_time(9)
    assert "running" in cluster.find("pod", "a")["status"]["containerStatuses"][0]["state"]
    cluster.pass_time(2)
    status = cluster.find("pod", "a")["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert status["reason"] == "Mine"


def test_the_containers_of_an_evicted_pod_are_terminated(cluster):
    usage = {"fairlead.dev/usage": "memory=1000Gi"}
    cluster.ask("POST", PODS, {**POD, "metadata": {"name": "a", "annotations": usage}})
    cluster.pass_time(20)
    status = cluster.find("pod", "a")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    [container] = status["containerStatuses"]
    assert "terminated" in container["state"]
    assert not container["ready"]
    assert "Stopping container c" in {row["message"] for row in cluster.list("event")}


def test_a_deleted_pod_that_a_finalizer_keeps_was_stopped_by_a_signal(cluster):
    """Pods of Jobs have a finalizer, and the failure policy of a Job reads the exit code."""
    kept = {"name": "a", "finalizers": ["example.com/kept"]}
    cluster.ask("POST", PODS, {**POD, "metadata": kept})
    cluster.pass_time(2)
    cluster.ask("DELETE", f"{PODS}/a")
    cluster.pass_time(40)
    [container] = cluster.find("pod", "a")["status"]["containerStatuses"]
    ended = container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (143, "Error")


def test_a_watch_shows_the_last_status_of_a_deleted_pod(cluster):
    cluster.ask("POST", PODS, POD)
    cluster.pass_time(2)
    changes = []
    cluster.local.store.storage.subscribe(changes.append, lambda resource: resource == "pods")
    cluster.ask("DELETE", f"{PODS}/a")
    cluster.pass_time(40)
    assert changes[-1].type is ChangeType.DELETED
    status = changes[-1].object["status"]
    [ended] = (row["state"]["terminated"] for row in status["containerStatuses"])
    ready = {row["type"]: row["status"] for row in status["conditions"]}["Ready"]
    assert (status["phase"], ended["exitCode"], ready) == ("Failed", 143, "False")


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_containers_are_lost_when_the_machine_of_their_node_was_down(cluster, policy):
    """The status keeps its details, such as containerID and the times of the lost container."""
    cluster.ask("POST", PODS, {**POD, "spec": {**POD["spec"], "restartPolicy": policy}})
    cluster.pass_time(2)
    pod = cluster.find("pod", "a")
    [before], path = pod["status"]["containerStatuses"], f"/api/v1/nodes/{pod['spec']['nodeName']}"
    for behaviour in ("stopped", None):
        note = {"metadata": {"annotations": {"fairlead.dev/kubelet": behaviour}}}
        cluster.ask("PATCH", path, note, content_type="application/merge-patch+json")
        cluster.pass_time(2)
    [after] = cluster.find("pod", "a")["status"]["containerStatuses"]
    ended = after["lastState" if policy == "Always" else "state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (255, "Unknown")
    assert ended["startedAt"] == before["state"]["running"]["startedAt"]
    assert after["restartCount"] == (policy == "Always")
    assert ("running" in after["state"]) is (policy == "Always")
    assert after["containerID"].startswith(before["containerID"])


def test_a_pod_stops_a_second_after_its_deletion_by_default(cluster):
    """The annotation fairlead.dev/stop-duration sets another time, up to the grace period."""
    slow = {"fairlead.dev/stop-duration": "20s"}
    cluster.ask("POST", PODS, POD)
    cluster.ask("POST", PODS, {**POD, "metadata": {"name": "b", "annotations": slow}})
    cluster.pass_time(5)
    for name in ("a", "b"):
        cluster.ask("DELETE", f"{PODS}/{name}")
    cluster.pass_time(2)
    assert [pod["metadata"]["name"] for pod in cluster.list("pod")] == ["b"]
    cluster.pass_time(20)
    assert cluster.list("pod") == []


def test_unused_claims_and_classes_are_deleted(cluster):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    cluster.ask("POST", path, {"metadata": {"name": "c"}, "spec": spec})
    classes = "/apis/storage.k8s.io/v1/volumeattributesclasses"
    made = {"metadata": {"name": "v"}, "driverName": "d", "parameters": {"a": "b"}}
    cluster.ask("POST", classes, made)
    assert cluster.find("volumeattributesclass", "v", "") is not None
    cluster.ask("DELETE", f"{path}/c")
    cluster.ask("DELETE", f"{classes}/v")
    cluster.pass_time(1)
    assert cluster.find("persistentvolumeclaim", "c") is None
    assert cluster.find("volumeattributesclass", "v", "") is None


MAPS = "/api/v1/namespaces/default/configmaps"
NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "1-2-3"}


def owned(cluster, *owners):
    """Create a ConfigMap with these owners; return it a second later, or None if it is deleted."""
    cluster.ask("POST", MAPS, {"metadata": {"name": "c", "ownerReferences": list(owners)}})
    cluster.pass_time(1)
    return cluster.find("configmap", "c")


def test_an_object_with_a_missing_owner_is_deleted(cluster):
    assert owned(cluster, NOBODY) is None


def test_an_object_with_the_name_but_not_the_uid_of_an_owner_is_deleted(cluster):
    root = {**NOBODY, "name": "kube-root-ca.crt"}
    assert owned(cluster, root) is None


def test_a_missing_owner_is_removed_if_another_owner_exists(cluster):
    root = cluster.find("configmap", "kube-root-ca.crt")["metadata"]
    there = {**NOBODY, "name": root["name"], "uid": root["uid"]}
    found = owned(cluster, NOBODY, there)
    assert [one["uid"] for one in found["metadata"]["ownerReferences"]] == [root["uid"]]


def test_an_object_with_an_owner_of_an_unserved_kind_is_kept(cluster):
    assert owned(cluster, {**NOBODY, "apiVersion": "example.com/v1"}) is not None


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def define_widgets(cluster, **subresources):
    """Create the definition of the custom resource widgets.example.com."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": subresources}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    cluster.ask("POST", CRDS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    cluster.pass_time(10)


SCALE = {
    "specReplicasPath": ".spec.size.wanted",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def follow_widget(cluster, selector):
    """Create a widget of one pod, whose load an autoscaler follows for a minute."""
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    pod = {**loaded_deployment()["spec"]["template"], "metadata": {"name": "a"}}
    pod["metadata"]["labels"] = {"app": "web"}
    cluster.ask("POST", PODS, pod)
    meta = {"name": "w", "annotations": {"fairlead.dev/load": "cpu=400m"}}
    status = {"replicas": 1, "selector": selector}
    widget = {"metadata": meta, "spec": {"size": {"wanted": 1}}, "status": status}
    cluster.ask("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", **widget})
    target = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}
    scaler = {"metadata": {"name": "w"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    cluster.ask("POST", autoscalers, scaler)
    cluster.pass_time(60)
    status = cluster.find("hpa", "w")["status"]
    reasons = [one["reason"] for one in status["conditions"]]
    return cluster.ask("GET", f"{WIDGETS}/w")["spec"]["size"]["wanted"], reasons


def test_an_autoscaler_scales_a_custom_resource(cluster):
    define_widgets(cluster, scale=SCALE)
    replicas, reasons = follow_widget(cluster, "app=web")
    assert replicas == 3
    assert reasons[:2] == ["ReadyForNewScale", "ValidMetricFound"]


@pytest.mark.parametrize(
    ("scale", "selector", "reason"),
    [
        (None, "app=web", "FailedGetScale"),
        ({**SCALE, "specReplicasPath": ".spec.count"}, "app=web", "FailedGetScale"),
        (SCALE, "", "InvalidSelector"),
    ],
    ids=["no scale", "no replicas", "no selector"],
)
def test_a_custom_resource_without_a_complete_scale_is_not_scaled(cluster, scale, selector, reason):
    define_widgets(cluster, **({"scale": scale} if scale else {}))
    replicas, reasons = follow_widget(cluster, selector)
    assert (replicas, reasons[-1]) == (1, reason)


@pytest.mark.parametrize(
    ("scale", "expected", "reason"),
    [(SCALE, 3, "InsufficientPods"), (None, 0, "SyncFailed")],
    ids=["with a scale", "without a scale"],
)
def test_a_budget_reads_the_scale_of_a_custom_resource(cluster, scale, expected, reason):
    """The operator has created one of three pods."""
    define_widgets(cluster, **({"scale": scale} if scale else {}))
    widget = {"metadata": {"name": "w"}, "spec": {"size": {"wanted": 3}}}
    owner = {"apiVersion": "example.com/v1", "kind": "Widget"}
    made = cluster.ask("POST", WIDGETS, {**owner, **widget})
    owner |= {"name": "w", "uid": made["metadata"]["uid"], "controller": True}
    meta = {"name": "a", "labels": {"app": "web"}, "ownerReferences": [owner]}
    cluster.ask("POST", PODS, {**POD, "metadata": meta})
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    cluster.ask("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
    cluster.pass_time(5)
    status = cluster.find("pdb", "b")["status"]
    assert (status["expectedPods"], status["disruptionsAllowed"]) == (expected, 0)
    (condition,) = status["conditions"]
    assert condition["reason"] == reason
    why = "widgets.example.com does not implement the scale subresource"
    assert condition["message"] == ("" if scale else why)


def test_an_event_about_a_custom_resource_names_its_kind_and_version(cluster):
    """Otherwise, kubectl describe does not find the event."""
    define_widgets(cluster)
    uid = cluster.find("configmap", "kube-root-ca.crt", "kube-system")["metadata"]["uid"]
    owner = {**NOBODY, "name": "kube-root-ca.crt", "uid": uid}
    widget = {"metadata": {"name": "w", "ownerReferences": [owner]}}
    cluster.ask("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", **widget})
    cluster.pass_time(1)
    (event,) = [one for one in cluster.list("event") if one["reason"] == "OwnerRefInvalidNamespace"]
    about = event["involvedObject"]
    assert (about["kind"], about["apiVersion"]) == ("Widget", "example.com/v1")


def kubelets_events(cluster):
    rows = [row for row in cluster.list("event") if row["source"].get("component") == "kubelet"]
    return [(row["reason"], row["involvedObject"].get("fieldPath"), row["message"]) for row in rows]


def test_kubelets_write_events_about_containers(cluster):
    cluster.ask("POST", PODS, POD)
    cluster.pass_time(2)
    part, there = "spec.containers{c}", "already present on machine and can be accessed by the pod"
    began = [
        ("Pulled", part, f'Container image "i" {there}'),
        ("Created", part, "Container created"),
        ("Started", part, "Container started"),
    ]
    assert kubelets_events(cluster) == began
    cluster.ask("DELETE", f"{PODS}/a")
    cluster.pass_time(40)
    assert kubelets_events(cluster) == [*began, ("Killing", part, "Stopping container c")]


def test_kubelets_write_events_about_each_container(cluster):
    spec = {
        "initContainers": [{"name": "first", "image": "i"}],
        "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}],
    }
    cluster.ask("POST", PODS, {**POD, "spec": spec})
    cluster.pass_time(2)
    started = [part for reason, part, _ in kubelets_events(cluster) if reason == "Started"]
    assert started == ["spec.initContainers{first}", "spec.containers{a}", "spec.containers{b}"]


@pytest.mark.parametrize("kind", ["Job", "ReplicaSet", "Widget"])
def test_pods_of_a_missing_owner_are_not_recreated(cluster, kind):
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    cluster.ask("POST", PODS, {**POD, "metadata": {"name": "a", "ownerReferences": [owner]}})
    cluster.pass_time(2)
    cluster.ask("DELETE", f"{PODS}/a")
    cluster.pass_time(40)
    assert cluster.list("pod") == []


@pytest.mark.parametrize("api", ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"])
def test_names_of_pod_groups_must_be_dns_subdomains(cluster, api):
    """The rule is that of all custom resources."""
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "?Y b"}}
    refused = cluster.ask("POST", f"/apis/{api}/namespaces/default/podgroups", group)
    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, "metadata.name")


def test_an_endpoint_slice_that_lost_its_service_label_is_replaced(cluster):
    """The slice that lost its label is not written again and again."""
    labels = {"app": "a"}
    spec = {"selector": labels, "ports": [{"port": 80}]}
    cluster.ask(
        "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": spec}
    )
    cluster.pass_time(5)
    [ours] = [
        one for one in cluster.list("endpointslice") if one["metadata"]["name"] != "kubernetes"
    ]
    path = f"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{ours['metadata']['name']}"
    kind = "application/merge-patch+json"
    cluster.ask("PATCH", path, {"metadata": {"labels": None}}, kind)
    cluster.ask("POST", PODS, {**POD, "metadata": {"name": "a", "labels": labels}})
    cluster.pass_time(5)
    held = {
        one["metadata"]["name"]: len(one["endpoints"] or ())
        for one in cluster.list("endpointslice")
        if one["metadata"]["name"] != "kubernetes"
    }
    assert held.pop(ours["metadata"]["name"]) == 0
    assert list(held.values()) == [1]


def test_empty_fields_of_a_snapshot_are_left_out(make_cluster):
    """Otherwise the Deployment would create one ReplicaSet after another."""
    container = {"name": "c", "image": "i", "env": [{"name": "E", "value": ""}], "command": []}
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {}},
        "spec": {"nodeSelector": {}, "hostNetwork": False, "containers": [container]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    cluster = make_cluster(nodes=1, objects=(namespace, deployment))
    cluster.pass_time(60)
    assert len(cluster.list("replicaset")) == 1


def test_decisions_are_logged_if_logging_is_enabled(make_cluster):
    entries = []

    def write(entry, _now):
        entries.append(entry)

    logging = partial(DecisionLog, clock=lambda: 0, write=write, verbosity=2)
    cluster = make_cluster(logging=logging)
    cluster.ask("POST", PODS, POD)
    [placed] = [entry for entry in entries if entry.message == "Placed pod on node"]
    assert placed.pairs["pod"] == "default/a"


def test_a_cluster_can_behave_as_an_older_version(make_cluster):
    """The scheduler is that of 1.16, there are no preemption policies, and no Leases."""
    gates = {"NodeLease": False}
    cluster = make_cluster(release=release_of("1.16", gates), nodes=1)
    huge = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "99"}}}
    cluster.ask("POST", PODS, {**POD, "spec": {"containers": [huge]}})
    cluster.pass_time(60)
    pod = cluster.find("pod", "a")
    assert "preemptionPolicy" not in pod["spec"]
    [event] = [row for row in cluster.list("event") if row["reason"] == "FailedScheduling"]
    assert event["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert not cluster.list("lease", "kube-node-lease")
    [node] = cluster.local.store.list(NODE)
    conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"


@pytest.mark.parametrize(
    ("kind", "path", "reason"),
    [
        ("Node", "nodes", None),
        ("Service", "namespaces/default/services", "Invalid"),  # has no ports
        ("PersistentVolumeClaim", "namespaces/default/persistentvolumeclaims", "Invalid"),
    ],
)
def test_an_object_of_a_snapshot_may_have_no_spec(make_cluster, kind, path, reason):
    """It is loaded; a later write is validated."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}
    cluster = make_cluster(objects=(namespace, manifest))
    patch = {"metadata": {"labels": {"x": "y"}}}
    found = cluster.ask("PATCH", f"/api/v1/{path}/a", patch, "application/merge-patch+json")
    assert found.get("reason") == reason


@pytest.mark.parametrize(
    ("version", "kind", "field"),
    [
        ("v1", "Pod", "spec.containers"),
        ("v1", "Pod", "spec.containers[0].name"),
        ("batch/v1", "Job", "spec.template.spec.containers"),
        ("apps/v1", "Deployment", "spec.selector"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec.group"),
        ("apiregistration.k8s.io/v1", "APIService", "spec.groupPriorityMinimum"),
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "spec.request"),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "spec.priorityLevelConfiguration.name"),
    ],
)
def test_an_object_of_a_snapshot_has_the_fields_that_every_stored_object_has(
    make_cluster, version, kind, field
):
    """The rules for later writes read these fields."""
    containers = [{}] if "[0]" in field else None
    spec = {"containers": containers}
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    with pytest.raises(ApiError) as refused:
        make_cluster(objects=(manifest,))
    assert refused.value.causes[0].field == field


HAND_WRITTEN = {
    "pods": ("v1", "Pod", {"containers": [{"name": "c", "image": "i"}]}),
    "persistentvolumeclaims": (
        "v1",
        "PersistentVolumeClaim",
        {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    ),
    "secrets": ("v1", "Secret", {}),
    "jobs": (
        "batch/v1",
        "Job",
        {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            },
        },
    ),
}


@pytest.mark.parametrize("plural", HAND_WRITTEN)
def test_a_hand_written_object_of_a_snapshot_can_be_changed(make_cluster, plural):
    """It lacks the defaults of immutable fields, which every update sets."""
    version, kind, spec = HAND_WRITTEN[plural]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    cluster = make_cluster(objects=(namespace, manifest))
    patch = {"metadata": {"labels": {"x": "y"}}}
    base = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    path = f"{base}/namespaces/default/{plural}/a"
    found = cluster.ask("PATCH", path, patch, "application/merge-patch+json")
    assert found["metadata"].get("labels") == {"x": "y"}, found


def test_a_hand_written_text_of_a_snapshot_can_be_changed(make_cluster):
    """Fairlead decodes most texts of a dump late, and does not set defaults in them."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    meta = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "5"}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    dumped = DumpedObject(find_kind("pod"), decode(pod), json.dumps(pod).encode())
    cluster = make_cluster(objects=(namespace, dumped))
    patch = {"metadata": {"labels": {"x": "y"}}}
    found = cluster.ask("PATCH", f"{PODS}/a", patch, "application/merge-patch+json")
    assert found["spec"]["dnsPolicy"] == "ClusterFirst", found


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [([], True), ([("Ready", "True")], True), ([("Ready", "False")], False)],
)
def test_a_hand_written_running_pod_gets_the_statuses_of_its_containers(
    make_cluster, conditions, ready
):
    """A pod without conditions counts as ready."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    rows = [{"type": name, "status": status} for name, status in conditions]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": rows},
    }
    status = make_cluster(objects=(namespace, node, pod)).find("pod", "a")["status"]
    [container] = status["containerStatuses"]
    assert (container["name"], container["ready"]) == ("c", ready)
    stated = {one["type"]: one["status"] for one in status["conditions"]}
    assert stated["Ready"] == stated["ContainersReady"] == str(ready)


@pytest.mark.parametrize("pod_range", ["fd00::/64", "10.7.0.9/24", "nonsense"])
def test_pods_start_on_a_loaded_node_with_any_range_of_addresses(make_cluster, pod_range):
    """A dump can come from an IPv6 cluster, and hand-written nodes are not validated."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": {"podCIDR": pod_range, "podCIDRs": [pod_range]},
        "status": {"allocatable": {"cpu": "4", "pods": "9"}},
    }
    version, kind, spec = HAND_WRITTEN["pods"]
    pod = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    cluster = make_cluster(objects=(namespace, node, pod))
    cluster.pass_time(9)
    status = cluster.find("pod", "a")["status"]
    first = "10.7.0.1" if pod_range.startswith("10.7") else "10.200.0.1"
    assert (status["phase"], status["podIP"]) == ("Running", first)


def test_a_hand_written_pod_whose_init_container_has_an_empty_name_can_be_deleted(make_cluster):
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    containers = {"containers": [{"name": "c", "image": "i"}]}
    sidecar = {"name": "", "image": "i", "restartPolicy": "Always"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"nodeName": "n", **containers, "initContainers": [sidecar]},
        "status": {"phase": "Running"},
    }
    cluster = make_cluster(objects=(namespace, node, pod))
    cluster.ask("DELETE", f"{PODS}/a")
    cluster.pass_time(60)
    assert cluster.find("pod", "a") is None


GATEWAYS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gateways.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gateways", "kind": "Gateway"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"port": {"type": "integer", "default": 80}},
                    }
                },
            },
        ],
    },
}


def test_the_custom_resources_of_a_snapshot_are_served(make_cluster):
    """The plural of Gateway is not the one that its name suggests (`gatewaies`).

    The definition and the resource are as a user writes them, so a server would complete them.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    gateway = {"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g"}}
    cluster = make_cluster(objects=(namespace, gateway, GATEWAYS))
    path = "/apis/example.com/v1/namespaces/default/gateways"
    assert [one["port"] for one in cluster.ask("GET", path)["items"]] == [80]
    assert cluster.ask("DELETE", f"{path}/g")["status"] == "Success"
    definition = cluster.ask("GET", f"{CRDS}/gateways.example.com")
    assert definition["status"]["storedVersions"] == ["v1"]


def test_a_definition_of_an_old_version_in_a_snapshot_is_refused(make_cluster):
    with pytest.raises(ApiError) as refused:
        make_cluster(objects=({**GATEWAYS, "apiVersion": "apiextensions.k8s.io/v1beta1"},))
    assert refused.value.causes[0].field == "apiVersion"


def test_only_a_quota_lets_users_use_a_limited_priority_class(make_cluster):
    """`--admission-control-config-file` prevents users from giving themselves a high priority."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["urgent"]}
    cluster = make_cluster(limited=(LimitedResource(resource="pods", scopes=(scope,)),))
    urgent = {"metadata": {"name": "urgent"}, "value": 1000}
    cluster.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent)
    spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "urgent"}
    pod = {"metadata": {"name": "p"}, "spec": spec}
    refused = cluster.ask("POST", "/api/v1/namespaces/default/pods", pod)
    assert "insufficient quota to match these scopes" in refused["message"]
    quota = {
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [scope]}},
    }
    cluster.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    assert cluster.ask("POST", "/api/v1/namespaces/default/pods", pod)["kind"] == "Pod"


@pytest.mark.parametrize(
    ("affinity", "rule"),
    [
        ("podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        ("podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        ("podAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
    ],
)
@pytest.mark.parametrize("where", [{"namespaces": ["other"]}, {"namespaceSelector": {}}])
@pytest.mark.parametrize(
    "scope",
    [
        {"scopes": ["CrossNamespacePodAffinity"]},
        {
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
                ]
            }
        },
    ],
    ids=["scopes", "scopeSelector"],
)
def test_a_quota_holds_against_affinity_to_other_namespaces(cluster, affinity, rule, where, scope):
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}, **scope}}
    cluster.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    pods = "/api/v1/namespaces/default/pods"

    def create(name, **more):
        one = {**term, **more}
        weighted = {"weight": 1, "podAffinityTerm": one} if rule.startswith("preferred") else one
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "affinity": {affinity: {rule: [weighted]}},
        }
        return cluster.ask("POST", pods, {"metadata": {"name": name}, "spec": spec})

    assert "exceeded quota: q, requested: pods=1" in create("crossing", **where)["message"]
    assert create("staying")["kind"] == "Pod"


def test_no_autoscaler_runs_beside_kube_controller_manager(make_cluster):
    cluster = make_cluster(without=("workloads",))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    cluster.ask("POST", path, scaler)
    cluster.pass_time(30)
    assert "conditions" not in cluster.find("hpa", "web")["status"]


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize("first", [0, 1])
def test_circular_owners_are_deleted_in_the_foreground(make_cluster, length, first):
    """None of the owners waits for itself."""
    cluster, url = make_cluster(nodes=0), "/api/v1/namespaces/default/configmaps"
    manifest = {"apiVersion": "v1", "kind": "ConfigMap"}
    names = [f"c{number}" for number in range(length)]
    made = [cluster.ask("POST", url, {**manifest, "metadata": {"name": name}}) for name in names]
    for name, owner in zip(names, (made[-1], *made), strict=False):
        meta = owner["metadata"]
        reference = {**manifest, "name": meta["name"], "uid": meta["uid"]}
        body = {"metadata": {"ownerReferences": [{**reference, "blockOwnerDeletion": True}]}}
        cluster.ask("PATCH", f"{url}/{name}", body, "application/merge-patch+json")
    cluster.ask("DELETE", f"{url}/{names[first]}", {"propagationPolicy": "Foreground"})
    cluster.pass_time(10)
    assert [one["metadata"]["name"] for one in cluster.list("configmaps")] == []


def test_a_node_that_a_client_creates_gets_what_a_kubelet_reports(cluster):
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "50"}
    labels = {"kubernetes.io/os": "windows"}
    node = {
        "metadata": {"name": "extra", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    cluster.ask("POST", "/api/v1/nodes", node)
    cluster.pass_time(1)
    made, other = cluster.find("node", "extra", ""), cluster.find("node", "node-1", "")
    info = made["status"]["nodeInfo"]
    assert info["kubeletVersion"] == other["status"]["nodeInfo"]["kubeletVersion"]
    assert info["machineID"] != other["status"]["nodeInfo"]["machineID"]
    assert made["metadata"]["labels"] == {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "windows",  # copied from the label that the client set
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "extra",
        "kubernetes.io/os": "windows",
    }
    assert made["spec"]["podCIDR"] not in ("", other["spec"]["podCIDR"])
    assert made["status"]["addresses"][0]["type"] == "InternalIP"
    assert made["status"]["allocatable"]["cpu"] == "8"
    conditions = [
        {one["type"]: (one["reason"], one["message"]) for one in each["status"]["conditions"]}
        for each in (made, other)
    ]
    assert conditions[0] == conditions[1]


def test_extended_resources_in_the_capacity_of_a_node_are_allocatable(cluster):
    """The kubelet copies an added, changed or removed amount, unless a client set another one."""
    url, merge = "/api/v1/nodes/node-1/status", "application/merge-patch+json"

    def allocatable_after(capacity, **more):
        body = {"status": {"capacity": capacity, **more}}
        cluster.ask("PATCH", url, body, merge)
        cluster.pass_time(1)
        return cluster.find("node", "node-1", "")["status"]["allocatable"]

    before = cluster.find("node", "node-1", "")["status"]["allocatable"]
    assert allocatable_after({"x.io/d": "4"}) == before | {"x.io/d": "4"}
    assert allocatable_after({"x.io/d": "6", "cpu": "99"}) == before | {"x.io/d": "6"}
    assert allocatable_after({}, allocatable={"x.io/d": "5"}) == before | {"x.io/d": "5"}
    assert allocatable_after({"x.io/d": None}) == before


def test_a_new_node_may_have_less_of_an_extended_resource_than_its_capacity(cluster):
    """For example, one of its devices may be unhealthy."""
    status = {"capacity": {"cpu": "8", "x.io/d": "8"}, "allocatable": {"cpu": "8", "x.io/d": "7"}}
    cluster.ask("POST", "/api/v1/nodes", {"metadata": {"name": "extra"}, "status": status})
    cluster.pass_time(1)
    assert cluster.find("node", "extra", "")["status"]["allocatable"]["x.io/d"] == "7"
