"""What-ifs about another scheduler configuration, on a cluster whose pods all run."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.descheduled_pod import ORDER, RECORDED_ORDER
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import IN_BOTH_RUNS, PODS_STAY, what_if

MOST_ALLOCATED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
"""


@pytest.fixture
def ask(make, snapshot, write):
    """Ask for a packing configuration in a cluster with two pods on two nodes."""

    def run(config=MOST_ALLOCATED, **change):
        pods = [make.pod(f"p-{name}", node_name=name, owner="rs") for name in "ab"]
        pods[0]["metadata"]["labels"] = {"app": "web"}
        cluster = snapshot(make.node("a"), make.node("b"), *pods)
        config = write("config.yaml", config) if config else None
        return what_if(cluster, ClusterChange(new_config=config, **change))

    return run


def used_nodes(outcome):
    return {pod.node for pod in outcome.placed}


def test_no_difference_says_that_running_pods_stay_and_how_to_reschedule_them(ask):
    answer = ask()
    assert answer.difference.is_empty
    assert answer.changed.notes == (PODS_STAY,)
    assert "--reschedule" in PODS_STAY


def test_a_configuration_of_both_runs_is_no_change_and_the_note_says_so(make, snapshot, write):
    """The present configuration, --config, instead of --new-config."""
    running = snapshot(make.node("a"), make.pod("p", node_name="a"))
    conditions = Conditions(config=write("config.yaml", MOST_ALLOCATED))
    assert what_if(running, ClusterChange(), conditions).changed.notes == (IN_BOTH_RUNS, PODS_STAY)
    cordoned = what_if(running, ClusterChange(cordon=("a",)), conditions)
    assert cordoned.changed.notes == ()
    assert what_if(running, ClusterChange()).changed.notes == ()


def test_rescheduling_all_pods_compares_the_placements(ask):
    answer = ask(reschedule="all")
    assert len(used_nodes(answer.without)) == 2
    assert len(used_nodes(answer.changed)) == 1
    assert len(answer.difference.moved) == 1
    assert [note for note in answer.changed.notes if "become ready" not in note] == [ORDER]
    assert answer.change.words[-1] == "--reschedule all"


def test_a_selector_leaves_other_pods_in_place(ask):
    answer = ask(reschedule="app=web")
    assert answer.changed.pods["default/p-b"].node == "b"
    assert used_nodes(answer.changed) == {"b"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("web", "'web' is neither all nor a selector, such as app=web"),
        ("app=none", "app=none selects no running pod that can move"),
        ("app in (", "unable to parse requirement"),
    ],
)
def test_a_selector_that_matches_no_pod_is_refused(ask, text, problem):
    with pytest.raises(InputError, match="--reschedule") as refused:
        ask(reschedule=text)
    assert problem in str(refused.value)


def test_restarted_pods_do_not_count_as_activity_before_the_change(make, snapshot, write):
    """The workload wants its pod, which starts; the dump counts as being at rest."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["metadata"]["labels"] = {"app": "web"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": pod["metadata"]["namespace"], "uid": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": pod["spec"]["containers"]},
            },
        },
    }
    cluster = snapshot(make.node("a"), workload, pod)
    config = write("config.yaml", MOST_ALLOCATED)
    answer = what_if(cluster, ClusterChange(new_config=config, reschedule="all"))
    assert not answer.without.rest.activities
    (found,) = answer.changed.workloads.values()
    assert (found.wanted, found.at_end) == (1, 1)


def _replicated(make, name, nodes):
    """Return a ReplicaSet and its pods, one on each of `nodes`."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name}
    pods = [make.pod(f"{name}-{node}", node_name=node, owner=name) for node in nodes]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": name}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": pods[0]["spec"]["containers"]},
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": pods[0]["metadata"]["namespace"], "uid": name},
        "spec": {
            "replicas": len(pods),
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }
    return replica_set, *pods


@pytest.fixture
def two_replicas(make, snapshot):
    return snapshot(make.node("a"), make.node("b"), *_replicated(make, "web", "ab"))


def test_the_verdict_compares_the_packings_of_both_runs(two_replicas, write):
    config = write("config.yaml", MOST_ALLOCATED)
    answer = what_if(two_replicas, ClusterChange(new_config=config, reschedule="all"))
    assert answer.verdict.first.kind is OutcomeKind.REPACKED
    assert answer.verdict.first.sentence.startswith(
        "Scheduled again with the change, the pods use 1 node instead of 2, with room for "
    )
    assert answer.verdict.first.sentence.endswith("; 1 pod is on another node.")
    assert [one.kind for one in answer.verdict.findings] == [OutcomeKind.REPACKED]
    [row] = answer.effect.workloads
    assert (row.readiness.before, row.readiness.lowest, row.readiness.at_end) == (2, 2, 2)
    assert not row.is_harmed


def test_equal_packings_are_compared_with_the_dump(two_replicas):
    answer = what_if(two_replicas, ClusterChange(reschedule="all"))
    [found] = answer.verdict.findings
    assert found.sentence.startswith(
        "Scheduled again, the pods use 2 nodes with and without the change (in the dump: 2). This "
        "leaves room for "
    )
    assert answer.effect.workloads == ()


def test_a_drain_after_the_placement_has_its_own_verdict_and_no_activity(two_replicas):
    answer = what_if(two_replicas, ClusterChange(reschedule="all", drain=("a",)))
    kinds = [one.kind for one in answer.verdict.findings]
    assert kinds == [OutcomeKind.REPACKED, OutcomeKind.DISPLACED]
    assert answer.without.rest.after
    assert answer.without.rest.activities == ()
    [row] = answer.effect.workloads
    assert (row.readiness.before, row.readiness.lowest) == (2, 1)


@pytest.fixture
def recorded(make, snapshot):
    """A node for one pod of two: the cluster scheduled `first` first, and `urgent` never fitted."""
    pods = [
        make.pod("first", node_name="a", cpu="3"),
        make.pod("urgent", node_name="b", cpu="3", priority=1000, preemptionPolicy="Never"),
    ]
    for pod, second in zip(pods, (1, 2), strict=True):
        at = f"2026-01-01T00:00:0{second}Z"
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
        pod["status"]["conditions"] = [scheduled]
    nodes = [make.node("a"), make.node("b")]
    nodes[1]["spec"] = {"unschedulable": True}
    return snapshot(*nodes, *pods)


@pytest.mark.parametrize(
    ("order", "pending", "note"),
    [("priority", "first", ORDER), ("scheduled", "urgent", RECORDED_ORDER)],
)
def test_pods_are_placed_in_the_stated_order(recorded, order, pending, note):
    answer = what_if(recorded, ClusterChange(reschedule="all", reschedule_order=order))
    waiting = [key for key, pod in answer.changed.pods.items() if not pod.node]
    assert waiting == [f"default/{pending}"]
    assert note in answer.changed.notes
    assert answer.difference.is_empty


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"reschedule_order": "scheduled"}, "needs --reschedule"),
        ({"reschedule": "all", "reschedule_order": "age"}, "'age' is not priority or scheduled"),
        (
            {"reschedule": "all", "reschedule_order": "scheduled", "drain": ("a",)},
            "scheduled cannot be combined with a change other than --new-config",
        ),
    ],
)
def test_an_order_that_cannot_be_kept_is_refused(recorded, change, problem):
    with pytest.raises(InputError, match="--reschedule-order") as refused:
        what_if(recorded, ClusterChange(**change))
    assert problem in str(refused.value)
