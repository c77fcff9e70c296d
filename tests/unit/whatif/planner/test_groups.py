"""Plans start gangs as a whole: a gang that cannot start takes no room."""

from __future__ import annotations

import pytest

from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import Release
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import fit, fit_answer
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.planner.plan_note import plan_notes, rules_notes, with_simulation
from fairlead.whatif.planner.waiting_pods import WaitingPodCounts
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory

ON = default_config(Release(gates={"GenericWorkload": True, "GangScheduling": True}), {})
OFF = default_config(Release(), {})


def gang(make, minimum, number=4):
    """A PodGroup with `number` waiting pods of one core, of a ReplicaSet."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
    }
    in_group = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [make.pod(f"g-{n}", owner="g", priority=5, **in_group) for n in range(number)]
    owner = make.workload("ReplicaSet", "g", replicas=number, **in_group)
    owner["metadata"]["uid"] = "g"
    return [owner, group, *pods]


def fitted(read, config):
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    return fit(ClusterModel(read, config), source, NoProgress(), 100)


@pytest.mark.parametrize(
    ("config", "minimum", "waiting", "count"),
    [
        (ON, 4, WaitingPodCounts(without_node=4), 3),
        (ON, 3, WaitingPodCounts(placed=3, without_node=1), 0),
        (OFF, 4, WaitingPodCounts(placed=3, without_node=1), 0),
    ],
    ids=["the gang does not fit", "the gang fits", "the gate is off"],
)
def test_a_waiting_gang_takes_room_only_if_it_can_start(
    snapshot, make, config, minimum, waiting, count
):
    objects = [make.node(cpu="3"), *gang(make, minimum), make.workload(replicas=0)]
    found = fitted(snapshot(*objects), config)
    assert (found.waiting, found.count) == (waiting, count)


def test_a_gang_that_cannot_start_preempts_no_pods(snapshot, make):
    low = make.pod("low", node_name="n", owner="low", priority=1)
    objects = [make.node(cpu="3"), low, *gang(make, 4), make.workload(replicas=0)]
    found = fitted(snapshot(*objects), ON)
    assert (found.waiting, found.count) == (WaitingPodCounts(without_node=4), 2)


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        (ON, [(4, "its PodGroup cannot start now: 3 of the 4 waiting pods of default/g fit")]),
        (
            OFF,
            [
                (3, "the scheduler has not tried it yet; they would go to n"),
                (1, "Insufficient cpu"),
            ],
        ),
    ],
)
def test_a_workload_says_that_its_gang_cannot_start(snapshot, make, config, rows):
    read = snapshot(make.node(cpu="3"), *gang(make, 4))
    answer = explain_object(read, "rs/g", config, NO_CHOICE)
    assert [(row["pods"], row["why"]) for row in answer.tables[0].rows] == rows
    assert any("PodGroups of scheduling.k8s.io have no effect" in one for one in answer.notes) is (
        config is OFF
    )


def test_a_workload_of_volcano_does_not_promise_room_for_its_pods(snapshot, make):
    pods = [make.pod(f"v-{n}", owner="v", schedulerName="volcano") for n in range(2)]
    owner = make.workload("ReplicaSet", "v", replicas=2, schedulerName="volcano")
    owner["metadata"]["uid"] = "v"
    read = snapshot(make.node(), owner, *pods)
    answer = explain_object(read, "rs/v", OFF, NO_CHOICE)
    (row,) = answer.tables[0].rows
    assert row["why"] == (
        "volcano starts it only with its group, for example: explain pod/default/v-0"
    )
    assert plan_notes(read, ClusterModel(read, OFF), NO_CHOICE)[-1] == (
        "2 waiting pods of the batch scheduler are not placed here, because they start only in "
        "groups."
    )


def test_the_notes_about_moved_and_waiting_pods_of_volcano_agree(snapshot, make):
    read = snapshot(
        make.node("n"),
        make.pod("v-0", node_name="n", schedulerName="volcano"),
        make.pod("v-1", schedulerName="volcano"),
    )
    model = ClusterModel(read, OFF)
    waiting = plan_notes(read, model, NO_CHOICE)[-1]
    assert rules_notes(model) == ()
    assert waiting.startswith("1 waiting pod of the batch scheduler is not placed here")
    running = next(pod for pod in model.pods() if pod.pod.spec.node_name)
    model.remove(running)
    model.schedule(model.replacement(running))
    note = "Pods with schedulerName volcano follow kube-scheduler's rules here."
    assert rules_notes(model) == (note,)


def test_waiting_pods_of_another_scheduler_with_bound_pods_are_placed_first(snapshot, make):
    pods = [make.pod("a", node_name="n", schedulerName="x"), make.pod("b", schedulerName="x")]
    found = fitted(snapshot(make.node(cpu="3"), *pods, make.workload(replicas=0)), OFF)
    assert (found.waiting, found.count) == (WaitingPodCounts(placed=1), 1)


@pytest.mark.parametrize(
    ("minimum", "waiting"),
    [
        (2, WaitingPodCounts(without_node=1)),
        (1, WaitingPodCounts(placed=1, preempted=1, lost=1)),
    ],
)
def test_a_preempted_member_no_longer_counts_towards_the_minimum(snapshot, make, minimum, waiting):
    """A waiting member fits only if it preempts the running one."""
    [owner, group, pod] = gang(make, minimum, 1)
    in_group = {"schedulingGroup": {"podGroupName": "g"}}
    running = make.pod("g-low", node_name="n", owner="g", priority=1, **in_group)
    objects = [make.node(cpu="1"), owner, group, running, pod, make.workload(replicas=0)]
    assert fitted(snapshot(*objects), ON).waiting == waiting


def test_a_waiting_member_that_is_preempted_is_counted_once(snapshot, make):
    """The gang's member of low priority is placed with the gang, then a waiting pod preempts it."""
    [owner, group, *pods] = gang(make, 1, 2)
    pods[0]["spec"]["priority"] = 1
    middle = make.pod("middle", owner="middle", priority=3)
    objects = [make.node(cpu="2"), owner, group, *pods, middle, make.workload(replicas=0)]
    assert fitted(snapshot(*objects), ON).waiting == WaitingPodCounts(placed=2, without_node=1)


