"""`fairlead explain` of pods that do not exist yet: the best nodes on one screen, and gangs."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from fairlead.cli import main

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "10"}
NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{at:02}"},
        "status": {
            "allocatable": SIZE,
            "capacity": SIZE,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    for at in range(25)
]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "new", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}
USED = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 100}}}
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 2,
        "metrics": [CPU],
    },
    "status": {"currentMetrics": [USED]},
}


def nodes(count, name, ready):
    """Nodes with the status `ready`, on which POD does not fit."""
    status = {
        "allocatable": {"cpu": "500m", "memory": "8Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": ready}],
    }
    head = {"apiVersion": "v1", "kind": "Node", "status": status}
    return [{**head, "metadata": {"name": f"{name}-{at:03}"}} for at in range(count)]


GATES = "GangScheduling=true,GenericWorkload=true"


def test_the_command_with_one_more_node_runs_as_printed(tmp_path, capsys, monkeypatch):
    """The dump is a directory, and the pod is only in a file of --apply."""
    monkeypatch.setenv("COLUMNS", "60")
    dump, pod = tmp_path / "my dumps", tmp_path / "pod.json"
    dump.mkdir()
    items = [*nodes(1, "small", "True"), NODES[0]]
    used = {**POD, "metadata": {"name": "old", "namespace": "default"}}
    request = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}]
    used["spec"] = {"nodeName": "node-00", "containers": request}
    listing = {"apiVersion": "v1", "kind": "List", "items": [*items, used]}
    (dump / "dump.json").write_text(json.dumps(listing))
    pod.write_text(json.dumps(POD))
    options = ["--max-input", "1Gi", "--feature-gates", GATES, "--apply", str(pod)]
    main.run(["explain", str(dump), "--behave-like", "1.36", *options])
    out = capsys.readouterr().out
    command = re.search(r"changes with this node:\s+((?:.*\\\n)*.*)", out)[1]
    program, *words = shlex.split(command.replace("\\\n", " "))
    assert program == "fairlead"
    given = ["--max-input", str(2**30), "--feature-gates", GATES, "--apply", str(pod)]
    assert words == ["whatif", str(dump), *given, "--add-nodes", "1", "--like", "node-00"]
    main.run([*words, "-o", "json"])
    assert json.loads(capsys.readouterr().out)["verdict"]["outcome"] == "started"


@pytest.mark.parametrize(("ready", "is_noted"), [(200, False), (201, True)])
def test_the_note_counts_only_nodes_for_which_a_remedy_was_searched(
    tmp_path, capsys, ready, is_noted
):
    """Nodes that are not Ready are listed, but no remedy is searched for them."""
    dump, pod = tmp_path / "dump.json", tmp_path / "pod.json"
    items = nodes(ready, "ready", "True") + nodes(7, "unready", "False")
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    pod.write_text(json.dumps(POD))
    main.run(["explain", str(dump), "--apply", str(pod)])
    out = capsys.readouterr().out
    assert f"infeasible nodes ({ready + 7})" in out
    assert ('"would fit after" was computed for the 200 nodes that lack least.' in out) == is_noted


def test_the_smallest_change_of_many_nodes_is_shown(tmp_path, capsys, monkeypatch):
    """All nodes lack cpu; the last one by name lacks least."""
    dump, pod = tmp_path / "dump.json", tmp_path / "pod.json"
    items = nodes(210, "full", "True") + nodes(1, "zzz", "True")
    for node in list(items):
        name = node["metadata"]["name"]
        cpu = "600m" if name == "zzz-000" else "1"
        node["status"]["allocatable"]["cpu"] = "1500m"
        spec = {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
        }
        own = {"name": f"on-{name}", "namespace": "default"}
        items.append({**POD, "metadata": own, "spec": {**spec, "nodeName": name}})
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    pod.write_text(json.dumps(POD))
    monkeypatch.setenv("COLUMNS", "200")
    main.run(["explain", str(dump), "--apply", str(pod)])
    words = " ".join(capsys.readouterr().out.split())
    assert "zzz-000: lower the cpu request from 1 to 900m" in words


@pytest.mark.parametrize(("form", "listed"), [("text", 10), ("details", 25)])
def test_the_best_of_many_nodes_are_listed(tmp_path, capsys, monkeypatch, form, listed):
    monkeypatch.setenv("COLUMNS", "80")
    dump, pod = tmp_path / "dump.json", tmp_path / "pod.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES}))
    pod.write_text(json.dumps(POD))
    main.run(["explain", str(dump), "--apply", str(pod), "-o", form])
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("node-") and line.split()[1].isdigit()]
    assert len(rows) == listed
    assert ("... and 15 more" in lines) == (form == "text")
    assert len(lines) <= (40 if form == "text" else 60)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("deploy/web", "All 2 wanted pods of deploy/default/web are ready."),
        ("pdb/web", "needs 2 ready of 2 wanted pods"),
        ("node/node-00", "node-00 cannot be drained now: pdb/default/web refuses the eviction"),
        ("node/node-00", "PRIORITY CPU MEMORY CAN IT MOVE ALONE?"),
        ("hpa/web", "keeps Deployment default/web at maxReplicas (2); its metrics propose 4 rep"),
    ],
)
def test_workloads_of_a_file_without_pods_are_explained_with_pods(
    tmp_path, capsys, target, sentence
):
    """All answers are about the same cluster, in which the Deployment's pods run."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": POD["spec"]}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}},
    }
    dump = tmp_path / "dump.json"
    items = [NODES[0], web, budget, AUTOSCALER]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main.run(["explain", str(dump), target])
    printed = capsys.readouterr()
    assert sentence in " ".join(printed.out.split())
    assert "2 pods that workloads lack are created first: 2 of deploy/default/web." in printed.err


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        (1, "Preempts 1 pod on node-00: default/old-00."),
        (2, "Preempts pods on one of 2 equal nodes: node-00, node-01"),
    ],
)
def test_a_preemptor_names_its_victims_first(tmp_path, capsys, nodes, sentence):
    dump, pod = tmp_path / "dump.json", tmp_path / "pod.json"
    spec = {"containers": [{**POD["spec"]["containers"][0]}]}
    spec["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
    old = [
        {
            **POD,
            "metadata": {"name": f"old-{at:02}", "namespace": "default"},
            "spec": {**spec, "nodeName": f"node-{at:02}"},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
        }
        for at in range(nodes)
    ]
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    items = [*NODES[:nodes], *old, high]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    pod.write_text(json.dumps({**POD, "spec": {**spec, "priorityClassName": "high"}}))
    main.run(["explain", str(dump), "--apply", str(pod)])
    refused, preempts = capsys.readouterr().out.splitlines()[1:3]
    assert refused.endswith("Insufficient cpu.")
    assert preempts == sentence


GANG = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"minMember": 3, "queue": "default"},
}


