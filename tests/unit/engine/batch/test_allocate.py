"""The action allocate: the order of queues, jobs and tasks, and gangs that start as a whole."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.actions.allocate import Allocate
from fairlead.engine.batch.configuration_file import KUBE_BATCH_DEFAULT
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
    claiming,
    make_claim,
    make_storage_class,
    make_volume,
)


def test_a_gang_that_fits_is_bound_as_a_whole(yard):
    found = yard.put(make_node("n1"), make_node("n2"), make_gang("g", 6)).run()
    assert sorted(found.bound) == [f"g-{i}" for i in range(6)]
    assert sorted(found.bound.values()) == ["n1"] * 3 + ["n2"] * 3


def test_a_gang_that_does_not_fit_is_not_bound_and_uses_no_resources(yard, statuses):
    found = yard.put(make_node("n1"), make_gang("g", 6)).run()
    assert found.bound == {}
    assert statuses(yard, "g") == {"PENDING": 6}
    assert yard.cluster.table.find("n1").pods == {}


def test_pods_without_a_group_start_in_the_order_of_their_creation(yard):
    second = {"creation_timestamp": "1970-01-01T00:00:02Z"}
    third = {"creation_timestamp": "1970-01-01T00:00:03Z"}
    yard.put(make_node("n1", cpu=1), make_task("a", meta=third), make_task("b", meta=second))
    assert yard.run().bound == {"b": "n1"}


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
def test_a_group_of_any_api_is_a_gang(api, spec, mark, yard):
    """Neither member starts alone; both start once both exist."""
    yard.put(make_node("n1"), make_group("g", 0 if spec else 2, api=api, **spec))
    assert yard.put(make_task("a", **mark)).run().bound == {}
    assert yard.put(make_task("b", **mark)).run().bound == {"a": "n1", "b": "n1"}


def test_a_smaller_gang_behind_one_that_does_not_fit_is_bound(yard):
    found = yard.put(make_node("n1"), make_gang("a-large", 6), make_gang("b-small", 4)).run()
    assert sorted(found.bound) == [f"b-small-{i}" for i in range(4)]


def test_a_partly_placed_gang_of_kube_batch_blocks_other_gangs(yards):
    yard = yards("kube-batch", defects=UPSTREAM).put(make_queue("default"), make_node("n1"))
    found = yard.put(make_gang("a-large", 6), make_gang("b-small", 4)).run()
    assert found.bound == {}


def test_members_beyond_the_minimum_are_bound_while_they_fit(yard):
    found = yard.put(make_node("n1"), make_gang("g", 6, min_member=2)).run()
    assert len(found.bound) == 4


def test_a_gang_with_too_few_pods_is_not_scheduled_and_gets_a_condition(yard):
    yard.put(make_node("n1"), make_group("g", 3), make_task("p", "g"))
    found = yard.run()
    assert found.bound == {}
    condition = found.patches["PodGroup", "g"].conditions[0]
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughTasks")
    assert condition.message.endswith("valid: 1, min: 3")
    assert [one.reason for one in found.reports["g"].conditions] == ["NotEnoughTasks"]


def test_a_pod_without_a_group_is_a_gang_of_one_member(yard):
    assert yard.put(make_node("n1"), make_task("p")).run().bound == {"p": "n1"}


def test_pods_of_other_schedulers_are_not_bound(yard):
    yard.put(make_node("n1"), make_task("p", scheduler="default-scheduler"))
    assert yard.run().bound == {}
    assert yard.jobs.jobs == {}


def test_gated_pods_wait_and_do_not_count(yard, statuses):
    gated = make_task("g-1", "g", spec={"schedulingGates": [{"name": "wait"}]})
    yard.put(make_node("n1"), make_group("g", 2), make_task("g-0", "g"), gated)
    assert yard.run().bound == {}
    assert statuses(yard, "g") == {"PENDING": 1, "GATED": 1}
    yard.put(make_task("g-1", "g"))
    assert len(yard.run().bound) == 2


def test_pods_of_a_missing_group_are_not_bound(yard):
    yard.put(make_node("n1"), make_task("p", "g"))
    assert yard.run().bound == {}
    assert yard.put(make_group("g", 1)).run().bound == {"p": "n1"}


def test_jobs_of_a_missing_queue_are_not_bound(yard):
    yard.put(make_node("n1"), make_gang("g", 1, queue="q"))
    assert yard.run().bound == {}
    assert yard.put(make_queue("q")).run().bound == {"g-0": "n1"}


def test_jobs_of_a_closed_queue_are_not_bound(yard):
    yard.put(make_node("n1"), make_queue("q", state="Closed"), make_gang("g", 1, queue="q"))
    assert yard.run().bound == {}


def test_the_default_queue_needs_an_object_only_in_kube_batch(yard, yards):
    assert yard.put(make_node("n1"), make_gang("g", 1)).run().bound
    assert not yards("kube-batch").put(make_node("n1"), make_gang("g", 1)).run().bound


def test_the_job_of_higher_priority_is_scheduled_first(yard):
    yard.put(make_priority_class("high", 10), make_node("n1"))
    yard.put(make_gang("a", 4), make_gang("b", 4, priority_class="high"))
    assert sorted(yard.run().bound) == [f"b-{i}" for i in range(4)]


def test_groups_without_a_priority_class_use_the_global_default(yard):
    yard.put(make_priority_class("normal", 5, default=True), make_priority_class("low", 1))
    yard.put(make_node("n1"), make_gang("a", 4, priority_class="low"), make_gang("b", 4))
    assert sorted(yard.run().bound) == [f"b-{i}" for i in range(4)]


def test_within_a_job_the_task_of_higher_priority_is_scheduled_first(yard):
    pods = [make_task(f"g-{i}", "g", cpu=3, priority=i) for i in range(3)]
    assert yard.put(make_node("n1"), make_group("g", 1), pods).run().bound == {"g-2": "n1"}


def test_the_job_with_the_smaller_share_is_scheduled_first(yards):
    yard = yards('actions: "allocate"\ntiers: [{plugins: [{name: drf}, {name: predicates}]}]')
    yard.put(make_queue("default"), make_node("n1", cpu="4"))
    yard.put(make_gang("a", 3, min_member=1), make_gang("b", 1))
    yard.put(make_task("a-run", "a", node="n1"))
    bound = yard.run().bound
    assert "b-0" in bound
    assert len(bound) == 3


def test_queues_share_by_weight(yard):
    yard.put(make_queue("q1", 3), make_queue("q2", 1), make_node("n1", cpu="8"))
    yard.put(
        make_gang("a", 8, min_member=1, queue="q1"), make_gang("b", 8, min_member=1, queue="q2")
    )
    bound = yard.run().bound
    assert sum(name.startswith("a-") for name in bound) == 6
    assert sum(name.startswith("b-") for name in bound) == 2


def test_a_queue_may_use_the_unused_share_of_another_queue(yard):
    yard.put(make_queue("q1", 3), make_queue("q2", 1), make_node("n1", cpu="8"))
    yard.put(make_gang("a", 1, queue="q1"), make_gang("b", 8, min_member=1, queue="q2"))
    bound = yard.run().bound
    assert sum(name.startswith("b-") for name in bound) == 7


def test_a_queue_of_best_effort_tasks_does_not_delay_other_queues(yard):
    yard.put(make_queue("a"), make_queue("b"), make_node("n1"))
    yard.put(make_gang("nothing", 1, queue="a", cpu=0), make_gang("g", 1, queue="b"))
    Allocate().execute(yard.session())
    assert (yard.job("nothing").ready_count, yard.job("g").ready_count) == (0, 1)


def test_a_queue_whose_job_does_not_fit_does_not_delay_other_queues(yard):
    yard.put(make_queue("a"), make_queue("b"), make_node("n1"))
    yard.put(make_gang("large", 1, queue="a", cpu=8), make_gang("g", 1, queue="b"))
    Allocate().execute(yard.session())
    assert (yard.job("large").ready_count, yard.job("g").ready_count) == (0, 1)


def test_the_guarantee_of_a_queue_is_reserved_for_the_queue(yard):
    yard.put(make_queue("q1", guarantee={"resource": {"cpu": "3", "memory": "3Gi"}}))
    yard.put(make_node("n1", cpu="4", memory="4Gi"), make_gang("b", 4, min_member=1))
    assert len(yard.run().bound) == 1


def test_a_queue_never_exceeds_its_capability(yard):
    yard.put(make_queue("q", capability={"cpu": "2"}), make_node("n1"))
    yard.put(make_gang("g", 4, min_member=1, queue="q"))
    assert len(yard.run().bound) == 2


def test_the_capability_of_a_parent_limits_its_children(yard):
    yard.put(make_queue("org", capability={"cpu": "2"}), make_queue("q", parent="org"))
    yard.put(make_node("n1"), make_gang("g", 4, min_member=1, queue="q"))
    assert len(yard.run().bound) == 2


def test_idle_resources_are_preferred_to_releasing_resources(yard):
    """The best node only has releasing resources; another one has idle ones."""
    yard.put(make_node("n1", cpu="2"), make_node("n2", cpu="4"))
    yard.put(make_task("old", node="n1", cpu=2, terminating=True), make_task("full", node="n2"))
    yard.put(make_gang("g", 1, cpu=2))
    assert yard.run().bound == {"g-0": "n2"}


def test_a_task_on_releasing_resources_is_pipelined_and_not_bound(yard):
    yard.put(make_node("n1", cpu="2"), make_task("old", node="n1", cpu=2, terminating=True))
    yard.put(make_gang("g", 2))
    found = yard.run()
    assert found.bound == {}
    assert "waiting" not in found.events
    assert yard.cluster.table.find("n1").pods.keys() == {"uid-old"}


def test_a_pipelined_member_does_not_end_the_turn_of_its_job(yard, statuses):
    yard.put(make_node("n1", cpu="2"), make_task("old", node="n1", cpu=2, terminating=True))
    yard.put(make_gang("g", 2))
    Allocate().execute(yard.session())
    assert statuses(yard, "g") == {"PIPELINED": 2}


def test_preferred_node_affinity_chooses_the_node(yard):
    """Preferred affinity also counts in batch scheduling."""
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": term}]
        }
    }
    yard.put(make_node("n1"), make_node("n2", labels={"disk": "ssd"}), make_node("n3"))
    yard.put(make_gang("g", 1, spec={"affinity": affinity}))
    assert yard.run().bound == {"g-0": "n2"}


def test_batch_scheduling_respects_topology_spread_constraints(yard):
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        yard.put(make_node(name, labels={"zone": zone}))
    gang = make_gang("g", 4, labels={"app": "x"}, spec={"topologySpreadConstraints": [spread]})
    nodes = list(yard.put(gang).run().bound.values())
    assert nodes.count("n3") == 2


def test_tainted_and_cordoned_nodes_are_not_used(yard):
    yard.put(make_node("n1", taints=["only=gpu:NoSchedule"]), make_node("n2", unschedulable=True))
    assert yard.put(make_gang("g", 1)).run().bound == {}


ASKS_WHILE_IT_STARTS = {
    "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}],
}


@pytest.mark.parametrize(("kept", "placed"), [((), True), ((Defect.INIT_ONLY,), False)])
def test_a_pod_with_requests_only_in_an_init_container_is_scheduled(kept, placed, yards):
    """Without proportion, because a queue that requests nothing already has all it deserves."""
    text = KUBE_BATCH_DEFAULT.replace("  - name: proportion\n", "")
    yard = yards(text, defects=BatchDefects(FIXED.present | set(kept)))
    pod = make_task("p", cpu=0, spec=ASKS_WHILE_IT_STARTS)
    found = yard.put(make_queue("default"), make_node("n1"), pod).run().bound
    assert found == ({"p": "n1"} if placed else {})


def test_a_gang_with_a_bound_volume_is_bound(yard):
    yard.put(
        make_storage_class(),
        make_volume("v", claim="default/c"),
        make_claim("c", volume="v", bound=True),
    )
    yard.put(make_node("n1"), make_gang("g", 1, spec=claiming("c")))
    assert yard.run().bound == {"g-0": "n1"}


def test_volumes_are_provisioned_before_the_bind(yard):
    """The provisioning happens first, because a bound pod would wait for its volume forever."""
    yard.put(make_storage_class(), make_claim("c"))
    yard.put(make_node("n1"), make_gang("g", 1, spec=claiming("c")))
    found = yard.run()
    assert found.bound == {}
    (asked,) = [c for c in found.commands if isinstance(c, PatchObject)]
    assert asked.target.kind == "PersistentVolumeClaim"
    assert yard.job("g").is_ready


def test_a_task_that_does_not_fit_is_skipped(yard):
    yard.put(make_node("n1"), make_group("g", 1), make_task("big", "g", cpu=8, priority=5))
    assert yard.put(make_task("small", "g", priority=1)).run().bound == {"small": "n1"}


def test_a_task_that_does_not_fit_ends_the_turn_of_its_job_in_kube_batch(kube_batch):
    kube_batch.put(make_node("n1"), make_group("g", 1), make_task("big", "g", cpu=8, priority=5))
    assert kube_batch.put(make_task("small", "g", priority=1)).run().bound == {}


def test_a_task_beyond_the_capability_ends_the_turn_of_its_job_in_kube_batch(yard, kube_batch):
    for one in (yard, kube_batch):
        one.put(make_queue("q", capability={"cpu": "2"}), make_node("n1"), make_group("g", 1, "q"))
        one.put(make_task("big", "g", cpu=3, priority=5), make_task("small", "g", priority=1))
    assert (yard.run().bound, kube_batch.run().bound) == ({"small": "n1"}, {})


def test_a_member_may_require_affinity_to_another_pending_member(yard):
    """The leader is placed first, and the worker on its node."""
    near = {"labelSelector": {"matchLabels": {"role": "leader"}}, "topologyKey": "host"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    yard.put(make_node("n1", labels={"host": "n1"}), make_group("g", 2))
    yard.put(make_task("worker", "g", priority=5, spec={"affinity": {"podAffinity": terms}}))
    yard.put(make_task("leader", "g", priority=1, labels={"role": "leader"}))
    assert yard.run().bound == {"leader": "n1", "worker": "n1"}


def test_requests_are_exact_in_fairlead_and_rounded_in_kube_batch(yard, kube_batch):
    """kube-batch ignores 10 milli, and puts 4,005 on a node of 4,000."""
    for one in (yard, kube_batch):
        one.put(make_node("n1", cpu="4"), make_gang("g", 1, cpu="4005m"))
    assert (yard.run().bound, kube_batch.run().bound) == ({}, {"g-0": "n1"})
