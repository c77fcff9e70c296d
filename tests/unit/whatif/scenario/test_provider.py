"""A scenario's cloud provider: provisioning times and missing capacity."""

from __future__ import annotations

import pytest
import yaml

from fairlead.apiserver.kind import NODE
from fairlead.engine.core.instant import to_seconds
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

ZONE = "topology.kubernetes.io/zone"
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
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}]
            },
        },
    },
}
POOL = {
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
        "disruption": {"consolidateAfter": "Never"},
    },
}
GROUPS = {
    "node-groups": [
        {"name": f"group-{zone}", "min": 1, "max": 8, "labels": {ZONE: zone}, "price": price}
        for zone, price in (("zone-a", 0.2), ("zone-b", 0.3))
    ],
    "flags": {"expander": "price"},
}
TYPES = "name,cpu,memory,zones,price\nsmall,4,16Gi,zone-a;zone-b,0.2\n"
CLUSTER_AUTOSCALER = {"autoscale": "cluster-autoscaler", "node-groups": "groups.yaml"}
KARPENTER = {"autoscale": "karpenter", "instance-types": "types.csv"}


def run(folder, settings, *events, duration="50m"):
    """Return a run with two full nodes in two zones, and a third pod after a minute."""
    (folder / "groups.yaml").write_text(yaml.safe_dump(GROUPS))
    (folder / "types.csv").write_text(TYPES)
    path = folder / "scenario.yaml"
    content = {
        "cluster": {"generated": {"nodes": 2, "zones": 2}},
        "objects": [WEB, *([POOL] if settings.get("autoscale") == "karpenter" else [])],
        "events": [{"at": "1m", "scale": "deploy/web=3"}, *events],
        "settings": settings,
        "duration": duration,
    }
    path.write_text(yaml.safe_dump(content))
    return run_experiment(experiment_of(str(path), read_scenario(str(path))))


def new_node(finished):
    """Return (zone of the only new node, seconds until it was added)."""
    [added] = [one for one in finished.outcome.autoscaling.transitions if one.came]
    [node] = [one for one in finished.store.list(NODE) if one["metadata"]["name"] == added.node]
    return node["metadata"]["labels"][ZONE], to_seconds(added.at - finished.outcome.started_at)


@pytest.mark.parametrize("settings", [CLUSTER_AUTOSCALER, KARPENTER], ids=["ca", "karpenter"])
def test_with_capacity_the_node_is_created_in_the_first_zone(tmp_path, settings):
    finished = run(tmp_path, settings)
    assert new_node(finished)[0] == "zone-a"
    assert finished.outcome.autoscaling.undelivered == {}


def test_cluster_autoscaler_backs_off_and_takes_another_group(tmp_path):
    event = {"at": "30s", "out-of-capacity": "zone-a", "for": "20m"}
    finished = run(tmp_path, CLUSTER_AUTOSCALER, event)
    zone, after = new_node(finished)
    assert zone == "zone-b"
    assert after < 300
    assert finished.outcome.autoscaling.undelivered == {"group-zone-a": 1}


def test_karpenter_launches_in_another_zone_at_once(tmp_path):
    """The offering is marked unavailable, and the next one is tried in the same launch."""
    event = {"at": "30s", "out-of-capacity": "zone=zone-a", "for": "20m"}
    finished = run(tmp_path, KARPENTER, event)
    zone, after = new_node(finished)
    assert zone == "zone-b"
    assert after < 65
    assert finished.outcome.autoscaling.undelivered == {}


def test_karpenter_retries_when_offerings_are_available_again(tmp_path):
    """A NodeClaim without capacity fails; offerings are unavailable for three minutes."""
    event = {"at": "30s", "out-of-capacity": "type=small", "for": "5m"}
    finished = run(tmp_path, KARPENTER, event)
    _, after = new_node(finished)
    assert 330 <= after < 330 + 180 + 20
    assert finished.outcome.autoscaling.undelivered == {"default": 2}


@pytest.mark.parametrize("lasts_min", [5, 10, 20])
def test_a_run_without_a_duration_waits_for_the_end_of_an_outage(tmp_path, lasts_min):
    event = {"at": "30s", "out-of-capacity": "type=small", "for": f"{lasts_min}m"}
    finished = run(tmp_path, KARPENTER, event, duration=None)
    _, after = new_node(finished)
    assert 30 <= after - 60 * lasts_min < 30 + 180 + 20
    assert not finished.outcome.pending


