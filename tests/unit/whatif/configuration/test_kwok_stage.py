"""KWOK Stages: their purposes, selectors, delays and weights; unsupported Stages are refused."""

from __future__ import annotations

import copy
import json

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.cli.main import run
from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.whatif.configuration.kwok_stage import with_stages
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest_reader import manifests

ALIVE = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
NO_ADDRESS = {"key": ".status.podIP", "operator": "DoesNotExist"}
RUNNING = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
READY = {
    "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
    "operator": "In",
    "values": ["True"],
}
OF_JOB = {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]}
DELETED = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}


def stage(name, phase, *selected, kind="Pod", **spec):
    what = {"statusTemplate": f"conditions: []\nphase: {phase}\n"} if phase else {"delete": True}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": list(selected)},
            "next": what,
            **spec,
        },
    }


def pod(name="p", owner="", **meta):
    owners = [{"kind": owner, "name": "o", "uid": "o"}] if owner else []
    fields = {"name": name, "namespace": "shop", "ownerReferences": owners, **meta}
    return decode_as(Pod, {"metadata": fields, "spec": {"containers": []}})


def config(*stages, seed=0):
    found = manifests([Document("stages.yaml", list(stages))])
    return with_stages(KubeletConfig(), found, seed)


def delay_ms(first, jitter=None):
    found = {"durationMilliseconds": first}
    return found if jitter is None else {**found, "jitterDurationMilliseconds": jitter}


def test_without_stages_the_default_behaviour_applies():
    assert config() == KubeletConfig()


def test_the_role_of_a_stage_follows_from_its_actions():
    found = config(
        stage("pod-ready", "Running", ALIVE, NO_ADDRESS, delay=delay_ms(3000)),
        stage("pod-complete", "Succeeded", ALIVE, RUNNING, READY, OF_JOB, delay=delay_ms(5000)),
        stage("pod-delete", "", DELETED, delay=delay_ms(7000)),
    )
    assert found.start_delays(pod()) == seconds(3)
    assert found.run_durations(pod(owner="Job")) == seconds(5)
    assert found.run_durations(pod(owner="ReplicaSet")) is None
    assert found.removal_delays(pod()) == seconds(7)


def test_a_stage_without_a_delay_applies_at_once():
    assert config(stage("pod-ready", "Running", ALIVE)).start_delays(pod()) == 0


def test_the_creation_of_containers_precedes_their_start():
    created = stage("pod-create", "x", ALIVE, delay=delay_ms(1000))
    created["spec"]["next"] = {"statusTemplate": "startTime: {{ Now }}\n"}
    later = {"key": ".status.startTime", "operator": "Exists"}
    found = config(created, stage("pod-ready", "Running", later, delay=delay_ms(2000)))
    assert found.start_delays(pod()) == seconds(3)


def test_newer_stages_with_steps_and_jq_expressions_are_read():
    made = stage("pod-ready", "x", delay={"durationFrom": {"jq": {"expression":
        '.metadata.annotations["start"]'}}, "durationMilliseconds": 1000})  # fmt: skip
    made["spec"]["selector"]["matchExpressions"] = [{"jq": NO_ADDRESS}]
    del made["spec"]["next"]
    patch = {"root": "status", "subresource": "status", "template": "phase: Running"}
    made["spec"]["steps"] = [{"event": {"reason": "Started"}}, {"patch": patch}]
    found = config(made)
    assert found.start_delays(pod()) == seconds(1)
    assert found.start_delays(pod(annotations={"start": "1m"})) == seconds(60)
    assert found.start_delays(pod(annotations={"start": "soon"})) == seconds(1)


def test_the_jitter_is_the_end_of_the_range_and_depends_on_pod_and_seed():
    ready = stage("pod-ready", "Running", ALIVE, delay=delay_ms(1000, 5000))
    delays = [config(ready).start_delays(pod(f"p{n}")) for n in range(50)]
    assert len(set(delays)) > 40
    assert all(seconds(1) <= one < seconds(5) for one in delays)
    assert delays == [config(ready).start_delays(pod(f"p{n}")) for n in range(50)]
    assert delays[0] != config(ready, seed=1).start_delays(pod("p0"))
    less = stage("pod-ready", "Running", ALIVE, delay=delay_ms(5000, 1000))
    assert config(less).start_delays(pod()) == seconds(1)


def test_the_time_until_the_deletion_is_the_grace_period():
    until = {"expressionFrom": ".metadata.deletionTimestamp"}
    deletes = stage("pod-delete", "", DELETED, delay={"durationFrom": until})
    assert config(deletes).removal_delays(pod(deletionGracePeriodSeconds=9)) == seconds(9)


def test_labels_and_annotations_select():
    ready = stage("pod-ready", "Running", ALIVE)
    ready["spec"]["selector"] |= {"matchLabels": {"a": "1"}, "matchAnnotations": {"b": "2"}}
    found = config(ready)
    assert found.start_delays(pod(labels={"a": "1"}, annotations={"b": "2"})) == 0
    assert found.start_delays(pod(labels={"a": "1"})) is None
    assert found.start_delays(pod(annotations={"b": "2"})) is None


