"""The log of a simulated container."""

from __future__ import annotations

import pytest

STARTED, ENDED = "2026-01-01T00:00:05Z", "2026-01-01T00:00:09Z"
RUNNING = {"running": {"startedAt": STARTED}}
TERMINATED = {
    "terminated": {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": STARTED,
        "finishedAt": ENDED,
    }
}
START = "c started on node-1 (simulated: nothing is executed)\n"
END = "c ended with exit code 1 (Error)\n"


@pytest.fixture
def logged(api, pods, pod):
    """Returns the log of a pod whose container has this state, for this query."""

    def logged(query="", *, state=RUNNING, last=None, node="node-1", name="a", **spec):
        meta = {"metadata": {"name": name}}
        api.post(pods, {**pod(name=name, **({"nodeName": node} if node else {}), **spec), **meta})
        status = {"name": "c", "state": state, "lastState": last or {}, "ready": True}
        api.report(name, {"phase": "Running", "containerStatuses": [status]})
        return api.get(f"{pods}/{name}/log?{query}")

    def report(name, status):
        api.patch(f"{pods}/{name}/status", {"status": status})

    api.report = report
    return logged


def test_the_log_has_lines_for_start_and_end_of_the_container(logged):
    assert logged().text == START
    assert logged(state=TERMINATED, name="b").text == START + END


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("tailLines=1", END),
        ("tailLines=0", ""),
        ("limitBytes=9", "c started"),
        ("sinceTime=2026-01-01T00:00:07Z", END),
        ("sinceSeconds=1000000", START + END),
        ("timestamps=true&tailLines=1", f"2026-01-01T00:00:09.000000000Z {END}"),
        ("follow=true", START + END),
    ],
)
def test_the_options_of_a_log(logged, query, text):
    assert logged(query, state=TERMINATED).text == text


def test_the_previous_container_instance_has_its_own_log(logged):
    assert logged("previous=true", last=TERMINATED).text == START + END
    refusal = logged("previous=true", name="b")
    assert refusal.message == 'previous terminated container "c" in pod "b" not found'


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"waiting": {"reason": "ContainerCreating"}}, "waiting to start: ContainerCreating"),
        (
            {"waiting": {"reason": "ImagePullBackOff"}},
            "waiting to start: trying and failing to pull image",
        ),
        ({"waiting": {"reason": "ErrImagePull"}}, "waiting to start: image can't be pulled"),
    ],
)
def test_the_log_of_a_container_that_has_not_started_is_refused(logged, state, why):
    refusal = logged(state=state)
    assert (refusal.status, refusal.message) == (400, f'container "c" in pod "a" is {why}')


def test_a_container_without_a_status_is_waiting_for_its_creation(api, pods, pod):
    api.post(pods, pod(nodeName="node-1"))
    refusal = api.get(f"{pods}/a/log")
    assert refusal.message == 'container "c" in pod "a" is waiting to start: ContainerCreating'


def test_a_pod_without_a_node_has_an_empty_log(logged):
    assert logged(node="").text == ""


def test_the_container_must_be_named_if_there_are_several(logged):
    two = [{"name": name, "image": "i"} for name in ("c", "d")]
    assert logged(containers=two).message == (
        "a container name must be specified for pod a, choose one of: [c d]"
    )
    refusal = logged("container=d", name="b", containers=two)
    assert refusal.message == 'container "d" in pod "b" is not available'
    refusal = logged("container=x", name="e", containers=two)
    assert refusal.message == "container x is not valid for pod e"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
            "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)
def test_invalid_options_are_refused(logged, query, why):
    refusal = logged(query)
    assert (refusal.status, refusal.message) == (422, f'PodLogOptions "a" is invalid: {why}')


def test_a_followed_log_ends_with_the_container(logged, api):
    followed = logged("follow=true")
    assert b"".join(followed.pop_lines()).decode() == START
    ended = {"name": "c", "state": TERMINATED, "lastState": {}}
    api.patch(
        "/api/v1/namespaces/default/pods/a", {"metadata": {"labels": {"a": "b"}}}
    )  # a change that has no effect on the log
    assert (followed.pop_lines(), followed.is_over) == ([], False)
    api.report("a", {"phase": "Failed", "containerStatuses": [ended]})
    assert (b"".join(followed.pop_lines()).decode(), followed.is_over) == (END, True)
    assert api.server.watches.count() == 0


def test_a_followed_log_shows_the_deletion_of_the_pod(logged, api, pods):
    followed = logged("follow=true")
    api.delete(f"{pods}/a", {"gracePeriodSeconds": 30})
    api.delete(f"{pods}/a", {"gracePeriodSeconds": 0})
    text = b"".join(followed.pop_lines()).decode()
    assert (text, followed.is_over) == (f"{START}c is asked to stop within 30 s\n", True)
