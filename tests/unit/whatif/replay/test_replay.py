"""A replay of an audit log: the rebuilt state, the comparison, and the refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.input.error import InputError
from fairlead.whatif.replay.answer import replay_answer
from fairlead.whatif.replay.replay import replay_audit_log
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.snapshot import parse_snapshot

LOG = Path(__file__).parents[4] / "examples" / "replay" / "audit.log"
EVENTS = [json.loads(line) for line in LOG.read_text().splitlines()]
AGREEMENTS = {
    "shop/web-1": "equal",
    "shop/web-2": "same",
    "shop/cart-1": "equal",
    "shop/batch-1": "lower",
    "shop/db-1": "same",
    "shop/web-3": "same",
}


def lines(events):
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def answer(events, snapshot=None):
    config = SchedulerConfig()
    return replay_answer(
        replay_audit_log("audit.log", lines(events), snapshot, config, NoProgress())
    ).to_json()


def agreements(found):
    return {row["pod"]: row["agreement"] for row in found["pods"]}


def at_level_request(event):
    return {k: v for k, v in event.items() if k != "responseObject"} | {"level": "Request"}


def nodes_only():
    """A dump of the nodes, taken before the log."""
    items = [e["responseObject"] for e in EVENTS if e["objectRef"]["resource"] == "nodes"]
    return parse_snapshot("dump.json", json.dumps({"kind": "List", "items": items}).encode())


def at_node(name, cpu):
    """The first update of a node with this name and CPU."""
    text = json.dumps(EVENTS[0]).replace("worker-a", name).replace('"cpu": "8"', f'"cpu": "{cpu}"')
    return json.loads(text) | {"auditID": name}


def moved(event, node):
    """The event with the node of a binding replaced by `node`."""
    return json.loads(json.dumps(event).replace("worker-a", node))


def test_each_bound_pod_is_compared_on_the_state_before_its_binding():
    found = answer(EVENTS)
    assert agreements(found) == AGREEMENTS
    assert (found["placements"], found["agreement_ratio"]) == (6, 0.8333)
    assert [row["pod"] for row in found["differences"]] == ["shop/batch-1"]
    assert found["differences"][0]["score"] < found["differences"][0]["best_score"]
    assert {row["agreement"]: row["pods"] for row in found["agreement"]} == {
        "same": 3,
        "equal": 2,
        "lower": 1,
    }


def test_level_request_is_enough_with_a_dump():
    assert agreements(answer(map(at_level_request, EVENTS), nodes_only())) == AGREEMENTS


def test_lines_out_of_order_are_replayed_by_their_times():
    assert agreements(answer(reversed(EVENTS))) == AGREEMENTS


def test_a_pod_with_a_generated_name_is_named_by_its_binding():
    unnamed = []
    for event in map(at_level_request, EVENTS):
        if event["verb"] == "create" and "subresource" not in event["objectRef"]:
            body = json.loads(json.dumps(event["requestObject"]))
            name = body["metadata"].pop("name")
            body["metadata"]["generateName"] = name[:-1]
            ref = {k: v for k, v in event["objectRef"].items() if k != "name"}
            unnamed.append({**event, "requestObject": body, "objectRef": ref})
        else:
            unnamed.append(event)
    assert agreements(answer(unnamed, nodes_only())) == AGREEMENTS


def test_failed_and_dry_run_requests_change_nothing():
    binding = next(e for e in EVENTS if e["objectRef"].get("subresource") == "binding")
    refused = {**binding, "responseStatus": {"code": 409}}
    tried = {**binding, "requestURI": binding["requestURI"] + "?dryRun=All"}
    rest = [e for e in EVENTS if e is not binding]
    assert "shop/web-1" not in agreements(answer([refused, tried, *rest]))


def test_a_deleted_pod_frees_its_node():
    events = json.loads(json.dumps(EVENTS))
    for event in events:
        if event["objectRef"]["name"] == "web-3" and event["verb"] == "create":
            for body in (event["requestObject"], event["responseObject"]):
                for container in body.get("spec", {}).get("containers", ()):
                    container["resources"]["requests"]["cpu"] = "6"
    kept = [event for event in events if event["verb"] != "delete"]
    assert agreements(answer(events))["shop/web-3"] == "same"
    assert agreements(answer(kept))["shop/web-3"] == "unschedulable"


def test_a_pod_that_is_deleted_gracefully_keeps_its_room_until_the_end():
    full = [e for e in EVENTS if e["objectRef"]["name"] in ("worker-c", "batch-1")]
    filler = json.loads(json.dumps(full).replace("batch-1", "next-1").replace("T10:04", "T10:05"))
    filler = [e for e in filler if e["objectRef"]["resource"] == "pods"]
    for event in (*full, *filler):
        for body in (event["requestObject"], event["responseObject"]):
            for container in body.get("spec", {}).get("containers", ()):
                container["resources"]["requests"]["cpu"] = "2"
    delete = {
        **next(e for e in EVENTS if e["verb"] == "delete"),
        "objectRef": full[1]["objectRef"],
        "stageTimestamp": "2026-03-01T10:04:30.000000Z",
        "requestObject": {},
    }
    gone = {**delete, "requestObject": {"gracePeriodSeconds": 0}}
    requested = [*full, delete, *filler]
    ended = [*full, delete, gone, *filler]
    as_requested = [list(map(at_level_request, one)) for one in (requested, ended)]
    found = [agreements(answer(one, nodes_of(full)))["shop/next-1"] for one in as_requested]
    assert found == ["unschedulable", "same"]


def nodes_of(events):
    items = [e["responseObject"] for e in events if e["objectRef"]["resource"] == "nodes"]
    return parse_snapshot("dump.json", json.dumps({"kind": "List", "items": items}).encode())


def test_a_bound_pod_that_was_never_created_is_named():
    first = next(e for e in EVENTS if e["objectRef"]["name"] == "web-1")
    found = answer([e for e in EVENTS if e is not first])
    assert "shop/web-1" not in agreements(found)
    assert any("shop/web-1" in note for note in found["notes"])


@pytest.mark.parametrize("body", [None, 3, {}, {"metadata": 1}, {"metadata": {"name": 1}}])
def test_a_write_with_an_unreadable_body_is_counted(body):
    events = [at_level_request(event) for event in EVENTS]
    created = next(e for e in events if e["objectRef"]["name"] == "web-1")
    created["requestObject"] = body
    found = answer(events, nodes_only())
    assert "shop/web-1" not in agreements(found)
    assert any("1 write to unknown objects or with an unknown effect" in n for n in found["notes"])


def test_a_lower_level_is_refused_with_the_level_needed():
    event = {**EVENTS[3], "level": "Metadata"}
    with pytest.raises(InputError, match=r"line 1: create pods .* level Metadata; .* Request"):
        answer([event])


def test_the_error_for_an_unknown_priority_class_names_the_way_out():
    """At level Request, the log does not show the priority of the created pod."""
    events = json.loads(json.dumps([*map(at_level_request, EVENTS)]))
    created = next(e for e in events if e["objectRef"]["name"] == "web-1")
    created["requestObject"]["spec"]["priorityClassName"] = "urgent"
    expected = r"urgent was found; name a dump that contains it with --snapshot$"
    with pytest.raises(InputError, match=expected):
        answer(events)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "line 1: is not an audit event"),
        (b'{"kind": "Pod", "apiVersion": "v1"}', "line 1: expected an Event of audit.k8s.io/v1"),
        (b"\n", "no audit event of the stage ResponseComplete"),
        (
            lines([{**EVENTS[0], "stageTimestamp": "noon"}]),
            "line 1: stageTimestamp: 'noon' is not an RFC 3339 timestamp",
        ),
        (lines(EVENTS[3:]), "line 2: no Node is known when the first pod is bound"),
        (
            lines([{**at_level_request(EVENTS[0]), "requestObject": {"metadata": 1}}, *EVENTS[3:]]),
            r"no Node is known .*\(left out: 1 write .* effect, such as line 1\)",
        ),
    ],
)
def test_a_log_that_cannot_be_replayed_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        replay_audit_log("audit.log", text, None, SchedulerConfig(), NoProgress())


def test_a_dump_that_is_newer_than_the_log_is_refused():
    items = [{**EVENTS[0]["responseObject"]}]
    items[0]["metadata"] = {**items[0]["metadata"], "creationTimestamp": "2026-03-02T00:00:00Z"}
    late = parse_snapshot("dump.json", json.dumps({"kind": "List", "items": items}).encode())
    with pytest.raises(InputError, match=r"dump.json: was taken at .* after the last write"):
        answer(EVENTS, late)


def test_the_verdict_counts_placements_that_sampling_explains():
    """Of 120 feasible nodes, a sample contains 100, and five nodes are better."""
    nodes = [at_node(f"n{number:03}", "16" if number < 5 else "8") for number in range(120)]
    bindings = [moved(e, "n050") for e in EVENTS if e["objectRef"].get("name") == "web-1"]
    found = answer([*nodes, *bindings])
    assert agreements(found) == {"shop/web-1": "sampled"}
    assert found["verdict"] == (
        "1 of 1 placement agrees with the rules (100.0%): 0 on the only best node, 0 on one of "
        "several best nodes, 1 on the best node of a possible sample."
    )


def preempted_event(pod, node, at, priority=1):
    """The update in which the scheduler marks a running pod as preempted."""
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod, "namespace": "shop", "uid": pod, "resourceVersion": "900"},
        "spec": {
            "nodeName": node,
            "priority": priority,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running", "conditions": [reason]},
    }
    body["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    ref = {"resource": "pods", "namespace": "shop", "name": pod, "subresource": "status"}
    return {**EVENTS[0], "auditID": pod, "stageTimestamp": at, "verb": "update",
            "objectRef": {**ref, "apiVersion": "v1"}, "requestObject": body,
            "responseObject": body}  # fmt: skip


def nominated_event(pod, node, at):
    """The update in which the scheduler nominates a pod that fits no node to `node`."""
    failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    event = json.loads(json.dumps(preempted_event(pod, node, at, priority=9)))
    body = event["responseObject"]
    del body["spec"]["nodeName"]
    body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "99"
    body["status"] = {"phase": "Pending", "nominatedNodeName": node, "conditions": [failed]}
    return {**event, "requestObject": body}


def created_event(pod, at):
    event = nominated_event(pod, "worker-a", at)
    body = json.loads(json.dumps(event["responseObject"]))
    body["status"] = {"phase": "Pending"}
    body["metadata"] |= {"creationTimestamp": at[:19] + "Z", "resourceVersion": "800"}
    ref = {key: value for key, value in event["objectRef"].items() if key != "subresource"}
    return {**event, "verb": "create", "auditID": f"{pod}-new", "objectRef": ref,
            "requestObject": body, "responseObject": body}  # fmt: skip


def test_preempted_pods_are_listed_with_their_preemptors():
    """A preemptor is the pod nominated to the node at the nearest time; a mark counts once.

    No pod was nominated because of `last`: all nominations are far too early.
    """
    day = "2026-03-01T11:"
    events = [
        *EVENTS,
        created_event("first", f"{day}00:00.000000Z"),
        created_event("second", f"{day}00:00.100000Z"),
        preempted_event("early", "worker-a", f"{day}00:01.000000Z"),
        nominated_event("first", "worker-a", f"{day}00:01.010000Z"),
        nominated_event("second", "worker-a", f"{day}00:05.000000Z"),
        preempted_event("late", "worker-a", f"{day}00:05.010000Z"),
        preempted_event("late", "worker-a", f"{day}00:06.000000Z"),
        preempted_event("lone", "worker-b", f"{day}00:07.000000Z"),
        preempted_event("last", "worker-a", f"{day}01:00.000000Z"),
    ]
    found = answer(events)["preemptions"]
    assert found == [
        {"time": "2026-03-01T11:00:01Z", "pod": "shop/early", "node": "worker-a", "priority": 1,
         "preemptor": "shop/first"},
        {"time": "2026-03-01T11:00:05Z", "pod": "shop/late", "node": "worker-a", "priority": 1,
         "preemptor": "shop/second"},
        {"time": "2026-03-01T11:00:07Z", "pod": "shop/lone", "node": "worker-b", "priority": 1,
         "preemptor": ""},
        {"time": "2026-03-01T11:01:00Z", "pod": "shop/last", "node": "worker-a", "priority": 1,
         "preemptor": ""},
    ]  # fmt: skip
    assert answer(EVENTS)["preemptions"] == []