def test_the_weights_choose_among_stages_that_select_a_pod():
    fast = stage("fast", "Succeeded", RUNNING, weight=1, delay=delay_ms(1000))
    slow = stage("slow", "Succeeded", RUNNING, weight=3, delay=delay_ms(9000))
    never = stage("never", "Succeeded", RUNNING, delay=delay_ms(0))
    found = config(fast, slow, never)
    runs = [found.run_durations(pod(f"p{n}")) for n in range(400)]
    assert set(runs) == {seconds(1), seconds(9)}
    assert 250 < runs.count(seconds(9)) < 350


@pytest.mark.parametrize("name", ["initialize", "heartbeat"])
def test_default_stages_of_nodes_need_no_simulation(name):
    made = stage(name, "x", kind="Node")
    made["spec"]["next"] = {"statusTemplate": "conditions:\n{{ range NodeConditions }}"}
    assert config(made) == KubeletConfig()


NODE = {"statusTemplate": "conditions:\n{{ range NodeConditions }}"}
NOT_READY = {**READY, "operator": "NotIn"}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"wait": 1}, "spec.wait: unknown field"),
        ({"resourceRef": {"kind": "Lease"}}, "spec.resourceRef.kind: Lease is not simulated"),
        ({"next": {"statusTemplate": "phase: Failed"}}, "spec.next: sets the phase Failed; "),
        ({"next": {"statusTemplate": "reason: x"}}, "spec.next: sets no phase; only create"),
        ({"next": {"finalizers": {"empty": True}}}, "spec.next.finalizers: is simulated only"),
        ({"next": {"finalizers": {"add": []}}}, "spec.next.finalizers.add: unknown field"),
        ({"delay": {"durationMilliseconds": -1}}, "spec.delay.durationMilliseconds: -1 is not"),
        ({"delay": {"durationMilliseconds": "1s"}}, "spec.delay.durationMilliseconds: expected"),
        ({"delay": {"durationFrom": {"expressionFrom": ".spec.x"}}},
         "spec.delay.durationFrom: '.spec.x' is not supported; known: .metadata.name"),
        ({"selector": {"matchExpressions": [{"key": "1 + 1", "operator": "Exists"}]}},
         "spec.selector.matchExpressions[0].key: '1 + 1' is not supported"),
        ({"selector": {"matchExpressions": [{"key": " " * 300_000, "operator": "Exists"}]}},
         "spec.selector.matchExpressions[0].key: has 300,000 characters; at most 1,000 are read"),
        ({"next": {"statusTemplate": "\n" * 300_000 + "x"}}, "spec.next: sets no phase; "),
        ({"selector": {"matchExpressions": [{"key": ".status.phase", "operator": "Is"}]}},
         "spec.selector.matchExpressions[0].operator: invalid enum value"),
        ({"selector": {"matchExpressions": [DELETED]}},
         "spec.selector: never selects a pod, because no pod has this status before a ready"),
        ({"resourceRef": {"kind": "Node"}}, "spec.next: sets conditions"),
        ({"resourceRef": {"kind": "Node"}, "next": NODE, "delay": delay_ms(5),
          "selector": {"matchExpressions": [NOT_READY]}}, "spec.delay: nodes are Ready when"),
    ],
)  # fmt: skip
def test_unsupported_stages_are_refused_with_object_and_field(changes, line):
    made = stage("pod-ready", "Running", ALIVE)
    made["spec"] = {**copy.deepcopy(made["spec"]), **changes}
    with pytest.raises(InputError) as raised:
        config(made)
    assert str(raised.value).startswith(f"stages.yaml: Stage pod-ready: {line}")


def test_a_pod_that_is_always_restarted_runs_for_a_second_at_least():
    found = config(stage("pod-complete", "Succeeded", RUNNING))
    restarted = decode_as(Pod, {"metadata": {"name": "p"}, "spec": {"restartPolicy": "Always"}})
    once = decode_as(Pod, {"metadata": {"name": "p"}, "spec": {"restartPolicy": "Never"}})
    assert found.run_durations(restarted) == seconds(1)
    assert found.run_durations(once) == 0


def test_a_scenario_runs_pods_by_the_stages_among_its_objects(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    template = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}
    job["spec"] = {"completions": 3, "parallelism": 1, "template": {"spec": template}}
    stages = [
        stage("pod-ready", "Running", ALIVE, NO_ADDRESS, delay=delay_ms(2000)),
        stage("pod-complete", "Succeeded", RUNNING, OF_JOB, delay=delay_ms(60_000)),
    ]
    (tmp_path / "objects.json").write_text(json.dumps([node, *stages]))
    scenario = {"cluster": {"files": ["objects.json"]}, "objects": [job], "duration": "200s"}
    (tmp_path / "s.json").write_text(json.dumps(scenario))
    assert run(["simulate", "s.json"]) == 0
    assert "pending 0   completed 3 " in capsys.readouterr().out
    (tmp_path / "s.json").write_text(json.dumps({**scenario, "duration": "180s"}))
    assert run(["simulate", "s.json"]) == 0
    assert "pending 0   completed 2 " in capsys.readouterr().out
