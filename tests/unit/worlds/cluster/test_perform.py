"""Requests for commands: bodies, retries and outcomes."""

from __future__ import annotations

import json

import pytest

from fairlead.client.rest_client import ApiAnswer, ApiRequest
from fairlead.engine.core.command import (
    Bind,
    Condition,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.worlds.cluster.perform import perform
from fairlead.worlds.cluster.resource import CONTROLLERS, resources_by_kind, watched_resources

RESOURCES = resources_by_kind(watched_resources(CONTROLLERS))
POD = ObjectRef("Pod", "shop", "web-0", "u-1")
NODE = ObjectRef("Node", "", "n1", "u-n")
GROUP = ObjectRef("PodGroup.scheduling.volcano.sh", "shop", "g", "u-g")
OK = ApiAnswer(201, b'{"metadata": {"resourceVersion": "7", "uid": "u-1"}}')
NO_ANSWER = ApiAnswer(0, message="the connection failed")


def refusal(status, reason="", message="no"):
    return ApiAnswer(status, b"{}", reason=reason, message=message)


def run(command, *answers, known=None):
    """Return (requests and pauses of a command, its outcome)."""
    steps = perform(command, RESOURCES, 0, lambda: 0.0, known)
    left, done, answer = list(answers), [], None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            assert not left
            return done, end.value
        done.append(step)
        answer = left.pop(0) if isinstance(step, ApiRequest) else None


def requests(done):
    return [(one.method, one.path) for one in done if isinstance(one, ApiRequest)]


BINDING = ("POST", "/api/v1/namespaces/shop/pods/web-0/binding")
GET_POD = ("GET", "/api/v1/namespaces/shop/pods/web-0")
BOUND = ApiAnswer(200, b'{"metadata": {"uid": "u-1"}, "spec": {"nodeName": "n1"}}')
BOUND_ELSEWHERE = ApiAnswer(200, b'{"metadata": {"uid": "u-1"}, "spec": {"nodeName": "n2"}}')
ALREADY = refusal(409, "Conflict", "pod web-0 is already assigned to node n1")


def test_a_pod_is_bound():
    (request,), performed = run(Bind(POD, "n1"), OK)
    assert (request.method, request.path) == BINDING
    body = json.loads(request.body)
    assert body["metadata"] == {"name": "web-0", "namespace": "shop", "uid": "u-1"}
    assert body["target"] == {"kind": "Node", "name": "n1"}
    assert performed.outcome == CommandSucceeded(Bind(POD, "n1"))
    assert performed.effect.node == "n1"


FOREIGN = ApiAnswer(200, b"<html>Please log in</html>")


@pytest.mark.parametrize(
    "answer", [NO_ANSWER, refusal(503), refusal(504), refusal(429), FOREIGN, ApiAnswer(200)]
)
def test_a_binding_with_an_uncertain_outcome_is_sent_again(answer):
    done, performed = run(Bind(POD, "n1"), answer, OK)
    assert requests(done) == [BINDING, BINDING]
    assert isinstance(performed.outcome, CommandSucceeded)


def test_a_binding_that_was_performed_without_a_response_succeeds():
    done, performed = run(Bind(POD, "n1"), NO_ANSWER, ALREADY, BOUND)
    assert requests(done) == [BINDING, BINDING, GET_POD]
    assert isinstance(performed.outcome, CommandSucceeded)


def test_a_pod_bound_by_another_scheduler_meanwhile_is_a_conflict():
    _, performed = run(Bind(POD, "n1"), NO_ANSWER, ALREADY, BOUND_ELSEWHERE)
    assert performed.outcome.reason is FailureReason.CONFLICT


def test_a_conflict_of_the_first_request_is_final():
    done, performed = run(Bind(POD, "n1"), ALREADY)
    assert requests(done) == [BINDING]
    assert performed.outcome == CommandFailed(
        Bind(POD, "n1"), FailureReason.CONFLICT, ALREADY.message
    )


def test_the_pause_before_a_retry_is_the_retry_after_of_the_server():
    done, _ = run(Bind(POD, "n1"), ApiAnswer(429, retry_after_s=7.0), OK)
    assert done[1] == 7.0


def test_an_internal_error_is_final_after_several_retries():
    error = refusal(500, "InternalError", "webhook failed")
    unbound = ApiAnswer(200, b'{"metadata": {"uid": "u-1"}}')
    done, performed = run(Bind(POD, "n1"), *[error] * 4, unbound)
    assert requests(done) == [*[BINDING] * 4, GET_POD]
    assert performed.outcome.reason is FailureReason.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("known", "stamped"),
    [(None, True), ({"PodScheduled": "True"}, True), ({"PodScheduled": "False"}, False)],
    ids=["a new condition", "a changed status", "an unchanged status"],
)
def test_a_transition_time_is_kept_unless_the_status_changes(known, stamped):
    condition = Condition("PodScheduled", "False", "Unschedulable", "0/1 nodes")
    command = PatchStatus(POD, {"nominatedNodeName": None}, (condition,))
    (request,), performed = run(command, OK, known=known)
    assert request.path.endswith("/pods/web-0/status")
    assert request.content_type == "application/strategic-merge-patch+json"
    body = json.loads(request.body)
    assert body["metadata"] == {"uid": "u-1"}
    assert body["status"]["nominatedNodeName"] is None
    (sent,) = body["status"]["conditions"]
    assert ("lastTransitionTime" in sent) is stamped
    assert performed.effect.version == "7"


