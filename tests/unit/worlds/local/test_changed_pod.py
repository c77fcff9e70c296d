"""Reactions of the kubelet to changes of a running pod."""

from __future__ import annotations

import pytest

PODS = "/api/v1/namespaces/default/pods"
POD = f"{PODS}/a"
STRATEGIC = "application/strategic-merge-patch+json"
AMOUNTS = {"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}}


@pytest.fixture
def running(cluster):
    container = {"name": "c", "image": "x:1", "resources": AMOUNTS}
    spec = {"containers": [container], "readinessGates": [{"conditionType": "a/b"}]}
    cluster.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": spec})
    cluster.pass_time(10)
    return cluster


def patch(cluster, body, *, part="", form=STRATEGIC):
    return cluster.ask("PATCH", POD + part, body, content_type=form)


def status_of(cluster):
    cluster.pass_time(0)
    return cluster.find("pod", "a")["status"]


def condition(cluster, name):
    return next(row for row in status_of(cluster)["conditions"] if row["type"] == name)


def notes(cluster):
    return [event["message"] for event in cluster.list("events")]


def test_a_changed_image_restarts_the_container(running):
    patch(running, {"spec": {"containers": [{"name": "c", "image": "x:2"}]}})
    status = status_of(running)
    [container] = status["containerStatuses"]
    assert status["observedGeneration"] == 2
    assert {row["observedGeneration"] for row in status["conditions"]} == {2}
    assert (container["image"], container["restartCount"]) == ("x:2", 1)
    assert container["lastState"]["terminated"]["reason"] == "Completed"
    assert container["state"]["running"]["startedAt"] == "2026-01-01T00:00:10Z"
    assert "Container c definition changed, will be restarted" in notes(running)


def test_other_changes_do_not_restart_the_container(running):
    patch(running, {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}})
    status = status_of(running)
    assert status["observedGeneration"] == 2
    assert status["containerStatuses"][0]["restartCount"] == 0


def test_the_container_status_has_the_resources_from_the_start(running):
    [container] = status_of(running)["containerStatuses"]
    assert container["allocatedResources"] == {"cpu": "10m"}
    assert container["resources"] == AMOUNTS


def test_the_container_status_has_the_new_resources_after_a_resize(running):
    amounts = {"requests": {"cpu": "20m"}}
    body = {"spec": {"containers": [{"name": "c", "resources": amounts}]}}
    patch(running, body, part="/resize")
    [container] = status_of(running)["containerStatuses"]
    assert container["allocatedResources"] == {"cpu": "20m"}
    assert container["resources"] == {"requests": {"cpu": "20m"}, "limits": {"cpu": "1"}}
    assert container["restartCount"] == 0


@pytest.mark.parametrize(
    ("resized", "restarts"),
    [
        pytest.param({"limits": {"cpu": "2"}}, 0, id="an amount without a policy"),
        pytest.param({"limits": {"memory": "2Gi"}}, 1, id="a limit that needs a restart"),
        pytest.param({"requests": {"memory": "2Mi"}}, 0, id="a request that no cgroup has"),
    ],
)
def test_a_container_restarts_if_its_resize_policy_requires_it(cluster, resized, restarts):
    policy = {"resourceName": "memory", "restartPolicy": "RestartContainer"}
    amounts = {"requests": {"memory": "1Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "c", "image": "x:1", "resources": amounts, "resizePolicy": [policy]}
    cluster.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})
    cluster.pass_time(10)
    body = {"spec": {"containers": [{"name": "c", "resources": resized}]}}
    patch(cluster, body, part="/resize")
    [container] = status_of(cluster)["containerStatuses"]
    assert container["restartCount"] == restarts
    assert ("Container c resize requires restart" in notes(cluster)) == bool(restarts)


@pytest.mark.parametrize(("stdin", "state"), [(False, "running"), (True, "terminated")])
def test_an_ephemeral_container_starts_and_ends_if_it_reads_stdin(running, stdin, state):
    added = {"name": "d", "image": "busybox", "stdin": stdin}
    patch(running, {"spec": {"ephemeralContainers": [added]}}, part="/ephemeralcontainers")
    [debugger] = status_of(running)["ephemeralContainerStatuses"]
    assert list(debugger["state"]) == [state]
    assert debugger["ready"] is False
    patch(running, {"metadata": {"labels": {"x": "y"}}})
    assert status_of(running)["ephemeralContainerStatuses"] == [debugger]
    events = [event for event in running.list("events") if event["reason"] == "Started"]
    assert [event["involvedObject"]["fieldPath"] for event in events] == [
        "spec.containers{c}",
        "spec.ephemeralContainers{d}",
    ]


