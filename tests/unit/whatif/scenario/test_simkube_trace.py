"""SimKube traces: events become steps, lifecycles become run times; invalid ones are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import msgspec
import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.cli.main import run
from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.scenario.simkube_trace import (
    RecordedDurations,
    RecordedLifecycle,
    is_simkube_trace,
    parse_simkube_trace,
)
from fairlead.whatif.snapshot.inventory import Inventory

EXAMPLE = Path(__file__).parents[4] / "examples" / "replay" / "simkube-trace.json"
WEB = WorkloadRef("Deployment", "shop", "web")
IMPORT = WorkloadRef("Job", "shop", "import")
START = 1772359200
HUGE = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "b", "namespace": "a"},
    "spec": {"replicas": 1_000_001},
}


@pytest.fixture
def trace():
    return json.loads(EXAMPLE.read_text())


def parsed(trace, inventory=None):
    data = json.dumps(trace).encode()
    return parse_simkube_trace("trace.json", data, inventory or Inventory())


def test_notes_name_fields_that_have_no_effect(trace):
    assert parsed(trace).notes == ()
    first = trace["events"][0]
    web = first["applied_objs"][0]
    web["spec"]["replcas"] = 3
    web["metadata"]["annotations"]["fairlead.dev/run-durration"] = "3s"
    trace["events"][0] = {**first, "deleted_obj": []}
    event, annotation, field = parsed(trace).notes
    assert event.startswith("trace.json: events[0].deleted_obj is unknown and has no effect (did")
    assert annotation.startswith("The annotation fairlead.dev/run-durration of Deployment shop/web")
    assert field.startswith("An unknown field has no effect: spec.replcas of Deployment shop/web")


def test_events_become_steps(trace):
    found = parsed(trace)
    assert found.start == seconds(START)
    steps = [(step.after, *step.commands) for step in found.steps]
    assert [after for after, _ in steps] == [0, 0, seconds(60), seconds(300), seconds(1500)]
    namespace, web, job, change, deletion = (command for _, command in steps)
    assert isinstance(namespace, CreateObject)
    assert namespace.manifest["kind"] == "Namespace"
    assert web.manifest["spec"]["replicas"] == 2
    assert "status" not in web.manifest
    assert job.manifest["kind"] == "Job"
    assert isinstance(change, PatchObject)
    assert change.patch == {"spec": {"replicas": 4}}
    assert isinstance(deletion, DeleteObject)
    assert deletion.target.key == "shop/web"


def test_a_trace_in_message_pack_has_the_same_steps(trace):
    data = msgspec.msgpack.encode(trace)
    assert is_simkube_trace(data)
    assert is_simkube_trace(EXAMPLE.read_bytes())
    assert parse_simkube_trace("t", data, Inventory()).lifecycles == parsed(trace).lifecycles


def test_a_trace_without_events_is_recognized_and_refused():
    data = b'{"version": 3, "config": {}, "events": [], "index": {}}'
    assert is_simkube_trace(data)
    assert not is_simkube_trace(b'{"kind": "Event", "note": "\\"events\\""}\n{"events": 1}')
    with pytest.raises(InputError, match="events: contains no event"):
        parse_simkube_trace("t", data, Inventory())


def test_fields_that_the_cluster_wrote_are_removed(trace):
    meta = trace["events"][0]["applied_objs"][0]["metadata"]
    meta.update(uid="u", resourceVersion="7", ownerReferences=[{"kind": "X", "name": "x"}])
    pod = {"metadata": {"name": "p", "namespace": "shop"}, "apiVersion": "v1", "kind": "Pod"}
    pod["spec"] = {"nodeName": "n", "containers": [{"name": "m", "image": "i"}]}
    trace["events"][0]["applied_objs"].append(pod)
    _, web, made = (step.commands[0].manifest for step in parsed(trace).steps[:3])
    assert set(web["metadata"]) == {"name", "namespace", "annotations"}
    assert "nodeName" not in made["spec"]


def test_an_object_of_another_group_is_another_object(trace):
    """A Service of Knative has the kind and name of the Service that it creates."""
    applied = [{**HUGE, "spec": {"replicas": 1}}, {**HUGE, "apiVersion": "a.b/v1", "spec": {}}]
    found = parsed({**trace, "events": [{"ts": START, "applied_objs": applied}]})
    created = [command.manifest["apiVersion"] for step in found.steps for command in step.commands]
    assert created == ["v1", "apps/v1", "a.b/v1"]


def test_a_field_that_the_next_version_lacks_is_removed(trace):
    later = trace["events"][2]["applied_objs"][0]
    later["spec"]["template"]["spec"]["containers"][0].pop("resources")
    later["spec"]["template"]["metadata"]["labels"] = {"app": "web", "new": "1"}
    trace["events"][0]["applied_objs"][0]["spec"]["template"]["spec"]["hostNetwork"] = True
    patch = parsed(trace).steps[3].commands[0].patch["spec"]
    assert patch["template"]["spec"]["hostNetwork"] is None
    assert patch["template"]["metadata"] == {"labels": {"new": "1"}}
    assert patch["template"]["spec"]["containers"] == [{"name": "main", "image": "web:1"}]


def test_lifecycles_count_from_the_start_in_the_order_of_their_starts(trace):
    found = parsed(trace).lifecycles
    assert [one.started for one in found[WEB]] == [seconds(n) for n in (2, 3, 302, 420)]
    assert found[IMPORT] == [
        RecordedLifecycle(seconds(63), seconds(663)),
        RecordedLifecycle(seconds(64), seconds(364)),
    ]


def test_version_2_keys_lifecycles_by_kind_and_name(trace):
    lifecycles = {("batch/v1.Job", "shop/import"): {2**63: [{"Finished": [START - 9, START + 3]}]}}
    trace = {**trace, "version": 2, "index": {}, "pod_lifecycles": lifecycles}
    found = parse_simkube_trace("t", msgspec.msgpack.encode(trace), Inventory())
    assert found.lifecycles == {IMPORT: [RecordedLifecycle(0, seconds(3))]}


def test_the_next_pod_of_a_workload_runs_as_long_as_the_next_recorded_one(trace, make_pod):
    given = RecordedDurations(parsed(trace).lifecycles)
    pods = [make_pod(number) for number in range(3)]
    assert [given(pod) for pod in pods] == [seconds(600), seconds(300), seconds(600)]
    assert given(pods[1]) == seconds(300)


@pytest.fixture
def make_pod():
    def make(number):
        owner = {"kind": "Job", "name": "import", "uid": "j", "controller": True}
        meta = {"name": f"import-{number}", "namespace": "shop", "uid": f"u{number}"}
        value = {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {"containers": []}}
        return decode_as(Pod, value)

    return make


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"version": 1}, "trace.json: version: 1 is not supported; known: 2 and 3"),
        ({"version": "x"}, "trace.json: version: is not a SimKube trace: Expected `int`"),
        ({"events": []}, "trace.json: events: contains no event"),
        ({"events": [{"ts": 5}, {"ts": 4}]}, "trace.json: events[1].ts: 4 is not a time"),
        ({"events": [{"ts": 10**12}]}, "trace.json: events[0].ts: "),
        ({"events": [{"ts": 1, "applied_objs": [{"kind": "Pod"}]}]},
         "trace.json: events[0].applied_objs[0]: "),
        ({"events": [{"ts": 1, "applied_objs": [[]]}]},
         "trace.json: events[0].applied_objs[0]: is not one object"),
        ({"events": [{"ts": 1, "applied_objs": [HUGE]}]},
         "trace.json: events[0].applied_objs[0]: ReplicaSet a/b: spec.replicas: 1000001 is more"),
        ({"index": {"apps/v1.Deployment": {"a/b": {"1": [{"Finished": [5, 4]}]}}}},
         "trace.json: index.apps/v1.Deployment.a/b: is not Empty, Running with a start, or"),
        ({"index": {"Deployment": {"a/b": {}}}},
         "trace.json: index.Deployment.a/b: is not an object with recorded pods"),
    ],
)  # fmt: skip
def test_a_malformed_trace_is_refused(trace, change, line):
    with pytest.raises(InputError) as raised:
        parsed({**trace, **change})
    assert str(raised.value).startswith(line)


@pytest.mark.parametrize(
    "data", [b"\x85", b"\x91\x01", b"\x81" * 100_000, b"{", b"\x81\xa1\xff\x01"]
)
def test_a_file_that_is_cut_short_is_refused(data):
    with pytest.raises(InputError):
        parse_simkube_trace("t", data, Inventory())


@pytest.mark.parametrize(
    "annotations", [{(1, 2): "a"}, msgspec.msgpack.Ext(5, b"x"), {"a": msgspec.msgpack.Ext(1, b"")}]
)
def test_an_object_with_parts_that_json_does_not_have_is_refused(trace, annotations):
    trace["events"][0]["applied_objs"][0]["metadata"]["annotations"] = annotations
    with pytest.raises(InputError) as raised:
        parse_simkube_trace("t", msgspec.msgpack.encode(trace), Inventory())
    problem = "has keys or values that JSON does not allow"
    assert str(raised.value) == f"t: events[0].applied_objs[0]: {problem}"


def test_numbers_as_keys_are_read_as_json_writes_them(trace):
    trace["events"][0]["applied_objs"][0]["metadata"]["annotations"] = {1: "a"}
    found = parse_simkube_trace("t", msgspec.msgpack.encode(trace), Inventory())
    made = [step.commands[0].manifest for step in found.steps[:2]]
    assert [one["metadata"].get("annotations") for one in made] == [None, {"1": "a"}]


def test_a_trace_of_the_first_version_is_refused():
    with pytest.raises(InputError, match=r"SimKube before 2\.0"):
        parse_simkube_trace("t", msgspec.msgpack.encode([{}, [], {}, {}]), Inventory())


def test_a_scenario_runs_a_trace(tmp_path, trace, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.sktrace").write_bytes(msgspec.msgpack.encode(trace))
    nodes = EXAMPLE.with_name("simkube-nodes.yaml").read_text()
    (tmp_path / "nodes.yaml").write_text(nodes)
    scenario = {"cluster": {"files": ["nodes.yaml"], "simkube": "trace.sktrace"}}
    (tmp_path / "s.yaml").write_text(json.dumps({**scenario, "duration": "24m"}))
    assert run(["simulate", "s.yaml"]) == 0
    assert "placed 4   pending 0   completed 2" in capsys.readouterr().out
    broken = copy.deepcopy(trace)
    broken["events"][0]["applied_objs"][0]["spec"]["replicas"] = "two"
    (tmp_path / "trace.sktrace").write_bytes(msgspec.msgpack.encode(broken))
    assert run(["simulate", "s.yaml"]) == 2
    printed = capsys.readouterr().err.strip()
    assert "trace.sktrace: " in printed
    assert "web: spec.replicas" in printed
    assert "\n" not in printed