def test_conditions_of_custom_resources_are_read_before_they_are_patched():
    """A merge patch replaces the whole list of conditions."""
    stored = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    stored["metadata"] = {"resourceVersion": "3"}
    command = PatchStatus(GROUP, {"phase": "Pending"}, (Condition("B", "True"),))
    (get, patch), _ = run(command, ApiAnswer(200, json.dumps(stored).encode()), OK)
    assert get.path == "/apis/scheduling.volcano.sh/v1beta1/namespaces/shop/podgroups/g"
    body = json.loads(patch.body)
    assert [one["type"] for one in body["status"]["conditions"]] == ["A", "B"]
    assert body["metadata"]["resourceVersion"] == "3"


def test_a_patch_of_a_node_has_a_resource_version_precondition():
    patch = {"spec": {"taints": []}, "metadata": {"resourceVersion": "5"}}
    (request,), performed = run(PatchObject(NODE, patch), refusal(409, "Conflict"))
    assert json.loads(request.body)["metadata"] == {"resourceVersion": "5", "uid": "u-n"}
    assert performed.outcome.reason is FailureReason.CONFLICT


def test_a_deletion_has_a_uid_precondition():
    (request,), performed = run(DeleteObject(POD, 0), OK)
    body = json.loads(request.body)
    assert (body["preconditions"], body["gracePeriodSeconds"]) == ({"uid": "u-1"}, 0)
    assert performed.effect.is_deletion


def test_a_refusal_by_a_disruption_budget_is_final():
    done, performed = run(EvictPod(POD), refusal(429, "TooManyRequests"))
    assert len(done) == 1
    assert performed.outcome.reason is FailureReason.TOO_MANY_REQUESTS


def test_other_commands_are_refused():
    _, performed = run(CreateObject({"kind": "Pod", "apiVersion": "v1"}))
    assert performed.outcome.reason is FailureReason.INVALID


CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "web-0-extended-resources-x7", "namespace": "shop"},
}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims"


def test_the_claim_of_an_extended_resource_is_created():
    (request,), performed = run(CreateObject(CLAIM), OK)
    assert (request.method, request.path, json.loads(request.body)) == ("POST", CLAIMS, CLAIM)
    assert performed.outcome == CommandSucceeded(CreateObject(CLAIM))
    assert performed.effect.version == "7"


@pytest.mark.parametrize(("shown", "succeeds"), [(OK, True), (refusal(404), False)])
def test_a_claim_that_was_created_without_a_response_succeeds(shown, succeeds):
    done, performed = run(CreateObject(CLAIM), NO_ANSWER, refusal(409, "AlreadyExists"), shown)
    name = CLAIM["metadata"]["name"]
    assert requests(done) == [("POST", CLAIMS), ("POST", CLAIMS), ("GET", f"{CLAIMS}/{name}")]
    assert isinstance(performed.outcome, CommandSucceeded) == succeeds
