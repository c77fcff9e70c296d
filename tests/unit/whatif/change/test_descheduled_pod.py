"""What-ifs about another scheduler configuration, on a cluster whose pods all run."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.descheduled_pod import ORDER
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import IN_BOTH_RUNS, PODS_STAY, Conditions, what_if

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
    return {pod.node for pod in outcome.placed()}


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
def test_what_selects_nothing_is_refused(ask, text, problem):
    with pytest.raises(InputError, match="--reschedule") as refused:
        ask(reschedule=text)
    assert problem in str(refused.value)


def test_pods_that_start_anew_are_the_outcome_and_not_activity_before_it(make, snapshot, write):
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