def test_a_true_readiness_gate_makes_the_pod_ready(running):
    ready = condition(running, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert condition(running, "ContainersReady")["status"] == "True"
    assert status_of(running)["containerStatuses"][0]["ready"] is True
    for opened in ("True", "False"):
        rows = {"status": {"conditions": [{"type": "a/b", "status": opened}]}}
        patch(running, rows, part="/status")
        assert condition(running, "Ready")["status"] == opened


STOPPED = pytest.mark.parametrize(
    "state",
    [
        {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        {"terminated": {"exitCode": 3, "reason": "Error"}},
    ],
    ids=["waiting", "terminated"],
)


@pytest.fixture
def two_containers(cluster):
    containers = [{"name": name, "image": "x:1"} for name in ("c", "d")]
    cluster.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": containers}})
    cluster.pass_time(10)
    return cluster


def write_state(cluster, state):
    """Write the state of the container c, as a client does."""
    first, *others = status_of(cluster)["containerStatuses"]
    rows = [{**first, "restartCount": 3, "state": state}, *others]
    form = "application/merge-patch+json"
    patch(cluster, {"status": {"containerStatuses": rows}}, part="/status", form=form)


def without_times(state):
    return {
        member: {key: one for key, one in fields.items() if not key.endswith("At")}
        for member, fields in state.items()
    }


@STOPPED
def test_a_pod_with_a_stopped_container_is_not_ready(two_containers, state):
    """It keeps the state that the client wrote, and the other container stays ready."""
    cluster = two_containers
    write_state(cluster, state)
    patch(cluster, {"metadata": {"labels": {"x": "y"}}})
    patch(cluster, {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}})
    cluster.pass_time(60)
    first, second = status_of(cluster)["containerStatuses"]
    assert without_times(first["state"]) == state
    assert (first["ready"], first["started"], first["restartCount"]) == (False, False, 3)
    assert (second["ready"], list(second["state"])) == (True, ["running"])
    for name in ("Ready", "ContainersReady"):
        found = condition(cluster, name)
        assert (found["status"], found["reason"]) == ("False", "ContainersNotReady")
        assert found["message"] == "containers with unready status: [c]"
    assert status_of(cluster)["phase"] == "Running"


@STOPPED
def test_a_pod_is_ready_again_when_its_stopped_container_runs_again(two_containers, state):
    cluster = two_containers
    write_state(cluster, state)
    cluster.pass_time(5)
    write_state(cluster, {"running": {"startedAt": "2026-01-01T00:00:15Z"}})
    assert condition(cluster, "Ready")["status"] == "True"
    assert [one["ready"] for one in status_of(cluster)["containerStatuses"]] == [True, True]


def test_a_stopped_kubelet_reports_nothing(running):
    """It does not report the end of a container either."""
    node = running.find("pod", "a")["spec"]["nodeName"]
    silent = {"metadata": {"annotations": {"fairlead.dev/kubelet": "stopped"}}}
    running.ask("PATCH", f"/api/v1/nodes/{node}", silent, content_type=STRATEGIC)
    running.pass_time(400)
    assert "deletionTimestamp" in running.find("pod", "a")["metadata"]
    assert "Killing" not in {event["reason"] for event in running.list("events")}


def resize(cluster, cpu):
    amounts = {"requests": {"cpu": cpu}}
    body = {"spec": {"containers": [{"name": "c", "resources": amounts}]}}
    cluster.ask("PATCH", f"{POD}/resize", body, content_type=STRATEGIC)
    cluster.pass_time(1)


def conditions(cluster):
    return {row["type"]: row for row in cluster.find("pod", "a")["status"]["conditions"]}


def allocated(cluster, name="a"):
    [container] = cluster.find("pod", name)["status"]["containerStatuses"]
    return container["allocatedResources"]["cpu"]


@pytest.fixture
def full_node(cluster):
    """A node of 4 CPUs with two pods of 1 CPU, a and b."""
    node = cluster.list("nodes", namespace="")[0]["metadata"]["name"]
    for name in ("a", "b"):
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        spec = {"nodeName": node, "containers": [container]}
        cluster.ask("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    cluster.pass_time(10)
    return cluster


def test_a_resize_that_does_not_fit_waits_until_it_fits(full_node):
    resize(full_node, "3500m")
    pending = conditions(full_node)["PodResizePending"]
    message = "Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000"
    assert (pending["reason"], pending["message"]) == ("Deferred", message)
    assert pending["observedGeneration"] == 2
    assert allocated(full_node) == "1"
    [event] = [one for one in full_node.list("events") if one["reason"] == "ResizeDeferred"]
    assert event["message"] == (
        'Pod resize Deferred: {"containers":[{"name":"c","resources":{"requests":{"cpu":"3500m"}}}]'
        f',"generation":2,"error":"{message}"}}'
    )
    full_node.ask("DELETE", f"{PODS}/b")
    full_node.pass_time(5)
    assert "PodResizePending" not in conditions(full_node)
    assert allocated(full_node) == "3500m"


def test_a_deferred_resize_can_be_replaced_by_a_smaller_one(full_node):
    resize(full_node, "3500m")
    resize(full_node, "2")
    assert "PodResizePending" not in conditions(full_node)
    assert allocated(full_node) == "2"


def test_a_deferred_resize_does_not_occupy_resources(full_node):
    resize(full_node, "3500m")
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    full_node.ask("PATCH", f"{PODS}/b/resize", body, content_type=STRATEGIC)
    full_node.pass_time(1)
    assert allocated(full_node, "b") == "2"
    assert allocated(full_node) == "1"


def test_a_deferred_resize_stays_deferred_when_another_controller_changes_the_pod(full_node):
    resize(full_node, "3500m")
    rows = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    patch(full_node, rows, part="/status")
    full_node.pass_time(1)
    assert conditions(full_node)["Ready"]["status"] == "True"
    assert conditions(full_node)["PodResizePending"]["reason"] == "Deferred"
    assert allocated(full_node) == "1"


def test_the_deferred_resize_of_the_pod_with_the_highest_priority_is_first(full_node):
    node = full_node.find("pod", "a")["spec"]["nodeName"]
    first = {"metadata": {"name": "first"}, "value": 10}
    full_node.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", first)
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec = {"nodeName": node, "priorityClassName": "first", "containers": [container]}
    full_node.ask("POST", PODS, {"metadata": {"name": "c"}, "spec": spec})
    full_node.pass_time(5)
    resize(full_node, "2500m")
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2500m"}}}]}}
    full_node.ask("PATCH", f"{PODS}/c/resize", body, content_type=STRATEGIC)
    full_node.pass_time(1)
    full_node.ask("DELETE", f"{PODS}/b")
    full_node.pass_time(5)
    assert (allocated(full_node), allocated(full_node, "c")) == ("1", "2500m")