def test_a_run_without_a_duration_does_not_wait_for_an_endless_outage(tmp_path):
    event = {"at": "30s", "out-of-capacity": "type=small"}
    outcome = run(tmp_path, KARPENTER, event, duration=None).outcome
    assert outcome.settled
    assert len(outcome.pending) == 1
    assert to_seconds(outcome.ended_at - outcome.started_at) < 20 * 60


def test_an_outage_without_an_end_lasts(tmp_path):
    event = {"at": "30s", "out-of-capacity": "group=default"}
    finished = run(tmp_path, KARPENTER, event, duration="30m")
    assert finished.outcome.autoscaling.added == 0
    assert finished.outcome.waits[-1].until is None


@pytest.mark.parametrize(
    ("settings", "undelivered"),
    [(CLUSTER_AUTOSCALER, {"group-zone-a": 1}), (KARPENTER, {})],
    ids=["ca", "karpenter"],
)
@pytest.mark.parametrize("how", [{}, {"how": "paused"}], ids=["stopped", "paused"])
def test_no_node_is_created_in_a_failed_zone(tmp_path, settings, undelivered, how):
    event = {"at": "30s", "fail-zone": "zone-a", "for": "4m", **how}
    finished = run(tmp_path, settings, event)
    assert new_node(finished)[0] == "zone-b"
    assert finished.outcome.autoscaling.undelivered == undelivered


@pytest.mark.parametrize("settings", [CLUSTER_AUTOSCALER, KARPENTER], ids=["ca", "karpenter"])
def test_a_machine_that_starts_in_a_failing_zone_appears_when_the_zone_returns(tmp_path, settings):
    event = {"at": "1m30s", "fail-zone": "zone-a", "for": "3m"}
    finished = run(tmp_path, settings, event)
    zone, _ = new_node(finished)
    [waited] = [one for one in finished.outcome.waits if one.until != one.since]
    assert zone == "zone-a"
    assert to_seconds(waited.until - waited.since) > 3 * 60


@pytest.mark.parametrize("settings", [CLUSTER_AUTOSCALER, KARPENTER], ids=["ca", "karpenter"])
def test_a_machine_that_does_not_register_is_replaced_after_fifteen_minutes(tmp_path, settings):
    """upstream: --max-node-provision-time; Karpenter's liveness controller."""
    event = {"at": "1m30s", "fail-zone": "zone-a"}
    finished = run(tmp_path, settings, event)
    *_, came = [one for one in finished.outcome.autoscaling.transitions if one.came]
    [node] = [one for one in finished.store.list(NODE) if one["metadata"]["name"] == came.node]
    assert node["metadata"]["labels"][ZONE] == "zone-b"
    after = to_seconds(came.at - finished.outcome.started_at)
    assert 16 * 60 < after < 19 * 60


@pytest.mark.parametrize(
    ("settings", "group"), [(CLUSTER_AUTOSCALER, "group-zone-a"), (KARPENTER, "default")]
)
def test_provision_times_are_set_for_all_groups_or_for_one(tmp_path, settings, group):
    for time, low, high in (("10m", 450, 750), ({group: "4m"}, 180, 300)):
        finished = run(tmp_path, {**settings, "provision-time": time})
        [waited] = [one for one in finished.outcome.waits if one.until != one.since]
        assert low <= to_seconds(waited.until - waited.since) <= high + 30


@pytest.mark.parametrize(
    ("settings", "event", "expected"),
    [
        (
            CLUSTER_AUTOSCALER,
            "zone-c",
            "events[1].out-of-capacity: no machine that Cluster Autoscaler can create has these",
        ),
        (KARPENTER, "type=large", "no machine that Karpenter can create has these labels"),
        (KARPENTER, "zone=", "'zone=' is not key=value, such as zone=eu-1a or type=m5.large"),
        (KARPENTER, "group=defalt", "no node group 'defalt'; did you mean default? known: default"),
        ({}, "zone-a", "events[1].out-of-capacity: needs an autoscaler"),
        (
            {**KARPENTER, "provision-time": {"gpu": "3m"}},
            "zone-a",
            "settings.provision-time: no node group 'gpu'; known: default",
        ),
        ({**KARPENTER, "provision-time": {"default": "soon"}}, "zone-a", "provision-time.default"),
        ({"provision-time": "3m"}, None, "settings.provision-time: needs autoscale: cluster-"),
    ],
)
def test_bad_settings_are_refused_in_one_line(tmp_path, settings, event, expected):
    events = [] if event is None else [{"at": "30s", "out-of-capacity": event}]
    with pytest.raises(InputError) as refused:
        run(tmp_path, settings, *events)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)
