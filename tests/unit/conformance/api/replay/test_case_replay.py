"""Replays of recorded requests: which answers agree, and which differ."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from fairlead.conformance.api.replay.case_replay import mismatches
from fairlead.conformance.comparison import read_cases

RECORDED = Path(__file__).parents[4] / "golden" / "data" / "api"


def step(body, found=None, *, status=200, headers=(), request=None, **more):
    """A recorded exchange."""
    default_request = {"method": "GET", "path": "/x", "query": [], "headers": {}, "body": None}
    response = {"status": status, "headers": dict(headers), "body": body}
    return {
        "as": "admin",
        "at_ms": 0,
        "request": default_request | (request or {}),
        "response": response,
    } | more


def case(*steps, theme="03-crud"):
    return {"id": "c", "theme": theme, "steps": list(steps)}


@pytest.mark.parametrize("theme", ["01-discovery", "02-tables", "03-crud", "04-patch", "05-errors"])
def test_a_server_that_answers_as_recorded_agrees_everywhere(theme, differences):
    for line in read_cases(RECORDED / f"{theme}.jsonl.gz", ()):
        for recorded in line["steps"]:
            (recorded["response"].get("headers") or {}).pop("content-encoding", None)
        assert differences(line) == [], line["id"]


@pytest.mark.parametrize(
    ("recorded", "actual"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ({}, {"a": 1}),
        ({"a": True}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"metadata": {"uid": "<uid:1>"}}, {"metadata": {"uid": "x"}}),
        ({"t": "<ts:1>"}, {"t": "2030-01-01T00:00:00.5Z"}),
        ({"a": "<uid:1>", "b": "<uid:1>"}, {"a": "<uid:1>", "b": "<uid:2>"}),
        ({"kind": "Status", "status": "Failure", "message": "a: x"}, {"message": "a: y"}),
    ],
)
def test_a_body_that_differs_is_a_difference(recorded, actual, differences):
    assert len(differences(case(step(recorded)), case(step(actual)))) == 1


def test_a_status_that_differs_is_reported_with_both_messages(differences):
    (line,) = differences(
        case(step({"message": "gone"}, status=404)), case(step({"message": "no"}, status=403))
    )
    assert line == 'steps[0] GET /x: status: expected [404, "gone"], found [403, "no"]'


@pytest.mark.parametrize(
    ("message", "note", "agrees"),
    [
        ("storage is (re)initializing", "", True),
        ("slow down", "", False),
        ("slow down", "maybe not yet served", True),
    ],
)
def test_an_answer_about_a_resource_that_is_not_yet_served_may_differ(
    message, note, agrees, differences
):
    recorded = case(step({"message": message}, status=429, note=note))
    assert (differences(recorded, case(step({}))) == []) is agrees


@pytest.mark.parametrize("name", ["content-type", "warning", "retry-after"])
def test_headers_that_clients_read_are_compared(name, differences):
    assert differences(case(step({}, headers={name: "1"})), case(step({}, headers={name: "2"})))


def test_other_headers_are_not_compared(differences):
    assert not differences(case(step({}, headers={"audit-id": "1"})), case(step({})))


def test_managed_fields_are_compared_for_patches_only(differences):
    with_fields = {"metadata": {"managedFields": [{"manager": "a", "operation": "Apply"}]}}
    for theme, count in (("03-crud", 0), ("04-patch", 1)):
        recorded, other = case(step(with_fields), theme=theme), case(step({"metadata": {}}))
        assert len(differences(recorded, other)) == count


def version(rank):
    return {"kind": "Pod", "metadata": {"resourceVersion": f"<rv:{rank}>"}}


@pytest.mark.parametrize(
    ("recorded", "actual", "agree"),
    [
        ((1, 2), (1, 2), True),
        ((1, 2), (1, 9), True),
        ((1, 2), (2, 1), False),
        ((1, 2), (1, 1), False),
        ((1, 1), (1, 2), False),
        ((1, 3, 2), (1, 5, 3), True),
        ((1, 3, 2), (1, 3, 5), False),
    ],
)
def test_resource_versions_must_have_the_recorded_order(recorded, actual, agree, differences):
    found = differences(
        case(*(step(version(rank)) for rank in recorded)),
        case(*(step(version(rank)) for rank in actual)),
    )
    assert (not found) == agree


def test_causes_may_come_in_any_order(differences):
    causes = [{"reason": "R", "message": "m", "field": f} for f in ("a", "b")]
    refused = {"kind": "Status", "status": "Failure", "message": "x: [a: m, b: m]"}
    recorded = refused | {"details": {"causes": causes}}
    actual = refused | {"message": "x: [b: m, a: m]", "details": {"causes": causes[::-1]}}
    assert not differences(case(step(recorded)), case(step(actual)))
    actual["details"]["causes"] = causes[:1]
    assert differences(case(step(recorded)), case(step(actual)))


def test_preparatory_requests_need_only_succeed(differences):
    recorded = case(step({"a": 1}, status=201, setup=True))
    assert not differences(recorded, case(step({"a": 2}, status=409)))
    assert differences(recorded, case(step({}, status=500)))


def test_requests_contain_the_values_of_this_replay(echo):
    made = step({"metadata": {"uid": "<uid:1>"}})
    used = step({}, request={"method": "PUT", "body": {"uid": "<uid:1>", "new": "<uid:7>"}})
    server = echo(case(made, used))
    assert list(mismatches(case(made, used), server)) == []
    assert b'"00000000-0000-4000-8000-000000000001"' in server.requests[1].body


def watched(*events, end="server-closed"):
    found = step(None, watch=True)
    found["response"] |= {"events": [{"event": event} for event in events], "end": end}
    return found


def event(kind, name, **more):
    return {"type": kind, "object": {"kind": "Pod", "metadata": {"name": name}} | more}


BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "<rv:1>"}}}


def test_events_of_different_objects_may_interleave(differences):
    events = [event("ADDED", "a"), event("ADDED", "b"), BOOKMARK, event("DELETED", "a")]
    other = [events[1], events[0], events[3]]
    assert not differences(case(watched(*events)), case(watched(*other)))


@pytest.mark.parametrize(
    "other",
    [
        watched(event("ADDED", "a")),
        watched(event("DELETED", "a"), event("ADDED", "a")),
        watched(event("ADDED", "a"), event("DELETED", "a"), event("ADDED", "c")),
        watched(event("ADDED", "a", spec={}), event("DELETED", "a")),
        watched(event("ADDED", "a"), event("DELETED", "a"), end="open"),
    ],
    ids=["missing", "order", "more", "object", "end"],
)
def test_a_watch_that_shows_something_else_is_a_difference(other, differences):
    recorded = case(watched(event("ADDED", "a"), event("DELETED", "a")))
    assert len(differences(copy.deepcopy(recorded), case(other))) == 1