def test_victims_against_a_budget_are_counted_not_budgets(tmp_path, capsys):
    """One budget protects both victims, so preemption on the only node has two against it."""

    def pod(name, priority, cpu, **spec):
        requests = {"requests": {"cpu": cpu}}
        containers = [{"name": "c", "image": "i", "resources": requests}]
        meta = {"name": name, "namespace": "default", "labels": {"app": name[:3]}}
        made = {"priority": priority, "containers": containers, **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made}

    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "low", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "low"}}},
    }
    lows = [pod(f"low-{at}", 0, "2", nodeName="node-00") for at in (1, 2)]
    items = [NODES[0], *lows, pod("high", 10, "4"), budget]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main.run(["explain", str(dump), "pod/default/high"])
    rows = capsys.readouterr().out.partition("candidates for preemption (1)")[2].splitlines()[1:3]
    assert "victims against a budget" in rows[0]
    assert rows[1].split()[:2] == ["node-00", "2"]


def member(name):
    metadata = {"name": name, "namespace": "default"}
    metadata["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    container = {**POD["spec"]["containers"][0], "resources": {"requests": {"cpu": "3"}}}
    return {**POD, "metadata": metadata, "spec": {"schedulerName": "volcano",
            "containers": [container]}}  # fmt: skip


@pytest.mark.parametrize("target", ["pod/g-0", "pod/default/g-2", "podgroup/g"])
def test_a_pod_of_a_new_gang_is_explained_by_the_rules_of_its_batch_scheduler(
    tmp_path, capsys, target
):
    dump, gang = tmp_path / "dump.json", tmp_path / "gang.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES[:2]}))
    members = [member(f"g-{number}") for number in range(3)]
    items = {"apiVersion": "v1", "kind": "List", "items": [GANG, *members]}
    gang.write_text(json.dumps(items))
    main.run(["explain", target, "--snapshot", str(dump), "--apply", str(gang), "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["group"]) == ("GroupExplanation", "default/g")
    assert (answer["min_member"], answer["members"], answer["placeable"]) == (3, 3, 2)


@pytest.mark.parametrize(
    ("kind", "spec", "members"),
    [
        ("Deployment", {"replicas": 3}, 3),
        ("ReplicaSet", {}, 1),
        ("StatefulSet", {"replicas": 3, "podManagementPolicy": "Parallel"}, 3),
        ("StatefulSet", {"replicas": 3}, 1),
    ],
)
def test_the_members_of_a_new_gang_are_the_first_pods_of_its_workload(
    tmp_path, capsys, kind, spec, members
):
    template = {**member("g"), "metadata": {"labels": {"app": "g"}}}
    template["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    template = {field: template[field] for field in ("metadata", "spec")}
    workload = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "g"}}
    workload["spec"] = {"selector": {"matchLabels": {"app": "g"}}, "template": template, **spec}
    dump, file = tmp_path / "dump.json", tmp_path / "gang.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES[:2]}))
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [GANG, workload]}))
    words = ["explain", "podgroup/g", "--snapshot", str(dump), "--apply", str(file)]
    main.run([*words, "-o", "json"])
    assert json.loads(capsys.readouterr().out)["members"] == members


