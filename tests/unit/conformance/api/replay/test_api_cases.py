"""The servers on which a case is replayed, and the number of attempts."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.replay.api_cases import ApiCases

NAMESPACE = {"method": "POST", "path": "/api/v1/namespaces", "query": [], "headers": {}}


def step(status, *, setup=False):
    """A recorded exchange about a namespace."""
    body = {"kind": "Namespace", "metadata": {"name": "a"}}
    answer = {"status": status, "headers": {}, "body": {}}
    return {
        "as": "admin",
        "at_ms": 0,
        "setup": setup,
        "request": {**NAMESPACE, "body": body},
        "response": answer,
    }


def case(*statuses):
    first, *rest = statuses
    steps = [step(first, setup=True), *(step(status) for status in rest)]
    return {"id": "c", "theme": "03-crud", "steps": steps}


@pytest.mark.parametrize(("statuses", "agrees"), [((200, 201), True), ((200, 202), False)])
def test_a_case_agrees_if_the_answer_of_one_server_agrees(statuses, agrees, echo):
    servers = [echo(case(201, status)) for status in statuses]
    found = ApiCases(lambda _: servers).judge(case(201, 201))
    assert (found is None) is agrees
    if found is not None:
        assert "status: expected [201, null], found [200, null]" in str(found)


def test_all_mismatches_of_a_case_are_counted(echo):
    found = ApiCases(lambda _: (echo(case(201, 200, 202)),), every=True).judge(case(201, 201, 201))
    first, second, last = str(found).split("\n    ")
    assert (first[:8], second[:8]) == ("steps[1]", "steps[2]")
    assert last == "number of mismatches: expected 0, found 2"


def test_kubectl_commands_are_refused_without_a_cluster_for_them(echo):
    line = {"id": "kc.001", "theme": "06-kubectl", "argv": ["kubectl", "get", "po"], "setup": True}
    with pytest.raises(ValueError, match="kubectl commands cannot be replayed"):
        ApiCases(lambda _: (echo(case(201)),)).judge(line)


def test_servers_that_are_not_needed_get_no_requests(echo):
    servers = [echo(case(201, 201)) for _ in range(2)]
    assert ApiCases(lambda _: servers).judge(case(201, 201)) is None
    assert [len(server.requests) for server in servers] == [2, 0]


@pytest.mark.parametrize(("first", "attempts"), [(201, 1), (409, 2)])
def test_a_case_is_replayed_again_if_objects_of_an_earlier_attempt_exist(first, attempts, echo):
    """A namespace that already exists is evidence of an earlier attempt."""
    server = echo(case(first, 201))
    assert ApiCases(lambda _: (server,)).judge(case(first, 201)) is None
    assert server.begun == attempts