@pytest.mark.parametrize(
    ("config", "labels", "group"),
    [
        (ON, {}, "default/g"),
        (OFF, {}, ""),
        (OFF, {"scheduling.x-k8s.io/pod-group": "cos"}, "default/cos"),
    ],
)
def test_new_pods_of_a_group_are_said_to_start_only_with_it(snapshot, make, config, labels, group):
    [owner, pod_group, waiting] = gang(make, 1, 1)
    template = owner["spec"]["template"]
    template["metadata"]["labels"] |= labels
    if labels:
        template["spec"].pop("schedulingGroup")
    read = snapshot(make.node(cpu="3"), owner, pod_group, waiting)
    source = pod_source(None, "rs/g", "", Inventory(read.manifests))
    model = ClusterModel(read, config)
    found = fit(model, source, NoProgress(), 100)
    assert (found.count, found.group) == (2, group)
    says = any(
        "start only with it" in one for one in fit_answer(found, source, model, "", ()).findings
    )
    assert says == bool(group)


def test_groups_that_wait_may_start_in_simulated_drains(snapshot, make):
    """The simulation runs the batch scheduler, so the pods that a plan does not place may start."""
    read = snapshot(make.node("n"), make.pod("v-0", schedulerName="volcano"))
    *others, waiting = plan_notes(read, ClusterModel(read, OFF), NO_CHOICE)
    assert list(with_simulation([*others, waiting])) == [
        *others,
        f"{waiting} In the simulated drains, such groups may start and take room.",
    ]