def test_new_pods_of_a_group_get_the_claims_of_their_templates(tmp_path, capsys):
    """One node has one device, so the second of two members fits no node.

    The dump has a claim with the name that the first new claim would get.
    """
    resource = "resource.k8s.io/v1"
    device_class = {"apiVersion": resource, "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    device_class["spec"] = {"selectors": [{"cel": {"expression": "device.driver == 'g.io'"}}]}
    devices = {"apiVersion": resource, "kind": "ResourceSlice", "metadata": {"name": "s"}}
    devices["spec"] = {
        "driver": "g.io",
        "nodeName": NODES[0]["metadata"]["name"],
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    template = {"apiVersion": resource, "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    template["spec"] = {"spec": {"devices": {"requests": [request]}}}
    pods = [member(f"g-{number}") for number in range(2)]
    for pod in pods:
        pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": "t"}]
        pod["spec"].pop("nodeName", None)
    pods[0]["metadata"]["uid"] = ""
    dump, file = tmp_path / "dump.json", tmp_path / "gang.json"
    other = {"apiVersion": resource, "kind": "ResourceClaim", "metadata": {"name": "g-0-d"}}
    items = [*NODES[:2], device_class, devices, other | {"spec": template["spec"]["spec"]}]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    gang = {**GANG, "spec": {**GANG["spec"], "minMember": 2}}
    new = [gang, template, *pods]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": new}))
    words = ["explain", "podgroup/g", "--snapshot", str(dump), "--apply", str(file)]
    main.run([*words, "-o", "json"])
    found = capsys.readouterr().out
    assert "cannot allocate all claims" in found
    assert "not created yet" not in found


def test_single_pods_have_no_group_to_explain(tmp_path, capsys):
    dump = tmp_path / "dump.json"
    items = {"apiVersion": "v1", "kind": "List", "items": [*NODES[:2], GANG, member("g-0")]}
    dump.write_text(json.dumps(items))
    assert main.run(["explain", str(dump), "podgroup/g", "--batch-config", "single-pods"]) == 2
    assert "--batch-config: single-pods ignores pod groups; explain" in capsys.readouterr().err


def test_single_pods_explains_a_pod_of_a_batch_scheduler_by_the_rules_of_kube_scheduler(
    tmp_path, capsys
):
    dump = tmp_path / "dump.json"
    pod = member("g-0")
    pod["spec"]["schedulerName"] = "volcano"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES[:2], pod]}))
    words = ["explain", str(dump), "pod/g-0", "-o", "json"]
    assert main.run(words) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "GroupExplanation"
    assert main.run([*words, "--batch-config", "single-pods"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "Explanation"


def test_a_group_that_only_pods_name_does_not_exist(tmp_path, capsys):
    dump = tmp_path / "dump.json"
    items = {"apiVersion": "v1", "kind": "List", "items": [*NODES[:2], member("g-0")]}
    dump.write_text(json.dumps(items))
    main.run(["explain", str(dump), "podgroup/g"])
    assert "g: 1 pod names this PodGroup, which does not exist" in capsys.readouterr().out


def test_nodes_beyond_the_tenth_are_counted(tmp_path, capsys):
    nodes = [{**NODES[0], "metadata": {"name": f"n{number}"}} for number in range(13)]
    big, group = member("g-0"), {**GANG, "spec": {"minMember": 1, "queue": "default"}}
    big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, group, big]}))
    main.run(["explain", str(dump), "podgroup/g"])
    assert "\n... and 3 more\n" in capsys.readouterr().out


