"""A run of the descheduler after other changes of the same question."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: one
  pluginConfig:
  - {name: LowNodeUtilization, args: {thresholds: {cpu: 40}, targetThresholds: {cpu: 60}}}
  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 1}}
  plugins:
"""
LOW = "    balance: {enabled: [LowNodeUtilization]}\n"
LIFE = "    deschedule: {enabled: [PodLifeTime]}\n"


@pytest.fixture
def descheduled(snapshot, make, write):
    """Ask for a run of the descheduler in a cluster with `pods` one-core pods on each node."""

    def run(plugins, pods, **change):
        owner = make.workload("ReplicaSet", "web", replicas=sum(pods.values()))
        owner["metadata"] |= {"uid": "web", "creationTimestamp": "2021-01-01T00:00:00Z"}
        objects = [owner, *map(make.node, pods)]
        for node, count in pods.items():
            for number in range(count):
                pod = make.pod(f"web-{node}{number}", node_name=node, owner="web")
                pod["metadata"] |= {"uid": f"{node}{number}", "labels": {"app": "web"}}
                pod["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
                objects.append(pod)
        policy = write("policy.yaml", POLICY + plugins)
        answer = what_if(snapshot(*objects), ClusterChange(descheduler=policy, **change))
        return [(one.pod.name, one.why) for one in answer.difference.evicted], answer.changed.notes

    return run


def test_pods_of_a_drained_node_are_not_evicted_again(descheduled):
    evicted, notes = descheduled(LIFE, {"a": 1, "b": 1, "c": 0}, drain=("a",))
    assert evicted == [("web-a0", "drain"), ("web-b0", "descheduler: PodLifeTime")]
    assert "The descheduler evicts 1 pod in one run: 1 by PodLifeTime." in notes


@pytest.mark.parametrize("cordon", [(), ("c",)])
def test_a_cordoned_node_is_no_place_for_evicted_pods(descheduled, cordon):
    """Only node c is below the thresholds."""
    evicted, _ = descheduled(LOW, {"a": 3, "b": 2, "c": 0}, cordon=cordon)
    assert len(evicted) == (0 if cordon else 1)


@pytest.mark.parametrize(("nodes", "count"), [(None, 0), (1, 1)])
def test_a_new_node_is_a_place_for_evicted_pods(descheduled, nodes, count):
    """No node of the dump is below the thresholds."""
    like = {"add_nodes": nodes, "like": "b"} if nodes else {}
    evicted, _ = descheduled(LOW, {"a": 3, "b": 2}, **like)
    assert len(evicted) == count
