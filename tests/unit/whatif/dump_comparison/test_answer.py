"""The differences between the objects of two dumps."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from fairlead.cli.main import run
from fairlead.whatif.dump_comparison.answer import compare_dumps
from fairlead.whatif.snapshot.snapshot import read_snapshot

TYPE = "node.kubernetes.io/instance-type"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def compared(write):
    """Returns the comparison of two lists of objects."""

    def compare(before, after, label=""):
        found = (read_snapshot(write(f"{name}.json", *objects))
                 for name, objects in (("a", before), ("b", after)))  # fmt: skip
        answer = compare_dumps(*found, label).to_json()
        return answer | {
            "verdict": answer["verdict"].replace(answer["source"][: -len("b.json")], "")
        }

    return compare


def typed(make, name, pool, kind, **fields):
    node = make.node(name, agentpool=pool, **{TYPE: kind})
    node["status"]["nodeInfo"] = {"kubeletVersion": "v1.35.0"}
    return node | fields


@pytest.fixture
def cluster(make):
    return [
        typed(make, "n1", "small", "m5"),
        typed(make, "n2", "small", "m5"),
        typed(make, "n3", "large", "m6"),
        make.workload(name="web", replicas=3),
        make.workload(name="api", replicas=1),
        make.priority_class("high", 100),
        budget("web", 2),
    ]


def budget(name, minimum):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": name}}},
    }


def quota(**hard):
    meta = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def test_equal_dumps_have_no_difference(compared, cluster):
    found = compared(cluster, cluster)
    assert found["verdict"].endswith("have the same nodes, workloads, budgets, classes and quotas.")
    assert not found["difference"]
    assert [found[name] for name in ("node_pools", "nodes", "workloads", "objects")] == [[]] * 4


def test_nodes_are_compared_by_pool_and_type(compared, cluster, make):
    after = [*cluster[1:], typed(make, "n4", "large", "m6"), typed(make, "n5", "large", "m7")]
    found = compared(cluster, after)
    assert found["verdict"].endswith("b.json: 2 nodes added, 1 removed.")
    assert found["node_pools"] == [
        {"pool": "large", "instance_type": "m6", "nodes_before": 1, "nodes": 2, "added": 1,
         "removed": 0},
        {"pool": "large", "instance_type": "m7", "nodes_before": 0, "nodes": 1, "added": 1,
         "removed": 0},
        {"pool": "small", "instance_type": "m5", "nodes_before": 2, "nodes": 1, "added": 0,
         "removed": 1},
    ]  # fmt: skip
    [cpu] = [one for one in found["resources"] if one["resource"] == "cpu"]
    assert (cpu["allocatable_before"], cpu["allocatable"]) == (12000, 16000)
    assert cpu["allocatable_words"] == "12 → 16"


def test_another_label_can_name_the_pools(compared, cluster, write, capsys):
    assert [one["pool"] for one in compared(cluster, cluster[1:], TYPE)["node_pools"]] == ["m5"]
    path = write("c.json", *cluster)
    assert run(["whatif", path, "--against-snapshot", path, "--group-by", "team"]) == 2
    assert capsys.readouterr().err == "fairlead: --group-by: no node has the label team\n"


def test_nodes_in_both_dumps_are_compared(compared, cluster):
    after = copy.deepcopy(cluster)
    for node in after[:2]:
        node["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.0"
    after[0]["spec"] = {"unschedulable": True, "taints": [{"key": "x", "effect": "NoSchedule"}]}
    after[1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    after[1]["status"]["allocatable"]["cpu"] = "3"
    after[2]["metadata"]["labels"] |= {"team": "ml", "version": "1.0"}
    cluster[2]["metadata"]["labels"]["version"] = "1"
    after[2]["status"]["allocatable"]["cpu"] = "4000m"  # the same amount
    found = compared(cluster, after)
    assert found["verdict"].endswith("b.json: 3 nodes changed.")
    assert [(one["what"], one["names"]) for one in found["nodes"]] == [
        ("kubelet v1.35.0 → v1.36.0", ["n1", "n2"]),
        ("allocatable cpu 4 → 3", ["n2"]),
        ("cordoned", ["n1"]),
        ("label team none → ml", ["n3"]),
        ("label version 1 → 1.0", ["n3"]),
        ("not Ready", ["n2"]),
        ("taint x:NoSchedule added", ["n1"]),
    ]


def test_workloads_are_compared_by_replicas_images_and_requests(compared, cluster, make):
    web = make.workload(name="web", replicas=5, cpu="1500m")
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    side = {"name": "side", "image": "s", "resources": {"requests": {"cpu": "1"}}}
    web["spec"]["template"]["spec"]["containers"].append(side)
    agent = make.workload("DaemonSet", "agent")
    del agent["spec"]["replicas"]
    found = compared(cluster, [*cluster[:3], web, *cluster[5:], agent])
    assert found["verdict"].endswith("b.json: 1 workload added, 1 removed, 1 changed.")
    assert found["workloads"] == [
        {"workload": "ds/default/agent", "change": "added", "what": [],
         "replicas_before": None, "replicas": None, "missing_before": None, "missing": None},
        {"workload": "deploy/default/api", "change": "removed", "what": ["1 replica"],
         "replicas_before": 1, "replicas": None, "missing_before": None, "missing": None},
        {"workload": "deploy/default/web", "change": "changed", "what": [
            "replicas 3 → 5", "container side added", "image of c i → i:2",
            "requests of c: cpu 1 → 1500m",
        ], "replicas_before": 3, "replicas": 5, "missing_before": None, "missing": None},
    ]  # fmt: skip
    [note] = found["notes"]
    assert note.endswith("a.json has no DaemonSet: maybe it was taken without daemonsets.")


def test_workloads_that_lack_ready_pods_differ(compared, make):
    """Pods that are not ready, do not exist, or are on a deleted node count; Jobs have none."""

    def pods(name, *, ready, unready=0, kind="ReplicaSet", on="aaa"):
        made = [
            make.pod(f"{name}-{n}", owner=name, node_name=on[n]) for n in range(ready + unready)
        ]
        for number, pod in enumerate(made):
            pod["metadata"]["ownerReferences"][0]["kind"] = kind
            is_ready = "True" if number < ready else "False"
            pod["status"]["conditions"] = [{"type": "Ready", "status": is_ready}]
        return made

    owners = [
        *(make.node(name, cpu="99") for name in "abc"),
        make.workload("ReplicaSet", "web", replicas=3),
        make.workload("ReplicaSet", "up", replicas=3),
        make.workload("ReplicaSet", "lost", replicas=2),
        *(make.workload("DaemonSet", name) for name in ("agent", "bare", "surge")),
    ]
    for owner in owners[-3:]:
        del owner["spec"]["replicas"]
    before = [
        *owners,
        make.node("d", cpu="99"),
        *pods("web", ready=3),
        *pods("up", ready=1),
        *pods("lost", ready=2, on="ad"),
        *pods("agent", ready=4, kind="DaemonSet", on="abcd"),
        *pods("bare", ready=4, kind="DaemonSet", on="abcd"),
        *pods("surge", ready=4, kind="DaemonSet", on="abcd"),
    ]
    after = [
        *owners,
        *pods("web", ready=1, unready=1),
        *pods("up", ready=3),
        *pods("lost", ready=2, on="ad"),
        *pods("agent", ready=2, unready=1, kind="DaemonSet", on="abc"),
        *pods("bare", ready=1, kind="DaemonSet", on="a"),
        *pods("surge", ready=3, unready=1, kind="DaemonSet", on="abcc"),
    ]
    found = {row["workload"]: row for row in compared(before, after)["workloads"]}
    assert {name: row["what"] for name, row in found.items()} == {
        "ds/default/agent": ["pods missing or not ready 0 → 1"],
        "ds/default/bare": ["pods missing or not ready 0 → 2"],
        "rs/default/lost": ["pods missing or not ready 0 → 1"],
        "rs/default/up": ["pods missing or not ready 2 → 0"],
        "rs/default/web": ["pods missing or not ready 0 → 2"],
    }
    assert (found["rs/default/web"]["missing_before"], found["rs/default/web"]["missing"]) == (0, 2)
    assert compared(after, after)["workloads"] == []


def test_equal_quantities_are_no_difference(compared, cluster, make):
    after = [*cluster[:3], make.workload(name="web", replicas=3, cpu="1000m"), *cluster[4:]]
    assert not compared(cluster, after)["difference"]


def test_workloads_without_objects_are_compared_by_their_pods(compared, make):
    """The dumps lack the ReplicaSet; the pod that has ended does not count."""
    nodes = [make.node("a"), make.node("b")]
    pods = [make.pod(f"web-{number}", owner="web", node_name="a") for number in range(3)]
    ended = make.pod("web-9", owner="web", node_name="a")
    ended["status"] = {"phase": "Succeeded"}
    waiting = [make.pod("lone")]
    found = compared([*nodes, *pods, ended], [*nodes, *pods[:2], *waiting])
    assert [(one["workload"], one["change"], one["what"]) for one in found["workloads"]] == [
        ("pod/default/lone", "added", ["1 pod"]),
        ("rs/default/web", "changed", ["replicas 3 → 2"]),
    ]
    assert found["findings"] == ["Pending pods: 0 → 1."]


def test_pods_of_equal_workloads_may_differ(compared, cluster, make):
    """The API server has created a pod of the Deployment in only one of the dumps."""
    pod = make.pod("web-1", owner="web-1", node_name="n1")
    pod["metadata"]["labels"] = {"pod-template-hash": "1"}
    found = compared(cluster, [*cluster, pod])
    assert found["verdict"].endswith("b.json have the same objects, but different pods.")
    assert found["difference"]


def test_other_objects_are_compared_by_their_fields(compared, cluster, make):
    changed = [make.priority_class("high", 200), make.priority_class("low", 1, globalDefault=True)]
    before = [*cluster, quota(pods="10", **{"requests.cpu": "1"})]
    after = [*cluster[:5], *changed, quota(pods="20", **{"requests.cpu": "1000m"})]
    found = compared(before, after)
    assert found["verdict"].endswith("b.json: 1 other object added, 1 removed, 2 changed.")
    assert found["objects"] == [
        {"object": "PodDisruptionBudget default/web", "change": "removed", "what": []},
        {"object": "PriorityClass high", "change": "changed", "what": ["value 100 → 200"]},
        {"object": "PriorityClass low", "change": "added", "what": []},
        {"object": "ResourceQuota default/q", "change": "changed",
         "what": ["spec.hard.pods 10 → 20"]},
    ]  # fmt: skip


def test_an_empty_selector_differs_from_an_absent_one(compared, cluster):
    """For the eviction API, it selects all pods of the namespace."""
    before, after = budget("all", 1), budget("all", 1)
    before["spec"]["selector"] = {}
    del after["spec"]["selector"]
    [row] = compared([*cluster, before], [*cluster, after])["objects"]
    assert row["what"] == ["spec.selector {} → none"]


@pytest.mark.parametrize(("extra", "code"), [(0, 0), (1, 1)])
def test_the_exit_status_says_whether_dumps_differ(write, cluster, make, capsys, extra, code):
    before = write("a.json", *cluster)
    after = write("b.json", *cluster, *(make.node(f"more-{n}") for n in range(extra)))
    assert run(["whatif", before, "--against-snapshot", after]) == code
    assert "Totals before and after:" in capsys.readouterr().out
    assert not Path("fairlead-whatif.html").exists()
    assert run(["whatif", before, "--against-snapshot", after, "-o", "json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["difference"]) == ("DumpComparison", bool(code))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--fail-on", "pending>0"),
        ("--junit", "x.xml"),
        ("--report", "x.html"),
        ("--against-config", "c.yaml"),
        ("--seeds", "5"),
        ("--startup-time", "30s"),
        ("--config", "c.yaml"),
    ],
)
def test_options_of_simulations_need_a_change(write, cluster, capsys, option, value):
    path = write("a.json", *cluster)
    assert run(["whatif", path, "--against-snapshot", path, option, value]) == 2
    problem = "needs a change; without a change, --against-snapshot compares the dumps"
    assert capsys.readouterr().err == f"fairlead: {option}: {problem}\n"


def test_an_object_that_an_api_server_would_refuse_is_refused(write, cluster, make, capsys):
    good, bad = write("a.json", *cluster), write("b.json", *cluster, make.pod("p", cpu="much"))
    assert run(["whatif", good, "--against-snapshot", bad]) == 2
    assert "b.json: Pod default/p: spec.containers[0].resources.requests[cpu]: Invalid value" in (
        capsys.readouterr().err
    )