def test_a_group_of_volcano_without_pods_awaits_its_admission(tmp_path, capsys):
    """Its minResources are within the capability of the queue only for cpu."""
    group = {**GANG, "status": {"phase": "Pending"}}
    group["spec"] = {**GANG["spec"], "queue": "q", "minResources": {"cpu": "3", "x.com/gpu": "3"}}
    queue = {"apiVersion": GANG["apiVersion"], "kind": "Queue", "metadata": {"name": "q"},
             "spec": {"capability": {"cpu": "3", "x.com/gpu": "2"}}}  # fmt: skip
    dump = tmp_path / "dump.json"
    items = {"apiVersion": "v1", "kind": "List", "items": [*NODES[:2], group, queue]}
    dump.write_text(json.dumps(items))
    main.run(["explain", str(dump), "podgroup/g", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["members"], answer["remedies"]) == (0, [])
    assert (answer["obstacle"], answer["why"]) == (
        "NO_PODS_YET",
        "Volcano has not admitted it yet, and creates its pods only then",
    )
    [groups, pods, excess] = answer["notes"]
    assert groups.startswith("1 PodGroup has no pods yet (default/g).")
    assert pods.startswith("Volcano creates the pods of a Job only after its action enqueue has")
    assert excess.endswith("exceed the capability of queue q: 3 x.com/gpu (at most 2).")


def test_a_note_names_the_groups_that_the_next_session_starts_first(tmp_path, capsys):
    """Two members of g have room on the node, and the pod f needs some of it."""
    alone = member("f")
    del alone["metadata"]["annotations"]
    items = [NODES[0], GANG, *(member(f"g-{number}") for number in range(3)), alone]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main.run(["explain", str(dump), "podgroup/g", "-o", "json"])
    note = json.loads(capsys.readouterr().out)["notes"][-1]
    assert "The next session gives some of them to Pod/default/f, and fairlead whatif makes" in note


def coscheduled(name, scheduler):
    """A pending pod of a PodGroup of the plugin Coscheduling."""
    found = member(name)
    found["metadata"].pop("annotations")
    found["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    found["spec"] = {**found["spec"], "schedulerName": scheduler}
    return found


@pytest.mark.parametrize("scheduler", ["default-scheduler", "scheduler-plugins-scheduler"])
def test_a_group_of_the_plugin_coscheduling_has_the_pods_that_name_it(tmp_path, capsys, scheduler):
    group = {**GANG, "apiVersion": "scheduling.x-k8s.io/v1alpha1"}
    items = [*NODES[:2], group, *(coscheduled(f"g-{number}", scheduler) for number in range(3))]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main.run(["explain", str(dump), "podgroup/g", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["min_member"], answer["members"], answer["placeable"]) == (3, 3, 2)
    assert (answer["obstacle"], answer["queue"]) == ("NO_NODE", None)
    assert f"schedulerName {scheduler} follow Fairlead's own" in answer["notes"][0]
    main.run(["explain", str(dump), "pod/g-0", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    if scheduler == "default-scheduler":
        assert "fairlead explain podgroup/default/g evaluates" in answer["notes"][0]
    else:  # no scheduler of this name is known
        assert answer["group"] == "default/g"


@pytest.fixture
def group_of_kubernetes(tmp_path):
    """A dump with a PodGroup of scheduling.k8s.io, `g`, and one of its three members."""
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    group = {**GANG, "apiVersion": "scheduling.k8s.io/v1alpha2", "spec": policy}
    pod = coscheduled("g-0", "default-scheduler")
    pod["metadata"].pop("labels")
    pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    dump = tmp_path / "dump.json"
    items = {"apiVersion": "v1", "kind": "List", "items": [*NODES[:2], group, pod]}
    dump.write_text(json.dumps(items))
    return str(dump)


def test_a_group_of_kubernetes_has_no_effect_without_its_gate(group_of_kubernetes, capsys):
    assert main.run(["explain", group_of_kubernetes, "podgroup/g"]) == 2
    problem = "podgroup/g holds no pods back: PodGroups of scheduling.k8s.io have no effect"
    assert problem in capsys.readouterr().err


def test_a_group_of_kubernetes_is_explained_by_one_of_its_pods(group_of_kubernetes, capsys):
    gate = ["--feature-gates", "GenericWorkload=true", "--output", "json"]
    main.run(["explain", group_of_kubernetes, "podgroup/g", *gate])
    assert json.loads(capsys.readouterr().out)["pod"] == "default/g-0"


def test_the_only_pod_of_the_files_may_be_of_a_gang(tmp_path, capsys):
    dump, gang = tmp_path / "dump.json", tmp_path / "gang.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES[:2], GANG]}))
    gang.write_text(json.dumps(member("g-0")))
    main.run(["explain", str(dump), "--apply", str(gang), "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["group"], answer["min_member"], answer["members"]) == ("default/g", 3, 1)


def test_a_pod_of_files_with_a_new_daemon_set_is_explained(tmp_path, capsys):
    dump, file = tmp_path / "dump.json", tmp_path / "new.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES[:2]}))
    labels = {"app": "agent"}
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": POD["spec"]},
        },
    }
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [agent, POD]}))
    command = ["explain", "pod/new", "--snapshot", str(dump), "--apply", str(file), "-o", "json"]
    assert main.run(command) == 0
    assert json.loads(capsys.readouterr().out)["pod"] == "default/new"


def test_a_pod_of_a_missing_group_is_explained_with_the_name_of_the_group(tmp_path, capsys):
    dump = tmp_path / "dump.yaml"
    dump.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: shop\n"
        "  annotations: {scheduling.k8s.io/group-name: train}\n"
        "spec: {schedulerName: volcano, containers: [{name: c, image: i}]}\n"
    )
    assert main.run(["explain", str(dump), "pod/shop/p"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "shop/train: 1 pod names this PodGroup, which does not exist",
        "Blocked: no such group",
        "What would let it start: create PodGroup shop/train",
    ]


@pytest.mark.parametrize(("pods", "is_refused"), [("1", True), ("2", False)])
def test_a_new_group_names_the_quota_that_refuses_its_pods(tmp_path, capsys, pods, is_refused):
    group = "scheduling.k8s.io/group-name"
    spec = {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}],
    }
    template = {"metadata": {"annotations": {group: "train"}}, "spec": spec}
    meta = {"name": "train", "namespace": "default"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"parallelism": 2, "template": template},
    }
    pod_group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 2},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": pods}},
    }
    dump, file = tmp_path / "dump.json", tmp_path / "train.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODES[0], quota]}))
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod_group, job]}))
    assert main.run(["explain", str(dump), "--apply", str(file)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ("The API server would refuse 1 of its 2 pods: " in text) is is_refused
    assert ("exceeded quota: q" in text) is is_refused


@pytest.mark.parametrize(
    ("spec", "sentence", "next_run"),
    [
        (
            {},
            'Its schedule is "0 2 * * *" (UTC); the next Job starts at 2026-01-02T02:00:00Z.',
            "2026-01-02T02:00:00Z",
        ),
        (
            {"timeZone": "Europe/Berlin"},
            'Its schedule is "0 2 * * *" (Europe/Berlin); the next Job starts at 2026-01-02T01:',
            "2026-01-02T01:00:00Z",
        ),
        (
            {"suspend": True},
            'Its schedule is "0 2 * * *" (UTC); it is suspended, so no Job starts.',
            None,
        ),
        (
            {"schedule": "0 0 30 2 *"},
            'Its schedule is "0 0 30 2 *" (UTC); no Job starts: ',
            None,
        ),
    ],
)
def test_a_cron_job_is_explained_with_its_schedule(tmp_path, capsys, spec, sentence, next_run):
    template = {"spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}}
    nightly = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": "nightly",
            "namespace": "default",
            "creationTimestamp": "2026-01-01T08:00:00Z",
        },
        "spec": {"schedule": "0 2 * * *", "jobTemplate": template, **spec},
    }
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODES[0], nightly]}))
    main.run(["explain", str(dump), "cronjob/nightly", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "cronjob/default/nightly has no pods now."
    assert answer["findings"][0].startswith(sentence)
    assert answer["next_run"] == next_run
    assert answer["suspended"] == ("suspend" in spec)


@pytest.mark.parametrize(
    ("deadline", "then", "next_run"),
    [
        (None, "the Job that was due at 2026-01-01T09:30:00Z waits until half-1 ends (", "09:30"),
        (1200, "the Job that was due at 2026-01-01T09:30:00Z waits until half-1 ends (", "09:30"),
        (300, "the next Job is due at 2026-01-01T10:00:00Z, but waits until half-1 en", "10:00"),
    ],
)
def test_the_job_that_a_running_job_has_delayed_is_the_next(
    tmp_path, capsys, deadline, then, next_run
):
    template = {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}
    meta = {"namespace": "default", "creationTimestamp": "2026-01-01T08:00:00Z"}
    half_hourly = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {**meta, "name": "half"},
        "spec": {
            "schedule": "*/30 * * * *",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": deadline,
            "jobTemplate": {"spec": template},
        },
        "status": {
            "lastScheduleTime": "2026-01-01T09:00:00Z",
            "active": [{"kind": "Job", "namespace": "default", "name": "half-1"}],
        },
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**meta, "name": "half-1"},
        "spec": template,
        "status": {"startTime": "2026-01-01T09:00:00Z"},
    }
    newest = {  # its creation is the time of the dump
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**meta, "name": "new", "creationTimestamp": "2026-01-01T09:40:00Z"},
    }
    dump = tmp_path / "dump.json"
    items = [NODES[0], half_hourly, job, newest]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main.run(["explain", str(dump), "cronjob/half", "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert f"(UTC); {then}" in answer["findings"][0]
    assert answer["next_run"] == f"2026-01-01T{next_run}:00Z"


@pytest.mark.parametrize(
    ("policy", "conditions", "then"),
    [
        ("Allow", [], "starts at 2026-01-02T02:00:00Z."),
        (
            "Forbid",
            [],
            "is due at 2026-01-02T02:00:00Z, but waits until nightly-1 ends (concurrencyPolicy",
        ),
        (
            "Replace",
            [],
            "starts at 2026-01-02T02:00:00Z and replaces nightly-1 (concurrencyPolicy Replace).",
        ),
        (
            "Forbid",
            [{"type": "Complete", "status": "True"}],
            "starts at 2026-01-02T02:00:00Z.",
        ),
    ],
)
def test_a_running_job_of_a_cron_job_may_delay_the_next(tmp_path, capsys, policy, conditions, then):
    template = {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}
    meta = {"namespace": "default", "creationTimestamp": "2026-01-01T08:00:00Z"}
    nightly = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {**meta, "name": "nightly"},
        "spec": {
            "schedule": "0 2 * * *",
            "concurrencyPolicy": policy,
            "jobTemplate": {"spec": template},
        },
        "status": {"active": [{"kind": "Job", "namespace": "default", "name": "nightly-1"}]},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**meta, "name": "nightly-1"},
        "spec": template,
        "status": {"conditions": conditions},
    }
    dump = tmp_path / "dump.json"
    items = [NODES[0], nightly, job]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    main.run(["explain", str(dump), "cronjob/nightly", "-o", "json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert findings[0].startswith(f'Its schedule is "0 2 * * *" (UTC); the next Job {then}')


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("option", [[], ["--all-nodes"]])
def test_long_names_of_nodes_are_not_broken(tmp_path, capsys, monkeypatch, width, option):
    """Nodes with the same reason share an item; the new nodes are named first."""
    dump, pod = tmp_path / "dump.json", tmp_path / "pod.json"
    items = nodes(15, "ip-10-0-140-240.eu-central-1.compute.internal", "True")
    taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    items = [
        {**node, "spec": {"taints": taints} if at < 6 else {}} for at, node in enumerate(items)
    ]
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    pod.write_text(json.dumps(POD))
    monkeypatch.setenv("COLUMNS", str(width))
    main.run(["explain", str(dump), "--apply", str(pod), *option])
    out = capsys.readouterr().out
    shown = set(out.replace(",", " ").replace(":", " ").split())
    names = {node["metadata"]["name"] for node in items}
    assert len(names & shown) >= (15 if option else 6)
    assert out.index("infeasible nodes") > out.index("No node is large enough")
    assert ("9 nodes: " in out and "6 nodes: " in out) == (not option)
    assert len(out.splitlines()) < (110 if option else 40)


@pytest.fixture
def two_namespaces(tmp_path):
    """A dump with a pending pod of the same name in each of two namespaces."""
    pods = [{**POD, "metadata": {"name": "new", "namespace": one}} for one in ("shop", "other")]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*NODES, *pods]}))
    return str(path)


@pytest.mark.parametrize("target", ["pod/new", "pod/shop/new"])
def test_the_namespace_of_an_object_can_be_an_option(two_namespaces, target, capsys):
    assert main.run(["explain", two_namespaces, target, "-n", "shop"]) == 0
    assert capsys.readouterr().out.startswith("shop/new: priority 0, pending")


def test_the_pods_of_one_namespace_are_explained(two_namespaces, capsys):
    assert main.run(["explain", two_namespaces, "pods", "--namespace", "shop", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "1 of 1 pod of namespace shop is pending."
    assert [row["pod"] for row in found["pending"]] == ["shop/new"]


def test_the_namespace_applies_to_new_pods_without_one(two_namespaces, tmp_path, capsys):
    new = tmp_path / "new.json"
    new.write_text(json.dumps({**POD, "metadata": {"name": "newer"}}))
    assert main.run(["explain", two_namespaces, "--apply", str(new), "-n", "shop"]) == 0
    assert capsys.readouterr().out.startswith("shop/newer: priority 0, pending")
