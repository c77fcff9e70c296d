"""The exit status of the planning commands is 1 if the plan is not possible."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import COMMANDS, run


def node(name: str, zone: str) -> dict:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, cpu: str, **spec: object) -> dict:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": name},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"containers": [container], **spec},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def small() -> list[dict]:
    """A cluster with eight cores, of which one is requested."""
    return [node("a", "1"), node("b", "2"), pod("p", "1", nodeName="a")]


def large() -> list[dict]:
    """Neither node has room for the pod of the other node."""
    return [*small(), pod("q", "4", nodeName="b")]


def waiting() -> list[dict]:
    """A pod waits that is larger than each node."""
    return [*small(), pod("w", "9")]


def with_budget() -> list[dict]:
    """The disruption budget of the only pod allows no eviction."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}
    meta = {"name": "p", "namespace": "default"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta}
    status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    return [*small(), {**budget, "spec": spec, "status": status}]


@pytest.mark.parametrize(
    ("objects", "arguments", "code"),
    [
        pytest.param(small, "drain-plan --nodes a", 0, id="a drain"),
        pytest.param(large, "drain-plan --nodes a", 1, id="a drain without room"),
        pytest.param(with_budget, "drain-plan --nodes a", 1, id="a drain against a budget"),
        pytest.param(with_budget, "drain-plan --nodes a --nodes b", 1, id="one of two nodes"),
        pytest.param(with_budget, "drain-plan", 0, id="which node can be drained: b, not a"),
        pytest.param(large, "drain-plan", 1, id="no node can be drained"),
        pytest.param(small, "upgrade-check --surge 0", 0, id="an upgrade"),
        pytest.param(with_budget, "upgrade-check", 1, id="an upgrade against a budget"),
        pytest.param(small, "fit --like pod/default/p", 0, id="one more pod"),
        pytest.param(small, "fit --like pod/default/p --max-limit 7", 0, id="seven more pods"),
        pytest.param(small, "fit --like pod/default/p --max-limit 8", 1, id="eight more pods"),
        pytest.param(large, "fit --like pod/default/q", 1, id="no room for one more pod"),
        pytest.param(small, "size", 0, id="nodes for everything"),
        pytest.param(small, "size --survive zone", 0, id="nodes that survive a zone"),
        pytest.param(large, "consolidate", 0, id="no node can be removed"),
    ],
)
def test_the_exit_status_states_whether_the_plan_is_possible(
    objects, arguments, code, tmp_path, capsys
):
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
    command, *options = arguments.split()
    assert run([command, str(dump), *options]) == code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("objects", "arguments", "has_note"),
    [
        (large, "drain-plan --nodes a", True),
        (small, "drain-plan --nodes a", False),
        (large, "drain-plan", True),
        (small, "drain-plan", False),
        (large, "upgrade-check --surge 0", True),
        (small, "upgrade-check --surge 0", False),
        (large, "fit --like pod/default/q", True),
        (small, "fit --like pod/default/p --max-limit 1", False),
        (small, "size", True),
        (large, "consolidate", True),
        (waiting, "rebalance", True),
        (small, "rebalance", False),
    ],
)
def test_a_plan_says_that_karpenter_is_not_simulated_if_it_matters(
    objects, arguments, has_note, tmp_path, capsys
):
    """Karpenter adds nodes for pods that fit on no node, and chooses the nodes that it removes.

    Another note is about nodes that it has already requested.
    """
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}}
    dump = tmp_path / "dump.json"
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "x"}}
    items = [*objects(), pool, claim]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    command, *options = arguments.split()
    run([command, str(dump), *options, "-o", "json"])
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("NodePools of Karpenter" in one for one in notes) == has_note
    assert any(one.startswith("NodeClaim x has no Node yet") for one in notes) == has_note


def test_an_unsafe_drain_plan_states_what_keeps_the_workload_running(tmp_path, capsys):
    """Both replicas of web are on the drained node; p has one replica, so the plan ignores it."""
    selector = {"matchLabels": {"app": "web"}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"replicas": 2, "selector": selector},
    }
    pods = [pod("web", "1", nodeName="a") for _ in range(2)]
    for number, one in enumerate(pods):
        one["metadata"]["name"] = f"web-{number}"
        one["metadata"]["ownerReferences"][0] |= {"uid": "web"}
    dump = tmp_path / "dump.json"
    items = [*small(), web, *pods]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert run(["drain-plan", str(dump), "--nodes", "a", "-o", "json"]) == 1
    [stopped] = json.loads(capsys.readouterr().out)["stopped"]
    assert (stopped["workload"], stopped["why"]) == ("rs/default/web", "all its pods are on a")
    assert stopped["edit"].startswith("kubectl -n default create pdb web --selector app=web")


@pytest.mark.parametrize("command", ["drain-plan --nodes a", "upgrade-check --nodes a"])
def test_a_plan_states_that_it_assumes_unready_pods_to_become_ready(tmp_path, capsys, command):
    objects = small()
    conditions = [{"type": name, "status": "False"} for name in ("Ready", "ContainersReady")]
    objects[2]["status"]["conditions"] = conditions
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    name, *options = command.split()
    run([name, str(dump), *options, "-o", "json"])
    note = "1 pod that is not ready in the dump is assumed to become ready when created again: "
    assert f"{note}default/p." in json.loads(capsys.readouterr().out)["notes"]


def test_a_pod_larger_than_all_types_has_exit_status_1(tmp_path, capsys):
    dump = tmp_path / "dump.json"
    pending = pod("p", "9")
    pending["status"] = {"phase": "Pending"}
    items = [node("a", "1"), pending]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert run(["size", str(dump)]) == 1, capsys.readouterr().out


@pytest.mark.parametrize("name", ["drain-plan", "upgrade-check", "fit", "size"])
def test_the_help_states_the_exit_status(name):
    text = next(one.exit_codes for one in COMMANDS if one.name == name)
    assert "; 1 " in text


@pytest.mark.parametrize(
    ("label", "causes"),
    [
        ("karpenter.sh/nodepool", []),
        ("cloud.google.com/gke-nodepool", []),
        ("pool", ["local"]),
    ],
)
def test_local_storage_keeps_no_node_of_karpenter_and_gke(tmp_path, capsys, label, causes):
    objects = small()
    for one in objects:
        if one["kind"] == "Node":
            one["metadata"].setdefault("labels", {})[label] = "default"
        elif one["kind"] == "Pod":
            one["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    run(["consolidate", str(dump), "-o", "json"])
    blockers = json.loads(capsys.readouterr().out)["blockers"]
    assert [one["why"].split()[0] for one in blockers] == causes
