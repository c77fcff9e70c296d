"""`settings.autoscale` of a scenario: nodes are added and removed as the load changes."""

from __future__ import annotations

from copy import deepcopy

import pytest
import yaml

from fairlead.api.json import Json
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
            },
        },
    },
}
POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
                ],
                "nodeClassRef": {"group": "x", "kind": "NodeClass", "name": "z"},
                "expireAfter": "Never",
            }
        },
        "disruption": {"consolidateAfter": "1m", "budgets": [{"nodes": "100%"}]},
    },
}
GROUPS = {"node-groups": [{"name": "a", "min": 1, "max": 8, "labels": {"pool": "a"}, "price": 0.2}]}
TYPES = "name,cpu,memory,price\nsmall,4,16Gi,0.2\n"


HEAVY: Json = deepcopy(POOL)
HEAVY["spec"]["weight"] = 1000


def scenario(folder, settings, *objects, duration="2h", events=()):
    """A node, a Deployment that grows after a minute and shrinks after half an hour."""
    (folder / "groups.yaml").write_text(yaml.safe_dump(GROUPS))
    (folder / "types.csv").write_text(TYPES)
    (folder / "pools.yaml").write_text(yaml.safe_dump(POOL))
    path = folder / "scenario.yaml"
    content = {
        "cluster": {"generated": {"nodes": 1, "labels": {"pool": "a"}}},
        "objects": [WEB, *objects],
        "events": [
            {"at": "1m", "scale": "deploy/web=12"},
            {"at": "30m", "scale": "deploy/web=2"},
            *events,
        ],
        "settings": settings,
    }
    if duration:
        content["duration"] = duration
    path.write_text(yaml.safe_dump(content))
    return str(path)


def run(path):
    return run_experiment(experiment_of(path, read_scenario(path)))


def test_cluster_autoscaler_follows_the_load(tmp_path):
    settings = {"autoscale": "cluster-autoscaler", "node-groups": "groups.yaml"}
    outcome = run(scenario(tmp_path, settings)).outcome.autoscaling
    [group] = outcome.groups
    assert (group.added, group.removed, group.after) == (2, 2, 1)
    assert [one.came for one in outcome.transitions] == [True] * 2 + [False] * 2


@pytest.mark.parametrize("failure", [{"fail-node": "pool=a"}, {"fail-fraction": "100%"}])
def test_nodes_of_the_autoscaler_fail_and_return(tmp_path, failure):
    settings = {"autoscale": "cluster-autoscaler", "node-groups": "groups.yaml"}
    events = [{"at": "10m", "for": "3m", **failure}]
    outage = run(scenario(tmp_path, settings, duration="20m", events=events)).outcome.outage
    assert len(outage.nodes) == 3
    assert {one.back_at for one in outage.nodes} == {parse_timestamp("2026-01-01T00:13:00Z")}


def test_nodes_of_the_autoscaler_are_drained(tmp_path):
    settings = {"autoscale": "cluster-autoscaler", "node-groups": "groups.yaml"}
    events = [{"at": "10m", "drain": "pool=a"}]
    found = run(scenario(tmp_path, settings, duration="20m", events=events))
    drained = [one for one in found.store.list(NODE) if one["spec"].get("unschedulable")]
    assert len(drained) == 3


def test_karpenter_follows_the_load(tmp_path):
    settings = {"autoscale": "karpenter", "instance-types": "types.csv", "provision-time": "40s"}
    at_peak = run(scenario(tmp_path, settings, POOL, duration="20m"))
    later = run(scenario(tmp_path, settings, POOL))
    count = len(at_peak.store.list(NODE))
    assert count >= 3
    assert len(later.store.list(NODE)) < count


