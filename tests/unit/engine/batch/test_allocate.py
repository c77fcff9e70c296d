"""The action allocate: the order of queues, jobs and tasks, and gangs that start as a whole."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.actions.allocate import Allocate
from fairlead.engine.batch.configuration_file import KUBE_BATCH_DEFAULT, shipped_configuration
from fairlead.engine.batch.defect import FIXED, UPSTREAM, BatchDefects, Defect
from fairlead.engine.core.command import PatchObject
from fairlead.testing.batch_builders import (
    make_gang,
    make_group,
    make_priority_class,
    make_queue,
    make_task,
)
from fairlead.testing.builders import make_node
from fairlead.testing.storage_builders import (
    make_claim,
    make_claim_volumes,
    make_storage_class,
    make_volume,
)


def test_a_gang_that_fits_is_bound_as_a_whole(harness):
    found = harness.put(make_node("n1"), make_node("n2"), make_gang("g", 6)).run()
    assert sorted(found.bound) == [f"g-{i}" for i in range(6)]
    assert sorted(found.bound.values()) == ["n1"] * 3 + ["n2"] * 3


def test_a_gang_that_does_not_fit_is_not_bound_and_uses_no_resources(harness, statuses):
    found = harness.put(make_node("n1"), make_gang("g", 6)).run()
    assert found.bound == {}
    assert statuses(harness, "g") == {"PENDING": 6}
    assert harness.cluster.table.find("n1").pods == {}


def test_pods_without_a_group_start_in_the_order_of_their_creation(harness):
    second = {"creation_timestamp": "1970-01-01T00:00:02Z"}
    third = {"creation_timestamp": "1970-01-01T00:00:03Z"}
    harness.put(make_node("n1", cpu=1), make_task("a", meta=third), make_task("b", meta=second))
    assert harness.run().bound == {"b": "n1"}


SCHEDULING_GROUP = {"spec": {"schedulingGroup": {"podGroupName": "g"}}}
LABEL = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
ANNOTATION = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


@pytest.mark.parametrize(
    ("api", "spec", "mark"),
    [
        ("scheduling.incubator.k8s.io/v1alpha1", {}, ANNOTATION),
        ("scheduling.sigs.dev/v1alpha2", {}, ANNOTATION),
        ("scheduling.volcano.sh/v1beta1", {}, ANNOTATION),
        ("scheduling.x-k8s.io/v1alpha1", {}, LABEL),
        ("scheduling.k8s.io/v1alpha2", GANG, SCHEDULING_GROUP),
    ],
)
def test_a_group_of_any_api_is_a_gang(api, spec, mark, harness):
    """Neither member starts alone; both start once both exist."""
    harness.put(make_node("n1"), make_group("g", 0 if spec else 2, api=api, **spec))
    assert harness.put(make_task("a", **mark)).run().bound == {}
    assert harness.put(make_task("b", **mark)).run().bound == {"a": "n1", "b": "n1"}


def test_a_smaller_gang_behind_one_that_does_not_fit_is_bound(harness):
    found = harness.put(make_node("n1"), make_gang("a-large", 6), make_gang("b-small", 4)).run()
    assert sorted(found.bound) == [f"b-small-{i}" for i in range(4)]


def test_a_partly_placed_gang_of_kube_batch_blocks_other_gangs(make_harness):
    harness = make_harness("kube-batch", defects=UPSTREAM).put(
        make_queue("default"), make_node("n1")
    )
    found = harness.put(make_gang("a-large", 6), make_gang("b-small", 4)).run()
    assert found.bound == {}


def test_members_beyond_the_minimum_are_bound_while_they_fit(harness):
    found = harness.put(make_node("n1"), make_gang("g", 6, min_member=2)).run()
    assert len(found.bound) == 4


def test_a_gang_with_too_few_pods_is_not_scheduled_and_gets_a_condition(harness):
    harness.put(make_node("n1"), make_group("g", 3), make_task("p", "g"))
    found = harness.run()
    assert found.bound == {}
    condition = found.patches["PodGroup", "g"].conditions[0]
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughTasks")
    assert condition.message.endswith("valid: 1, min: 3")
    assert [one.reason for one in found.reports["g"].conditions] == ["NotEnoughTasks"]


def test_a_pod_without_a_group_is_a_gang_of_one_member(harness):
    assert harness.put(make_node("n1"), make_task("p")).run().bound == {"p": "n1"}


def test_pods_of_other_schedulers_are_not_bound(harness):
    harness.put(make_node("n1"), make_task("p", scheduler="default-scheduler"))
    assert harness.run().bound == {}
    assert harness.jobs.jobs == {}


def test_gated_pods_wait_and_do_not_count(harness, statuses):
    gated = make_task("g-1", "g", spec={"schedulingGates": [{"name": "wait"}]})
    harness.put(make_node("n1"), make_group("g", 2), make_task("g-0", "g"), gated)
    assert harness.run().bound == {}
    assert statuses(harness, "g") == {"PENDING": 1, "GATED": 1}
    harness.put(make_task("g-1", "g"))
    assert len(harness.run().bound) == 2


def test_pods_of_a_missing_group_are_not_bound(harness):
    harness.put(make_node("n1"), make_task("p", "g"))
    assert harness.run().bound == {}
    assert harness.put(make_group("g", 1)).run().bound == {"p": "n1"}


def test_jobs_of_a_missing_queue_are_not_bound(harness):
    harness.put(make_node("n1"), make_gang("g", 1, queue="q"))
    assert harness.run().bound == {}
    assert harness.put(make_queue("q")).run().bound == {"g-0": "n1"}


def test_jobs_of_a_closed_queue_are_not_bound(harness):
    harness.put(make_node("n1"), make_queue("q", state="Closed"), make_gang("g", 1, queue="q"))
    assert harness.run().bound == {}


def test_the_default_queue_needs_an_object_only_in_kube_batch(harness, make_harness):
    assert harness.put(make_node("n1"), make_gang("g", 1)).run().bound
    assert not make_harness("kube-batch").put(make_node("n1"), make_gang("g", 1)).run().bound


def test_the_job_of_higher_priority_is_scheduled_first(harness):
    harness.put(make_priority_class("high", 10), make_node("n1"))
    harness.put(make_gang("a", 4), make_gang("b", 4, priority_class="high"))
    assert sorted(harness.run().bound) == [f"b-{i}" for i in range(4)]


def test_groups_without_a_priority_class_use_the_global_default(harness):
    harness.put(make_priority_class("normal", 5, default=True), make_priority_class("low", 1))
    harness.put(make_node("n1"), make_gang("a", 4, priority_class="low"), make_gang("b", 4))
    assert sorted(harness.run().bound) == [f"b-{i}" for i in range(4)]


def test_within_a_job_the_task_of_higher_priority_is_scheduled_first(harness):
    pods = [make_task(f"g-{i}", "g", cpu=3, priority=i) for i in range(3)]
    assert harness.put(make_node("n1"), make_group("g", 1), pods).run().bound == {"g-2": "n1"}


def test_the_job_with_the_smaller_share_is_scheduled_first(make_harness):
    harness = make_harness(
        'actions: "allocate"\ntiers: [{plugins: [{name: drf}, {name: predicates}]}]'
    )
    harness.put(make_queue("default"), make_node("n1", cpu="4"))
    harness.put(make_gang("a", 3, min_member=1), make_gang("b", 1))
    harness.put(make_task("a-run", "a", node="n1"))
    bound = harness.run().bound
    assert "b-0" in bound
    assert len(bound) == 3


def test_queues_share_by_weight(harness):
    harness.put(make_queue("q1", 3), make_queue("q2", 1), make_node("n1", cpu="8"))
    harness.put(
        make_gang("a", 8, min_member=1, queue="q1"), make_gang("b", 8, min_member=1, queue="q2")
    )
    bound = harness.run().bound
    assert sum(name.startswith("a-") for name in bound) == 6
    assert sum(name.startswith("b-") for name in bound) == 2


def test_a_queue_may_use_the_unused_share_of_another_queue(harness):
    harness.put(make_queue("q1", 3), make_queue("q2", 1), make_node("n1", cpu="8"))
    harness.put(make_gang("a", 1, queue="q1"), make_gang("b", 8, min_member=1, queue="q2"))
    bound = harness.run().bound
    assert sum(name.startswith("b-") for name in bound) == 7


def test_a_queue_of_best_effort_tasks_does_not_delay_other_queues(harness):
    harness.put(make_queue("a"), make_queue("b"), make_node("n1"))
    harness.put(make_gang("nothing", 1, queue="a", cpu=0), make_gang("g", 1, queue="b"))
    Allocate().execute(harness.session())
    assert (harness.job("nothing").ready_count, harness.job("g").ready_count) == (0, 1)


def test_a_queue_whose_job_does_not_fit_does_not_delay_other_queues(harness):
    harness.put(make_queue("a"), make_queue("b"), make_node("n1"))
    harness.put(make_gang("large", 1, queue="a", cpu=8), make_gang("g", 1, queue="b"))
    Allocate().execute(harness.session())
    assert (harness.job("large").ready_count, harness.job("g").ready_count) == (0, 1)


def test_the_guarantee_of_a_queue_is_reserved_for_the_queue(harness):
    harness.put(make_queue("q1", guarantee={"resource": {"cpu": "3", "memory": "3Gi"}}))
    harness.put(make_node("n1", cpu="4", memory="4Gi"), make_gang("b", 4, min_member=1))
    assert len(harness.run().bound) == 1


@pytest.mark.parametrize("configuration", ["fairlead", "kube-batch", "volcano"])
def test_the_guarantee_of_a_single_resource_is_reserved(make_harness, configuration):
    """Queue a has used up its share of the GPUs, but not of the CPUs."""
    harness = make_harness(configuration).put(make_queue("a"))
    harness.put(make_queue("q", guarantee={"resource": {"nvidia.com/gpu": "3"}}))
    harness.put(make_node("n1", cpu="64", devices={"nvidia.com/gpu": "4"}))
    gpu = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}
    containers = [{"name": "main", "image": "app", "resources": gpu}]
    harness.put(make_gang("g", 4, min_member=1, queue="a", spec={"containers": containers}))
    assert len(harness.run().bound) == 1


@pytest.mark.parametrize(("configuration", "bound"), [("kube-batch", 4), ("volcano", 2)])
def test_in_volcano_tasks_must_fit_into_the_share_of_their_queue(
    make_harness, configuration, bound
):
    """Queue a has more than its share of memory left, and the gang of queue b does not fit."""
    defects = shipped_configuration(configuration).defects
    harness = make_harness(configuration, defects=defects).put(make_queue("a"), make_queue("b"))
    harness.put(make_node("n1", memory="64Gi"), make_gang("large", 8, queue="b"))
    harness.put(make_gang("g", 4, min_member=1, queue="a"))
    assert len(harness.run().bound) == bound


def test_a_queue_never_exceeds_its_capability(harness):
    harness.put(make_queue("q", capability={"cpu": "2"}), make_node("n1"))
    harness.put(make_gang("g", 4, min_member=1, queue="q"))
    assert len(harness.run().bound) == 2


def test_the_capability_of_a_parent_limits_its_children(harness):
    harness.put(make_queue("org", capability={"cpu": "2"}), make_queue("q", parent="org"))
    harness.put(make_node("n1"), make_gang("g", 4, min_member=1, queue="q"))
    assert len(harness.run().bound) == 2


def test_idle_resources_are_preferred_to_releasing_resources(harness):
    """The best node only has releasing resources; another one has idle ones."""
    harness.put(make_node("n1", cpu="2"), make_node("n2", cpu="4"))
    harness.put(make_task("old", node="n1", cpu=2, terminating=True), make_task("full", node="n2"))
    harness.put(make_gang("g", 1, cpu=2))
    assert harness.run().bound == {"g-0": "n2"}


def test_a_task_on_releasing_resources_is_pipelined_and_not_bound(harness):
    harness.put(make_node("n1", cpu="2"), make_task("old", node="n1", cpu=2, terminating=True))
    harness.put(make_gang("g", 2))
    found = harness.run()
    assert found.bound == {}
    assert "waiting" not in found.events
    assert harness.cluster.table.find("n1").pods.keys() == {"uid-old"}


def test_a_pipelined_member_does_not_end_the_turn_of_its_job(harness, statuses):
    harness.put(make_node("n1", cpu="2"), make_task("old", node="n1", cpu=2, terminating=True))
    harness.put(make_gang("g", 2))
    Allocate().execute(harness.session())
    assert statuses(harness, "g") == {"PIPELINED": 2}


def test_preferred_node_affinity_chooses_the_node(harness):
    """Preferred affinity also counts in batch scheduling."""
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": term}]
        }
    }
    harness.put(make_node("n1"), make_node("n2", labels={"disk": "ssd"}), make_node("n3"))
    harness.put(make_gang("g", 1, spec={"affinity": affinity}))
    assert harness.run().bound == {"g-0": "n2"}


def test_batch_scheduling_respects_topology_spread_constraints(harness):
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        harness.put(make_node(name, labels={"zone": zone}))
    gang = make_gang("g", 4, labels={"app": "x"}, spec={"topologySpreadConstraints": [spread]})
    nodes = list(harness.put(gang).run().bound.values())
    assert nodes.count("n3") == 2


def test_tainted_and_cordoned_nodes_are_not_used(harness):
    harness.put(
        make_node("n1", taints=["only=gpu:NoSchedule"]), make_node("n2", unschedulable=True)
    )
    assert harness.put(make_gang("g", 1)).run().bound == {}


ASKS_WHILE_IT_STARTS = {
    "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}],
}


@pytest.mark.parametrize(("kept", "placed"), [((), True), ((Defect.INIT_ONLY,), False)])
def test_a_pod_with_requests_only_in_an_init_container_is_scheduled(kept, placed, make_harness):
    """Without proportion, because a queue that requests nothing already has all it deserves."""
    text = KUBE_BATCH_DEFAULT.replace("  - name: proportion\n", "")
    harness = make_harness(text, defects=BatchDefects(FIXED.present | set(kept)))
    pod = make_task("p", cpu=0, spec=ASKS_WHILE_IT_STARTS)
    found = harness.put(make_queue("default"), make_node("n1"), pod).run().bound
    assert found == ({"p": "n1"} if placed else {})


def test_a_gang_with_a_bound_volume_is_bound(harness):
    harness.put(
        make_storage_class(),
        make_volume("v", claim="default/c"),
        make_claim("c", volume="v", bound=True),
    )
    harness.put(make_node("n1"), make_gang("g", 1, spec=make_claim_volumes("c")))
    assert harness.run().bound == {"g-0": "n1"}


def test_volumes_are_provisioned_before_the_bind(harness):
    """The provisioning happens first, because a bound pod would wait for its volume forever."""
    harness.put(make_storage_class(), make_claim("c"))
    harness.put(make_node("n1"), make_gang("g", 1, spec=make_claim_volumes("c")))
    found = harness.run()
    assert found.bound == {}
    (patch,) = [c for c in found.commands if isinstance(c, PatchObject)]
    assert patch.target.kind == "PersistentVolumeClaim"
    assert harness.job("g").is_ready


def test_a_task_that_does_not_fit_is_skipped(harness):
    harness.put(make_node("n1"), make_group("g", 1), make_task("big", "g", cpu=8, priority=5))
    assert harness.put(make_task("small", "g", priority=1)).run().bound == {"small": "n1"}


def test_a_task_that_does_not_fit_ends_the_turn_of_its_job_in_kube_batch(kube_batch):
    kube_batch.put(make_node("n1"), make_group("g", 1), make_task("big", "g", cpu=8, priority=5))
    assert kube_batch.put(make_task("small", "g", priority=1)).run().bound == {}


def test_a_task_beyond_the_capability_ends_the_turn_of_its_job_in_kube_batch(harness, kube_batch):
    for one in (harness, kube_batch):
        one.put(make_queue("q", capability={"cpu": "2"}), make_node("n1"), make_group("g", 1, "q"))
        one.put(make_task("big", "g", cpu=3, priority=5), make_task("small", "g", priority=1))
    assert (harness.run().bound, kube_batch.run().bound) == ({"small": "n1"}, {})


def test_a_member_may_require_affinity_to_another_pending_member(harness):
    """The leader is placed first, and the worker on its node."""
    near = {"labelSelector": {"matchLabels": {"role": "leader"}}, "topologyKey": "host"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    harness.put(make_node("n1", labels={"host": "n1"}), make_group("g", 2))
    harness.put(make_task("worker", "g", priority=5, spec={"affinity": {"podAffinity": terms}}))
    harness.put(make_task("leader", "g", priority=1, labels={"role": "leader"}))
    assert harness.run().bound == {"leader": "n1", "worker": "n1"}


def test_requests_are_exact_in_fairlead_and_rounded_in_kube_batch(harness, kube_batch):
    """kube-batch ignores 10 milli, and puts 4,005 on a node of 4,000."""
    for one in (harness, kube_batch):
        one.put(make_node("n1", cpu="4"), make_gang("g", 1, cpu="4005m"))
    assert (harness.run().bound, kube_batch.run().bound) == ({}, {"g-0": "n1"})