def test_karpenter_removes_generated_nodes_of_its_pool(tmp_path):
    """They have no NodeClaim, so Karpenter labels them as initialized when it adopts them."""
    settings = {"autoscale": "karpenter", "instance-types": "types.csv"}
    path = tmp_path / scenario(tmp_path, settings, POOL)
    content = yaml.safe_load(path.read_text())
    labels = {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "small"}
    labels["karpenter.sh/capacity-type"] = "on-demand"
    content["cluster"]["generated"] = {"nodes": 3, "zones": ["z"], "labels": labels}
    content["events"] = [{"at": "30m", "scale": "deploy/web=1"}]
    path.write_text(yaml.safe_dump(content))
    found = run(str(path)).outcome.autoscaling
    assert (found.removed, found.nodes_after) == (2, 1)


def test_auto_is_the_autoscaler_of_the_cluster(tmp_path):
    nothing = run(scenario(tmp_path, {"autoscale": "auto"}))
    assert len(nothing.store.list(NODE)) == 1
    assert "--autoscale auto" in " ".join(nothing.outcome.notes)
    groups = run(scenario(tmp_path, {"autoscale": "auto", "node-groups": "groups.yaml"}))
    assert groups.outcome.autoscaling.added == 2


def test_without_autoscale_no_node_is_added(tmp_path):
    finished = run(scenario(tmp_path, {}, POOL, duration="10m"))
    assert len(finished.store.list(NODE)) == 1
    assert finished.outcome.autoscaling is None


@pytest.mark.parametrize(
    ("choice", "note"),
    [
        (
            False,
            (
                "settings.node-groups, settings.instance-types, settings.node-pools, "
                "settings.provision-time have no effect with autoscale: off."
            ),
        ),
        ("cluster-autoscaler", "settings.node-pools has no effect with autoscale: cluster-autosc"),
        ("karpenter", "settings.node-groups has no effect with autoscale: karpenter."),
    ],
    ids=["off without quotes", "Cluster Autoscaler", "Karpenter"],
)
def test_settings_of_other_autoscalers_have_no_effect(tmp_path, choice, note):
    """Therefore a sweep can vary the autoscaler of a scenario."""
    settings = {
        "autoscale": choice,
        "node-groups": "groups.yaml",
        "instance-types": "types.csv",
        "node-pools": "pools.yaml",
        "provision-time": "1m",
    }
    outcome = run(scenario(tmp_path, settings)).outcome
    assert any(one.startswith(note) for one in outcome.notes)
    assert (outcome.autoscaling is None) == (choice is False)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"autoscale": "karpentre"}, "settings.autoscale: no autoscaler 'karpentre'"),
        ({"node-groups": "groups.yaml"}, "settings.node-groups: needs autoscale: cluster-"),
        ({"instance-types": "types.csv"}, "settings.instance-types: needs autoscale: cluster-"),
        ({"autoscale": "karpenter"}, "contains no NodePool"),
        (
            {"autoscale": "cluster-autoscaler", "node-groups": "nowhere.yaml"},
            "/scenario.yaml: settings.node-groups: ",
        ),
        (
            {"autoscale": "karpenter", "node-pools": "pools.yaml", "instance-types": "no.csv"},
            "/scenario.yaml: settings.instance-types: ",
        ),
        (
            {"autoscale": "karpenter", "node-pools": "groups.yaml"},
            "/scenario.yaml: settings.node-pools: ",
        ),
        (
            {"autoscale": "cluster-autoscaler"},
            "/scenario.yaml: settings.autoscale: no node has a label of a node group",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_line(tmp_path, settings, expected):
    with pytest.raises(InputError) as refused:
        run(scenario(tmp_path, settings))
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("objects", "event", "field"),
    [
        ((), {"at": "1m", "create": HEAVY}, "create"),
        ((POOL,), {"at": "1m", "patch": {"target": "nodepool/default", "merge": HEAVY}}, "patch"),
    ],
    ids=["created", "patched"],
)
def test_an_invalid_node_pool_is_refused_without_karpenter(tmp_path, objects, event, field):
    path = scenario(tmp_path, {}, *objects, events=[event])
    problem = rf"events\[2\]\.{field}.*: NodePool default: spec\.weight: 1000 is not from 1 to 100"
    with pytest.raises(InputError, match=problem):
        experiment_of(path, read_scenario(path))
